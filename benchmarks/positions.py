"""Starting positions of two-player movement phases for `benchmarks.solver`, stored in `positions.npz`.

`python -m benchmarks.positions` writes the file again. Each source has 200 games. Neutral stones are placed at random,
so that the games of deterministic agents differ, too. Then one agent places the stones of both seats. In every second
game, seat 1 starts each phase.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_NEUTRALS

SOURCES = {"random": "random", "MaxN": "maxn", "UCT": "mcts:simulations=2000", "net": "net"}
"""Spec of the agent that placed the stones, by name of the source."""
FILE = Path(__file__).parent / "positions.npz"
GAMES = 200
PLIES = 45


def load_starts(source: str, count: int = GAMES) -> list[Game]:
    """Return the first `count` positions of a source, all before the first slide."""
    return [_replay(index, actions) for index, actions in enumerate(np.load(FILE)[source][:count])]


def _new_game(index: int) -> Game:
    return Game.new(2, turn_order="continue" if index % 2 else "restart")


def _replay(index: int, actions: npt.NDArray[np.uint8]) -> Game:
    game = _new_game(index)
    for action in actions:
        game.play(int(action))
    return game


def generate_starts(spec: str, seed: int) -> npt.NDArray[np.uint8]:
    """Return the actions of games in which an agent places the stones of both seats, (`GAMES`, `PLIES`) uint8."""
    random_agent, agent, rng = make_agent("random"), make_agent(spec), np.random.default_rng(seed)
    games = [_new_game(index) for index in range(GAMES)]
    actions = np.zeros((GAMES, PLIES), np.uint8)
    for ply in range(PLIES):
        records: StateArray = np.concatenate([game.records for game in games])
        actions[:, ply] = (random_agent if ply < NUM_NEUTRALS else agent).act(records, rng)
        for game, action in zip(games, actions[:, ply], strict=True):
            game.play(int(action))
    return actions


if __name__ == "__main__":
    made = {source: generate_starts(spec, seed) for seed, (source, spec) in enumerate(SOURCES.items())}
    np.savez_compressed(FILE, **made)  # type: ignore[arg-type]  # numpy's own option is a bool
