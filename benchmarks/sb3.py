"""Compare MaskablePPO on `OneSeatVecEnv` with MaskablePPO on SB3's `DummyVecEnv` of `gymnasium.make`.

Both play 32 games against the same opponents. A step is one move of the learner in one game. The rows without training
measure only how the moves are collected: the policy's network, the games, the opponents and the rollout buffer.
Training takes the same time with both, and depends on the network and the settings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.measure import Row, is_installed, rates, write_rows

NUM_GAMES, NUM_STEPS = 32, 64
CASES = {"9tka": ("Ninetka", "maxn"), "Go": ("Go", "random"), "Kropki": ("Kropki", "random")}
"""For each game, the name in its environment id, and the spec of the opponents."""
SETTINGS: dict[str, Any] = {"n_steps": NUM_STEPS, "batch_size": 1024, "n_epochs": 2, "gamma": 1.0, "device": "cpu"}


def learners(name: str, opponents: str) -> list[Any]:
    """Return two new learners with a small MLP: on the native vector environment, and on single environments."""
    import gymnasium
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecMonitor

    from ninetka_agents.sb3 import OneSeatVecEnv

    place, options = f"ninetka_env:ninetka_env/{name}-v0", dict[str, Any](opponents=opponents)
    native = VecMonitor(OneSeatVecEnv(gymnasium.make_vec(place, num_envs=NUM_GAMES, **options)))
    single = make_vec_env(lambda: gymnasium.make(place, **options), n_envs=NUM_GAMES)
    return [MaskablePPO("MlpPolicy", envs, seed=0, **SETTINGS) for envs in (native, single)]


def training(learner: Any) -> Callable[[], int]:
    """Return a function that collects and learns one rollout and returns the number of its steps."""

    def run() -> int:
        learner.learn(NUM_GAMES * NUM_STEPS, reset_num_timesteps=False)
        return NUM_GAMES * NUM_STEPS

    return run


def collecting(learner: Any) -> Callable[[], int]:
    """Return a function that collects one rollout without training and returns the number of its steps."""
    from stable_baselines3.common.callbacks import CallbackList

    learner.learn(NUM_GAMES * NUM_STEPS)  # prepares the learner
    callback = CallbackList([])
    callback.init_callback(learner)

    def run() -> int:
        learner.collect_rollouts(learner.env, callback, learner.rollout_buffer, NUM_STEPS)
        return NUM_GAMES * NUM_STEPS

    return run


def rows() -> Iterator[Row]:
    """Measure every game."""
    for game, (name, opponents) in CASES.items():
        what = f"MaskablePPO, {NUM_GAMES} games of {game} against {opponents}"
        both = learners(name, opponents)
        for measured, suffix in ((collecting, ", without training"), (training, "")):
            ours, peer = rates(*map(measured, both), seconds=2.0)
            yield Row(what + suffix, "steps/s", ours, peer, "DummyVecEnv", target=2 * peer)


if __name__ == "__main__":
    if is_installed("sb3_contrib"):
        torch.set_num_threads(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_rows(rows())
