"""What outlives the server: tables to the last move, and the games that people let it keep."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tables import ANN, BOB, play_on, table_of
from typer.testing import CliRunner

from ninetka_env.core.outcome import DRAWN
from ninetka_env.games.ninetka.game import Game
from ninetka_train.cli import app
from ninetka_web.report import tallies_table
from ninetka_web.setup import kind_of_state
from ninetka_web.store import Store, Tally, read_tallies
from ninetka_web.tables import Table


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "deep" / "table.sqlite3")) as store:
        yield store


def finished(*seats: str, seed: int = 0, keep: bool = True, **options: object) -> Table:
    table = table_of(*seats, keep=keep, **options)
    play_on(table, 100, np.random.default_rng(seed))
    return table


def test_tables_come_back_as_they_were(store: Store) -> None:
    tables = [table_of("me", "maxn"), table_of("open", "open", "random")]
    for table in tables:
        store.save(table)
    play_on(tables[0], 5, np.random.default_rng(0))
    store.save(tables[0])
    assert {t.id: t.to_json() for t in map(Table.from_json, store.states())} == {t.id: t.to_json() for t in tables}
    store.remove(tables[0].id)
    assert store.load(tables[0].id) is None


def test_tallies_count_wins_of_people(store: Store, tmp_path: Path) -> None:
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
    given_up = table_of("me", "mcts", keep=True)
    given_up.resign(ANN)
    store.save(given_up)
    expected["mcts", 2] = [1, 0]
    tallies, left_out = read_tallies(tmp_path / "deep" / "table.sqlite3")
    assert left_out == 0
    assert {(tally.agents, tally.players): [tally.games, tally.wins] for tally in tallies} == expected
    assert not any(tally.draws for tally in tallies)


def test_tallies_count_draws(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = table_of("me", "maxn", keep=True)
    given_up.resign(ANN)
    store.save(given_up)
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)  # as games yet to come can end
    store.save(finished("me", "maxn"))
    store.save(finished("me", "maxn", "maxn"))
    (two, three), _ = read_tallies(tmp_path / "deep" / "table.sqlite3")
    assert two == Tally("maxn", 2, games=2, wins=0, draws=1)
    assert three == Tally("maxn", 3, games=1, wins=0, draws=1)
    assert (two.share, three.share) == (0.25, 0.5)


def test_who_gave_up_has_lost_a_game_that_others_draw(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of("me", "open", "maxn", keep=True)
    table.sit(BOB, 1, "Bob", True)
    table.resign(ANN)
    table.resign(BOB)
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)
    store.save(table)
    assert results(tmp_path / "deep" / "table.sqlite3") == ["lost"]


def test_a_given_up_game_of_two_is_kept_with_its_record(store: Store, tmp_path: Path) -> None:
    table = table_of("me", "maxn", keep=True)
    play_on(table, 60, np.random.default_rng(0))
    table.resign(ANN)
    store.save(table)
    with closing(sqlite3.connect(tmp_path / "deep" / "table.sqlite3")) as database:
        ((result, record),) = database.execute("SELECT result, record FROM games").fetchall()
    assert (result, record.splitlines()[-1]) == ("lost", "result: yellow resigned; blue wins")


def results(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [result for (result,) in database.execute("SELECT result FROM games ORDER BY id")]


def test_only_what_everybody_agreed_to_is_kept(store: Store, tmp_path: Path) -> None:
    store.save(finished("me", "maxn", keep=False))
    store.save(finished("maxn", "random"))
    store.save(finished("me", "me"))  # no agent
    shared = table_of("me", "open", "maxn", keep=True)
    shared.sit(BOB, 1, "Bob", False)
    play_on(shared, 100, np.random.default_rng(0))
    store.save(shared)
    shown = Table.of_record(finished("me", "maxn").record())
    store.save(shown)
    assert read_tallies(tmp_path / "deep" / "table.sqlite3") == ([], 0)


def test_helped_games_are_left_out_of_the_tallies(store: Store, tmp_path: Path) -> None:
    table = table_of("me", "maxn", keep=True)
    play_on(table, 6, np.random.default_rng(0))
    table.undo(ANN)
    play_on(table, 100, np.random.default_rng(1))
    store.save(table)
    both = table_of("me", "open", "maxn", keep=True)
    both.sit(BOB, 1, "Bob", True)
    play_on(both, 100, np.random.default_rng(2))
    store.save(both)
    assert read_tallies(tmp_path / "deep" / "table.sqlite3") == ([], 2)


def test_one_file_serves_one_server(store: Store, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="another server"):
        Store(tmp_path / "deep" / "table.sqlite3")
    store.close()
    Store(tmp_path / "deep" / "table.sqlite3").close()


def test_other_files_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be read as one" * 20, encoding="utf-8")
    with pytest.raises(OSError, match=r"notes\.txt"):
        Store(path)
    assert path.read_text(encoding="utf-8").startswith("not a database")
    foreign = tmp_path / "other.sqlite3"
    database = sqlite3.connect(foreign)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(OSError, match="another version"):
        Store(foreign)
    with pytest.raises(OSError, match="another version"):
        read_tallies(foreign)


VERSION_1 = """
CREATE TABLE tables (id TEXT PRIMARY KEY, touched REAL NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE games (
    id INTEGER PRIMARY KEY, table_id TEXT NOT NULL, round INTEGER NOT NULL,
    ended TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, players INTEGER NOT NULL, people INTEGER NOT NULL,
    agents TEXT NOT NULL, won INTEGER NOT NULL, helped INTEGER NOT NULL, record TEXT NOT NULL, UNIQUE (table_id, round)
);
PRAGMA user_version = 1;
"""
OLD_GAMES = [
    (1, "a" * 16, 0, "2024-05-06 07:08:09", 2, 1, "maxn", 1, 0, "9tka record, format 1\n..."),
    (3, "a" * 16, 1, "2024-05-06 07:18:09", 2, 1, "maxn", 0, 0, "9tka record, format 1\n..."),
    (4, "b" * 16, 0, "2024-05-07 01:02:03", 4, 1, "maxn + mcts:simulations=100", 0, 0, ""),
    (9, "c" * 16, 5, "2024-05-08 01:02:03", 3, 2, "random", 1, 0, "9tka record, format 1\n..."),
    (12, "d" * 16, 0, "2024-05-09 01:02:03", 2, 1, "maxn", 1, 1, "9tka record, format 1\n..."),
]
OLD_TALLIES = [Tally("maxn", 2, games=2, wins=1), Tally("maxn + mcts:simulations=100", 4, games=1, wins=0)], 2


def old_file(path: Path) -> list[Table]:
    """Write a file of version 1, and return the tables that are in it."""
    tables = [table_of("me", "maxn", keep=True), table_of("me", "open", options={"neutral_placement": "random"})]
    play_on(tables[1], 1, np.random.default_rng(0))
    tables[0].resign(ANN)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(VERSION_1)
        for touched, table in enumerate(tables):
            state = {key: value for key, value in json.loads(table.to_json()).items() if key != "event"}
            database.execute("INSERT INTO tables VALUES (?, ?, ?)", (table.id, touched, json.dumps(state)))
        database.executemany(f"INSERT INTO games VALUES ({', '.join('?' * 10)})", OLD_GAMES)
        database.commit()
    return tables


def test_a_file_of_version_1_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "table.sqlite3"
    tables = old_file(path)
    with closing(Store(path)) as store:
        assert [Table.from_json(state).to_json() for state in store.states()] == [table.to_json() for table in tables]
        store.save(finished("me", "random"))
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (3,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = database.execute("SELECT * FROM games ORDER BY id").fetchall()
        columns = [column for _, column, *_ in database.execute("PRAGMA table_info(games)")]
        assert [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")] == [
            "tables",
            "games",
        ]
        with pytest.raises(sqlite3.IntegrityError):  # a game still counts once
            database.execute(
                "INSERT INTO games SELECT 99, table_id, round, 0, 2, 1, '', '', 0, '', '' FROM games LIMIT 1"
            )
    assert columns[7] == "result"
    assert rows[:-1] == [(*row[:7], "won" if row[7] else "lost", *row[8:], "ninetka") for row in OLD_GAMES]
    assert rows[-1][0] == 13
    Store(path).close()  # once is enough
    assert read_tallies(path)[0][:2] == OLD_TALLIES[0]


def test_tallies_of_a_file_of_version_1_are_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "table.sqlite3"
    old_file(path)
    before = path.read_bytes()
    assert read_tallies(path) == OLD_TALLIES
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_brought_up_to_date_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.sqlite3"
    old_file(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE old_games (mine TEXT)")  # in the way
    with pytest.raises(OSError, match=r"table\.sqlite3.*old_games"):
        Store(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert database.execute("SELECT * FROM games ORDER BY id").fetchall() == OLD_GAMES


def test_the_table_counts_as_the_paper_does() -> None:
    table = tallies_table([Tally("maxn", 2, 40, 18), Tally("maxn", 4, 40, 10), Tally("net", 3, 5, 1, 2)])
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["maxn", "net", "even share"]
    assert cells[1] == ["18 / 0 / 40  (45.0 %)", "", "50.0 %"]
    assert cells[2] == ["", "1 / 2 / 5  (40.0 %)", "33.3 %"]
    assert cells[3] == ["10 / 0 / 40  (25.0 %)", "", "25.0 %"]


def test_the_command_prints_the_table(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.sqlite3"
    store.save(finished("me", "maxn"))
    told = CliRunner().invoke(app, ["table", "--data", str(path)])
    assert (told.exit_code, "maxn" in told.output, "/ 1" in told.output) == (0, True, True)
    empty = CliRunner().invoke(app, ["table", "--data", str(tmp_path / "no")])
    assert (empty.exit_code, "no finished games yet" in empty.output) == (0, True)
    path.with_name("broken").write_text("no database, and long enough to be read as one" * 20, encoding="utf-8")
    broken = CliRunner().invoke(app, ["table", "--data", str(path.with_name("broken"))])
    assert (broken.exit_code, "broken" in broken.output) == (2, True)


def file_of_version_2(path: Path) -> dict[str, Any]:
    """Write a file as the table wrote it when it knew 9tka only, and return what it showed of its tables."""
    told = json.loads((Path(__file__).parent / "table_version_2.json").read_text(encoding="utf-8"))
    with closing(sqlite3.connect(path)) as database:
        database.executescript("\n".join([*told["sql"], "PRAGMA user_version = 2;"]))
    tables: dict[str, Any] = told["tables"]
    return tables


def test_tables_of_version_2_go_on(tmp_path: Path) -> None:
    path = tmp_path / "table.sqlite3"
    shown = file_of_version_2(path)
    before, left_out = read_tallies(path)
    with closing(Store(path)) as store:
        tables = {table.id: table for table in map(Table.from_json, store.states())}
        assert tables.keys() == shown.keys()
        for name, table in tables.items():
            told = shown[name]
            who = [table.who(seat) for seat in range(len(table.seats))]
            assert (table.game.board.ravel().tolist(), table.actions, who) == (
                told["board"],
                told["actions"],
                told["who"],
            )
            assert (table.is_over, table.winner, table.seats_of(ANN)) == (told["over"], told["winner"], told["mine"])
            assert kind_of_state(table.to_json()) == "ninetka"
            play_on(table, 100, np.random.default_rng(0))
            store.save(table)
            assert store.load(name).to_json() == table.to_json()
    assert [(tally.agents, tally.game) for tally in before] == [("maxn", "ninetka"), ("net", "ninetka")]
    assert (read_tallies(path), left_out) == ((before, left_out), 0)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (3,)
        assert {game for (game,) in database.execute("SELECT game FROM games")} == {"ninetka"}


def test_each_game_is_counted_by_itself(store: Store, tmp_path: Path) -> None:
    for game, options in (("go", {"size": 5}), ("kropki", {"width": 6, "height": 6}), ("ninetka", {})):
        table = table_of("me", "random", keep=True, game=game, options=options)
        play_on(table, 100, np.random.default_rng(0))
        if table.is_settling:
            table.propose(table.adapter.settle(table.game))
            table.accept(ANN)
        assert table.is_over
        store.save(table)
    tallies, left_out = read_tallies(tmp_path / "deep" / "table.sqlite3")
    assert [(tally.game, tally.agents, tally.games) for tally in tallies] == [
        ("go", "random", 1), ("kropki", "random", 1), ("ninetka", "random", 1)
    ]  # fmt: skip
    assert left_out == 0
    assert [len(tallies_table(tallies, game).columns) for game in ("go", "kropki", "ninetka")] == [2, 2, 4]
