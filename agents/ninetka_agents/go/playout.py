"""Heavy playouts of Go: local answers to the last move, otherwise random moves.

Start reading at `finish_playout` and `choose`. Searches call `heuristics.py`, which calls this module; uniformly random
playouts are in `ninetka_env.games.go.choices`.

The first of these rules that yields a move applies: capture the chain of the last move if it is in atari, or save own
chains that the last move put in atari; play a 3 x 3 pattern next to the last move or to the move before it; play
anywhere. Own eyes are never filled, and most self-atari moves are rejected. The rules are in the order of MoGo (Gelly,
Wang, Munos and Teytaud, INRIA report 6062, 2006), like in later programs: Fuego (Enzenberger and others, IEEE TCIAIG
2010) and P. Baudis's Michi and Pachi (Baudis and Gailly, ACG 2011).

The functions of a turn are merged into the loop over turns (`inline=True`), here and in `board`, because playouts are
10 % faster without the calls.
"""

from __future__ import annotations

from ninetka_agents.go.board import (
    in_atari,
    last_liberty,
    liberties_after,
    neighbour_of,
    pass_turn,
    place_stone,
    point_of,
)
from ninetka_agents.go.patterns import EMPTY_NEIGHBOURS, TERRITORY_COLOUR, is_eye, matches_pattern
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.verbs import State, Trace, append_to_trace
from ninetka_env.games.go.geometry import i64
from ninetka_env.games.go.scoring import AREA, TERRITORY

MERCY_LEAD = 25
"""The mercy rule: a colour wins a playout at once if it leads after the komi and has a large lead in stones. The lead
in stones must exceed both this number and three tenths of the number of points."""
TACTICS_RATE, PATTERN_RATE, REJECT_SELF_ATARI_RATE = 922, 972, 922
"""Probabilities, in 1024ths: to answer an atari, to play a pattern, to reject a self-atari move."""


@jit(refcount=False)
def finish_playout(b: State, game: State, streams: Streams, index: int, trace: Trace) -> int:
    """Play the position on board `b` to its end, record the plies in `trace`, and return the winning seat or `DRAWN`.

    The komi, the scoring and the limit of plies are taken from `game`.
    """
    points, turns = i64(b.size) * i64(b.size), i64(game.max_plies) - i64(game.plies)
    mercy = max(MERCY_LEAD, points * 3 // 10)
    for _ in range(min(turns, 3 * points)):
        if b.passes >= 2:
            break
        if (b.stone_lead > mercy and 2 * b.stone_lead > game.komi) or (
            -b.stone_lead > mercy and 2 * b.stone_lead < game.komi
        ):
            return int(b.stone_lead < 0)
        cell = choose(b, streams, index)
        append_to_trace(trace, b.to_move - 1, point_of(cell, b.size) if cell else points)
        if cell:
            place_stone(b, cell)
        else:
            pass_turn(b)
    return winner(b, game)


@jit(refcount=False)
def winner(b: State, game: State) -> int:
    """Return the winning seat on the current board, or `DRAWN`; the stones next to an empty point decide its owner."""
    lead = b.stone_lead if game.scoring != TERRITORY else 0
    for k in range(b.num_empty):
        owner = TERRITORY_COLOUR[b.code[b.empty[k]] & 255]
        lead += int(owner == 1) - int(owner == 2)
    if game.scoring != AREA:
        lead += b.captured[1] - b.captured[2]
    if 2 * lead == game.komi:
        return DRAWN
    return int(2 * lead < game.komi)


@jit(inline=True, refcount=False)
def choose(b: State, streams: Streams, index: int) -> int:
    """Return the cell on which the colour to move places a stone, or 0 to pass."""
    colour = i64(b.to_move)
    if b.last:
        b.num_candidates = 0
        random_bits = draw_below(streams, index, 1 << 20)  # 10 bits for each of the two decisions
        if random_bits & 1023 < TACTICS_RATE:
            collect_atari_replies(b, i64(b.last), colour)
            if b.num_candidates:
                return _draw_candidate(b, streams, index)
        if random_bits >> 10 < PATTERN_RATE:
            _collect_pattern_moves(b, i64(b.last))
            cell = _draw_safe_candidate(b, colour, streams, index)
            if cell == 0 and b.before_last:
                _collect_pattern_moves(b, i64(b.before_last))
                cell = _draw_safe_candidate(b, colour, streams, index)
            if cell:
                return cell
    return choose_anywhere(b, colour, streams, index)


@jit(refcount=False)
def add_candidate(b: State, cell: int) -> None:
    """Add a cell to the candidates."""
    b.candidates[b.num_candidates] = cell
    b.num_candidates += 1


@jit(inline=True, refcount=False)
def _draw_candidate(b: State, streams: Streams, index: int) -> int:
    return i64(b.candidates[draw_below(streams, index, b.num_candidates)])


@jit(inline=True, refcount=False)
def _draw_safe_candidate(b: State, colour: int, streams: Streams, index: int) -> int:
    """Return a random candidate that is not self-atari, or 0 if all are; remove the candidates that were rejected."""
    while b.num_candidates:
        chosen = draw_below(streams, index, b.num_candidates)
        cell = i64(b.candidates[chosen])
        if liberties_after(b, cell, colour) > 1:
            return cell
        b.num_candidates -= 1
        b.candidates[chosen] = b.candidates[b.num_candidates]
    return 0


@jit(refcount=False)
def _collect_pattern_moves(b: State, around: int) -> None:
    """Set the candidates to the neighbours of a cell that match a pattern.

    The loop is branch-free, because random data would defeat branch prediction.
    """
    ko, count = i64(b.ko), 0
    for k in range(8):
        cell = neighbour_of(around, k)
        b.candidates[count] = cell
        count += (b.colour[cell] == 0) & matches_pattern(i64(b.code[cell])) & (cell != ko)
    b.num_candidates = count


@jit(inline=True, refcount=False)
def collect_atari_replies(b: State, last: int, colour: int) -> None:
    """Add candidates that capture the chain of the last move or save own chains that the last move put in atari."""
    head = i64(b.chain[last])
    if head and in_atari(b, head):
        cell = last_liberty(b, head)
        if cell != b.ko:
            add_candidate(b, cell)
    for k in range(4):
        neighbour = neighbour_of(last, k)
        if (b.colour[neighbour] == colour) & in_atari(b, i64(b.chain[neighbour])):
            collect_saving_moves(b, i64(b.chain[neighbour]), colour)


@jit(inline=True, refcount=False)
def collect_saving_moves(b: State, head: int, colour: int) -> None:
    """Add candidates that save a chain in atari: they capture an adjacent chain or extend to two or more liberties."""
    run = last_liberty(b, head)
    if run != b.ko and liberties_after(b, run, colour) > 1:
        add_candidate(b, run)
    stone = head
    for _ in range(min(i64(b.stones[head]), 40)):
        for k in range(4):
            neighbour = neighbour_of(stone, k)
            if (b.colour[neighbour] == 3 - colour) & in_atari(b, i64(b.chain[neighbour])):
                cell = last_liberty(b, i64(b.chain[neighbour]))
                if cell != run and cell != b.ko and b.num_candidates < 30:
                    add_candidate(b, cell)
        stone = i64(b.next_stone[stone])


@jit(inline=True, refcount=False)
def choose_anywhere(b: State, colour: int, streams: Streams, index: int) -> int:
    """Return a random cell that is legal, not an own eye and rarely self-atari, or 0 (pass) if there is none."""
    left = i64(b.num_empty)
    while left:
        chosen = draw_below(streams, index, left)
        cell = i64(b.empty[chosen])
        if EMPTY_NEIGHBOURS[b.code[cell] & 255] > 1:  # the common case: neither an eye, nor a ko, nor self-atari
            return cell
        if not is_eye(i64(b.code[cell]), colour) and cell != b.ko:
            liberties = liberties_after(b, cell, colour)
            if liberties > 1 or (liberties == 1 and draw_below(streams, index, 1024) >= REJECT_SELF_ATARI_RATE):
                return cell
        left -= 1
        other = i64(b.empty[left])
        b.empty[chosen], b.empty[left] = other, cell
        b.empty_index[other], b.empty_index[cell] = chosen, left
    return 0
