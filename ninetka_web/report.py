"""The counterpart of the paper's Table 1: games and wins of people, by number of players and agent."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from ninetka_env.games.ninetka.geometry import MAX_PLAYERS
from ninetka_web.store import Tally


def tallies_table(tallies: list[Tally]) -> Table:
    """Return a row per lineup of agents, a column per number of players: wins, draws, games, share of wins."""
    table = Table(title="Games of one person against agents: won / drawn / played (share, a draw counted as half)")
    table.add_column("agents in the other seats")
    for players in range(2, MAX_PLAYERS + 1):
        table.add_column(f"{players} players", justify="right")
    for agents in dict.fromkeys(tally.agents for tally in tallies):
        row = {tally.players: tally for tally in tallies if tally.agents == agents}
        table.add_row(agents, *(_cell(row.get(players)) for players in range(2, MAX_PLAYERS + 1)))
    table.add_section()
    table.add_row("even share", *(f"{100 / players:.1f} %" for players in range(2, MAX_PLAYERS + 1)))
    return table


def _cell(tally: Tally | None) -> str:
    return f"{tally.wins} / {tally.draws} / {tally.games}  ({100 * tally.share:.1f} %)" if tally else ""


def print_tallies(tallies: list[Tally], left_out: int, path: Path) -> None:
    """Print the table, or how to fill it."""
    console = Console()
    if tallies:
        console.print(tallies_table(tallies))
    else:
        console.print(f"no finished games yet in {path}: play some with `ninetka play`, and agree that they are kept")
    if left_out:
        console.print(f"not counted: {left_out} of several people, with moves taken back, or with analysis")
