"""Read and write game records of Go in the Smart Game Format (SGF, FF[4]). The syntax is in `ninetka_env.core.sgf`.

Options for which SGF has no property are in a private one, `NK[ko=positional scoring=document max=100 planes=..]`.

The result `RE` of another program may differ from the result by these rules, such as `B+2.5` after an agreement on dead
stones. Such a result is stored as `GameRecord.stated`, decides the winner, and is written to files again. If `RE` says
that a seat resigned, lost on time or left, and the game is not over, an event ends the game. With `allow_resign`, a
resignation of the seat to move is read as the action, because files do not distinguish it from `Game.resign`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.sgf import Node, new_root, read_tags, stones_of, value_of, with_stated_result
from ninetka_env.core.stated_results import COLOURS, read_result
from ninetka_env.core.text import quote
from ninetka_env.games.go.definition import GO
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import DEFAULT_SIZE, HANDICAP_POINTS, MAX_SIZE, point_name
from ninetka_env.games.go.repetition import MAX_PLIES
from ninetka_env.games.go.rules import SCORINGS

MIN_SGF_SIZE = 5
"""SGF files contain boards of 5 x 5 to 19 x 19."""
SCORING_OF_RULES = {"chinese": "area", "aga": "area", "nz": "area", "tromp-taylor": "area", "japanese": "territory",
         "korean": "territory", "ing": "area", "goe": "area"}  # fmt: skip
"""The scoring for values of the property `RU`, in lower case; all other values mean area scoring."""
RULES_OF_SCORING = {"area": "Chinese", "territory": "Japanese"}
"""The value of `RU` for each scoring. For `"document"` it is the value for `"area"`, and `NK` has the scoring."""
NK_OPTIONS = {"ko": "ko", "scoring": "scoring", "max": "max_plies", "planes": "planes", "resign": "allow_resign"}
"""The words of `NK` and the options that they set."""

Move = tuple[int, int]
"""A seat and its action, a point or the pass."""

_LETTERS = "abcdefghijklmnopqrs"


def to_sgf(point: int, size: int) -> str:
    """Return the SGF name of a point or the pass: column, then row, from the top left.

    Examples: `"ee"` for E5 on 9 x 9, `""` for the pass.
    """
    rank, file = divmod(point, size)
    return "" if point == size * size else _LETTERS[file] + _LETTERS[size - 1 - rank]


def from_sgf(name: str, size: int) -> int:
    """Return the point with an SGF name, or the pass for `""` and `"tt"`.

    Raises:
        ValueError: if there is no such point.
    """
    if name in ("", "tt"):
        return size * size
    letters = _LETTERS[:size]
    if len(name) != 2 or name[0] not in letters or name[1] not in letters:
        raise ValueError(f"no point {quote(name)}: expected two letters of a..{letters[-1]}, or nothing for a pass")
    return size * (size - 1 - letters.index(name[1])) + letters.index(name[0])


# Writing


def write(record: GameRecord) -> list[Node]:
    """Return the nodes of a game record, root first.

    Raises:
        ValueError: if SGF does not allow the board size, or if the game ended by the action to resign and another
            result is stated: in SGF, resigning is a result, not a move.
    """
    start, final = _as_go_game(record.start()), record.final()
    if start.size < MIN_SGF_SIZE:
        raise ValueError(
            f"SGF holds boards of {MIN_SGF_SIZE} to {MAX_SIZE}, not size {start.size}: use another file format"
        )
    if record.stated and record.actions[-1:] == (start.size**2 + 1,):
        raise ValueError(f"SGF has one result: expected the resignation alone, not also {quote(record.stated)}")
    root = new_root(GO, record, final)
    root |= (
        {"SZ": [str(start.size)], "KM": [f"{start.komi:g}"]}
        | _rules_properties(record.variant)
        | _setup_properties(start)
    )
    game, nodes = start, [root]
    for number, action in enumerate(record.actions):
        if number in record.skipped_turns:
            game.hand_turn(1 - game.to_move)
        if action <= game.size**2:  # in SGF, resigning is a result, not a move
            nodes.append({COLOURS[game.to_move]: [to_sgf(action, game.size)]})
        game.play(action)
    return nodes


def _as_go_game(game: Any) -> Game:
    assert isinstance(game, Game)
    return game


def _rules_properties(variant: Variant) -> Node:
    """Return the property `RU`, and `NK` with the options that differ from their defaults."""
    options = {word: variant.options[name] for word, name in NK_OPTIONS.items()
            if variant.options[name] != GO.option(name).default}  # fmt: skip
    rules = {"RU": [RULES_OF_SCORING.get(variant.options["scoring"], RULES_OF_SCORING["area"])]}
    return rules | ({"NK": [" ".join(f"{word}={value}" for word, value in options.items())]} if options else {})


def _setup_properties(start: Game) -> Node:
    """Return the properties that set up the start position; none for an empty board with Black to move."""
    node = stones_of(start.board.ravel(), lambda point: to_sgf(point, start.size))
    if start.handicap:
        node["HA"] = [str(start.handicap)]
        node["AB"] = [to_sgf(point, start.size) for point in HANDICAP_POINTS[: start.handicap].tolist()]
    if node or start.to_move:
        node["PL"] = [COLOURS[start.to_move]]
    return node


# Reading


def read(nodes: Sequence[Node]) -> GameRecord:
    """Return the game record of a sequence of nodes, root first.

    If a seat moves twice in a row, the turn is given to that seat; see `Game.hand_turn`.

    Raises:
        ValueError: if a property is not valid or a move is illegal; the message names the property or the move.
    """
    size = _size(nodes[0])
    setup = _SetupStones(size)
    moves: list[Move] = []
    for node in nodes:
        setup.read(node, len(moves))
        moves += _moves_of(node, len(moves), size)
    variant = _variant(nodes[0], size, len(moves))
    variant, begin = setup.start(variant, value_of(nodes[0], "HA"), moves)
    record = GameRecord(variant, (), (), 0, start_position=begin, tags=read_tags(nodes[0], GO.seats))
    return _apply_result(_play_moves(record, moves), value_of(nodes[0], "RE"))


def _size(root: Node) -> int:
    text = value_of(root, "SZ", str(MAX_SIZE))
    if not re.fullmatch(r"[0-9]{1,2}", text) or not MIN_SGF_SIZE <= int(text) <= MAX_SIZE:
        raise ValueError(f"SZ[{quote(text)}]: expected a square board of {MIN_SGF_SIZE} to {MAX_SIZE}")
    return int(text)


def _moves_of(node: Node, before: int, size: int) -> list[Move]:
    """Return a list with the move of a node, empty if it has none; `before` is the number of earlier moves."""
    moves = [(COLOURS.index(name), value.strip()) for name in COLOURS for value in node.get(name, [])]
    if len(moves) > 1:
        raise ValueError(f"move {before + 1}: expected one move in a node, found {len(moves)}")
    try:
        return [(seat, from_sgf(point, size)) for seat, point in moves]
    except ValueError as error:
        raise ValueError(f"move {before + 1}: {error}") from None


def _variant(root: Node, size: int, moves: int) -> Variant:
    """Return the variant that the root node describes, with a limit of plies that suffices for `moves` moves."""
    values: dict[str, Any] = {"size": size, "komi": _komi(value_of(root, "KM") or "0")}
    values["scoring"] = SCORING_OF_RULES.get(value_of(root, "RU").lower(), SCORINGS[0])
    if moves > min(2 * size * size, MAX_PLIES):
        values["max_plies"] = min(moves + 2, MAX_PLIES)
    for item in value_of(root, "NK").split():
        word, _, value = item.partition("=")
        if word not in NK_OPTIONS:
            raise ValueError(f"NK[{quote(item)}]: expected some of {', '.join(NK_OPTIONS)}")
        values[NK_OPTIONS[word]] = GO.option(NK_OPTIONS[word]).parse(value)
    return GO.variant(**values)


def _komi(text: str) -> float:
    if not re.fullmatch(r"[+-]?[0-9]{1,3}(\.[0-9]{0,6})?", text):
        raise ValueError(f"KM[{quote(text)}]: expected a number of points")
    return float(text)


@dataclass
class _SetupStones:
    """The stones that a file sets up before the first move."""

    size: int
    cells: dict[int, int] = field(default_factory=dict)
    to_move: int | None = None

    def read(self, node: Node, moves: int) -> None:
        """Read the set-up properties of a node; `moves` is the number of earlier moves."""
        for cell, name in enumerate(("AE", "AB", "AW")):
            for point in _points(node.get(name, ()), self.size, name):
                if moves:
                    raise ValueError(f"after move {moves}: {name} sets up stones, expected them before the first move")
                if cell and self.cells.get(point):
                    raise ValueError(f"{name}: two stones on {point_name(point, self.size)}")
                self.cells[point] = cell
        if "PL" in node and not moves:
            text = value_of(node, "PL").upper()[:1]
            if text not in tuple(COLOURS):
                raise ValueError(f"PL[{quote(value_of(node, 'PL'))}]: expected B or W")
            self.to_move = COLOURS.index(text)

    def start(self, variant: Variant, handicap: str, moves: Sequence[Move]) -> tuple[Variant, Game | None]:
        """Return the variant, with the option `handicap` if the stones are a handicap, and the start position.

        The start position is None if it is the start of that variant. `handicap` is the value of `HA`.
        """
        stones = {point: cell for point, cell in self.cells.items() if cell}
        count = len(stones)
        blacks = [*stones.values()].count(1)
        if not re.fullmatch(r"|[0-9]", handicap) or (handicap > "1" and blacks < int(handicap)):
            raise ValueError(f"HA[{quote(handicap)}]: expected a number of 2 to 9 stones, and AB with their points")
        first = moves[0][0] if moves else int(bool(stones) and 2 not in stones.values())
        to_move = first if self.to_move is None else self.to_move
        is_handicap = stones == dict.fromkeys(HANDICAP_POINTS[:count].tolist(), 1) and count >= 2 and to_move == 1
        if is_handicap and self.size == DEFAULT_SIZE:
            return variant.replace_options(handicap=count), None
        if not stones and not to_move:
            return variant, None
        board = np.zeros(self.size**2, np.int8)
        board[[*stones]] = [*stones.values()]
        options = {name: value for name, value in variant.options.items() if name not in ("size", "handicap")}
        return variant, Game.from_board(board.reshape(self.size, self.size), to_move, **options)


def _points(values: Iterable[str], size: int, name: str) -> Iterator[int]:
    """Yield the points of a list of SGF names, in which `aa:cc` means a rectangle."""
    for value in values:
        try:
            corners = [from_sgf(corner.strip(), size) for corner in value.split(":")]
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if size * size in corners or len(corners) > 2:
            raise ValueError(f"{name}[{quote(value)}]: expected a point")
        ranks, files = zip(*(divmod(corner, size) for corner in corners), strict=True)
        across = range(min(files), max(files) + 1)
        for rank, file in itertools.product(range(min(ranks), max(ranks) + 1), across):
            yield size * rank + file


def _play_moves(record: GameRecord, moves: Sequence[Move]) -> GameRecord:
    """Return the record with the actions of `moves`. Passes after the end, which some programs write, are left out."""
    actions: list[int] = []
    skipped_turns: list[int] = []
    game = _as_go_game(record.start())
    for number, (seat, point) in enumerate(moves):
        if game.is_over and point == game.size**2:
            continue
        try:
            if seat != game.to_move and not game.is_over:
                skipped_turns.append(number)
                game.hand_turn(seat)
            game.play(point)
        except ValueError as error:
            raise ValueError(f"move {number + 1}: {error}") from None
        actions.append(point)
    return replace(record, actions=tuple(actions), skipped_turns=tuple(skipped_turns)).with_result(
        game, unfinished=True
    )


def _apply_result(record: GameRecord, text: str) -> GameRecord:
    """Return the record with the result `text`, the value of `RE`.

    With `allow_resign`, a resignation of the seat to move is added as an action.
    """
    final = _as_go_game(record.final())
    winner, kind = read_result(text, GO.seats)
    if kind == "resigned" and final.allow_resign and not final.is_over and winner == 1 - final.to_move:
        record = replace(record, actions=(*record.actions, final.size**2 + 1))
        return record.with_result(record.final())
    return with_stated_result(record, final, text)
