"""Blunder rates: how often an agent's slide turned a won two-player position into a lost one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agents.solver import solve_batch
from ninetka_env._jit import jit
from ninetka_env.geometry import NUM_SLOTS
from ninetka_env.rules import GAME, MOVEMENT, Records, is_over, play
from train.arena import Results
from train.evaluate import BlunderFigures, wilson


def check_exact(num_players: int) -> None:
    """Raise `ValueError` unless positions of such games can be solved."""
    if num_players != 2:
        raise ValueError(f"exact results with num_players={num_players}: the solver plays two-player games")


def blunder_figures(results: Results, nodes: int, threads: int = 0) -> list[BlunderFigures]:
    """Solve every movement position of finished two-player games; return a row per agent.

    Args:
        results: the games.
        nodes: the solver's budget per position.
        threads: at most this many threads; 0 for all that numba may use.
    """
    check_exact(results.settings.num_players)
    count = len(results.winners)
    positions, lengths = np.zeros((count, NUM_SLOTS + 1), GAME), np.zeros(count, np.int64)
    _replay(results.starts, results.schedule.rotation, results.actions, positions, lengths)
    there = np.arange(NUM_SLOTS + 1) < lengths[:, None]
    holders = np.full(positions.shape, -1, np.int64)
    holders[there] = solve_batch(positions[there], nodes, threads, moves=False)[0]
    decided = there[:, 1:]  # whoever moved at ply i led to position i + 1
    movers = positions["to_move"][:, :-1]
    agents = np.take_along_axis(results.schedule.seatings, movers.astype(np.int64), axis=1)
    before, after = holders[:, :-1], holders[:, 1:]
    solved = (before >= 0) & (after >= 0)
    won = solved & (before == movers)
    return [
        _figures(name, decided & (agents == agent), solved, won, after != movers)
        for agent, name in enumerate(results.settings.agents)
    ]


def _figures(
    name: str,
    own: npt.NDArray[np.bool_],
    solved: npt.NDArray[np.bool_],
    won: npt.NDArray[np.bool_],
    lost_after: npt.NDArray[np.bool_],
) -> BlunderFigures:
    decisions, held = int(own.sum()), int((own & won).sum())
    blunders = int((own & won & lost_after).sum())
    rate, interval = (blunders / held, wilson(blunders, held)) if held else (None, None)
    unsolved = int((own & ~solved).sum()) / max(1, decisions)
    return BlunderFigures(name, decisions, held, blunders, rate, interval, unsolved)


@jit
def _replay(
    starts: Records,
    rotation: int,
    actions: npt.NDArray[np.uint8],
    positions: Records,
    lengths: npt.NDArray[np.int64],
) -> None:
    """Write the positions of each game's movement phase, the last one included, and how many there are."""
    game = np.zeros(1, GAME)
    for index in range(len(actions)):
        game[0] = starts[index // rotation]
        ply = 0
        while True:
            if game[0].phase == MOVEMENT:
                positions[index, lengths[index]] = game[0]
                lengths[index] += 1
                if is_over(game[0]):
                    break
            play(game[0], int(actions[index, ply]))
            ply += 1
