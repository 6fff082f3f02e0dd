"""Tests of the solver's reductions against random play to the end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from ninetka.positions import Options, position_after, random_action
from scale import Scaled

from ninetka_agents.ninetka.solver.bitboard import DIRECTION, SLOT_BOARD
from ninetka_agents.ninetka.solver.proof import _hash
from ninetka_agents.ninetka.solver.reduction import _fields_above, _max_gain, _sections_at, _sum_fields, reduce
from ninetka_agents.ninetka.solver.simd import NUM_LANES, lane, load, store
from ninetka_agents.ninetka.solver.states import (
    DECIDED,
    LEADS,
    LOWER,
    MOVER,
    NUM_OWNED,
    NUM_WORDS,
    OPEN,
    STONES,
    TEMPI,
    UPPER,
    States,
    write_owned,
    write_state,
)
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_SECTIONS, SECTION, SLOT_SQUARE, SQUARE_SLOT
from ninetka_env.games.ninetka.rules import Phase


@jit
def _reduce_all(games: StateArray, states: States, owned: States, landings: States, verdicts: States) -> None:
    """Run `reduce` on up to four games; write the reduced states, the possible landings and the verdicts.

    All games must be continuations of game 0: `owned`, the stones of seat 0, is computed from game 0.
    """
    write_owned(games[0].movable[0], owned)
    for row in range(len(games)):
        write_state(games[row], 0, states, row)
    found = reduce(states, 0, owned, landings)
    for row in range(NUM_LANES):
        verdicts[row] = lane(found, row)


def reduce_games(games: StateArray) -> tuple[States, States, States]:
    """Return the verdicts, reduced states and possible landings. All games must be continuations of game 0."""
    states, landings, verdicts = (
        np.zeros(shape, np.int64) for shape in ((NUM_LANES, NUM_WORDS), (NUM_LANES, 8), NUM_LANES)
    )
    _reduce_all(games, states, np.zeros(NUM_OWNED, np.int64), landings, verdicts)
    return verdicts[: len(games)], states[: len(games)], landings[: len(games)]


def reduced(game: Game) -> tuple[int, list[int], list[int], States, States]:
    """Reduce a game; return the verdict, lower and upper bounds of the leads, the state and the possible landings."""
    (verdict,), (state,), (landings,) = reduce_games(game.records)
    fields = [[(int(state[bound]) >> 7 * section & 127) - 32 for section in range(9)] for bound in (LOWER, UPPER)]
    return int(verdict), *fields, state, landings


def may_land(landings: States, slot: int, square: int) -> bool:
    """Return whether the stone of a slot may come to rest on a square, numbered on the whole board."""
    place = 9 * (square // 11 - 1) + square % 11 - 1
    board = int(DIRECTION[slot])
    lo, hi = int(landings[board] & SLOT_BOARD[slot, 0]), int(landings[board + 1] & SLOT_BOARD[slot, 1])
    return bool((lo | hi << 54) >> place & 1)


@jit
def _on_fields(words: States, bound: int, out: States) -> None:
    """Call the functions under test for each row of `words`, and write the results into `out`.

    Column 0 of `words` holds nine fields of 7 bits, one for each section. Columns 1 to 3 are arguments of `_max_gain`.
    """
    for row in range(0, len(words), NUM_LANES):
        fields, near, far, stones = load(words, row, 0)
        above = _fields_above(fields, bound)
        store(out, row, 0, above, _sections_at(above), _sum_fields(fields), _max_gain(near, far, stones))


@pytest.mark.parametrize("bound", [30, 31, 32, 33])
def test_packed_field_operations_match_single_fields(bound: int, scaled: Scaled) -> None:
    """Check leads of -27 to 27 stones (no bound is larger), sums of up to 36, and gains of up to 18 stones."""
    rng, count = np.random.default_rng(bound), scaled(2000, NUM_LANES) // NUM_LANES * NUM_LANES
    leads, arrivals = rng.integers(32 - 27, 32 + 28, (count, NUM_SECTIONS)), rng.integers(0, 5, (count, NUM_SECTIONS))
    numbers, out = rng.integers(0, 19, (count, 3)), np.zeros((count, 4), np.int64)
    shifts = 7 * np.arange(NUM_SECTIONS)
    _on_fields(np.column_stack(((leads << shifts).sum(1), numbers)), bound, out)
    assert out[:, 0].tolist() == ((leads > bound) << shifts).sum(1).tolist()
    assert out[:, 1].tolist() == ((leads > bound) << np.arange(NUM_SECTIONS)).sum(1).tolist()
    near, far, stones = numbers.T
    gains = np.minimum(near, stones) + np.minimum(far, np.maximum(0, stones - near) * 2 // 3)
    assert out[:, 3].tolist() == gains.tolist()
    _on_fields(np.column_stack(((arrivals << shifts).sum(1), numbers)), bound, out)
    assert out[:, 2].tolist() == arrivals.sum(1).tolist()


def test_four_states_are_reduced_independently(scaled: Scaled) -> None:
    for seed in range(scaled(200)):
        start = position_after(Options(2), seed, Phase.MOVEMENT, seed % 20)
        games = np.concatenate([start.records, *(after_slides(start, 3, place).records for place in range(3))])
        together = reduce_games(games)
        for row in range(NUM_LANES):
            alone = [*reduce_games(np.concatenate([games[:1], games[row : row + 1]]))]
            for all_of, one in zip(together, alone, strict=True):
                assert all_of[row].tolist() == one[1].tolist()


def after_slides(start: Game, slides: int, seed: int) -> Game:
    """Return the game after `slides` random slides, or at its end if it ends earlier."""
    game, rng = start.copy(), np.random.default_rng(seed)
    while slides and not game.is_over:
        game.play(random_action(game, rng))
        slides -= 1
    return game


@pytest.mark.parametrize("slides", [0, 6, 12, 18])
def test_random_play_stays_within_landings_and_bounds(slides: int, scaled: Scaled) -> None:
    rng = np.random.default_rng(slides)
    for seed in range(scaled(40, 8)):
        start = position_after(Options(2), seed, Phase.MOVEMENT, slides)
        verdict, lower, upper, state, landings = reduced(start)
        for _ in range(10):
            game, settled = start.copy(), np.zeros(9, np.int64)
            while not game.is_over:
                action = random_action(game, rng)
                square, slot = game.landing(action), int(SQUARE_SLOT[action])
                assert may_land(landings, slot, square)
                isolated = not state[STONES] >> slot & 1
                settled[SECTION[square]] += isolated * (1 - 2 * game.to_move)
                game.play(action)
            leads = (game.counts()[0] - game.counts()[1]).tolist()
            assert all(low <= lead <= high for low, lead, high in zip(lower, leads, upper, strict=True))
            if verdict:
                assert (verdict == 1) == (game.winner() == 0)
            check_reduced(start, state, leads, settled.tolist())


def check_reduced(start: Game, state: States, leads: list[int], settled: list[int]) -> None:
    """Check a reduced state against the end of a game that continues `start`.

    Args:
        start: the game before the reduction.
        state: its reduced state.
        leads: the lead of seat 0 in each section at the end. It decides the owners of decided sections.
        settled: the lead in each section from isolated stones alone. `state` adds it to the leads of open sections.
    """
    counted = start.counts()[0] - start.counts()[1]
    decided = 0
    for section in range(NUM_SECTIONS):
        if state[OPEN] >> section & 1:
            assert (state[LEADS] >> 7 * section & 127) - 32 == counted[section] + settled[section]
        else:
            decided += int(np.sign(leads[section]))
    assert state[DECIDED] == decided


def test_isolated_stones_always_slide(scaled: Scaled) -> None:
    rng = np.random.default_rng(0)
    found, count = 0, scaled(100, 16)
    for seed in range(count):
        game = position_after(Options(2), seed, Phase.MOVEMENT, 4 + seed % 16)
        before = [int(square) for square in SLOT_SQUARE[[bool(game.movable().flat[s]) for s in SLOT_SQUARE]]]
        _, _, _, state, _ = reduced(game)
        isolated = {square for square in before if not state[STONES] >> int(SQUARE_SLOT[square]) & 1}
        found += len(isolated)
        tempi = sum(1 if game.board.flat[square] == 1 else -1 for square in isolated)
        assert abs(state[TEMPI]) <= abs(tempi)
        played = set()
        while not game.is_over:
            played.add(action := random_action(game, rng))
            game.play(action)
        assert isolated <= played
    assert found > count


@jit
def _hash_all(states: States, keys: npt.NDArray[np.uint64], owned: States) -> None:
    for row in range(len(states)):
        _hash(states, row, keys, owned)


def test_keys_depend_on_every_bit_of_a_state() -> None:
    """A change of any bit changes the key. For example, a decided section differs from an open section with lead 0."""
    owned, scores = np.zeros(NUM_OWNED, np.int64), [(TEMPI, 5), (MOVER, 1), (DECIDED, 4), (OPEN, 9)]
    write_owned(0b111, owned)
    bits = [*((board, 54 - 27 * (board % 2)) for board in range(8)), (LEADS, 63), (STONES, 3), *scores]
    changes = [(0, 0), *((word, 1 << bit) for word, count in bits for bit in range(count)), (TEMPI, -1), (DECIDED, -1)]
    states, keys = np.zeros((len(changes), NUM_WORDS), np.int64), np.zeros((len(changes), 2), np.uint64)
    for row, (word, change) in enumerate(changes):
        states[row, word] = change
    _hash_all(states, keys, owned)
    for half in keys.T:
        assert len({*half.tolist()}) == len(changes)
