"""Tests of the adapter for Stable-Baselines3: equal to SB3's own vector of single environments, and accepted by SB3."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from test_api.one_seat_helpers import IDS, SMALL, FirstAgent, make_vec, masked

from ninetka_env import go_v0

vec_env = pytest.importorskip("stable_baselines3.common.vec_env", reason="stable-baselines3 is not installed")
adapter = pytest.importorskip("ninetka_agents.sb3")


def adapted(name, num_envs=3, **options):
    return adapter.OneSeatVecEnv(make_vec(name, num_envs, **options))


def dummy(name, num_envs=3, **options):
    return vec_env.DummyVecEnv([lambda: gymnasium.make(IDS[name], **SMALL[name] | options)] * num_envs)


def assert_same_infos(rows, expected):
    for row, wanted in zip(rows, expected, strict=True):
        assert row.keys() == wanted.keys()
        for name, value in wanted.items():
            assert type(row[name]) is type(value), name
            assert np.array_equal(row[name], value), name


@pytest.mark.parametrize("options", [{}, {"illegal": "lose"}, {"max_episode_steps": 5}])
@pytest.mark.parametrize("name", IDS)
def test_it_equals_sb3s_vector_of_single_environments(name, options):
    """The seat is fixed and the opponents are deterministic, so random numbers cannot make the results differ."""
    options = options | {"opponents": FirstAgent(), "seat": 1}
    both = adapted(name, **options), dummy(name, **options)
    rng, ended = np.random.default_rng(0), 0
    for one in both:
        one.seed(0)
    seen, expected = (one.reset() for one in both)
    assert (seen == expected).all()
    assert_same_infos(both[0].reset_infos, both[1].reset_infos)
    for _ in range(70):
        masks = [np.stack(one.env_method("action_masks")) for one in both]
        assert (masks[0] == masks[1]).all()
        assert masks[0].dtype == np.bool_
        actions = np.array([masked(rng, mask) for mask in masks[0]])
        if options.get("illegal") == "lose" and rng.random() < 0.2:
            actions[0] = np.flatnonzero(~masks[0][0])[-1]
        results = [one.step(actions) for one in both]
        for one, two in zip(results[0][:3], results[1][:3], strict=True):
            assert (one == two).all()
            assert one.dtype == two.dtype
        assert_same_infos(results[0][3], results[1][3])
        assert_same_infos(both[0].reset_infos, both[1].reset_infos)
        ended += results[0][2].sum()
    assert ended >= 3


def test_attributes_and_methods_of_single_games():
    envs = adapted("Go", 3, opponents="random", render_mode="rgb_array")
    envs.seed(0)
    envs.reset()
    assert envs.get_attr("seat") == [info["seat"] for info in envs.reset_infos]
    assert envs.get_attr("seat", [2, 0]) == [envs.reset_infos[index]["seat"] for index in (2, 0)]
    assert envs.get_attr("render_mode", 1) == ["rgb_array"]
    for name in ("action_space", "observation_space"):
        assert envs.get_attr(name) == dummy("Go").get_attr(name)
    assert (envs.env_method("action_masks", indices=1)[0] == envs.envs.action_masks()[1]).all()
    assert (envs.get_attr("action_masks")[2]() == envs.envs.action_masks()[2]).all()
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("flavour")
    envs.set_attr("flavour", "sweet")
    assert envs.get_attr("flavour") == ["sweet"] * 3
    assert envs.env_is_wrapped(gymnasium.Wrapper) == [False] * 3
    with pytest.raises(ValueError, match=r"indices=1: expected all games"):
        envs.set_attr("flavour", "sour", 1)
    with pytest.raises(AttributeError, match="no method 'fly' of single games: there are action_masks and render"):
        envs.env_method("fly")
    envs.close()


def test_pictures():
    pytest.importorskip("pygame")
    envs = adapted("Go", 3, opponents="random", render_mode="rgb_array")
    envs.reset()
    picture = envs.get_images()[0]
    assert envs.render().shape == (2 * picture.shape[0], 2 * picture.shape[1], 3)
    assert envs.env_method("render", indices=[2])[0].shape == picture.shape


def test_seeds_and_options_are_for_one_reset():
    envs = adapted("Go", 3, opponents="random", seat=0)
    assert envs.seed(5) == [5, 6, 7]
    first = envs.reset()
    assert (envs.envs.reset(seed=5)[0] == first).all()
    for options in ({"seat": 1}, {"seat": [1, 1, 1]}, [{"seat": 1}] * 3):
        envs.set_options(options)
        envs.reset()
        assert envs.get_attr("seat") == [1, 1, 1]
        envs.reset()
        assert envs.get_attr("seat") == [0, 0, 0]
    position = go_v0.Game.new(**SMALL["Go"])
    position.play(12)
    envs.set_options([{"position": position, "seat": 1}] * 3)
    envs.reset()
    assert (envs.envs.games["to_move"] == 1).all()
    envs.set_options()
    for wrong in ([{"seat": 1}] * 2, [{"seat": 1}, {}, {}], []):
        with pytest.raises(ValueError, match="expected 3 dicts with equal keys"):
            envs.set_options(wrong)
    for wrong in (3, "seat", [1, 2, 3]):
        with pytest.raises(ValueError, match=r"^options: expected a dict or 3 dicts, got "):
            envs.set_options(wrong)
    assert isinstance(envs.seed(), list)


def test_what_it_does_not_wrap_is_named():
    single = gymnasium.make(IDS["Go"], opponents="random")
    sync = gymnasium.make_vec(IDS["Go"], num_envs=2, vectorization_mode="sync", opponents="random")
    for wrong in (single, sync, None):
        with pytest.raises(TypeError, match=r"envs: expected gymnasium\.make_vec"):
            adapter.OneSeatVecEnv(wrong)
    for mode in ("NEXT_STEP", "DISABLED"):
        with pytest.raises(ValueError, match=rf"envs: autoreset_mode='{mode}', expected 'SAME_STEP'"):
            adapted("Go", autoreset_mode=mode)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IDS)
def test_maskable_ppo_trains_evaluates_and_is_restored(name, tmp_path):
    """An illegal action would raise an error."""
    sb3_contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    callbacks = pytest.importorskip("sb3_contrib.common.maskable.callbacks")
    evaluation = pytest.importorskip("sb3_contrib.common.maskable.evaluation")
    envs = vec_env.VecNormalize(vec_env.VecMonitor(adapted(name, 4, opponents="random")), norm_reward=False)
    judge = vec_env.VecNormalize(
        vec_env.VecMonitor(adapted(name, 2, opponents="random")), norm_reward=False, training=False
    )
    settings = {"n_steps": 32, "batch_size": 64, "n_epochs": 1, "seed": 0, "device": "cpu"}
    model = sb3_contrib.MaskablePPO("MlpPolicy", envs, **settings)
    callback = callbacks.MaskableEvalCallback(judge, n_eval_episodes=2, eval_freq=32, log_path=tmp_path, verbose=0)
    model.learn(256, callback=callback)
    assert model.num_timesteps == 256
    assert len(model.ep_info_buffer) > 3
    assert len(callback.evaluations_results) == 2
    model.save(tmp_path / "model")
    restored = sb3_contrib.MaskablePPO.load(tmp_path / "model", env=envs, device="cpu")
    for one in (model, restored):
        mean, _ = evaluation.evaluate_policy(one, judge, n_eval_episodes=4)
        assert -1 <= mean <= 1
    restored.learn(128)
