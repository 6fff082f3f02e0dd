"""`Game`: the Python interface to one position; the base class of every game's own `Game` class.

Start reading at `Game.play`. A game's own class is in its `game.py`; its compiled rules are called through `verbs.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import as_states, new_games
from ninetka_env.core.jit import jit
from ninetka_env.core.options import as_action, check_choice, check_count, short_repr
from ninetka_env.core.outcome import DRAWN, REWARDS, write_rewards
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import Definition, Variant, canonical_dtype, definition_of, get_definition
from ninetka_env.core.text import quote
from ninetka_env.core.verbs import (
    Mask,
    StateArray,
    is_legal,
    is_over,
    play,
    plies,
    stage,
    winner_of,
    write_legal_mask,
    write_scores,
)
from ninetka_env.core.verbs import num_actions as count_actions

EVENTS = ("resigned", "time", "left")
"""Kinds of events that end a game before the rules do: a seat resigns, runs out of time, or leaves the game."""


MAX_NAMED_ACTIONS = 100
"""Maximum number of legal actions that an error message names."""


class Event(NamedTuple):
    """An event that ended a game before the rules did."""

    kind: str
    """One of `EVENTS`."""
    seat: int
    """The seat that resigned, ran out of time or left; it cannot win."""


class Game:
    """The current position of a game, with methods to query it and to play actions in place.

    Seats are counted from 0; actions are ints from 0. Each game has a subclass with further members.
    """

    __slots__ = ("event", "last_action", "passed", "records")

    name: ClassVar[str]
    """The game's name in the registry."""

    records: StateArray
    """(1,) state array: the position."""
    last_action: int | None
    """The last action, None at the start."""
    passed: tuple[int, ...]
    """The seats that were skipped after the last action, because they had no legal action."""
    event: Event | None
    """The event that ended the game before the rules did, or None."""

    def __init__(self, records: StateArray) -> None:
        """Wrap a (1,) state array of the game; it is copied only if its byte order is not that of the processor.

        To start a game, use `new`. The contents of the array are not checked: a damaged state can crash compiled code.
        `reset(options={"position": ...})` of the environments does check it.

        Raises:
            ValueError: if `records` is not a (1,) state array of this game.
        """
        self.records = records if _is_canonical(records, self.name) else _canonical_view(records, self.name)
        self.last_action = None
        self.passed = ()
        self.event = None

    @classmethod
    def definition(cls) -> Definition:
        """Return the game's definition from the registry."""
        return get_definition(cls.name)

    @classmethod
    def start(cls, variant: Variant, seed: int | None = None) -> Self:
        """Start a game of a variant; `seed` determines a random start, None draws a seed from the operating system."""
        return cls(new_games(variant, make_streams(seed)))

    # Queries

    @property
    def num_players(self) -> int:
        """The number of players."""
        return int(self.records["num_players"][0])

    @property
    def num_actions(self) -> int:
        """The number of actions, legal or not; actions are 0 .. num_actions - 1."""
        return int(_count_actions(self.records, 0))

    @property
    def to_move(self) -> int:
        """The seat that acts next; undefined when the game is over."""
        return int(self.records["to_move"][0])

    @property
    def stage(self) -> int:
        """The stage of the game, an index into `Definition.stages`."""
        return int(_stage(self.records, 0))

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or by an event."""
        return self.event is not None or bool(_is_over(self.records, 0))

    @property
    def ply(self) -> int:
        """The number of plies played so far; turns that the rules skip do not count."""
        return int(_plies(self.records, 0))

    def legal_actions(self) -> npt.NDArray[np.int64]:
        """Return the legal actions of the seat to move, ascending, int64; empty when the game is over."""
        return np.flatnonzero(self.legal_mask())

    def legal_mask(self) -> Mask:
        """Return the legal actions of the seat to move as a new (num_actions,) int8 array of 0 and 1."""
        mask = np.zeros(self.num_actions, np.int8)
        if self.event is None:
            _write_legal_mask(self.records, 0, mask)
        return mask

    def scores(self) -> npt.NDArray[Any]:
        """Return each seat's score in this position, (n,) int64, or float64 if scores of this game can be fractions."""
        kind = self.definition().score_dtype
        scores: npt.NDArray[Any] = np.zeros(self.num_players, kind)
        _write_scores(self.records, 0, scores)
        return scores.astype(np.int64 if np.issubdtype(kind, np.integer) else np.float64)

    def winner(self) -> int:
        """Return the seat that wins in this position, or `DRAWN`, -1.

        After an event, the seat of the event cannot win. The other seat with the highest score in this position wins;
        a tie is won by the tied seat with the highest number.
        """
        if self.event is None:
            return int(_winner_of(self.records, 0))
        scores = self.scores().astype(np.float64)
        scores[self.event.seat] = -np.inf
        return int(np.flatnonzero(scores == scores.max())[-1])

    @property
    def decided_by_scores(self) -> bool:
        """Whether scores decide the winner. They do not if an event, or an action such as resigning, ended the game."""
        return self.event is None

    def returns(self, reward: str = "win") -> npt.NDArray[np.float32]:
        """Return each seat's reward in this position, (n,) float32 with sum 0.

        Args:
            reward: one of `ninetka_env.core.outcome.REWARDS`; after an event, `"score"` gives the same as `"win"`.
        """
        kind = check_choice("reward", reward, REWARDS)
        rewards = np.zeros(self.num_players, np.float32)
        if self.event is None:
            _write_rewards(self.records, 0, kind, rewards)
        else:
            rewards[:] = -1 / (self.num_players - 1)
            rewards[self.winner()] = 1
        return rewards

    # Actions

    def play(self, action: int) -> None:
        """Play an action for the seat to move, in place, and set `passed` to the seats that were skipped.

        Raises:
            ValueError: if the action is illegal or the state array is read-only. The position is then unchanged. For an
                illegal action, the message names it and the legal actions.
            TypeError: if the action is not an integer.
        """
        self.check_writeable()
        action = as_action(action, self.num_actions) if type(action) is not int else action
        passed = _play_if_legal(self.records, 0, action) if self.event is None and -1 < action < 1 << 31 else -1
        if passed < 0:
            raise ValueError(self.describe_illegal(action))
        self.last_action = action
        self.passed = _seats(passed) if passed else ()

    def check_writeable(self) -> None:
        """Raise `ValueError` if the state array is read-only; compiled code does not check this."""
        if not self.records.flags.writeable:
            raise ValueError("the state array is read-only: play in game.copy() instead")

    def resign(self, seat: int | None = None) -> None:
        """Resign for a seat, by default the seat to move; raises `ValueError` if the game is over."""
        self.forfeit(self.to_move if seat is None else seat, "resigned")

    def forfeit(self, seat: int, reason: str = "time") -> None:
        """End the game with a loss of a seat, regardless of the position.

        Args:
            seat: the seat that loses.
            reason: one of `EVENTS`: `"resigned"`, `"time"`, `"left"`.

        Raises:
            ValueError: if the seat or reason does not exist, or the game is over.
        """
        check_choice("reason", reason, EVENTS)
        seat = check_count("seat", seat, 0, self.num_players - 1)
        if self.is_over:
            raise ValueError("the game is over already")
        self.event = Event(reason, seat)

    def hand_turn(self, seat: int) -> None:
        """Make `seat` the seat to move. Most games do not allow this and raise `ValueError`."""
        raise ValueError(f"{self.definition().title}: all turns must be played")

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = type(self)(self.records.copy())
        twin.last_action, twin.passed, twin.event = self.last_action, self.passed, self.event
        return twin

    __copy__ = copy

    # Text

    def action_name(self, action: int) -> str:
        """Return the name of an action as people write it."""
        return str(action)

    def action_index(self, name: str) -> int:
        """Return the action called `name`, the inverse of `action_name`; raises `ValueError` for other text."""
        if not name.isascii() or not name.isdigit() or len(name) > 9:
            raise ValueError(f"no action {quote(name)}: expected a number")
        return int(name)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the position that `str(game)` describes; raises `ValueError` if `text` is not such a text."""
        raise NotImplementedError

    def drawn_actions(self) -> tuple[int, ...]:
        """Return the actions drawn at random that led to this start position; pass them to `start_from`."""
        return ()

    @classmethod
    def start_from(cls, variant: Variant, drawn: tuple[int, ...]) -> Self:
        """Return the start position that results from these random actions; see `drawn_actions`.

        Raises:
            ValueError: if no random start has these actions.
        """
        if drawn:
            raise ValueError(f"{len(drawn)} drawn actions are given, but nothing is drawn at random in this game")
        return cls.start(variant, 0)

    def describe_illegal(self, action: int) -> str:
        """Return an error message for an illegal action; it lists the legal actions."""
        what = f"action {short_repr(action)}"
        if 0 <= action < self.num_actions and self.action_name(action) != str(action):
            what += f" ({self.action_name(action)})"
        if self.is_over:
            return f"{what} is illegal{self._where()}: the game is over"
        legal = [self.action_name(int(one)) for one in self.legal_actions()]
        if len(legal) > MAX_NAMED_ACTIONS:
            legal = [*legal[:MAX_NAMED_ACTIONS], f"... ({len(legal)} in all)"]
        return f"{what} is illegal for seat {self.to_move}{self._where()}: legal are {', '.join(legal)}"

    def _where(self) -> str:
        """Return a phrase for error messages that names the stage, such as ` in phase NEUTRAL`; by default empty."""
        return ""

    def __repr__(self) -> str:
        """Return a summary: game, ply and seat to move."""
        state = "over" if self.is_over else f"seat {self.to_move} to move"
        return f"<Game of {self.definition().title}: ply {self.ply}, {state}>"

    def __eq__(self, other: object) -> bool:
        """Return whether positions, options and events are equal; earlier moves are not compared."""
        if not isinstance(other, Game) or self.records.dtype != other.records.dtype:
            return False
        return self.records.tobytes() == other.records.tobytes() and self.event == other.event

    def __hash__(self) -> int:
        """Hash the current position and event."""
        return hash((self.records.tobytes(), self.event))

    def __getstate__(self) -> tuple[Any, ...]:
        return self.records, self.last_action, self.passed, self.event

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.records, self.last_action, self.passed, self.event = state


def check_game(game: Any, game_class: type[Game]) -> None:
    """Raise `TypeError` unless `game` is a game of this class."""
    if not isinstance(game, game_class):
        raise TypeError(f"expected a game of {game_class.definition().title}, got {short_repr(game)}")


def winner_text(game: Game) -> str:
    """Return the result as text with the name of the seat, such as `"yellow wins"` or `"drawn"`."""
    winner = game.winner()
    return "drawn" if winner == DRAWN else f"{game.definition().seats[winner]} wins"


def _is_canonical(records: Any, name: str) -> bool:
    """Return whether `records` is a (1,) state array of this game in the form that compiled code expects."""
    if type(records) is not np.ndarray or records.shape != (1,) or not records.dtype.isalignedstruct:
        return False
    try:
        return definition_of(records.dtype).name == name
    except ValueError:  # another byte order, or not a state
        return False


def _canonical_view(records: Any, name: str) -> StateArray:
    """Return a view of a (1,) state array in the form that compiled code expects; `ValueError` for other objects."""
    if not isinstance(records, np.ndarray) or records.shape != (1,):
        got = f"shape {records.shape}" if isinstance(records, np.ndarray) else short_repr(records)
        raise ValueError(f"records: expected a state array of shape (1,), such as games[i : i + 1], got {got}")
    if not records.dtype.isnative:
        records = as_states(records)
    definition = definition_of(records.dtype)
    if definition.name != name:
        raise ValueError(f"records: expected states of {name}, got states of {definition.name}")
    return records.view(canonical_dtype(records.dtype), np.ndarray)


def _seats(bits: int) -> tuple[int, ...]:
    return tuple(seat for seat in range(bits.bit_length()) if bits >> seat & 1)


# Functions that are called from Python take an array and an index, because passing a single state takes five times as
# long as passing an array.


@jit
def _play_if_legal(games: StateArray, index: int, action: int) -> int:
    """Play an action and return the skipped seats as bits, or -1 if the action is illegal."""
    if not is_legal(games[index], action):
        return -1
    return play(games[index], action)


@jit
def _is_over(games: StateArray, index: int) -> bool:
    return is_over(games[index])


@jit
def _plies(games: StateArray, index: int) -> int:
    return plies(games[index])


@jit
def _stage(games: StateArray, index: int) -> int:
    return stage(games[index])


@jit
def _count_actions(games: StateArray, index: int) -> int:
    return count_actions(games[index])


@jit
def _winner_of(games: StateArray, index: int) -> int:
    return winner_of(games[index])


@jit
def _write_scores(games: StateArray, index: int, scores: npt.NDArray[Any]) -> None:
    write_scores(games[index], scores)


@jit
def _write_rewards(games: StateArray, index: int, kind: int, rewards: npt.NDArray[np.float32]) -> None:
    write_rewards(games[index], kind, rewards)


@jit
def _write_legal_mask(games: StateArray, index: int, mask: Mask) -> None:
    write_legal_mask(games[index], mask)
