"""Connect a command to a Ray cluster at an address, or to a cluster on this machine that ends with the command.

Start reading at `connected_player`. The work is in `tasks.py`, the workers in `workers.py`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import ray
from ray.exceptions import RayError

from ninetka_env.core.options import short_repr
from ninetka_env.core.threads import available_cores
from ninetka_train.cluster import LOCAL
from ninetka_train.cluster.queue import ClusterError
from ninetka_train.cluster.tasks import ClusterPlayer
from ninetka_train.cluster.workers import Workers, check_head_answers, first_line
from ninetka_train.exit_handling import StoppedBySignal

OBJECT_STORE_BYTES = 256 * 2**20
"""Memory for weights and samples in the object store of a local cluster, in bytes; Ray spills the rest to disk."""
DEFAULT_PORT = 6379
"""Default port of the head of a cluster."""


@contextmanager
def connected_player(address: str, warn: Callable[[str], None]) -> Iterator[ClusterPlayer]:
    """Return a context manager that connects to a Ray cluster, yields a `ClusterPlayer`, and disconnects at its end.

    Args:
        address: `HOST:PORT` of the head, or `HOST` for Ray's default port; `auto` for the cluster that this machine
            belongs to; `LOCAL` for the cluster that the environment variable `RAY_ADDRESS` names (Ray sets it in its
            jobs), otherwise for a new cluster on this machine with a worker per core.
        warn: called with messages for the user.

    Raises:
        ValueError: if no cluster answers at the address, or the cluster has no cores.
        ConnectionError: if the connection to the cluster is lost.
    """
    _connect(address)
    try:
        if not ray.cluster_resources().get("CPU"):
            raise ValueError(f"the cluster at {address} has no CPU cores: start its nodes with --num-cpus")
        yield ClusterPlayer(Workers(warn))
    except RayError as error:
        raise ClusterError(f"the cluster is lost: {first_line(error)}") from None
    finally:
        ray.shutdown()


def _connect(address: str) -> None:
    """Connect to the cluster and restore the SIGTERM handler, because Ray's handler ends the process silently."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _init(address)
    except SystemExit:  # raised by Ray's SIGTERM handler while it connects
        raise StoppedBySignal(signal.SIGTERM) from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, handler)


def _init(address: str) -> None:
    target = os.environ.get("RAY_ADDRESS", LOCAL) if address == LOCAL else address
    if target == LOCAL:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends usage statistics by default
        options = {"num_cpus": available_cores(), "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        ray.init(LOCAL, **options, logging_level="ERROR")
        return
    if target.startswith("ray://"):
        raise ValueError(f"--cluster {target}: run the command on a node of the cluster, by `ray job submit`")
    target = with_port(target)
    try:
        check_head_answers(target)
        ray.init(target, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"--cluster {target}: no Ray cluster answers there: {why}") from None


def with_port(address: str) -> str:
    """Return an address as `HOST:PORT`, with Ray's default port if it has none; return `auto` unchanged.

    Raises:
        ValueError: if the address is invalid.
    """
    found = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?", address)
    if not found or not 0 < int(found[2] or DEFAULT_PORT) < 1 << 16:
        expected = "expected HOST:PORT, such as head:6379 or [::1]:6379, or auto"
        raise ValueError(f"--cluster {short_repr(address)}: {expected}")
    return address if found[2] or address == "auto" else f"{address}:{DEFAULT_PORT}"
