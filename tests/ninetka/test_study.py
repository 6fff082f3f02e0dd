"""Tests of the study of perfect play: counts of a few games of weak agents, recomputed here."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("matplotlib")

from ninetka_agents import make_agent
from ninetka_agents.ninetka.solver.solver import solve_batch
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.cli import app
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.results import NO_ACTION
from ninetka_train.ninetka import study as module
from ninetka_train.ninetka.blunders import find_decisions


@pytest.fixture
def few_agents(monkeypatch):
    monkeypatch.setattr(module, "PLACERS", ("random",))
    monkeypatch.setattr(module, "AGENTS", ("random", "maxn:depth=1"))
    monkeypatch.setattr(module, "NODES", 2000)
    monkeypatch.setattr(module, "FIRST_NODES", 20_000)


def test_the_study_counts_match_the_games(few_agents):
    found = module.study(games=3, seed=7)
    results = play_games([make_agent("random")], 2, 3, seed=7, neutral_placement="random")
    firsts = []
    for start, actions in zip(results.starts, results.actions, strict=True):
        game = Game(start[None].copy())
        for action in actions[actions != NO_ACTION]:
            if game.phase == Phase.MOVEMENT:
                break
            game.play(int(action))
        firsts.append(game.records)
    winners, _ = solve_batch(np.concatenate(firsts), 20_000, moves=False)
    assert found.solved["random"].count == (winners >= 0).sum()
    assert found.second_wins["random"].count == (winners == 1).sum()
    decisions = find_decisions(results, 2000, moves=True)
    assert found.blunders["random"].count == decisions.blunders.sum()
    assert found.blunders["random"].total == decisions.won.sum()
    assert found.unsolved["random"].total == len(decisions.games)
    for slides in (4, 16):
        complete, shares, won = 0, [], 0
        for row in np.flatnonzero(decisions.won & (decisions.slides == slides)):
            won += 1
            if decisions.complete[row]:
                complete += 1
                shares.append(decisions.winning[row] / decisions.legal[row])
        assert (found.complete["random"][slides].count, found.complete["random"][slides].total) == (complete, won)
        assert found.winning["random"][slides] == (pytest.approx(np.mean(shares)) if shares else None)


def test_unsolved_moves_are_not_counted_as_losing():
    """With few nodes, only late positions have all moves solved. If such a position is won, it has a winning move."""
    results = play_games([make_agent("random")], 2, 3, seed=7)
    decisions = find_decisions(results, 2000, moves=True)
    assert not decisions.complete[decisions.slides == 0].any()
    assert decisions.complete[decisions.slides > 20].all()
    assert (decisions.winning[decisions.complete & decisions.won] > 0).all()
    assert not find_decisions(results, 2000).complete.any()


def test_the_command_writes_a_page_a_picture_and_the_figures(few_agents, tmp_path):
    done = CliRunner().invoke(app, ["study", "--out", str(tmp_path / "docs" / "perfect"), "--games", "1"])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"wrote {tmp_path / 'docs' / 'perfect.md'}, .png, -dark.png and .json\n"
    page = (tmp_path / "docs" / "perfect.md").read_text(encoding="utf-8")
    assert "(perfect.png#only-light)" in page
    assert "(perfect-dark.png#only-dark)" in page
    assert "| `maxn:depth=1` |" in page
    for name in ("perfect.png", "perfect-dark.png"):
        assert (tmp_path / "docs" / name).read_bytes().startswith(b"\x89PNG")
    assert set(json.loads((tmp_path / "docs" / "perfect.json").read_text(encoding="utf-8"))["blunders"]) == {
        "random",
        "maxn:depth=1",
    }
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert CliRunner().invoke(app, ["study", "--out", str(blocked / "perfect")]).exit_code == 2
