"""The GTP engine: every command, special cases of the protocol, and invalid input."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from requirements import needs_posix, network_param
from wire import Wire

from ninetka_agents import make_agent
from ninetka_agents.go.gtp.protocol import MAX_LINE, read_lines
from ninetka_agents.go.gtp.time_control import LAG_S, TimeControl
from ninetka_agents.search.rave import RaveTree
from ninetka_env.games.go.game import Game

SEARCH = "mcts:simulations=200"
NETWORK = "net:simulations=8,playouts=16,threads=1"
"""A network that guides a RAVE tree."""


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture(scope="module")
def searching() -> Wire:
    return Wire(SEARCH)


# The syntax


def test_an_answer_repeats_the_id_and_ends_with_one_empty_line(wire):
    assert wire.send("name") == "= ninetka\n\n"
    assert wire.send("17 name") == "=17 ninetka\n\n"
    assert wire.send("0017 NAME") == "?0017 unknown command\n\n"
    assert wire.send("clear_board") == "=\n\n"
    assert wire.send("5") == "?5 unknown command\n\n"
    assert wire.send("3 play b Z9") == "?3 invalid coordinate\n\n"


def test_control_characters_tabs_comments_and_empty_lines(wire):
    assert wire.send("\x00na\x07me\r\n") == "= ninetka\n\n"
    assert wire.send("\tplay\tb \t d4 # a comment\r\n") == "=\n\n"
    for line in ("", "\n", "\r\n", "  \t ", "# a comment", "\x01\x02", "# interrupt"):
        assert wire.send(line) == ""


def test_colours_and_vertices_in_any_case(wire):
    for line in ("play b a1", "play WHITE B1", "play Black c1", "play w PASS", "play B pAss"):
        wire.ask(line)
    assert wire.board().endswith("/XOX......")
    assert wire.fail("play red d1") == "invalid color"
    for vertex in ("i5", "K1", "a0", "a10", "aa", "5a", "resign", "a\u0661"):
        assert wire.fail(f"play b {vertex}") == "invalid coordinate"


def test_lines_come_in_any_pieces_and_long_ones_are_refused(wire):
    text = b"name\n\xff\xfe version\n" + b"x" * (3 * MAX_LINE) + b"\n7 name"
    for size in (1 << 16, 1000, 7):
        pieces = iter([text[start : start + size] for start in range(0, len(text), size)] + [b""])
        lines = list(read_lines(lambda pieces=pieces: next(pieces)))
        assert [lines[0], lines[3]] == ["name", "7 name"]
        assert len(lines[2]) == MAX_LINE + 1
    assert "a line has at most" in wire.fail("y" * (MAX_LINE + 1))


# Administration, board and moves


def test_administration_commands(wire):
    assert wire.ask("protocol_version") == "2"
    assert wire.ask("version") == "1.2.3 random"
    commands = wire.ask("list_commands").split("\n")
    needed = (
        "protocol_version name version known_command list_commands quit boardsize clear_board komi play genmove "
        "undo fixed_handicap place_free_handicap set_free_handicap time_settings time_left final_score "
        "final_status_list reg_genmove loadsgf showboard gogui-analyze_commands gogui-play_sequence gogui-setup "
        "gogui-setup_player gogui-interrupt"
    )
    assert set(needed.split()) <= set(commands)
    assert commands == sorted(commands)
    assert all(wire.ask(f"known_command {name}") == "true" for name in commands)
    assert wire.ask("known_command lz-analyze") == "false"  # an agent without a tree search has no search to report
    assert wire.fail("lz-analyze b 10") == "unknown command"
    assert wire.ask("known_command make_tea") == "false"
    assert "syntax error" in wire.fail("known_command")
    assert not wire.engine.respond("quit")


def test_errors_and_undo_keep_size_and_komi(wire):
    wire.ask("komi -3.5")
    wire.ask("play b e5")
    for size in ("4", "20", "99999999999999999999", "-9", "x", ""):
        assert wire.send(f"boardsize {size}").startswith("?")
        assert "X" in wire.board()
    assert wire.fail("boardsize 4") == "unacceptable size"
    wire.ask("boardsize 5")
    assert wire.board() == "/".join(["....."] * 5)
    wire.ask("boardsize 9")
    wire.ask("clear_board")
    assert wire.session.game.komi == -3.5
    wire.ask("play b e5")
    wire.ask("komi 6.5")
    assert (wire.session.game.komi, wire.session.game.ply) == (6.5, 1)
    wire.ask("undo")
    assert wire.session.game.komi == 6.5
    for komi in ("7.25", "82", "nan", "1e2", "seven", "inf"):
        wire.fail(f"komi {komi}")
    assert "from -81 to 81" in wire.fail("komi 999")
    assert wire.session.game.komi == 6.5


def test_moves_follow_the_rules_of_the_game(wire):
    for colour, vertex in zip("bwbwbwbw", ["D6", "E6", "C5", "F5", "D4", "E4", "E5", "D5"], strict=True):
        wire.ask(f"play {colour} {vertex}")
    assert wire.fail("play b E5") == "illegal move"  # ko
    assert wire.fail("play b D6") == "illegal move"
    wire.ask("play b A1")
    wire.ask("play w J9")
    wire.ask("play b E5")
    assert "captured 1" in wire.ask("showboard")


def test_two_moves_of_a_colour_in_a_row(wire):
    for point in ("c3", "d4", "e5"):
        wire.ask(f"play w {point}")
    assert (wire.session.game.ply, wire.session.game.to_move) == (3, 0)
    for colour, vertex in zip("bwbwbwbw", ["D6", "E6", "C5", "F5", "D4", "E4", "E5", "D5"], strict=True):
        wire.send(f"play {colour} {vertex}")
    wire.ask("clear_board")
    for colour, vertex in zip("bwbwbwbw", ["D6", "E6", "C5", "F5", "D4", "E4", "E5", "D5"], strict=True):
        wire.ask(f"play {colour} {vertex}")
    assert wire.fail("play b E5") == "illegal move"
    wire.ask("play w J9")  # White again: Black's turn is skipped, and the ko ends
    wire.ask("play b E5")
    assert wire.session.game.ply == 10


@pytest.mark.parametrize("ko", ["simple", "situational"])
def test_play_continues_after_the_end_of_a_game(ko):
    wire = Wire(game=f"go:ko={ko},max_plies=6")
    wire.ask("play b pass")
    wire.ask("play b pass")  # both passes are Black's, so the game is not over
    assert not wire.session.game.is_over
    wire.ask("play w pass")
    assert wire.session.game.is_over
    wire.ask("play b e5")
    for _ in range(20):  # beyond the limit of plies
        wire.ask("play w pass")
        wire.ask("play b pass")
        assert re.fullmatch("[A-HJ][1-9]|pass", wire.ask("genmove w"))
        wire.ask("undo")
    assert wire.session.game.board[4, 4] == 1


def test_undo_goes_back_to_the_start(wire):
    boards = [wire.board()]
    for colour, vertex in zip("bwbwww", ("A1", "A2", "pass", "B1", "J9", "J8"), strict=True):
        wire.ask(f"play {colour} {vertex}")
        boards.append(wire.board())
    wire.ask("genmove b")
    for board in boards[::-1]:
        wire.ask("undo")
        assert wire.board() == board
    assert wire.fail("undo") == "cannot undo"


def test_genmove_plays_for_either_colour_and_reg_genmove_does_not(wire):
    for colour in "bbwwb":
        move = wire.ask(f"genmove {colour}")
        assert wire.session.game.last_action == wire.session.game.action_index(move)
        before = wire.session.game.copy()
        wire.ask(f"reg_genmove {'bw'[colour == 'b']}")
        assert wire.session.game == before


@pytest.mark.filterwarnings("ignore:game 1. the turn before move 3 is left out")
def test_loadsgf(wire, tmp_path):
    file = tmp_path / "game.sgf"
    file.write_text("(;GM[1]FF[4]SZ[9]KM[5.5]RE[B+R];B[ee];W[gc];W[cg](;B[];W[gg])(;B[aa]))", encoding="utf-8")
    wire.ask(f"loadsgf {file}")
    assert (wire.session.game.komi, wire.session.game.ply) == (5.5, 5)
    assert wire.board() == "........./........./......O../........./....X..../........./..O...O../........./........."
    last = wire.session.game
    for _ in range(5):
        wire.ask("undo")
    assert wire.fail("undo") == "cannot undo"
    wire.ask(f"loadsgf {file} 3")
    assert (wire.session.game.ply, wire.session.game.to_move) == (2, 0)
    wire.ask("genmove w")
    wire.ask(f"loadsgf {file} 99")
    assert wire.session.game == last
    file.write_text("(;GM[1]SZ[5]KM[0];B[aa];W[aa])", encoding="utf-8")
    assert wire.fail(f"loadsgf {file}").startswith("cannot load file: game 1: move 2")
    for text in ("", "(;GM[2])", "(;SZ[99])", "nonsense"):
        file.write_text(text, encoding="utf-8")
        assert wire.fail(f"loadsgf {file}").startswith("cannot load file")
    for name in ("/nowhere.sgf", str(tmp_path), "/dev/zero", "x" * 5000, "\x00"):
        assert wire.send(f"loadsgf {name}").startswith("? ")
    assert wire.session.game == last


@needs_posix
def test_the_name_of_a_file_may_be_too_long(wire):
    assert wire.fail(f"loadsgf {5000 * 'x'}") == "cannot load file: File name too long"


# Handicap, time, the end


def test_handicap(wire):
    assert wire.ask("fixed_handicap 2") == "C3 G7"
    assert wire.session.game.to_move == 1
    assert wire.fail("fixed_handicap 2") == "board not empty"
    wire.ask("clear_board")
    assert wire.ask("place_free_handicap 5") == "C3 G7 C7 G3 E5"
    for stones in (2, 3, 4, 5):
        wire.ask("clear_board")
        wire.ask(f"fixed_handicap {stones}")
        assert (wire.session.game.board == Game.new(handicap=stones).board).all()
    wire.ask("clear_board")
    assert wire.ask("fixed_handicap 9") == "C3 G7 C7 G3 C5 G5 E3 E7 E5"
    wire.ask("clear_board")
    for bad in ("0", "1", "10", "x"):
        wire.fail(f"fixed_handicap {bad}")
    wire.ask("set_free_handicap A1 b2 J9")
    assert wire.session.game.board.sum() == 3
    wire.ask("clear_board")
    for bad in ("A1", "A1 A1", "A1 pass", "A1 Z1", ""):
        wire.fail(f"set_free_handicap {bad}")
    assert wire.session.is_empty


def test_time_control_divides_main_time():
    clock = TimeControl()
    assert clock.seconds_for(0, 40) is None
    clock.set(60, 0, 0)
    assert clock.seconds_for(0, 40) == pytest.approx(60 / 40 - LAG_S)
    clock.spend(0, 30)
    assert clock.seconds_for(0, 20) == pytest.approx(30 / 20 - LAG_S)
    assert clock.seconds_for(1, 40) == pytest.approx(60 / 40 - LAG_S)
    clock.spend(0, 100)
    assert clock.seconds_for(0, 20) == 0
    clock.set(10, 20, 5)  # main time, then periods of five moves in 20 seconds
    assert clock.seconds_for(0, 100) == pytest.approx(10 / 100 + 4 - LAG_S)
    clock.spend(0, 11)
    for stones in (5, 4, 3, 2, 1, 5):
        assert clock.seconds_for(0, 100) == pytest.approx((20 - (5 - stones) * 2) / stones - LAG_S)
        clock.spend(0, 2)
    clock.update(0, 3, 2)
    assert clock.seconds_for(0, 100) == pytest.approx(1.5 - LAG_S)
    clock.update(0, 0.05, 1)
    assert 0 < clock.seconds_for(0, 100) < 0.05
    for unlimited in ((0, 0, 0), (60, 10, 0)):
        clock.set(*unlimited)
        assert clock.seconds_for(0, 40) is None


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["mcts:simulations=10000000", network_param("net:simulations=100000,threads=1")])
def test_a_search_obeys_the_clock(agent):
    wire = Wire(agent)
    wire.session.move_chooser.warm_up(wire.session.game)
    for line in ("time_settings 0 0.6 1", "kgs-time_settings byoyomi 0 0.6 5", "kgs-time_settings canadian 0 1.2 2"):
        wire.ask(line)
        start = time.perf_counter()
        wire.ask("genmove b")
        assert 0.3 < time.perf_counter() - start < 5
    wire.ask("kgs-time_settings absolute 0.1")
    wire.ask("genmove b")
    wire.ask("time_left w 0 0")
    wire.ask("genmove w")
    for bad in ("time_settings 1 2", "time_settings -1 0 0", "time_settings a b c", "time_left x 1 1", "time_left b 1",
                "kgs-time_settings", "kgs-time_settings byoyomi 1", "kgs-time_settings none_at_all"):  # fmt: skip
        wire.fail(bad)


def test_nothing_is_compiled_while_a_clock_runs(monkeypatch):
    """The first move calls only methods of the tree that `warm_up` has already called."""
    wire, asked = Wire(f"{SEARCH},rave,reuse"), set()
    for name in ("reset", "grow", "best_action", "children", "advance"):
        method = getattr(RaveTree, name)
        monkeypatch.setattr(RaveTree, name, lambda *args, _of=(name, method): (asked.add(_of[0]), _of[1](*args))[1])
    wire.session.move_chooser.warm_up(wire.session.game)
    warm = asked.copy()
    for line in ("genmove b", "play w pass", "kata-genmove_analyze b 100"):
        wire.ask(line)
    assert asked == warm == {"reset", "grow", "best_action", "children", "advance"}


@pytest.mark.parametrize("spec", [SEARCH, network_param(NETWORK), network_param(f"{NETWORK},temperature=1")])
def test_a_search_without_a_clock_plays_as_the_agent_does(spec):
    wire = Wire(spec, seed=5)
    moves = [wire.ask(f"genmove {'bw'[ply % 2]}") for ply in range(4)]
    agent, game, rng = make_agent(spec, "go"), Game.new(max_plies=1024), np.random.default_rng(5)
    for move in moves:
        action = int(agent.act(game.records, rng)[0])
        assert game.action_name(action) == move
        game.play(action)


SHEET = (
    "E5 J2 J1 H1 E1 A1 A2 A9 B1 F5 A8 pass B9 F1 E2 F2 E3 F3 E4 F4 E6 F6 E7 F7 E8 F8 E9 F9 C3 pass C7 G7 B5 G3 D5 H5 "
    "C5 pass pass"
)


# 192: 8 * 16 simulations, and half as many virtual visits from the values of the network
@pytest.mark.parametrize(("agent", "max_visits"), [(f"{SEARCH},rave", 200), network_param(NETWORK, 192)])
def test_a_reused_tree_keeps_its_visits_between_moves(agent, max_visits):
    kept, fresh = Wire(f"{agent},reuse"), Wire(agent)
    visits = []
    for wire in (kept, fresh):
        lines = [wire.ask(f"genmove_analyze {colour}").split("\n") for colour in "bwb"]
        visits.append(sum(int(one[1]) for one in infos(lines[-1][-2])))
        wire.ask("undo")
        wire.ask("play b pass")
        wire.ask("play w pass")
        wire.ask("genmove b")  # the game continues
    assert visits[0] > max_visits >= visits[1]


def test_an_engine_resigns_at_its_third_hopeless_turn():
    options = "go:komi=81,max_plies=40"  # Black would need all 81 points for a draw
    wire = Wire(SEARCH, options, resign_below=0.05)
    assert [wire.ask(f"genmove {colour}") == "resign" for colour in "bwbwb"] == [False] * 4 + [True]
    before = wire.session.game
    assert wire.ask("kata-genmove_analyze b 100").split("\n")[-1] == "play resign"
    assert wire.ask("reg_genmove b") != "resign"
    assert wire.session.game is before  # resigning does not change the position
    assert wire.ask("genmove w") != "resign"
    wire.ask("undo")
    assert wire.ask("genmove b") != "resign"  # `undo` restarts the count of hopeless turns
    assert [wire.ask("kgs-genmove_cleanup b") for _ in range(4)].count("resign") == 0
    never = Wire(SEARCH, options)
    assert [never.ask("genmove b") for _ in range(5)].count("resign") == 0


def test_an_engine_that_ponders_stops_for_every_command():
    wire, visits = Wire(f"{SEARCH},rave,reuse", ponders=True), [0]
    wire.ask("genmove b")  # compiles what is needed
    wire.ask("undo")
    wire.written.clear()

    def read():
        """Return the next command. Before the second command, wait for 1000 visits of the tree; a search adds 200."""
        end = time.perf_counter() + 60
        while visits[-1] < 1000 and time.perf_counter() < end and len(lines) == 3:
            time.sleep(0.01)
            visits.append(int(wire.session.move_chooser._tree.nodes[0].visits))
        return lines.pop(0)

    lines = [b"1 genmove b\n", b"2 name\n", b"3 play w pass\n", b""]
    wire.engine.serve(read)
    assert visits[-1] >= 1000
    assert re.fullmatch(r"=1 \S+\n\n=2 ninetka\n\n=3\n\n", "".join(wire.written))
    assert list(wire.session.ponder()) == []  # not the opponent's turn
    for back in ("undo", "clear_board"):  # both remove the move after which the engine ponders
        wire.ask("genmove b")
        assert next(wire.session.ponder(), "nothing") is None
        wire.ask(back)
        wire.session.has_pending_command = lambda: True
        wire.ask("analyze b")  # creates a tree of the current position
        assert next(wire.session.ponder(), "nothing") == "nothing"


NETWORKS = [network_param("net"), network_param(NETWORK), network_param("net:simulations=8,playouts=0")]


@pytest.mark.parametrize("agent", ["random", SEARCH, f"{SEARCH},rave", *NETWORKS])
def test_agents_that_keep_no_tree_cannot_ponder(agent):
    with pytest.raises(ValueError, match="cannot ponder: expected one that reuses its tree"):
        Wire(agent, ponders=True)


@pytest.mark.parametrize("agent", [f"{SEARCH},rave,reuse", network_param(f"{NETWORK},reuse")])
def test_a_position_is_pondered_once_whatever_else_is_asked(agent, monkeypatch):
    wire = Wire(agent, ponders=True)
    monkeypatch.setattr("ninetka_agents.go.gtp.move_chooser.MAX_PONDER_S", 0.05)
    wire.ask("genmove b")
    assert len(list(wire.session.ponder())) > 0
    wire.ask("time_left w 50 0")
    assert list(wire.session.ponder()) == []
    wire.ask("play w pass")
    wire.ask("genmove b")
    assert len(list(wire.session.ponder())) > 0


def test_pondering_that_fails_does_not_end_the_engine(monkeypatch, capsys):
    wire = Wire(f"{SEARCH},rave,reuse", ponders=True)
    monkeypatch.setattr(wire.session.move_chooser, "ponder", lambda game: (1 // 0 for _ in "a"))
    lines = [b"1 genmove b\n", b"2 genmove w\n", b""]
    wire.engine.serve(lambda: lines.pop(0))
    assert re.fullmatch(r"=1 \w+\n\n=2 \w+\n\n", "".join(wire.written))
    assert capsys.readouterr().err == 2 * "pondering stopped: ZeroDivisionError\n"


def test_final_score_and_status(wire):
    for ply, vertex in enumerate(SHEET.split()):
        wire.ask(f"play {'bw'[ply % 2]} {vertex}")
    assert wire.ask("final_score") == "B+2"
    wire.ask("komi 9")
    assert wire.ask("final_score") == "0"
    wire.ask("komi 9.5")
    assert wire.ask("final_score") == "W+0.5"
    assert wire.ask("final_status_list dead") == ""
    assert len(wire.ask("final_status_list alive").split()) == 32
    assert wire.fail("final_status_list gone") == "invalid status: expected alive, dead, seki"


def test_dead_stones_and_seki(wire):
    points = [f"{file}{rank}" for rank in range(1, 10) for file in "ABCDEFGHJ"]
    empty = {"A1", "D1", "E1", "F1", "A9", "J9"}
    stones = [f"{'bw'[int(point[1]) > 5]} {point}" for point in points if point not in empty]
    wire.ask(f"gogui-setup {' '.join(stones)} w E1")
    assert wire.ask("final_status_list dead") == "E1"
    assert wire.ask("final_score") == "B+2"  # 45 points against 36 and a komi of 7
    wire.ask("clear_board")
    black = ["A3", "B3", "C3", "D3", "E3", "F3", "G3", "H3", "J3", "J2", "J1", "C1", "D1", "E1", "F1"]
    white = ["A2", "B2", "C2", "D2", "E2", "F2", "G2", "H2", "A1", "H1"]
    wire.ask("gogui-setup " + " ".join([f"b {point}" for point in black] + [f"w {point}" for point in white]))
    assert sorted(wire.ask("final_status_list seki").split()) == sorted([*white, "C1", "D1", "E1", "F1"])
    assert wire.ask("final_status_list dead") == ""
    assert sorted(wire.ask("final_status_list alive").split()) == sorted(black[:11])


# Commands of particular controllers


def test_gogui(wire):
    for line in wire.ask("gogui-analyze_commands").split("\n"):
        assert wire.send(line.split("/")[2]).startswith("=")
    assert len(wire.ask("ninetka-ownership").split()) == 81
    wire.ask("gogui-interrupt")
    wire.ask("gogui-play_sequence B E5 W pass B D4")
    assert wire.session.game.ply == 3
    before = wire.session.game
    for bad in ("B C3 W C3", "B", "B C3 W", "B Z9"):
        wire.fail(f"gogui-play_sequence {bad}")
        assert wire.session.game is before
    wire.ask("undo")
    wire.ask("clear_board")
    wire.ask("gogui-setup b A1 b C3 w D4")
    wire.ask("gogui-setup_player w")
    assert (wire.session.game.to_move, wire.session.game.ply) == (1, 0)
    assert wire.fail("gogui-setup w A1").startswith("illegal setup")
    assert wire.fail("gogui-setup w A2 w B1") == "illegal setup: A1: the chain there has no liberty"
    assert wire.board().endswith("/X........")


def test_rules_by_name(wire):
    assert '"ko": "SIMPLE"' in wire.ask("kata-get-rules")
    wire.ask("kata-set-rules AGA")
    assert wire.session.game.ko == "situational"
    assert '"scoring": "AREA"' in wire.ask("kata-get-rules")
    assert "expected chinese" in wire.fail("kata-set-rules tromp-taylor")
    wire.ask("play b e5")
    assert wire.fail("kata-set-rules chinese") == "board not empty"


def test_kgs_and_gomill(searching):
    searching.ask("kgs-game_over")
    searching.ask("kgs-genmove_cleanup b")
    assert "200 simulations" in searching.ask("gomill-explain_last_move")
    assert searching.ask("gomill-describe_engine") == f"ninetka 1.2.3\nagent {SEARCH}"
    assert float(searching.ask("gomill-cpu_time")) > 0


# Analysis


INFO = re.compile(r"info move (\S+) visits (\d+) winrate (\S+) order (\d+) pv ((?:[A-HJ][1-9]|pass)(?: \S+)*)")


def infos(line: str) -> list[tuple[str, ...]]:
    return [INFO.fullmatch(part).groups() for part in re.split(r" (?=info )", line)]


@pytest.mark.parametrize("agent", [SEARCH, f"{SEARCH},rave", f"{SEARCH},rave,reuse", network_param(NETWORK)])
def test_genmove_analyze_reports_the_search_and_plays(agent):
    wire = Wire(agent)
    wire.session.has_pending_command = lambda: True
    for form, pattern in (("", r"0\.\d{4}|1\.0000"), ("lz-", r"\d{1,5}"), ("kata-", r"0\.\d{6}|1\.000000")):
        lines = wire.ask(f"{form}genmove_analyze b 100").split("\n")
        found = infos(lines[-2])
        assert lines[-1] == f"play {found[0][0]}"
        assert wire.session.game.last_action == wire.session.game.action_index(found[0][0])
        assert ("reuse" in agent) or sum(int(one[1]) for one in found) <= 200
        assert [int(one[3]) for one in found] == list(range(len(found)))
        assert all(re.fullmatch(pattern, one[2]) for one in found)
        assert all(one[4].split()[0] == one[0] for one in found)


def test_analyze_continues_until_a_command_is_pending(searching):
    searching.ask("clear_board")
    waiting = threading.Event()
    searching.session.has_pending_command = waiting.is_set
    threading.Timer(0.5, waiting.set).start()
    lines = searching.ask("lz-analyze 5 maxmoves 3").split("\n")
    assert 3 <= len(lines) <= 11
    assert all(len(infos(line)) == 3 for line in lines[1:])
    assert sum(int(one[1]) for one in infos(lines[-1])) > sum(int(one[1]) for one in infos(lines[1]))
    assert searching.session.game.ply == 0


def test_options_of_analyses(searching):
    searching.ask("clear_board")
    searching.session.has_pending_command = lambda: True
    line = searching.ask("kata-analyze w interval 10 minmoves 2 allow w E5,D4 3 ownership true rootInfo true")
    moves, _, ownership = line.partition(" ownership ")
    assert {one[0] for one in infos(moves)} <= {"E5", "D4"}
    assert len(ownership.split()) == 81
    avoided = searching.ask("analyze b avoid b E5,D4 3 avoid w A1 2")
    assert not {one[0] for one in infos(avoided)} & {"E5", "D4"}
    for bad in ("analyze b 10 faster", "analyze b maxmoves", "analyze b allow b", "analyze b allow b Z9 1",
                "analyze b interval x", "lz-genmove_analyze b avoid x D4 1"):  # fmt: skip
        searching.fail(bad)


# A process


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ninetka_train.cli", "gtp", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_process_answers_at_once_and_can_be_interrupted(tmp_path):
    log = tmp_path / "gtp.log"
    with start("--agent", "mcts:simulations=16000000", "--log", str(log)) as process:

        def say(text: str) -> None:
            process.stdin.write(text)
            process.stdin.flush()

        def hear() -> str:
            lines = iter(process.stdout.readline, "\n")
            return "".join(lines)

        say("1 name\n")
        assert hear() == "=1 ninetka\n"
        say("2 genmove b\n")
        time.sleep(0.2)
        say("# interrupt\n")
        assert re.fullmatch(r"=2 ([A-HJ][1-9]|pass)\n", hear())
        say("3 lz-analyze 1\n")
        assert process.stdout.readline() == "=3\n"
        assert process.stdout.readline().startswith("info move")
        say("4 protocol_version\n")
        assert re.fullmatch(r"(info move .*\n)*", hear())
        assert hear() == "=4 2\n"
        say("5 quit\n6 name\n")
        assert hear() == "=5\n"
        assert process.wait(20) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")
    said = [line.split(" ", 1)[1] for line in log.read_text(encoding="utf-8").splitlines()]
    assert said[:2] == ["< 1 name", "> =1 ninetka"]
    assert said[-1] == "> =5"


@pytest.mark.slow
def test_a_process_ends_when_its_input_ends_or_its_output_is_closed():
    with start("--agent", "random") as process:
        out, err = process.communicate("play b e5\ngenmove w\nquit_not")
        assert re.fullmatch(r"=\n\n= \S+\n\n\? unknown command\n\n", out)
        assert (err, process.returncode) == ("", 0)
    with start("--agent", "random") as process:
        process.stdout.close()
        process.stdin.write("name\n" * 10)
        process.stdin.close()
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--agent", "missing"), "error: unknown agent 'missing': known are gtp, mcts, net, random\n"),
        (("--agent", "mcts:simulations=0"), "error: simulations=0: expected an integer of at least 1"),
        (("--game", "ninetka"), "error: game='ninetka': the Go Text Protocol is for go\n"),
        (("--game", "go:komi=x"), "error: komi='x': expected"),
        (
            ("--game", "go:handicap=2"),
            "error: game='go:handicap=2': expected no handicap, controllers set it",
        ),
        (("--ponder", "--agent", "random"), "error: agent 'random' cannot ponder: expected one that reuses its tree"),
        (("--resign", "5"), "error: resign=5.0: expected a share of wins, 0 to 1\n"),
        (("--log", "/nowhere/x.log"), "error: /nowhere/x.log: cannot write: there is no folder /nowhere\n"),
    ],
)
def test_wrong_options_end_in_one_line_of_error(arguments, message):
    with start(*arguments) as process:
        out, err = process.communicate("name\n")
    assert (out, process.returncode) == ("", 2)
    assert err.startswith(message)
    assert err.count("\n") == 1


# Invalid input


COMMANDS = Wire(SEARCH).ask("list_commands").split("\n")
SLOW = {"final_score", "final_status_list", "ninetka-ownership", "kata-analyze", "kata-genmove_analyze"}
QUICK = [name for name in COMMANDS if name not in {*SLOW, "quit"}]
WORDS = (
    "b w black WHITE x E5 a1 j9 i5 z99 pass resign PASS D4,E5 0 1 2 3 9 -1 20 1e9 6.5 0.25 nan inf "
    "99999999999999999999 "
    "alive dead seki chinese japanese interval allow avoid ownership true maxmoves none byoyomi absolute canadian "
    "/nowhere = ? \u00e9 \u2028 \U0001f600 (; %s {} \\ ' \" \x00 \x1b[2J"
)


def hostile_line(rng: np.random.Generator) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return rng.integers(0, 256, rng.integers(0, 60), np.uint8).tobytes().replace(b"\n", b" ")
    if kind < 0.15:
        return bytes(rng.choice([b"", b"# interrupt", b"# x", b"\t", b"\r", b"12", b" 7 # y"]))
    name = "play" if kind < 0.4 else str(rng.choice(sorted(SLOW) if kind < 0.42 else QUICK))
    number = rng.choice(["", "", "1 ", "007 ", "4294967296 "])
    words = " ".join(rng.choice([*WORDS.split(" "), "a" * 300], rng.integers(0, 5)).tolist())
    return f"{number}{name} {words}".encode()


def ids_expected(lines: list[bytes]) -> list[str]:
    """Return the ids of the lines that are commands, parsed strictly by the specification."""
    found = []
    for line in lines:
        text = line.decode("utf-8", "replace").replace("\t", " ")
        text = "".join(char for char in text if ord(char) >= 32 and ord(char) != 127).split("#")[0]
        if words := text.split():
            found.append(words[0] if re.fullmatch("[0-9]+", words[0]) else "")
    return found


@pytest.mark.slow
def test_ten_thousand_hostile_lines():
    rng, wire = np.random.default_rng(7), Wire("mcts:simulations=3")
    lines = [hostile_line(rng) for _ in range(10_000)]
    text = b"\n".join(lines) + b"\n99 name\n"
    pieces = iter([text[start : start + 4096] for start in range(0, len(text), 4096)] + [b""])
    wire.engine.serve(lambda: next(pieces))
    written = "".join(wire.written)
    assert written.endswith("\n\n")
    answers = written[:-2].split("\n\n")
    expected = [*ids_expected(lines), "99"]
    assert len(answers) == len(expected) > 9_000
    for answer, number in zip(answers, expected, strict=True):
        assert re.match(rf"[=?]{number}( |\n|$)", answer), answer
        assert "internal error" not in answer
    assert answers[-1] == "=99 ninetka"
    assert sum(answer[0] == "=" for answer in answers) > len(answers) / 10
