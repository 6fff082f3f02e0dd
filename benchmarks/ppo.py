"""Compare how soon PPO beats MaxN at 9tka: ninetka's self-play and SB3-contrib's MaskablePPO on the one-seat view.

    python -m benchmarks.ppo --minutes 10

Both learn two-player games from scratch, at the same time, on one thread each. SB3's learner trains against MaxN; ours
trains by self-play only. Both are evaluated in matches against MaxN, playing their most probable moves. The time of
these matches does not count. A learner that reaches the goal stops and leaves the machine to the other learner.
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

EVERY = 30.0
"""Seconds of learning between two matches."""
GAMES = 200
"""Number of games of a match against MaxN."""
GOAL = 0.8
"""Share of the games of a match to win."""


class _Course:
    """Time a learner: evaluate it at intervals, print the results, and decide when to stop."""

    def __init__(self, seconds: float) -> None:
        self._most = seconds
        self._taken, self._next, self._since = 0.0, EVERY, time.perf_counter()

    def goes_on(self, judge: Callable[[], float]) -> bool:
        """Evaluate the learner if a match is due; return whether to continue learning.

        Args:
            judge: plays a match and returns the share of games won.
        """
        taken = self._taken + time.perf_counter() - self._since
        if taken < min(self._next, self._most):
            return True
        share = judge()
        print(json.dumps({"seconds": taken, "share": share}), flush=True)
        self._taken, self._next, self._since = taken, taken + EVERY, time.perf_counter()
        return share < GOAL and taken < self._most


def learn_ours(seconds: float) -> None:
    """Learn with the settings of `configs/ppo.yaml`."""
    from ninetka_agents.agent import make_agent
    from ninetka_agents.net_agent import NetAgent
    from ninetka_train.judging.arena import play_games
    from ninetka_train.learning.config import load_config
    from ninetka_train.learning.ppo import Learner, train_ppo

    course, maxn = _Course(seconds), make_agent("maxn")

    def share(network: Any) -> float:
        found = play_games([NetAgent(network), maxn], 2, GAMES, seed=1)
        return float(found.shares[:, 0].mean())

    def report(learner: Learner, _log: object) -> None:
        if not course.goes_on(lambda: share(learner.network)):
            raise SystemExit  # learning is all that this process does

    train_ppo(load_config("ppo", ["threads=1", "device=cpu"]), report=report)


def learn_peer(seconds: float) -> None:
    """Learn with MaskablePPO: 16 parallel games, a perceptron with two layers of 256 on the planes, four epochs."""
    import gymnasium
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    def make() -> Any:
        return gymnasium.make("ninetka_env:ninetka_env/Ninetka-v0", num_players=2, opponents="maxn")

    options: dict[str, Any] = {"n_steps": 256, "batch_size": 512, "n_epochs": 4, "gamma": 1.0, "ent_coef": 0.01}
    options |= {"learning_rate": 5e-4, "policy_kwargs": {"net_arch": [256, 256]}, "device": "cpu", "seed": 0}
    model = MaskablePPO("MlpPolicy", make_vec_env(make, n_envs=16, seed=0), **options)
    course, games = _Course(seconds), make()

    def share() -> float:
        won = 0
        for seed in range(GAMES):
            (seen, info), over, reward = games.reset(seed=seed), False, 0.0
            while not over:
                action, _ = model.predict(seen, action_masks=info["action_mask"], deterministic=True)
                seen, reward, over, _, info = games.step(action)
            won += reward > 0
        return won / GAMES

    class Judge(BaseCallback):
        """Stop the learner when its time is up or its goal is reached."""

        def _on_step(self) -> bool:
            return self.num_timesteps % 4096 != 0 or course.goes_on(share)

    model.learn(10**9, callback=Judge())


def rows(minutes: float) -> Iterator[Row]:
    """Run both learners and compare their times."""
    command = [sys.executable, "-m", "benchmarks.ppo", "--minutes", str(minutes), "--learner"]
    learners = [subprocess.Popen([*command, who], stdout=subprocess.PIPE, text=True) for who in ("ours", "peer")]
    try:
        ours, peer = ([json.loads(line) for line in learner.stdout or ()] for learner in learners)
    finally:
        for learner in learners:
            learner.kill()
    best = f"won {100 * max(point['share'] for point in peer):.0f} % at best"
    note = best if peer[-1]["share"] >= GOAL else f"{best} before its time ran out"
    taken = ours[-1]["seconds"] if ours[-1]["share"] >= GOAL else math.nan
    what = f"9tka, two players: PPO from nothing to {100 * GOAL:.0f} % of {GAMES} games against MaxN, one thread"
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
