"""Tests of `ninetka_env.api.observing.observe`: it must return the same as the environments."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.aec import GameAEC
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


@pytest.mark.parametrize("name", [name for name in BATCHES if name != EXHAUSTIVE])
def test_each_seat_sees_a_game_as_in_pettingzoo(name):
    variant = BATCHES[name]().variant
    env, rng = GameAEC(variant), np.random.default_rng(1)
    env.reset(seed=1)
    while True:
        for seat, agent in enumerate(env.possible_agents):
            seen, expected = observe(env.game.records, variant, seats=seat), env.observe(agent)
            np.testing.assert_array_equal(seen.observations[0], expected["observation"])
            np.testing.assert_array_equal(seen.action_mask[0], expected["action_mask"])
        if env.game.is_over:
            return
        env.step(int(rng.choice(env.game.legal_actions())))


def test_each_game_has_its_own_seat():
    envs = BATCHES["9tka, 3 players"]()
    seats = np.arange(8) % 3
    seen = observe(envs.games, envs.variant, seats)
    for index, seat in enumerate(seats):
        one = observe(envs.games[index : index + 1], envs.variant, seats=int(seat))
        np.testing.assert_array_equal(seen.observations[index], one.observations[0])
        np.testing.assert_array_equal(seen.action_mask[index], one.action_mask[0])
    assert (seen.action_mask.any(axis=1) == (seats == envs.to_move)).all()


@pytest.mark.parametrize(
    "convert",
    [
        lambda seats: seats.tolist(),
        lambda seats: seats.astype(np.uint64),
        lambda seats: np.repeat(seats, 2)[::2],
        lambda seats: seats.astype(">i4"),
    ],
)
def test_seats_in_any_form(convert):
    envs, rng = BATCHES["9tka, 3 players"](), np.random.default_rng(0)
    seats = rng.integers(0, 3, 8)
    expected = observe(envs.games, envs.variant, seats)
    for found, wanted in zip(observe(envs.games, envs.variant, convert(seats)), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("seats", "error", "message"),
    [
        (3, ValueError, "seats: game 0 has no seat 3: expected 0..2"),
        (-1, ValueError, "seats: game 0 has no seat -1: expected 0..2"),
        ([0, 1, 2, 0, 1, 2, 0, 9], ValueError, "seats: game 7 has no seat 9: expected 0..2"),
        (np.full(8, 2**64 - 1, np.uint64), ValueError, "seats: game 0 has no seat 18446744073709551615"),
        ([0, 1], ValueError, r"seats: expected an integer or shape \(8,\), got shape \(2,\)"),
        (np.zeros((8, 1), np.int8), ValueError, r"seats: .* got shape \(8, 1\)"),
        (1.0, TypeError, r"seats=1.0: expected an integer or \(8,\) integers"),
        (True, TypeError, "seats=True: expected"),
        ("0", TypeError, "seats='0': expected"),
        (2**70, TypeError, "seats=1180591620717411303424: expected"),
        ([[0], [1, 2]], TypeError, "seats=.* expected"),
    ],
)
def test_seats_that_do_not_exist_are_refused(seats, error, message):
    envs = BATCHES["9tka, 3 players"]()
    with pytest.raises(error, match=message):
        observe(envs.games, envs.variant, seats=seats)


def test_slices_of_a_batch():
    envs = ninetka_v0.vector_env(9)
    np.testing.assert_array_equal(observe(envs.games[1::3], envs.variant).observations, envs.observations[1::3])
    assert observe(envs.games[:0], envs.variant).observations.shape == (0, 23, 11, 11)


@pytest.mark.parametrize(
    ("name", "variant", "message"),
    [
        ("go", "ninetka", "states of another game, Go: expected states of ninetka"),
        ("go", "go:size=7", "another size of the board or other rules: expected states of go:size=7"),
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
