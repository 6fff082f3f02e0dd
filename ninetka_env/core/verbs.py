"""What compiled code can ask of any game: *verbs*, whose meaning the type of the game's record decides.

A game is a record of a numpy structured array, and every game has a dtype of its own. numba knows it when it compiles,
so a call such as `play(game, action)` becomes a call of that game's own compiled function, at no cost; whoever writes a
batch step, a search or an arena with these verbs has written it for every game. In plain Python the same look-up
happens at each call.

`REQUIRED` names what every game must bring; the others have the meaning that is written here unless a game brings a
better one. Each is a function of that name, compiled by `ninetka_env.core.jit.jit`, in the game's
`Definition.compiled`. Functions trust their arguments, draw random numbers only from the stream that they are given,
and keep nothing outside the record.
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
"""One game: an element of `Records`; mypy cannot know its fields. Every game's has `num_players` and `to_move`."""
Records: TypeAlias = npt.NDArray[np.void]
"""Games: a structured array."""
Codes: TypeAlias = npt.NDArray[np.int64]
"""Options of a game as ints, one by one."""
Mask: TypeAlias = npt.NDArray[np.int8]
Words: TypeAlias = npt.NDArray[np.int64]
"""A set of small whole numbers: number k is bit `k % 63` of word `k // 63`; the sign bits stay 0."""

Trace: TypeAlias = npt.NDArray[np.int32]
"""What was played in a simulated game, (1 + T,) int32: how many turns are noted, then each, as action * 8 + seat."""
_SEATS = 8
"""More than any game has."""

WORD = 63
"""Bits of a word that are used."""
_LOADERS: list[Callable[[], None]] = []
"""Called when records of an unknown type turn up: they may come from a file, before anybody asked for their game."""

F = TypeVar("F", bound=Callable[..., Any])

NAMES: dict[str, int] = {}
"""Every verb with its number of arguments."""
REQUIRED: list[str] = []

_FUNCTIONS: dict[np.dtype[Any], Mapping[str, Callable[..., Any]]] = {}
"""By the type of its records, each game's own compiled functions."""


Find: TypeAlias = Callable[[np.dtype[Any], str], Callable[..., Any] | None]
"""Returns a game's own function for a verb, given the type of its records; None if it brings none."""


def _find_own(dtype: np.dtype[Any], name: str) -> Callable[..., Any] | None:
    """Look in the game's `Definition.compiled`."""
    if dtype not in _FUNCTIONS:
        for load in _LOADERS:
            load()
    if dtype not in _FUNCTIONS:
        raise TypeError(f"records of {dtype} belong to no game that is registered: see ninetka_env.core.registry")
    return _FUNCTIONS[dtype].get(name)


def verb(function: F | None = None, *, find: Find | None = None) -> Any:
    """Make a function a verb: what it does here is what it means for games that bring no better one.

    Args:
        function: its first argument is a record.
        find: where else than in `Definition.compiled` to look for a game's own function. The answer must always be the
            same, since what is compiled from it is kept.
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
    """Tell numba that a call of `verb` is one of the function that it means for the record.

    An `overload` would do that by a function in between, which numba compiles with all that it calls once more: for
    the whole of a game's rules, half a second each.
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
    """Make a function a verb that every game must bring."""
    REQUIRED.append(function.__name__)
    return verb(function)


def when_unknown(load: Callable[[], None]) -> None:
    """Have `load` called where records of an unknown type turn up; it may define their game."""
    _LOADERS.append(load)


def define(dtypes: Iterable[np.dtype[Any]], functions: Mapping[str, Callable[..., Any]]) -> None:
    """Let verbs mean these functions for records of these types; `ninetka_env.core.registry.register` calls it.

    Raises:
        ValueError: naming a function that is no verb or takes another number of arguments, or the required verbs that
            are missing.
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


# What every game must bring


@required
def start(game: Record, options: Codes, streams: Streams, index: int) -> None:
    """Make `game` the start of a game with these options, whatever it was before.

    Args:
        game: every field is written, also those that are 0: equal games are equal byte for byte.
        options: (k,) int64, the game's options in the order of `Definition.options`.
        streams: chance, for what is drawn before the first turn.
        index: which of the streams to draw from.
    """
    raise NotImplementedError


@required
def num_actions(game: Record) -> int:
    """Return the number of actions, legal or not."""
    raise NotImplementedError


@required
def is_over(game: Record) -> bool:
    """Tell whether the game has ended."""
    raise NotImplementedError


@required
def is_legal(game: Record, action: int) -> bool:
    """Tell whether the seat to move may play `action`; any int is a fair question, nothing is legal after the end."""
    raise NotImplementedError


@required
def write_legal_mask(game: Record, mask: Mask) -> None:
    """Write 1 for each legal action of the seat to move and 0 for all others into `mask`, (num_actions,) int8."""
    raise NotImplementedError


@required
def play(game: Record, action: int) -> int:
    """Play a legal action and hand the turn on, to the same seat if it moves again.

    Returns:
        The bit set of the seats whose turn came and was passed over because they could do nothing; 0 in most games.
    """
    raise NotImplementedError


@required
def winner_of(game: Record) -> int:
    """Return the seat that wins as the game stands, or `DRAWN`, -1; final once the game is over."""
    raise NotImplementedError


@required
def write_observation(game: Record, viewer: int, planes: Mask) -> None:
    """Draw the game as seat `viewer` sees it into `planes`, (C * H * W,) int8 of 0 and 1; every number is written."""
    raise NotImplementedError


# What games may bring: the rules


@verb
def write_scores(game: Record, scores: npt.NDArray[Any]) -> None:
    """Write each seat's score as the game stands into `scores`, (n,); unless told, 1 for the winner."""
    winner = winner_of(game)
    for seat in range(game.num_players):
        scores[seat] = int(seat == winner)


@verb
def write_score_rewards(game: Record, rewards: npt.NDArray[np.float32]) -> None:
    """Write what the reward `"score"` pays into `rewards`, (n,) float32 that sum to 0; by default that of `"win"`."""
    write_win_rewards(game, rewards)


@jit
def write_win_rewards(game: Record, rewards: npt.NDArray[np.float32]) -> None:
    """Write what the reward `"win"` pays into `rewards`, (n,) float32: see `ninetka_env.core.outcome.REWARDS`."""
    players, winner = game.num_players, winner_of(game)
    for seat in range(players):
        rewards[seat] = 0.0 if winner < 0 else -1.0 / (players - 1)
    if winner >= 0:
        rewards[winner] = 1.0


@verb
def plies(game: Record) -> int:
    """Count the plies played so far."""
    return int(game.plies)


@verb
def stage(game: Record) -> int:
    """Return the stage of the game, a place in `Definition.stages`, by which thinking times are told apart."""
    return 0


@verb
def write_targets(game: Record, targets: Mask) -> None:
    """Write what a network may learn to foresee beside the winner, (T,) int8: seats, or -1 for nobody.

    Such as who owns each section or point in the end. Unless told there is nothing.
    """
    for place in range(len(targets)):
        targets[place] = -1


# What games may bring: for batches


@verb
def write_slow_planes(game: Record, viewer: int, planes: Mask) -> None:
    """Draw the planes that, for a viewer who is to move, stay as they are while the stage lasts."""


@verb
def write_fast_planes(game: Record, viewer: int, planes: Mask) -> None:
    """Draw all other planes; together with `write_slow_planes` it does what `write_observation` does.

    What `planes` holds else was drawn by these two for earlier positions of the same game, for whoever was to move.
    """
    write_observation(game, viewer, planes)


# Seats as a viewer counts them: relative seat r is seat `(viewer + r) % n`, so the viewer is relative seat 0


@jit(inline=True)
def relative_seat(seat: int, viewer: int, num_players: int) -> int:
    """Return a seat as the viewer counts; for compiled code."""
    relative = int(seat) - int(viewer)
    return relative if relative >= 0 else relative + num_players


def relative_seats(
    seats: npt.NDArray[Any], viewers: npt.NDArray[Any], num_players: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return seats as their viewers count, and the reverse with `-viewers`; the arrays broadcast."""
    relative = seats.astype(np.int64) - viewers.astype(np.int64)
    return np.asarray(relative % num_players.astype(np.int64))


# What games may bring: for search. A *choice* is a number for an action, small where a game can make it so: searches
# keep sets of choices. Unless told, the choices are the actions.


@verb
def write_choices(game: Record, choices: Words) -> None:
    """Write the set of the legal choices of the seat to move; it is empty where `forced_action` says what is played.

    An action that loses the game at once, such as resigning, need not be one.
    """
    for word in range(len(choices)):
        choices[word] = 0
    for action in range(num_actions(game)):
        if is_legal(game, action):
            choices[action // WORD] |= np.int64(1) << (action % WORD)


@verb
def choice_action(game: Record, choice: int) -> int:
    """Return the action that a choice stands for."""
    return choice


@verb
def play_choice(game: Record, choice: int) -> int:
    """Play a legal choice; otherwise like `play`."""
    return play(game, choice_action(game, choice))


@verb
def prepare_root(game: Record) -> None:
    """Make a copy of a game fit to be searched from: forced turns are played from here on, those due now too."""


@verb
def forced_action(game: Record) -> int:
    """Return the only legal action where it is none of the choices, such as a pass; -1 where there are choices."""
    return -1


@verb
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play a game that `prepare_root` has seen to its end by quick random choices from stream `index`.

    Unless told, by uniformly random legal actions.
    """
    while not is_over(game):
        play(game, random_action(game, streams, index))


@jit(counted=False)
def note(trace: Trace, seat: int, action: int) -> None:
    """Add a turn; those that there is no room for are left out."""
    count = trace[0] + 1
    if count < len(trace):
        trace[count] = action * _SEATS + seat
        trace[0] = count


@jit(counted=False)
def noted_seat(trace: Trace, turn: int) -> int:
    """Return who played in turn `turn`, counted from 0."""
    return np.int64(trace[turn + 1] & (_SEATS - 1))  # type: ignore[return-value]


@jit(counted=False)
def noted_action(trace: Trace, turn: int) -> int:
    """Return what was played in turn `turn`, counted from 0."""
    return np.int64(trace[turn + 1] // _SEATS)  # type: ignore[return-value]


@verb
def traced_playout(game: Record, streams: Streams, index: int, trace: Trace) -> None:
    """Play a game to its end as `playout` does, and note each turn in `trace`."""
    while not is_over(game):
        action = random_action(game, streams, index)
        note(trace, game.to_move, action)
        play(game, action)


@verb
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Draw a uniformly random legal action of the seat to move from stream `index`."""
    legal = 0
    for action in range(num_actions(game)):
        legal += is_legal(game, action)
    left, action = draw_below(streams, index, legal), -1
    while left >= 0:
        action += 1
        left -= is_legal(game, action)
    return action
