"""The commands `games`, `agents`, `configs` and `info`: list what there is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ninetka_train.commands.completion import complete_game, complete_network
from ninetka_train.exit_handling import exit_on_error

GameName = Annotated[
    str,
    typer.Option("--game", metavar="SPEC", help="The game, such as go or kropki.", autocompletion=complete_game),
]


def games() -> None:
    """List the games and their options."""
    with exit_on_error("games"):
        from ninetka_train.reporting.catalogue import games_tables

        _print(games_tables())


def agents(game: GameName = "ninetka") -> None:
    """List the agents of a game, their options, and its networks."""
    with exit_on_error("networks"):
        from ninetka_env.core.registry import load_variant
        from ninetka_train.reporting.catalogue import agents_tables

        _print(agents_tables(load_variant(game).definition))


def configs() -> None:
    """List the configurations for training."""
    with exit_on_error("configurations"):
        from ninetka_train.reporting.catalogue import configs_tables

        _print(configs_tables())


def info(
    network: Annotated[
        str,
        typer.Argument(
            metavar="NETWORK",
            help="A trained network, such as net:go, net:gen-5 or runs/quick.",
            autocompletion=complete_network,
        ),
    ],
    game: Annotated[
        str | None,
        typer.Option(
            "--game",
            metavar="SPEC",
            help="The game of the network, if NETWORK is a name without one, such as gen-1; by default 9tka.",
            autocompletion=complete_game,
        ),
    ] = None,
) -> None:
    """Describe a trained network: its game, size, training and rating."""
    with exit_on_error("networks"):
        from ninetka_env.core.registry import DEFAULT_GAME, load_variant
        from ninetka_train.reporting.catalogue import info_tables

        _print(info_tables(network, load_variant(game or DEFAULT_GAME).definition.name))


def _print(tables: list[Any]) -> None:
    """Print tables with an empty line between them."""
    from ninetka_train.judging.report import report_console

    console = report_console()
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(table)
