"""Test the rules of Kropki: in lock-step with the slow reference, by drawn examples, and by properties of games."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kropki.lock_step import RULES, play_in_lock_step
from kropki.reference import ORTHOGONAL, Core, ReferenceGame
from scale import Scaled

from ninetka_env.core.batch import new_games
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import get_definition
from ninetka_env.core.verbs import choice_action, is_over, play, playout, random_action, write_choices
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import ENCLOSED, node_symmetries
from ninetka_env.games.kropki.regions import flood_fill, trace_chain, unmark

SIZES = [(3, 3), (5, 5), (6, 6), (8, 8), (7, 4), (4, 9), (3, 12)]

# Drawn examples: name | rule, d(eclared) or i(mmediate) | seat to move | before | actions | after | scores | number of
# free nodes, or what may be drawn, or "over". Boards: X O live points, x o captured points, + a point in a region of
# its seat, b w an empty node in a region. Actions, c and r are letters: cr places, *cr draws, - ends the turn.

EXAMPLES = """
a chain joined to the edge is safe|d|0|.O.../XOX../XOX../.X..X|dd|.O.../XOX../XOX../.X.XX|0 0|10
a chain is enclosed if its diagonal step to the edge is cut|d|0|.OX./.XOX/..../....|cc *cb|.OX./.XoX/..X./....|1 0|10
a closed region is open to both until it is drawn|d|1|.XX./XO.X/.XX.|cb|.XX./XOOX/.XX.|0 0|4
the chain closes and is drawn at once|i|0|.X./XOX/...|bc|.X./XoX/.X.|1 0|4
closed, may be drawn|d|0|.X./XOX/...|bc|.X./XOX/.X.|0 0|*bb -
closed and drawn|d|0|.X./XOX/...|bc *bb|.X./XoX/.X.|1 0|4
drawn later, the new point not in the chain|d|0|.X.../XOX../.....|bc - dc ec *bb|.X.../XoX../.X.OX|1 0|8
no point enclosed: no region, the node stays free|d|0|.X./X.X/...|bc|.X./X.X/.X.|0 0|5
the edge encloses nothing|d|0|OX.../.X.../XX.../.....|ed|OX.../.X.../XX.../....X|0 0|14
points on the edge may be links of the chain|d|0|.XX./XOOX/.X..|cc *bb|.XX./XooX/.XX.|2 0|4
several regions in one turn|d|0|.X.X./XO.OX/.X.X.|cb *bb *db|.X.X./XoXoX/.X.X.|2 0|6
chains may cross in a square|d|0|..XO../..OXO./..XO..|bb *cb|..XO../.XoXO./..XO..|1 0|10
not through a drawn region: captured points are inert|d|1|..XO../..OX../..XO..|eb *db bb|..XO../.XOxO./..XO..|0 1|10
drawn at once: the first seat to close captures|i|0|..XO../..OX../..XO..|bb eb|..XO../.XoXO./..XO..|1 0|10
a region is worth 1 to Black|d|0|...O..../..OXXO../.OXO.XO./..OXX.../...OO.../........|ha *dc|...O...X/..OXXO../.OXobXO./..OXX.../...OO.../........|1 0|31
the same region captured is worth 6 to White|d|0|...O..../..OXXO../.OXO.XO./..OXX.../...OO.../........|ha *dc ea hf fd *db|...OO..X/..OxxO../.Ox+wxO./..OxxO../...OO.../.......X|0 6|28
the mover captures first|i|0|.XO./XO.O/.XO.|cb|.XO./XoXO/.XO.|1 0|4
a point placed in an enclosed core is captured at once|i|1|.XX./X..X/.XX.|bb|.XX./XobX/.XX.|1 0|4
a point placed in an enclosed core is captured by drawing|d|1|.XX../X..X./.XX..|bb ec *bb|.XX../XobX./.XX.X|1 0|6
the inner region is drawn, not the ring around it|i|0|..XXX../.X...X./X..X..X/X.XOX.X/X.....X/.XX.XX.|de|..XXX../.X...X./X..X..X/X.XoX.X/X..X..X/.XX.XX.|1 0|22
a chain uses a node once: points attached to it are inside|i|0|.XX.XX./X..XO.X/X.X.X.X/X..X..X/.X...X./..X.X..|df|.XX.XX./XbbXobX/Xb+b+bX/Xbb+bbX/.XbbbX./..XXX..|1 0|9
region in region in region|i|0|.XXXXXXX./X..OOO..X/X.O.X.O.X/X.OXOXO.X/X.O...O.X/X..O.O..X/.XXX.XXX.|ee ef eg|.XXXXXXX./XbbooobbX/Xbob+bobX/Xbo+o+obX/Xbob+bobX/XbbooobbX/.XXXXXXX.|13 0|4
board full: the last regions are drawn|d|0|OXO/XOX/X.O|bc -|OXO/XoX/XXO|1 0|over
board full: the seat to move draws first|d|0|OOXOOO/.XOXOO/OOXOOX|ab -|OOXOOO/XXOxOO/OOXOOX|0 1|over
""".strip().splitlines()  # noqa: E501


def board_of(rows: str) -> np.ndarray:
    codes = [[".XO".index(sign) for sign in row] for row in rows.split("/")]
    return np.array(codes, np.int8)


def picture_of(game: Game) -> str:
    signs = {(0, 0): ".", (1, 0): "X", (2, 0): "O", (1, 2): "x", (2, 1): "o", (1, 1): "+", (2, 2): "+", (0, 1): "b",
             (0, 2): "w"}  # fmt: skip
    rows = zip(game.board.tolist(), game.region.tolist(), strict=True)
    return "/".join("".join(signs[code] for code in zip(*row, strict=True)) for row in rows)


def action_of(game: Game, word: str) -> int:
    nodes = game.width * game.height
    if word == "-":
        return 2 * nodes
    column, row = (ord(letter) - ord("a") for letter in word[-2:])
    return (nodes if word[0] == "*" else 0) + row * game.width + column


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split("|")[0])
def test_drawn_example(example: str) -> None:
    _, rule, seat, before, actions, after, score, last = example.split("|")
    territory = {"d": "declared", "i": "immediate"}[rule]
    game = Game.from_board(board_of(before), to_move=int(seat), territory=territory)
    for word in actions.split():
        action = action_of(game, word)
        assert action in game.legal_actions(), word
        game.play(action)
    assert picture_of(game) == after
    assert game.scores().tolist() == [int(one) for one in score.split()]
    if last == "over":
        assert game.is_over
    elif last.isdigit():
        assert not game.is_over
        assert not game.drawing
        assert len(game.legal_actions()) == int(last)
    else:
        assert game.legal_actions().tolist() == sorted(action_of(game, word) for word in last.split())


# In lock-step with the reference


@pytest.mark.parametrize("rule", RULES, ids="-".join)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_lock_step_with_the_reference(size: tuple[int, int], rule: tuple[str, str], scaled: Scaled) -> None:
    for seed in range(scaled(max(4, 600 // (size[0] * size[1])), 2)):
        play_in_lock_step(size, rule, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", RULES[::3], ids="-".join)
@pytest.mark.parametrize(("size", "every"), [((5, 15), 1), ((39, 32), 50)], ids=str)
def test_lock_step_on_boards_of_other_dtypes(size: tuple[int, int], every: int, rule: tuple[str, str]) -> None:
    play_in_lock_step(size, rule, 1, every)


# The inside of a chain, in three ways


def random_reference(seed: int) -> ReferenceGame:
    """Return a position with Black points on most of the edge, so that Black encloses large cores of many shapes."""
    rng = np.random.default_rng(seed)
    reference = ReferenceGame(int(rng.integers(5, 10)), int(rng.integers(5, 10)))
    for node in reference.nodes:
        black = 0.95 if reference.on_edge(node) else rng.choice((0.2, 0.35, 0.5))
        reference.board[node] = int(rng.choice(3, p=(0.7 * (1 - black), black, 0.3 * (1 - black))))
    return reference


def filled(core: Core, chain: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the nodes that are reached from the core without crossing the chain."""
    found, waiting = set(core.nodes), list(core.nodes)
    while waiting:
        row, column = waiting.pop()
        for rows, columns in ORTHOGONAL:
            there = row + rows, column + columns
            if there not in chain and there not in found:
                found.add(there)
                waiting.append(there)
    return found


def chain_of(game: Game, node: int) -> list[tuple[int, int]]:
    chain = np.full(game.width * game.height, -1, np.int64)
    count = _chain_of(game.records, node, chain)
    return [divmod(int(one), game.width) for one in chain[:count]]


@jit
def _chain_of(games, node, chain) -> int:
    game = games[0]
    first = int(game.width) + 1
    core = flood_fill(game, 0, node + first, len(game.cell_list))
    stop = trace_chain(game, 0, core)
    for i in range(core, stop):
        chain[i - core] = int(game.cell_list[i]) - first
    unmark(game, 0, stop)
    return stop - core


def chain_by_closing_point(reference: ReferenceGame, core: Core) -> list[tuple[int, int]]:
    """Return the chain around a core, found by a walk from a closing point; an empty list without such a point.

    A closing point is a point next to the core without which the core would not be enclosed. Programs may find chains
    by such a walk when a point is placed.
    """
    near = sorted({(row + r, column + c) for row, column in core.nodes for r, c in ORTHOGONAL} - core.nodes)
    for start in near:
        reference.board[start] = 0
        closing = not reference.core(start, reference.live(0)).enclosed
        reference.board[start] = 1
        if closing:
            return walk_round(reference, core, start)
    return []


def walk_round(reference: ReferenceGame, core: Core, start: tuple[int, int]) -> list[tuple[int, int]]:
    """Walk from `start` along live points of Black around the core, until the first step would be repeated.

    Return the points of the walk. A detour that leads back to a point is left out.
    """
    clockwise = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
    live = reference.live(0)

    def next_of(here: tuple[int, int], side: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        turn = clockwise.index((side[0] - here[0], side[1] - here[1]))
        while True:
            turn -= 1
            there = here[0] + clockwise[turn % 8][0], here[1] + clockwise[turn % 8][1]
            if there in live:
                return there, side
            side = there

    side = next(n for n in sorted(core.nodes) if abs(n[0] - start[0]) + abs(n[1] - start[1]) == 1)
    there, side = next_of(start, side)
    first, chain = (start, there), [start]
    while True:
        here = there
        there, side = next_of(here, side)
        if (here, there) == first:
            return chain
        if here in chain:
            del chain[chain.index(here) + 1 :]
        else:
            chain.append(here)


def test_three_ways_to_the_inside_agree(scaled: Scaled) -> None:
    drawn, hanging, closed, boards = 0, 0, 0, scaled(250, 50)
    for seed in range(boards):
        reference = random_reference(seed)
        board = [[reference.board[row, column] for column in range(reference.width)] for row in range(reference.height)]
        game = Game.from_board(board)
        for core in reference.drawable_cores(0):
            inside = reference.inside(core.nodes)
            first = min(core.nodes)
            chain = chain_of(game, first[0] * reference.width + first[1])
            assert_simple_chain(reference, chain)
            assert inside == filled(core, chain)
            if other := chain_by_closing_point(reference, core):
                assert_simple_chain(reference, other)
                assert inside == filled(core, other)
                closed += 1
            drawn, hanging = drawn + 1, hanging + bool(inside & reference.live(0))
    assert drawn > 0.8 * boards
    assert hanging > 0.12 * boards
    assert closed > 0.4 * boards


def assert_simple_chain(reference: ReferenceGame, chain: list[tuple[int, int]]) -> None:
    assert len(chain) == len(set(chain)) >= 4
    assert set(chain) <= reference.live(0)
    for (row, column), (next_row, next_column) in itertools.pairwise([*chain, chain[0]]):
        assert max(abs(row - next_row), abs(column - next_column)) == 1


# The incremental update of the enclosed nodes


def flooded(game: Game, seat: int) -> tuple[list[int], int]:
    """Return the nodes that a seat encloses and the number of points that it may capture.

    Nodes are enclosed if a flood fill from the edge does not reach them.
    """
    board, region = game.board, game.region
    outside = np.zeros((game.height + 2, game.width + 2), bool)
    passable = np.pad((board != seat + 1) | (region != 0), 1, constant_values=True)
    outside[[0, -1]] = outside[:, [0, -1]] = True
    grown = 0
    while grown != outside.sum():
        grown = outside.sum()
        for axis, way in itertools.product((0, 1), (-1, 1)):
            outside |= np.roll(outside, way, axis) & passable
    enclosed = ~outside[1:-1, 1:-1] & passable[1:-1, 1:-1]
    return np.flatnonzero(enclosed).tolist(), int((enclosed & (board == 2 - seat) & (region != seat + 1)).sum())


def enclosed_nodes(game: Game, seat: int) -> list[int]:
    first, nodes = game.width + 1, game.width * game.height
    return np.flatnonzero(game.records["cell"][0, first : first + nodes] & ENCLOSED << seat).tolist()


def test_enclosed_nodes_are_those_that_a_flood_fill_from_the_edge_does_not_reach(scaled: Scaled) -> None:
    """The boards are concentric rings of both seats. Drawing a region then joins or opens the other seat's cores."""
    opened, joined, boards = 0, 0, scaled(200, 50)
    for seed in range(boards):
        rng = np.random.default_rng(seed)
        height, width = (int(side) for side in rng.integers(5, 11, 2))
        rows, columns = np.indices((height, width))
        ring = np.minimum(np.minimum(rows, height - 1 - rows), np.minimum(columns, width - 1 - columns))
        board = np.where(rng.random((height, width)) < 0.9, 1 + (ring + seed) % 2, rng.integers(0, 3, (height, width)))
        board[rng.integers(height), rng.integers(width)] = 0
        game = Game.from_board(board, to_move=int(rng.integers(2)))
        while not game.is_over:
            mover, before = game.to_move, set(enclosed_nodes(game, 1 - game.to_move))
            game.play(int(rng.choice(game.legal_actions())))
            for seat in range(2):
                assert (enclosed_nodes(game, seat), int(game.records["capturable"][0, seat])) == flooded(game, seat)
            after = set(enclosed_nodes(game, 1 - mover))
            opened += len(before - after) > 0
            joined += len(after - before) > 0
    assert min(opened, joined) > 0.05 * boards


# Properties


@pytest.mark.parametrize("rule", RULES, ids="-".join)
@pytest.mark.parametrize("size", [(7, 7), (8, 5)], ids=str)
def test_symmetries_commute_with_playing(size: tuple[int, int], rule: tuple[str, str]) -> None:
    """A region's action is numbered by the lowest captured point; after a symmetry, another point may be the lowest."""
    rng = np.random.default_rng(size[0])
    nodes = size[0] * size[1]
    for symmetry in node_symmetries(*size):
        game = Game.new(*size, territory=rule[0])
        mirrored = game.copy()
        while not game.is_over:
            action = int(rng.choice(game.legal_actions()))
            image = action
            if action < nodes:
                image = int(symmetry[action])
            elif action < 2 * nodes:
                image = int(mirrored.drawable().flat[symmetry[action - nodes]])
            game.play(action)
            mirrored.play(image)
            assert mirrored.board.ravel()[symmetry].tolist() == game.board.ravel().tolist()
            assert mirrored.region.ravel()[symmetry].tolist() == game.region.ravel().tolist()
            assert len(mirrored.legal_actions()) == len(game.legal_actions())


def test_symmetries_map_the_actions_of_the_immediate_rule() -> None:
    definition = get_definition("kropki")
    for sides, count in (((6, 6), 8), ((6, 5), 4)):
        variant = definition.variant(width=sides[0], height=sides[1], territory="immediate")
        symmetries = definition.symmetries(variant.options)
        assert symmetries.shape == (count, variant.num_actions)
        assert (symmetries[0] == np.arange(variant.num_actions)).all()
        assert (np.sort(symmetries, axis=1) == symmetries[0]).all()


LARGE = [pytest.param(sides, marks=pytest.mark.exhaustive) for sides in ((20, 20), (3, 32), (39, 32))]


@pytest.mark.parametrize("sides", [(10, 10), (12, 3), *LARGE], ids=str)
@pytest.mark.parametrize("territory", ["declared", "immediate"])
def test_random_games_end_with_correct_counts(sides: tuple[int, int], territory: str) -> None:
    variant = get_definition("kropki").variant(width=sides[0], height=sides[1], territory=territory)
    streams = make_streams(3, 4)
    games = new_games(variant, streams)
    actions = np.zeros(len(games), np.int64)
    _play_out(games, streams, actions)
    assert (actions <= variant.sizes.max_plies).all()
    for index in range(len(games)):
        game = Game(games[index : index + 1])
        assert game.is_over
        assert not game.legal_mask().any()
        rebuilt = Game.from_board(game.board, game.region, game.to_move, last=game.last_point, territory=game.territory)
        assert rebuilt == game


@jit
def _play_out(games, streams, actions) -> None:
    for index in range(len(games)):
        game = games[index]
        if index % 2:
            playout(game, streams, index)
        while not is_over(game):
            play(game, random_action(game, streams, index))
            actions[index] += 1


def test_playouts_and_random_actions_are_uniform() -> None:
    """After one point on 3 x 3, each of the other 8 nodes is the next action in one eighth of the games."""
    variant = get_definition("kropki").variant(width=3, height=3)
    streams = make_streams(5, 7000)
    games = new_games(variant, streams)
    for index in range(len(games)):
        Game(games[index : index + 1]).play(0)
    ends = games.copy()
    actions = np.zeros(len(games), np.int64)
    _draw_actions(games, streams, actions)
    counts = np.bincount(actions, minlength=9)
    assert counts[0] == 0
    assert (abs(counts[1:] - 875) < 150).all()
    _run_playouts(ends, streams)
    middle = ends["cell"][:, 8] & 3  # Black has four of the other eight nodes
    assert abs((middle == 1).mean() - 0.5) < 0.03


@jit
def _draw_actions(games, streams, actions) -> None:
    for index in range(len(games)):
        actions[index] = random_action(games[index], streams, index)


@jit
def _run_playouts(games, streams) -> None:
    for index in range(len(games)):
        playout(games[index], streams, index)


def test_choices_map_to_the_legal_actions() -> None:
    rng = np.random.default_rng(2)
    for territory in ("declared", "immediate"):
        game = Game.new(9, 8, territory=territory)
        while not game.is_over:
            words = np.zeros(3, np.int64)
            _write_choices(game.records, words)
            choices = [63 * word + bit for word in range(3) for bit in range(63) if int(words[word]) >> bit & 1]
            actions = [int(_choice_action(game.records, choice)) for choice in choices]
            assert actions == game.legal_actions().tolist()
            game.play(int(rng.choice(actions)))


@jit
def _write_choices(games, words) -> None:
    write_choices(games[0], words)


@jit
def _choice_action(games, choice) -> int:
    return choice_action(games[0], choice)
