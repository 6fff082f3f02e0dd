"""External GTP engines as agents: GNU Go, and a fake engine that misbehaves."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from requirements import needs_posix
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.agent import Forfeit
from ninetka_agents.go.gtp import process as processes
from ninetka_agents.go.gtp.process import EngineError, EngineProcess, find_engine
from ninetka_env.api.record_files import read_records
from ninetka_env.core.game import Event
from ninetka_env.games.go.game import Game
from ninetka_train.cli import app
from ninetka_train.judging.arena import AgentError, play_games
from ninetka_train.judging.evaluate import summarise

pytestmark = pytest.mark.slow

FAKE = Path(__file__).parent / "fake_engine.py"
GAME = "go:size=5,komi=0.5,max_plies=12"


def fake(behaviour: str, **options: object) -> str:
    options_text = "".join(f",{key}={value}" for key, value in options.items())
    return f"gtp:[{sys.executable} {FAKE} {behaviour}]{options_text}"


def gnugo() -> str:
    """Return the spec of GNU Go at its lowest level with area scoring; skip the test if it is not installed."""
    try:
        find_engine("gnugo")
    except ValueError:
        pytest.skip("GNU Go is missing: `make engines` installs it")
    return "gtp:gnugo --mode gtp --level 0 --chinese-rules --capture-all-dead"


# Specs


def test_a_spec_takes_brackets_options_and_plain_words():
    for spec, words, timeout, keep in (
        ("gtp:{} --mode gtp", ["--mode", "gtp"], 60, False),
        ("gtp:{} --mode=gtp", ["--mode=gtp"], 60, False),
        ("gtp:[{} -set a=b,c=d],timeout=2,keep", ["-set", "a=b,c=d"], 2, True),
        ('gtp:timeout=0.5,command=[{} "two words"]', ["two words"], 0.5, False),
    ):
        agent = make_agent(spec.format(sys.executable), "go")
        assert (agent._words, agent._timeout, agent._keep) == ([sys.executable, *words], timeout, keep)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gtp:no-such-engine --mode gtp", r"^engine 'no-such-engine': no such program on PATH or in /usr/games, .*$"),
        ("gtp", "^no engine: expected a command, such as gtp:gnugo$"),
        ("gtp:engine 'x", '^engine "engine \'x": No closing quotation$'),
        (f"gtp:[{sys.executable}],timeout=0", r"^timeout=0.0: expected a number of seconds above 0$"),
        (f"gtp:[{sys.executable}],timeout=nan", "^timeout=nan"),
        (f"gtp:[{sys.executable}],speed=1", "unknown option 'speed', allowed are command, timeout, keep$"),
    ],
)
def test_wrong_specs_are_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        make_agent(spec, "go")
    with pytest.raises(ValueError, match="agent 'gtp' plays go, not ninetka"):
        make_agent(spec)


@needs_posix
def test_programs_are_also_searched_for_in_engine_folders(monkeypatch, tmp_path):
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(processes, "ENGINE_FOLDERS", ("/nowhere", str(tmp_path)))
    assert find_engine("engine --mode 'a b'") == [str(program), "--mode", "a b"]


# Processes


def test_an_engine_that_prints_a_banner_and_quits():
    process = EngineProcess([sys.executable, str(FAKE), "chatty"], 20)
    assert process.ask("boardsize", 5) == ""
    assert process.supports("set_random_seed")
    assert not process.supports("undo")
    assert process.ask("genmove", "b") == "a1"
    process.close()
    with pytest.raises(EngineError, match="ended at 'name'"):
        process.ask("name")


@needs_posix
def test_an_engine_that_does_not_quit_is_ended(monkeypatch):
    monkeypatch.setattr(processes, "QUIT_TIMEOUT_S", 0.2)
    process = EngineProcess([sys.executable, str(FAKE), "stubborn"], 20)
    process.ask("name")
    start = time.perf_counter()
    process.close()
    assert time.perf_counter() - start < 10
    assert process._process.returncode == -9


# A failure loses one game; the match continues


FAILURES = {
    "die": ("left", "ended at 'genmove b', exit status 1: out of luck"),
    "hang": ("time", "no answer to 'genmove b' within 3 s"),
    "close": ("left", r"ended at 'genmove b', it closed its output: seed \d+"),
    "endless": ("time", "no answer to 'genmove b' within 3 s"),
    "cut": ("left", r"ended at 'genmove b', exit status 0: seed \d+"),
    # the second response may arrive before the next command; otherwise it is read as the response to that command
    "twice": ("left", r"answered '(genmove b|play w \S+)' more than once|answered genmove with ''"),
    "flood": ("left", "answered 'genmove b' with more than 10000 lines"),
    "illegal": ("left", r"action 0 \(A1\) is illegal for Black at ply 4: the point is occupied"),
    "nonsense": ("left", "answered genmove with 'Z99'"),
    "fail": ("left", r"refused 'genmove b': no"),
    "refuse": ("left", r"refused 'play w \S+': illegal move"),
    "resign": ("resigned", ""),
}


def play_against(player, game, rng):
    """Play a game until the player raises `Forfeit`; the opponent plays the last legal action before the pass."""
    while True:
        for choose in (lambda: player.act(rng), lambda: int(game.legal_actions()[-2])):
            action = choose()
            game.play(action)
            player.observe(action)


@pytest.mark.parametrize("behaviour", FAILURES)
def test_a_failure_ends_the_game_and_is_named(behaviour, monkeypatch):
    monkeypatch.setattr(processes, "QUIT_TIMEOUT_S", 0.2)
    kind, message = FAILURES[behaviour]
    game, rng = Game.new(size=5), np.random.default_rng(0)
    player = make_agent(fake(behaviour, timeout=3 if behaviour in ("hang", "endless") else 60), "go").start(game)
    try:
        with pytest.raises(Forfeit) as caught:
            play_against(player, game, rng)
        assert caught.value.kind == kind
        assert re.fullmatch(message, str(caught.value))
    finally:
        player.close()


@pytest.mark.parametrize("behaviour", ["noisy", "slow"])
def test_extra_and_slow_output_does_not_matter(behaviour):
    results = [play_games([make_agent(fake(one), "go")], num_games=2, game=GAME) for one in (behaviour, "well")]
    assert results[0].events == {}
    assert (results[0].actions == results[1].actions).all()


def test_the_rest_of_the_match_is_played_and_saved(tmp_path):
    file, behaviours = tmp_path / "games.txt", ("die", "resign", "well")
    specs = [fake(behaviour) for behaviour in behaviours]
    done = CliRunner().invoke(
        app, ["evaluate", "random", *specs, "--game", GAME, "--games", "2", "--save-games", str(file)]
    )
    assert done.exit_code == 1
    assert "games were lost by failures of agents" in done.stderr
    assert f"agent {specs[0]!r}: ended at 'genmove b', exit status 1: out of luck" in done.stderr
    assert "Traceback" not in done.output
    records = list(read_records(file))
    assert len(records) == 12  # six pairs of agents, two games each
    for record in records:
        names = [record.tags[seat.lower()] for seat in record.seats]
        if record.event is not None:
            assert record.event.kind == ("left" if names[record.event.seat] == specs[0] else "resigned")
            assert record.winner == 1 - record.event.seat
        assert (record.event is None) == (not {*specs[:2]} & {*names})


def test_events_are_in_the_results():
    agents = [make_agent(fake("resign"), "go"), make_agent("random", "go")]
    results = play_games(agents, num_games=4, game=GAME)
    assert len(results.events) == 4
    assert results.failures == {}
    for index, event in results.events.items():
        seat = results.schedule.seatings[index].tolist().index(0)
        assert event == Event("resigned", seat)
        assert results.winners[index] == 1 - seat
    assert summarise(results).agents[1].wins == 4


def test_an_engine_that_cannot_start_ends_the_match():
    with pytest.raises(
        AgentError, match=r"agent 'gtp:.*stillborn\]': ended at 'boardsize 5', exit status 1: no licence"
    ):
        play_games([make_agent(fake("stillborn"), "go"), make_agent("random", "go")], num_games=2, game=GAME)


def test_an_engine_in_both_seats_and_kept_for_several_games():
    agent = make_agent(fake("well", keep="true"), "go")
    results = play_games([agent], num_games=4, game=GAME, batch=1)
    assert results.events == {}
    assert len(agent._idle) == 1
    assert (results.actions[:, :4] == [[0, 1, 2, 3]]).all()


def test_an_engine_is_asked_about_any_position():
    agent, game = make_agent(fake("well"), "go"), Game.new(size=5)
    for name in ("A1", "B1", "D1"):
        game.play(game.action_index(name))
    records = np.concatenate([game.records, game.records])
    assert agent.act(records, np.random.default_rng(0)).tolist() == [2, 2]


# GNU Go


def test_gnu_go_plays_a_match(tmp_path):
    file = tmp_path / "games.txt"
    command = ["evaluate", "random", gnugo(), "--game", "go", "--games", "2", "--seed", "3", "--save-games", str(file)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    records = list(read_records(file))
    assert all(record.tags[record.seats[record.winner].lower()] != "random" for record in records)
    again = CliRunner().invoke(app, [*command, "--batch", "1"])
    assert again.exit_code == 0
    assert [record.actions for record in read_records(file)] == [record.actions for record in records]


def test_a_random_agent_wins_no_game_against_gnu_go():
    """It would win some if GNU Go passed while dead stones are on the board."""
    gnugo()
    results = play_games(["random", "gtp:gnugo --level 0"], num_games=10, game="go", seed=2)
    assert summarise(results).agents[0].wins == 0
    assert summarise(results).agents[1].wins == 10


def test_gnu_go_has_the_same_stones_and_legal_moves():
    process = EngineProcess(find_engine(gnugo()[4:].replace("[", "")), 60)
    rng, ours = np.random.default_rng(0), make_agent("random", "go")
    try:
        for _ in range(2):
            game = Game.new()
            for line in ("boardsize 9", "clear_board", "komi 7"):
                process.ask(*line.split())
            while not game.is_over:
                action = int(ours.act(game.records, rng)[0])
                process.ask("play", "bw"[game.to_move], game.action_name(action))
                game.play(action)
                if game.ply % 10 == 0:
                    points = [process.ask("list_stones", colour).split() for colour in ("black", "white")]
                    stones = [
                        [game.action_name(int(one)) for one in np.flatnonzero(game.board == cell)] for cell in (1, 2)
                    ]
                    assert [sorted(each) for each in points] == [sorted(each) for each in stones]
                    legal = process.ask("all_legal", "bw"[game.to_move]).split()
                    assert sorted(legal) == sorted(game.action_name(int(one)) for one in game.legal_actions()[:-1])
    finally:
        process.close()


def test_gnu_go_takes_handicap_komi_and_sizes():
    for options in ({"handicap": 3, "komi": 0.5}, {"size": 5}):
        game = Game.new(**options)
        player = make_agent(gnugo(), "go").start(game)
        assert player._process.ask("list_stones", "black").split().__len__() == game.handicap
        assert float(player._process.ask("get_komi")) == game.komi
        action = player.act(np.random.default_rng(0))
        assert game.legal_mask()[action]
        player.observe(action)
        player.close()
