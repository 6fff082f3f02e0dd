"""Tests that Gymnasium's vector wrappers work on the vector environment, or raise an error about its spaces."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers as single
from gymnasium.spaces import Box
from gymnasium.wrappers import vector
from packaging.version import Version

from ninetka_env.games.ninetka.observation import SHAPE

ID = "ninetka_env:ninetka_env/Ninetka-v0"
FLOATS = Box(0, 2, SHAPE, np.float32)
IS_NEW = Version(gymnasium.__version__) >= Version("1.4")
"""Whether wrappers raise errors with a message for unsupported environments; older versions use `assert`."""
new_gymnasium = pytest.mark.skipif(
    not IS_NEW, reason="Gymnasium before 1.4 has fewer wrappers, and checks them by assertions"
)


def double(seen):
    return np.asarray(2 * seen, np.float32)


def same(action):
    return action


WORK = {
    "TransformObservation": {"func": double, "single_observation_space": FLOATS},
    "VectorizeTransformObservation": {
        "wrapper": single.TransformObservation,
        "func": double,
        "observation_space": FLOATS,
    },
    "FlattenObservation": {},
    "ReshapeObservation": {"shape": (SHAPE[0], SHAPE[1] * SHAPE[2])},
    "RescaleObservation": {"min_obs": -1, "max_obs": 1},
    "DtypeObservation": {"dtype": np.float32},
    "NormalizeObservation": {},
    "TransformAction": {"func": same},
    "VectorizeTransformAction": {"wrapper": single.TransformAction, "func": same, "action_space": None},
    "TransformReward": {"func": np.abs},
    "VectorizeTransformReward": {"wrapper": single.TransformReward, "func": abs},
    "ClipReward": {"min_reward": 0, "max_reward": 1},
    "NormalizeReward": {},
    "RecordEpisodeStatistics": {},
    "DictInfoToList": {},
}
"""The wrappers that support the spaces of the environment, with arguments."""
REFUSE = {
    "FilterObservation": {"filter_keys": ["planes"]},
    "GrayscaleObservation": {},
    "ResizeObservation": {"shape": (5, 5)},
    "ClipAction": {},
    "RescaleAction": {"min_action": 0, "max_action": 1},
}
"""The wrappers that require other spaces, with arguments."""
ELSEWHERE = ["HumanRendering", "RecordVideo", "NumpyToTorch", "ArrayConversion", "JaxToNumpy", "JaxToTorch"]
"""The wrappers that need further packages; tests below use the first three if their packages are installed."""


def make(autoreset_mode="NEXT_STEP", **options):
    return gymnasium.make_vec(ID, num_envs=3, opponents="random", autoreset_mode=autoreset_mode, **options)


def play(envs, steps=90):
    """Play random legal actions by the masks of the unwrapped environment; return the last observations and infos."""
    rng, ended = np.random.default_rng(0), 0
    envs.reset(seed=0)
    for _ in range(steps):
        masks = envs.unwrapped.action_masks()
        actions = np.array([int(rng.choice(np.flatnonzero(mask))) if mask.any() else 0 for mask in masks])
        seen, rewards, terminated, truncated, infos = envs.step(actions)
        assert (len(rewards), len(terminated), len(truncated)) == (3, 3, 3)
        ended += int(terminated.sum())
    assert ended >= steps // 30
    return seen, infos


@new_gymnasium
def test_every_wrapper_is_tried():
    assert set(vector.__all__) == {*WORK, *REFUSE, *ELSEWHERE}


@pytest.mark.parametrize("name", WORK)
def test_a_wrapper_works(name):
    envs = getattr(vector, name)(make(), **WORK[name])
    seen, _ = play(envs)
    assert np.shape(seen) == envs.observation_space.shape
    if IS_NEW or name != "NormalizeObservation":  # older versions keep the space before normalization
        assert envs.observation_space.contains(seen)


@new_gymnasium
@pytest.mark.parametrize("name", WORK)
def test_only_wrappers_of_observations_need_games_to_restart_in_the_next_step(name):
    envs = make("SAME_STEP")
    if "Observation" in name:
        with pytest.raises(ValueError, match="autoreset_mode"):
            getattr(vector, name)(envs, **WORK[name])
    else:
        play(getattr(vector, name)(envs, **WORK[name]))


@new_gymnasium
@pytest.mark.parametrize("name", REFUSE)
def test_a_wrapper_for_other_spaces_raises_a_clear_error(name):
    with pytest.raises((TypeError, ValueError), match=rf"^{name} (requires|wrapper is only usable)"):
        getattr(vector, name)(make(), **REFUSE[name])


def test_wrappers_work_on_top_of_each_other():
    envs = vector.RecordEpisodeStatistics(make())
    envs = vector.RescaleObservation(vector.DtypeObservation(envs, np.float32), np.float32(-1), np.float32(1))
    envs = vector.ClipReward(vector.FlattenObservation(envs), 0, 1)
    seen, infos = play(envs)
    assert seen.shape == (3, np.prod(SHAPE))
    assert set(np.unique(seen)) == {-1, 1}
    assert infos["action_mask"].shape == (3, 122)
    statistics = envs.env.env.env.env
    assert set(statistics.return_queue) <= {1.0, -1.0}
    assert set(statistics.length_queue) <= set(range(20, 50))  # half of the plies of a game


def test_games_are_shown_and_filmed(tmp_path, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pytest.importorskip("cv2", reason="opencv-python is not installed")
    pytest.importorskip("moviepy", reason="moviepy is not installed")
    shown = vector.HumanRendering(make(render_mode="rgb_array"))
    shown.metadata["render_fps"] = 1000
    play(shown, steps=3)
    shown.close()
    filmed = vector.RecordVideo(
        make(render_mode="rgb_array"), str(tmp_path / "films"), video_length=5, step_trigger=lambda s: s == 1
    )
    play(filmed, steps=7)
    filmed.close()
    assert len(list((tmp_path / "films").glob("*.mp4"))) >= 1


def test_arrays_become_tensors():
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    envs = vector.NumpyToTorch(make())
    seen, infos = envs.reset(seed=0)
    assert (seen.dtype, infos["action_mask"].dtype) == (torch.int8, torch.int8)
    actions = torch.multinomial(infos["action_mask"].float(), 1)[:, 0]
    seen, rewards, *_ = envs.step(actions)
    assert seen.shape == (3, *SHAPE)
    assert rewards.tolist() == [0, 0, 0]
