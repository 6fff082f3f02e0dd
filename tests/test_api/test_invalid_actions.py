"""Tests that invalid actions raise the documented errors in `Game` and all environments, and change nothing."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import gymnasium
import numpy as np
import pytest

from ninetka_agents.one_seat import one_seat, one_seat_vector
from ninetka_env import ninetka_v0
from ninetka_env.core.options import short_repr

NON_INTEGERS = [
    *(
        None,
        True,
        False,
        24.0,
        np.float64(24),
        float("nan"),
        float("inf"),
        24 + 0j,
        Decimal(24),
        Fraction(24),
        "24",
        "",
    ),
    *(b"24", [24], (24,), [], {24}, {}, object(), np.bool_(True), np.str_("24"), np.array([24]), np.array(24.0)),
    *(np.datetime64(24, "D"), np.zeros((3, 3)), np.array([None]), "x" * 5000, range(3)),
]
ILLEGAL_ACTIONS = [-1, 122, 2**31, 2**63, 2**64, -(10**30), 10**5000, np.int64(-1), np.uint64(2**64 - 1), np.array(122)]
WRONG_SHAPES = [24, [24], [24, 24, 24], [[24, 24]], np.full((2, 1), 24), [[24], [24, 24]], np.zeros((0, 2), int)]
"""Integers whose shape is wrong for two games."""


def entry_points():
    game = ninetka_v0.Game.new(2)
    aec = ninetka_v0.raw_env()
    aec.reset(seed=0)
    alone = one_seat(opponents="random")
    alone.reset(seed=0)
    return [
        (game.play, lambda: game.records),
        (aec.step, lambda: aec.game.records),
        (alone.step, lambda: alone.game.records),
    ]


def vector_entry_points():
    vector, many = ninetka_v0.vector_env(2), one_seat_vector(2, opponents="random")
    many.reset(seed=0)
    return [(vector.step, lambda: vector.games), (many.step, lambda: many._batch.games)]


def check(play, records, action, kinds):
    before = records().tobytes()
    with pytest.raises(kinds) as caught:
        play(action)
    assert records().tobytes() == before
    assert len(str(caught.value)) < 700
    assert len(str(caught.value).splitlines()) == 1


def test_non_integers_raise_type_error():
    for play, records in entry_points():
        for action in NON_INTEGERS:
            check(play, records, action, TypeError)
    for play, records in vector_entry_points():
        for action in NON_INTEGERS:
            if type(action) not in (list, range):
                check(play, records, action, (TypeError, ValueError))
            check(play, records, [action, action], (TypeError, ValueError))


def test_illegal_integers_raise_value_error():
    for play, records in entry_points():
        for action in ILLEGAL_ACTIONS:
            check(play, records, action, ValueError)
    for play, records in vector_entry_points():
        for action in (-1, 122, 2**31, 2**62):
            check(play, records, [24, action], ValueError)
        for actions in WRONG_SHAPES:
            check(play, records, actions, ValueError)


def test_gymnasium_wrappers_raise_the_same_errors():
    env = gymnasium.make("ninetka_env:ninetka_env/Ninetka-v0", opponents="random", disable_env_checker=True)
    env.reset(seed=0)
    for action, kind in ((None, TypeError), (24.0, TypeError), ("24", TypeError), (10**30, ValueError)):
        check(env.step, lambda: env.unwrapped.game.records, action, kind)


@pytest.mark.parametrize(
    "count", [99999999999999, 10**18, 10**30, 10**5000, 0, -1, 1.0, None, "2", True], ids=short_repr
)
def test_invalid_num_envs_and_num_threads_are_refused(count):
    for make in (ninetka_v0.vector_env, one_seat_vector):
        with pytest.raises(ValueError, match=r"^num_envs="):
            make(count)
    if count is not None and count != 99999999999999:  # the number of threads is limited to the number of cores
        with pytest.raises(ValueError, match=r"^num_threads="):
            ninetka_v0.vector_env(2, num_threads=count)
    assert ninetka_v0.vector_env(2, num_threads=99999999999999).num_envs == 2


def test_quoted_values_are_short():
    nested = [1]
    for _ in range(2000):
        nested = [nested, nested]
    for value in (nested, 10**5000, "x" * 5000, np.zeros((50, 50)), list(range(10**6)), {"a": "x" * 1000}):
        assert len(short_repr(value)) < 90
        assert len(short_repr(value).splitlines()) == 1
    assert short_repr([1, "a"]) == "[1, 'a']"
