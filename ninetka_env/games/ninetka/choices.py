"""Functions of 9tka for searches: legal actions as bits of one word, random playouts, forced passes.

See `ninetka_env.core.verbs` for what choices are.
"""

from __future__ import annotations

from ninetka_env.core.chance import Streams, draw_bit
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record, Words
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import (
    bit_action,
    is_over,
    legal_bits,
    must_pass,
    pass_over,
    play_bit,
)


@jit
def write_choices(game: Record, choices: Words) -> None:
    """Write `legal_bits`, which fit into one word."""
    choices[0] = legal_bits(game)


@jit
def choice_action(game: Record, choice: int) -> int:
    """Return the action of a bit of `legal_bits`."""
    return bit_action(game, choice)


@jit
def play_choice(game: Record, choice: int) -> int:
    """Play a bit of `legal_bits`."""
    return play_bit(game, choice)


@jit
def prepare_root(game: Record) -> None:
    """Make the rules play forced passes from now on, including one that is due now."""
    game.auto_pass = 1
    pass_over(game)


@jit
def forced_action(game: Record) -> int:
    """Return the action to pass if it is the only legal action, else -1."""
    return PASS if must_pass(game) else -1


@jit
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Return a uniformly random legal action, drawn from stream `index`."""
    bits = legal_bits(game)
    return bit_action(game, draw_bit(streams, index, bits)) if bits else PASS


@jit
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play `game`, which must have `auto_pass` set, to its end with uniformly random actions."""
    while not is_over(game):
        play_bit(game, draw_bit(streams, index, legal_bits(game)))
