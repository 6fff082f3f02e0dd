"""Input features of `board_network`: the environment's planes, a few global numbers, and the legal actions.

The N = height * width nodes of a board are numbered row by row. A game's actions are *layers* of N actions each, one
per node, followed by a few other actions. Everything is from the point of view of the seat to move; there are two
seats.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.plugins import find_in_network_inputs
from ninetka_env.core.batch import as_states
from ninetka_env.core.jit import jit, readonly_array
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import (
    State,
    StateArray,
    num_actions,
    verb,
    write_legal_mask,
    write_observation,
    write_scores,
)

Array: TypeAlias = npt.NDArray[Any]
Int8: TypeAlias = npt.NDArray[np.int8]
Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]
Doubles: TypeAlias = npt.NDArray[np.float64]

POSITIONS_PER_CLAIM = 32
"""Number of positions that a thread claims at a time."""
MIN_POSITIONS_PER_THREAD = 128
"""Minimum number of positions per thread; with fewer, starting another thread takes longer than it saves."""


class Inputs(NamedTuple):
    """Inputs for B positions on boards of one size: numpy arrays or tensors."""

    planes: Any
    """(B, C, height, width) int8: the environment's observation for the seat to move."""
    globals: Any
    """(B, G) float32: the current lead (own score minus the other's) and further numbers that the game defines. Points
    are divided by the square root of N, because final margins grow in proportion to it."""
    mask: Any
    """(B, A) int8: the legal actions; A is the maximum number of actions for states of this dtype."""


@verb(find=find_in_network_inputs)
def write_game_inputs(game: State, planes: Int8, globals_: Floats, mask: Int8) -> None:
    """Write the inputs of a position that the game defines: all but the lead.

    By default these are the observation and the legal actions of the seat to move. A game whose network has other
    inputs has a module with this function and `NUM_GLOBALS`, G; see `GamePlugins.network_inputs`.

    Args:
        game: the state.
        planes: (C * N,) int8; every number is written.
        globals_: (G - 1,) float32, the global numbers after the lead, initially 0.
        mask: (A,) int8, initially 0.
    """
    write_observation(game, int(game.to_move), planes)
    write_legal_mask(game, mask[: num_actions(game)])


def make_inputs(games: StateArray, shape: tuple[int, int, int], threads: int = 1) -> Inputs:
    """Return the inputs for (B,) states of one game and one board size.

    Args:
        games: the states.
        shape: (C, height, width) of the planes.
        threads: maximum number of threads; the inputs do not depend on it.
    """
    games = as_states(games)
    count, num_globals = len(games), find_in_network_inputs(games.dtype, "NUM_GLOBALS") or 1
    planes, globals_ = np.empty((count, *shape), np.int8), np.zeros((count, num_globals), np.float32)
    mask = np.zeros((count, limits_of(games.dtype).actions), np.int8)
    threads = min(threads, count // MIN_POSITIONS_PER_THREAD)
    run_shared(_write, threads, games, shape[1] * shape[2], planes.reshape(count, -1), globals_, mask)
    return Inputs(planes, globals_, mask)


@jit
def _write(control: Control, games: StateArray, nodes: int, planes: Int8, globals_: Floats, mask: Int8) -> None:
    """Claim positions and write their inputs, until none is left."""
    scores = np.empty(2)
    while True:
        first, stop = claim(control, 0, len(games), POSITIONS_PER_CLAIM)
        if first == stop:
            return
        for index in range(first, stop):
            write_inputs(games[index], nodes, planes[index], globals_[index], mask[index], scores)


@jit(refcount=False)
def write_inputs(game: State, nodes: int, planes: Int8, globals_: Floats, mask: Int8, scores: Doubles) -> None:
    """Write the inputs of a position with `nodes` nodes; for compiled code on a CPU or GPU.

    Args:
        game: the state.
        nodes: N, the number of nodes.
        planes: (C * N,) int8.
        globals_: (G,) float32, initially 0.
        mask: (A,) int8, initially 0.
        scores: (2,) float64, may be overwritten.
    """
    write_game_inputs(game, planes, globals_[1:], mask)
    write_scores(game, scores)
    lead = np.float32(scores[game.to_move] - scores[1 - game.to_move])
    globals_[0] = lead / np.float32(math.sqrt(nodes))


# Symmetries


@functools.cache
def symmetries(height: int, width: int) -> Ints:
    """Return the symmetries of a board as permutations, (8, N) int64 for square boards, otherwise (4, N).

    Entry [s, p] is the node that symmetry s moves to place p; symmetry 0 is the identity.
    """
    nodes = np.arange(height * width).reshape(height, width)
    images = [nodes, nodes[::-1], nodes[:, ::-1], nodes[::-1, ::-1]]
    if height == width:
        images += [each.T for each in images]
    return readonly_array([each.ravel() for each in images], np.int64)


def apply_symmetry(inputs: Inputs, owners: Array, order: Ints) -> tuple[Inputs, Array]:
    """Apply a symmetry to each position; the mask is not changed.

    Args:
        inputs: B positions.
        owners: (B, T), the final owners of T targets; those after the N nodes of the board are not changed.
        order: (B, N), the symmetry of each position: a row of `symmetries`.

    Returns:
        The transformed inputs and owners.
    """
    count, layers, height, width = inputs.planes.shape
    flat, nodes = inputs.planes.reshape(count, layers, -1), order.shape[1]
    planes = np.take_along_axis(flat, order[:, None], 2).reshape(count, layers, height, width)
    transformed_owners = np.hstack([np.take_along_axis(owners, order, 1), owners[:, nodes:]])
    return inputs._replace(planes=planes), transformed_owners


def transform_actions(actions: Ints, targets: Ints, layers: int) -> Ints:
    """Return (K,) actions after a symmetry: actions on nodes move with the node, other actions stay the same.

    Args:
        actions: (K,) actions.
        targets: (K, N), for each action, the place that each node of its board moves to.
        layers: number of actions per node.
    """
    nodes = targets.shape[1]
    layer, node = np.divmod(actions, nodes)
    transformed = layer * nodes + np.take_along_axis(targets, node[:, None], 1)[:, 0]
    return np.where(layer < layers, transformed, actions)


def move_entries(array: Array, rows: Ints, before: Ints, after: Ints) -> Array:
    """Return a copy of (B, A) `array` with the entries (rows, before) moved to (rows, after), and 0 everywhere else."""
    moved = np.zeros_like(array)
    moved[rows, after] = array[rows, before]
    return moved
