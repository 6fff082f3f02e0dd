"""Build the state of a position of Kropki from points and regions, and reject impossible positions.

Start reading at `read_board`. `text.py` reads positions as text. `is_consistent` checks states from elsewhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import OptionCodes, State, StateArray
from ninetka_env.games.kropki.geometry import (
    EDGE,
    ENCLOSED,
    LIVE_MASK,
    MAX_WIDTH,
    MIN_SIDE,
    POINT_MASK,
    REGION_MASK,
    node_name,
)
from ninetka_env.games.kropki.regions import draw_region, is_capturable, join_groups, list_drawable
from ninetka_env.games.kropki.rules import CROSS_POINTS, IMMEDIATE, clear, has_start_points, mover, num_nodes


def read_board(
    board: npt.ArrayLike, region: npt.ArrayLike, to_move: int, drawing: bool, last: int | None, variant: Variant
) -> StateArray:
    """Return the state, (1,), of the position with these points and regions.

    Whether the numbers of points of the two seats are possible is not checked.

    Args:
        board: (H, W) integers: 0 for no point, else seat + 1.
        region: (H, W) integers: 0 for no region, else seat + 1.
        to_move: the seat that acts next.
        drawing: whether that seat has placed its point already.
        last: the node of the point placed last, None for none.
        variant: the variant of the game.

    Raises:
        ValueError: if a number is out of range; if the cross of the start is not on the board; if live points of its
            seat do not enclose a region; if a seat's regions are not exactly the insides of smallest chains round
            opposing points; if there is no point on node `last`; if `drawing` and nothing can be drawn; or if a region
            that the rules would have drawn is missing.
    """
    check_count("to_move", to_move, 0, 1)
    width, height = variant.options["width"], variant.options["height"]
    points, regions = _check_codes("board", board, height, width), _check_codes("region", region, height, width)
    states = np.zeros(1, variant.dtype)
    _write_state(states, np.array(variant.codes, np.int64), points, regions, int(to_move))
    if not has_start_points(states[0]):
        raise ValueError("start='cross': the four points of the cross are in the middle of every such board")
    node = int(_first_not_enclosed(states))
    if node >= 0:
        name = node_name(node, width, height)
        raise ValueError(f"region at {name}: live points of its seat must enclose it")
    node = int(_first_not_smallest(states, np.repeat(states, 2)))
    if node >= 0:
        name = node_name(node, width, height)
        raise ValueError(f"region at {name}: a region is only what the smallest chain round opposing points encloses")
    game = states[0]
    if last is not None and points[check_count("last", last, 0, len(points) - 1)] == 0:
        raise ValueError(f"last={node_name(last, width, height)}: no point stands there")
    if drawing and (game.territory == IMMEDIATE or game.capturable[game.to_move] == 0):
        raise ValueError(f"seat {to_move} cannot be drawing: there is nothing that it may draw")
    if game.territory == IMMEDIATE and game.capturable.any():
        raise ValueError("territory='immediate': what can be drawn must be drawn")
    if game.free == 0 and not drawing and game.capturable.any():
        raise ValueError("the board is full: what can be drawn must be drawn")
    game.drawing, game.last = int(drawing), -1 if last is None else last
    if drawing:
        _list_drawable(states, to_move)
    return states


def _check_codes(name: str, codes: npt.ArrayLike, height: int, width: int) -> npt.NDArray[np.int8]:
    found = np.asarray(codes)
    if found.shape != (height, width) or found.dtype.kind not in "iu" or not np.isin(found, (0, 1, 2)).all():
        raise ValueError(f"{name}: expected ({height}, {width}) integers 0, 1 or 2")
    return np.ascontiguousarray(found, np.int8).ravel()


@jit
def _write_state(
    states: StateArray, options: OptionCodes, points: npt.NDArray[np.int8], regions: npt.NDArray[np.int8], to_move: int
) -> None:
    game = states[0]
    clear(game, options[0], options[1], options[2])
    game.start, game.to_move = options[3], to_move
    game.plies = -CROSS_POINTS * options[3]
    for node in range(num_nodes(game)):
        place, point, region = node + int(game.width) + 1, int(points[node]), int(regions[node])
        game.cell[place] = int(game.cell[place]) | point | region << 2
        game.free -= point | region != 0
        if point:
            game.plies += 1
            game.score[max(region, 1) - 1] += region == 3 - point
            join_groups(game, place)
    for seat in range(2):
        _recompute_enclosed(game, seat)


@jit(refcount=False)
def _recompute_enclosed(game: State, seat: int) -> None:
    """Recompute which nodes a seat encloses, by a flood fill from the edge, and recount the seat's `capturable`.

    A step beyond the left or right end of a row leads to another edge node. That is harmless, because the flood fill
    starts from all edge nodes.
    """
    cell, walk, w, enclosed, waiting = game.cell, game.cell_list, int(game.width), ENCLOSED << seat, 0
    for place in range(w + 1, w + 1 + w * int(game.height)):
        value = int(cell[place]) & ~enclosed
        if value & LIVE_MASK != seat + 1:
            if value & EDGE:
                walk[waiting] = place
                waiting += 1
            else:
                value |= enclosed
        cell[place] = value
    while waiting:
        waiting -= 1
        here = int(walk[waiting])
        walk[waiting] = 0
        for there in (here - w, here + 1, here + w, here - 1):
            if cell[there] & enclosed:
                cell[there] = int(cell[there]) & ~enclosed
                walk[waiting] = there
                waiting += 1
    _recount_capturable(game, seat)


@jit(refcount=False)
def _recount_capturable(game: State, seat: int) -> None:
    held = 0
    for place in range(int(game.width) + 1, int(game.width) + 1 + int(game.width) * int(game.height)):
        held += is_capturable(int(game.cell[place]), seat)
    game.capturable[seat] = held


@jit
def is_consistent(game: State, scratch: StateArray) -> bool:
    """Return whether the state is one that `read_board` could return; see the verb."""
    if not _has_valid_numbers(game):
        return False
    nodes, first = num_nodes(game), int(game.width) + 1
    points, regions = np.empty(nodes, np.int8), np.empty(nodes, np.int8)
    for node in range(nodes):
        value = int(game.cell[first + node])
        points[node], regions[node] = value & POINT_MASK, (value & REGION_MASK) >> 2
        if points[node] == 3 or regions[node] == 3:
            return False
    if (game.last >= 0 and points[game.last] == 0) or not has_start_points(game):
        return False
    options = np.array([int(game.width), int(game.height), int(game.territory), int(game.start)])
    _write_state(scratch, options, points, regions, mover(game))
    if _first_not_enclosed(scratch) >= 0 or _first_not_smallest(scratch, scratch[1:]) >= 0:
        return False
    twin = scratch[0]
    if game.drawing:
        if game.territory == IMMEDIATE or twin.capturable[game.to_move] == 0:
            return False
        list_drawable(twin, mover(game))
    elif (game.territory == IMMEDIATE or twin.free == 0) and (twin.capturable[0] or twin.capturable[1]):
        return False
    return _has_same_fields(game, twin)


@jit(refcount=False)
def _has_valid_numbers(game: State) -> bool:
    """Return whether the board fits into the arrays of the state, and other fields are in their ranges."""
    w, h = int(game.width), int(game.height)
    if w < MIN_SIDE or h < MIN_SIDE or w > MAX_WIDTH or w * h > len(game.cell_list):
        return False
    valid = (w * h + 2 * (w + 1) <= len(game.cell)) & (-1 <= game.last < w * h)
    for flag in (game.to_move, game.drawing, game.territory, game.start):
        valid &= 0 <= flag <= 1
    return valid


@jit(refcount=False)
def _has_same_fields(game: State, twin: State) -> bool:
    """Return whether all fields that follow from points and regions are equal."""
    same = (game.free == twin.free) & (game.plies == twin.plies)
    for seat in range(2):
        same &= (game.score[seat] == twin.score[seat]) & (game.capturable[seat] == twin.capturable[seat])
    for place in range(len(game.cell)):
        same &= (game.cell[place] == twin.cell[place]) & (game.label[place] == twin.label[place])
    for i in range(len(game.cell_list)):
        same &= game.cell_list[i] == twin.cell_list[i]
    for i in range(len(game.padding)):
        same &= game.padding[i] == 0
    return same


@jit
def _list_drawable(states: StateArray, seat: int) -> None:
    list_drawable(states[0], seat)


@jit
def _first_not_enclosed(states: StateArray) -> int:
    """Return the first node of a region that is not properly enclosed, or -1 if there is none.

    The seat of the region must enclose the node, and each of the four orthogonal neighbours must be a live point of the
    seat or in a region of the seat.
    """
    game = states[0]
    cell, w = game.cell, int(game.width)
    for node in range(num_nodes(game)):
        place = node + w + 1
        seat = ((int(cell[place]) & REGION_MASK) >> 2) - 1
        if seat >= 0:
            if int(cell[place]) & (ENCLOSED << seat) == 0:
                return node
            for there in (place - w, place + 1, place + w, place - 1):
                if cell[there] & LIVE_MASK != seat + 1 and cell[there] & REGION_MASK != seat + 1 << 2:
                    return node
    return -1


@jit
def _first_not_smallest(states: StateArray, scratch: StateArray) -> int:
    """Return the first node whose region would change if all regions were drawn anew, or -1 if there is none.

    To redraw a seat's regions, the seat's points inside them are live again, so they may make a chain smaller. But a
    point stays captured if the opponent's points enclose it when all regions are removed, because the opponent may
    have captured it before. `scratch`, (2,), is overwritten.
    """
    game, without_regions, redrawn = states[0], scratch[0], scratch[1]
    first = int(game.width) + 1
    for seat in range(2):
        scratch[0], scratch[1] = states[0], states[0]
        for place in range(first, first + num_nodes(game)):
            without_regions.cell[place] = int(game.cell[place]) & ~REGION_MASK
        _recompute_enclosed(without_regions, 1 - seat)
        for place in range(first, first + num_nodes(game)):
            if game.cell[place] & REGION_MASK == seat + 1 << 2:
                captured = without_regions.cell[place] & (POINT_MASK | ENCLOSED << 1 - seat) == (
                    seat + 1 | ENCLOSED << 1 - seat
                )
                redrawn.cell[place] = (int(game.cell[place]) & ~REGION_MASK) | (2 - seat << 2 if captured else 0)
        _recompute_enclosed(redrawn, seat)
        for place in range(first, first + num_nodes(game)):
            if game.cell[place] & REGION_MASK == seat + 1 << 2 and is_capturable(int(redrawn.cell[place]), seat):
                draw_region(redrawn, seat, place)
        for place in range(first, first + num_nodes(game)):
            if (game.cell[place] & REGION_MASK == seat + 1 << 2) != (
                redrawn.cell[place] & REGION_MASK == seat + 1 << 2
            ):
                return place - first
    return -1
