"""The database: stored tables, finished games of users who allow storing them, and tallies."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from test_tables import ANN, BOB, play_on, table_of
from typer.testing import CliRunner

from ninetka_env.core.outcome import DRAWN
from ninetka_env.games.ninetka.game import Game
from ninetka_train.cli import app
from ninetka_web.tables.endings import accept, resign, set_proposal
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.records import record_of, table_of_record
from ninetka_web.tables.store import Store
from ninetka_web.tables.table import Table
from ninetka_web.tables.tallies import Tally, read_tallies, tallies_table


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "deep" / "table.sqlite3")) as store:
        yield store


def finished(*seats: str, seed: int = 0, keep: bool = True, **options: object) -> Table:
    """Return a table with a game that random moves have finished."""
    table = table_of(*seats, keep=keep, **options)
    play_on(table, 100, np.random.default_rng(seed))
    return table


def test_tables_are_restored_unchanged(store: Store) -> None:
    tables = [table_of("me", "maxn"), table_of("open", "open", "random")]
    for table in tables:
        store.save(table)
    play_on(tables[0], 5, np.random.default_rng(0))
    store.save(tables[0])
    assert {t.id: dump_table(t) for t in map(load_table, store.states())} == {t.id: dump_table(t) for t in tables}
    store.remove(tables[0].id)
    assert store.load(tables[0].id) is None


def test_tallies_count_wins_of_users(store: Store, tmp_path: Path) -> None:
    expected: dict[tuple[str, int], list[int]] = {}
    for seed in range(30):
        seats = [("me", "maxn"), ("maxn", "me", "maxn"), ("random", "net", "me", "maxn")][seed % 3]
        table = finished(*seats, seed=seed)
        agents = " + ".join(sorted(set(seats) - {"me"}))
        tally = expected.setdefault((agents, len(seats)), [0, 0])
        tally[0] += 1
        tally[1] += seats[table.winner] == "me"
        store.save(table)
        store.save(table)  # each game counts once
    assert any(wins for _, wins in expected.values())
    resigned = table_of("me", "mcts", keep=True)
    resign(resigned, ANN)
    store.save(resigned)
    expected["mcts", 2] = [1, 0]
    tallies, num_excluded = read_tallies(tmp_path / "deep" / "table.sqlite3")
    assert num_excluded == 0
    assert {(tally.agents, tally.players): [tally.games, tally.wins] for tally in tallies} == expected
    assert not any(tally.draws for tally in tallies)


def test_tallies_count_draws(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resigned = table_of("me", "maxn", keep=True)
    resign(resigned, ANN)
    store.save(resigned)
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)  # future games may end in a draw
    store.save(finished("me", "maxn"))
    store.save(finished("me", "maxn", "maxn"))
    (two, three), _ = read_tallies(tmp_path / "deep" / "table.sqlite3")
    assert two == Tally("maxn", 2, games=2, wins=0, draws=1)
    assert three == Tally("maxn", 3, games=1, wins=0, draws=1)
    assert (two.share, three.share) == (0.25, 0.5)


def test_a_resigned_user_has_lost_a_game_that_ends_in_a_draw(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of("me", "open", "maxn", keep=True)
    table.sit(BOB, 1, "Bob", True)
    resign(table, ANN)
    resign(table, BOB)
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)
    store.save(table)
    assert results(tmp_path / "deep" / "table.sqlite3") == ["lost"]


def test_a_resigned_game_of_two_is_stored_with_its_record(store: Store, tmp_path: Path) -> None:
    table = table_of("me", "maxn", keep=True)
    play_on(table, 60, np.random.default_rng(0))
    resign(table, ANN)
    store.save(table)
    with closing(sqlite3.connect(tmp_path / "deep" / "table.sqlite3")) as database:
        ((result, record),) = database.execute("SELECT result, record FROM games").fetchall()
    assert (result, record.splitlines()[-1]) == ("lost", "result: yellow resigned; blue wins")


def results(path: Path) -> list[str]:
    """Return the results of the stored games, oldest first."""
    with closing(sqlite3.connect(path)) as database:
        return [result for (result,) in database.execute("SELECT result FROM games ORDER BY id")]


def test_only_games_to_which_all_users_agreed_are_stored(store: Store, tmp_path: Path) -> None:
    store.save(finished("me", "maxn", keep=False))
    store.save(finished("maxn", "random"))
    store.save(finished("me", "me"))  # no agent
    shared = table_of("me", "open", "maxn", keep=True)
    shared.sit(BOB, 1, "Bob", False)
    play_on(shared, 100, np.random.default_rng(0))
    store.save(shared)
    shown = table_of_record(record_of(finished("me", "maxn")))
    store.save(shown)
    assert read_tallies(tmp_path / "deep" / "table.sqlite3") == ([], 0)


def test_games_with_help_are_not_in_the_tallies(store: Store, tmp_path: Path) -> None:
    table = table_of("me", "maxn", keep=True)
    play_on(table, 6, np.random.default_rng(0))
    table.undo(ANN)
    play_on(table, 100, np.random.default_rng(1))
    store.save(table)
    shared = table_of("me", "open", "maxn", keep=True)
    shared.sit(BOB, 1, "Bob", True)
    play_on(shared, 100, np.random.default_rng(2))
    store.save(shared)
    assert read_tallies(tmp_path / "deep" / "table.sqlite3") == ([], 2)


def test_a_file_is_locked_by_one_server(store: Store, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="another server"):
        Store(tmp_path / "deep" / "table.sqlite3")
    store.close()
    Store(tmp_path / "deep" / "table.sqlite3").close()


def test_files_that_are_no_database_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be read as one" * 20, encoding="utf-8")
    with pytest.raises(OSError, match=r"notes\.txt"):
        Store(path)
    assert path.read_text(encoding="utf-8").startswith("not a database")


@pytest.mark.parametrize("version", [1, 2, 99])
def test_files_of_other_versions_are_refused_and_not_changed(tmp_path: Path, version: int) -> None:
    path = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"CREATE TABLE games (mine TEXT); PRAGMA user_version = {version};")
    for read in (Store, read_tallies):
        with pytest.raises(OSError, match=r"other\.sqlite3: of another version of ninetka; name another file"):
            read(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (version,)
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("games",)]
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_tallies_are_shown_as_in_the_paper() -> None:
    table = tallies_table([Tally("maxn", 2, 40, 18), Tally("maxn", 4, 40, 10), Tally("net", 3, 5, 1, 2)])
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["maxn", "net", "expected share"]
    assert cells[1] == ["18 / 0 / 40  (45.0 %)", "", "50.0 %"]
    assert cells[2] == ["", "1 / 2 / 5  (40.0 %)", "33.3 %"]
    assert cells[3] == ["10 / 0 / 40  (25.0 %)", "", "25.0 %"]


def test_the_command_prints_the_table(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.sqlite3"
    store.save(finished("me", "maxn"))
    result = CliRunner().invoke(app, ["stats", "--data", str(path)])
    assert (result.exit_code, "maxn" in result.output, "/ 1" in result.output) == (0, True, True)
    empty = CliRunner().invoke(app, ["stats", "--data", str(tmp_path / "no")])
    assert (empty.exit_code, "no finished games yet" in empty.output) == (0, True)
    path.with_name("broken").write_text("no database, and long enough to be read as one" * 20, encoding="utf-8")
    broken = CliRunner().invoke(app, ["stats", "--data", str(path.with_name("broken"))])
    assert (broken.exit_code, "broken" in broken.output) == (2, True)


def test_tallies_are_separate_for_each_game(store: Store, tmp_path: Path) -> None:
    for game, options in (("go", {"size": 5}), ("kropki", {"width": 6, "height": 6}), ("ninetka", {})):
        table = table_of("me", "random", keep=True, game=game, options=options)
        play_on(table, 100, np.random.default_rng(0))
        if table.is_settling:
            set_proposal(table, table.adapter.propose_score(table.game))
            accept(table, ANN)
        assert table.is_over
        store.save(table)
    tallies, num_excluded = read_tallies(tmp_path / "deep" / "table.sqlite3")
    assert [(tally.game, tally.agents, tally.games) for tally in tallies] == [
        ("go", "random", 1), ("kropki", "random", 1), ("ninetka", "random", 1)
    ]  # fmt: skip
    assert num_excluded == 0
    assert [len(tallies_table(tallies, game).columns) for game in ("go", "kropki", "ninetka")] == [2, 2, 4]


def test_an_address_that_cannot_be_used_is_explained(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        cases = (
            ("127.0.0.1", taken, "another program uses this port"),
            ("no.invalid", 0, "--host no.invalid: expected"),
        )
        for host, port, message in cases:
            files = ["--data", str(tmp_path / "table"), "--no-browser"]
            done = CliRunner().invoke(app, ["play", "--host", host, "--port", str(port), *files])
            assert done.exit_code == 2, done.output
            assert f"error: cannot listen on {host}, port {port} (" in done.stderr
            assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
