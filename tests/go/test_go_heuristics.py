"""Heuristics of Go: the board that playouts update agrees with the rules, and priors prefer urgent moves."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from ninetka_agents.go.board import BOARD_DTYPE, cell_of, load
from ninetka_agents.go.heuristics import add_priors, heavy_playout
from ninetka_agents.go.patterns import EYE_COLOUR
from ninetka_agents.search.rave import RaveTree
from ninetka_agents.search.rave_tree import RaveOptions
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import load_variant
from ninetka_env.games.go.choices import is_eye

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="far too slow without the compiler")


@jit
def run_playout(games, streams, trace, scratch):
    return heavy_playout(games[0], streams, 0, trace, scratch)


@jit
def load_first(games, scratch):
    load(scratch[0], games[0], 9)


@jit
def prior_of(games, priors, scratch):
    add_priors(games[0], priors, scratch)


@jit
def eye_of(games, point):
    return is_eye(games[0], point)


def new(spec="go", moves="", plies=0, seed=0):
    """Return a game after the named moves and a number of random plies."""
    variant, rng = load_variant(spec), np.random.default_rng(seed)
    game = variant.game_class.start(variant)
    for name in moves.split():
        game.play(game.action_index(name))
    for _ in range(plies):
        if not game.is_over:
            legal = game.legal_actions()
            game.play(int(rng.choice(legal[:-1] if len(legal) > 1 else legal)))
    return game


def loaded(game):
    scratch = np.zeros(1, BOARD_DTYPE)
    load_first(game.records, scratch)
    return scratch


CELLS = [cell_of(point, 9) for point in range(81)]


@compiled
@pytest.mark.parametrize("spec", ["go", "go:scoring=document", "go:scoring=territory,komi=0.5"])
def test_a_heavy_playout_is_a_legal_game_and_updates_its_board(spec):
    for seed in range(20):
        game, trace, scratch = new(spec, plies=5 * seed, seed=seed), np.zeros(200, np.int32), np.zeros(1, BOARD_DTYPE)
        if game.is_over:
            continue
        winner = run_playout(game.records.copy(), np.array([seed], np.uint64), trace, scratch)
        for turn in trace[1 : 1 + trace[0]].tolist():
            assert game.to_move == turn % 8
            game.play(turn // 8)
        assert winner == game.winner()  # also if the mercy rule ended the playout
        kept, fresh = scratch[0], loaded(game)[0]
        for field in ("colour", "code"):
            assert kept[field][CELLS].tolist() == fresh[field][CELLS].tolist()
        stones = [cell for cell in CELLS if kept["colour"][cell]]
        for field in ("liberties", "stones"):
            assert [kept[field][kept["chain"][cell]] for cell in stones] == [
                fresh[field][fresh["chain"][cell]] for cell in stones
            ]
        for field in ("captured", "stone_lead", "to_move", "num_empty"):
            assert kept[field].tolist() == fresh[field].tolist()


@compiled
def test_eyes_are_the_same_as_in_uniform_playouts():
    eyes = 0
    for seed in range(40):
        game = new(plies=60 + seed, seed=seed)
        if not game.is_over:
            board = loaded(game)[0]
            for point in np.flatnonzero(game.records["board"][0][:81] == 0).tolist():
                expected = eye_of(game.records, point)
                assert (EYE_COLOUR[board["code"][CELLS[point]]] == game.to_move + 1) == expected
                eyes += expected
    assert eyes > 20


@compiled
@pytest.mark.parametrize(
    ("moves", "best"),
    [
        ("D6 D5 C6 C5 E5 A1 B5 J1 D4 A9", "C4"),  # captures two stones
        ("D6 D5 C6 C5 E5 A1 B5 J1 D4", "C4"),  # saves the two stones
    ],
)
def test_priors_prefer_urgent_moves(moves, best):
    game, priors = new(moves=moves), np.zeros((83, 2), np.float32)
    prior_of(game.records, priors, np.zeros(1, BOARD_DTYPE))
    assert (priors[:, 1] <= priors[:, 0]).all()
    assert priors[81, 1] == 0  # no virtual wins for the pass
    assert priors[:81, 1].argmax() == game.action_index(best)


def walk(tree, game, node=0):
    """Yield (children, position) for each expanded node of a tree."""
    first, count = int(tree.nodes[node]["first"]), int(tree.nodes[node]["count"])
    if count:
        yield tree.nodes[first : first + count], game
    for child in range(first, first + count):
        if tree.nodes[child]["count"]:
            after = game.copy()
            after.play(int(tree.nodes[child]["action"]))
            yield from walk(tree, after, child)


@compiled
@pytest.mark.parametrize("ko", ["positional", "situational"])
def test_tree_nodes_hold_exactly_the_actions_that_superko_allows(ko):
    """Playouts use simple ko only. The nodes of a tree must follow superko, also after the tree is reused."""
    checked = forbidden = 0
    for seed in range(6):
        game, streams = new(f"go:size=3,komi=0,ko={ko},max_plies=60", plies=16, seed=seed), np.array([seed], np.uint64)
        if game.is_over:
            continue
        tree = RaveTree(game.records, 4000, RaveOptions(1000.0, 0.3, heavy=True, local=False))
        tree.reset(game.records)
        for _ in range(3):
            tree.grow(streams, 0, 1000)
            for children, position in walk(tree, game):
                assert sorted(children["action"].tolist()) == position.legal_actions().tolist()
                checked, forbidden = checked + 1, forbidden + len(position.ko_points())
            action = tree.best_action()
            assert game.legal_mask()[action]
            game.play(action)
            if game.is_over:
                break
            tree.advance(action)
    assert checked > 1000
    assert forbidden > 100
