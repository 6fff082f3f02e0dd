"""How a game of 9tka begins: its options, and the neutral stones where chance places them."""

from __future__ import annotations

from ninetka_env.core.chance import Streams, draw_bit
from ninetka_env.core.jit import jit
from ninetka_env.core.options import Choice
from ninetka_env.core.verbs import Codes, Record
from ninetka_env.games.ninetka.geometry import NEUTRAL_SQUARE, NUM_SECTIONS, SECTION_NEUTRALS
from ninetka_env.games.ninetka.rules import TURN_ORDERS, clear, end_turn, place_neutral

NEUTRAL_PLACEMENTS = ("players", "random")
"""Who places the neutral stones: the players in turn, or the seeded generator before the first turn."""

OPTIONS = (
    Choice("num_players", 2, "seats at the table", (2, 3, 4)),
    Choice("neutral_placement", "players", "who places the neutral stones: the players in turn, or chance at the "
           "start", NEUTRAL_PLACEMENTS),
    Choice("turn_order", "restart", "seat 0 opens every phase, or turns simply go on", TURN_ORDERS),
    Choice("auto_pass", True, "forced passes are played by the rules, or are action 121", (False, True)),
)  # fmt: skip
"""The options of the game; compiled code knows each by the place of its value."""


@jit
def start(game: Record, options: Codes, streams: Streams, index: int) -> None:
    """Start a game; with random neutral stones, draw them from stream `index`. See `OPTIONS`."""
    clear(game, options[0] + 2, options[2], options[3])
    if options[1]:
        place_neutrals_at_random(game, streams, index)


@jit
def place_neutrals_at_random(game: Record, streams: Streams, index: int) -> None:
    """Place the nine neutral stones of a started game, one uniformly random legal square per section."""
    for section in range(NUM_SECTIONS):
        place_neutral(game, NEUTRAL_SQUARE[draw_bit(streams, index, SECTION_NEUTRALS[section])])
    end_turn(game)
    game.to_move = 0
