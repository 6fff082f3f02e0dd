"""Test that the compiled code also runs as plain Python, without numba, with the same results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ninetka_agents import make_agent
from ninetka_agents.one_seat import one_seat
from ninetka_agents.search.uct import search
from ninetka_env import ninetka_v0

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def play_a_little(num_players: int) -> list[int]:
    """Play a batch of games with six agents, then a game at random against `maxn`; return the chosen actions."""
    played, rng = [], np.random.default_rng(num_players)
    agents = [
        make_agent(spec)
        for spec in (
            *("random", "maxn:depth=2,random_ties=true", "paranoid:nodes=40", "brs:nodes=40"),
            *("mcts:simulations=8", "solver:nodes=20,simulations=4"),
        )
    ]
    envs = ninetka_v0.vector_env(2, num_players, neutral_placement="random", reward="score")
    envs.reset(seed=1)
    for ply in range(75):
        actions = agents[0 if ply < 65 else ply % len(agents)].act(envs.games, rng)
        played += actions.tolist()
        envs.step(actions)
    env = one_seat(num_players=num_players, opponents="maxn:depth=1", turn_order="continue")
    env.reset(seed=2)
    over = False
    while not over:
        played.append(int(rng.choice(np.flatnonzero(env.action_masks()))))
        over = env.step(played[-1])[2]
    return played


def search_late_placements() -> list[int]:
    """Search positions in which few stones are left to place; return the visits of all actions."""
    rng, envs = np.random.default_rng(0), ninetka_v0.vector_env(2, 3)
    envs.reset(seed=1)
    for _ in range(40):
        envs.step(make_agent("random").act(envs.games, rng))
    return [int(count) for game in envs.games for count in search(ninetka_v0.Game(game.reshape(1)), 40, rng).visits]


def uncompiled(call: str) -> str:
    """Return what a call of a function in this module returns, as text, in a process without the compiler."""
    code = f"import test_uncompiled; print(test_uncompiled.{call})"
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_uncompiled_code_chooses_the_same_actions(num_players: int) -> None:
    assert uncompiled(f"play_a_little({num_players})") == str(play_a_little(num_players))


def test_uncompiled_searches_that_place_stones_visit_the_same_actions() -> None:
    """Choices are small numpy integers in the nodes of a tree; shifts by them once overflowed."""
    assert uncompiled("search_late_placements()") == str(search_late_placements())
