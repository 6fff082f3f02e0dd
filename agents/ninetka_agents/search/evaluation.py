"""Evaluation functions of searches: make one from a network that reads observations, and check what it returns.

Start reading at `observation_evaluate` and `checked`. The interface of this project's own networks is in
`ninetka_agents.outputs`.

Compiled searches use these numbers without a check. So every search wraps its evaluation function in `checked`, which
rejects meaningless results and repairs results that would break a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice, words_for
from ninetka_env.api.observing import Int8s, observe
from ninetka_env.core.jit import jit
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import Limits, Variant, definition_of, limits_of
from ninetka_env.core.verbs import (
    BitSet,
    State,
    StateArray,
    choice_action,
    forced_action,
    is_legal,
    is_over,
    num_actions,
    write_choices,
)

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]

Evaluate: TypeAlias = Callable[[StateArray], tuple[Floats, Floats]]
"""Evaluates (N,) states that are not over. Returns the log policy, (N, num_actions) float32, and the win probabilities
per relative seat, `(seat - to_move) % n`, with draws shared, (N, P) float32. Entries of illegal actions and of seats
that are not in play are ignored. See `checked` for what else is accepted."""

TOLERANCE = 1e-2
"""Allowed deviation of a sum of probabilities or values from 1, and of a value from 0..1. It exceeds the rounding of
float16."""
ROUNDING_TOLERANCE = 1e-4
"""Smaller deviations of values are float32 rounding, so the values are not changed."""
MIN_RELATIVE_LOGIT = -1e9
"""Minimum logit relative to the best legal action: finite, but so low that no value outweighs it."""

FINE, REPAIRABLE, BAD_LOGIT, BAD_VALUE, BAD_SUM = range(5)
"""Results of `_inspect`."""


def observation_evaluate(network: Callable[[Int8s, Int8s], tuple[Any, Any]], variant: Variant) -> Evaluate:
    """Return a function for searches that evaluates states with a network that reads observations.

    Args:
        network: called with the observations (B, C, H, W) and the action masks (B, A) of the seats to move, both int8,
            as `ninetka_env.api.observing.observe` returns them. It returns a pair: the logits or the log policy,
            (B, A), and the win probabilities per relative seat, `(seat - to_move) % n`, with draws shared, (B, n). Both
            can be arrays or tensors without gradients on the CPU; illegal actions need not be masked.
        variant: the game with its options, from `ninetka_env.core.registry.load_variant` or `vector_env(...).variant`.

    The returned function raises `ValueError` for states of another variant, and if the results have another shape or
    are not numbers. The search checks the numbers; see `checked`.
    """
    limits = limits_of(variant.dtype)

    def evaluate(games: StateArray) -> tuple[Floats, Floats]:
        answer = network(*observe(games, variant))
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise ValueError(f"evaluate: returned {short_repr(answer)}: expected a pair of logits and values")
        logits = _as_floats("logits", answer[0], (len(games), variant.num_actions))
        values = _as_floats("values", answer[1], (len(games), variant.num_players))
        return _widened(logits, limits.actions), _widened(values, limits.players)

    return evaluate


def _widened(array: Floats, columns: int) -> Floats:
    """Return an array with additional columns of zeros, for actions and seats that the variant does not have."""
    return np.pad(array, ((0, 0), (0, columns - array.shape[1])))


def checked(evaluate: Evaluate) -> Evaluate:
    """Return a function that calls `evaluate` and checks its results; valid results are returned unchanged.

    Arrays, lists and tensors of real numbers are accepted. Entries of illegal actions and of seats that are not in play
    are ignored. Raw logits are normalised over the actions that a search can play, -inf becomes a very low logit, and
    values with rounding errors are scaled to sum to 1.

    The function raises `ValueError`, naming position and entry, if the logit of a legal action is nan or +inf, if a
    value is not within 0..1, if the values do not sum to 1, or if the result is not a pair of arrays of the right
    shapes. It passes a copy of the positions to `evaluate`, and never writes to the arrays that `evaluate` returns.
    """
    known: tuple[Any, Limits] | None = None  # cached: finding the limits takes as long as checking a position

    def call(games: StateArray) -> tuple[Floats, Floats]:
        nonlocal known
        found = known  # another thread may replace `known`
        if found is None or found[0] is not games.dtype:
            known = found = games.dtype, limits_of(games.dtype)
        count, limits = len(games), found[1]
        answer = evaluate(_copy_bytes(games))
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            expected = f"logits ({count}, {limits.actions}) and values ({count}, {limits.players})"
            raise ValueError(f"evaluate: returned {short_repr(answer)}: expected a pair of arrays, {expected}")
        logits = _as_floats("logits", answer[0], (count, limits.actions))
        values = _as_floats("values", answer[1], (count, limits.players))
        choices, actions = np.zeros(words_for(limits.choices), np.int64), np.zeros(limits.actions, np.int64)
        status, row, place = _inspect(games, logits, values, choices, actions)
        if status > REPAIRABLE:
            raise ValueError(f"evaluate: {_error_message(games, logits, values, status, row, place)}")
        if status == REPAIRABLE:
            logits, values = logits.copy(), values.copy()
            _repair(games, logits, values, choices, actions)
        return logits, values

    return call


def _copy_bytes(games: StateArray) -> StateArray:
    """Return a bytewise copy: numpy copies structured arrays field by field, which takes several times as long."""
    return np.ndarray(games.shape, games.dtype, bytearray(games.tobytes()))


def _as_floats(name: str, array: Any, shape: tuple[int, int]) -> Floats:
    """Return real numbers as a C-contiguous float32 array for compiled functions."""
    if type(array) is np.ndarray and array.dtype == np.float32 and array.shape == shape and array.flags.carray:
        return array
    try:
        found = np.asarray(array)
    except Exception as error:  # such as rows of different lengths, or a tensor that requires grad
        raise ValueError(f"evaluate: the {name} cannot be read as an array: {short_repr(str(error))}") from error
    if found.dtype.kind not in "fiu":
        raise ValueError(f"evaluate: the {name} are of type {short_repr(found.dtype)}: expected real numbers")
    if found.shape != shape:
        raise ValueError(f"evaluate: the {name} are of shape {found.shape}: expected {shape}")
    with np.errstate(over="ignore"):
        return np.require(found, np.float32, ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])


def _error_message(games: StateArray, logits: Floats, values: Floats, status: int, row: int, place: int) -> str:
    """Return the error message for a result of `_inspect`."""
    game = definition_of(games.dtype).game_class(games[row : row + 1])
    if status == BAD_LOGIT:
        return (
            f"log policy of position {row} is {logits[row, place]} at action {place} ({game.action_name(place)}), "
            "which is legal: expected the logarithm of its probability, -inf for 0"
        )
    given = ", ".join(f"{value:.6g}" for value in values[row, : game.num_players])
    seat = f", {values[row, place]:.6g} for relative seat {place}" if status == BAD_VALUE else ""
    return (
        f"values of position {row} are [{given}]{seat}: expected win probabilities of its {game.num_players} seats, "
        "each from 0 to 1, which sum to 1"
    )


@jit
def _inspect(games: StateArray, logits: Floats, values: Floats, choices: BitSet, actions: Ints) -> tuple[int, int, int]:
    """Return the status of the results, and for an error the row and the action or seat."""
    status = FINE
    for row in range(len(games)):
        game = games[row]
        for action in range(num_actions(game)):
            if not logits[row, action] < np.inf and is_legal(game, action):
                return BAD_LOGIT, row, action
        total = 0.0
        for seat in range(game.num_players):
            if not -TOLERANCE <= values[row, seat] <= 1.0 + TOLERANCE:
                return BAD_VALUE, row, seat
            total += values[row, seat]
        if abs(total - 1.0) > TOLERANCE:
            return BAD_SUM, row, 0
        legal = actions[: _write_playable(game, choices, actions)]
        if not (_is_policy(logits[row], legal) and _are_probabilities(values[row], game.num_players)):
            status = REPAIRABLE
    return status, 0, 0


@jit
def _repair(games: StateArray, logits: Floats, values: Floats, choices: BitSet, actions: Ints) -> None:
    """Normalise the rows that need it; other rows are not changed."""
    for row in range(len(games)):
        game = games[row]
        legal = actions[: _write_playable(game, choices, actions)]
        if not _is_policy(logits[row], legal):
            _normalise(logits[row], legal)
        if not _are_probabilities(values[row], game.num_players):
            _rescale(values[row], game.num_players)


@jit
def _write_playable(game: State, choices: BitSet, actions: Ints) -> int:
    """Write the actions that a search can play, the choices or a forced action, to `actions`; return their number.

    A legal action that is not a choice, such as resigning, is never searched, so the policy does not include it.
    """
    if is_over(game):
        return 0
    forced = forced_action(game)
    if forced >= 0:
        actions[0] = forced
        return 1
    write_choices(game, choices)
    count, choice = 0, next_choice(choices, -1)
    while choice >= 0:
        actions[count] = choice_action(game, choice)
        count, choice = count + 1, next_choice(choices, choice)
    return count


@jit
def _is_policy(logits: Floats, legal: Ints) -> bool:
    """Return whether the logits (none of them nan) are finite and their policy sums to 1."""
    if len(legal) == 0:
        return True
    best, lowest_logit = -np.inf, np.inf
    for action in legal:
        best, lowest_logit = max(best, float(logits[action])), min(lowest_logit, float(logits[action]))
    if not lowest_logit >= best + MIN_RELATIVE_LOGIT or best == -np.inf:
        return False
    total = 0.0
    for action in legal:
        total += np.exp(logits[action] - best)
    return abs(best + np.log(total)) <= TOLERANCE


@jit
def _normalise(logits: Floats, legal: Ints) -> None:
    """Make the policy of the legal actions sum to 1; if all probabilities are 0, make them equal."""
    best, total = -np.inf, 0.0
    for action in legal:
        best = max(best, float(logits[action]))
    for action in legal:
        logits[action] = max(logits[action] - best, MIN_RELATIVE_LOGIT) if best > -np.inf else 0.0
        total += np.exp(float(logits[action]))
    for action in legal:
        logits[action] -= np.log(total)


@jit
def _are_probabilities(values: Floats, players: int) -> bool:
    """Return whether the values are from 0 to 1 and sum to 1, up to float32 rounding."""
    total = 0.0
    for seat in range(players):
        if not -ROUNDING_TOLERANCE <= values[seat] <= 1.0 + ROUNDING_TOLERANCE:
            return False
        total += values[seat]
    return abs(total - 1.0) <= ROUNDING_TOLERANCE


@jit
def _rescale(values: Floats, players: int) -> None:
    """Clip values to 0..1 and scale them to sum to 1."""
    total = 0.0
    for seat in range(players):
        values[seat] = min(max(values[seat], 0.0), 1.0)
        total += values[seat]
    for seat in range(players):
        values[seat] /= total
