"""*Verbs*: functions that compiled code can call for any game, dispatched by the dtype of the game's state.

A state is an element of a numpy structured array, and no two games share a dtype. numba knows the dtype when it
compiles, so a call such as `play(game, action)` becomes a direct call of that game's compiled function. Batch steps,
searches and arenas that use only verbs therefore work for every game. In plain Python, the function is looked up at
each call.

Every game must implement the verbs in `REQUIRED_VERBS`; the other verbs have a default implementation here. An
implementation is a function with the name of the verb, compiled by `ninetka_env.core.jit.jit`, in the game's
`Definition.compiled`. It does not check its arguments, draws random numbers only from the stream that it is given, and
stores nothing outside the state.
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

from ninetka_env.core.bits import Words
from ninetka_env.core.cache import found_by_type
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.text import did_you_mean

State: TypeAlias = Any
"""The state of one game, an element of `StateArray`. Every state has the fields `num_players` and `to_move`."""
StateArray: TypeAlias = npt.NDArray[np.void]
"""A state array: a structured array with one element per game."""
OptionCodes: TypeAlias = npt.NDArray[np.int64]
"""Option values of a game, encoded as ints."""
Mask: TypeAlias = npt.NDArray[np.int8]
BitSet: TypeAlias = npt.NDArray[np.int64]
"""A set of small integers: k is in the set if bit `k % 63` of word `k // 63` is 1. The sign bits are 0."""

Trace: TypeAlias = npt.NDArray[np.int32]
"""The plies of a simulated game, (1 + T,) int32: the number of plies, then `action * 8 + seat` for each."""
_SEATS = 8
"""Factor of the encoding of a ply in a trace; no game has more seats."""

BITS_PER_WORD = 63
"""Number of bits of a word that are used."""
_UNKNOWN_DTYPE_CALLBACKS: list[Callable[[], None]] = []
"""Callbacks for states of an unknown dtype: a state may come from a file before its game was registered."""

F = TypeVar("F", bound=Callable[..., Any])

VERB_ARITY: dict[str, int] = {}
"""All verbs with their numbers of arguments."""
REQUIRED_VERBS: list[str] = []

_FUNCTIONS: dict[np.dtype[Any], Mapping[str, Callable[..., Any]]] = {}
"""For each dtype, the compiled functions of its game by name."""


FindFunction: TypeAlias = Callable[[np.dtype[Any], str], Callable[..., Any] | None]
"""Returns a game's implementation of a verb, given the dtype and the verb's name; None if it has none."""


def _find_registered(dtype: np.dtype[Any], name: str) -> Callable[..., Any] | None:
    """Return the implementation in the game's `Definition.compiled`, or None."""
    if dtype not in _FUNCTIONS:
        for load in _UNKNOWN_DTYPE_CALLBACKS:
            load()
    if dtype not in _FUNCTIONS:
        raise TypeError(f"no registered game has the dtype {dtype}: see ninetka_env.core.registry")
    return _FUNCTIONS[dtype].get(name)


def verb(function: F | None = None, *, find: FindFunction | None = None) -> Any:
    """Make a function a verb; the function is the default implementation.

    Args:
        function: the default implementation; its first argument is a state.
        find: returns a game's implementation; by default it is looked up in `Definition.compiled`. It must always
            return the same function, because the code compiled with it is cached.
    """
    if function is None:
        return functools.partial(verb, find=find)
    name, default, look_up = function.__name__, function, find or _find_registered
    if find is None:
        VERB_ARITY[name] = len(inspect.signature(function).parameters)

    def resolve(dtype: np.dtype[Any]) -> Callable[..., Any]:
        return look_up(dtype, name) or _compiled(default)

    @functools.wraps(function)
    def call(game: State, *arguments: Any) -> Any:
        return resolve(game.dtype)(game, *arguments)

    infer_global(call, types.Function(_call_template(call, resolve)))
    return call


def _call_template(verb: Callable[..., Any], resolve: Callable[[np.dtype[Any]], Any]) -> type[AbstractTemplate]:
    """Return a numba typing template that resolves a call of `verb` to the function for the state's dtype.

    With `numba.extending.overload`, numba would compile an additional function for each verb, together with everything
    that it calls. For the rules of a game, that takes half a second per function.
    """

    class Call(AbstractTemplate):
        key = verb

        def generic(self, arguments: Any, named: Any) -> Any:
            if not isinstance(arguments[0], types.Record):
                return None
            return self._implementation(arguments[0]).get_call_type(self.context, arguments, named)

        def get_impl_key(self, signature: Any) -> Any:
            return self._implementation(signature.args[0]).get_impl_key(signature)

        def _implementation(self, state: types.Record) -> types.Dispatcher:
            return self.context.resolve_value_type(resolve(state.dtype))  # for a GPU, numba wraps the function

    return Call


def required(function: F) -> F:
    """Make a function a verb that every game must implement."""
    REQUIRED_VERBS.append(function.__name__)
    return verb(function)


def on_unknown_dtype(callback: Callable[[], None]) -> None:
    """Register a callback that is called when a state of an unknown dtype is met; it may register that game."""
    _UNKNOWN_DTYPE_CALLBACKS.append(callback)


def register_functions(dtypes: Iterable[np.dtype[Any]], functions: Mapping[str, Callable[..., Any]]) -> None:
    """Use these functions as implementations of verbs for these dtypes; called by `ninetka_env.core.registry.register`.

    Raises:
        ValueError: if a function is not a verb or has another number of arguments, or required verbs are missing; the
            message names the function or the verbs.
    """
    for name, function in functions.items():
        if name not in VERB_ARITY:
            raise ValueError(f"{name!r} is no verb{did_you_mean(name, VERB_ARITY)}")
        count = len(inspect.signature(getattr(function, "py_func", function)).parameters)
        if count != VERB_ARITY[name]:
            raise ValueError(f"{name} takes {VERB_ARITY[name]} arguments, this one {count}")
    if missing := [name for name in REQUIRED_VERBS if name not in functions]:
        raise ValueError(f"the compiled functions lack {', '.join(missing)}")
    if ("write_observation_bits" in functions) != ("write_legal_bits" in functions):
        raise ValueError("write_observation_bits and write_legal_bits: expected both of them or none")
    types_ = list(dtypes)
    _FUNCTIONS.update(dict.fromkeys(types_, functions))
    found_by_type(types_, functions.values())


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = jit(function)
    return compiled


# Required verbs


@required
def start(game: State, options: OptionCodes, streams: Streams, index: int) -> None:
    """Set `game` to the start of a game with these options.

    Args:
        game: the state. Every field must be written, also with 0, so that equal positions are equal byte for byte.
        options: (k,) int64, the encoded options in the order of `Definition.options`.
        streams: random streams for a random start.
        index: index of the stream to draw from.
    """
    raise NotImplementedError


@required
def num_actions(game: State) -> int:
    """Return the number of actions, legal or not."""
    raise NotImplementedError


@required
def is_over(game: State) -> bool:
    """Return whether the game has ended."""
    raise NotImplementedError


@required
def is_legal(game: State, action: int) -> bool:
    """Return whether `action` is legal: False for out-of-range integers, and for all actions when the game is over."""
    raise NotImplementedError


@required
def write_legal_mask(game: State, mask: Mask) -> None:
    """Write 1 for each legal action of the seat to move and 0 for all others into `mask`, (num_actions,) int8."""
    raise NotImplementedError


@required
def play(game: State, action: int) -> int:
    """Play a legal action and set the seat to move, which can be the same seat again.

    Returns:
        The bit set of the seats that were skipped because they had no legal action; 0 in most games.
    """
    raise NotImplementedError


@required
def winner_of(game: State) -> int:
    """Return the seat that is winning in this position, or `DRAWN`, -1; when the game is over, it is the result."""
    raise NotImplementedError


@required
def write_observation(game: State, viewer: int, planes: Mask) -> None:
    """Write the observation of seat `viewer` to `planes`, (C * H * W,) int8 of 0 and 1; every element is written."""
    raise NotImplementedError


# Optional verbs: rules


@verb
def write_scores(game: State, scores: npt.NDArray[Any]) -> None:
    """Write each seat's score in this position to `scores`, (n,); by default 1 for the winner and 0 for the others."""
    winner = winner_of(game)
    for seat in range(game.num_players):
        scores[seat] = int(seat == winner)


@verb
def write_score_rewards(game: State, rewards: npt.NDArray[np.float32]) -> None:
    """Write the reward `"score"` to `rewards`, (n,) float32 with sum 0; by default it equals the reward `"win"`."""
    write_win_rewards(game, rewards)


@jit
def write_win_rewards(game: State, rewards: npt.NDArray[np.float32]) -> None:
    """Write the reward `"win"` to `rewards`, (n,) float32: see `ninetka_env.core.outcome.REWARDS`."""
    players, winner = game.num_players, winner_of(game)
    for seat in range(players):
        rewards[seat] = 0.0 if winner < 0 else -1.0 / (players - 1)
    if winner >= 0:
        rewards[winner] = 1.0


@verb
def plies(game: State) -> int:
    """Return the number of plies played so far."""
    return int(game.plies)


@verb
def stage(game: State) -> int:
    """Return the stage of the game, an index into `Definition.stages`; thinking times are reported by stage."""
    return 0


@verb
def write_targets(game: State, targets: Mask) -> None:
    """Write auxiliary training targets, (T,) int8: seats, or -1 for no seat.

    An example is the owner of each section or point at the end. By default all are -1.
    """
    for place in range(len(targets)):
        targets[place] = -1


@verb
def is_consistent(game: State, scratch: StateArray) -> bool:
    """Return whether the fields of a state agree with each other; by default True.

    Other verbs may crash on a state that is not consistent, such as a state from a damaged file. Every state that
    `start` and `play` make is consistent.

    Args:
        game: a state with any contents, except that `num_players` and the options are those of a variant.
        scratch: (3,) states of the same dtype, which may be overwritten.
    """
    return True


# Optional verbs: observations in batches


@verb
def write_slow_planes(game: State, viewer: int, planes: Mask) -> None:
    """Write the planes that do not change during a stage if the viewer is always the seat to move; by default none.

    Batches call it once per stage, before `write_fast_planes`.
    """


@verb
def write_fast_planes(game: State, viewer: int, planes: Mask) -> None:
    """Write all planes that `write_slow_planes` does not write; by default all planes.

    Both verbs together give the same planes as `write_observation`. Before the call, `planes` contains what
    `write_slow_planes` has written, or the observation of the seat to move at an earlier ply of the same game.
    """
    write_observation(game, viewer, planes)


# Optional verbs: observations on a GPU. A game implements both or none: see `writes_bits`.


@verb
def write_observation_bits(game: State, viewer: int, words: Words) -> None:
    """Write the observation of seat `viewer` as bits: the same numbers as `write_observation`, all of them 0 or 1.

    Args:
        game: the state.
        viewer: the seat that observes.
        words: (ceil(C * H * W / 32),) uint32. Element e of the observation is bit `e % 32` of word `e // 32`. Every
            word is written; unused bits of the last word are 0. `ninetka_env.core.bits` has functions for such arrays.
    """
    raise NotImplementedError("a GPU then copies what write_observation writes")


@verb
def write_legal_bits(game: State, words: Words) -> None:
    """Write the mask of `write_legal_mask` as bits into `words`, (ceil(num_actions / 32),) uint32, every word."""
    raise NotImplementedError("a GPU then copies what write_legal_mask writes")


def writes_bits(dtype: np.dtype[Any]) -> bool:
    """Return whether the game with this dtype implements `write_observation_bits` and `write_legal_bits`."""
    return _find_registered(dtype, write_observation_bits.__name__) is not None


# Relative seats: relative seat r is seat `(viewer + r) % n`, so the viewer is relative seat 0


@jit(inline=True)
def relative_seat(seat: int, viewer: int, num_players: int) -> int:
    """Return a seat relative to the viewer, `(seat - viewer) % num_players`; for compiled code."""
    relative = int(seat) - int(viewer)
    return relative if relative >= 0 else relative + num_players


def relative_seats(
    seats: npt.NDArray[Any], viewers: npt.NDArray[Any], num_players: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return seats relative to viewers, `(seats - viewers) % num_players`, int64; the arrays broadcast.

    To convert relative seats to seats, call it with `-viewers`.
    """
    relative = seats.astype(np.int64) - viewers.astype(np.int64)
    return np.asarray(relative % num_players.astype(np.int64))


# Optional verbs: search. A *choice* is a number that represents an action in a search. Searches store sets of choices,
# so a game with many actions can represent them by smaller numbers. By default the choices are the actions.


@verb
def write_choices(game: State, choices: BitSet) -> None:
    """Write the legal choices of the seat to move; the set is empty if `forced_action` returns an action.

    A choice is a number that represents a legal action in a search; by default it is the action. A legal action that
    loses the game at once, such as resigning, may have no choice.
    """
    for word in range(len(choices)):
        choices[word] = 0
    for action in range(num_actions(game)):
        if is_legal(game, action):
            choices[action // BITS_PER_WORD] |= np.int64(1) << (action % BITS_PER_WORD)


@verb
def choice_action(game: State, choice: int) -> int:
    """Return the action that a choice represents."""
    return choice


@verb
def play_choice(game: State, choice: int) -> int:
    """Play a legal choice; otherwise like `play`."""
    return play(game, choice_action(game, choice))


@verb
def prepare_root(game: State) -> None:
    """Prepare a copy of a state as the root of a search; by default nothing is changed.

    After the call, the rules play forced actions automatically, including a forced action that is due now.
    """


@verb
def forced_action(game: State) -> int:
    """Return the only legal action of a position without choices, such as a forced pass; -1 if there are choices."""
    return -1


@verb
def playout(game: State, streams: Streams, index: int) -> None:
    """Play a game, prepared by `prepare_root`, to its end with quick random choices from stream `index`.

    By default, each action is drawn uniformly from the legal actions.
    """
    while not is_over(game):
        play(game, random_action(game, streams, index))


@jit(refcount=False)
def append_to_trace(trace: Trace, seat: int, action: int) -> None:
    """Append a ply to a trace; do nothing if the trace is full."""
    count = trace[0] + 1
    if count < len(trace):
        trace[count] = action * _SEATS + seat
        trace[0] = count


@jit(refcount=False)
def trace_seat(trace: Trace, ply: int) -> int:
    """Return the seat of ply `ply` of a trace, counted from 0."""
    return np.int64(trace[ply + 1] & (_SEATS - 1))  # type: ignore[return-value]


@jit(refcount=False)
def trace_action(trace: Trace, ply: int) -> int:
    """Return the action of ply `ply` of a trace, counted from 0."""
    return np.int64(trace[ply + 1] // _SEATS)  # type: ignore[return-value]


@verb
def traced_playout(game: State, streams: Streams, index: int, trace: Trace) -> None:
    """Play a game to its end as `playout` does, and append each ply to `trace`."""
    while not is_over(game):
        action = random_action(game, streams, index)
        append_to_trace(trace, game.to_move, action)
        play(game, action)


@verb
def random_action(game: State, streams: Streams, index: int) -> int:
    """Draw a legal action of the seat to move, uniformly, from stream `index`."""
    legal = 0
    for action in range(num_actions(game)):
        legal += is_legal(game, action)
    remaining, action = draw_below(streams, index, legal), -1
    while remaining >= 0:
        action += 1
        remaining -= is_legal(game, action)
    return action
