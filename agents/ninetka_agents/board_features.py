"""Input features of `board_network`: the environment's planes, a few global numbers, and the legal actions.

The N = height * width nodes of a board are numbered row by row. A game's actions are *layers* of N actions each, one
per node, followed by a few other actions. Everything is from the point of view of the seat to move; there are two
seats.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import as_records
from ninetka_env.core.jit import frozen, jit
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records, num_actions, write_legal_mask, write_observation, write_scores

Array: TypeAlias = npt.NDArray[Any]
Int8: TypeAlias = npt.NDArray[np.int8]
Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]


class Inputs(NamedTuple):
    """Inputs for B positions on boards of one size: numpy arrays or tensors."""

    planes: Any
    """(B, C, height, width) int8: the environment's observation for the seat to move."""
    globals: Any
    """(B, G) float32: the current lead (own score minus the other's) and further numbers of the game. Points are
    divided by the square root of N, because final margins grow in that proportion on larger boards."""
    mask: Any
    """(B, A) int8: the legal actions; A is the maximum for games of this dtype."""


def make_inputs(games: Records, shape: tuple[int, int, int], more: Floats) -> Inputs:
    """Return the inputs for (B,) states of one game and one board size.

    Args:
        games: the states.
        shape: (C, height, width) of an observation.
        more: (B, G - 1) float32, the global numbers after the lead.
    """
    games = as_records(games)
    count, (_, height, width) = len(games), shape
    planes, leads = np.empty((count, *shape), np.int8), np.empty((count, 1), np.float32)
    mask = np.zeros((count, limits_of(games.dtype).actions), np.int8)
    _write(games, planes.reshape(count, -1), leads[:, 0], mask)
    return Inputs(planes, np.hstack([leads / np.float32(np.sqrt(height * width)), more]), mask)


@jit
def _write(games: Records, planes: Int8, leads: Floats, mask: Int8) -> None:
    scores = np.empty(2)
    for index in range(len(games)):
        game = games[index]
        viewer = int(game.to_move)
        write_observation(game, viewer, planes[index])
        write_legal_mask(game, mask[index, : num_actions(game)])
        write_scores(game, scores)
        leads[index] = scores[viewer] - scores[1 - viewer]


# Symmetries


@functools.cache
def symmetries(height: int, width: int) -> Ints:
    """Return the node that each symmetry moves to each place: (8, N) on squares, else (4, N); row 0 is the identity."""
    nodes = np.arange(height * width).reshape(height, width)
    turned = [nodes, nodes[::-1], nodes[:, ::-1], nodes[::-1, ::-1]]
    if height == width:
        turned += [each.T for each in turned]
    return frozen([each.ravel() for each in turned], np.int64)


def turn(inputs: Inputs, owners: Array, order: Ints) -> tuple[Inputs, Array]:
    """Apply a symmetry to each position; the mask is not changed.

    Args:
        inputs: B positions.
        owners: (B, T); entries after the N nodes of the board are not changed.
        order: (B, N), the node that moves to each place.
    """
    count, layers, height, width = inputs.planes.shape
    flat, nodes = inputs.planes.reshape(count, layers, -1), order.shape[1]
    planes = np.take_along_axis(flat, order[:, None], 2).reshape(count, layers, height, width)
    turned = np.hstack([np.take_along_axis(owners, order, 1), owners[:, nodes:]])
    return inputs._replace(planes=planes), turned


def turn_nodes(actions: Ints, places: Ints, layers: int) -> Ints:
    """Return (K,) actions after a symmetry: actions on nodes move with the node, other actions stay the same.

    Args:
        actions: (K,) actions.
        places: (K, N), the place that each node of the action's board moves to.
        layers: number of actions per node.
    """
    nodes = places.shape[1]
    layer, node = np.divmod(actions, nodes)
    there = layer * nodes + np.take_along_axis(places, node[:, None], 1)[:, 0]
    return np.where(layer < layers, there, actions)


def move_entries(array: Array, rows: Ints, before: Ints, after: Ints) -> Array:
    """Return a copy of (B, A) `array` with the entries (rows, before) moved to (rows, after), and 0 everywhere else."""
    moved = np.zeros_like(array)
    moved[rows, after] = array[rows, before]
    return moved
