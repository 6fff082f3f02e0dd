"""A minimal game outside the package: players take one to three stones from a heap.

A test that registers this game must use the fixture `toy_registry`, so that other tests do not see it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import Choice, Integer
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import Definition, Limits, OptionValues, Sizes
from ninetka_env.core.verbs import Mask, OptionCodes, State

MAX_STONES = 70
_SHORT, _BYTE = np.int16, np.int8
_FIELDS = [
    ("heap_of_toy", _SHORT),
    ("plies", _SHORT),
    ("last_loses", _BYTE),
    ("num_players", _BYTE),
    ("to_move", _BYTE),
]
TOY = np.dtype((np.record, _FIELDS))
OPTIONS = (
    Choice("num_players", 2, "number of players", (2, 3)),
    Integer("stones", 12, "stones on the heap at the start", 1, MAX_STONES),
    Choice("last", "wins", "result of the player who takes the last stone", ("wins", "loses")),
)


@jit
def start(game: State, options: OptionCodes, streams: Streams, index: int) -> None:
    game.heap_of_toy, game.plies = options[1], 0
    game.last_loses = options[2]
    game.num_players, game.to_move = options[0] + 2, 0


@jit
def num_actions(game: State) -> int:
    return 4


@jit
def is_over(game: State) -> bool:
    return game.heap_of_toy == 0


@jit
def is_legal(game: State, action: int) -> bool:
    return 1 <= action <= min(3, game.heap_of_toy)


@jit
def write_legal_mask(game: State, mask: Mask) -> None:
    for action in range(4):
        mask[action] = is_legal(game, action)


@jit
def play(game: State, action: int) -> int:
    game.heap_of_toy -= action
    game.plies += 1
    game.to_move = (game.to_move + 1) % game.num_players
    return 0


@jit
def winner_of(game: State) -> int:
    if game.heap_of_toy:
        return -1
    last = (game.to_move + game.num_players - 1) % game.num_players
    return game.to_move if game.last_loses else last


@jit
def write_observation(game: State, viewer: int, planes: Mask) -> None:
    for stone in range(len(planes)):
        planes[stone] = stone < game.heap_of_toy


COMPILED = (start, num_actions, is_over, is_legal, write_legal_mask, play, winner_of, write_observation)


class ToyGame(Game):
    """A position of the heap."""

    __slots__ = ()

    name = "toy"


def _sizes(options: OptionValues) -> Sizes:
    return Sizes(TOY, options["num_players"], 4, (1, 1, MAX_STONES), options["stones"])


def definition(**changes: Any) -> Definition:
    """Return the definition of the game with some fields changed."""
    toy = Definition(
        name="toy",
        title="Toy",
        version="toy_v0",
        options=OPTIONS,
        sizes=_sizes,
        dtypes={TOY: Limits(3, 4, 4)},
        compiled=COMPILED,
        class_path="toy_game:ToyGame",
        seats=("first", "second", "third"),
    )
    return replace(toy, **changes)
