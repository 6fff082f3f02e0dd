"""Tests of the PettingZoo environment: PettingZoo's own tests, and tests of all that PettingZoo does not test."""

from __future__ import annotations

import copy
import functools
import importlib
import itertools
import os
import pickle
import re
import subprocess
import sys
import warnings
from operator import attrgetter
from pathlib import Path

import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from ninetka.positions import ALL_OPTIONS, Options, observe
from pettingzoo.test import api_test, render_test, seed_test
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ninetka_env import go_v0, ninetka_v0
from ninetka_env.api import rendering
from ninetka_env.api.aec import GameAEC
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, PASS
from ninetka_env.games.ninetka.observation import SHAPE

MAKERS = [ninetka_v0.env, ninetka_v0.raw_env]
KNOWN_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "unknown option 'options' of reset",
)
"""Warnings in `api_test`: its own for dict observations unless PettingZoo lists the environment by name, and ours for
the option that it passes to `reset`."""


def make_started(make=ninetka_v0.raw_env, seed=0, **options):
    env = make(**options)
    env.reset(seed=seed)
    return env


def play_plies(env, rng, plies=100):
    """Play random legal actions until the game is over or `plies` have been played; yield after each action."""
    for _ in range(plies):
        if env.terminations[env.agent_selection]:
            return
        env.step(int(rng.choice(env.unwrapped.game.legal_actions())))
        yield


def play(env, rng, plies=100):
    for _ in play_plies(env, rng, plies):
        pass


def snapshot(env):
    """Return the user-visible state of a running environment."""
    return {
        "game": str(env.unwrapped.game),
        "observations": {agent: observation_bytes(env, agent) for agent in env.possible_agents},
        "agents": list(env.agents),
        "agent_selection": env.agent_selection,
        "rewards": dict(env.rewards),
        "cumulative": dict(env.unwrapped._cumulative_rewards),
        "terminations": dict(env.terminations),
        "truncations": dict(env.truncations),
        "infos": dict(env.infos),
    }


def observation_bytes(env, agent):
    return {name: array.tobytes() for name, array in env.observe(agent).items()}


# PettingZoo's own tests


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_pettingzoo_api(make, options):
    for reward in ("win", "score"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", "overflow encountered")  # from uncompiled random streams
            api_test(make(**options._asdict(), reward=reward), num_cycles=200)
        assert [str(one.message) for one in caught if not str(one.message).startswith(KNOWN_WARNINGS)] == []


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_pettingzoo_seed(make, options):
    seed_test(lambda: make(**options._asdict()), num_cycles=200)


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_pettingzoo_render(make, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(rendering, "Window", functools.partial(rendering.Window, fps=1000))
    for num_players in (2, 3, 4):
        render_test(lambda render_mode, n=num_players: make(num_players=n, render_mode=render_mode))


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="this PettingZoo has no registry")
def test_pettingzoo_make():
    """PettingZoo's registry uses the same name as Gymnasium's."""
    env = pettingzoo.make("aec", "ninetka_env/Ninetka-v0", num_players=3, reward="score")
    assert isinstance(env.unwrapped, GameAEC)
    assert env.unwrapped.metadata["name"] == "ninetka_v0"
    env.reset(seed=0)
    assert env.agents == ["player_0", "player_1", "player_2"]
    assert env.unwrapped.game.num_players == 3


# Spaces, masks and observations


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_observations_of_all_seats_at_every_ply_and_after_the_end(make, options):
    env = make_started(make, 0, **options._asdict())
    assert_seen(env)
    for _ in play_plies(env, np.random.default_rng(0)):
        assert_seen(env)
    while env.agents:
        env.step(None)
        assert_seen(env)


def assert_seen(env):
    game = env.unwrapped.game
    for seat, agent in enumerate(env.possible_agents):
        seen = env.observe(agent)
        legal = game.legal_actions().tolist() if seat == game.to_move else []
        assert env.observation_space(agent).contains(seen)
        assert {name: array.dtype for name, array in seen.items()} == {"observation": np.int8, "action_mask": np.int8}
        assert np.flatnonzero(seen["action_mask"]).tolist() == legal
        assert (seen["observation"] == observe(game, seat)).all()
    assert (env.state() == observe(game, 0)).all()
    if env.agents and not game.is_over:
        assert env.agent_selection == f"player_{game.to_move}"
        assert legal or game.to_move != seat


def test_observations_are_fresh_arrays():
    env = make_started()
    before = env.observe("player_0")
    for array in (*before.values(), env.state()):
        array[:] = 7
    again = env.observe("player_0")
    assert max(array.max() for array in (*again.values(), env.state())) == 1
    kept = copy.deepcopy(again)
    play(env, np.random.default_rng(0), 20)
    for name, array in again.items():
        assert (array == kept[name]).all()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_spaces(make, num_players):
    env = make(num_players=num_players)
    assert env.possible_agents == [f"player_{seat}" for seat in range(num_players)]
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observation_space(agent) == env.observation_space("player_0")
        assert env.action_space(agent).n == NUM_ACTIONS
        assert env.observation_space(agent)["observation"].shape == SHAPE
    assert env.metadata["name"] == "ninetka_v0"
    assert set(env.metadata["render_modes"]) == {"human", "rgb_array", "ansi"}
    assert env.metadata["is_parallelizable"] is False


# The end of a game


def expected_rewards(game, reward):
    n, scores = game.num_players, game.scores()
    if reward == "win":
        return [1.0 if seat == game.winner() else -1 / (n - 1) for seat in range(n)]
    return ((scores - scores.mean()) / 9).tolist()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("reward", ["win", "score"])
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_rewards_come_once_and_all_agents_end_together(make, reward, options):
    env = make_started(make, 0, **options._asdict(), reward=reward)
    agents = env.possible_agents
    for _ in play_plies(env, np.random.default_rng(0)):
        game = env.unwrapped.game
        rewards = expected_rewards(game, reward) if game.is_over else [0.0] * len(agents)
        for paid in (env.rewards, env.unwrapped._cumulative_rewards):
            assert list(paid) == agents
            assert list(paid.values()) == pytest.approx(rewards)
            assert sum(paid.values()) == pytest.approx(0, abs=1e-6)
        assert env.terminations == dict.fromkeys(agents, game.is_over)
        assert env.truncations == dict.fromkeys(agents, False)
        assert env.infos == {agent: {} for agent in agents}
    assert game.is_over


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_every_agent_is_removed_once_with_its_reward(make, num_players):
    env = make_started(make, num_players=num_players)
    play(env, np.random.default_rng(0))
    expected = dict(zip(env.possible_agents, expected_rewards(env.unwrapped.game, "win"), strict=True))
    last_rewards = {}
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, info = env.last()
        assert (terminated, truncated, info) == (True, False, {})
        assert env.observation_space(agent).contains(seen)
        last_rewards[agent] = reward
        env.step(None)
        assert agent not in env.agents
    assert last_rewards == pytest.approx(expected)
    assert env.agents == []
    assert env.unwrapped.game.is_over


def test_an_agent_of_a_finished_game_steps_with_none():
    env = make_started()
    play(env, np.random.default_rng(0))
    with pytest.raises(ValueError, match="None"):
        env.step(1)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_a_seat_that_moves_twice_is_selected_twice(num_players):
    twice = 0
    for seed in range(20):
        env = make_started(num_players=num_players)
        before = None
        for _ in play_plies(env, np.random.default_rng(seed)):
            in_movement = env.game.ply > 45 and not env.game.is_over
            assert in_movement or not env.game.passed
            twice += in_movement and env.agent_selection == before
            before = env.agent_selection
    assert twice


# Illegal actions


@pytest.mark.parametrize(
    ("plies", "phase", "illegal"), [(0, "NEUTRAL", 0), (12, "PLACEMENT", 60), (50, "MOVEMENT", 60)]
)
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_an_illegal_action_is_named_and_changes_nothing(plies, phase, illegal, num_players):
    env = make_started(num_players=num_players)
    play(env, np.random.default_rng(1), plies)
    before = snapshot(env)
    names = {0: "A11", 60: "F6", PASS: "pass", -1: "-1", 122: "122", 2**40: str(2**40)}
    for action in (illegal, PASS, -1, 122, 2**40, np.int64(illegal), np.array(illegal)):
        with pytest.raises(ValueError, match=rf"{names[int(action)]}\b.*{phase}"):
            env.step(action)
        assert snapshot(env) == before
    play(env, np.random.default_rng(1))
    assert env.game.is_over


class Integer:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@pytest.mark.parametrize("make", MAKERS)
def test_an_action_may_be_any_integer(make):
    torch = pytest.importorskip("torch")
    for action in (
        24,
        np.int8(24),
        np.array(24),
        np.uint64(24),
        torch.tensor(24),
        torch.tensor(24).byte(),
        Integer(24),
    ):
        env = make_started(make)
        env.step(action)
        assert env.unwrapped.game.last_action == 24
        assert type(env.unwrapped.game.last_action) is int
    for wrong in (torch.tensor(True), torch.tensor([24]), torch.tensor(24.0), Integer("24"), Integer(24.0)):
        with pytest.raises((TypeError, AssertionError), match=r"an action is an integer|action is not in action space"):
            env.step(wrong)


def test_the_wrapped_environment_names_a_boolean_action():
    env = make_started(ninetka_v0.env)
    before = snapshot(env)
    with pytest.raises(TypeError, match=r"an action is an integer 0\.\.121, got True"):
        env.step(True)
    assert snapshot(env) == before


@pytest.mark.parametrize("action", [None, 1.0, "1", True, np.array([1]), np.float32(1), [1]])
def test_an_action_is_an_integer(action):
    env = make_started()
    before = snapshot(env)
    with pytest.raises(TypeError, match="integer"):
        env.step(action)
    assert snapshot(env) == before


@pytest.mark.parametrize("plies", [0, 12, 50])
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_wrapped_environment_ends_with_an_illegal_action(plies, num_players):
    env = make_started(ninetka_v0.env, num_players=num_players)
    play(env, np.random.default_rng(1), plies)
    culprit = env.agent_selection
    env.step(PASS)
    assert env.rewards == {agent: -1.0 if agent == culprit else 0 for agent in env.possible_agents}
    assert all(env.terminations.values())
    paid = {}
    for agent in env.agent_iter():
        paid[agent] = env.last()[1]
        env.step(None)
    assert paid == {agent: -1.0 if agent == culprit else 0 for agent in env.possible_agents}
    env.reset(seed=0)
    play(env, np.random.default_rng(1))
    assert env.unwrapped.game.is_over


def test_an_illegal_action_leaves_no_messages_in_pettingzoo(capsys):
    env = make_started(ninetka_v0.env)
    before = list(EnvLogger.mqueue)
    for _ in range(3):
        env.step(0)
        assert all(env.terminations.values())
        env.reset()
    assert EnvLogger.mqueue == before
    other = pettingzoo_wrapped(ninetka_v0.raw_env())
    other.reset(seed=0)
    other.step(0)
    assert len(EnvLogger.mqueue) > len(before)  # PettingZoo's own wrapper is unchanged
    del EnvLogger.mqueue[len(before) :]


def pettingzoo_wrapped(env):
    """Wrap an environment as PettingZoo's own environments are wrapped."""
    env = AssertOutOfBoundsWrapper(TerminateIllegalWrapper(env, illegal_reward=-1))
    return OrderEnforcingWrapper(env)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_wrappers_behave_as_those_of_pettingzoo(num_players):
    """Compare `env` with PettingZoo's own wrappers, also after an illegal action, a resignation and the end."""
    ours, theirs = (
        ninetka_v0.env(num_players=num_players),
        pettingzoo_wrapped(ninetka_v0.raw_env(num_players=num_players)),
    )
    for seed in range(12):
        rng = np.random.default_rng(seed)
        for env in (ours, theirs):
            env.reset(seed=seed)
        last = (0, 20, 50, 200)[seed % 4]
        while ours.agents:
            assert snapshot(ours) == snapshot(theirs)
            over = ours.terminations[ours.agent_selection]
            game = ours.unwrapped.game
            wrong = game.ply >= last and not over
            action = None if over else int(rng.choice(np.flatnonzero(game.legal_mask() == (0 if wrong else 1))))
            for env in (ours, theirs):
                if seed % 2:
                    assert env.last()[1] == env.unwrapped._cumulative_rewards[env.agent_selection]
                env.step(action)
        assert snapshot(ours) == snapshot(theirs)
    assert str(ours) == str(theirs)


@pytest.mark.parametrize("make", [go_v0.env, go_v0.raw_env])
@pytest.mark.parametrize("seat", [0, 1])
def test_resigned_games_end_and_reward_the_winner(make, seat):
    env = make(size=5)
    env.reset(seed=0)
    env.step(0)
    env.unwrapped.game.resign(seat)
    before = str(env.unwrapped.game)
    env.step(3)  # is not played
    assert env.rewards == {f"player_{one}": -1.0 if one == seat else 1.0 for one in range(2)}
    assert (env.terminations, str(env.unwrapped.game)) == ({"player_0": True, "player_1": True}, before)
    for agent in env.agent_iter():
        assert env.last()[1] == (-1.0 if agent == f"player_{seat}" else 1.0)
        env.step(None)
    assert env.agents == []


@pytest.mark.parametrize("action", [-1, 122, 1.5])
def test_the_wrapped_environment_asserts_the_range_of_actions(action):
    env = make_started(ninetka_v0.env)
    before = snapshot(env)
    with pytest.raises(AssertionError, match="action is not in action space"):
        env.step(action)
    assert snapshot(env) == before


def test_the_wrapped_environment_reports_methods_called_before_reset():
    env = ninetka_v0.env()
    for name in ("agents", "rewards", "terminations", "truncations", "infos", "agent_selection"):
        with pytest.raises(AttributeError, match=f"{name} cannot be accessed before reset"):
            getattr(env, name)
    for call in (lambda: env.step(0), lambda: env.observe("player_0"), env.state):
        with pytest.raises(AssertionError, match="reset"):
            call()


NEEDS_RESET = {
    "step": lambda env: env.step(0),
    "last": lambda env: env.last(),
    "observe": lambda env: env.observe("player_0"),
    "state": lambda env: env.state(),
    "render": lambda env: env.render(),
    **{
        name: attrgetter(name)
        for name in (
            "game",
            "agents",
            "agent_selection",
            "num_agents",
            "rewards",
            "terminations",
            "truncations",
            "infos",
        )
    },
}


@pytest.mark.parametrize("name", NEEDS_RESET)
def test_the_bare_environment_needs_a_reset_first(name):
    for env in (
        ninetka_v0.raw_env(render_mode="ansi"),
        ninetka_v0.env(render_mode="ansi").unwrapped,
        by_pickle(ninetka_v0.raw_env(render_mode="ansi")),
    ):
        with pytest.raises(ResetNeeded, match=r"^there is no game yet: call reset first$"):
            NEEDS_RESET[name](env)
        assert hasattr(env, name) == (name in ("step", "last", "observe", "state", "render"))
        env.reset(seed=0)
        NEEDS_RESET[name](env) if name != "step" else env.step(24)
    with pytest.raises(AttributeError, match="'GameAEC' object has no attribute 'no_such_attribute'"):
        env.no_such_attribute  # noqa: B018


@pytest.mark.parametrize("make", MAKERS)
def test_an_unknown_agent_is_named_with_the_agents(make):
    env = make_started(make, num_players=3)
    for agent in ("player_9", 0, None, [1], "player_3"):
        for call in (env.observe, env.observation_space, env.action_space):
            with pytest.raises(
                KeyError, match=rf"unknown agent {re.escape(repr(agent))}: .*player_0, player_1, player_2"
            ):
                call(agent)


@pytest.mark.parametrize("make", MAKERS)
def test_a_finished_episode_needs_a_reset(make):
    env = make_started(make)
    play(env, np.random.default_rng(0))
    while env.agents:
        env.step(None)
    with pytest.raises(ResetNeeded, match="all agents have been removed: call reset first"):
        env.last()
    if make is ninetka_v0.raw_env:
        for action in (None, 0):
            with pytest.raises(ResetNeeded, match="all agents have been removed: call reset first"):
                env.step(action)
    env.reset(seed=0)
    assert env.last()[1:] == (0.0, False, False, {})


@pytest.mark.parametrize("make", [ninetka_v0.env, ninetka_v0.raw_env, go_v0.env, go_v0.raw_env])
def test_the_state_is_in_the_state_space(make):
    env = make()
    assert env.state_space == env.observation_space("player_0")["observation"]
    tests = importlib.import_module("pettingzoo.test.state_test")
    tests.test_state_space(env)
    env.reset(seed=0)
    assert env.state_space.contains(env.state())
    if make in (ninetka_v0.env, go_v0.env):  # the test plays illegal actions
        tests.test_state(env, num_cycles=30)


# Options

WRONG = [
    ({"num_players": 5}, r"num_players=5: .*2, 3, 4"),
    ({"num_players": 1}, r"num_players=1: .*2, 3, 4"),
    ({"num_players": "2"}, r"num_players='2': .*2, 3, 4"),
    ({"num_players": True}, r"num_players=True: .*2, 3, 4"),
    ({"neutral_placement": "dice"}, r"neutral_placement='dice': .*'players', 'random'"),
    ({"turn_order": None}, r"turn_order=None: .*'restart', 'continue'"),
    ({"auto_pass": "yes"}, r"auto_pass='yes': .*False, True"),
    ({"auto_pass": 1}, r"auto_pass=1: .*False, True"),
    ({"reward": "gold"}, r"reward='gold': .*'win', 'score'"),
    ({"render_mode": "4k"}, r"render_mode='4k': .*'human', 'rgb_array', 'ansi'"),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("option", "message"), WRONG)
def test_a_wrong_option_is_named_with_the_allowed_values(make, option, message):
    with pytest.raises(ValueError, match=message):
        make(**option)


@pytest.mark.parametrize("make", MAKERS)
def test_each_unknown_reset_option_is_ignored_with_one_warning(make):
    env = make(num_players=3, neutral_placement="random")
    expected = Game.new(3, neutral_placement="random", seed=4)
    with pytest.warns(UserWarning, match="unknown option") as caught:
        env.reset(seed=4, options={"num_players": 2, "postion": 1})
    assert [str(one.message) for one in caught] == [
        "unknown option 'num_players' of reset is ignored: known are position",
        "unknown option 'postion' of reset is ignored: known are position (did you mean 'position'?)",
    ]
    assert env.unwrapped.game == expected
    env.reset(seed=4, options={"num_players": 2})  # a second warning would be an error
    with pytest.warns(UserWarning, match="'seat'"):
        by_pickle(env).reset(options={"postion": 1, "seat": 0})
    with pytest.raises(TypeError, match=r"options of reset: expected a dict or None, got \[1\]"):
        env.reset(options=[1])


# Seeds and copies


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_restarts_the_random_stream_and_none_continues_it(make):
    def boards(env, *seeds):
        drawn = []
        for seed in seeds:
            env.reset(seed=seed)
            drawn.append(env.unwrapped.game.board.tobytes())
        return drawn

    env = make(num_players=3, neutral_placement="random")
    first = boards(env, 5, None, None, 6)
    assert boards(env, 5, None, None, 6) == first
    assert boards(make(num_players=3, neutral_placement="random"), 5, None, None, 6) == first
    assert len(set(first)) == 4
    unseeded = [boards(make(neutral_placement="random"), None)[0] for _ in range(3)]
    assert len(set(unseeded)) == 3


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_options_survive_a_seeded_reset(make, options):
    env = make(**options._asdict(), reward="score")
    for seed in (3, None, 4):
        env.reset(seed=seed)
        game = env.unwrapped.game
        assert Options(game.num_players, options.neutral_placement, game.turn_order, game.auto_pass) == options
        assert game.ply == (9 if options.neutral_placement == "random" else 0)
    play(env, np.random.default_rng(0))
    assert list(env.rewards.values()) == pytest.approx(expected_rewards(env.unwrapped.game, "score"))


def by_pickle(env):
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, by_pickle])
@pytest.mark.parametrize("plies", [0, 5, 30, 60, 100])
def test_a_copy_continues_identically(make, duplicate, plies):
    env = make_started(make, seed=3, num_players=3, neutral_placement="random", reward="score")
    play(env, np.random.default_rng(0), plies)
    before = snapshot(env)
    twin = duplicate(env)
    assert snapshot(twin) == before
    play(twin, np.random.default_rng(1))
    assert snapshot(env) == before  # nothing is shared
    play(env, np.random.default_rng(1))
    assert snapshot(env) == snapshot(twin)
    for one in (env, twin):
        one.reset()
    assert snapshot(env) == snapshot(twin)  # both continue the random stream of neutral stones


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, by_pickle])
def test_an_environment_can_be_copied_before_its_first_reset(make, duplicate):
    twin = duplicate(make(num_players=4))
    twin.reset(seed=0)
    assert snapshot(twin) == snapshot(make_started(make, num_players=4))


def test_environments_with_different_numbers_of_players_are_independent():
    together = [make_started(num_players=n, auto_pass=n != 3) for n in (2, 3, 4)]
    walks = [play_plies(env, np.random.default_rng(n)) for n, env in enumerate(together)]
    for _ in itertools.zip_longest(*walks):
        pass
    for n, env in enumerate(together):
        alone = make_started(num_players=n + 2, auto_pass=n + 2 != 3)
        play(alone, np.random.default_rng(n))
        assert snapshot(env) == snapshot(alone)


# Pictures


def test_nothing_is_rendered_without_a_mode():
    for make in MAKERS:
        with pytest.raises(ValueError, match=r"render_mode=None.*'human', 'rgb_array', 'ansi'"):
            make_started(make).render()


@pytest.mark.slow
def test_the_drawing_library_is_loaded_when_something_is_drawn():
    pytest.importorskip("pygame")
    script = """if True:
        import sys
        from ninetka_env import go_v0, ninetka_v0
        env = ninetka_v0.env(render_mode="rgb_array")
        env.reset(seed=0)
        env.step(24)
        assert not {"pygame", "PIL", "torch", "ninetka_agents"} & set(sys.modules), "loaded too early"
        env.render()
        assert "pygame" in sys.modules
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "SDL_VIDEODRIVER": "dummy"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_text_shows_the_game():
    env = make_started(num_players=4, render_mode="ansi")
    play(env, np.random.default_rng(0), 50)
    assert re.search(r"movement phase, ply 50", env.render())
