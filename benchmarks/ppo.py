"""Compare the time until PPO beats MaxN at 9tka: ninetka's self-play, and SB3-contrib's MaskablePPO on one seat.

    python -m benchmarks.ppo --minutes 10

Both learn two-player games from scratch, at the same time, on one thread each. SB3's learner trains against MaxN; ours
trains by self-play only. Both are evaluated in matches against MaxN, playing their most probable moves. The time of
these matches does not count. A learner that wins the share `TARGET_SHARE` of a match stops; the other continues.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.measure import Row, write_rows

MATCH_INTERVAL_S = 30.0
"""Seconds of learning between two matches."""
GAMES = 200
"""Number of games of a match against MaxN."""
TARGET_SHARE = 0.8
"""Share of the games of a match that a learner must win."""


class _LearningClock:
    """Measures the time of a learner, evaluates it at intervals, prints the results, and decides when it stops."""

    def __init__(self, seconds: float) -> None:
        self._max_seconds = seconds
        self._taken, self._next, self._since = 0.0, MATCH_INTERVAL_S, time.perf_counter()

    def should_continue(self, evaluate: Callable[[], float]) -> bool:
        """Evaluate the learner if a match is due; return whether to continue learning.

        Args:
            evaluate: plays a match and returns the share of games won.
        """
        taken = self._taken + time.perf_counter() - self._since
        if taken < min(self._next, self._max_seconds):
            return True
        share = evaluate()
        print(json.dumps({"seconds": taken, "share": share}), flush=True)
        self._taken, self._next, self._since = taken, taken + MATCH_INTERVAL_S, time.perf_counter()
        return share < TARGET_SHARE and taken < self._max_seconds


def learn_ours(seconds: float) -> None:
    """Learn with the settings of `configs/ppo.yaml`."""
    from ninetka_agents.agent import make_agent
    from ninetka_agents.net_agent import NetAgent
    from ninetka_train.judging.arena import play_games
    from ninetka_train.learning.config import load_config
    from ninetka_train.learning.learner import Learner
    from ninetka_train.learning.ppo import train_ppo

    course, maxn = _LearningClock(seconds), make_agent("maxn")

    def share(network: Any) -> float:
        found = play_games([NetAgent(network), maxn], 2, GAMES, seed=1)
        return float(found.shares[:, 0].mean())

    def report(learner: Learner, _log: object) -> None:
        if not course.should_continue(lambda: share(learner.network)):
            raise SystemExit  # ends the process, which does nothing else

    train_ppo(load_config("ppo", ["threads=1", "device=cpu"]), report=report)


def learn_peer(seconds: float) -> None:
    """Learn with MaskablePPO: 16 parallel games, four epochs, an MLP on the planes with two layers of 256 units."""
    import gymnasium
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    def make() -> Any:
        return gymnasium.make("ninetka_env:ninetka_env/Ninetka-v0", num_players=2, opponents="maxn")

    options: dict[str, Any] = {"n_steps": 256, "batch_size": 512, "n_epochs": 4, "gamma": 1.0, "ent_coef": 0.01}
    options |= {"learning_rate": 5e-4, "policy_kwargs": {"net_arch": [256, 256]}, "device": "cpu", "seed": 0}
    model = MaskablePPO("MlpPolicy", make_vec_env(make, n_envs=16, seed=0), **options)
    course, games = _LearningClock(seconds), make()

    def share() -> float:
        won = 0
        for seed in range(GAMES):
            (seen, info), terminated, reward = games.reset(seed=seed), False, 0.0
            while not terminated:
                action, _ = model.predict(seen, action_masks=info["action_mask"], deterministic=True)
                seen, reward, terminated, _, info = games.step(action)
            won += reward > 0
        return won / GAMES

    class EvaluationCallback(BaseCallback):
        """Stops the learner when its time is up or the target share is reached."""

        def _on_step(self) -> bool:
            return self.num_timesteps % 4096 != 0 or course.should_continue(share)

    model.learn(10**9, callback=EvaluationCallback())


def rows(minutes: float) -> Iterator[Row]:
    """Run both learners at the same time and compare their times."""
    command = [sys.executable, "-m", "benchmarks.ppo", "--minutes", str(minutes), "--learner"]
    processes = [subprocess.Popen([*command, who], stdout=subprocess.PIPE, text=True) for who in ("ours", "peer")]
    try:
        ours, peer = ([json.loads(line) for line in learner.stdout or ()] for learner in processes)
    finally:
        for learner in processes:
            learner.kill()
    best = f"won {100 * max(point['share'] for point in peer):.0f} % at best"
    note = best if peer[-1]["share"] >= TARGET_SHARE else f"{best} before its time ran out"
    taken = ours[-1]["seconds"] if ours[-1]["share"] >= TARGET_SHARE else math.nan
    what = (
        f"9tka, two players: PPO from nothing to {100 * TARGET_SHARE:.0f} % of {GAMES} games against MaxN, one thread"
    )
    yield Row(what, "s", taken, peer[-1]["seconds"], "SB3-contrib MaskablePPO, MLP", lower_is_better=True, note=note)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="maximum minutes of learning per learner")
    parser.add_argument("--learner", choices=("ours", "peer"), help="run only this learner, in this process")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.learner == "ours":
        learn_ours(60 * given.minutes)
    elif given.learner == "peer":
        learn_peer(60 * given.minutes)
    else:
        write_rows(rows(given.minutes))
