"""What the command line needs to play on a cluster; Ray itself is imported only where one is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ninetka_train.cluster import LOCAL
from ninetka_train.ending import fail

if TYPE_CHECKING:
    from ninetka_train.cluster.tasks import ClusterPlayer

_ADDRESS = r"auto|local|ray://.*|[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+"

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="[ADDRESS]",
        help="Play on the Ray cluster at HOST:PORT, or auto; without an address on all cores, by one that starts here.",
    ),
]


class OnCluster(TyperCommand):
    """A command whose option `--cluster` may stand alone: what follows is its value only if it looks like an address.

    Typer has no such options.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put in what the option means where it stands alone."""
        told = list(args)
        for place, (one, following) in enumerate(zip(args, [*args, ""][1:], strict=True)):
            if one == "--cluster" and not re.fullmatch(_ADDRESS, following):
                told[place] = f"--cluster={LOCAL}"
        return super().parse_args(ctx, told)


@contextmanager
def on_cluster(address: str | None) -> Iterator[ClusterPlayer | None]:
    """Give who plays on a cluster meanwhile; None without an address."""
    if address is None:
        yield None
        return
    try:
        from ninetka_train.cluster.connect import cluster
    except ImportError as error:
        fail(f"--cluster needs {error.name}: pip install 'ninetka-env[cluster]'")
    with cluster(address, lambda what: typer.echo(f"warning: {what}", err=True)) as player:
        yield player


def check_repeatable(specs: Sequence[str]) -> None:
    """Raise `ValueError` for agents that a worker cannot have play as another one would.

    What plays by the clock depends on how busy its node is, and outside engines have a state and an installation of
    their own.
    """
    for spec in specs:
        if re.search(r"(?:^|[\[=])gtp(?:$|[:,\]])", spec):
            raise ValueError(f"agent {spec!r}: outside engines cannot play on a cluster, which may lack them")
        if re.search(r"\bseconds=", spec):
            raise ValueError(f"agent {spec!r}: what plays by the clock cannot play on a cluster: give it simulations")


def round_line(share: float, numbers: Mapping[str, float]) -> str:
    """Say in a line how a round was played on a cluster.

    Args:
        share: of the run that is done.
        numbers: of the round, with those of `ninetka_train.cluster.workers.Workers.figures`.
    """
    return (
        f"{share:4.0%}: {numbers['games_per_second']:.3g} games/s, {numbers['samples_per_second']:.4g} samples/s, "
        f"{numbers['workers']:.0f} workers, {numbers['idle']:.0%} idle, {1 - numbers['share_of_play']:.0%} of the time "
        f"learning, staleness {numbers['staleness']:.0f}, {numbers['again']:.0f} tasks again"
    )
