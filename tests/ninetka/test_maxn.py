"""Tests of the MaxN agent: the figures of Stefani et al. (2019), and the search against two plain searches."""

from __future__ import annotations

import itertools
from collections import Counter

import numba
import numpy as np
import pytest
import reference
from ninetka.positions import Options, position_after, random_position, random_positions
from scale import Scaled
from scipy.stats import chisquare

from benchmarks.plain_maxn import plain_search
from ninetka_agents import make_agent
from ninetka_agents.ninetka.maxn import evaluate, search
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import EDGE, NEUTRAL_STONE, PASS
from ninetka_env.games.ninetka.rules import Phase

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="far too slow without the compiler")


# The evaluation


@pytest.mark.parametrize(
    ("slides", "values"),
    [
        ([(1, 0), (10, 1), (0, 2), (0, 3), (0, 6)], [430, 605]),
        ([(1, 0), (5, 0), (0, 1), (2, 0), (0, 2)], [340, 785]),
    ],
)
def test_evaluation_matches_the_papers_figures(slides, values):
    game = board_of_the_paper()
    for row, col in slides:
        game.play(11 * row + col)
    assert evaluate(game).tolist() == values


def board_of_the_paper():
    """Return the paper's two-player example: seat 1, the computer, makes the first slide."""
    board = np.zeros((11, 11), np.int8)
    for neutral in ((2, 2), (3, 4), (3, 8), (5, 3), (4, 5), (5, 8), (8, 2), (8, 6), (7, 8)):
        board[neutral] = NEUTRAL_STONE
    for stone in ((1, 0), (0, 2), (0, 6), (0, 1)):
        board[stone] = 2
    for stone in ((10, 1), (0, 3), (5, 0), (2, 0), (0, 9), (1, 10), (9, 0)):
        board[stone] = 1
    rest = np.flatnonzero(EDGE & (board.ravel() == 0))
    board.flat[rest[:14]] = 2
    board.flat[rest[14:]] = 1
    return Game.from_board(board, 1, 2, turn_order="continue")


def test_evaluation_matches_the_reference(options):
    for game in random_positions(options, seed=1):
        if game.phase == Phase.MOVEMENT:
            values = evaluate(game)
            assert values.shape == (options.num_players,)
            assert values.tolist() == reference.evaluate(options.reference_of(game))


def test_the_evaluation_changes_nothing():
    game = random_position(Options(3), 0, 60)
    before = str(game)
    evaluate(game)
    search(game)
    assert str(game) == before


# The search


def few_stones_left(options, seed, max_stones):
    """Return the first position of a random game with at most `max_stones` movable stones."""
    return next(game.copy() for game in random_positions(options, seed) if in_ending(game, max_stones))


def in_ending(game, max_stones):
    return game.phase == Phase.MOVEMENT and 0 < game.movable().sum() <= max_stones


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("auto_pass", [True, False])
def test_search_of_endings_matches_the_reference(num_players, auto_pass, scaled: Scaled):
    options = Options(num_players, auto_pass=auto_pass)
    for seed in range(scaled(10, 2)):
        game = few_stones_left(options, seed, max_stones=5)
        for depth in range(1, 8):
            action, values = search(game, depth)
            assert (action, values.tolist()) == reference.max_n(options.reference_of(game), depth)


def estimated_leaves(game, depth):
    """Return an upper estimate of the number of leaves of a plain search."""
    board, movable = game.board, game.movable()
    counts = [int((movable & (board == seat + 1)).sum()) for seat in range(game.num_players)]
    product, seat = 1, game.to_move
    for _ in range(depth):
        product *= max(1, counts[seat])
        counts[seat] -= 1
        seat = (seat + 1) % game.num_players
    return product


def maxn_positions(options, seed):
    """Yield the position before each slide of a game. `maxn` plays for all seats and breaks ties at random."""
    game, rng = options.new_game(seed), np.random.default_rng(seed)
    agent = make_agent("maxn:random_ties=true")
    while not game.is_over:
        if game.phase == Phase.MOVEMENT:
            yield game
        game.play(int(agent.act(game.records, rng)[0]))


def slides_of_random_games(options, seed):
    return (game for game in random_positions(options, seed) if game.phase == Phase.MOVEMENT and not game.is_over)


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("auto_pass", [True, False])
@pytest.mark.parametrize("play", [slides_of_random_games, maxn_positions])
def test_search_matches_plain_search_in_whole_games(num_players, auto_pass, play):
    options = Options(num_players, auto_pass=auto_pass)
    searched = 0
    for seed in range(2):
        for game in play(options, seed):
            depth = max(d for d in range(1, num_players + 4) if d == 1 or estimated_leaves(game, d) <= 60_000)
            assert_plain(game, depth)
            searched += 1
    assert searched >= 30


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_search_matches_plain_search_at_full_depth(num_players):
    for play in (slides_of_random_games, maxn_positions):
        assert_plain(next(iter(play(Options(num_players), 3))), num_players + 3)


def assert_plain(game, depth):
    action, values = search(game, depth)
    plain_action, plain_values = plain_search(game.records, depth)
    assert (action, values.tolist()) == (plain_action, plain_values[: game.num_players].tolist())


@compiled
def test_the_papers_depth_is_the_default():
    for num_players in (2, 3, 4):
        game = position_after(Options(num_players), 0, Phase.MOVEMENT, 12)
        default, full = search(game), search(game, num_players + 3)
        assert default[0] == full[0]
        assert default[1].tolist() == full[1].tolist()


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_forced_passes_cost_no_depth(num_players):
    passes = 0
    for seed in range(15):
        for game in random_positions(Options(num_players, auto_pass=False), seed):
            if game.legal_actions().tolist() == [PASS]:
                passes += 1
                skipped = Game.from_board(game.board, game.to_move, num_players)
                for depth in (1, 2, 3):
                    action, values = search(game, depth)
                    assert action == PASS
                    assert values.tolist() == search(skipped, depth)[1].tolist()
    assert passes


def value_of_each_action(game):
    """Return the value of each action for the mover at depth 1."""
    values = {}
    for action in game.legal_actions().tolist():
        child = game.copy()
        child.play(action)
        values[action] = evaluate(child)[game.to_move]
    return values


def best_actions(game):
    values = value_of_each_action(game)
    return [action for action, value in values.items() if value == max(values.values())]


def positions_with_ties():
    """Yield positions where several actions are best at depth 1."""
    for num_players, seed in itertools.product((2, 3, 4), range(8)):
        game = position_after(Options(num_players), seed, Phase.MOVEMENT, 2 * seed)
        if len(best_actions(game)) > 1:
            yield game


def test_ties_go_to_the_lowest_square():
    found = list(positions_with_ties())
    assert len(found) > 5
    for game in found:
        assert search(game, 1)[0] == min(best_actions(game))
        actions = make_agent("maxn:depth=1").act(np.repeat(game.records, 20), np.random.default_rng(0))
        assert set(actions.tolist()) == {min(best_actions(game))}


@compiled
def test_random_ties_pick_each_of_equal_children_equally_often():
    agent, rng = make_agent("maxn:depth=1,random_ties=true"), np.random.default_rng(0)
    for game in positions_with_ties():
        best = best_actions(game)
        counts = Counter(agent.act(np.repeat(game.records, 300 * len(best)), rng).tolist())
        assert set(counts) == set(best)
        assert chisquare(list(counts.values())).pvalue > 0.001


def possible_values(game, depth):
    """Return the value tuples that max^n may give a position, depending on how ties are broken."""
    if depth == 0 or game.is_over:
        return {tuple(evaluate(game).tolist())}
    return set().union(*possible_choices(game, depth).values())


def possible_choices(game, depth):
    """Return the actions that max^n may choose in a position, each with the possible value tuples after it."""
    seat, children = game.to_move, {}
    for action in game.legal_actions().tolist():
        child = game.copy()
        child.play(action)
        children[action] = possible_values(child, depth - 1)
    surely = max(min(values[seat] for values in child) for child in children.values())
    choices = {action: {v for v in child if v[seat] >= surely} for action, child in children.items()}
    return {action: values for action, values in choices.items() if values}


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_random_ties_pick_a_best_action_at_any_depth(num_players):
    agent, rng, several = make_agent("maxn:random_ties=true"), np.random.default_rng(0), 0
    for seed in range(12):
        game = few_stones_left(Options(num_players), seed, max_stones=6)
        actions = set(agent.act(np.repeat(game.records, 100), rng).tolist())
        assert actions <= possible_choices(game, num_players + 3).keys()
        several += len(actions) > 1
    assert several


def test_the_agent_plays_what_the_search_finds():
    rng = np.random.default_rng(0)
    for depth, num_players in itertools.product((0, 1, 2, 4), (2, 3, 4)):
        games = [position_after(Options(num_players), seed, Phase.MOVEMENT, 12) for seed in range(10)]
        actions = make_agent(f"maxn:depth={depth}").act(np.concatenate([game.records for game in games]), rng)
        assert actions.tolist() == [search(game, depth or None)[0] for game in games]


def test_games_of_different_seats_and_phases_may_share_a_batch():
    games = [position_after(Options(n), n, phase, 8) for n, phase in itertools.product((4, 2, 3), Phase)]
    actions = make_agent("maxn").act(np.concatenate([game.records for game in games]), np.random.default_rng(0))
    for game, action in zip(games, actions.tolist(), strict=True):
        if game.phase == Phase.MOVEMENT:
            assert action == search(game)[0]
        else:
            assert game.legal_mask()[action]


# The placement phases


def test_neutral_stones_are_placed_uniformly():
    game = position_after(Options(2), 0, Phase.NEUTRAL, 3)
    assert_drawn_from(game, game.legal_actions().tolist())


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("plies", [0, 1, 9, 18, 25])
def test_stones_are_placed_uniformly_where_no_condition_is_broken(num_players, plies):
    options = Options(num_players)
    game = position_after(options, plies, Phase.PLACEMENT, plies)
    assert_drawn_from(
        game, sorted(reference.placement_candidates(options.reference_of(game))) or game.legal_actions().tolist()
    )


def test_stones_are_placed_anywhere_where_each_square_breaks_a_condition():
    options = Options(2)
    crowded = [
        game.copy()
        for seed in range(20)
        for game in random_positions(options, seed)
        if game.phase == Phase.PLACEMENT and not reference.placement_candidates(options.reference_of(game))
    ]
    assert max(len(game.legal_actions()) for game in crowded) > 2
    for game in crowded[::10]:
        assert_drawn_from(game, game.legal_actions().tolist())


def assert_drawn_from(game, squares):
    actions = make_agent("maxn").act(np.repeat(game.records, 300 * len(squares)), np.random.default_rng(0))
    counts = Counter(actions.tolist())
    assert sorted(counts) == squares
    assert len(squares) == 1 or chisquare(list(counts.values())).pvalue > 0.001


# Positions that cannot be searched


def test_only_the_movement_phase_is_searched():
    for phase in (Phase.NEUTRAL, Phase.PLACEMENT):
        with pytest.raises(ValueError, match=f"movement phase.*{phase.name}"):
            search(position_after(Options(2), 0, phase, 3))
    with pytest.raises(ValueError, match=r"movement phase.*over"):
        search(random_position(Options(2), 0, 100))


@pytest.mark.parametrize("depth", [0, -1, 1.5, True, "3"])
def test_a_depth_is_a_positive_integer(depth):
    with pytest.raises(ValueError, match=r"depth=.*at least 1"):
        search(position_after(Options(2), 0, Phase.MOVEMENT, 3), depth)
