"""Starts of two-player movement phases, kept for `benchmarks.solver`: `python -m benchmarks.positions` makes them anew.

Each source has 200 games: neutral stones lie at random, so that agents without chance differ too, and both seats place
theirs by the same agent; in every second game seat 1 opens each phase.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_env.core.verbs import Records
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_NEUTRALS

SOURCES = {"random": "random", "MaxN": "maxn", "UCT": "mcts:simulations=2000", "net": "net"}
"""Who placed the stones."""
FILE = Path(__file__).parent / "positions.npz"
GAMES = 200
PLIES = 45


def starts(source: str, count: int = GAMES) -> list[Game]:
    """Return the first `count` positions of a source, at the first slide."""
    return [_played(index, actions) for index, actions in enumerate(np.load(FILE)[source][:count])]


def _new_game(index: int) -> Game:
    return Game.new(2, turn_order="continue" if index % 2 else "restart")


def _played(index: int, actions: npt.NDArray[np.uint8]) -> Game:
    game = _new_game(index)
    for action in actions:
        game.play(int(action))
    return game


def make_starts(spec: str, seed: int) -> npt.NDArray[np.uint8]:
    """Let an agent place the seats' stones; return all actions, (`GAMES`, `PLIES`) uint8."""
    chance, agent, rng = make_agent("random"), make_agent(spec), np.random.default_rng(seed)
    games = [_new_game(index) for index in range(GAMES)]
    actions = np.zeros((GAMES, PLIES), np.uint8)
    for ply in range(PLIES):
        records: Records = np.concatenate([game.records for game in games])
        actions[:, ply] = (chance if ply < NUM_NEUTRALS else agent).act(records, rng)
        for game, action in zip(games, actions[:, ply], strict=True):
            game.play(int(action))
    return actions


if __name__ == "__main__":
    made = {source: make_starts(spec, seed) for seed, (source, spec) in enumerate(SOURCES.items())}
    np.savez_compressed(FILE, **made)  # type: ignore[arg-type]  # numpy's own option is a bool
