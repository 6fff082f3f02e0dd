"""Heavy playouts of Go: local answers to the last move, otherwise random moves.

The first rule with a move applies: capture the chain of the last move if it is in atari, or save own chains that the
last move put in atari; play a 3 x 3 pattern next to the last move, or to the one before; play anywhere. Own eyes are
never filled, and most self-atari moves are rejected. The order is that of MoGo (Gelly, Wang, Munos and Teytaud, INRIA
report 6062, 2006), as in later programs: Fuego (Enzenberger and others, IEEE TCIAIG 2010) and P. Baudis's Michi and
Pachi (Baudis and Gailly, ACG 2011).

The functions of a turn are merged into the loop over turns (`inline=True`), here and in `board`, because playouts are
10 % faster without the calls.
"""

from __future__ import annotations

from ninetka_agents.go.board import (
    beside,
    in_atari,
    last_liberty,
    liberties_after,
    pass_turn,
    place,
    point_of,
)
from ninetka_agents.go.patterns import EMPTY_SIDES, TERRITORY_OF, is_eye, is_pattern
from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.verbs import Record, Trace, note
from ninetka_env.games.go.geometry import wide
from ninetka_env.games.go.scoring import AREA, TERRITORY

MERCY = 25
"""The mercy rule: a lead of more stones than this, and than three tenths of the points, wins at once."""
TACTICS, PATTERNS, SHY = 922, 972, 922
"""Probabilities, in 1024ths: to answer an atari, to play a pattern, to reject a self-atari move."""


@jit(counted=False)
def finish(b: Record, game: Record, streams: Streams, index: int, trace: Trace) -> int:
    """Play the position on board `b` to its end, record the plies in `trace`, and return the winning seat or `DRAWN`.

    The komi, the scoring and the limit of plies are those of `game`.
    """
    points, turns = wide(b.size) * wide(b.size), wide(game.max_plies) - wide(game.plies)
    mercy = max(MERCY, points * 3 // 10)
    for _ in range(min(turns, 3 * points)):
        if b.passes >= 2:
            break
        if (b.lead > mercy and 2 * b.lead > game.komi) or (-b.lead > mercy and 2 * b.lead < game.komi):
            return int(b.lead < 0)
        cell = choose(b, streams, index)
        note(trace, b.to_move - 1, point_of(cell, b.size) if cell else points)
        if cell:
            place(b, cell)
        else:
            pass_turn(b)
    return winner(b, game)


@jit(counted=False)
def winner(b: Record, game: Record) -> int:
    """Return the winning seat on the current board, or `DRAWN`; the stones next to an empty point decide its owner."""
    lead = b.lead if game.scoring != TERRITORY else 0
    for k in range(b.num_empty):
        owner = TERRITORY_OF[b.code[b.empty[k]] & 255]
        lead += int(owner == 1) - int(owner == 2)
    if game.scoring != AREA:
        lead += b.captured[1] - b.captured[2]
    if 2 * lead == game.komi:
        return DRAWN
    return int(2 * lead < game.komi)


@jit(inline=True, counted=False)
def choose(b: Record, streams: Streams, index: int) -> int:
    """Choose the cell to place on; 0 to pass."""
    colour = wide(b.to_move)
    if b.last:
        b.num_found = 0
        chances = draw_below(streams, index, 1 << 20)  # 10 bits for each of the two decisions
        if chances & 1023 < TACTICS:
            answer_atari(b, wide(b.last), colour)
            if b.num_found:
                return _draw_found(b, streams, index)
        if chances >> 10 < PATTERNS:
            _gather_patterns(b, wide(b.last))
            cell = _draw_shy(b, colour, streams, index)
            if cell == 0 and b.before_last:
                _gather_patterns(b, wide(b.before_last))
                cell = _draw_shy(b, colour, streams, index)
            if cell:
                return cell
    return anywhere(b, colour, streams, index)


@jit(counted=False)
def gather(b: Record, cell: int) -> None:
    """Add a cell to the candidates."""
    b.found[b.num_found] = cell
    b.num_found += 1


@jit(inline=True, counted=False)
def _draw_found(b: Record, streams: Streams, index: int) -> int:
    return wide(b.found[draw_below(streams, index, b.num_found)])


@jit(inline=True, counted=False)
def _draw_shy(b: Record, colour: int, streams: Streams, index: int) -> int:
    """Draw candidates until one is not self-atari; return 0 if there is none."""
    while b.num_found:
        chosen = draw_below(streams, index, b.num_found)
        cell = wide(b.found[chosen])
        if liberties_after(b, cell, colour) > 1:
            return cell
        b.num_found -= 1
        b.found[chosen] = b.found[b.num_found]
    return 0


@jit(counted=False)
def _gather_patterns(b: Record, around: int) -> None:
    """Set the candidates to the neighbours of a cell that match a pattern.

    The loop is branch-free, because random data would defeat branch prediction.
    """
    ko, count = wide(b.ko), 0
    for k in range(8):
        cell = beside(around, k)
        b.found[count] = cell
        count += (b.colour[cell] == 0) & is_pattern(wide(b.code[cell])) & (cell != ko)
    b.num_found = count


@jit(inline=True, counted=False)
def answer_atari(b: Record, last: int, colour: int) -> None:
    """Add the moves that capture the chain of the last move or save own chains that it put in atari."""
    head = wide(b.chain[last])
    if head and in_atari(b, head):
        cell = last_liberty(b, head)
        if cell != b.ko:
            gather(b, cell)
    for k in range(4):
        neighbour = beside(last, k)
        if (b.colour[neighbour] == colour) & in_atari(b, wide(b.chain[neighbour])):
            save(b, wide(b.chain[neighbour]), colour)


@jit(inline=True, counted=False)
def save(b: Record, head: int, colour: int) -> None:
    """Add the moves that save a chain in atari: capturing an adjacent chain, or extending to two or more liberties."""
    run = last_liberty(b, head)
    if run != b.ko and liberties_after(b, run, colour) > 1:
        gather(b, run)
    stone = head
    for _ in range(min(wide(b.stones[head]), 40)):
        for k in range(4):
            neighbour = beside(stone, k)
            if (b.colour[neighbour] == 3 - colour) & in_atari(b, wide(b.chain[neighbour])):
                cell = last_liberty(b, wide(b.chain[neighbour]))
                if cell != run and cell != b.ko and b.num_found < 30:
                    gather(b, cell)
        stone = wide(b.after[stone])


@jit(inline=True, counted=False)
def anywhere(b: Record, colour: int, streams: Streams, index: int) -> int:
    """Choose a random cell that is not an own eye, rarely one that is self-atari; return 0 to pass."""
    left = wide(b.num_empty)
    while left:
        chosen = draw_below(streams, index, left)
        cell = wide(b.empty[chosen])
        if EMPTY_SIDES[b.code[cell] & 255] > 1:  # the common case: neither an eye, nor a ko, nor self-atari
            return cell
        if not is_eye(wide(b.code[cell]), colour) and cell != b.ko:
            liberties = liberties_after(b, cell, colour)
            if liberties > 1 or (liberties == 1 and draw_below(streams, index, 1024) >= SHY):
                return cell
        left -= 1
        other = wide(b.empty[left])
        b.empty[chosen], b.empty[left] = other, cell
        b.place[other], b.place[cell] = chosen, left
    return 0
