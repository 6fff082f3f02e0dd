"""What the solver's reductions claim, against what happens in play."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from conftest import TEST_GAMES, Options, position_after, random_action

from agents.bitboard import DIRECTION, SLOT_BOARD
from agents.proof import _hash
from agents.reduction import (
    DECIDED,
    LEADS,
    MOVER,
    NUM_WORDS,
    OPEN,
    SCRATCH,
    STONES,
    TEMPI,
    States,
    _above,
    _lead_bounds,
    _write_flags,
    _write_landings,
    read_state,
    reduce,
    write_owned,
)
from ninetka_env._jit import jit
from ninetka_env.game import Game
from ninetka_env.geometry import NUM_SECTIONS, SECTION, SLOT_SQUARE, SQUARE_SLOT
from ninetka_env.rules import Phase, Records


@jit
def _states_of(games: Records, states: States, owned: States, scratch: States) -> tuple[int, int, int]:
    """Write the state of game 0 into row 0, reduced into row 1, and possible landings; return verdict and bounds."""
    write_owned(games[0].movable[0], owned)
    read_state(games[0], 0, states, 0)
    read_state(games[0], 0, states, 1)
    verdict = reduce(states, 1, owned, scratch)
    _write_landings(states, 0, scratch)
    _write_flags(states, 0, scratch)
    upper, lower, _, _, _ = _lead_bounds(states, 0, owned, scratch)
    return verdict, upper, lower


def reduced(game: Game) -> tuple[int, list[int], list[int], States, States]:
    """Return the verdict, the bounds of the leads, the two states and the possible landings."""
    states, owned = np.zeros((2, NUM_WORDS), np.int64), np.zeros(9, np.int64)
    scratch = np.zeros(SCRATCH, np.int64)
    verdict, upper, lower = _states_of(game.records, states, owned, scratch)
    fields = [[(bound >> 7 * section & 127) - 32 for section in range(9)] for bound in (lower, upper)]
    return verdict, *fields, states, scratch


def may_land(scratch: States, slot: int, square: int) -> bool:
    """Tell whether the stone of a slot may come to rest on a square of the whole board."""
    place = 9 * (square // 11 - 1) + square % 11 - 1
    board = int(DIRECTION[slot])
    lo, hi = int(scratch[board] & SLOT_BOARD[slot, 0]), int(scratch[board + 1] & SLOT_BOARD[slot, 1])
    return bool((lo | hi << 54) >> place & 1)


def test_sections_are_compared_all_at_once_as_one_by_one() -> None:
    """Leads of up to 27 stones, the most that bounds can reach; the numbers that they are compared with."""
    for leads in np.random.default_rng(0).integers(32 - 27, 32 + 28, (TEST_GAMES, NUM_SECTIONS)).tolist():
        fields = sum(lead << 7 * section for section, lead in enumerate(leads))
        for bound in (30, 31, 32, 33):
            assert _above(fields, bound) == sum(1 << 7 * s for s, lead in enumerate(leads) if lead > bound)


@pytest.mark.parametrize("slides", [0, 6, 12, 18])
def test_stones_land_only_where_they_may_and_leads_stay_within_bounds(slides: int) -> None:
    rng = np.random.default_rng(slides)
    for seed in range(TEST_GAMES // 50):
        start = position_after(Options(2), seed, Phase.MOVEMENT, slides)
        verdict, lower, upper, states, scratch = reduced(start)
        for _ in range(10):
            game, settled = start.copy(), np.zeros(9, np.int64)
            while not game.is_over:
                action = random_action(game, rng)
                square, slot = game.landing(action), int(SQUARE_SLOT[action])
                assert may_land(scratch, slot, square)
                isolated = not states[1, STONES] >> slot & 1
                settled[SECTION[square]] += isolated * (1 - 2 * game.to_move)
                game.play(action)
            leads = (game.counts()[0] - game.counts()[1]).tolist()
            assert all(low <= lead <= high for low, lead, high in zip(lower, leads, upper, strict=True))
            if verdict:
                assert (verdict == 1) == (game.winner() == 0)
            check_reduced(start, states, leads, settled.tolist())


def check_reduced(start: Game, states: States, leads: list[int], settled: list[int]) -> None:
    """Isolated stones ended where they were counted; decided sections ended as they were decided."""
    counted = start.counts()[0] - start.counts()[1]
    decided = 0
    for section in range(NUM_SECTIONS):
        if states[1, OPEN] >> section & 1:
            assert (states[1, LEADS] >> 7 * section & 127) - 32 == counted[section] + settled[section]
        else:
            decided += int(np.sign(leads[section]))
    assert states[1, DECIDED] == decided


def test_isolated_stones_always_slide() -> None:
    rng = np.random.default_rng(0)
    found = 0
    for seed in range(TEST_GAMES // 20):
        game = position_after(Options(2), seed, Phase.MOVEMENT, 4 + seed % 16)
        before = [int(square) for square in SLOT_SQUARE[[bool(game.movable().flat[s]) for s in SLOT_SQUARE]]]
        _, _, _, states, _ = reduced(game)
        isolated = {square for square in before if not states[1, STONES] >> int(SQUARE_SLOT[square]) & 1}
        found += len(isolated)
        tempi = sum(1 if game.board.flat[square] == 1 else -1 for square in isolated)
        assert abs(states[1, TEMPI]) <= abs(tempi)
        played = set()
        while not game.is_over:
            played.add(action := random_action(game, rng))
            game.play(action)
        assert isolated <= played
    assert found > TEST_GAMES // 20


@jit
def _hash_all(states: States, keys: npt.NDArray[np.uint64], owned: States) -> None:
    for row in range(len(states)):
        _hash(states, row, keys, owned)


def test_whatever_differs_between_states_is_in_their_keys() -> None:
    """Bit by bit: of each run, of the leads, and of all else; a decided section is not an open one with lead 0."""
    owned, scores = np.zeros(9, np.int64), [(TEMPI, 5), (MOVER, 1), (DECIDED, 4), (OPEN, 9)]
    write_owned(0b111, owned)
    bits = [*((board, 54 - 27 * (board % 2)) for board in range(8)), (LEADS, 63), (STONES, 3), *scores]
    changes = [(0, 0), *((word, 1 << bit) for word, count in bits for bit in range(count)), (TEMPI, -1), (DECIDED, -1)]
    states, keys = np.zeros((len(changes), NUM_WORDS), np.int64), np.zeros((len(changes), 2), np.uint64)
    for row, (word, change) in enumerate(changes):
        states[row, word] = change
    _hash_all(states, keys, owned)
    for half in keys.T:
        assert len({*half.tolist()}) == len(changes)
