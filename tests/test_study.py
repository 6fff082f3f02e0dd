"""The study of perfect play, on few games of weak agents, counted again by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("matplotlib")

from agents import make_agent
from agents.solver import solve_batch
from ninetka_env.game import Game
from ninetka_env.rules import Phase
from train import study as module
from train.arena import NO_ACTION, play_games
from train.cli import app
from train.exact import find_decisions


@pytest.fixture
def few_agents(monkeypatch):
    monkeypatch.setattr(module, "PLACERS", ("random",))
    monkeypatch.setattr(module, "AGENTS", ("random", "maxn:depth=1"))
    monkeypatch.setattr(module, "NODES", 2000)
    monkeypatch.setattr(module, "FIRST_NODES", 20_000)


def test_the_study_counts_what_was_played(few_agents):
    found = module.study(games=3, seed=7)
    results = play_games([make_agent("random")], 2, 3, seed=7, neutral_placement="random", turn_order="restart")
    firsts = []
    for start, actions in zip(results.starts, results.actions, strict=True):
        game = Game(start[None].copy())
        for action in actions[actions != NO_ACTION]:
            if game.phase == Phase.MOVEMENT:
                break
            game.play(int(action))
        firsts.append(game.records)
    winners, _ = solve_batch(np.concatenate(firsts), 20_000, moves=False)
    assert found.solved["random"]["restart"].count == (winners >= 0).sum()
    assert found.second_wins["random"]["restart"].count == (winners == 1).sum()
    other = play_games([make_agent("random")], 2, 3, seed=7, neutral_placement="random", turn_order="continue")
    decisions = [find_decisions(each, 2000, moves=True) for each in (results, other)]
    assert found.blunders["random"].count == sum(part.blunders.sum() for part in decisions)
    assert found.blunders["random"].total == sum(part.won.sum() for part in decisions)
    assert found.unsolved["random"].total == sum(len(part.games) for part in decisions)
    late = [(part.winning / part.legal)[part.won & (part.slides == 16)] for part in decisions]
    assert found.winning["random"][16] == pytest.approx(np.concatenate(late).mean())


def test_the_command_writes_a_page_a_picture_and_the_figures(few_agents, tmp_path):
    done = CliRunner().invoke(app, ["study", str(tmp_path / "docs" / "perfect"), "--games", "1"])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "docs" / "perfect.md").read_text()
    assert "(perfect.png)" in page
    assert "| `maxn:depth=1` |" in page
    assert (tmp_path / "docs" / "perfect.png").read_bytes().startswith(b"\x89PNG")
    assert set(json.loads((tmp_path / "docs" / "perfect.json").read_text())["blunders"]) == {"random", "maxn:depth=1"}
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert CliRunner().invoke(app, ["study", str(blocked / "perfect")]).exit_code == 2
