"""The SQLite file of a server: the journal of its tables, and the finished games that people allow it to store.

Start reading at `Store.save`. `journal.py` has the JSON of a table; `tallies.py` reads the finished games.

A change is written into the journal before any browser gets it, so a killed server restores its games. The database is
in WAL mode with `synchronous = NORMAL`: changes survive a crash of the process, but the latest ones may be lost in a
power failure.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

from ninetka_env.api.records import format_record
from ninetka_env.core.outcome import DRAWN
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.records import record_of
from ninetka_web.tables.table import Table

SCHEMA_VERSION = 4
SCHEMA = """
CREATE TABLE tables (id TEXT PRIMARY KEY, touched REAL NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE games (
    id INTEGER PRIMARY KEY,
    table_id TEXT NOT NULL,
    round INTEGER NOT NULL,
    ended TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    players INTEGER NOT NULL,
    people INTEGER NOT NULL,   -- seats of people
    agents TEXT NOT NULL,      -- the different agents in the other seats, sorted, with " + " between
    result TEXT NOT NULL,      -- 'won' if a person won, else 'drawn' or 'lost'
    helped INTEGER NOT NULL,   -- 1 if moves were taken back or an analysis was looked at
    record TEXT NOT NULL,      -- as text, empty if the last person gave the game up
    game TEXT NOT NULL,        -- its name
    UNIQUE (table_id, round)
);
"""


def default_path() -> Path:
    """Return the default path of the file, in the user's folder for application data."""
    if os.name == "nt":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        root = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return root / "ninetka" / "table.sqlite3"


class Store:
    """The SQLite file of one server. A lock keeps other servers from using it at the same time."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it.

        Raises:
            OSError: if the file cannot be created, is not a database of this version, or another server uses it; the
                message names the path.
        """
        with ExitStack() as on_error:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = on_error.enter_context(closing(_lock(path)))
                self._database = on_error.enter_context(closing(connect(path)))
                _prepare(self._database, path)
            except sqlite3.Error as error:
                raise OSError(f"{path}: {error}") from error
            on_error.pop_all()

    def save(self, table: Table) -> None:
        """Write a table into the journal, and its game into the statistics if it is over and counts for them."""
        with self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO tables VALUES (?, ?, ?)", (table.id, time.time(), dump_table(table))
            )
            if table.is_over and counts_for_statistics(table):
                self._store_game(table)

    def _store_game(self, table: Table) -> None:
        people = {number for number, seat in enumerate(table.seats) if not seat.agent} | set(table.resigned)
        agents = " + ".join(sorted({seat.agent for n, seat in enumerate(table.seats) if n not in people}))
        record = format_record(record_of(table)) if table.game.is_over else ""
        remaining = people - set(table.resigned)
        result = "won" if table.winner in remaining else "drawn" if remaining and table.winner == DRAWN else "lost"
        self._database.execute(
            "INSERT OR IGNORE INTO games (table_id, round, players, people, agents, result, helped, record, game) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                table.id,
                table.round,
                len(table.seats),
                len(people),
                agents,
                result,
                table.helped,
                record,
                table.setup.game,
            ),
        )

    def remove(self, table_id: str) -> None:
        """Remove a table. Its games in the statistics stay."""
        with self._database:
            self._database.execute("DELETE FROM tables WHERE id = ?", (table_id,))

    def load(self, table_id: str) -> Table | None:
        """Return the last saved version of a table; None if there is none."""
        row = self._database.execute("SELECT state FROM tables WHERE id = ?", (table_id,)).fetchone()
        return load_table(row[0]) if row else None

    def states(self) -> list[str]:
        """Return all tables as texts of `journal.dump_table`, the least recently changed first."""
        return [state for (state,) in self._database.execute("SELECT state FROM tables ORDER BY touched")]

    def touched(self) -> dict[str, float]:
        """Return the time of each table's last save, in seconds since the epoch."""
        return dict(self._database.execute("SELECT id, touched FROM tables"))

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        self._lock.close()


def counts_for_statistics(table: Table) -> bool:
    """Return whether a game counts for the statistics.

    It must be a game of people and agents from its start, not called off, and all people must allow storing it.
    """
    people = [seat for seat in table.seats if not seat.agent]
    played = not (table.view_only or table.setup.position or table.called_off) and len(people) < len(table.seats)
    return played and bool(people) and all(seat.keep for seat in people)


def connect(path: Path) -> sqlite3.Connection:
    """Open a database."""
    return sqlite3.connect(path, timeout=2)


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Check the version of a database, set its pragmas, and create the schema of a new one in one transaction."""
    version = version_of(database)
    if version not in (0, SCHEMA_VERSION):
        raise other_version_error(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    if not version:
        database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")


def version_of(database: sqlite3.Connection) -> int:
    """Return the version of a database, 0 for a new one."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def other_version_error(path: Path) -> OSError:
    """Return the error for a file of another version of this project."""
    return OSError(f"{path}: of another version of ninetka; name another file")


def _lock(path: Path) -> sqlite3.Connection:
    """Lock a second, empty database, `PATH.lock`, and return its connection.

    The system releases the lock even if the process is killed.
    """
    with ExitStack() as on_error:
        lock_path = path.with_name(path.name + ".lock")
        lock = on_error.enter_context(closing(sqlite3.connect(lock_path, timeout=0, isolation_level=None)))
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise OSError(f"{path}: another server uses this file; stop it or name another file") from None
        on_error.pop_all()
        return lock
