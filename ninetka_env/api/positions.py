"""Positions from which users start games: they are given as text, states or games, and checked against a variant.

Start reading at `starting_game`, for one game, and `starting_states`, for a batch. `reset_options.py` reads the other
options of `reset`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import as_states, first_inconsistent, first_unplayable, new_games
from ninetka_env.core.game import Game
from ninetka_env.core.options import short_repr
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import Variant, definition_of
from ninetka_env.core.verbs import StateArray


def starting_game(position: Any, variant: Variant) -> Game:
    """Return a new `Game` in a given position, which shares no memory with `position`.

    Args:
        position: a text that `str(game)` returned; a state, which is an element of a state array or a (1,) state array;
            or a `Game`, whose `last_action` and `passed` are kept.
        variant: the game with its options. Options that states do not store, such as 9tka's `neutral_placement`, are
            not compared.

    Raises:
        ValueError: if `position` is none of these, is not valid, belongs to another game or has other options, or if
            its game is over.
    """
    with _errors_about("position"):
        return _unfinished_game(position, variant)


def starting_states(position: Any, variant: Variant, where: npt.NDArray[np.bool_]) -> StateArray:
    """Return the states from which some games of a batch start, (where.sum(),) states, in new memory.

    Args:
        position: one position for all these games, as in `starting_game`; or one for each game of the batch: an (N,)
            state array, or a sequence of N positions. Those of games that do not start are not read.
        variant: as in `starting_game`.
        where: (N,) bool, the games that start.

    Raises:
        ValueError: as in `starting_game`, or if the number of positions is not N; the message names the game.
    """
    indices = np.flatnonzero(where)
    if len(indices) == 0:
        return np.zeros(0, variant.dtype)
    position = _as_list_if_objects(position)
    if not _is_many(position):
        return np.repeat(starting_game(position, variant).records, len(indices))
    if len(position) != len(where):
        raise ValueError(
            f"position: a sequence of {len(position)} is given, expected one position, or {len(where)} of them, "
            "one per game"
        )
    if not isinstance(position, np.ndarray):
        chosen = np.zeros(len(indices), variant.dtype)
        for place, index in enumerate(indices.tolist()):
            with _errors_about(f"position of game {index}"):
                chosen[place] = _unfinished_game(position[index], variant).records[0]
        return chosen
    with _errors_about("position"):
        states = as_states(position[indices])
    if states.dtype == variant.dtype and (place := first_unplayable(states)) >= 0:
        raise ValueError(f"position of game {indices[place]}: {_UNPLAYABLE}")
    with _errors_about("position"):
        states = check_states(states, variant)
    if (place := first_inconsistent(states, np.zeros(3, states.dtype))) >= 0:
        raise ValueError(f"position of game {indices[place]}: {_DAMAGED}")
    return states


def check_states(games: Any, variant: Variant) -> StateArray:
    """Return (N,) states in the form that compiled code expects, after a comparison with the options of a variant.

    Raises:
        ValueError: if `games` is not an (N,) state array, or the states belong to another variant; if they have the
            same dtype, the message names the first option that differs.
    """
    games = as_states(games)
    _check_game(games, variant)
    if games.dtype != variant.dtype:
        raise ValueError(f"states of games with another size of the board or other rules: expected states of {variant}")
    expected = new_games(variant, make_streams(0))
    for name in sorted({"num_players", *variant.options}.intersection(games.dtype.names or ())):
        if (games[name] != expected[name]).any():
            raise ValueError(f"states of games with another {name}: expected states of {variant}")
    return games


def _check_game(games: StateArray, variant: Variant) -> None:
    definition = definition_of(games.dtype)
    if definition is not variant.definition:
        raise ValueError(f"states of another game, {definition.title}: expected states of {variant}")


_UNPLAYABLE = "the game is over or has not been started: expected a position in which a seat is to move"
_DAMAGED = "the fields of the state contradict each other: expected a state that a game of this package had"


def _as_list_if_objects(position: Any) -> Any:
    """Return an array of texts or Python objects as a list, or as its element if it has no dimension."""
    is_array = isinstance(position, np.ndarray) and position.dtype.kind in "OUT"
    return position.tolist() if is_array else position


def _is_many(position: Any) -> bool:
    """Return whether `position` holds one position for each game of a batch."""
    if isinstance(position, np.ndarray):
        return position.ndim == 1 and len(position) != 1
    return isinstance(position, Sequence) and not isinstance(position, (str, bytes))


@contextmanager
def _errors_about(what: str) -> Iterator[None]:
    """Begin the message of a `ValueError` that leaves the context with `what`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _unfinished_game(position: Any, variant: Variant) -> Game:
    """Convert one position to a new `Game`; the errors are as in `starting_game`."""
    game = _as_game(position, variant)
    if game.event is not None or first_unplayable(game.records) == 0:
        raise ValueError(_UNPLAYABLE)
    check_states(game.records, variant)
    if first_inconsistent(game.records, np.zeros(3, variant.dtype)) == 0:
        raise ValueError(_DAMAGED)
    return game


def _as_game(position: Any, variant: Variant) -> Game:
    game_class: type[Game] = variant.game_class
    position = _as_list_if_objects(position)
    if isinstance(position, game_class):
        return position.copy()
    if isinstance(position, Game):
        raise ValueError(f"a game of {position.definition().title}, expected a game of {variant}")
    if isinstance(position, str):
        try:
            return game_class.from_text(position)
        except NotImplementedError:
            raise ValueError(f"{variant.definition.title} has no text of positions: give a state or a Game") from None
    is_state = isinstance(position, np.void) or (isinstance(position, np.ndarray) and position.shape in ((), (1,)))
    if not is_state:
        raise ValueError(
            f"expected a text of str(game), a state, such as games[i], or a Game, got {short_repr(position)}"
        )
    states = as_states(np.array(position).reshape(1).copy())  # np.array does not copy the memory of a scalar
    _check_game(states, variant)
    return game_class(states)
