"""The option `--cluster` of the command line. Ray is imported only if the option is used; see `connect.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ninetka_train.cluster import LOCAL
from ninetka_train.ending import fail_import

if TYPE_CHECKING:
    from ninetka_train.cluster.tasks import ClusterPlayer

_ADDRESS = r"auto|local|ray://.*|([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?"
"""Pattern of addresses; the port is optional."""

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="[ADDRESS]",
        help="Play on the Ray cluster at HOST[:PORT], or auto; without an address, on all cores of this machine.",
    ),
]


class OnCluster(TyperCommand):
    """A command whose option `--cluster` has an optional value, which Typer does not support.

    The next argument is the value if it looks like an address and is not an agent, or if the command has only options.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the default address where the option has no value."""
        only_options = all(parameter.param_type_name == "option" for parameter in self.params)
        told = list(args)
        for place, (one, following) in enumerate(zip(args, [*args, ""][1:], strict=True)):
            if one == "--cluster" and not (_is_word(following) if only_options else _is_address(following)):
                told[place] = f"--cluster={LOCAL}"
        return super().parse_args(ctx, told)


def _is_word(text: str) -> bool:
    return bool(text) and not text.startswith("-")


def _is_address(text: str) -> bool:
    """Return whether a text looks like an address and does not start with the name of an agent of any game."""
    from ninetka_agents.parts import GENERIC, games_with

    name = text.partition(":")[0]
    return _is_word(text) and bool(re.fullmatch(_ADDRESS, text)) and name not in GENERIC and not games_with(name)


@contextmanager
def on_cluster(address: str | None) -> Iterator[ClusterPlayer | None]:
    """Return a context manager with a `ClusterPlayer` connected to the cluster; None without an address."""
    if address is None:
        yield None
        return
    try:
        from ninetka_train.cluster.connect import cluster
    except ImportError as error:
        fail_import("--cluster needs", error, "cluster")
    with cluster(address, lambda what: typer.echo(f"warning: {what}", err=True)) as player:
        yield player


def check_repeatable(specs: Sequence[str]) -> None:
    """Raise `ValueError` for agents that may choose different actions on different workers.

    Agents with a time limit depend on the load of the node. External engines have their own state, and may be installed
    differently.
    """
    for spec in specs:
        if re.search(r"(?:^|[\[=])gtp(?:$|[:,\]])", spec):
            raise ValueError(f"agent {spec!r}: outside engines cannot play on a cluster, which may lack them")
        if re.search(r"\bseconds=", spec):
            raise ValueError(f"agent {spec!r}: time limits are not allowed on a cluster: set simulations instead")


def round_line(share: float, numbers: Mapping[str, float]) -> str:
    """Return a one-line summary of a round that was played on a cluster.

    Args:
        share: the finished share of the run, 0..1.
        numbers: the metrics of the round, including `ninetka_train.cluster.workers.Workers.figures`.
    """
    return (
        f"{share:4.0%}: {numbers['games_per_second']:.3g} games/s, {numbers['samples_per_second']:.4g} samples/s, "
        f"{numbers['workers']:.0f} workers, {numbers['idle']:.0%} idle, {1 - numbers['share_of_play']:.0%} of the time "
        f"learning, staleness {numbers['staleness']:.0f}, {numbers['again']:.0f} tasks repeated"
    )
