"""Tests of the arrays of `vector_env`: copies, checks of writes, and what `close` and copies of an environment keep."""

from __future__ import annotations

import copy
import gc
import pickle
import time
import weakref

import numba
import numpy as np
import pytest

from ninetka_env import go_v0, kropki_v0, ninetka_v0

MODULES = {"ninetka": ninetka_v0, "go": go_v0, "kropki": kropki_v0}
OPTIONS = {"ninetka": {}, "go": {"size": 5}, "kropki": {"width": 5, "height": 4}}
ARRAYS = (
    "observations", "action_mask", "to_move", "rewards", "terminated", "final_scores", "final_winner", "games",
)  # fmt: skip
every_game = pytest.mark.parametrize("name", MODULES)


def make(name="go", num_envs=3, **options):
    return MODULES[name].vector_env(num_envs, **OPTIONS[name], **options)


def arrays_of(envs):
    return {name: getattr(envs, name) for name in ARRAYS}


def contents(envs):
    return {name: array.tobytes() for name, array in arrays_of(envs).items()}


def random_steps(envs, rng, steps):
    for _ in range(steps):
        yield envs.step([int(rng.choice(np.flatnonzero(mask))) for mask in envs.action_mask])


# New arrays


@every_game
def test_copies_are_never_overwritten_and_equal_the_arrays_of_the_default(name):
    fresh, plain = make(name, copy=True), make(name)
    kept, expected = [], []
    for envs in (fresh, plain):
        envs.reset(seed=0)
    pairs = zip(*(random_steps(envs, np.random.default_rng(0), 150) for envs in (fresh, plain)), strict=True)
    for step, (mine, theirs) in enumerate(pairs):
        kept.append(arrays_of(fresh))
        expected.append(contents(plain))
        assert all(
            one is getattr(fresh, name)
            for one, name in zip(mine, ("observations", "rewards", "terminated"), strict=True)
        )
        assert [one.tobytes() for one in mine] == [one.tobytes() for one in theirs]
        if step % 50 == 20:
            for envs in (fresh, plain):
                envs.reset(seed=step)
    assert [{name: one.tobytes() for name, one in arrays.items()} for arrays in kept] == expected


@every_game
def test_writes_to_copies_have_no_effect(name):
    fresh, plain = make(name, copy=True), make(name)
    for envs in (fresh, plain):
        envs.reset(seed=0)
    for _ in zip(*(random_steps(envs, np.random.default_rng(0), 60) for envs in (fresh, plain)), strict=True):
        assert contents(fresh) == contents(plain)
        mask = fresh.action_mask.copy()
        for array in arrays_of(fresh).values():
            array[:] = np.ones(1, array.dtype)
        fresh.action_mask[:] = mask  # for the next random action


def test_the_default_arrays_stay_the_same_objects():
    envs = make()
    before = arrays_of(envs)
    for observations, rewards, terminated in random_steps(envs, np.random.default_rng(0), 3):
        assert observations is before["observations"]
        assert rewards is before["rewards"]
        assert terminated is before["terminated"]
    assert envs.reset(seed=0) is before["observations"]
    assert all(getattr(envs, name) is array for name, array in before.items())
    assert all(array.flags.writeable for array in before.values())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
@pytest.mark.parametrize("is_copying", [False, True])
def test_duplicates_of_an_environment_share_nothing(duplicate, is_copying):
    envs = make(copy=is_copying)
    list(random_steps(envs, np.random.default_rng(0), 5))
    before = contents(envs)
    twin = duplicate(envs)
    list(random_steps(twin, np.random.default_rng(0), 5))
    assert contents(envs) == before != contents(twin)
    list(random_steps(envs, np.random.default_rng(0), 5))
    assert contents(envs) == contents(twin)


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_copy_is_a_boolean(value):
    with pytest.raises(ValueError, match=r"copy=.*: expected one of False, True"):
        make(copy=value)


# Checks of writes


@pytest.fixture
def checked(monkeypatch):
    monkeypatch.setenv("NINETKA_CHECK_BUFFERS", "1")


@every_game
@pytest.mark.usefixtures("checked")
def test_a_write_to_an_array_is_found_and_undone(name):
    envs, plain = make(name), make(name, copy=True)
    for one in (envs, plain):
        one.reset(seed=0)
    for array_name in ARRAYS:
        steps = zip(*(random_steps(one, np.random.default_rng(0), 3) for one in (envs, plain)), strict=True)
        for _ in steps:
            before = contents(envs)
            array = getattr(envs, array_name)
            actions = envs.action_mask.argmax(axis=1)
            for call in (lambda actions=actions: envs.step(actions), envs.reset):
                array[1:] = array[0] if array_name == "games" else array[1:] + 1
                if array.tobytes() == before[array_name]:  # all games have equal states
                    break
                with pytest.raises(RuntimeError, match=rf"^{array_name} of game 1 has changed since the last"):
                    call()
                assert contents(envs) == before
        assert contents(envs) == contents(plain)


@pytest.mark.usefixtures("checked")
def test_a_correct_loop_passes_the_checks():
    envs = make()
    for _, _, terminated in random_steps(envs, np.random.default_rng(0), 100):
        envs.reset(options={"reset_mask": terminated})
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="illegal"):
        envs.step([25, 25, 99])
    twin = pickle.loads(pickle.dumps(envs))
    list(random_steps(twin, np.random.default_rng(0), 3))
    twin.observations[2, 0] = 5
    with pytest.raises(RuntimeError, match="observations of game 2"):
        twin.step([25] * 3)
    list(random_steps(envs, np.random.default_rng(0), 3))


@pytest.mark.parametrize("value", ["", "0", None])
def test_writes_are_not_checked_by_default(monkeypatch, value):
    monkeypatch.delenv("NINETKA_CHECK_BUFFERS", raising=False)
    if value is not None:
        monkeypatch.setenv("NINETKA_CHECK_BUFFERS", value)
    envs = make()
    envs.rewards[:] = 5
    envs.step([25] * 3)


# Closing


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="plain Python steps on one thread")
def test_closed_environments_keep_no_thread_teams():
    envs, teams = make("ninetka", 1100, num_threads=2), []
    for _ in range(5):
        envs.step(envs.action_mask.argmax(axis=1))
        finalizer, team = envs._close_team, weakref.ref(envs._team)
        envs.close()
        assert not finalizer.alive
        teams.append(team)
    deadline = time.perf_counter() + 10
    while any(team() for team in teams) and time.perf_counter() < deadline:  # the threads may still be ending
        time.sleep(0.01)
        gc.collect()
    assert not any(team() for team in teams)
