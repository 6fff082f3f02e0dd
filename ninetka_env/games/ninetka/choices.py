"""Functions of 9tka for searches: legal actions as bits of one word, random playouts, forced passes.

`ninetka_env.core.verbs` defines choices. Here a choice is a bit number of `rules.legal_bits`.
"""

from __future__ import annotations

from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, draw_set_bit
from ninetka_env.core.verbs import BitSet, State
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
def write_choices(game: State, choices: BitSet) -> None:
    """Write the legal choices: the bit set `legal_bits`, which fits into one word."""
    choices[0] = legal_bits(game)


@jit
def choice_action(game: State, choice: int) -> int:
    """Return the action of bit number `choice` of `legal_bits`."""
    return bit_action(game, choice)


@jit
def play_choice(game: State, choice: int) -> int:
    """Play the action of bit number `choice` of `legal_bits`; otherwise like `rules.play`."""
    return play_bit(game, int(choice))  # without the compiler, a shift by a small numpy integer overflows


@jit
def prepare_root(game: State) -> None:
    """Make the rules play forced passes from now on, including one that is due now."""
    game.auto_pass = 1
    pass_over(game)


@jit
def forced_action(game: State) -> int:
    """Return the action to pass if it is the only legal action, else -1."""
    return PASS if must_pass(game) else -1


@jit
def random_action(game: State, streams: Streams, index: int) -> int:
    """Return a uniformly random legal action, drawn from stream `index`; the game must not be over."""
    bits = legal_bits(game)
    return bit_action(game, draw_set_bit(streams, index, bits)) if bits else PASS


@jit
def playout(game: State, streams: Streams, index: int) -> None:
    """Play `game`, which must have `auto_pass` set, to its end with uniformly random actions."""
    while not is_over(game):
        play_bit(game, draw_set_bit(streams, index, legal_bits(game)))
