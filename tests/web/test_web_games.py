"""The adapters of the games: cells, click targets, endings, game records, and the choices of the form."""

from __future__ import annotations

import io
import json
import random
from copy import deepcopy

import numpy as np
import pytest

pytest.importorskip("fastapi")

from go.reference import ReferenceGame as ReferenceGo
from kropki.reference import ReferenceGame as ReferenceKropki
from test_tables import ANN, BOB
from web_helpers import action_of

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import format_record
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import known_games, load_variant
from ninetka_env.core.sgf import read_sgf
from ninetka_env.games.go.game import Game as Go
from ninetka_env.games.kropki.describe import find_enclosures
from ninetka_env.games.kropki.game import Game as Kropki
from ninetka_web.games import adapter
from ninetka_web.games.adapter import adapter_for_text, adapter_of, compile_key_of, web_games
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create, read_message
from ninetka_web.tables.endings import accept, play_on, resign, set_proposal
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.records import record_of, sgf_of, table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import view_of
from ninetka_web.thinking.agent_threads import choose_action

GAMES = {"ninetka": {}, "go": {"size": 5}, "kropki": {"width": 6, "height": 6}}


def table_of(game: str, *seats: str, **options: object) -> Table:
    seats = seats or ("me", "me")
    return create_table(Create(type="create", game=game, seats=list(seats), options={**GAMES[game], **options}), ANN)


def play(table: Table, *names: str) -> None:
    for name in names:
        seat = table.seats[table.game.to_move]
        table.play(seat.user, len(table.actions), table.game.action_index(name))


def play_randomly(table: Table, seed: int, plies: int = 1000) -> None:
    """Play random clicks, or other legal actions where no cell can be clicked."""
    rng = random.Random(seed)
    for _ in range(plies):
        if not table.is_running:
            return
        hits = [action_of(hit) for hit in view_of(table)["clickable"]]
        table.play(ANN, len(table.actions), rng.choice(hits or table.game.legal_actions().tolist()))


def cells_of(table: Table) -> list[int]:
    """Return the cells after the last move as a browser computes them: it applies each move's changes to the start."""
    cells = list(table.history.start_json["cells"])
    for move in table.history.moves:
        for cell, code in move["cells"]:
            cells[cell] = code
    return cells


def test_the_web_app_has_adapters_for_its_games() -> None:
    assert set(web_games()) == set(GAMES) <= set(known_games())


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("seed", range(3))
def test_changes_add_up_to_the_position(game: str, seed: int) -> None:
    table = table_of(game)
    play_randomly(table, seed)
    assert cells_of(table) == table.adapter.board.cells(table.game).tolist()
    assert len(table.history.moves) == len(table.actions)


@pytest.mark.parametrize("game", GAMES)
def test_clicks_and_buttons_are_the_legal_actions(game: str) -> None:
    table, rng = table_of(game), random.Random(5)
    while table.is_running:
        view = view_of(table)
        offered = {action_of(hit) for hit in view["clickable"]} | {button["action"] for button in view["buttons"]}
        assert offered == set(table.game.legal_actions().tolist())
        table.play(ANN, len(table.actions), rng.choice(sorted(offered)))
    assert view_of(table)["clickable"] == view_of(table)["buttons"] == []


@pytest.mark.parametrize("game", GAMES)
def test_tables_of_all_games_are_restored_from_their_journal(game: str) -> None:
    table = table_of(game)
    for seed in range(4):
        play_randomly(table, seed, 11)
        restored = load_table(dump_table(table))
        assert (view_of(restored), dump_table(restored)) == (view_of(table), dump_table(table))
        assert restored.history.moves == table.history.moves


@pytest.mark.parametrize("game", GAMES)
def test_positions_round_trip_as_text(game: str) -> None:
    table = table_of(game)
    play_randomly(table, 1, 9)
    text = str(table.history.position(7))
    assert adapter_for_text(text).name == game
    assert adapter_for_text(text).compile_key_of_text(text) == table.setup.compile_key
    copy = create_table(Create(type="create", game=game, seats=["me", "me"], position=text), ANN)
    assert (copy.game, copy.setup.compile_key) == (table.history.position(7), table.setup.compile_key)
    restored = load_table(dump_table(copy))
    assert restored.game == copy.game


@pytest.mark.parametrize("game", GAMES)
def test_game_records_round_trip_in_all_formats(game: str) -> None:
    table = table_of(game)
    play_randomly(table, 2)
    if table.is_settling:
        set_proposal(table, table.adapter.propose_score(table.game))
        accept(table, ANN)
    texts = [format_record(record_of(table))] + ([sgf_of(table)] if game != "ninetka" else [])
    for text in texts:
        assert adapter_for_text(text).compile_key_of_text(text) == table.setup.compile_key
        records = list(read_sgf(text.encode()) if text.startswith("(") else read_records(io.StringIO(text)))
        shown = table_of_record(*records)
        assert (shown.actions, shown.setup.compile_key) == (table.actions, table.setup.compile_key)
        assert cells_of(shown) == cells_of(table)


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("go", {"size": 19}), ("go", {"ko": "positional"}), ("go", {"handicap": 4, "size": 9}), ("go", {"komi": -3.5}),
        ("kropki", {"width": 39, "height": 32}), ("kropki", {"start": "cross", "territory": "immediate"}),
        ("ninetka", {"neutral_placement": "random", "turn_order": "continue"}),
    ],
)  # fmt: skip
def test_a_compile_key_serves_all_games_of_a_dtype(game: str, options: dict[str, object]) -> None:
    variant = adapter_of(game).offer.variant(options, 2)
    assert load_variant(compile_key_of(variant)).dtype == variant.dtype
    assert load_variant(adapter_of(game).compile_key(options)).dtype == variant.dtype


@pytest.mark.parametrize(
    ("game", "options", "reason"),
    [
        ("go", {"size": 3}, "not offered"), ("go", {"komi": 99}, "not offered"), ("go", {"komi": 0.3}, "multiple"),
        ("go", {"planes": "alphazero"}, "unknown option"), ("go", {"allow_resign": True}, "unknown option"),
        ("go", {"handicap": 2, "size": 13}, "handicap"), ("go", {"ko": "none"}, "not offered"),
        ("kropki", {"width": 40}, "not offered"), ("kropki", {"width": 6.5}, "integer"),
        ("kropki", {"width": True}, "not offered"), ("ninetka", {"auto_pass": False}, "unknown option"),
        ("chess", {}, "unknown game"),
    ],
)  # fmt: skip
def test_options_that_the_form_does_not_offer_are_refused(game: str, options: dict[str, object], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        read_message(json.dumps({"type": "create", "game": game, "seats": ["me", "me"], "options": options}))


@pytest.mark.parametrize("seats", [["me"] * 3, ["me", "maxn"], ["me", "exact"], ["me", "gtp"]])
def test_seats_that_the_game_does_not_offer_are_refused(seats: list[str]) -> None:
    with pytest.raises(RefusedError):
        read_message(json.dumps({"type": "create", "game": "kropki", "seats": seats}))


# Agents


@pytest.mark.parametrize("game", GAMES)
def test_every_agent_of_the_form_plays(game: str) -> None:
    variant = load_variant(game)
    start = variant.game_class.start(variant)
    for agent in adapter_of(game).agents():
        assert (
            (start.legal_mask()[choose_action(agent.name if agent.name != "mcts" else "mcts:simulations=9", start)])
            == 1
        )


def test_browsers_cannot_change_the_search_of_other_games() -> None:
    assert adapter_of("go").offer.spec("mcts:simulations=7") == "mcts:simulations=7,rave,playouts=heavy,threads=1"
    assert adapter_of("kropki").offer.spec("mcts") == "mcts:simulations=400,rave,threads=1"
    assert adapter_of("ninetka").offer.spec("mcts") == "mcts:threads=1"
    for text in ("mcts:simulations=7,rave", "mcts:exact=9", "net:path=x", "mcts:simulations=20001", "exact", "gtp:x"):
        with pytest.raises(ValueError, match=r"unknown agent|expected"):
            adapter_of("kropki").offer.spec(text)


def test_a_game_with_a_shipped_network_offers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "has_torch", lambda: True)
    monkeypatch.setattr(adapter, "has_network", lambda game: game != "go")
    assert [agent.name for agent in adapter_of("go").agents()] == ["random", "mcts"]
    monkeypatch.setattr(adapter, "has_network", lambda game: True)
    assert [agent.name for agent in adapter_of("go").agents()] == ["random", "mcts", "net"]
    assert adapter_of("go").engines() == ["mcts", "net"]
    assert "net" in [agent["name"] for agent in adapter_of("kropki").as_json()["agents"]]
    monkeypatch.setattr(adapter, "has_torch", lambda: False)
    assert "net" not in [agent.name for agent in adapter_of("ninetka").agents()]


# Go


@pytest.mark.parametrize("seed", range(4))
def test_states_of_go_agree_with_the_slow_reference(seed: int) -> None:
    table, reference = table_of("go"), ReferenceGo(5)
    rng = random.Random(seed)
    while table.is_running:
        points = [action_of(hit) for hit in view_of(table)["clickable"]]
        assert [*points, 25] == reference.legal_actions()
        kos = [point for point, code in enumerate(cells_of(table)) if code == 3]
        assert kos == sorted(reference.ko_points())
        action = rng.choice(points or [25])
        table.play(ANN, len(table.actions), action)
        reference.play(action)
        assert [code % 3 for code in cells_of(table)] == np.ravel(reference.board).tolist()
    assert table.game.captured().tolist() == table.history.moves[-1]["scores"]


def dead_stone_game(*seats: str) -> Table:
    """Return a table of 5 x 5 Go after two passes. Black has a wall on file C; the white stone at A1 is dead."""
    table = table_of("go", *seats, komi=0.5)
    table.sit(BOB, 1, "Bob", False) if "open" in seats else None
    play(table, "C1", "D1", "C2", "D2", "C3", "D3", "C4", "D4", "C5", "D5", "B3", "A1", "pass", "pass")
    return table


def test_users_agree_on_dead_stones() -> None:
    table = dead_stone_game("me", "open")
    assert (table.game.is_over, table.is_settling, table.is_over) == (True, True, False)
    assert table.agent_to_move == ""
    with pytest.raises(RefusedError, match="nothing to agree"):
        accept(table, ANN)  # there is no proposal yet
    proposal = table.adapter.propose_score(table.game)
    assert proposal["dead"] == [0]
    assert (proposal["scores"], proposal["result"], proposal["winner"]) == ([15.0, 10.5], "B+4.5", 0)
    set_proposal(table, proposal)
    for request in (lambda: table.play(ANN, 14, 3), lambda: resign(table, ANN), lambda: accept(table, "c" * 32)):
        with pytest.raises(RefusedError, match=r"counted|only players"):
            request()
    accept(table, ANN)
    assert not table.is_over
    restored = load_table(dump_table(table))
    assert (restored.proposal, restored.accepted, restored.is_settling) == (proposal, [ANN], True)
    accept(table, BOB)
    assert (table.is_over, table.winner, view_of(table)["outcome"]) == (True, 0, proposal["text"])
    assert "RE[B+4.5]" in sgf_of(table)
    text = format_record(record_of(table))
    assert text.endswith("result: Black wins, as stated (B+4.5); counted: Black 6, White 11.5\n")
    assert "stated:" not in text
    restored = load_table(dump_table(table))
    assert (restored.is_over, restored.winner) == (True, 0)
    assert view_of(table_of_record(*read_records(io.StringIO(text))))["stated_result"] == "B+4.5"


def test_a_count_that_all_agree_to_is_a_result_by_the_rules() -> None:
    table = table_of("go", "me", "open")
    table.sit(BOB, 1, "Bob", False)
    play(table, "pass", "pass")
    set_proposal(table, table.adapter.propose_score(table.game))
    accept(table, ANN)
    accept(table, BOB)
    assert (table.is_over, record_of(table).stated) == (True, "")


FINISHED_MOVES = ";B[ea];W[dd];B[eb];W[fb];B[ec];W[fc];B[ed];W[fd];B[ee];W[fe];B[];W[]"


@pytest.mark.parametrize(
    ("stated", "winner", "outcome"),
    [
        ("B+2.5", 0, "Counted as the board stands: Black 5, White 11.5 with komi: White wins by 6.5."),
        ("W+6.5", 1, "Black 5, White 11.5 with komi: White wins by 6.5."),
        ("Jigo", -1, "Counted as the board stands: Black 5, White 11.5 with komi: White wins by 6.5."),
        ("Void", None, "Counted as the board stands: Black 5, White 11.5 with komi: White wins by 6.5."),
        ("adjourned", 1, "Counted as the board stands: Black 5, White 11.5 with komi: White wins by 6.5."),
    ],
)
def test_an_uploaded_game_is_won_as_its_file_states(stated: str, winner: int | None, outcome: str) -> None:
    (record,) = read_sgf(f"(;GM[1]SZ[9]KM[6.5]RE[{stated}]{FINISHED_MOVES})".encode())
    table = table_of_record(record)
    table = load_table(dump_table(table))
    view = view_of(table)
    assert (view["over"], view["winner"], view["outcome"]) == (True, winner, outcome)
    assert view["stated_result"] == record.stated == ("" if stated == "W+6.5" else stated)
    assert f"RE[{stated}]" in sgf_of(table)
    round_trip = record_of(table)
    assert (round_trip.winner, round_trip.stated, round_trip.counted) == (record.winner, record.stated, record.counted)


def test_an_uploaded_game_that_is_not_over_has_no_winner_yet() -> None:
    (record,) = read_sgf(b"(;GM[1]SZ[9]RE[B+2.5];B[ee])")
    table = table_of_record(record)
    assert (record.winner, table.is_over, table.winner, view_of(table)["stated_result"]) == (
        0,
        False,
        UNFINISHED,
        "B+2.5",
    )
    assert "RE[B+2.5]" in sgf_of(table)


def test_a_user_who_does_not_agree_continues_the_game() -> None:
    table = dead_stone_game("me", "open")
    set_proposal(table, table.adapter.propose_score(table.game))
    accept(table, ANN)
    play_on(table, BOB)
    assert (len(table.actions), table.is_running, table.proposal, table.accepted) == (12, True, None, [])
    play(table, "A2", "pass", "B1")  # captures the stone at A1
    assert table.history.moves[-1]["move_text"] == "plays B1, taking 1 stone"
    with pytest.raises(RefusedError, match="nothing to agree"):
        play_on(table, ANN)


def test_dead_stones_are_found_near_the_limit_of_plies() -> None:
    before = dead_stone_game("me", "me").history.position(12)
    late = Go.from_text(str(before).split("\n")[0].replace("ply=12", "ply=46"))
    for _ in range(2):
        late.play(25)
    proposal = adapter_of("go").propose_score(late)
    assert (proposal["dead"], proposal["result"]) == ([0], "B+4.5")


def test_games_of_agents_need_no_agreement_on_the_score() -> None:
    table = table_of("go", "random", "random")
    for _ in range(2):
        table.play_agent(25)
    assert (table.is_over, table.is_settling) == (True, False)


def test_a_game_record_of_another_program_is_shown() -> None:
    # It has setup stones, a skipped turn, and a resignation.
    text = "(;GM[1]SZ[9]AB[cc]AW[gg]KM[6.5]PB[Ann]PW[mcts]RE[W+R];B[ee];B[dd];W[])"
    with pytest.warns(UserWarning, match="the turn before move 2 is left out"):
        (record,) = read_sgf(text.encode())
    table = table_of_record(record)
    assert (table.handed, table.event, table.winner) == ([1], ("resigned", 0), 1)
    assert [code for code in cells_of(table) if code] == [2, 1, 1, 1]
    assert len(list(table.history.positions())) == 4
    assert [seat.agent for seat in table.seats] == ["", ""]
    restored = load_table(dump_table(table))
    assert (restored.game, restored.history.moves) == (table.game, table.history.moves)
    assert "AB[cc]" in sgf_of(table)
    unfinished = table_of_record(*read_sgf(b"(;GM[1]SZ[5];B[aa])"))
    assert (unfinished.is_over, unfinished.winner, view_of(unfinished)["over"]) == (False, -2, False)
    assert view_of(unfinished)["clickable"] == []


def test_the_score_estimate_of_go_is_right_on_a_clear_board() -> None:
    table = dead_stone_game("me", "me")
    insight = table.adapter.study.insight(table.history.position(12))
    owned = np.array(insight["ownership"]).reshape(5, 5)
    assert (owned[:, :3] > 0.5).all()
    assert (owned[:, 3:] < -0.5).all()
    assert insight["text"].startswith("Black is about 4.5 ahead")


# Kropki


def enclosed(game: ReferenceKropki, seat: int) -> set[int]:
    """Return the nodes in the cores of a seat."""
    return {row * game.width + column for core in game.cores(seat) for row, column in core.nodes}


@pytest.mark.parametrize("territory", ["declared", "immediate"])
@pytest.mark.parametrize("seed", range(3))
def test_previews_show_what_a_point_would_enclose(territory: str, seed: int) -> None:
    rng = random.Random(seed)
    game, reference = Kropki.new(7, 6, territory=territory), ReferenceKropki(7, 6, territory)
    while not game.is_over:
        if game.ply % 3 == 2 and not game.drawing:
            expected = {}
            for node in reference.legal_actions():
                after, seat = deepcopy(reference), reference.to_move
                after.play(node)
                if found := enclosed(after, seat) - enclosed(reference, seat):
                    expected[node] = sorted(found)
            assert find_enclosures(game) == expected
        action = rng.choice(game.legal_actions().tolist())
        game.play(action)
        reference.play(action)
    assert find_enclosures(game) == {}


def test_any_node_of_a_core_draws_it() -> None:
    table = table_of("kropki")
    play(table, "B4", "B3", "C4", "F1", "A3", "F2", "D3", "F3", "B2", "F4", "C2")  # a chain around B3 and C3
    assert view_of(table)["prompt"][0].startswith("Click on what you enclose")
    b3, c3 = 19, 20
    drawing = table.game.action_index("*B3")
    assert view_of(table)["clickable"] == [[b3, drawing], [c3, drawing]]
    assert [button["label"] for button in view_of(table)["buttons"]] == ["End the turn"]
    with pytest.raises(RefusedError, match="its point is placed"):
        table.play(ANN, len(table.actions), 0)
    play(table, "*C3")
    move = table.history.moves[-1]
    assert move["move_text"] == "draws round B3 and takes 1 point"
    assert (move["name"], move["to"], move["scores"]) == ("○B3", b3, [1, 0])
    assert (cells_of(table)[b3], cells_of(table)[c3]) == (2 + 4, 4)
    assert table.game.to_move == 1


def test_the_sgf_of_kropki_contains_its_enclosures() -> None:
    table = table_of("kropki")
    play(table, "B4", "B3", "C4", "F1", "A3", "F2", "D3", "F3", "B2", "F4", "C2", "*B3")
    text = sgf_of(table)
    assert "GM[40]" in text
    assert "B[ce.bcccddcebeadbc]" in text
    shown = table_of_record(*read_sgf(text.encode()))
    assert (shown.actions, cells_of(shown)) == (table.actions, cells_of(table))


def test_the_error_for_a_wrong_chain_names_its_move() -> None:
    with pytest.raises(ValueError, match=r"move 1 \(C4\)"):
        list(read_sgf(b"(;GM[40]SZ[6]RU[declared];B[cc.aabbccaa])"))


def test_the_adapters_of_go_and_kropki_are_separate() -> None:
    assert isinstance(table_of("go").game, Go)
    assert adapter_of("go").board.config(table_of("go").game) == {"size": 5, "stars": [12]}
