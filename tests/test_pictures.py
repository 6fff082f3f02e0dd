"""Tests that the pictures of all games show the headline, which summarizes the state of the game."""

from __future__ import annotations

import importlib

import numpy as np
import pytest


@pytest.mark.parametrize("name", ["ninetka", "go", "kropki"])
def test_the_headline_is_on_the_picture(name, monkeypatch):
    pytest.importorskip("pygame")
    env = importlib.import_module(f"ninetka_env.{name}_v0").raw_env(render_mode="rgb_array")
    env.reset(seed=0)
    drawn = env.render()
    monkeypatch.setattr(f"ninetka_env.games.{name}.picture.headline", lambda game: "")
    assert np.any(drawn != env.render())
