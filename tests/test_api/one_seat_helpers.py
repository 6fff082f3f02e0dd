"""Helpers of the tests of one-seat environments: small games, agents, comparisons of vector environments."""

from __future__ import annotations

import gymnasium
import numpy as np

from ninetka_env.core.registry import definition_of

IDS = {name: f"ninetka_env:ninetka_env/{name}-v0" for name in ("Ninetka", "Go", "Kropki")}
SMALL = {
    "Ninetka": {"num_players": 3},
    "Go": {"size": 5, "max_plies": 16},
    "Kropki": {"width": 5, "height": 4},
}
"""Options with short games, by the names in `IDS`."""


def game_of(games, index=0):
    """Return the `Game` of an element of a state array of any game."""
    return definition_of(games.dtype).game_class(games[index : index + 1])


class FirstAgent:
    """An agent for any game that plays the lowest legal action."""

    name = "first"

    def act(self, games, rng):
        return np.array([game_of(games, index).legal_actions()[0] for index in range(len(games))])


class ChoosingAgent(FirstAgent):
    """An agent for any game that draws from `rng` once per game of a call, as agents of users do."""

    name = "choosing"

    def act(self, games, rng):
        return np.array([rng.choice(game_of(games, index).legal_actions()) for index in range(len(games))])


def make(name, **options):
    return gymnasium.make(IDS[name], **SMALL[name] | options).unwrapped


def make_vec(name, num_envs, **options):
    return gymnasium.make_vec(IDS[name], num_envs=num_envs, **SMALL[name] | options).unwrapped


def masked(rng, mask):
    return int(rng.choice(np.flatnonzero(mask)))


def actions_for(envs, rng):
    """Draw a legal action for each game; for a game without a legal action, return -7, which is always illegal."""
    return np.array([masked(rng, mask) if mask.any() else -7 for mask in envs.unwrapped.action_masks()])


def assert_equal(one, two):
    """Check that two results of `reset` or `step` of vector environments are equal."""
    *results, infos = one
    *expected_results, expected = two
    for result, wanted in zip(results, expected_results, strict=True):
        assert (np.asarray(result) == np.asarray(wanted)).all()
    assert set(infos) == set(expected)
    assert_equal_infos(infos, expected)
    if "_final_obs" in infos:
        over = infos["_final_obs"]
        assert (over == expected["_final_obs"]).all()
        assert (over == infos["_final_info"]).all()
        assert (infos["final_obs"][over] == np.stack(expected["final_obs"][over])).all()
        assert_equal_infos(infos["final_info"], expected["final_info"])


def assert_equal_infos(infos, expected):
    """Check that both infos contain masks, seats and so on of the same games, with equal values."""
    names = {name for name in infos if not name.startswith(("_", "final_"))}
    assert names >= {"action_mask", "seat"}
    for name in names:
        there = expected[f"_{name}"]
        assert (infos[f"_{name}"] == there).all(), f"_{name}"
        assert (infos[name][there] == expected[name][there]).all(), name
