"""Matches and commands with a game that has draws, one stage, and no options or pictures (tic-tac-toe)."""

from __future__ import annotations

import json

import numpy as np
import pytest
import toy.tictactoe  # noqa: F401  # registers the game
from requirements import network_param
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.outcome import DRAWN
from ninetka_train.cli import app
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import evaluate, summarise
from ninetka_train.judging.ratings import wilson_interval
from ninetka_train.judging.report import heading_lines
from ninetka_train.judging.results import NO_ACTION
from ninetka_train.judging.saved_games import game_records

GAME = "tictactoe"
RANDOM, SEARCH = make_agent("random", GAME), make_agent("mcts:simulations=60", GAME)


@pytest.fixture(scope="module")
def results():
    return play_games([RANDOM, SEARCH], num_games=60, game=GAME, seed=3)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_results_are_those_of_the_games_played(results):
    assert (results.settings.game, results.settings.num_players) == (GAME, 2)
    for game, record in enumerate(game_records(results)):
        played = GameRecord.of(record.actions, GAME)
        assert played.winner == record.winner == results.winners[game]
        assert played.scores == record.scores == tuple(results.scores[game])
        assert {record.tags[seat] for seat in ("crosses", "noughts")} == {"random", "mcts:simulations=60"}
    assert {DRAWN, 0, 1} == set(results.winners.tolist())
    assert results.times.moves.shape == (2, 1)
    assert results.times.moves.sum() == (results.actions != NO_ACTION).sum()


def test_results_do_not_depend_on_batch(results):
    other = play_games([RANDOM, SEARCH], num_games=60, game=GAME, seed=3, batch=7)
    assert (other.actions == results.actions).all()
    assert (other.winners == results.winners).all()


def test_draws_are_counted_and_shared(results):
    figures = summarise(results)
    random, search = figures.agents
    draws = int((results.winners == DRAWN).sum())
    assert random.draws == search.draws == figures.lineups[0].draws == draws > 0
    assert random.wins + search.wins + draws == 60
    assert search.share == (search.wins + draws / 2) / 60 > 0.8
    assert search.interval == wilson_interval(search.wins + draws / 2, 60)
    assert sum(seat.draws for seat in search.seats) == draws
    assert search.elo > random.elo
    assert [time.stage for time in search.times] == ["moves"]
    assert (results.shares.sum(1) == 1).all()
    assert heading_lines(figures)[0].startswith("Tic-tac-toe, 2 players, 60 games")


def test_repeated_games_are_counted_once():
    class First:
        name = "first"

        def act(self, games, rng):
            return (games["board"] == 0).argmax(1).astype(np.int64)

    figures = evaluate([First()], num_games=20, game=GAME)
    assert figures.distinct_games == 1
    assert "warning" in heading_lines(figures)[2]
    assert "neutral" not in heading_lines(figures)[2]


def test_unsupported_figures_are_reported():
    with pytest.raises(ValueError, match="num_players=3: Tic-tac-toe has 2 players"):
        play_games([RANDOM], 3, 2, game=GAME)
    with pytest.raises(ValueError, match="exact: perfect play is not known for Tic-tac-toe; it is known for ninetka"):
        evaluate([RANDOM], num_games=2, game=GAME, exact=True)


def test_the_command_plays_saves_and_replays(tmp_path):
    games, figures = tmp_path / "games.txt", tmp_path / "figures.json"
    done = run(
        "evaluate", "random", "mcts:simulations=60", "--game", GAME, "--games", 40, "--seed", 3, "--tournament",
        "--save-games", games, "--json", figures,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "draws" in done.stdout
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["environment"] == "tictactoe_v0"
    assert written["settings"]["game"] == GAME
    records = list(read_records(games))
    assert len(records) == 40
    drawn = next(number for number, record in enumerate(records, 1) if record.winner == DRAWN)
    replayed = run("replay", games, "--number", drawn)
    assert replayed.exit_code == 0, replayed.output
    assert "drawn" in replayed.stdout
    assert "XO" in replayed.stdout


def test_a_game_without_pictures_is_not_drawn(tmp_path):
    assert run("evaluate", "random", "--game", GAME, "--games", 1, "--save-games", tmp_path / "games").exit_code == 0
    done = run("replay", tmp_path / "games", "--png", tmp_path / "board.png")
    assert done.exit_code == 2
    assert "Tic-tac-toe has no pictures: use" in done.stderr
    assert not (tmp_path / "board.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "maxn", "--game", GAME], "agent 'maxn' plays ninetka, not tictactoe: known are mcts, random"),
        (["evaluate", "random", "--game", GAME, "--players", 3], "num_players=3: Tic-tac-toe has 2 players"),
        (["evaluate", "random", "--game", f"{GAME}:turn_order=restart"], "tictactoe: unknown option 'turn_order'"),
        (["evaluate", "random", "--game", GAME, "--exact"], "exact: perfect play is not known for Tic-tac-toe"),
        network_param(["train", "--set", f"game={GAME}"], "it has no networks, unlike go, kropki, ninetka"),
    ],
)
def test_wrong_input_ends_in_one_line(arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_analyze_rejects_other_games(tmp_path):
    assert run("evaluate", "random", "--game", GAME, "--games", 1, "--save-games", tmp_path / "games").exit_code == 0
    done = run("analyze", tmp_path / "games")
    assert done.exit_code == 2
    assert "only games of 9tka can be analyzed; this one is of Tic-tac-toe" in done.stderr
