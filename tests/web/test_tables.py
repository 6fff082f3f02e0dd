"""Tables without a server: moves, requests, refusals, journals, and game records."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from ninetka.reference import ReferenceGame
from web_helpers import action_of

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.endings import resign
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.records import record_of, table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import view_of

ANN, BOB = "a" * 32, "b" * 32


def table_of(*seats: str, user: str = ANN, **options: object) -> Table:
    """Return a table created by a message `create` with these seats and further fields."""
    return create_table(Create(type="create", seats=list(seats), name="Ann", **options), user)


def play_on(table: Table, plies: int, rng: np.random.Generator) -> None:
    """Play random moves for all seats."""
    for _ in range(plies):
        if table.is_over:
            return
        action = int(rng.choice(table.game.legal_actions()))
        seat = table.seats[table.game.to_move]
        if seat.agent:
            table.play_agent(action)
        else:
            table.play(seat.user, len(table.actions), action)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_states_agree_with_the_slow_reference(players: int) -> None:
    rng, table = np.random.default_rng(players), table_of(*["me"] * players)
    reference = ReferenceGame(players)
    cells = table.history.start_json["cells"]
    while not table.is_over:
        view = view_of(table)
        assert (table.winner, view["winner"]) == (UNFINISHED, None)
        assert [action_of(hit) for hit in view["clickable"]] == reference.legal_actions()
        assert (view["to_move"], [code - 1 for code in cells[121:]]) == (reference.to_move, reference.owners())
        hit = view["clickable"][rng.integers(len(view["clickable"]))]
        table.play(ANN, len(table.actions), action_of(hit))
        reference.play(action_of(hit))
        move = table.history.moves[-1]
        landing = hit if isinstance(hit, int) else hit[2]
        assert (move["action"], move["to"], move["passed"]) == (action_of(hit), landing, sorted(reference.passed))
        for cell, code in move["cells"]:  # as a browser does
            cells[cell] = code
        assert [code % 8 for code in cells[:121]] == np.ravel(reference.board).tolist()
    assert table.winner == view_of(table)["winner"] == reference.winner()


def test_a_refused_move_changes_nothing() -> None:
    table = table_of("me", "open")
    table.sit(BOB, 1, "Bob", False)
    before = dump_table(table)
    for user, ply, action, reason in [
        (ANN, 1, 24, "too late"),
        (BOB, 0, 24, "not your seat"),
        ("c" * 32, 0, 24, "not your seat"),
        ("", 0, 24, "not your seat"),
        (ANN, 0, 0, "next to the edge"),
        (ANN, 0, 121, "next to the edge"),
        (ANN, 0, 4_000, "next to the edge"),
    ]:
        with pytest.raises(RefusedError, match=reason):
            table.play(user, ply, action)
        assert dump_table(table) == before


def test_open_seats_belong_to_no_user() -> None:
    table = table_of("open", "maxn")
    with pytest.raises(RefusedError, match="not your seat"):
        table.play("", 0, 24)
    assert table.seats_of("") == []
    table.sit(BOB, 0, "Bob", False)
    with pytest.raises(RefusedError, match="taken"):
        table.sit(ANN, 0, "Ann", False)
    with pytest.raises(RefusedError, match="taken"):
        table.sit(ANN, 1, "Ann", False)
    with pytest.raises(RefusedError, match="taken"):
        table.sit(ANN, 3, "Ann", False)


def test_a_single_user_takes_moves_back_without_asking() -> None:
    table, rng = table_of("me", "random", "random"), np.random.default_rng(0)
    play_on(table, 4, rng)  # seat 0 has played plies 0 and 3
    position = table.history.position(3)
    table.undo(ANN)
    assert (table.actions, table.game) == (table.actions[:3], position)
    assert table.helped
    table.undo(ANN)
    assert table.actions == []
    with pytest.raises(RefusedError, match="no move"):
        table.undo(ANN)


def test_others_are_asked_before_a_move_is_taken_back() -> None:
    table, rng = table_of("me", "open"), np.random.default_rng(0)
    table.sit(BOB, 1, "Bob", False)
    play_on(table, 4, rng)
    table.undo(ANN)
    assert (len(table.actions), view_of(table)["undo"]) == (4, 2)
    with pytest.raises(RefusedError, match="no request to answer"):
        table.answer(ANN, True)
    table.answer(BOB, False)
    assert (len(table.actions), view_of(table)["undo"]) == (4, -1)
    table.undo(ANN)
    play_on(table, 1, rng)  # a move cancels the request
    assert view_of(table)["undo"] == -1
    table.undo(BOB)
    table.answer(ANN, True)
    assert len(table.actions) == 3


def test_an_undo_request_ends_with_the_game() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = table_of("me", "open", "random")
        table.sit(BOB, 1, "Bob", False)
        while not table.is_over:
            if table.agent_to_move:
                table.pending_request.clear()
                table.pending_request.attempts.clear()
                table.undo(ANN)
            play_on(table, 1, rng)
        if table.history.moves[-1]["seat"] == 2:  # the agent made the last move while the request was open
            break
    assert (view_of(table)["request"], view_of(table)["undo"]) == ("", -1)
    with pytest.raises(RefusedError, match="no request to answer"):
        table.answer(BOB, True)
    assert table.is_over


def test_resigning_ends_the_game_or_lets_an_agent_take_over() -> None:
    two_seats = table_of("me", "maxn")
    resign(two_seats, ANN)
    assert (two_seats.is_over, two_seats.winner, view_of(two_seats)["event"]) == (
        True,
        1,
        {"kind": "resigned", "seat": 0},
    )
    with pytest.raises(RefusedError, match="over"):
        two_seats.undo(ANN)
    three_seats = table_of("me", "open", "random")
    three_seats.sit(BOB, 1, "Bob", False)
    resign(three_seats, ANN)
    assert (three_seats.is_over, three_seats.seats[0].agent, three_seats.resigned) == (False, "maxn", [0])
    with pytest.raises(RefusedError, match="not your seat"):
        three_seats.play(ANN, 0, 24)
    with pytest.raises(RefusedError, match="only players"):
        resign(three_seats, ANN)
    resign(three_seats, BOB)
    view = view_of(three_seats)
    assert (view["over"], view["ended"], view["event"], view["winner"]) == (True, True, None, None)
    with pytest.raises(RefusedError, match="finished"):
        record_of(three_seats)


def test_one_user_in_both_seats_resigns_and_there_is_no_winner() -> None:
    table = table_of("me", "me")
    resign(table, ANN)
    assert (table.is_over, table.event, table.winner, table.resigned) == (True, None, UNFINISHED, [0, 1])


def test_a_rematch_starts_without_resignations() -> None:
    table = table_of("me", "maxn")
    resign(table, ANN)
    table.rematch(ANN)
    assert (table.is_over, table.event, table.winner, view_of(table)["winner"]) == (False, None, UNFINISHED, None)


def test_a_drawn_game_is_not_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of("me", "maxn")
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)  # future games may end in a draw
    assert (table.winner, view_of(table)["winner"]) == (UNFINISHED, None)
    play_on(table, 100, np.random.default_rng(0))
    assert (table.winner, view_of(table)["winner"]) == (DRAWN, -1)
    assert format_record(record_of(table)).endswith("; drawn\n")


def test_a_rematch_rotates_seats_and_draws_new_neutral_stones() -> None:
    table, rng = table_of("me", "maxn", "random", options={"neutral_placement": "random"}), np.random.default_rng(0)
    with pytest.raises(RefusedError, match="not over"):
        table.rematch(ANN)
    neutrals = table.setup.drawn
    play_on(table, 100, rng)
    with pytest.raises(RefusedError, match="only players"):
        table.rematch(BOB)
    table.rematch(ANN)
    assert [seat.agent for seat in table.seats] == ["random", "", "maxn"]
    assert (table.actions, table.round, table.seats_of(ANN)) == ([], 1, [1])
    assert table.setup.drawn != neutrals


@pytest.mark.parametrize("neutral_placement", ["players", "random"])
@pytest.mark.parametrize("plies", [0, 7, 30, 60, 100])
def test_a_table_is_restored_from_its_journal(neutral_placement: str, plies: int) -> None:
    table = table_of("me", "open", "maxn", options={"neutral_placement": neutral_placement, "turn_order": "continue"})
    table.sit(BOB, 1, "Bob", True)
    play_on(table, plies, np.random.default_rng(plies))
    restored = load_table(dump_table(table))
    assert (view_of(restored), dump_table(restored)) == (view_of(table), dump_table(table))
    assert restored.seats_of(BOB) == [1]


def test_a_resigned_table_is_restored_from_its_journal() -> None:
    table = table_of("me", "maxn")
    play_on(table, 5, np.random.default_rng(0))
    resign(table, ANN)
    restored = load_table(dump_table(table))
    assert (view_of(restored), dump_table(restored)) == (view_of(table), dump_table(table))
    assert (restored.game, restored.winner, restored.event) == (table.game, 1, Event("resigned", 0))


def test_user_ids_are_not_in_the_state() -> None:
    assert ANN not in str(view_of(table_of("me", "open")))


def test_game_records_round_trip() -> None:
    table = table_of("me", "maxn", "net", options={"neutral_placement": "random"})
    with pytest.raises(RefusedError, match="finished"):
        record_of(table)
    play_on(table, 100, np.random.default_rng(1))
    shown = table_of_record(record_of(table))
    assert (shown.history.moves, shown.winner, shown.is_over) == (table.history.moves, table.winner, True)
    assert [seat.name for seat in shown.seats] == ["Ann", "maxn", "net"]
    assert not shown.agent_to_move
    with pytest.raises(RefusedError, match="only shows"):
        shown.play(ANN, 0, 24)


def test_game_records_that_are_read_can_be_shown() -> None:
    table = table_of("me", "maxn", "net", options={"neutral_placement": "random"})
    play_on(table, 100, np.random.default_rng(1))
    text = format_record(record_of(table))
    assert text.startswith("game record, format 2\ngame: ninetka\nplayers: 3\n")
    (record,) = read_records(io.StringIO(text))
    shown = table_of_record(record)
    assert (shown.history.moves, shown.winner, shown.setup) == (table.history.moves, table.winner, table.setup)


def test_the_record_of_a_resigned_game_round_trips() -> None:
    table = table_of("maxn", "me")
    play_on(table, 60, np.random.default_rng(1))
    resign(table, ANN)
    text = format_record(record_of(table))
    assert text.endswith("result: blue resigned; yellow wins\n")
    shown = table_of_record(*read_records(io.StringIO(text)))
    assert (shown.history.moves, shown.winner, shown.resigned) == (table.history.moves, 0, [1])
    assert view_of(shown)["event"] == {"kind": "resigned", "seat": 1}


def test_a_game_lost_on_time_is_not_shown_as_resigned() -> None:
    table = table_of("maxn", "me", "maxn")
    play_on(table, 60, np.random.default_rng(1))
    record = GameRecord.of(table.actions, table.setup.variant, event=Event("time", 1))
    shown = table_of_record(record)
    assert (shown.is_over, shown.winner, shown.resigned) == (True, record.winner, [])
    assert view_of(shown)["event"] == {"kind": "time", "seat": 1}


def test_records_of_other_games_are_refused() -> None:
    table = table_of("me", "maxn")
    play_on(table, 100, np.random.default_rng(1))
    record = record_of(table)
    other = replace(record.variant.definition, name="other", title="Other").variant()
    with pytest.raises(RefusedError, match="unknown game 'other'"):
        table_of_record(replace(record, variant=other))


def test_a_game_can_start_from_a_position() -> None:
    table = table_of("me", "maxn")
    play_on(table, 50, np.random.default_rng(2))
    copy = table_of("me", "maxn", position=str(table.game))
    assert (copy.game, copy.history.moves) == (table.game, [])
    play_on(copy, 100, np.random.default_rng(3))
    with pytest.raises(RefusedError, match="no record"):
        record_of(copy)
    with pytest.raises(RefusedError, match="cannot be read"):
        table_of("me", "maxn", position="9tka")
    with pytest.raises(RefusedError, match="of 2 players"):
        table_of("me", "maxn", "maxn", position=str(table.game))
    over = Game.from_text(str(copy.game))
    with pytest.raises(RefusedError, match="over"):
        table_of("me", "maxn", position=str(over))


def test_the_analysis_is_refused_while_users_play_each_other() -> None:
    table = table_of("me", "open")
    table.check_analysis(ANN)
    table.seats[1] = Seat(name="Bob", user=BOB)
    for user in (ANN, BOB, "c" * 32):
        with pytest.raises(RefusedError, match="people play"):
            table.check_analysis(user)
    resign(table, ANN)
    assert table.winner == 1
    table.check_analysis(ANN)
    assert not table.history.position(0).is_over  # the analysis ignores the resignation
