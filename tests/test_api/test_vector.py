"""Tests of the vector environment: equality with the PettingZoo environment, threads, and how threads share work."""

from __future__ import annotations

import copy
import gc
import itertools
import multiprocessing
import pickle
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from ninetka.positions import ALL_OPTIONS
from scale import Scaled

from ninetka_env import ninetka_v0
from ninetka_env.api import vector
from ninetka_env.api.aec import observation_space
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import load_variant
from ninetka_env.core.threads import (
    ThreadTeam,
    claim,
    default_num_threads,
    make_control,
    open_shares,
    run_shared,
    share_start,
)
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.observation import SHAPE
from ninetka_env.games.ninetka.rules import STATE_DTYPE

ARRAYS = ("observations", "action_mask", "to_move", "rewards", "terminated", "final_scores", "final_winner", "games")
MANY = 2 * vector.MIN_GAMES_PER_THREAD + 100
"""A number of games for which a second thread is started."""

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="needs compiled loops, which threads share")
two_threads = pytest.mark.skipif(default_num_threads() < 2, reason="needs two processors")


def make_started(num_envs, *args, seed=0, **options):
    envs = ninetka_v0.vector_env(num_envs, *args, **options)
    envs.reset(seed=seed)
    return envs


def random_actions(envs, rng):
    return (envs.action_mask * rng.random(envs.action_mask.shape)).argmax(axis=1)


def play(envs, rng, steps):
    for _ in range(steps):
        envs.step(random_actions(envs, rng))


def contents(envs):
    return {name: getattr(envs, name).tobytes() for name in ARRAYS}


# Equality with the PettingZoo environment


class Twin:
    """One game of a batch, played in the PettingZoo environment."""

    def __init__(self, seed, **options):
        self.env = ninetka_v0.raw_env(**options)
        self.env.reset(seed=seed)
        self.final_scores, self.final_winner = [0] * options["num_players"], UNFINISHED
        self.rewards, self.terminated = dict.fromkeys(self.env.agents, 0.0), False

    def step(self, action):
        self.env.step(action)
        self.rewards, self.terminated = dict(self.env.rewards), self.env.game.is_over
        if self.terminated:
            self.final_scores, self.final_winner = self.env.game.scores().tolist(), self.env.game.winner()
            self.env.reset()

    def assert_equal(self, envs, i):
        env = self.env
        seen = env.observe(env.agent_selection)
        assert envs.to_move[i] == env.game.to_move
        assert (envs.observations[i] == seen["observation"]).all()
        assert (envs.action_mask[i] == seen["action_mask"]).all()
        assert envs.rewards[i].tolist() == list(self.rewards.values())
        assert envs.terminated[i] == self.terminated
        assert envs.final_scores[i].tolist() == self.final_scores
        assert envs.final_winner[i] == self.final_winner
        assert Game(envs.games[i : i + 1]) == env.game


@pytest.mark.parametrize("reward", ["win", "score"])
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_every_game_equals_the_pettingzoo_environment(options, reward, scaled: Scaled):
    settings = options._asdict() | {"reward": reward}
    num_envs, rng, ended = scaled(4, 2), np.random.default_rng(0), 0
    envs = ninetka_v0.vector_env(num_envs, **settings)
    for seed, steps in ((7, 190), (8, 50)):  # the second reset comes in the middle of games
        envs.reset(seed=seed)
        twins = [Twin(seed + i, **settings) for i in range(num_envs)]
        for _ in range(steps):
            for i, twin in enumerate(twins):
                twin.assert_equal(envs, i)
            actions = random_actions(envs, rng)
            envs.step(actions)
            for twin, action in zip(twins, actions.tolist(), strict=True):
                twin.step(action)
            ended += envs.terminated.sum()
    assert ended >= 2 * num_envs


def test_arrays_are_what_the_documentation_says():
    envs = make_started(5, 3)
    shapes = {
        "observations": ((5, *SHAPE), np.int8),
        "action_mask": ((5, 122), np.int8),
        "to_move": ((5,), np.int8),
        "rewards": ((5, 3), np.float32),
        "terminated": ((5,), np.bool_),
        "final_scores": ((5, 3), np.int8),
        "final_winner": ((5,), np.int8),
    }
    for name, (shape, dtype) in shapes.items():
        array = getattr(envs, name)
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.flags.c_contiguous
    assert envs.single_observation_space == observation_space(load_variant("ninetka"))
    assert envs.single_action_space.n == 122
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP


def test_arrays_are_the_same_objects_after_every_call():
    envs = ninetka_v0.vector_env(3)
    before = [getattr(envs, name) for name in ARRAYS]
    assert envs.reset(seed=0) is envs.observations
    rng = np.random.default_rng(0)
    for _ in range(100):
        for returned, name in zip(
            envs.step(random_actions(envs, rng)), ("observations", "rewards", "terminated"), strict=True
        ):
            assert returned is getattr(envs, name)
    envs.reset()
    assert all(getattr(envs, name) is array for name, array in zip(ARRAYS, before, strict=True))


def test_there_is_always_a_legal_action():
    envs = make_started(8, 2, auto_pass=False)
    rng, passes = np.random.default_rng(0), 0
    for _ in range(200):
        assert envs.action_mask.any(axis=1).all()
        passes += envs.action_mask[:, PASS].sum()
        envs.step(random_actions(envs, rng))
    assert passes


# Seeds


def test_a_seed_gives_game_i_the_stream_of_seed_plus_i():
    envs = make_started(4, 2, neutral_placement="random", seed=10)
    boards = [Game(envs.games[i : i + 1]).board.tolist() for i in range(4)]
    assert boards == [Game.new(2, neutral_placement="random", seed=10 + i).board.tolist() for i in range(4)]
    assert len({str(board) for board in boards}) == 4


@pytest.mark.parametrize("seed", [0, 2**32 - 30, 2**40 + 7, 2**64 - 60, 2**64 - 59, 2**64, 3 * 2**127])
def test_streams_are_those_of_numpy(seed):
    for count in (1, 60):
        words = [np.random.SeedSequence(seed + number).generate_state(1, np.uint64)[0] for number in range(count)]
        assert make_streams(seed, count).tolist() == words


def test_without_a_seed_the_random_streams_continue():
    def draws(envs, *seeds):
        for seed in seeds:
            envs.reset(seed=seed)
            yield envs.games.tobytes()

    envs = ninetka_v0.vector_env(2, neutral_placement="random")
    first = list(draws(envs, 3, None, None))
    assert list(draws(envs, 3, None, None)) == first
    assert len(set(first)) == 3
    assert next(draws(ninetka_v0.vector_env(2, neutral_placement="random"), None)) not in first


def test_a_reset_forgets_old_results():
    envs = make_started(4)
    fresh = contents(envs)
    play(envs, np.random.default_rng(0), 85)
    assert (envs.final_winner >= 0).all()
    envs.reset(seed=0)
    assert contents(envs) == fresh


# Random actions


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_random_actions_are_legal_and_follow_from_the_seed(options):
    one, two = (make_started(5, seed=3, **options._asdict()) for _ in range(2))
    for _ in range(150):
        actions = one.sample_legal()
        assert (actions.shape, actions.dtype) == ((5,), np.int64)
        assert (one.action_mask[np.arange(5), actions] == 1).all()
        np.testing.assert_array_equal(actions, two.sample_legal())
        one.step(actions)
        two.step(actions)
    alone = ninetka_v0.vector_env(1, **options._asdict())
    for index in range(5):
        alone.reset(seed=3 + index)
        one.reset(seed=3)
        for _ in range(5):
            assert alone.sample_legal()[0] == one.sample_legal()[index]


def test_random_actions_do_not_change_the_games():
    envs, twin = (make_started(4, neutral_placement="random") for _ in range(2))
    for step in range(200):
        if step % 3 == 0:
            envs.sample_legal()
        play(envs, np.random.default_rng(step), 1)
        play(twin, np.random.default_rng(step), 1)
    assert contents(envs) == contents(twin)


def test_random_actions_are_uniform():
    envs = make_started(1)
    counts = np.zeros(122, np.int64)
    for _ in range(4900):
        counts[envs.sample_legal()] += 1
    legal = envs.action_mask[0] == 1
    assert counts[~legal].sum() == 0
    assert ((counts[legal] - 100) ** 2 / 100).sum() < 100  # chi-square with 48 degrees of freedom


def test_a_partial_reset_seeds_only_the_random_actions_of_its_games():
    envs, twin = make_started(3, seed=0), make_started(3, seed=0)
    before = twin.sample_legal()
    envs.sample_legal()
    envs.reset(seed=0, options={"reset_mask": np.array([True, False, True])})
    twin_second = twin.sample_legal()
    found = envs.sample_legal()
    assert found.tolist() == [before[0], twin_second[1], before[2]]


def test_random_actions_are_new_arrays():
    envs = make_started(3)
    first = envs.sample_legal()
    kept = first.copy()
    envs.step(first)
    envs.sample_legal()
    np.testing.assert_array_equal(first, kept)


# Wrong actions and options


@pytest.mark.parametrize(("num_envs", "index"), [(3, 0), (3, 2), (MANY, 555)])
@pytest.mark.parametrize("action", [0, PASS, 122, -1, 2**40])
def test_an_illegal_action_names_its_game_and_moves_nothing(num_envs, index, action):
    envs = make_started(num_envs)
    rng = np.random.default_rng(0)
    play(envs, rng, 3)
    before = contents(envs)
    actions = random_actions(envs, rng)
    actions[index] = action
    with pytest.raises(ValueError, match=rf"^game {index}: action {action}\b.*NEUTRAL"):
        envs.step(actions)
    assert contents(envs) == before
    play(envs, rng, 1)
    assert contents(envs) != before


@pytest.mark.parametrize("change", [lambda a: a[:2], lambda a: a[:, None], lambda a: a[0], lambda a: [[24, 24, 24]]])
def test_actions_have_one_shape(change):
    envs = make_started(3)
    before = contents(envs)
    with pytest.raises(ValueError, match=r"actions: expected shape \(3,\)"):
        envs.step(change(np.array([24, 24, 24])))
    assert contents(envs) == before


@pytest.mark.parametrize("dtype", [np.float64, np.bool_, object, str, np.complex64])
def test_actions_are_integers(dtype):
    envs = make_started(3)
    before = contents(envs)
    with pytest.raises(TypeError, match="actions: expected integers"):
        envs.step(np.array([24, 24, 24]).astype(dtype))
    assert contents(envs) == before


@pytest.mark.parametrize(
    "convert", [list, tuple, lambda a: a.astype(np.int8), lambda a: a.astype(np.uint64), lambda a: a[::-1]]
)
def test_actions_may_be_any_integers(convert):
    one, two = make_started(3), make_started(3)
    one.step(np.array([24, 27, 30])[::-1] if convert(np.arange(3))[0] == 2 else np.array([24, 27, 30]))
    two.step(convert(np.array([24, 27, 30])))
    assert contents(one) == contents(two)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"num_envs": 0}, r"num_envs=0: .*at least 1"),
        ({"num_envs": 2.0}, r"num_envs=2\.0: .*at least 1"),
        ({"num_envs": True}, r"num_envs=True: .*at least 1"),
        ({"num_threads": 0}, r"num_threads=0: .*at least 1"),
        ({"num_threads": "2"}, r"num_threads='2': .*at least 1"),
        ({"num_players": 5}, r"num_players=5: .*2, 3, 4"),
        ({"neutral_placement": 0}, r"neutral_placement=0: .*'players', 'random'"),
        ({"turn_order": "reverse"}, r"turn_order='reverse': .*'restart', 'continue'"),
        ({"auto_pass": None}, r"auto_pass=None: .*False, True"),
        ({"reward": ""}, r"reward='': .*'win', 'score'"),
    ],
)
def test_a_wrong_option_is_named_with_the_allowed_values(option, message):
    with pytest.raises(ValueError, match=message):
        ninetka_v0.vector_env(**{"num_envs": 2} | option)


# Threads


@compiled
@pytest.mark.parametrize("wrong", [[0], [MANY - 1], [MANY - 1, 5, 700], [64, 63]])
def test_threads_name_the_first_illegal_action_and_change_nothing(wrong):
    envs = make_started(MANY, num_threads=2)
    play(envs, np.random.default_rng(0), 3)
    for _ in range(20):
        before, actions = contents(envs), envs.sample_legal()
        actions[wrong] = PASS
        with pytest.raises(ValueError, match=rf"^game {min(wrong)}: action {PASS}\b"):
            envs.step(actions)
        assert contents(envs) == before
        envs.step(envs.sample_legal())


def test_helpers_are_compiled_before_their_threads_start():
    """A process that ends while a thread compiles would crash."""
    callers = []
    team = ThreadTeam(1, lambda control, share: callers.append((threading.current_thread(), share)), make_control(2))
    deadline = time.perf_counter() + 10
    while len(callers) < 2 and time.perf_counter() < deadline:
        time.sleep(0.01)
    team.close()
    assert callers[0] == (threading.current_thread(), 0)
    assert callers[1][0] is not threading.current_thread()


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_threads_do_not_change_the_games(num_players):
    options = {"neutral_placement": "random", "auto_pass": num_players != 3, "reward": "score"}
    one, two = (make_started(MANY, num_players, num_threads=threads, **options) for threads in (1, 2))
    rng = np.random.default_rng(num_players)
    for step in range(150):
        np.testing.assert_array_equal(one.sample_legal(), two.sample_legal())
        actions = random_actions(one, rng)
        one.step(actions)
        two.step(actions)
        if step % 25 == 0:
            time.sleep(0.02)  # long enough for a helper to fall asleep
        for name in ARRAYS:
            assert (getattr(one, name) == getattr(two, name)).all(), (step, name)


def started_threads(envs):
    """Step once and return the number of threads that the step started."""
    before = set(threading.enumerate())  # includes helpers of earlier tests, which may end during the step
    play(envs, np.random.default_rng(0), 1)
    return len(set(threading.enumerate()) - before)


@compiled
@two_threads
def test_helper_threads_are_started_for_enough_games():
    assert started_threads(make_started(MANY)) >= 1
    assert started_threads(make_started(MANY, num_threads=1)) == 0
    assert started_threads(make_started(vector.MIN_GAMES_PER_THREAD)) == 0


@compiled
@two_threads
def test_helper_threads_end_with_the_environment():
    before = set(threading.enumerate())  # includes helpers of earlier tests, which may still be ending
    envs = make_started(MANY)
    play(envs, np.random.default_rng(0), 3)
    time.sleep(0.05)
    play(envs, np.random.default_rng(0), 1)
    helpers = set(threading.enumerate()) - before
    assert helpers
    del envs
    gc.collect()
    deadline = time.perf_counter() + 10
    while any(helper.is_alive() for helper in helpers) and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert not any(helper.is_alive() for helper in helpers)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
@pytest.mark.parametrize("num_envs", [3, pytest.param(MANY, marks=compiled)])
def test_a_copy_continues_identically(duplicate, num_envs):
    envs = make_started(num_envs, 3, neutral_placement="random")
    play(envs, np.random.default_rng(0), 60)
    before = contents(envs)
    twin = duplicate(envs)
    assert contents(twin) == before
    play(twin, np.random.default_rng(1), 60)
    assert contents(envs) == before  # nothing is shared
    play(envs, np.random.default_rng(1), 60)
    assert contents(twin) == contents(envs)
    envs.reset()
    twin.reset()
    assert contents(twin) == contents(envs)


@compiled
def test_it_can_be_stepped_from_any_thread():
    envs, expected = make_started(MANY), make_started(MANY, num_threads=1)
    play(expected, np.random.default_rng(0), 30)
    rng = np.random.default_rng(0)
    play(envs, rng, 10)
    other = threading.Thread(target=play, args=(envs, rng, 10))
    other.start()
    other.join()
    play(envs, rng, 10)
    assert contents(envs) == contents(expected)


@compiled
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_it_works_in_a_forked_child_whose_helpers_are_gone():
    envs, rng = make_started(MANY), np.random.default_rng(0)
    play(envs, rng, 10)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def continue_playing():
        play(envs, rng, 20)
        there.send(contents(envs))

    child = context.Process(target=continue_playing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns about a fork in a process with threads
        child.start()
    answer = here.recv() if here.poll(30) else "the child hangs"
    child.kill()
    child.join()
    play(envs, rng, 20)
    assert answer == contents(envs)


@compiled
def test_environments_of_many_games_are_independent():
    together = [make_started(MANY + n, n, num_threads=2) for n in (2, 3, 4)]
    for step in range(60):
        for envs in together:
            play(envs, np.random.default_rng(step), 1)
    for envs, n in zip(together, (2, 3, 4), strict=True):
        alone = make_started(MANY + n, n, num_threads=1)
        for step in range(60):
            play(alone, np.random.default_rng(step), 1)
        assert contents(envs) == contents(alone)


@compiled
def test_the_step_is_compiled_once():
    for num_players, reward, num_envs in ((2, "win", 1), (3, "score", 5), (4, "win", MANY)):
        envs = make_started(num_envs, num_players, reward=reward, auto_pass=num_players == 2)
        for one in (envs, copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))):
            rng = np.random.default_rng(0)
            play(one, rng, 2)
            one.step(list(random_actions(one, rng)))
            one.step(random_actions(one, rng).astype(np.int8))
            one.reset()
            one.step(one.sample_legal())
    for kernel in (vector._run, vector._write_outputs_of):
        assert times_compiled(kernel) == 1
    assert times_compiled(vector._run_helper) <= 1


def times_compiled(function):
    """Return how many times a function was compiled for states of 9tka."""
    return sum(numba.from_dtype(STATE_DTYPE) in dtypes_of(signature) for signature in function.signatures)


def dtypes_of(arguments):
    """Return numba types for argument types: an array's element type, a tuple's member types, else the type itself."""
    found = []
    for kind in arguments:
        found += dtypes_of(kind.types) if isinstance(kind, numba.types.BaseTuple) else [getattr(kind, "dtype", kind)]
    return found


# Sharing of items among threads


@jit
def count_claims(control, own, counts, chunk):
    """Claim items until none are left, and count how often each item is claimed."""
    while True:
        first, stop = claim(control, own, len(counts), chunk)
        if first == stop:
            return
        for item in range(first, stop):
            counts[item] += 1


@jit
def count_claims_of_one_share(control, counts, chunk):
    count_claims(control, 0, counts, chunk)


@compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_claimed_exactly_once(threads):
    with ThreadPoolExecutor(threads) as pool:
        for count, chunk in itertools.product((1, 2, 7, 64, 1000, 100_003), (1, 3, 64)):
            for _ in range(8):
                counts, control = np.zeros(count, np.int64), make_control(threads)
                open_shares(control, count, 0)
                list(pool.map(lambda own: count_claims(control, own, counts, chunk), range(threads)))  # noqa: B023
                assert (counts == 1).all()


@compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_one_thread_can_do_the_work_of_all(threads):
    counts, control = np.zeros(1000, np.int64), make_control(threads)
    open_shares(control, 1000, 0)
    count_claims(control, threads - 1, counts, 7)
    assert (counts == 1).all()
    assert claim(control, 0, 1000, 7) == (0, 0)


@pytest.mark.parametrize("count", [1, 5, 1000])
@pytest.mark.parametrize("shares", [1, 2, 7])
def test_shares_are_equal_and_leave_nothing_out(count, shares):
    starts = [share_start(share, shares, count) for share in range(shares + 1)]
    sizes = np.diff(starts)
    assert (starts[0], starts[-1]) == (0, count)
    assert max(sizes) - min(sizes) <= 1


@compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_shared_run_does_every_item_once(threads):
    for count in (1, 2, 7, 1000) * 50:
        counts = np.zeros(count, np.int64)
        run_shared(count_claims_of_one_share, threads, counts, 1)
        assert (counts == 1).all()


@compiled
def test_an_error_in_a_helper_thread_is_raised():
    def kernel(control):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("helper")
        time.sleep(0.2)  # so that the helper starts

    with pytest.raises(RuntimeError, match="helper"):
        run_shared(kernel, 2)
