"""Read and write game records of Kropki: in the Smart Game Format of the game's sites, and as a line of text.

The SGF format is `GM[40]` of eidokropki.reaktywni.pl. A move is a point and the closed chains that are drawn with it,
each after a full stop: `;W[de.cecfdgefdece]`. Other chains that the rules draw are written to `TB` and `TW` of the node
for viewers. `TB` and `TW` are not read, because sites write more than captures there. The end of a turn is not written.
If a game stops while a seat may still draw, the last node has `PL` with that seat.

A game that did not end by the rules, for example by agreement, is unfinished after reading. The result in `RE` is
stored as `GameRecord.stated` and decides the winner. The same holds for games that end by grounding, an option of
sites. Such files end with an empty move, several points in one node, or points of one seat after the comment
"W pressed STOP"; these entries are ignored.

The line of text of `write_line` and `read_line` is shorter. `*df` draws the core that contains node `df`. A `*` alone
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
from ninetka_env.core.sgf import Node, new_root, read_tags, stones_of, value_of, with_stated_result
from ninetka_env.core.stated_results import COLOURS
from ninetka_env.core.text import quote
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.kropki.definition import KROPKI
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import MAX_HEIGHT, MAX_WIDTH, MIN_SIDE
from ninetka_env.games.kropki.regions import clear_drawable, draw_region, flood_fill, is_capturable, trace_chain, unmark
from ninetka_env.games.kropki.replay import LETTERS, NODE_NAME, RecordReader, node_from_sgf, node_to_sgf
from ninetka_env.games.kropki.rules import (
    DECLARED,
    IMMEDIATE,
    STARTS,
    TERRITORIES,
    add_point,
    mover,
    num_nodes,
    start_points,
)

MAX_CROSSES_SPAN = 4
"""Maximum number of rows, and of columns, that one or two crosses span."""
STOP_COMMENT = re.compile("[BW] pressed STOP")
"""The comment that zagram.org writes where a player grounds."""
_MOVE_PATTERN = re.compile(r"([a-zA-Z]{2})((?:\.(?:[a-zA-Z]{2})+)*)")
_LINE_PATTERN = re.compile(rf"kropki (\d\d?)x(\d\d?) ({'|'.join(TERRITORIES)}) ({'|'.join(STARTS)}):(.*)", re.DOTALL)
_RESIGN = "resign"

Chain = list[int]
"""The nodes of a closed chain, each once."""


# Writing


def write(record: GameRecord) -> list[Node]:
    """Return the nodes of a game, root first.

    Raises:
        ValueError: if the start position has regions or a seat that is drawing, which SGF cannot express.
    """
    game, final = _as_kropki_game(record.start()), record.final()
    if game.region.any() or game.drawing:
        raise ValueError("a game that starts from a position with regions cannot be written in SGF")
    width, height = game.width, game.height
    root = new_root(KROPKI, record, final)
    root |= {"SZ": [f"{width}" if width == height else f"{width}:{height}"], "RU": [game.territory]}
    root |= stones_of(game.board.ravel(), lambda node: node_to_sgf(node, width))
    if game.to_move:
        root["PL"] = ["W"]
    nodes = [root]
    for action in record.actions:
        if action < width * height:
            nodes.append({COLOURS[game.to_move]: [node_to_sgf(action, width)]})
        _add_chains(nodes[-1], game, action)
        game.play(action)
    if game.drawing:
        nodes.append({"PL": [COLOURS[game.to_move]]})
    return nodes


def _as_kropki_game(game: Any) -> Game:
    assert isinstance(game, Game)
    return game


def _add_chains(node: Node, game: Game, action: int) -> None:
    """Add the chains that `action` draws, and those that the rules draw after it, to the SGF node of the turn."""
    nodes, at_once = game.width * game.height, game.territory == TERRITORIES[IMMEDIATE]
    for number, (seat, chain) in enumerate(_chains(game, action)):
        text = "." + "".join(node_to_sgf(link, game.width) for link in [*chain, chain[0]])
        if seat == game.to_move and (at_once or (number == 0 and nodes <= action < 2 * nodes)):
            node[COLOURS[seat]][0] += text
        else:
            node.setdefault(f"T{COLOURS[seat]}", []).append(text)


def _chains(game: Game, action: int) -> list[tuple[int, Chain]]:
    """Return the chains that `action` draws, and those that the rules draw after it, as (seat, chain)."""
    links = np.zeros((4 * game.width * game.height, 2), np.int64)
    chains: list[tuple[int, Chain]] = [(0, [])]
    for seat, node in links[: _write_chain_links(game.records.copy(), action, links)].tolist():
        if node < 0:
            chains.append((0, []))
        else:
            chains[-1] = seat, [*chains[-1][1], node]
    return chains[:-1]


@jit
def _write_chain_links(games: StateArray, action: int, links: npt.NDArray[np.int64]) -> int:
    """Play an action in `games[0]`, write the links of all chains drawn, and return the number of rows written.

    A row of `links` is (seat, node). After each chain there is a row with node -1.
    """
    game, count = games[0], 0
    seat, first, nodes = mover(game), int(game.width) + 1, num_nodes(game)
    clear_drawable(game)
    if action < nodes:
        add_point(game, seat, first + action)
    elif action < 2 * nodes:
        count = _draw_and_write(game, seat, first + action - nodes, links, count)
    if game.territory == IMMEDIATE:
        count = _draw_all_and_write(game, seat, links, count)
        return _draw_all_and_write(game, 1 - seat, links, count)
    if game.free == 0 and (action == 2 * nodes or game.capturable[seat] == 0):  # the game ends: the rules draw the rest
        count = _draw_all_and_write(game, 1 - seat, links, count)
        return _draw_all_and_write(game, seat, links, count)
    return count


@jit
def _draw_all_and_write(game: State, seat: int, links: npt.NDArray[np.int64], count: int) -> int:
    place = int(game.width) + 1
    while game.capturable[seat]:
        if is_capturable(int(game.cell[place]), seat):
            count = _draw_and_write(game, seat, place, links, count)
        place += 1
    return count


@jit
def _draw_and_write(game: State, seat: int, place: int, links: npt.NDArray[np.int64], count: int) -> int:
    """Draw the core of a cell, write the links of its chain from row `count` on, and return the new number of rows."""
    core = flood_fill(game, seat, place, len(game.cell_list))
    stop = trace_chain(game, seat, core)
    for i in range(core, stop):
        links[count, 0], links[count, 1] = seat, int(game.cell_list[i]) - int(game.width) - 1
        count += 1
    links[count, 1] = -1
    unmark(game, 0, stop)
    draw_region(game, seat, place)
    return count + 1


def write_line(record: GameRecord) -> str:
    """Return a game as a line of text.

    Raises:
        ValueError: if the game starts from a position that was set up, or ended by time, because a seat left the game,
            or by the resignation of a seat that was not to move.
    """
    if record.start_position is not None:
        raise ValueError("cannot be written as a line of text: the game starts from a position that was set up")
    start, final = _as_kropki_game(record.start()), _as_kropki_game(record.final())
    if record.event not in (None, Event("resigned", final.to_move)):
        raise ValueError(
            "cannot be written as a line of text: the game ended neither by the rules nor by the seat to move resigning"
        )
    nodes, words = start.width * start.height, []
    for action in record.actions:
        if action < nodes:
            words.append(node_to_sgf(action, start.width))
        elif action < 2 * nodes:
            words[-1] += "*" + node_to_sgf(action - nodes, start.width)
    if final.drawing:
        words[-1] += "*"
    if record.event is not None:
        words.append(_RESIGN)
    return f"kropki {start.width}x{start.height} {start.territory} {start.start_option}: {' '.join(words)}".rstrip()


# Reading


def read_line(text: str) -> GameRecord:
    """Return the game that `write_line` wrote; it may be unfinished.

    Raises:
        ValueError: if the text is not valid; the message gives the number and point of a wrong move.
    """
    match = _LINE_PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected 'kropki 10x10 declared empty: ed ce ...', found {quote(text)}")
    options = {"width": int(match[1]), "height": int(match[2]), "territory": match[3], "start": match[4]}
    record = GameRecord(KROPKI.variant(**options), (), (), 0)
    words = match[5].split()
    resigned = words[-1:] == [_RESIGN]
    reading = RecordReader(record)
    for number, word in enumerate(words[: len(words) - resigned], 1):
        may_draw_more = word.endswith("*") and number == len(words) - resigned
        node, *drawn = word.removesuffix("*" * may_draw_more).split("*")
        reading.play_turn(None, node, drawn, reading.draw_core, may_draw_more)
        if may_draw_more and not reading.game.drawing:
            raise ValueError(f"move {number}: nothing is left to draw, so its turn has ended: expected no * at its end")
    if resigned and reading.game.is_over:
        raise ValueError(f"{_RESIGN}: the game is over")
    if resigned:
        record = replace(record, event=Event("resigned", reading.game.to_move))
    return reading.to_game_record(record)


def read(nodes: Sequence[Node]) -> GameRecord:
    """Return the game of these SGF nodes.

    If the file does not give the option `territory`, use the value with which its chains are valid.

    Raises:
        ValueError: if a property is wrong or a move illegal; the message names the property, or the move by number and
            point.
    """
    width, height = _read_board_size(nodes[0])
    moves = _read_moves(nodes)
    crosses = _count_cross_moves(nodes[0], moves)
    rules = _possible_territories(value_of(nodes[0], "RU"))
    may_draw_more = bool(moves) and value_of(nodes[-1], "PL") == COLOURS[moves[-1][0]] and len(nodes) > 1
    for territory in rules:
        variant, begin = _read_start(
            nodes, KROPKI.variant(width=width, height=height, territory=territory), moves, crosses
        )
        record = GameRecord(variant, (), (), 0, start_position=begin, tags=read_tags(nodes[0], KROPKI.seats))
        try:
            record = _play_moves(record, moves, crosses, may_draw_more, strict=len(rules) > 1)
            return with_stated_result(record, record.final(), value_of(nodes[0], "RE"))
        except ValueError:
            if territory == rules[-1]:
                raise
    raise AssertionError


def _read_board_size(root: Node) -> tuple[int, int]:
    text = "".join(value_of(root, "SZ").split())
    match = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{1,2}))?", text)
    width, height = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (MIN_SIDE <= width <= MAX_WIDTH and MIN_SIDE <= height <= MAX_HEIGHT):
        raise ValueError(
            f"SZ[{quote(text)}]: expected a board of {MIN_SIDE} x {MIN_SIDE} to {MAX_WIDTH} x {MAX_HEIGHT}"
        )
    return width, height


def _possible_territories(text: str) -> tuple[str, ...]:
    """Return the values of `territory` that a value of `RU` may mean, in the order in which to try them."""
    words = re.split(r"[\s,;]+", text.lower())
    if "declared" in words or "mustsurr=0" in words:
        return ("declared",)
    if "immediate" in words or "mustsurr=1" in words or "russian" in words:
        return ("immediate",)
    return ("immediate", "declared")


def _read_moves(nodes: Sequence[Node]) -> list[tuple[int, str]]:
    """Return the moves as (seat, text), without the entries by which a file ends with grounding (module docstring)."""
    stops = (number for number, node in enumerate(nodes, 1) if STOP_COMMENT.search(value_of(node, "C")))
    stop = next((stop for stop in stops if len({seat for seat, _ in _read_turns(nodes[stop:])}) <= 1), len(nodes))
    turns = _read_turns(nodes[:stop])
    if turns and (len(turns[-1][1]) > 1 or turns[-1][1] == [""]):
        turns.pop()
    return [(seat, text) for seat, texts in turns for text in texts]


def _read_turns(nodes: Sequence[Node]) -> list[tuple[int, list[str]]]:
    """Return the turns in these SGF nodes as (seat, values of the property `B` or `W`)."""
    return [
        (COLOURS.index(name), ["".join(value.split()) for value in node[name]])
        for node in nodes
        for name in COLOURS
        if name in node
    ]


def _count_cross_moves(root: Node, moves: Sequence[tuple[int, str]]) -> int:
    """Return how many of the first moves set up crosses: 0, 4 or 8.

    playdots.ru writes crosses as moves: equally many of each seat, not in alternation, and close together.
    """
    for count in () if "AB" in root or "AW" in root else (4, 8):
        seats = [seat for seat, _ in moves[:count]]
        if 2 * sum(seats) == len(seats) == count and seats != [seats[0], 1 - seats[0]] * (count // 2):
            names = {name for _, name in moves[:count] if NODE_NAME.fullmatch(name)}
            columns, rows = ([LETTERS.index(name[i]) for name in names] for i in range(2))
            return count if len(names) == count and max(np.ptp(columns), np.ptp(rows)) < MAX_CROSSES_SPAN else 0
    return 0


def _read_start(
    nodes: Sequence[Node], variant: Variant, moves: Sequence[tuple[int, str]], crosses: int
) -> tuple[Variant, Game | None]:
    """Return the variant, with its option `start` as in the file, and the start position.

    The start position is None if it is the start of that variant. The first `crosses` moves set up crosses.
    """
    width, height = variant.options["width"], variant.options["height"]
    points = np.zeros(width * height, np.int8)
    for node, name in itertools.product(nodes, ("AB", "AW", "AE")):
        for value in node.get(name, []):
            if name == "AE" or node is not nodes[0]:
                raise ValueError(f"{name}[{quote(value)}]: expected points to be set up by AB and AW in the first node")
            point = node_from_sgf(value.strip(), width, height)
            if points[point] not in (0, 1 + (name == "AW")):
                raise ValueError(f"{name}[{quote(value)}]: a point of the other seat is already set up there")
            points[point] = 1 + (name == "AW")
    for seat, name in moves[:crosses]:
        points[node_from_sgf(name, width, height)] = seat + 1
    first = moves[crosses][0] if moves[crosses:] else int(value_of(nodes[0], "PL").upper() in ("W", "WHITE"))
    if not first and not points.any():
        return variant, None
    if not first and (points == start_points(width, height)).all():
        return variant.replace_options(start="cross"), None
    board = points.reshape(height, width)
    return variant, Game.from_board(board, to_move=first, territory=variant.options["territory"])


def _play_moves(
    record: GameRecord, moves: Sequence[tuple[int, str]], crosses: int, may_draw_more: bool, strict: bool
) -> GameRecord:
    """Play all moves after the crosses, and return the game record with their actions.

    If `may_draw_more`, the last turn does not end as long as there is something to draw. If `strict`, the file must
    have every chain that the rules draw for the mover.
    """
    reading, declared = RecordReader(record, crosses), record.variant.options["territory"] == TERRITORIES[DECLARED]
    for number, (seat, text) in enumerate(moves[crosses:], crosses + 1):
        match = _MOVE_PATTERN.fullmatch(text)
        if match is None:
            raise ValueError(f"move {number}: expected a node, and chains after full stops, not {quote(text)}")
        before, chains = reading.game.region.ravel(), match[2].split(".")[1:]
        drawn = [chain for chain in chains if declared and reading.chain_seat(chain, seat) == seat]
        reading.play_turn(seat, match[1], drawn, reading.draw_chain, may_draw_more and number == len(moves))
        reading.check_chains(seat, before, [chain for chain in chains if chain not in drawn], strict and not declared)
    return reading.to_game_record(record)
