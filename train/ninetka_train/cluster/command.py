"""The option `--cluster` of the command line. Ray is imported only if the option is used; see `connect.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ninetka_train.cluster import LOCAL
from ninetka_train.exit_handling import fail_on_import_error

if TYPE_CHECKING:
    from ninetka_train.cluster.tasks import ClusterPlayer

_ADDRESS = r"auto|local|ray://.*|([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?"
"""Pattern of addresses; the port is optional."""

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="[ADDRESS]",
        help="Play on the Ray cluster at HOST[:PORT], or auto; without an address, on all cores of this machine.",
    ),
]


class ClusterCommand(TyperCommand):
    """A command whose option `--cluster` has an optional value, which Typer does not support.

    If the command has arguments, the next word is the value if it looks like an address and is not an agent. If the
    command has only options, any next word that does not start with `-` is the value.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default address if the option has no value."""
        only_options = all(parameter.param_type_name == "option" for parameter in self.params)
        expanded = list(args)
        for place, (one, following) in enumerate(zip(args, [*args, ""][1:], strict=True)):
            if one == "--cluster" and not (_is_word(following) if only_options else _is_address(following)):
                expanded[place] = f"--cluster={LOCAL}"
        return super().parse_args(ctx, expanded)


def _is_word(text: str) -> bool:
    return bool(text) and not text.startswith("-")


def _is_address(text: str) -> bool:
    """Return whether a text looks like an address and does not start with the name of an agent of any game."""
    from ninetka_agents.plugins import is_agent_name

    return _is_word(text) and bool(re.fullmatch(_ADDRESS, text)) and not is_agent_name(text.partition(":")[0])


@contextmanager
def cluster_player(address: str | None) -> Iterator[ClusterPlayer | None]:
    """Return a context manager that yields a `ClusterPlayer` connected to the cluster, or None without an address."""
    if address is None:
        yield None
        return
    try:
        from ninetka_train.cluster.connect import connected_player
    except ImportError as error:
        fail_on_import_error("--cluster needs", error, "cluster")
    with connected_player(address, lambda what: typer.echo(f"warning: {what}", err=True)) as player:
        yield player


def check_repeatable(specs: Sequence[str]) -> None:
    """Raise `ValueError` for agents that may choose different actions on different workers.

    The moves of agents with a time limit depend on the load of the node. External engines have their own state, and
    nodes may have different versions of them.
    """
    for spec in specs:
        if re.search(r"(?:^|[\[=])gtp(?:$|[:,\]])", spec):
            raise ValueError(f"agent {spec!r}: outside engines cannot play on a cluster, which may lack them")
        if re.search(r"\bseconds=", spec):
            raise ValueError(f"agent {spec!r}: time limits are not allowed on a cluster: set simulations instead")


def round_summary(share: float, numbers: Mapping[str, float]) -> str:
    """Return a one-line summary of a round that was played on a cluster.

    Args:
        share: the finished share of the run, 0..1.
        numbers: the metrics of the round, including `ninetka_train.cluster.workers.Workers.metrics`.
    """
    return (
        f"{share:4.0%}: {numbers['games_per_second']:.3g} games/s, {numbers['samples_per_second']:.4g} samples/s, "
        f"{numbers['workers']:.0f} workers, {numbers['idle']:.0%} idle, {1 - numbers['share_of_play']:.0%} of the time "
        f"learning, staleness {numbers['staleness']:.0f}, {numbers['again']:.0f} tasks repeated"
    )
