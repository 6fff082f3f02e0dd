"""Tests of `ninetka_train.ninetka.analyze` against plain search to the end."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from ninetka.brute import brute_force_winner
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.agent import Agent
from ninetka_env.api.record_files import write_records
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.cli import app
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.results import Results
from ninetka_train.judging.saved_games import game_records
from ninetka_train.ninetka.analyze import analysis_dict, analysis_text, analyze
from ninetka_train.ninetka.blunders import exact_figures


@pytest.fixture(scope="module")
def results() -> Results:
    agents: list[Agent] = [make_agent("random"), make_agent("solver:nodes=300000,simulations=20")]
    return play_games(agents, 2, 2, seed=3)


def truth(game: Game) -> int:
    """Return the winner by plain search, or -1 if the search would take too long."""
    return int(brute_force_winner(game.records, 0)) if int(game.movable().sum()) <= 9 else -1


@pytest.mark.slow
def test_the_solver_never_blunders_where_it_is_exact(results: Results) -> None:
    _, solver = exact_figures(results)
    assert solver.blunders == 0
    assert solver.won > 10


@pytest.mark.slow
def test_analysis_matches_brute_force(results: Results) -> None:
    checked = mistakes = 0
    for record in game_records(results):
        analysis = analyze(record)
        games = [game for game in record.replay() if game.phase == Phase.MOVEMENT]
        assert [ply.ply for ply in analysis.plies] == [game.ply for game in games[:-1]]
        for ply, game, after in zip(analysis.plies, games, games[1:], strict=False):
            assert (ply.seat, ply.mistake) == (game.to_move, ply.before == "won" and ply.after == "lost")
            assert (ply.move in ply.winning) == (ply.after == "won")
            mistakes += ply.mistake
            if truth(game) >= 0:
                checked += 1
                assert ply.before == ("won" if truth(game) == game.to_move else "lost")
                assert ply.after == ("won" if truth(after) == game.to_move else "lost")
        first = [ply.ply for ply in analysis.plies if ply.mistake][:1]
        assert first == [ply for ply in [analysis.first_mistake] if ply is not None]
        assert json.loads(json.dumps(analysis_dict(analysis)))["unknown"] == 0
        assert len(list(analysis_text(analysis))) == len(analysis.plies) + 2
    assert checked > 10
    assert mistakes == sum(agent.blunders for agent in exact_figures(results))


def test_a_small_budget_leaves_the_start_unsolved(results: Results) -> None:
    analysis = analyze(next(game_records(results)), nodes=1)
    assert analysis.unknown > 0
    *plies, mistakes, last = analysis_text(analysis)
    assert mistakes == "no mistake is known"
    assert "not solved" in last
    legal = analysis.plies[0].legal
    assert plies[1].endswith(f"  0 to {legal} of {legal}")


def test_the_command_writes_the_analysis_and_two_pictures(results: Results, tmp_path: Path) -> None:
    games, json_file, png = (tmp_path / name for name in ("games.txt", "course.json", "course.png"))
    write_records(games, game_records(results))
    arguments = ["analyze", str(games), "--nodes", "1000", "--json", str(json_file), "--png", str(png)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    pictures = [png, tmp_path / "course-dark.png"]
    assert done.stderr == "".join(f"wrote {path}\n" for path in (json_file, *pictures))
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    before = json_file.read_bytes()
    pictures[1].unlink()
    pictures[1].mkdir()
    done = CliRunner().invoke(app, ["analyze", str(games), "--json", str(json_file), "--png", str(png)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "course-dark.png: cannot write" in done.stderr
    assert json_file.read_bytes() == before


def test_a_game_without_slides_is_refused() -> None:
    record = next(game_records(play_games([make_agent("random")], 2, 2)))
    with pytest.raises(ValueError, match="before its movement phase"):
        analyze(dataclasses.replace(record, actions=record.actions[:5]))


def test_only_two_players() -> None:
    results = play_games([make_agent("random")], 3, 1)
    with pytest.raises(ValueError, match="3 players"):
        analyze(next(game_records(results)))
