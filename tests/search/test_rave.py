"""Test RAVE: statistics against a slow reference, strength, time limits and kept trees."""

from __future__ import annotations

import functools
from collections import defaultdict
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from ninetka_agents import make_agent
from ninetka_agents.agent import game_streams
from ninetka_agents.search import mcts, rave
from ninetka_agents.search.rave import RaveTree, search
from ninetka_agents.search.rave_tree import RaveOptions
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.registry import load_variant

RULES = RaveOptions(equivalence=1000.0, exploration=0.2, heavy=False, local=False)

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="too slow without compiled code")


def start_game(spec, plies=0, seed=0):
    """Return a game after a number of random plies."""
    variant, rng = load_variant(spec), np.random.default_rng(seed)
    game = variant.game_class.start(variant, seed)
    for _ in range(plies):
        if not game.is_over:
            game.play(int(rng.choice(game.legal_actions())))
    return game


# Statistics


def reference(tree, streams, simulations):
    """Run simulations one at a time, and compute the expected statistics from the turns that each one recorded.

    Return a dictionary. A key is (path to a node, action at the node). A value is an array of four numbers: visits,
    wins, AMAF visits and AMAF wins.
    """
    counted = defaultdict(lambda: np.zeros(4))
    for _ in range(simulations):
        before = tree.workspace.root_wins.sum(axis=0)
        tree.grow(streams, 0, 1)
        shares = tree.workspace.root_wins.sum(axis=0) - before
        turns = [(int(turn) % 8, int(turn) // 8) for turn in tree.workspace.trace[1 : 1 + tree.workspace.trace[0]]]
        path, node = [], tree.nodes[0]
        while node["count"] and len(path) < len(turns):
            children = tree.nodes[node["first"] : node["first"] + node["count"]]
            node = children[list(children["action"]).index(turns[len(path)][1])]
            path.append(turns[len(path)][1])
        for depth in range(len(path)):
            seat, firsts = turns[depth][0], {}
            for mover, action in turns[depth:]:
                firsts.setdefault(action, mover)
            counted[tuple(path[:depth]), path[depth]] += [1, shares[seat], 0, 0]
            for action, mover in firsts.items():
                if mover == seat:
                    counted[tuple(path[:depth]), action] += [0, 0, 1, shares[seat]]
    return counted


def tree_contents(tree, index=0, path=()):
    """Yield (key, statistics) for each node of a tree, in the form of `reference`."""
    node = tree.nodes[index]
    for child in range(node["first"], node["first"] + node["count"]):
        one = tree.nodes[child]
        yield (path, int(one["action"])), [one["visits"], one["wins"], one["amaf_visits"], one["amaf_wins"]]
        yield from tree_contents(tree, child, (*path, int(one["action"])))


@compiled
@pytest.mark.parametrize(
    ("spec", "plies"),
    [
        ("kropki:width=5,height=4,territory=declared", 3),  # a seat that draws regions moves several times in a row
        ("kropki:width=4,height=4,territory=immediate", 2),  # many games are drawn
        ("go:size=5", 6),  # several moves may be played at the same point
        ("ninetka:num_players=3", 50),
    ],
)
def test_statistics_are_those_of_a_slow_reference(spec, plies):
    game = start_game(spec, plies)
    tree = RaveTree(game.records, 200, RULES)
    tree.reset(game.records)
    expected = reference(tree, game_streams(game.records, np.random.default_rng(1)), 200)
    found = dict(tree_contents(tree))
    assert max(len(path) for path, _ in found) >= 2
    assert sum(numbers[2] > numbers[0] for numbers in expected.values()) > 20
    for key, numbers in found.items():
        assert numbers == pytest.approx(expected.pop(key, np.zeros(4)), abs=1e-3), key
    # the remaining entries are AMAF statistics of actions that are illegal at the node
    assert not any(numbers[0] for numbers in expected.values())


@pytest.mark.parametrize("spec", ["kropki:width=4,height=4", "ninetka:num_players=4"])
def test_every_simulation_is_counted_and_shares_sum_to_1(spec):
    game = start_game(spec)
    before = game.records.tobytes()
    result = search(game, 40, np.random.default_rng(0))
    tried = result.visits > 0
    assert result.visits.sum() == 40
    assert game.legal_mask()[tried].all()
    assert result.wins[tried].sum(axis=1) == pytest.approx(1)
    assert game.records.tobytes() == before


def test_a_forced_turn_is_the_action_that_is_searched():
    for seed in range(200):
        game = start_game("ninetka:num_players=3,auto_pass=false", 60 + seed % 15, seed)
        if not game.is_over and game.legal_actions().tolist() == [game.num_actions - 1]:
            result = search(game, 10, np.random.default_rng(0))
            assert np.flatnonzero(result.visits).tolist() == game.legal_actions().tolist()
            assert make_agent("mcts:10,rave").act(game.records, np.random.default_rng(0)).tolist() == [
                game.num_actions - 1
            ]
            return
    raise AssertionError("no forced turn found")


# Strength


@functools.cache
def minimax_value(game):
    """Return the minimax value for seat 0: 1, 0.5 or 0."""
    if game.is_over:
        return 0.5 if game.winner() == DRAWN else float(game.winner() == 0)
    values = [minimax_value(after(game, action)) for action in game.legal_actions().tolist()]
    return max(values) if game.to_move == 0 else min(values)


def after(game, action):
    child = game.copy()
    child.play(action)
    return child


def undecided(spec, plies, seeds):
    """Yield (position, best actions) for positions after `plies` random plies in which some action is not best."""
    for seed in range(seeds):
        game = start_game(spec, plies, seed)
        if not game.is_over:
            values = {action: minimax_value(after(game, action)) for action in game.legal_actions().tolist()}
            best = [action for action, value in values.items() if value == minimax_value(game)]
            if len(best) < len(values):
                yield game, best


@compiled
@pytest.mark.parametrize(
    ("spec", "plies", "heavy"),
    [
        ("go:size=3,komi=0,ko=positional,max_plies=9", 5, False),
        ("go:size=3,komi=0,ko=positional,max_plies=9", 5, True),
        ("kropki:width=5,height=4,territory=immediate", 13, False),
        ("kropki:width=5,height=4,territory=declared", 14, False),
    ],
)
def test_it_finds_a_best_action_on_tiny_boards(spec, plies, heavy):
    found = 0
    for game, best in undecided(spec, plies, 30):
        found += 1
        visits = search(game, 3000, np.random.default_rng(0), exploration=0.3, heavy=heavy).visits
        assert int(visits.argmax()) in best, str(game)
    assert found >= 5


@compiled
@pytest.mark.parametrize("playouts", ["random", "heavy"])
def test_go_on_a_5x5_board_opens_in_the_centre(playouts):
    agent = make_agent(f"mcts:simulations=3000,rave,playouts={playouts}", "go:size=5")
    game = start_game("go:size=5")
    assert game.action_name(int(agent.act(game.records, np.random.default_rng(0))[0])) == "C3"


# Time limits


@pytest.mark.parametrize("spec", ["mcts:seconds=1", "mcts:seconds=1,rave"])
def test_it_respects_the_time_limit(spec, monkeypatch):
    looks = []
    clock = SimpleNamespace(perf_counter=lambda: looks.append(None) or len(looks) * 0.3)
    monkeypatch.setattr(mcts, "time", clock)
    game = start_game("kropki:width=4,height=4")
    grown, tree = [], mcts.UctTree if spec == "mcts:seconds=1" else RaveTree
    grow = tree.grow
    monkeypatch.setattr(tree, "grow", lambda self, *rest: grown.append(rest[2]) or grow(self, *rest))
    action = make_agent(spec).act(game.records, np.random.default_rng(0))[0]
    assert game.legal_mask()[action]
    assert grown == [mcts.MAX_CHUNK] * 4


# Kept trees


def test_a_tree_stops_growing_before_counts_become_inexact(monkeypatch):
    monkeypatch.setattr(rave, "MAX_SIMULATIONS", 50)
    game, streams = start_game("go:size=5"), np.zeros(1, np.uint64)
    tree = RaveTree(game.records, 50, RULES)
    tree.reset(game.records)
    assert [tree.grow(streams, 0, 20) for _ in range(4)] == [True, True, False, False]


def test_the_tree_is_kept_from_move_to_move():
    game = start_game("kropki:width=4,height=4")
    agent = make_agent("mcts:simulations=400,rave,reuse")
    player, rng = agent.start(game), np.random.default_rng(0)
    kept = 0
    while not game.is_over:
        action = player.act(rng)
        assert game.legal_mask()[action]
        below = {path[1:]: numbers for path, numbers in _below_root(player) if path[:1] == (action,) and path[1:]}
        game.play(action)
        player.observe(action)
        if below and not game.is_over:
            assert dict(_below_root(player)) == below
            kept += 1
    player.close()
    assert kept > 3


def _below_root(player):
    """Return (path from the root, statistics) for each node below the root of the player's tree."""
    return [((*path, action), numbers) for (path, action), numbers in tree_contents(player.tree)]


# Specs


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mcts:rave=1", r"rave='1' must be true or false"),
        ("mcts:playouts=strong", r"playouts='strong': expected one of 'random', 'heavy'"),
        ("mcts:seconds=-1", r"seconds=-1"),
        ("mcts:seconds=inf", r"seconds=inf"),
        ("mcts:rave,equivalence=0", r"equivalence=0.*at least 1"),
        ("mcts:rave,exact=10", r"exact=10: proofs are for UCT alone"),
        ("mcts:ravel", r"simulations='ravel' must be a number"),
    ],
)
def test_error_names_the_wrong_option(spec, message):
    with pytest.raises(ValueError, match=message):
        make_agent(spec)


def test_seats_that_are_not_in_play_win_nothing():
    """This also holds if the same arrays were used before for a game of four players."""
    agent = mcts.MctsAgent(50, rave=True, threads=1)
    for seed in range(6):
        games = np.concatenate([start_game(f"ninetka:num_players={players}", 20, seed).records for players in (4, 2)])
        values = agent.run(games, np.random.default_rng(seed)).values
        np.testing.assert_allclose(values.sum(1), 1, atol=1e-5)
        assert not values[1, 2:].any()
