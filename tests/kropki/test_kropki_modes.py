"""Test that numba's other modes play the same games: without compilation, and with bounds checks."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ninetka_agents.agent import make_agent
from ninetka_env import kropki_v0
from ninetka_env.core.batch import new_games
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import playout

TESTS = Path(__file__).parent.parent


def play_batches() -> str:
    """Play batches at random and greedily; return a digest of all states, observations, masks and rewards."""
    digest = hashlib.blake2b(digest_size=8)
    for territory, start in (("declared", "cross"), ("immediate", "empty")):
        envs = kropki_v0.vector_env(2, 6, 5, territory, start)
        envs.reset(seed=1)
        agents, rng = [make_agent(spec, "kropki") for spec in ("random", "greedy")], np.random.default_rng(2)
        for ply in range(36):
            envs.step(agents[ply > 26].act(envs.games, rng))
            for seen in (envs.games, envs.observations, envs.action_mask, envs.rewards):
                digest.update(seen.tobytes())
    return digest.hexdigest()


def play_out() -> str:
    """Play random games to their ends; return a digest of the final states."""
    digest, streams = hashlib.blake2b(digest_size=8), make_streams(4, 40)
    for spec in ("kropki:width=12,height=12", "kropki:width=9,height=3,territory=immediate"):
        games = new_games(load_variant(spec), streams)
        _play_out(games, streams)
        digest.update(games.tobytes())
    return digest.hexdigest()


@jit
def _play_out(games, streams) -> None:
    for index in range(len(games)):
        playout(games[index], streams, index)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "play"),
    [
        ("NUMBA_DISABLE_JIT", play_batches),
        pytest.param("NUMBA_BOUNDSCHECK", play_out, marks=pytest.mark.exhaustive),
    ],
)
def test_other_modes_give_the_same_results(mode, play, tmp_path: Path) -> None:
    code = f"from kropki.test_kropki_modes import {play.__name__} as play; print(play())"
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {mode: "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": path}
    if mode == "NUMBA_BOUNDSCHECK":
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)  # other tests must not load code with bounds checks
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == play()
