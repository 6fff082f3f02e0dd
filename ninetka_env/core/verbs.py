"""*Verbs*: functions that compiled code can call for any game, dispatched by the dtype of the game's state.

A state is an element of a numpy structured array, and no two games share a dtype. numba knows the dtype when it
compiles, so a call such as `play(game, action)` becomes a direct call of that game's compiled function. Batch steps,
searches and arenas that use only verbs therefore work for every game. In plain Python, the function is looked up at
each call.

Every game must implement the verbs in `REQUIRED`; the other verbs have a default implementation here. An implementation
is a function with the name of the verb, compiled by `ninetka_env.core.jit.jit`, in the game's `Definition.compiled`.
It does not check its arguments, draws random numbers only from the stream that it is given, and stores nothing outside
the state.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global

from ninetka_env.core.cache import found_by_type
from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import jit
from ninetka_env.core.text import did_you_mean

Record: TypeAlias = Any
"""The state of one game, an element of `Records`. Every state has the fields `num_players` and `to_move`."""
Records: TypeAlias = npt.NDArray[np.void]
"""A state array: a structured array with one element per game."""
Codes: TypeAlias = npt.NDArray[np.int64]
"""Option values of a game, encoded as ints."""
Mask: TypeAlias = npt.NDArray[np.int8]
Words: TypeAlias = npt.NDArray[np.int64]
"""A set of small integers: k is bit `k % 63` of word `k // 63`; the sign bits are 0."""

Trace: TypeAlias = npt.NDArray[np.int32]
"""The plies of a simulated game, (1 + T,) int32: the number of plies, then `action * 8 + seat` for each."""
_SEATS = 8
"""More seats than any game has."""

WORD = 63
"""Number of bits of a word that are used."""
_LOADERS: list[Callable[[], None]] = []
"""Callbacks for states of an unknown dtype, which may come from a file before their game was loaded."""

F = TypeVar("F", bound=Callable[..., Any])

NAMES: dict[str, int] = {}
"""All verbs with their numbers of arguments."""
REQUIRED: list[str] = []

_FUNCTIONS: dict[np.dtype[Any], Mapping[str, Callable[..., Any]]] = {}
"""For each dtype, the compiled functions of its game by name."""


Find: TypeAlias = Callable[[np.dtype[Any], str], Callable[..., Any] | None]
"""Returns a game's implementation of a verb, given the dtype and the verb's name; None if it has none."""


def _find_own(dtype: np.dtype[Any], name: str) -> Callable[..., Any] | None:
    """Return the implementation in the game's `Definition.compiled`, or None."""
    if dtype not in _FUNCTIONS:
        for load in _LOADERS:
            load()
    if dtype not in _FUNCTIONS:
        raise TypeError(f"no registered game has the dtype {dtype}: see ninetka_env.core.registry")
    return _FUNCTIONS[dtype].get(name)


def verb(function: F | None = None, *, find: Find | None = None) -> Any:
    """Make a function a verb; the function is the default implementation.

    Args:
        function: the default implementation; its first argument is a state.
        find: returns a game's implementation; by default it is looked up in `Definition.compiled`. It must always
            return the same function, because the code compiled with it is cached.
    """
    if function is None:
        return functools.partial(verb, find=find)
    name, default, look_up = function.__name__, function, find or _find_own
    if find is None:
        NAMES[name] = len(inspect.signature(function).parameters)

    def meaning(dtype: np.dtype[Any]) -> Callable[..., Any]:
        return look_up(dtype, name) or _compiled(default)

    @functools.wraps(function)
    def call(game: Record, *arguments: Any) -> Any:
        return meaning(game.dtype)(game, *arguments)

    infer_global(call, types.Function(_calls(call, meaning)))
    return call


def _calls(verb: Callable[..., Any], meaning: Callable[[np.dtype[Any]], Any]) -> type[AbstractTemplate]:
    """Return a numba typing template that resolves a call of `verb` to the function for the state's dtype.

    An `overload` would add a function in between, which numba compiles together with everything that it calls. For the
    rules of a game that takes half a second each.
    """

    class Call(AbstractTemplate):
        key = verb

        def generic(self, arguments: Any, named: Any) -> Any:
            if not isinstance(arguments[0], types.Record):
                return None
            return types.Dispatcher(meaning(arguments[0].dtype)).get_call_type(self.context, arguments, named)

        def get_impl_key(self, signature: Any) -> Any:
            return meaning(signature.args[0].dtype).get_overload(signature)

    return Call


def required(function: F) -> F:
    """Make a function a verb that every game must implement."""
    REQUIRED.append(function.__name__)
    return verb(function)


def when_unknown(load: Callable[[], None]) -> None:
    """Register a callback that is called when a state of an unknown dtype is met; it may register that game."""
    _LOADERS.append(load)


def define(dtypes: Iterable[np.dtype[Any]], functions: Mapping[str, Callable[..., Any]]) -> None:
    """Use these functions as implementations of verbs for these dtypes; called by `ninetka_env.core.registry.register`.

    Raises:
        ValueError: if a function is not a verb or has another number of arguments, or required verbs are missing; the
            message names them.
    """
    for name, function in functions.items():
        if name not in NAMES:
            raise ValueError(f"{name!r} is no verb{did_you_mean(name, NAMES)}")
        count = len(inspect.signature(getattr(function, "py_func", function)).parameters)
        if count != NAMES[name]:
            raise ValueError(f"{name} takes {NAMES[name]} arguments, this one {count}")
    if missing := [name for name in REQUIRED if name not in functions]:
        raise ValueError(f"the compiled functions lack {', '.join(missing)}")
    types_ = list(dtypes)
    _FUNCTIONS.update(dict.fromkeys(types_, functions))
    found_by_type(types_, functions.values())


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = jit(function)
    return compiled


# Required verbs


@required
def start(game: Record, options: Codes, streams: Streams, index: int) -> None:
    """Set `game` to the start of a game with these options.

    Args:
        game: the state. Every field must be written, also with 0, so that equal positions are equal byte for byte.
        options: (k,) int64, the encoded options in the order of `Definition.options`.
        streams: random streams for a random start.
        index: index of the stream to draw from.
    """
    raise NotImplementedError


@required
def num_actions(game: Record) -> int:
    """Return the number of actions, legal or not."""
    raise NotImplementedError


@required
def is_over(game: Record) -> bool:
    """Return whether the game has ended."""
    raise NotImplementedError


@required
def is_legal(game: Record, action: int) -> bool:
    """Return whether `action` is legal; out-of-range integers return False, and after the end all actions do."""
    raise NotImplementedError


@required
def write_legal_mask(game: Record, mask: Mask) -> None:
    """Write 1 for each legal action of the seat to move and 0 for all others into `mask`, (num_actions,) int8."""
    raise NotImplementedError


@required
def play(game: Record, action: int) -> int:
    """Play a legal action and set the seat to move, which can be the same seat again.

    Returns:
        The bit set of the seats that were skipped because they had no legal action; 0 in most games.
    """
    raise NotImplementedError


@required
def winner_of(game: Record) -> int:
    """Return the seat that wins in this position, or `DRAWN`, -1; final when the game is over."""
    raise NotImplementedError


@required
def write_observation(game: Record, viewer: int, planes: Mask) -> None:
    """Write the observation of seat `viewer` to `planes`, (C * H * W,) int8 of 0 and 1; every element is written."""
    raise NotImplementedError


# Optional verbs: rules


@verb
def write_scores(game: Record, scores: npt.NDArray[Any]) -> None:
    """Write each seat's score in this position to `scores`, (n,); by default 1 for the winner and 0 for the others."""
    winner = winner_of(game)
    for seat in range(game.num_players):
        scores[seat] = int(seat == winner)


@verb
def write_score_rewards(game: Record, rewards: npt.NDArray[np.float32]) -> None:
    """Write the reward `"score"` to `rewards`, (n,) float32 with sum 0; by default it equals the reward `"win"`."""
    write_win_rewards(game, rewards)


@jit
def write_win_rewards(game: Record, rewards: npt.NDArray[np.float32]) -> None:
    """Write the reward `"win"` to `rewards`, (n,) float32: see `ninetka_env.core.outcome.REWARDS`."""
    players, winner = game.num_players, winner_of(game)
    for seat in range(players):
        rewards[seat] = 0.0 if winner < 0 else -1.0 / (players - 1)
    if winner >= 0:
        rewards[winner] = 1.0


@verb
def plies(game: Record) -> int:
    """Return the number of plies played so far."""
    return int(game.plies)


@verb
def stage(game: Record) -> int:
    """Return the stage of the game, an index into `Definition.stages`; thinking times are reported by stage."""
    return 0


@verb
def write_targets(game: Record, targets: Mask) -> None:
    """Write auxiliary training targets, (T,) int8: seats, or -1 for no seat.

    An example is the owner of each section or point at the end. By default all are -1.
    """
    for place in range(len(targets)):
        targets[place] = -1


# Optional verbs: observations in batches


@verb
def write_slow_planes(game: Record, viewer: int, planes: Mask) -> None:
    """Write the planes that, seen by the seat to move, do not change during a stage; by default none."""


@verb
def write_fast_planes(game: Record, viewer: int, planes: Mask) -> None:
    """Write all planes that `write_slow_planes` does not write; together they equal `write_observation`.

    Before the call, `planes` has the values that these two verbs wrote for earlier positions of the
    same game, each seen by the seat to move.
    """
    write_observation(game, viewer, planes)


# Relative seats: relative seat r is seat `(viewer + r) % n`, so the viewer is relative seat 0


@jit(inline=True)
def relative_seat(seat: int, viewer: int, num_players: int) -> int:
    """Return a seat relative to the viewer; for compiled code."""
    relative = int(seat) - int(viewer)
    return relative if relative >= 0 else relative + num_players


def relative_seats(
    seats: npt.NDArray[Any], viewers: npt.NDArray[Any], num_players: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return seats relative to viewers; `-viewers` gives the inverse. The arrays broadcast."""
    relative = seats.astype(np.int64) - viewers.astype(np.int64)
    return np.asarray(relative % num_players.astype(np.int64))


# Optional verbs: search. A *choice* is a number that represents an action. Searches store sets of choices, so a game
# with many actions can define smaller numbers. By default the choices are the actions.


@verb
def write_choices(game: Record, choices: Words) -> None:
    """Write the set of the legal choices of the seat to move; it is empty if `forced_action` returns an action.

    An action that loses the game at once, such as resigning, may be left out.
    """
    for word in range(len(choices)):
        choices[word] = 0
    for action in range(num_actions(game)):
        if is_legal(game, action):
            choices[action // WORD] |= np.int64(1) << (action % WORD)


@verb
def choice_action(game: Record, choice: int) -> int:
    """Return the action that a choice represents."""
    return choice


@verb
def play_choice(game: Record, choice: int) -> int:
    """Play a legal choice; otherwise like `play`."""
    return play(game, choice_action(game, choice))


@verb
def prepare_root(game: Record) -> None:
    """Prepare a copy of a state as the root of a search: forced turns, also those due now, are played automatically."""


@verb
def forced_action(game: Record) -> int:
    """Return the only legal action if it is not a choice, such as a pass; -1 if there are choices."""
    return -1


@verb
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play a game, prepared by `prepare_root`, to its end with quick random choices from stream `index`.

    By default these are uniformly random legal actions.
    """
    while not is_over(game):
        play(game, random_action(game, streams, index))


@jit(counted=False)
def note(trace: Trace, seat: int, action: int) -> None:
    """Append a ply to a trace; it is dropped if the trace is full."""
    count = trace[0] + 1
    if count < len(trace):
        trace[count] = action * _SEATS + seat
        trace[0] = count


@jit(counted=False)
def noted_seat(trace: Trace, turn: int) -> int:
    """Return the seat of ply `turn` of a trace, counted from 0."""
    return np.int64(trace[turn + 1] & (_SEATS - 1))  # type: ignore[return-value]


@jit(counted=False)
def noted_action(trace: Trace, turn: int) -> int:
    """Return the action of ply `turn` of a trace, counted from 0."""
    return np.int64(trace[turn + 1] // _SEATS)  # type: ignore[return-value]


@verb
def traced_playout(game: Record, streams: Streams, index: int, trace: Trace) -> None:
    """Play a game to its end as `playout` does, and append each ply to `trace`."""
    while not is_over(game):
        action = random_action(game, streams, index)
        note(trace, game.to_move, action)
        play(game, action)


@verb
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Draw a legal action of the seat to move, uniformly, from stream `index`."""
    legal = 0
    for action in range(num_actions(game)):
        legal += is_legal(game, action)
    left, action = draw_below(streams, index, legal), -1
    while left >= 0:
        action += 1
        left -= is_legal(game, action)
    return action
