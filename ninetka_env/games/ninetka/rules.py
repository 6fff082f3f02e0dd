"""The rules of 9tka, compiled. A state is one element of an array with the structured dtype `STATE_DTYPE`.

Single games, batches, search and solver all use these functions. The functions do not check their arguments: use
`is_legal` first. Only `start` draws random numbers. An assignment copies a state: `games[1] = games[0]`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.bits import Words, clear_words, set_bit
from ninetka_env.core.jit import jit, lowest_bit, popcount
from ninetka_env.core.random_streams import Streams, draw_set_bit
from ninetka_env.core.verbs import OptionCodes, State
from ninetka_env.games.ninetka.geometry import (
    ADJACENT_SLOTS,
    ALL_NEUTRALS,
    ALL_SLOTS,
    COLUMN_LINE,
    EDGE,
    LANDING_PLACE,
    LINE_SQUARES,
    MAX_PLAYERS,
    NEUTRAL_SQUARE,
    NEUTRAL_STONE,
    NUM_ACTIONS,
    NUM_LINES,
    NUM_NEUTRALS,
    NUM_SECTIONS,
    NUM_SLOTS,
    NUM_SQUARES,
    PASS,
    ROW_LINE,
    SECTION,
    SECTION_NEUTRALS,
    SLOT_END,
    SLOT_LINE,
    SLOT_SQUARE,
    SQUARE_NEUTRAL,
    SQUARE_SLOT,
)


class Phase(IntEnum):
    """The three phases of a game. A finished game stays in MOVEMENT."""

    NEUTRAL = 0
    PLACEMENT = 1
    MOVEMENT = 2


# Compiled rules use plain ints, because numba treats globals as constants.
NEUTRAL, PLACEMENT, MOVEMENT = int(Phase.NEUTRAL), int(Phase.PLACEMENT), int(Phase.MOVEMENT)

NEUTRAL_PLACEMENTS = ("players", "random")
"""Who places the neutral stones: the players in turn, or the game at random before the first turn."""
TURN_ORDERS = ("restart", "continue")
"""Who opens a phase: always seat 0, or the next seat in turn. A state stores the index in this tuple."""

_FIELDS = np.dtype(
    [
        (
            "open",
            np.int64,
        ),  # neutral phase: bits of the NEUTRAL_SQUARE entries still allowed; placement: bits of the free slots
        ("movable", np.int64, (MAX_PLAYERS,)),  # per seat, bits of the slots whose stone can still slide
        ("owned", np.int16, (MAX_PLAYERS,)),  # per seat, bits of the sections it owns (strictly most stones)
        ("lines", np.uint16, (NUM_LINES,)),  # per line, bits of its occupied places
        ("counts", np.int8, (MAX_PLAYERS, NUM_SECTIONS)),  # settled stones per seat and section
        ("board", np.int8, (NUM_SQUARES,)),  # cell codes: 0 empty, seat + 1, 5 neutral
        ("num_players", np.int8),
        ("turn_order", np.int8),  # index in TURN_ORDERS
        ("auto_pass", np.int8),  # 1: forced passes are played by the rules
        ("phase", np.int8),
        ("to_move", np.int8),
        ("padding", np.int8, (2,)),  # padding, always 0, so that equal states are equal byte for byte
    ],
    align=True,
)

STATE_DTYPE = np.dtype((np.record, _FIELDS))
"""The dtype of states. All fields but the options and `to_move` follow from the board; they are stored for speed."""


@jit
def start(game: State, options: OptionCodes, streams: Streams, index: int) -> None:
    """Start a game; with random neutral stones, draw them from stream `index`. See `definition.OPTIONS`."""
    clear(game, options[0] + 2, options[2], options[3])
    if options[1]:
        place_neutrals_at_random(game, streams, index)


@jit
def place_neutrals_at_random(game: State, streams: Streams, index: int) -> None:
    """Place the nine neutral stones of a started game, each on a uniformly random legal square of its section."""
    for section in range(NUM_SECTIONS):
        place_neutral(game, NEUTRAL_SQUARE[draw_set_bit(streams, index, SECTION_NEUTRALS[section])])
    end_turn(game)
    game.to_move = 0


@jit
def clear(game: State, num_players: int, turn_order: int, auto_pass: int) -> None:
    """Make `game` an empty board with seat 0 to place the first neutral stone."""
    game.open = ALL_NEUTRALS
    for seat in range(MAX_PLAYERS):
        game.movable[seat] = 0
        game.owned[seat] = 0
    for line in range(NUM_LINES):
        game.lines[line] = 0
    for seat in range(MAX_PLAYERS):
        for section in range(NUM_SECTIONS):
            game.counts[seat, section] = 0
    for square in range(NUM_SQUARES):
        game.board[square] = 0
    game.num_players = num_players
    game.turn_order = turn_order
    game.auto_pass = auto_pass
    game.phase = NEUTRAL
    game.to_move = 0
    game.padding[0] = game.padding[1] = 0


@jit
def legal_bits(game: State) -> int:
    """Return the legal actions of the seat to move, except passes, as a bit set.

    A bit is an index in `NEUTRAL_SQUARE` in the neutral phase, and a slot later; `bit_action` converts it to an action.
    Bits ascend with the squares. 0 means that the game is over or, without `auto_pass`, that the seat must pass.
    """
    if game.phase == MOVEMENT:
        return game.movable[game.to_move]
    return game.open


@jit
def bit_action(game: State, bit: int) -> int:
    """Return the action of bit number `bit` of `legal_bits`."""
    if game.phase == NEUTRAL:
        return int(NEUTRAL_SQUARE[bit])
    return int(SLOT_SQUARE[bit])


@jit
def movable_slots(game: State) -> int:
    """Return the slots, of all seats, whose stone can still slide, as a bit set."""
    return game.movable[0] | game.movable[1] | game.movable[2] | game.movable[3]


@jit
def is_over(game: State) -> bool:
    """Return whether no seat can move any more."""
    return game.phase == MOVEMENT and movable_slots(game) == 0


@jit
def must_pass(game: State) -> bool:
    """Return whether passing is the only legal action (possible only without `auto_pass`)."""
    return game.phase == MOVEMENT and game.movable[game.to_move] == 0 and movable_slots(game) != 0


@jit
def is_legal(game: State, action: int) -> bool:
    """Return whether the seat to move may play `action`; False for integers that are out of range."""
    if action == PASS:
        return must_pass(game)
    if action < 0 or action > PASS:
        return False
    bit = int(SQUARE_NEUTRAL[action]) if game.phase == NEUTRAL else int(SQUARE_SLOT[action])
    return bit >= 0 and (legal_bits(game) >> bit) & 1 == 1


@jit
def write_legal_mask(game: State, mask: npt.NDArray[np.int8]) -> None:
    """Write the legal actions of the seat to move into `mask`, (122,) int8; all zero when the game is over."""
    mask[:] = 0
    bits = legal_bits(game)
    if game.phase == NEUTRAL:
        while bits:
            mask[NEUTRAL_SQUARE[lowest_bit(bits)]] = 1
            bits &= bits - 1
    elif game.phase == PLACEMENT:
        for square in range(NUM_SQUARES):  # faster than a loop over the bits, because there are many
            mask[square] = EDGE[square] & (game.board[square] == 0)
    elif bits:
        while bits:
            mask[SLOT_SQUARE[lowest_bit(bits)]] = 1
            bits &= bits - 1
    elif must_pass(game):
        mask[PASS] = 1


@jit(refcount=False)
def write_legal_bits(game: State, words: Words) -> None:
    """Write the numbers of `write_legal_mask` as bits, (4,) uint32."""
    clear_words(words)
    bits = legal_bits(game)
    while bits:
        set_bit(words, bit_action(game, lowest_bit(bits)))
        bits &= bits - 1
    if must_pass(game):
        set_bit(words, PASS)


@jit
def landing_square(game: State, slot: int) -> int:
    """Return the square where the stone of `slot` would come to rest; the stone must be movable."""
    line = SLOT_LINE[slot]
    return int(LINE_SQUARES[line, LANDING_PLACE[SLOT_END[slot], game.lines[line]]])


@jit
def play(game: State, action: int) -> int:
    """Play a legal action and give the turn to the next seat.

    Returns:
        The bit set of the seats that the rules passed over because none of their stones can slide.
    """
    if action == PASS:
        return end_turn(game)
    return play_bit(game, int(SQUARE_NEUTRAL[action]) if game.phase == NEUTRAL else int(SQUARE_SLOT[action]))


@jit
def play_bit(game: State, bit: int) -> int:
    """Play the action of bit number `bit` of `legal_bits`; otherwise like `play`."""
    if game.phase == MOVEMENT:
        slide(game, bit)
    elif game.phase == PLACEMENT:
        place_stone(game, bit)
    else:
        place_neutral(game, NEUTRAL_SQUARE[bit])
    return end_turn(game)


@jit
def place_neutral(game: State, square: int) -> None:
    """Put a neutral stone on an inner square, and close its section to further neutral stones."""
    game.board[square] = NEUTRAL_STONE
    occupy(game, square)
    game.open &= ~SECTION_NEUTRALS[SECTION[square]]


@jit
def place_stone(game: State, slot: int) -> None:
    """Put a stone of the seat to move on the edge square of `slot`."""
    game.board[SLOT_SQUARE[slot]] = game.to_move + 1
    game.open &= ~(1 << slot)
    game.movable[game.to_move] |= 1 << slot


@jit
def slide(game: State, slot: int) -> None:
    """Slide the stone of `slot` into the board. It must be movable and belong to the seat to move."""
    square = landing_square(game, slot)
    game.board[SLOT_SQUARE[slot]] = 0
    game.board[square] = game.to_move + 1
    occupy(game, square)
    _settle(game, int(SECTION[square]))
    still_movable = ~(ADJACENT_SLOTS[square] | (1 << slot))
    for other in range(MAX_PLAYERS):
        game.movable[other] &= still_movable


@jit
def occupy(game: State, square: int) -> None:
    """Mark an inner square as occupied in its two lines."""
    row, column = int(ROW_LINE[square]), int(COLUMN_LINE[square])
    game.lines[row] |= 1 << (column - 9)
    game.lines[column] |= 1 << row


@jit
def _settle(game: State, section: int) -> None:
    """Count one more stone of the seat to move in a section and update who owns it."""
    seat = game.to_move
    game.counts[seat, section] += 1
    count, strictly_most = game.counts[seat, section], True
    for other in range(game.num_players):
        if other != seat:
            strictly_most &= count > game.counts[other, section]
            game.owned[other] &= ~((count >= game.counts[other, section]) << section)
    game.owned[seat] |= strictly_most << section


@jit
def end_turn(game: State) -> int:
    """Give the turn to the next seat, and start the next phase if due; return the seats passed over, as bits."""
    game.to_move = next_seat(game, game.to_move)
    if game.phase == MOVEMENT:
        return pass_over(game)
    if game.open == 0:
        game.phase += 1
        game.open = ALL_SLOTS if game.phase == PLACEMENT else 0
        if game.turn_order == 0:
            game.to_move = 0
    return 0


@jit
def next_seat(game: State, seat: int) -> int:
    """Return the seat after `seat` in turn order."""
    return seat + 1 if seat + 1 < game.num_players else 0


@jit
def pass_over(game: State) -> int:
    """With `auto_pass`, give the turn to the next seat that can slide; return the seats passed over, as bits."""
    passed = 0
    if game.auto_pass and game.phase == MOVEMENT and movable_slots(game):
        while game.movable[game.to_move] == 0:
            passed |= 1 << int(game.to_move)
            game.to_move = next_seat(game, game.to_move)
    return passed


@jit
def winner_of(game: State) -> int:
    """Return the seat with the highest score; in a tie, the last of the tied seats in seat order."""
    winner, best = 0, 0
    for seat in range(game.num_players):
        score = popcount(game.owned[seat])
        if score >= best:
            winner, best = seat, score
    return winner


@jit
def write_scores(game: State, scores: npt.NDArray[Any]) -> None:
    """Write the number of sections that each seat owns, (n,)."""
    for seat in range(game.num_players):
        scores[seat] = popcount(game.owned[seat])


@jit
def write_score_rewards(game: State, rewards: npt.NDArray[np.float32]) -> None:
    """Write (own score - mean of all scores) / 9 for each seat, (n,) float32."""
    n, total = game.num_players, 0
    for seat in range(n):
        total += popcount(game.owned[seat])
    for seat in range(n):
        rewards[seat] = (popcount(game.owned[seat]) - total / n) / NUM_SECTIONS


@jit
def write_targets(game: State, targets: npt.NDArray[np.int8]) -> None:
    """Write the seat that owns each section, (9,) int8; -1 where no seat has strictly most stones."""
    for section in range(NUM_SECTIONS):
        targets[section] = -1
        for seat in range(game.num_players):
            if (game.owned[seat] >> section) & 1:
                targets[section] = seat


@jit
def num_actions(game: State) -> int:
    """Return 122: the squares and the action to pass."""
    return NUM_ACTIONS


@jit
def stage(game: State) -> int:
    """Return the phase as an int, see `Phase`."""
    return int(game.phase)


@jit
def plies(game: State) -> int:
    """Return the number of stones placed plus the number of slides. The three phases start at plies 0, 9 and 45."""
    if game.phase == NEUTRAL:
        neutrals = 0
        for section in range(NUM_SECTIONS):
            neutrals += (game.open & SECTION_NEUTRALS[section]) == 0
        return neutrals
    if game.phase == PLACEMENT:
        return NUM_NEUTRALS + NUM_SLOTS - popcount(game.open)
    settled = 0
    for seat in range(game.num_players):
        for section in range(NUM_SECTIONS):
            settled += game.counts[seat, section]
    return NUM_NEUTRALS + NUM_SLOTS + settled
