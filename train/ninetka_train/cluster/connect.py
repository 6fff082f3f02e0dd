"""A cluster for as long as a command runs: the one at an address, or one on this machine."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import ray
from ray.exceptions import RayError

from ninetka_env.core.options import shortened
from ninetka_env.core.threads import cores
from ninetka_train.cluster import LOCAL
from ninetka_train.cluster.queue import ClusterError
from ninetka_train.cluster.tasks import ClusterPlayer
from ninetka_train.cluster.workers import Workers, check_answers, told
from ninetka_train.ending import Stopped

OBJECT_STORE = 256 * 2**20
"""Bytes for weights and samples under way on a local cluster; more go to disk."""
DEFAULT_PORT = 6379
"""Where the head of a cluster listens by default."""


@contextmanager
def cluster(address: str, warn: Callable[[str], None]) -> Iterator[ClusterPlayer]:
    """Connect to a Ray cluster, and leave it in the end.

    Args:
        address: `HOST:PORT` of its head, or `HOST` if the port is Ray's default; `auto` for the one that this machine
            belongs to; or `LOCAL` for one on this machine, with a worker per core, that ends with the command; or the
            one that `RAY_ADDRESS` names, as it does in a job that Ray runs.
        warn: told what users should know.

    Raises:
        ValueError: if no cluster answers there, or it has no cores.
        ConnectionError: if it is lost.
    """
    _connect(address)
    try:
        if not ray.cluster_resources().get("CPU"):
            raise ValueError(f"the cluster at {address} has no CPU cores: start its nodes with --num-cpus")
        yield ClusterPlayer(Workers(warn))
    except RayError as error:
        raise ClusterError(f"the cluster is lost: {told(error)}") from None
    finally:
        ray.shutdown()


def _connect(address: str) -> None:
    """Connect to the cluster; SIGTERM is handled as before, while Ray would end the process, without a word."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _init(address)
    except SystemExit:  # by which Ray's own handler ends the process meanwhile
        raise Stopped(signal.SIGTERM) from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, handler)


def _init(address: str) -> None:
    told = os.environ.get("RAY_ADDRESS", LOCAL) if address == LOCAL else address
    if told == LOCAL:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report to its makers
        options = {"num_cpus": cores(), "include_dashboard": False, "object_store_memory": OBJECT_STORE}
        ray.init(LOCAL, **options, logging_level="ERROR")
        return
    if told.startswith("ray://"):
        raise ValueError(f"--cluster {told}: run the command on a node of the cluster, by `ray job submit`")
    told = with_port(told)
    try:
        check_answers(told)
        ray.init(told, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"--cluster {told}: no Ray cluster answers there: {why}") from None


def with_port(address: str) -> str:
    """Return an address as `HOST:PORT`, with Ray's default port if it has none; `auto` as it is.

    Raises:
        ValueError: if it is no such address.
    """
    found = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?", address)
    if not found or not 0 < int(found[2] or DEFAULT_PORT) < 1 << 16:
        expected = "expected HOST:PORT, such as head:6379 or [::1]:6379, or auto"
        raise ValueError(f"--cluster {shortened(address)}: {expected}")
    return address if found[2] or address == "auto" else f"{address}:{DEFAULT_PORT}"
