"""Tests of `ninetka_env.api.observing.observe`: it must return the same as the environments."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.observing import observe
from ninetka_env.core.registry import load_variant

BATCHES = {
    "9tka, 3 players": lambda: ninetka_v0.vector_env(8, num_players=3),
    "9tka, passes": lambda: ninetka_v0.vector_env(8, auto_pass=False, neutral_placement="random"),
    "go": lambda: go_v0.vector_env(8, size=5, komi=0.5),
    "go, other planes": lambda: go_v0.vector_env(8, size=9, planes="alphazero", ko="situational"),
    "kropki": lambda: kropki_v0.vector_env(8, width=6, height=4),
    "kropki, immediate": lambda: kropki_v0.vector_env(8, width=4, height=6, territory="immediate"),
}


EXHAUSTIVE = "go, other planes"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive) if name == EXHAUSTIVE else name for name in BATCHES]
)
def test_observations_equal_those_of_the_vector_environment(name):
    envs, rng = BATCHES[name](), np.random.default_rng(0)
    envs.reset(seed=0)
    for _ in range(60):
        seen = observe(envs.games, envs.variant)
        np.testing.assert_array_equal(seen.observations, envs.observations)
        np.testing.assert_array_equal(seen.action_mask, envs.action_mask)
        assert seen.observations.dtype == seen.action_mask.dtype == np.int8
        envs.step((envs.action_mask * rng.random(envs.action_mask.shape)).argmax(axis=1))
    assert seen.observations is not envs.observations


def test_slices_of_a_batch():
    envs = ninetka_v0.vector_env(9)
    np.testing.assert_array_equal(observe(envs.games[1::3], envs.variant).observations, envs.observations[1::3])
    assert observe(envs.games[:0], envs.variant).observations.shape == (0, 23, 11, 11)


@pytest.mark.parametrize(
    ("name", "variant", "message"),
    [
        ("go", "ninetka", "states of another game or board size: expected states of ninetka"),
        ("go", "go:size=7", "another game or board size: expected states of go:size=7"),
        ("go", "go:size=5,komi=0.5,planes=alphazero", "another planes: expected states of go:.*planes=alphazero"),
        ("kropki", "kropki:width=4,height=6", "another height: expected states of kropki:width=4,height=6"),
        ("9tka, 3 players", "ninetka", "another num_players: expected states of ninetka"),
    ],
)
def test_states_of_other_games_are_refused(name, variant, message):
    with pytest.raises(ValueError, match=message):
        observe(BATCHES[name]().games, load_variant(variant))


@pytest.mark.parametrize("select", [lambda games: games[0], lambda games: games.reshape(2, 4), lambda games: [1]])
def test_a_single_state_is_refused(select):
    envs = BATCHES["go"]()
    with pytest.raises(ValueError, match=r"expected a state array of shape \(N,\)"):
        observe(select(envs.games), envs.variant)
