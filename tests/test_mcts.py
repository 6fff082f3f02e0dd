"""Monte Carlo tree search: what it counts, and that it finds what an exact search by the final winner proves."""

from __future__ import annotations

import functools
import itertools

import numba
import numpy as np
import pytest
from conftest import ALL_OPTIONS, Options, position_after, random_positions

from agents import make_agent
from agents.mcts import MctsAgent, search
from ninetka_env import ninetka_v0
from ninetka_env.game import Game
from ninetka_env.geometry import NUM_ACTIONS, PASS
from ninetka_env.rules import Phase

POSITIONS = [position_after(options, 1, phase, 12 if phase else 3) for options in ALL_OPTIONS for phase in Phase]

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="far too slow without the compiler")


def most_visited(game, result):
    """Return the action with most simulations, among equals the one with more wins for the mover, then the lowest."""
    wins = np.nan_to_num(result.wins[:, game.to_move]) * result.visits
    return max(range(NUM_ACTIONS), key=lambda action: (result.visits[action], round(wins[action]), -action))


# What a search counts


@pytest.mark.parametrize("game", POSITIONS, ids=repr)
def test_every_legal_action_is_tried_and_every_simulation_counted(game):
    before, legal = str(game), game.legal_actions()
    result = search(game, 80, np.random.default_rng(0))
    assert (result.visits.shape, result.visits.dtype) == ((NUM_ACTIONS,), np.int64)
    assert (result.wins.shape, result.wins.dtype) == ((NUM_ACTIONS, game.num_players), np.float64)
    assert np.flatnonzero(result.visits).tolist() == legal.tolist()
    assert result.visits.sum() == 80
    assert result.wins[legal].sum(axis=1) == pytest.approx(1)
    assert ((result.wins[legal] >= 0) & (result.wins[legal] <= 1)).all()
    assert np.isnan(np.delete(result.wins, legal, axis=0)).all()
    assert str(game) == before


@pytest.mark.parametrize("simulations", [1, 2, 30, 36, 37])
def test_simulations_may_be_fewer_than_actions(simulations):
    game = position_after(Options(2), 0, Phase.PLACEMENT, 0)
    result = search(game, simulations, np.random.default_rng(0))
    assert result.visits.sum() == simulations
    assert np.count_nonzero(result.visits) == min(simulations, 36)


def test_a_seat_without_a_slide_passes():
    passes = 0
    for num_players in (2, 3, 4):
        for seed in range(5):
            for game in random_positions(Options(num_players, auto_pass=False), seed):
                if game.legal_actions().tolist() == [PASS]:
                    passes += 1
                    result = search(game, 20, np.random.default_rng(0))
                    assert np.flatnonzero(result.visits).tolist() == [PASS]
                    assert result.visits[PASS] == 20
                    assert result.wins[PASS].sum() == pytest.approx(1)
                    assert make_agent("mcts:20").act(game.records, np.random.default_rng(0)).tolist() == [PASS]
    assert passes


@pytest.mark.parametrize("game", POSITIONS[::5], ids=repr)
def test_the_agent_plays_the_most_visited_action_of_the_search(game):
    for seed in range(5):
        result = search(game, 100, np.random.default_rng(seed))
        action = MctsAgent(simulations=100).act(game.records, np.random.default_rng(seed))[0]
        assert action == most_visited(game, result)


def test_a_search_is_repeated_by_its_seed():
    game = position_after(Options(3), 0, Phase.MOVEMENT, 3)
    one, again, other = (search(game, 200, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.visits.tolist() == again.visits.tolist()
    assert one.wins.tobytes() == again.wins.tobytes()
    assert one.visits.tolist() != other.visits.tolist()


def test_wins_are_the_winners_when_every_action_ends_the_game():
    lasting = 0
    for seed in range(200):
        game = ending(Options(2 + seed % 3), seed, most=3)
        children = {action: after(game, action) for action in game.legal_actions().tolist()}
        if all(child.is_over for child in children.values()):
            lasting += 1
            result = search(game, 50, np.random.default_rng(0))
            for action, child in children.items():
                assert result.wins[action].tolist() == [seat == child.winner() for seat in range(game.num_players)]
    assert lasting > 10


def test_without_exploration_all_goes_to_what_wins():
    """In an ending where one action wins at once, all simulations beyond the first of each action go there."""
    game, wins = next(
        (game, wins)
        for game, wins in (decisive_ending(3, seed) for seed in range(1000))
        if len(wins) == 1 and after(game, wins[0]).is_over
    )
    result = search(game, 100, np.random.default_rng(0), exploration=0)
    assert result.visits[wins[0]] == 100 - (len(game.legal_actions()) - 1)
    bold = search(game, 100, np.random.default_rng(0), exploration=100)
    assert bold.visits[wins[0]] < 100 - 5 * (len(game.legal_actions()) - 1)


# Against an exact search


def after(game, action):
    child = game.copy()
    child.play(action)
    return child


def ending(options, seed, most):
    """Return a random game from where at most `most` stones can slide; it is not over."""
    return next(
        game.copy()
        for game in random_positions(options, seed)
        if game.phase == Phase.MOVEMENT and 0 < game.movable().sum() <= most
    )


@functools.cache
def winners(game):
    """Return the seats that may win if every seat plays for its own victory, whatever it does where it cannot win."""
    if game.is_over:
        return frozenset([game.winner()])
    children = [winners(after(game, action)) for action in game.legal_actions().tolist()]
    if {game.to_move} in children:
        return frozenset([game.to_move])
    return frozenset.union(*children)


def winning_actions(game):
    """Return the actions that win for certain, if all others certainly give the win away; else none."""
    seen = {action: winners(after(game, action)) for action in game.legal_actions().tolist()}
    wins = [action for action, seats in seen.items() if seats == {game.to_move}]
    losses = [action for action, seats in seen.items() if game.to_move not in seats]
    return wins if len(wins) + len(losses) == len(seen) and losses else []


def decisive_ending(num_players, seed):
    """Return a small ending and the actions that win there, often none."""
    game = ending(Options(num_players), seed, most=8)
    return game, winning_actions(game)


def decisive_endings(num_players, count, also=lambda game, wins: True):
    """Return the first `count` endings where some actions win, all others lose, and `also` holds."""
    found = (decisive_ending(num_players, seed) for seed in itertools.count())
    return list(itertools.islice((pair for pair in found if pair[1] and also(*pair)), count))


def assert_found(game, wins):
    assert most_visited(game, search(game, 3000, np.random.default_rng(0))) in wins


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_it_finds_the_winning_action_of_an_ending(num_players):
    for game, wins in decisive_endings(num_players, 15):
        assert_found(game, wins)


def sign_flipped(game):
    """Return what a search with one number per position thinks the seat to move gets: it negates from ply to ply."""
    if game.is_over:
        return 1 if game.winner() == game.to_move else -1
    return max(-sign_flipped(after(game, action)) for action in game.legal_actions().tolist())


def sign_flipped_choices(game):
    values = {action: -sign_flipped(after(game, action)) for action in game.legal_actions().tolist()}
    return {action for action, value in values.items() if value == max(values.values())}


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_it_finds_the_winning_action_where_one_seat_moves_twice_in_a_row(num_players):
    """Two players: only where a seat moves twice does flipping signs go wrong."""

    def moves_twice(game, wins):
        return any(after(game, action).to_move == game.to_move and not after(game, action).is_over for action in wins)

    for game, wins in decisive_endings(num_players, 5, moves_twice):
        assert_found(game, wins)


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_it_finds_the_winning_action_where_flipping_signs_would_lose(num_players):
    for game, wins in decisive_endings(num_players, 5, lambda game, wins: not sign_flipped_choices(game) & set(wins)):
        assert_found(game, wins)


@compiled
@pytest.mark.parametrize(("num_players", "at_least"), [(2, 22), (3, 18), (4, 16)])
def test_it_beats_random_play(num_players, at_least):
    """24 games, every seat equally often."""
    envs = ninetka_v0.vector_env(24, num_players)
    envs.reset(seed=0)
    seats, rng = np.arange(24) % num_players, np.random.default_rng(0)
    searcher, random = make_agent("mcts:simulations=200"), make_agent("random")
    winners = np.full(24, -1)
    while (winners < 0).any():
        actions = random.act(envs.games, rng)
        its_turn = (envs.to_move == seats) & (winners < 0)
        if its_turn.any():
            actions[its_turn] = searcher.act(envs.games[its_turn], rng)
        envs.step(actions)
        ended = envs.terminated & (winners < 0)
        winners[ended] = envs.final_winner[ended]
    assert (winners == seats).sum() >= at_least


# What cannot be searched


def test_a_finished_game_is_not_searched():
    game = position_after(Options(2), 0, Phase.MOVEMENT, 99)
    with pytest.raises(ValueError, match="over"):
        search(game, 10, np.random.default_rng(0))


@pytest.mark.parametrize("simulations", [0, -1, 1.5, True, "3", None])
def test_simulations_are_a_positive_integer(simulations):
    with pytest.raises(ValueError, match=r"simulations=.*at least 1"):
        search(Game.new(2), simulations, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"simulations=.*at least 1"):
        MctsAgent(simulations=simulations)


@pytest.mark.parametrize("exploration", [-1.0, float("nan"), float("inf")])
def test_exploration_is_a_finite_number_of_at_least_0(exploration):
    with pytest.raises(ValueError, match=r"exploration=.*at least 0"):
        MctsAgent(exploration=exploration)
    with pytest.raises(ValueError, match=r"exploration=.*at least 0"):
        search(Game.new(2), 1, np.random.default_rng(0), exploration)


@pytest.mark.parametrize("threads", [-1, 1.5, True, None])
def test_threads_are_counted(threads):
    with pytest.raises(ValueError, match=r"threads=.*at least 1"):
        MctsAgent(threads=threads)
