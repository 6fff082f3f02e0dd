"""The counterpart of the paper's Table 1: games and wins of people, by game, number of players and agent."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from ninetka_env.core.registry import DEFAULT, get_definition
from ninetka_web.adapter import adapter_of
from ninetka_web.store import Tally


def tallies_table(tallies: list[Tally], game: str = DEFAULT) -> Table:
    """Return a row per lineup of agents in a game, a column per number of players: won, drawn, played, share."""
    what = f"{get_definition(game).title}: games of one person against agents"
    table = Table(title=f"{what}: won / drawn / played (share, a draw counted as half)")
    table.add_column("agents in the other seats")
    seats = adapter_of(game).seats
    for players in seats:
        table.add_column(f"{players} players", justify="right")
    for agents in dict.fromkeys(tally.agents for tally in tallies if tally.game == game):
        row = {tally.players: tally for tally in tallies if (tally.game, tally.agents) == (game, agents)}
        table.add_row(agents, *(_cell(row.get(players)) for players in seats))
    table.add_section()
    table.add_row("even share", *(f"{100 / players:.1f} %" for players in seats))
    return table


def _cell(tally: Tally | None) -> str:
    return f"{tally.wins} / {tally.draws} / {tally.games}  ({100 * tally.share:.1f} %)" if tally else ""


def print_tallies(tallies: list[Tally], left_out: int, path: Path) -> None:
    """Print a table for each game, or how to fill them."""
    console = Console()
    for game in dict.fromkeys(tally.game for tally in tallies):
        console.print(tallies_table(tallies, game))
    if not tallies:
        console.print(f"no finished games yet in {path}: play some with `ninetka play`, and agree that they are kept")
    if left_out:
        console.print(f"not counted: {left_out} of several people, with moves taken back, or with analysis")
