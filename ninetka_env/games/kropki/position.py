"""Build the state of a position of Kropki from points and regions, and reject impossible positions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import inner, jit
from ninetka_env.core.options import check_count
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Codes, Record, Records
from ninetka_env.games.kropki.geometry import EDGE, ENCLOSED, LIVE, POINT, REGION, node_name
from ninetka_env.games.kropki.regions import draw_region, is_held, join_groups, list_drawable
from ninetka_env.games.kropki.rules import CROSS_POINTS, IMMEDIATE, clear, num_nodes


def read_board(
    board: npt.ArrayLike, region: npt.ArrayLike, to_move: int, drawing: bool, last: int | None, variant: Variant
) -> Records:
    """Return the state, (1,), of the position with these points and regions.

    The seats' numbers of points are not checked against the number of turns.

    Args:
        board: (H, W) integers: 0 for no point, else seat + 1.
        region: (H, W) integers: 0 for no region, else seat + 1.
        to_move: the seat that acts next.
        drawing: whether that seat has placed its point already.
        last: the node of the point placed last, None for none.
        variant: the variant of the game.

    Raises:
        ValueError: if a number is out of range; if live points do not enclose a region; if a region is not what the
            smallest chain round opposing points encloses; if there is no point on node `last`; if `drawing` and
            nothing can be drawn; or if a region that the rules would have drawn is missing.
    """
    check_count("to_move", to_move, 0, 1)
    width, height = variant.options["width"], variant.options["height"]
    points, regions = _codes("board", board, height, width), _codes("region", region, height, width)
    records = np.zeros(1, variant.dtype)
    _set_up(records, np.array(variant.codes, np.int64), points, regions, int(to_move))
    node = int(_first_astray(records))
    if node >= 0:
        name = node_name(node, width, height)
        raise ValueError(f"region at {name}: live points of its seat must enclose it")
    node = int(_first_not_least(records, np.repeat(records, 2)))
    if node >= 0:
        name = node_name(node, width, height)
        raise ValueError(f"region at {name}: a region is only what the smallest chain round opposing points encloses")
    game = records[0]
    if last is not None and points[check_count("last", last, 0, len(points) - 1)] == 0:
        raise ValueError(f"last={node_name(last, width, height)}: no point stands there")
    if drawing and (game.territory == IMMEDIATE or game.held[game.to_move] == 0):
        raise ValueError(f"seat {to_move} cannot be drawing: there is nothing that it may draw")
    if game.territory == IMMEDIATE and game.held.any():
        raise ValueError("territory='immediate': what can be drawn must be drawn")
    if game.free == 0 and not drawing and game.held.any():
        raise ValueError("the board is full: what can be drawn must be drawn")
    game.placed, game.last = int(drawing), -1 if last is None else last
    if drawing:
        _list_drawable(records, to_move)
    return records


def _codes(name: str, codes: npt.ArrayLike, height: int, width: int) -> npt.NDArray[np.int8]:
    found = np.asarray(codes)
    if found.shape != (height, width) or found.dtype.kind not in "iu" or not np.isin(found, (0, 1, 2)).all():
        raise ValueError(f"{name}: expected ({height}, {width}) integers 0, 1 or 2")
    return np.ascontiguousarray(found, np.int8).ravel()


@jit
def _set_up(
    records: Records, options: Codes, points: npt.NDArray[np.int8], regions: npt.NDArray[np.int8], to_move: int
) -> None:
    game = records[0]
    clear(game, options[0], options[1], options[2])
    game.crossed, game.to_move = options[3], to_move
    game.plies = -CROSS_POINTS * options[3]
    for node in range(num_nodes(game)):
        place, point, region = node + int(game.width) + 1, int(points[node]), int(regions[node])
        game.cell[place] = int(game.cell[place]) | point | region << 2
        game.free -= point | region != 0
        if point:
            game.plies += 1
            game.score[max(region, 1) - 1] += region == 3 - point
            join_groups(game, place)
    game.plies = max(0, int(game.plies))
    for seat in range(2):
        _find_enclosed(game, seat)


@inner
def _find_enclosed(game: Record, seat: int) -> None:
    """Recompute what a seat encloses, and count the opposing points there, by a flood fill from the edge.

    A step beyond the left or right end of a row leads to another edge node. That is harmless, because the flood fill
    starts from all edge nodes.
    """
    cell, walk, w, enclosed, waiting = game.cell, game.walk, int(game.width), ENCLOSED << seat, 0
    for place in range(w + 1, w + 1 + w * int(game.height)):
        value = int(cell[place]) & ~enclosed
        if value & LIVE != seat + 1:
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
    _count_held(game, seat)


@inner
def _count_held(game: Record, seat: int) -> None:
    held = 0
    for place in range(int(game.width) + 1, int(game.width) + 1 + int(game.width) * int(game.height)):
        held += is_held(int(game.cell[place]), seat)
    game.held[seat] = held


@jit
def _list_drawable(records: Records, seat: int) -> None:
    list_drawable(records[0], seat)


@jit
def _first_astray(records: Records) -> int:
    """Return the first node of a region that live points of its seat do not enclose or border; -1 if there is none."""
    game = records[0]
    cell, w = game.cell, int(game.width)
    for node in range(num_nodes(game)):
        place = node + w + 1
        seat = ((int(cell[place]) & REGION) >> 2) - 1
        if seat >= 0:
            if int(cell[place]) & (ENCLOSED << seat) == 0:
                return node
            for there in (place - w, place + 1, place + w, place - 1):
                if cell[there] & LIVE != seat + 1 and cell[there] & REGION != seat + 1 << 2:
                    return node
    return -1


@jit
def _first_not_least(records: Records, drafts: Records) -> int:
    """Return the first node whose region would change if all regions were drawn anew, or -1 if there is none.

    Points in a region of their own seat were live when the region was drawn, so they may make its chain smaller. Points
    that all points of the opponent together enclose are exceptions, because the opponent may have captured them before.
    `drafts` is scratch for two states.
    """
    game, bare, again = records[0], drafts[0], drafts[1]
    first = int(game.width) + 1
    for seat in range(2):
        drafts[0], drafts[1] = records[0], records[0]
        for place in range(first, first + num_nodes(game)):
            bare.cell[place] = int(game.cell[place]) & ~REGION
        _find_enclosed(bare, 1 - seat)
        for place in range(first, first + num_nodes(game)):
            if game.cell[place] & REGION == seat + 1 << 2:
                captured = bare.cell[place] & (POINT | ENCLOSED << 1 - seat) == (seat + 1 | ENCLOSED << 1 - seat)
                again.cell[place] = (int(game.cell[place]) & ~REGION) | (2 - seat << 2 if captured else 0)
        _find_enclosed(again, seat)
        for place in range(first, first + num_nodes(game)):
            if game.cell[place] & REGION == seat + 1 << 2 and is_held(int(again.cell[place]), seat):
                draw_region(again, seat, place)
        for place in range(first, first + num_nodes(game)):
            if (game.cell[place] & REGION == seat + 1 << 2) != (again.cell[place] & REGION == seat + 1 << 2):
                return place - first
    return -1
