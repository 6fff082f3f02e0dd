"""Results of people against agents by game, agents and number of players, like Table 1 of Stefani et al. (2019).

Start reading at `read_tallies`, which reads the database of `store.py`; `ninetka stats` prints the results.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ninetka_env.core.registry import DEFAULT_GAME, get_definition
from ninetka_web.games.adapter import adapter_of
from ninetka_web.tables.store import SCHEMA_VERSION, connect, other_version_error, version_of


@dataclass(frozen=True)
class Tally:
    """The results of all games of one person against the same agents, with the same number of players."""

    agents: str
    players: int
    games: int
    wins: int
    draws: int = 0
    game: str = DEFAULT_GAME

    @property
    def share(self) -> float:
        """The share of games won; a draw counts as half a win."""
        return (self.wins + self.draws / 2) / self.games


def read_tallies(path: Path) -> tuple[list[Tally], int]:
    """Return the results of one person against agents, by game, agents and players, and the number of excluded games.

    Games of several people and games in which a user took back a move or used an analysis are excluded.

    Raises:
        OSError: if the file cannot be read.
    """
    if not path.exists():
        return [], 0
    try:
        with closing(connect(path)) as database:
            if version_of(database) != SCHEMA_VERSION:
                raise other_version_error(path)
            rows = database.execute(
                "SELECT agents, players, COUNT(*), SUM(result = 'won'), SUM(result = 'drawn'), game "
                "FROM games WHERE people = 1 AND NOT helped "
                "GROUP BY game, agents, players ORDER BY game, agents, players"
            ).fetchall()
            (num_excluded,) = database.execute("SELECT COUNT(*) FROM games WHERE people > 1 OR helped").fetchone()
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error
    return [Tally(*row) for row in rows], num_excluded


def tallies_table(tallies: list[Tally], game: str = DEFAULT_GAME) -> Table:
    """Return a table of games won, drawn and played, with a row per set of agents and a column per player count."""
    games_title = f"{get_definition(game).title}: games of one person against agents"
    table = Table(title=f"{games_title}: won / drawn / played (share, a draw counted as half)")
    table.add_column("agents in the other seats")
    seats = adapter_of(game).offer.seats
    for players in seats:
        table.add_column(f"{players} players", justify="right")
    for agents in dict.fromkeys(tally.agents for tally in tallies if tally.game == game):
        row = {tally.players: tally for tally in tallies if (tally.game, tally.agents) == (game, agents)}
        table.add_row(agents, *(_cell(row.get(players)) for players in seats))
    table.add_section()
    table.add_row("expected share", *(f"{100 / players:.1f} %" for players in seats))
    return table


def _cell(tally: Tally | None) -> str:
    return f"{tally.wins} / {tally.draws} / {tally.games}  ({100 * tally.share:.1f} %)" if tally else ""


def print_tallies(tallies: list[Tally], num_excluded: int, path: Path) -> None:
    """Print a table for each game; if there are none, print how to get some."""
    console = Console()
    for game in dict.fromkeys(tally.game for tally in tallies):
        console.print(tallies_table(tallies, game))
    if not tallies:
        console.print(f"no finished games yet in {path}: play some with `ninetka play`, and allow it to store them")
    if num_excluded:
        console.print(f"not counted: {num_excluded} games with several people, moves taken back, or analysis")
