"""Advantages and value targets for games in which the seats do not alternate strictly; numpy is all that they need.

Start reading at `seat_advantages`. The guide on self-play (`docs/guides/self-play.md`) explains how to use it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.options import check_nonnegative, short_repr

Array = Any
"""An array of numpy or a tensor of PyTorch."""


class SeatTargets(NamedTuple):
    """Targets for the T * N decisions of a rollout of N games."""

    advantages: Array
    """(T, N) float32: the advantage of each decision, for the seat that made it."""
    returns: Array
    """(T, N, n) float32: the value target of every seat at every ply. The target of the seat that moved is its value
    plus its advantage. The target of each other seat is that of its next decision, plus its rewards until then."""


def seat_advantages(
    seats: npt.ArrayLike,
    rewards: npt.ArrayLike,
    terminated: npt.ArrayLike,
    values: npt.ArrayLike,
    last_values: npt.ArrayLike,
    gamma: float = 1.0,
    gae_lambda: float = 0.95,
) -> SeatTargets:
    """Return generalised advantage estimates over each seat's own decisions, for a rollout of `vector_env`.

    A seat's trajectory consists of the plies at which it moved, regardless of how many moves other seats made in
    between, if any. Let V be the seat's value, t' its next decision after ply t in the same game, and R the sum of its
    rewards from ply t until before t'. Then

        A(t) = R + gamma * V(t') - V(t) + gamma * lambda * A(t')

    If the game ends before the seat moves again, A(t) = R - V(t), where R includes its reward for the ply that ended
    the game, no matter which seat played it. If the rollout ends before that, A(t) = R + gamma * V' - V(t), where V' is
    the seat's component of `last_values`. (Schulman et al., "High-dimensional continuous control using generalized
    advantage estimation", ICLR 2016, equation 16.)

    So `gamma` discounts once per decision of the same seat, not once per ply, as if the other seats were part of the
    environment. Seats do not influence each other's advantages: if some seats do not learn, their `values` can be any
    finite numbers, but then their `returns` are meaningless.

    If `seats` is a tensor of PyTorch, everything is computed on its device, in float64, and the results are tensors
    there, with the same numbers. Otherwise they are arrays.

    Args:
        seats: (T, N) integers, the seats that moved: `to_move` before each step.
        rewards: (T, N, n) rewards of all seats for each step.
        terminated: (T, N) whether the step ended the game; the next ply of that row belongs to a new game.
        values: (T, N) the value of each position before the step, for the seat that moved.
        last_values: (N, n) the value of each position after the last step, for every seat; see
            `ninetka_env.api.observing.observe`.
        gamma: discount per decision, 0..1. It need not be below 1, because all games end.
        gae_lambda: lambda, 0..1: 0 for one-step differences, 1 for the sum of all later rewards.

    Raises:
        ValueError: if an array has the wrong shape or type, a seat does not exist, or a number is not within 0..1.
    """
    library, device = _library_of(seats)
    moved = _as_array("seats", seats, "iu", ("T", "N"), np.int64, device)
    plies, count = moved.shape
    each_reward = _as_array("rewards", rewards, "biuf", (plies, count, "n"), np.float64, device)
    players = each_reward.shape[2]
    ends = _as_array("terminated", terminated, "biu", (plies, count), np.bool_, device)
    value = _as_array("values", values, "biuf", (plies, count), np.float64, device)
    last_value = _as_array("last_values", last_values, "biuf", (count, players), np.float64, device)
    for name, number in (("gamma", gamma), ("gae_lambda", gae_lambda)):
        if check_nonnegative(name, number) > 1:
            raise ValueError(f"{name}={short_repr(number)}: expected a number from 0 to 1")
    if 0 not in moved.shape and (moved.min() < 0 or moved.max() >= players):
        found = f"from {int(moved.min())} to {int(moved.max())}"
        raise ValueError(f"seats: {found}: expected 0..{players - 1}, as `rewards` has")
    rows = _as_array("rows", np.arange(count), "i", ("N",), np.int64, device)
    movers = [(rows, each) for each in moved]
    return _go_back(library, movers, each_reward, ends, value, last_value, float(gamma), float(gae_lambda))


def _go_back(
    library: Any,
    movers: list[tuple[Array, Array]],
    rewards: Array,
    ends: Array,
    values: Array,
    last_values: Array,
    gamma: float,
    gae_lambda: float,
) -> SeatTargets:
    """Compute the targets from the last ply to the first, in all games at once.

    `library` is numpy or PyTorch. `movers` are the indices of the seats that moved, for each ply.
    """
    advantages, returns = (library.zeros_like(array, dtype=library.float32) for array in (values, rewards))
    # What follows for each seat, (N, n): rewards until its next decision, and value and advantage of that decision.
    reward, next_advantage = library.zeros_like(last_values), library.zeros_like(last_values)
    next_value = last_values + 0.0  # a copy
    for ply, mover in reversed(list(enumerate(movers))):
        for array in (reward, next_value, next_advantage):
            array[ends[ply]] = 0.0  # the next ply belongs to another game
        reward += rewards[ply]
        advantage = reward[mover] + gamma * next_value[mover] - values[ply] + gamma * gae_lambda * next_advantage[mover]
        reward[mover], next_value[mover], next_advantage[mover] = 0.0, values[ply], advantage
        advantages[ply] = advantage
        returns[ply] = reward + next_value + next_advantage
    return SeatTargets(advantages, returns)


def _library_of(given: Any) -> tuple[Any, Any]:
    """Return PyTorch and the device of a tensor; for anything else numpy and None."""
    torch = sys.modules.get("torch")
    return (torch, given.device) if torch and isinstance(given, torch.Tensor) else (np, None)


def _as_array(
    name: str, given: Any, kinds: str, shape: tuple[int | str, ...], dtype: type[np.generic], device: Any
) -> Array:
    """Return an array, or a tensor if there is a device.

    It has this dtype and shape, with text for any length, if it was of one of the kinds (`numpy.dtype.kind`).
    """
    try:
        array: Any = given.to(device) if device is not None and _library_of(given)[1] else np.asarray(given)
    except (ValueError, TypeError, RuntimeError):  # different lengths; tensors with gradients, or of other dtypes
        array = np.empty(0, object)
    has_gradient = getattr(given, "requires_grad", False)
    if _kind_of(array) not in kinds or has_gradient:
        expected = "numbers" if "f" in kinds else "integers"
        hint = ": use tensor.detach()" if has_gradient else ""
        raise ValueError(f"{name}: expected an array of {expected}, got {short_repr(given)}{hint}")
    fits = [isinstance(length, str) or length == found for length, found in zip(shape, array.shape, strict=False)]
    if len(shape) != array.ndim or not all(fits):
        raise ValueError(f"{name}: expected shape ({', '.join(map(str, shape))}), got {tuple(array.shape)}")
    if not isinstance(array, np.ndarray):
        return array.to(getattr(sys.modules["torch"], np.dtype(dtype).name))
    array = array.astype(dtype, order="C")
    return array if device is None else sys.modules["torch"].from_numpy(array).to(device)


def _kind_of(array: Array) -> str:
    """Return the kind of dtype of an array or a tensor, as in `numpy.dtype.kind`."""
    if isinstance(array, np.ndarray):
        return array.dtype.kind
    if array.is_floating_point() or array.is_complex():
        return "c" if array.is_complex() else "f"
    return "b" if str(array.dtype) == "torch.bool" else "i"
