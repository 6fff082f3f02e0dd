"""Tests of the agents `paranoid` and `brs` against plain minimax with the slow reference of the rules."""

from __future__ import annotations

import itertools
import time

import numba
import numpy as np
import pytest
import reference
from ninetka.positions import Options, position_after, random_positions
from reference import ReferenceGame
from scale import Scaled

from ninetka_agents import make_agent
from ninetka_agents.agent import PerGameGenerator, game_streams
from ninetka_agents.ninetka.alpha_beta import TREES, WIN, search
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Phase

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="far too slow without the compiler")
every_tree = pytest.mark.parametrize("tree", TREES)
every_count = pytest.mark.parametrize("num_players", [2, 3, 4])

NO_LIMIT = 10**12
"""A number of nodes that no search here reaches."""


# Plain minimax, from the definitions


def lead_of(game: ReferenceGame, seat: int) -> int:
    values = reference.evaluate(game)
    return sum(values[seat] - value for value in values)


def children_of(game: ReferenceGame, seat: int, tree: str, maximises: bool) -> tuple[bool, dict[int, ReferenceGame]]:
    """Return whether `seat` is to slide in an unfinished game, and the positions after all slides of its side.

    `maximises` is whether it is the seat's turn in best-reply search, where a side that cannot slide is passed over.
    """
    movable = {one: game.movable_stones(one) for one in range(game.num_players)}
    if tree == "paranoid":
        while not movable[game.to_move]:
            game.to_move = (game.to_move + 1) % game.num_players
        maximises, sliding = game.to_move == seat, [game.to_move]
    else:
        others = [one for one in movable if one != seat and movable[one]]
        maximises = bool(movable[seat]) if maximises else not others
        sliding = [seat] if maximises else others
    children = {}
    for one in sliding:
        for square in movable[one]:
            child = game.copy()
            child.to_move = one
            child.change_board(square)
            child.to_move = (one + 1) % game.num_players
            children[reference.index_of(square)] = child
    return maximises, children


def wins(game: ReferenceGame, seat: int) -> bool | None:
    """Return whether `seat` wins a finished game, or any game because of bounds; None if neither is known.

    A slide wins the moving seat at most one section, and takes at most one section from the other seats. In a tie, the
    later seat wins.
    """
    scores, slides = game.scores(), [len(game.movable_stones(one)) for one in range(game.num_players)]
    if not any(slides):
        return game.winner() == seat
    most = [(score + own, one) for one, (score, own) in enumerate(zip(scores, slides, strict=True))]
    least = [(score - sum(slides) + own, one) for one, (score, own) in enumerate(zip(scores, slides, strict=True))]
    if any(least[one] > most[seat] for one in range(game.num_players) if one != seat):
        return False
    return True if all(least[seat] > most[one] for one in range(game.num_players) if one != seat) else None


class Minimax:
    """Plain minimax for a seat, without pruning. Positions that are reached repeatedly are searched once."""

    def __init__(self, seat: int, tree: str, use_bounds: bool = True) -> None:
        self.seat, self.tree, self.use_bounds = seat, tree, use_bounds
        self.known: dict[tuple[object, ...], int] = {}

    def value(self, game: ReferenceGame, depth: int, maximises: bool = True) -> int:
        """Return the value at a depth: the lead at a leaf, and `WIN` more or less if the result is known there."""
        key = (str(game.board), game.to_move, depth, maximises)
        if key not in self.known:
            self.known[key] = self._value(game, depth, maximises)
        return self.known[key]

    def _value(self, game: ReferenceGame, depth: int, maximises: bool) -> int:
        won = wins(game, self.seat) if self.use_bounds or game.is_over() else None
        if won is not None or depth == 0:
            return lead_of(game, self.seat) + (0 if won is None else WIN if won else -WIN)
        return self.value_after_slides(game, depth, maximises)

    def value_after_slides(self, game: ReferenceGame, depth: int, maximises: bool = True) -> int:
        """Return the value of a position that is no leaf."""
        maximises, children = children_of(game, self.seat, self.tree, maximises)
        values = [self.value(child, depth - 1, not maximises) for child in children.values()]
        return max(values) if maximises else min(values)

    def values_of_actions(self, game: ReferenceGame, depth: int) -> dict[int, int]:
        """Return the value after each slide of the seat, which is to move."""
        _, children = children_of(game, self.seat, self.tree, maximises=True)
        return {action: self.value(child, depth - 1, maximises=False) for action, child in children.items()}


# The search


def ending(options: Options, seed: int, max_stones: int) -> Game:
    """Return the first position of a random game with at most `max_stones` movable stones."""
    return next(game for game in random_positions(options, seed) if is_ending(game, max_stones))


def is_ending(game: Game, max_stones: int) -> bool:
    return game.phase == Phase.MOVEMENT and 0 < game.movable().sum() <= max_stones


def variants_of(num_players: int, seed: int) -> Options:
    return Options(num_players, turn_order=("restart", "continue")[seed // 2 % 2], auto_pass=bool(seed % 2))


@every_tree
@every_count
def test_endings_have_the_winner_of_plain_minimax(num_players: int, tree: str, scaled: Scaled) -> None:
    won, lost, passes = 0, 0, 0
    for seed in range(scaled(200, 20)):
        options = variants_of(num_players, seed)
        game = ending(options, seed, max_stones=2 + seed % 5)
        found, slow = search(game, tree, NO_LIMIT), options.reference_of(game)
        minimax = Minimax(game.to_move, tree, use_bounds=False)
        value = minimax.value(slow.copy(), depth=99)
        assert abs(found.value) > WIN // 2
        assert (found.value > 0) == (value > 0)
        won, lost = won + (value > 0), lost + (value < 0)
        if game.legal_actions().tolist() == [PASS]:
            passes += 1
            assert found.action == PASS
        else:
            assert (minimax.values_of_actions(slow, depth=99)[found.action] > 0) == (value > 0)
    assert min(won, lost, passes) > 0


@every_tree
@every_count
@pytest.mark.parametrize(("depth", "stones"), [(1, 25), (2, 16), (3, 11), (4, 9), (6, 7)])
def test_values_at_a_depth_are_those_of_plain_minimax(
    num_players: int, tree: str, depth: int, stones: int, scaled: Scaled
) -> None:
    for seed in range(scaled(30, 3)):
        assert_minimax(num_players, seed, stones, tree, depth)


@every_tree
@pytest.mark.parametrize(("num_players", "seed"), [(2, 30), (3, 0), (3, 10), (3, 20), (4, 17), (4, 33)])
def test_values_are_those_of_plain_minimax_where_mistakes_show(num_players: int, seed: int, tree: str) -> None:
    """In these endings, small mistakes in the windows or in the use of bounds change the value or the action."""
    assert_minimax(num_players, seed, 8 if num_players > 2 else 9, tree, depth=8)


def assert_minimax(num_players: int, seed: int, stones: int, tree: str, depth: int) -> None:
    """Compare value and action in a random game's first position with at most `stones` movable stones."""
    options = variants_of(num_players, seed)
    game = ending(options, seed, stones)
    found, slow = search(game, tree, NO_LIMIT, depth), options.reference_of(game)
    minimax = Minimax(game.to_move, tree)
    assert found.depth == depth or abs(found.value) > WIN // 2
    assert found.value == minimax.value_after_slides(slow.copy(), found.depth)
    if found.action != PASS:
        assert minimax.values_of_actions(slow, found.depth)[found.action] == found.value


def middle_games(num_players: int, count: int) -> list[Game]:
    return [position_after(Options(num_players), seed, Phase.MOVEMENT, seed % 9) for seed in range(count)]


NODES_TO_DEPTH_4 = {
    (2, "paranoid"): 21_000,
    (2, "brs"): 21_000,
    (3, "paranoid"): 10_500,
    (3, "brs"): 17_300,
    (4, "paranoid"): 14_500,
    (4, "brs"): 20_000,
}
"""Upper limits of the nodes of 20 searches. Without a part of the pruning or the ordering, the searches visit more."""


@every_tree
@every_count
def test_pruning_and_ordering_leave_few_nodes(num_players: int, tree: str) -> None:
    nodes = sum(search(game, tree, NO_LIMIT, 4).nodes for game in middle_games(num_players, 20))
    assert nodes <= NODES_TO_DEPTH_4[num_players, tree]


def test_with_two_players_both_searches_are_the_same() -> None:
    for game in middle_games(2, 20):
        for nodes in (1, 100, 3000):
            assert search(game, "paranoid", nodes) == search(game, "brs", nodes)


@every_count
def test_the_searches_differ_with_more_players(num_players: int) -> None:
    pairs = [[search(game, tree, 1000) for tree in TREES] for game in middle_games(num_players, 10)]
    assert any(one != other for one, other in pairs) == (num_players > 2)


@every_tree
@every_count
def test_a_search_visits_no_more_nodes_than_its_budget_and_the_first_ply(num_players: int, tree: str) -> None:
    for game in middle_games(num_players, 5):
        first = len(game.legal_actions())
        for nodes in (1, first - 1, first, first + 1, 500):
            found = search(game, tree, nodes)
            assert found.nodes == max(first, nodes)
            assert found.depth >= 1
            assert game.legal_mask()[found.action]
        assert search(game, tree, 1).depth == 1
        assert search(game, tree, 1)[:2] == search(game, tree, NO_LIMIT, depth=1)[:2]


@every_tree
@every_count
def test_a_search_that_is_cut_off_prefers_what_greater_depth_has_found(num_players: int, tree: str) -> None:
    """The best slide of the last finished depth is visited first, so until another is better it stays the best."""
    improved = 0
    for game in middle_games(num_players, 10):
        whole = [search(game, tree, NO_LIMIT, depth) for depth in (2, 3)]
        for nodes in range(whole[0].nodes, whole[1].nodes, 7):
            found = search(game, tree, nodes)
            assert (found.value, found.depth) == (whole[0].value, 2)
            improved += found.action == whole[1].action != whole[0].action
        assert search(game, tree, whole[1].nodes)[:3] == whole[1][:3]
    assert improved


@every_tree
def test_a_search_of_an_ending_stops_at_the_depth_that_decides(tree: str) -> None:
    for seed in range(10):
        game = ending(Options(3), seed, max_stones=6)
        found = search(game, tree, NO_LIMIT)
        assert 1 <= found.depth <= game.movable().sum()
        assert found.depth == 1 or abs(search(game, tree, NO_LIMIT, found.depth - 1).value) < WIN // 2


def test_a_search_changes_nothing() -> None:
    game = ending(Options(4, auto_pass=False), 0, max_stones=9)
    before = game.records.tobytes()
    for tree in TREES:
        search(game, tree)
    assert game.records.tobytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": 0}, r"nodes=0: expected an integer of at least 1"),
        ({"nodes": 1.5}, r"nodes=1.5: expected an integer"),
        ({"depth": -1}, r"depth=-1: expected an integer of at least 0"),
        ({"tree": "maxn"}, r"tree='maxn': expected .*paranoid.*brs"),
    ],
)
def test_invalid_arguments_of_a_search_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        search(middle_games(2, 1)[0], **options)


def test_only_the_movement_phase_is_searched() -> None:
    for phase in (Phase.NEUTRAL, Phase.PLACEMENT):
        with pytest.raises(ValueError, match=f"movement phase.*{phase.name}"):
            search(position_after(Options(2), 0, phase, 3))
    with pytest.raises(ValueError, match=r"movement phase.*over"):
        search(position_after(Options(2), 0, Phase.MOVEMENT, 99))


# The agents


def states(count: int) -> np.ndarray:
    """Return states of all numbers of players in all phases, and endings with passes."""
    found = []
    for seed in range(count):
        options = Options(2 + seed % 3, auto_pass=bool(seed % 2))
        plies = (3, 20, seed % 30, 5)[seed % 4]
        game = position_after(options, seed, Phase(min(seed % 4, 2)), plies)
        found.append(game if not game.is_over else ending(options, seed, 3))
    return np.concatenate([game.records for game in found])


@every_tree
def test_actions_are_those_of_the_search(tree: str) -> None:
    for num_players, options in itertools.product((2, 3, 4), ({"nodes": 300}, {"depth": 2}, {"nodes": 90, "depth": 4})):
        games = [*middle_games(num_players, 4), ending(Options(num_players, auto_pass=False), 1, 6)]
        spec = f"{tree}:" + ",".join(f"{name}={value}" for name, value in options.items())
        actions = make_agent(spec).act(np.concatenate([game.records for game in games]), np.random.default_rng(0))
        assert actions.tolist() == [search(game, tree, **options).action for game in games]


@every_tree
@pytest.mark.parametrize("options", ["nodes=200", "depth=2", "nodes=1"])
def test_threads_and_batches_change_nothing(tree: str, options: str) -> None:
    games = states(60)
    streams = game_streams(games, np.random.default_rng(1))
    one = make_agent(f"{tree}:{options},threads=1")
    alone = [int(one.act(games[i : i + 1], PerGameGenerator(streams[i : i + 1].copy()))[0]) for i in range(len(games))]
    for agent in (one, make_agent(f"{tree}:{options},threads=2")):
        assert agent.act(games, PerGameGenerator(streams.copy())).tolist() == alone
    assert all(Game(games[i : i + 1]).legal_mask()[action] for i, action in enumerate(alone))
    assert PASS in alone


@every_tree
@pytest.mark.parametrize("options", ["", "seconds=0.001"])
def test_stones_are_placed_like_those_of_maxn(tree: str, options: str) -> None:
    games = states(60)
    games = games[games["phase"] != Phase.MOVEMENT]
    agents = (make_agent(f"{tree}:{options}"), make_agent("maxn"))
    actions, expected = (agent.act(games, np.random.default_rng(3)).tolist() for agent in agents)
    assert actions == expected
    assert {*games["phase"].tolist()} == {Phase.NEUTRAL, Phase.PLACEMENT}


@compiled
@every_tree
@pytest.mark.parametrize("threads", [1, 2])
def test_the_time_per_move_is_used_and_kept(tree: str, threads: int) -> None:
    games = np.concatenate([game.records for game in middle_games(4, 4)])
    agent = make_agent(f"{tree}:seconds=0.05,nodes={NO_LIMIT},threads={threads}")
    agent.act(games[:1], np.random.default_rng(0))  # compiles
    start = time.perf_counter()
    actions = agent.act(games, np.random.default_rng(0))
    seconds = time.perf_counter() - start
    assert 0.09 < seconds < 2
    assert all(Game(games[i : i + 1]).legal_mask()[action] for i, action in enumerate(actions))


@every_tree
def test_with_seconds_the_depth_limits_the_search_and_nodes_do_not(tree: str) -> None:
    games = middle_games(3, 5)
    actions = make_agent(f"{tree}:nodes=1,depth=2,seconds=1000").act(
        np.concatenate([game.records for game in games]), np.random.default_rng(0)
    )
    assert actions.tolist() == [search(game, tree, NO_LIMIT, 2).action for game in games]


@every_tree
def test_endings_and_passes_take_no_time(tree: str) -> None:
    agent, rng, passes = make_agent(f"{tree}:seconds=1000"), np.random.default_rng(0), 0
    game = ending(Options(4, auto_pass=False), 0, 5)
    while not game.is_over:
        action = int(agent.act(game.records, rng)[0])
        passes += action == PASS
        game.play(action)
    assert passes


@every_tree
def test_whole_games_with_every_budget_are_legal(tree: str, options: Options) -> None:
    game, rng = options.new_game(1), np.random.default_rng(0)
    agents = [make_agent(f"{tree}:nodes={nodes},threads=1") for nodes in (1, 30, 100)]
    while not game.is_over:
        game.play(int(agents[game.ply % 3].act(game.records, rng)[0]))


@every_tree
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("nodes=0", "nodes=0: expected an integer of at least 1"),
        ("nodes=" + "9" * 30, "expected an integer of at least 1 and at most"),
        ("depth=-1", "depth=-1: expected an integer of at least 0"),
        ("seconds=-1", "seconds=-1.0: expected a finite number of at least 0"),
        ("seconds=nan", "seconds=nan: expected a finite number of at least 0"),
        ("threads=-1", "threads=-1: expected an integer of at least 0"),
        ("node=3", "unknown option 'node', allowed are nodes, depth, seconds, threads .did you mean 'nodes'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(tree: str, option: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_agent(f"{tree}:{option}")
