"""Tests of how games of the one-seat environments end: step limits, illegal actions; and of opponents and metadata."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_api.one_seat_helpers import IDS, SMALL, FirstAgent, actions_for, assert_equal, make, make_vec

from ninetka_agents.agent import RandomAgent
from ninetka_agents.one_seat import one_seat, one_seat_vector
from ninetka_env.api.one_seat import OneSeatEnv, OneSeatVectorEnv

# Step limits


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", IDS)
def test_a_step_limit_equals_gymnasiums_time_limit(name, mode):
    options = SMALL[name] | {"opponents": FirstAgent(), "seat": 1}
    limit = 6 if name == "Ninetka" else 5
    envs = gymnasium.make_vec(IDS[name], num_envs=3, max_episode_steps=limit, autoreset_mode=mode, **options)
    single = SyncVectorEnv(
        [lambda: gymnasium.make(IDS[name], max_episode_steps=limit, **options)] * 3, autoreset_mode=mode
    )
    rng, ended = np.random.default_rng(0), np.zeros(2, np.int64)
    assert_equal(envs.reset(seed=0), single.reset(seed=0))
    for count in range(45):
        actions = actions_for(envs, rng)
        one = envs.step(actions)
        assert_equal(one, single.step(actions))
        terminated, truncated = one[2:4]
        ended += terminated.sum(), truncated.sum()
        restarted = terminated | truncated if mode is AutoresetMode.DISABLED else np.zeros(3, np.bool_)
        restarted[0] |= count % 13 == 7  # the user may also restart a game at any time
        if restarted.any():
            assert_equal(*(each.reset(options={"reset_mask": restarted.copy()}) for each in (envs, single)))
    assert ended[1] > 8


def test_a_truncated_game_has_its_observation_and_info_at_that_time():
    envs = make_vec("Kropki", 2, opponents=FirstAgent(), seat=0, max_episode_steps=2)
    envs.reset(seed=0)
    envs.step(envs.action_masks().argmax(axis=1))
    masks = envs.action_masks()
    seen, rewards, terminated, truncated, infos = envs.step(masks.argmax(axis=1))
    assert truncated.all()
    assert not terminated.any()
    assert not rewards.any()
    assert infos["final_info"]["action_mask"].any(axis=1).all()  # the game could continue
    assert infos["final_obs"].sum() > seen.sum()
    assert infos["_final_obs"].all()


def test_a_truncated_game_waits_for_its_reset_in_the_mode_disabled():
    envs = make_vec("Kropki", 2, opponents=FirstAgent(), seat=0, max_episode_steps=1, autoreset_mode="DISABLED")
    envs.reset(seed=0)
    assert envs.step(envs.action_masks().argmax(axis=1))[3].all()
    envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match=r"^game 1: it is over, .*call reset"):
        envs.step(envs.action_masks().argmax(axis=1))
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.step(envs.action_masks().argmax(axis=1))


def test_an_error_does_not_count_as_a_step():
    envs = make_vec("Go", 2, opponents=FirstAgent(), seat=0, max_episode_steps=2)
    envs.reset(seed=0)
    for _ in range(3):
        with pytest.raises(ValueError, match="action 99 is illegal"):
            envs.step([0, 99])
    assert not envs.step([0, 1])[3].any()
    assert envs.step([2, 3])[3].all()


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "5"])
def test_a_wrong_step_limit_is_named(limit):
    with pytest.raises(ValueError, match=r"^max_episode_steps=.*: expected an integer of at least 1"):
        make_vec("Go", 2, max_episode_steps=limit)


# Illegal actions that lose


def illegal_action(mask):
    return int(np.flatnonzero(mask == 0)[-1])


@pytest.mark.parametrize("reward", ["win", "score"])
@pytest.mark.parametrize("name", IDS)
def test_an_illegal_action_loses_and_the_position_stays(name, reward):
    env = make(name, opponents=FirstAgent(), seat=1, illegal="lose", reward=reward)
    for legal_moves in (0, 1, 3):
        seen, info = env.reset(seed=0)
        assert info["illegal_action"] is False
        for _ in range(legal_moves):
            seen, _, over, _, info = env.step(int(info["action_mask"].argmax()))
            assert (over, info["illegal_action"]) == (False, False)
        before, action = str(env.game), illegal_action(info["action_mask"])
        now, paid, terminated, truncated, after = env.step(action)
        assert (paid, terminated, truncated) == (-1.0, True, False)
        assert after["illegal_action"] is True
        assert (now == seen).all()
        assert not after["action_mask"].any()
        assert not env.action_masks().any()
        assert (str(env.game), after["seat"]) == (before, info["seat"])
        for late in (action, int(info["action_mask"].argmax())):
            with pytest.raises(ValueError, match="an illegal action has ended the game, call reset first"):
                env.step(late)


def test_actions_that_are_no_actions_raise_whatever_the_option():
    for one, wrap in (
        (make("Go", illegal="lose", seat=0), int),
        (make_vec("Go", 1, illegal="lose", seat=0), np.atleast_1d),
    ):
        one.reset(seed=0)
        for outside in (-1, 26, 2**31, 2**62):
            with pytest.raises(ValueError, match=f"action {outside} is illegal"):
                one.step(wrap(outside))
        for wrong in (1.5, None, "D4"):
            with pytest.raises(TypeError):
                one.step(wrong)
        assert one._batch.game(0).ply == 0
        one.step(wrap(0))


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", IDS)
def test_illegal_actions_in_vector_environments_equal_single_ones(name, mode):
    options = SMALL[name] | {"opponents": FirstAgent(), "seat": 0, "illegal": "lose"}
    envs = gymnasium.make_vec(IDS[name], num_envs=4, autoreset_mode=mode, max_episode_steps=6, **options)
    single = SyncVectorEnv([lambda: gymnasium.make(IDS[name], max_episode_steps=6, **options)] * 4, autoreset_mode=mode)
    rng, lost = np.random.default_rng(0), 0
    assert_equal(envs.reset(seed=0), single.reset(seed=0))
    for _ in range(40):
        actions = np.maximum(actions_for(envs, rng), 0)
        masks = envs.unwrapped.action_masks()
        for index in np.flatnonzero(rng.random(4) < 0.2):
            if not masks[index].all():
                actions[index] = illegal_action(masks[index])
        one = envs.step(actions)
        assert_equal(one, single.step(actions))
        infos = one[-1]
        for shown in (infos, infos.get("final_info", infos)):
            assert shown["illegal_action"].dtype == np.bool_
        lost += infos.get("final_info", infos)["illegal_action"].sum()
        if mode is AutoresetMode.DISABLED and (over := one[2] | one[3]).any():
            assert_equal(*(each.reset(options={"reset_mask": over.copy()}) for each in (envs, single)))
    assert lost > 8


def test_games_that_an_illegal_action_has_ended_survive_the_error_of_an_opponent():
    opponent = FirstAgent()
    envs = make_vec("Go", 2, opponents=opponent, seat=0, illegal="lose", autoreset_mode="NEXT_STEP")
    envs.reset(seed=0)
    envs.step([0, 0])
    envs.step([0, 2])  # game 0 is lost
    before = [array.copy() for array in vars(envs._batch).values() if isinstance(array, np.ndarray)]
    opponent.act = lambda games, rng: 1 / 0
    with pytest.raises(ZeroDivisionError):
        envs.step([0, 4])
    after = [array for array in vars(envs._batch).values() if isinstance(array, np.ndarray)]
    assert all((one == two).all() for one, two in zip(before, after, strict=True))
    del opponent.act
    _, rewards, terminated, *_ = envs.step([0, 4])
    assert not rewards.any()
    assert not terminated.any()


def test_the_default_raises_and_adds_no_info():
    for one in (make("Kropki", opponents="random"), make_vec("Kropki", 2, opponents="random")):
        assert "illegal_action" not in one.reset(seed=0)[1]
    for call in (one_seat, lambda **options: one_seat_vector(2, **options)):
        with pytest.raises(ValueError, match=r"illegal='pass': expected one of 'raise', 'lose'"):
            call(illegal="pass")


def test_gymnasium_checks_the_environment_that_loses():
    env = make("Go", opponents="random", illegal="lose")
    check_env(env, skip_render_check=True)


# Opponents that are no agents


class Model:
    """A model with `predict`, as of Stable-Baselines3."""

    def predict(self, observation):
        raise NotImplementedError


@pytest.mark.parametrize("wrong", ["Linear", lambda games, rng: games, Model(), Model, 3, None, {}])
@pytest.mark.parametrize("call", [one_seat, lambda **options: one_seat_vector(2, **options)])
def test_what_is_no_agent_is_named(call, wrong):
    if wrong == "Linear":
        wrong = pytest.importorskip("torch").nn.Linear(2, 2)
    sentence = r"^opponents: .* is neither an agent's spec nor an agent, an object with a name and a method act"
    with pytest.raises(ValueError, match=sentence) as error:
        call(num_players=3, opponents=["random", wrong])
    assert "\n" not in str(error.value)
    if wrong is not None:
        with pytest.raises(ValueError, match=sentence):
            call(opponents=wrong)


def test_a_class_is_no_agent():
    for opponents in (RandomAgent, [RandomAgent]):
        with pytest.raises(ValueError, match=r"^opponents: <class .*RandomAgent'> .*instance, RandomAgent\(\.\.\.\)$"):
            one_seat(opponents=opponents)


@pytest.mark.parametrize(
    ("answer", "error"), [([0, 1], "expected shape"), ([0.5], "expected integers"), (None, "expected integers")]
)
def test_an_error_about_an_opponents_answer_names_it(answer, error):
    opponent = FirstAgent()
    opponent.act = lambda games, rng: answer
    with pytest.raises((TypeError, ValueError), match=f"^opponent 'first': actions: {error}"):
        make("Go", opponents=opponent, seat=1).reset(seed=0)


# Metadata


def test_metadata_of_an_environment_is_its_own():
    """Gymnasium 1.1's `SyncVectorEnv` writes the mode into the metadata of its first environment."""
    env = gymnasium.make(IDS["Go"], opponents="random")
    env.metadata["autoreset_mode"] = AutoresetMode.DISABLED
    envs = gymnasium.make_vec(IDS["Go"], num_envs=2, opponents="random", autoreset_mode="NEXT_STEP")
    envs.metadata["render_fps"] = 50
    assert "autoreset_mode" not in OneSeatEnv.metadata
    assert "autoreset_mode" not in make("Go", opponents="random").metadata
    assert OneSeatVectorEnv.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert OneSeatVectorEnv.metadata["render_fps"] == 2
