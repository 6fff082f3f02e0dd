"""Compare 9tka's features in numpy with the compiled ones, bit for bit."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ninetka.positions import ALL_OPTIONS, random_positions

from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.numpy_features import network_inputs
from ninetka_env.api.observing import observe
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import write_observation
from ninetka_env.games.ninetka.observation import SHAPE


def positions_of(options, count):
    """Return the positions of `count` random games, finished ones included, as states."""
    return np.concatenate([game.records.copy() for seed in range(count) for game in random_positions(options, seed)])


def compare(found, expected):
    for (name, array), compiled in zip(found.items(), expected, strict=True):
        assert array.dtype == np.int8, name
        np.testing.assert_array_equal(array, compiled, name)


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_features_equal_the_compiled_ones(options):
    states = positions_of(options, 7)
    assert len(states) * len(ALL_OPTIONS) > 10_000
    found = network_inputs(*observe(states, load_variant("ninetka", **options._asdict())), options.turn_order)
    compare(found, make_features(states))


def test_any_seat_may_be_the_viewer():
    states = positions_of(ALL_OPTIONS[-1], 2)
    for viewer in range(4):
        observations = np.empty((len(states), *SHAPE), np.int8)
        for state, planes in zip(states, observations, strict=True):
            write_observation(state, viewer, planes.reshape(-1))
        expected = make_features(states, np.full(len(states), viewer))
        compare(network_inputs(observations, expected.mask, "continue"), expected)


def test_bad_arguments_are_refused():
    planes, mask = observe(positions_of(ALL_OPTIONS[0], 1)[:3], load_variant("ninetka"))
    no_phase, two_viewers = planes.copy(), planes.copy()
    no_phase[:, 5:8], two_viewers[:, 15:19] = 0, 1
    for arguments, message in (
        ((planes[0], mask), "observation: expected the shape (N, 23, 11, 11), got (23, 11, 11)"),
        ((planes[:, :16], mask), "observation: expected the shape (N, 23, 11, 11), got (3, 16, 11, 11)"),
        ((planes, mask[:2]), "action_mask: expected the shape (3, 122), got (2, 122)"),
        ((planes, mask, "reverse"), "turn_order='reverse': expected 'restart' or 'continue'"),
        ((no_phase, mask), "planes 5 to 7, the phase: expected exactly one filled plane"),
        ((two_viewers, mask), "planes 15 to 18, the viewer: expected exactly one filled plane"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            network_inputs(*arguments)
    assert network_inputs(planes[:0], mask[:0])["slots"].shape == (0, 36, 69)
