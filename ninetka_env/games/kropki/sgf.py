"""Read and write game records of Kropki: in the Smart Game Format of the game's sites, and as a line of text.

SGF is `GM[40]` of eidokropki.reaktywni.pl. A move is a point and the closed chains that are drawn with it, each after a
full stop: `;W[de.cecfdgefdece]`. Other chains that the rules draw are written to `TB` and `TW` of the node for viewers.
They are not read, because sites write more there than captures. The end of a turn is not written. If a game stops while
a seat may still draw, the last node has `PL` with that seat.

Games that did not end by the rules, for example by agreement, are not over when they are read. The result in `RE` is
stored as `GameRecord.stated` and decides the winner. The same holds for games that end by grounding, an option of
sites. Such files end with an empty move, several points in one node, or points of one seat after the comment
"W pressed STOP"; these are not read.

The line of text of `line_of` and `read_line` is shorter. `*df` draws the core that contains that node. A `*` alone
after the last move means that its seat may still draw. `resign` means that the seat to move resigned.

    kropki 10x10 declared empty: ed ce ff cf df dg eg ef fg de*df fe
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Event
from ninetka_env.core.jit import jit
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.sgf import Node, new_root, read_tags, stones_of, value_of, with_result
from ninetka_env.core.stated import COLOURS
from ninetka_env.core.text import quote
from ninetka_env.core.verbs import Record, Records
from ninetka_env.games.kropki.definition import KROPKI
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import LEAST_SIDE, MOST_HEIGHT, MOST_WIDTH
from ninetka_env.games.kropki.regions import draw_region, flood, forget_drawable, is_held, trace_chain, unmark
from ninetka_env.games.kropki.replay import LETTERS, POINT, Reading, from_sgf, to_sgf
from ninetka_env.games.kropki.rules import (
    DECLARED,
    IMMEDIATE,
    STARTS,
    TERRITORIES,
    mover,
    num_nodes,
    put_point,
    start_points,
)

CROSSES = 4
"""Number of rows and of columns that up to two crosses span at most."""
STOPPED = re.compile("[BW] pressed STOP")
"""The comment that zagram.org writes where a player grounds."""
_MOVE = re.compile(r"([a-zA-Z]{2})((?:\.(?:[a-zA-Z]{2})+)*)")
_LINE = re.compile(rf"kropki (\d\d?)x(\d\d?) ({'|'.join(TERRITORIES)}) ({'|'.join(STARTS)}):(.*)", re.DOTALL)
_RESIGN = "resign"

Chain = list[int]
"""The nodes of a closed chain, each once."""


# Writing


def write(record: GameRecord) -> list[Node]:
    """Return the nodes of a game, root first.

    Raises:
        ValueError: if the game starts from a position with regions, which SGF cannot express.
    """
    game, final = _kropki(record.start()), record.final()
    if game.region.any() or game.drawing:
        raise ValueError("a game that starts from a position with regions cannot be written in SGF")
    width, height = game.width, game.height
    root = new_root(KROPKI, record, final)
    root |= {"SZ": [f"{width}" if width == height else f"{width}:{height}"], "RU": [game.territory]}
    root |= stones_of(game.board.ravel(), lambda node: to_sgf(node, width))
    if game.to_move:
        root["PL"] = ["W"]
    nodes = [root]
    for action in record.actions:
        if action < width * height:
            nodes.append({COLOURS[game.to_move]: [to_sgf(action, width)]})
        _add_chains(nodes[-1], game, action)
        game.play(action)
    if game.drawing:
        nodes.append({"PL": [COLOURS[game.to_move]]})
    return nodes


def _kropki(game: Any) -> Game:
    assert isinstance(game, Game)
    return game


def _add_chains(node: Node, game: Game, action: int) -> None:
    """Add the chains that an action draws, or the rules after it, to the SGF node of the turn."""
    nodes, at_once = game.width * game.height, game.territory == TERRITORIES[IMMEDIATE]
    for number, (seat, chain) in enumerate(_chains(game, action)):
        text = "." + "".join(to_sgf(link, game.width) for link in [*chain, chain[0]])
        if seat == game.to_move and (at_once or (number == 0 and nodes <= action < 2 * nodes)):
            node[COLOURS[seat]][0] += text
        else:
            node.setdefault(f"T{COLOURS[seat]}", []).append(text)


def _chains(game: Game, action: int) -> list[tuple[int, Chain]]:
    """Return the chains that an action draws, or the rules after it, each with its seat."""
    links = np.zeros((4 * game.width * game.height, 2), np.int64)
    chains: list[tuple[int, Chain]] = [(0, [])]
    for seat, node in links[: _write_chains(game.records.copy(), action, links)].tolist():
        if node < 0:
            chains.append((0, []))
        else:
            chains[-1] = seat, [*chains[-1][1], node]
    return chains[:-1]


@jit
def _write_chains(games: Records, action: int, links: npt.NDArray[np.int64]) -> int:
    """Play an action in `games[0]`, write the links of all chains, and return the number of rows written.

    A row of `links` is (seat, node); after each chain, node is -1.
    """
    game, count = games[0], 0
    seat, first, nodes = mover(game), int(game.width) + 1, num_nodes(game)
    forget_drawable(game)
    if action < nodes:
        put_point(game, seat, first + action)
    elif action < 2 * nodes:
        count = _draw(game, seat, first + action - nodes, links, count)
    if game.territory == IMMEDIATE:
        count = _draw_all(game, seat, links, count)
        return _draw_all(game, 1 - seat, links, count)
    if game.free == 0 and (action == 2 * nodes or game.held[seat] == 0):  # the game ends: the rules draw the rest
        count = _draw_all(game, 1 - seat, links, count)
        return _draw_all(game, seat, links, count)
    return count


@jit
def _draw_all(game: Record, seat: int, links: npt.NDArray[np.int64], count: int) -> int:
    place = int(game.width) + 1
    while game.held[seat]:
        if is_held(int(game.cell[place]), seat):
            count = _draw(game, seat, place, links, count)
        place += 1
    return count


@jit
def _draw(game: Record, seat: int, place: int, links: npt.NDArray[np.int64], count: int) -> int:
    """Draw the core of a cell, write the links of its chain from row `count` on, and return the new number of rows."""
    core = flood(game, seat, place, len(game.walk))
    stop = trace_chain(game, seat, core)
    for i in range(core, stop):
        links[count, 0], links[count, 1] = seat, int(game.walk[i]) - int(game.width) - 1
        count += 1
    links[count, 1] = -1
    unmark(game, 0, stop)
    draw_region(game, seat, place)
    return count + 1


def line_of(record: GameRecord) -> str:
    """Return a game as a line of text.

    Raises:
        ValueError: if the game starts from a position that was set up, or ended by time, because a seat left the game,
            or by the resignation of a seat that was not to move.
    """
    if record.begin is not None:
        raise ValueError("cannot be written as a line of text: the game starts from a position that was set up")
    start, final = _kropki(record.start()), _kropki(record.final())
    if record.event not in (None, Event("resigned", final.to_move)):
        raise ValueError(
            "cannot be written as a line of text: the game ended neither by the rules nor by the seat to move resigning"
        )
    nodes, words = start.width * start.height, []
    for action in record.actions:
        if action < nodes:
            words.append(to_sgf(action, start.width))
        elif action < 2 * nodes:
            words[-1] += "*" + to_sgf(action - nodes, start.width)
    if final.drawing:
        words[-1] += "*"
    if record.event is not None:
        words.append(_RESIGN)
    return f"kropki {start.width}x{start.height} {start.territory} {start.start_option}: {' '.join(words)}".rstrip()


# Reading


def read_line(text: str) -> GameRecord:
    """Return the game that `line_of` wrote; it may be unfinished.

    Raises:
        ValueError: if the text is not valid; the message gives the number and point of a wrong move.
    """
    match = _LINE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected 'kropki 10x10 declared empty: ed ce ...', found {quote(text)}")
    options = {"width": int(match[1]), "height": int(match[2]), "territory": match[3], "start": match[4]}
    record = GameRecord(KROPKI.variant(**options), (), (), 0)
    words = match[5].split()
    resigned = words[-1:] == [_RESIGN]
    reading = Reading(record)
    for number, word in enumerate(words[: len(words) - resigned], 1):
        goes_on = word.endswith("*") and number == len(words) - resigned
        node, *drawn = word.removesuffix("*" * goes_on).split("*")
        reading.turn(None, node, drawn, reading.draw_core, goes_on)
        if goes_on and not reading.game.drawing:
            raise ValueError(f"move {number}: nothing is left to draw, so its turn has ended: expected no * at its end")
    if resigned and reading.game.is_over:
        raise ValueError(f"{_RESIGN}: the game is over")
    if resigned:
        record = replace(record, event=Event("resigned", reading.game.to_move))
    return reading.finished(record)


def read(nodes: Sequence[Node]) -> GameRecord:
    """Return the game of these SGF nodes.

    If the file does not give the rule of `territory`, it is the rule under which its chains are correct.

    Raises:
        ValueError: if a property is wrong or a move illegal; the message names the property, or the move by number and
            point.
    """
    width, height = _sides(nodes[0])
    moves = _moves_of(nodes)
    crosses = _crosses(nodes[0], moves)
    rules = _rules(value_of(nodes[0], "RU"))
    goes_on = bool(moves) and value_of(nodes[-1], "PL") == COLOURS[moves[-1][0]] and len(nodes) > 1
    for territory in rules:
        variant, begin = _begin(nodes, KROPKI.variant(width=width, height=height, territory=territory), moves, crosses)
        record = GameRecord(variant, (), (), 0, begin=begin, tags=read_tags(nodes[0], KROPKI.seats))
        try:
            record = _played(record, moves, crosses, goes_on, strict=len(rules) > 1)
            return with_result(record, record.final(), value_of(nodes[0], "RE"))
        except ValueError:
            if territory == rules[-1]:
                raise
    raise AssertionError


def _sides(root: Node) -> tuple[int, int]:
    told = "".join(value_of(root, "SZ").split())
    match = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{1,2}))?", told)
    width, height = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (LEAST_SIDE <= width <= MOST_WIDTH and LEAST_SIDE <= height <= MOST_HEIGHT):
        raise ValueError(
            f"SZ[{quote(told)}]: expected a board of {LEAST_SIDE} x {LEAST_SIDE} to {MOST_WIDTH} x {MOST_HEIGHT}"
        )
    return width, height


def _rules(told: str) -> tuple[str, ...]:
    """Return the values of `territory` that a value of `RU` may mean, in the order in which to try them."""
    words = re.split(r"[\s,;]+", told.lower())
    if "declared" in words or "mustsurr=0" in words:
        return ("declared",)
    if "immediate" in words or "mustsurr=1" in words or "russian" in words:
        return ("immediate",)
    return ("immediate", "declared")


def _moves_of(nodes: Sequence[Node]) -> list[tuple[int, str]]:
    """Return the moves, (seat, text) each, without grounding: an empty or multiple last move, or moves after a stop."""
    stops = (number for number, node in enumerate(nodes, 1) if STOPPED.search(value_of(node, "C")))
    stop = next((stop for stop in stops if len({seat for seat, _ in _turns(nodes[stop:])}) <= 1), len(nodes))
    turns = _turns(nodes[:stop])
    if turns and (len(turns[-1][1]) > 1 or turns[-1][1] == [""]):
        turns.pop()
    return [(seat, text) for seat, texts in turns for text in texts]


def _turns(nodes: Sequence[Node]) -> list[tuple[int, list[str]]]:
    """Return the moves in these SGF nodes: the seat, and the values of the property."""
    return [
        (COLOURS.index(name), ["".join(value.split()) for value in node[name]])
        for node in nodes
        for name in COLOURS
        if name in node
    ]


def _crosses(root: Node, moves: Sequence[tuple[int, str]]) -> int:
    """Return how many of the first moves are crosses: 0, 4 or 8.

    playdots.ru writes crosses as moves: as many of each seat, not in turn, and close together.
    """
    for count in () if "AB" in root or "AW" in root else (4, 8):
        seats = [seat for seat, _ in moves[:count]]
        if 2 * sum(seats) == len(seats) == count and seats != [seats[0], 1 - seats[0]] * (count // 2):
            names = {name for _, name in moves[:count] if POINT.fullmatch(name)}
            columns, rows = ([LETTERS.index(name[i]) for name in names] for i in range(2))
            return count if len(names) == count and max(np.ptp(columns), np.ptp(rows)) < CROSSES else 0
    return 0


def _begin(
    nodes: Sequence[Node], variant: Variant, moves: Sequence[tuple[int, str]], crosses: int
) -> tuple[Variant, Game | None]:
    """Return the variant with its start, and the first position if it is not the start of a variant."""
    width, height = variant.options["width"], variant.options["height"]
    points = np.zeros(width * height, np.int8)
    for node, name in itertools.product(nodes, ("AB", "AW", "AE")):
        for value in node.get(name, []):
            if name == "AE" or node is not nodes[0]:
                raise ValueError(f"{name}[{quote(value)}]: expected points to be set up by AB and AW in the first node")
            point = from_sgf(value.strip(), width, height)
            if points[point] not in (0, 1 + (name == "AW")):
                raise ValueError(f"{name}[{quote(value)}]: a point of the other seat is already set up there")
            points[point] = 1 + (name == "AW")
    for seat, name in moves[:crosses]:
        points[from_sgf(name, width, height)] = seat + 1
    first = moves[crosses][0] if moves[crosses:] else int(value_of(nodes[0], "PL").upper() in ("W", "WHITE"))
    if not first and not points.any():
        return variant, None
    if not first and (points == start_points(width, height)).all():
        return variant.replaced(start="cross"), None
    board = points.reshape(height, width)
    return variant, Game.from_board(board, to_move=first, territory=variant.options["territory"])


def _played(
    record: GameRecord, moves: Sequence[tuple[int, str]], crosses: int, goes_on: bool, strict: bool
) -> GameRecord:
    """Play all moves after the crosses, and return the game record with them.

    If `goes_on`, the last turn stays open as long as there is something to draw. If `strict`, the file must have every
    chain that the rules draw for the mover.
    """
    reading, declared = Reading(record, crosses), record.variant.options["territory"] == TERRITORIES[DECLARED]
    for number, (seat, text) in enumerate(moves[crosses:], crosses + 1):
        match = _MOVE.fullmatch(text)
        if match is None:
            raise ValueError(f"move {number}: expected a node, and chains after full stops, not {quote(text)}")
        before, chains = reading.game.region.ravel(), match[2].split(".")[1:]
        drawn = [chain for chain in chains if declared and reading.owner(chain, seat) == seat]
        reading.turn(seat, match[1], drawn, reading.draw_chain, goes_on and number == len(moves))
        reading.check(seat, before, [chain for chain in chains if chain not in drawn], strict and not declared)
    return reading.finished(record)
