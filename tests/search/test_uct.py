"""Test UCT: statistics, strength against an exact search by winner, proofs, and options."""

from __future__ import annotations

import functools

import numba
import numpy as np
import pytest
from ninetka.brute import winners_of_moves
from ninetka.positions import ALL_OPTIONS, Options, board_of, position_after, random_positions

from ninetka_agents import make_agent
from ninetka_agents.agent import game_streams
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.tree import find_candidates
from ninetka_agents.search.uct import search
from ninetka_env import ninetka_v0
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, PASS
from ninetka_env.games.ninetka.rules import Phase

POSITIONS = [
    position_after(options, 1, phase, 12 if phase else 3)
    for options in ALL_OPTIONS
    for phase in Phase
    if phase != Phase.NEUTRAL or options.neutral_placement == "players"
]

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="too slow without compiled code")


def most_visited(game, result):
    """Return the most visited action; ties are broken by the mover's wins, then by the lowest action."""
    wins = np.nan_to_num(result.wins[:, game.to_move]) * result.visits
    return max(range(NUM_ACTIONS), key=lambda action: (result.visits[action], round(wins[action]), -action))


# Statistics


@pytest.mark.parametrize("players", [2, 3, 4])
def test_variations_can_be_played_through_all_phases(players):
    """A variation has actions. The tree stores choices: one choice represents different actions in different phases."""
    game = position_after(Options(players), 3, Phase.NEUTRAL, 7)
    tree = MctsAgent().make_tree(game.records, 5000)
    tree.reset(game.records)
    tree.grow(game_streams(game.records, np.random.default_rng(0)), 0, 5000)
    phases = set()
    for candidate in find_candidates(tree):
        after = game.copy()
        for action in candidate.variation:
            after.play(action)
            phases.add(after.phase)
    assert len(phases) > 1


@pytest.mark.parametrize("game", POSITIONS, ids=repr)
def test_every_legal_action_is_tried_and_every_simulation_counted(game):
    before, legal = str(game), game.legal_actions()
    result = search(game, 60, np.random.default_rng(0))
    assert (result.visits.shape, result.visits.dtype) == ((NUM_ACTIONS,), np.int64)
    assert (result.wins.shape, result.wins.dtype) == ((NUM_ACTIONS, game.num_players), np.float64)
    assert np.flatnonzero(result.visits).tolist() == legal.tolist()
    assert result.visits.sum() == 60
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


def test_wins_are_the_winners_where_every_action_ends_the_game():
    found = 0
    for seed in range(60):
        for game in endings(2 + seed % 3, seed, max_movable=3):
            children = {action: after(game, action) for action in game.legal_actions().tolist()}
            if all(child.is_over for child in children.values()):
                found += 1
                result = search(game, 50, np.random.default_rng(0))
                for action, child in children.items():
                    assert result.wins[action].tolist() == [seat == child.winner() for seat in range(game.num_players)]
    assert found > 10


def test_exploration_spreads_the_simulations():
    game = position_after(Options(3), 0, Phase.MOVEMENT, 3)
    legal = game.legal_actions()
    spreads = []
    for exploration in (0.0, 0.7, 100.0):
        visits = search(game, 50 * len(legal), np.random.default_rng(0), exploration).visits[legal]
        spreads.append(int(visits.max() - visits.min()))
    assert spreads[0] > spreads[1] > spreads[2]
    assert spreads[2] <= 2


# Strength against an exact search


def after(game, action):
    child = game.copy()
    child.play(action)
    return child


def endings(num_players, seed, max_movable):
    """Yield the unfinished positions of a random game with at most `max_movable` movable stones in phase MOVEMENT."""
    for game in random_positions(Options(num_players), seed):
        if game.phase == Phase.MOVEMENT and 0 < game.movable().sum() <= max_movable:
            yield game.copy()


@functools.cache
def winners(game):
    """Return the possible winners. A seat that can force a win does so; all other seats may play any action."""
    if game.is_over:
        return frozenset([game.winner()])
    children = [winners(after(game, action)) for action in game.legal_actions().tolist()]
    if {game.to_move} in children:
        return frozenset([game.to_move])
    return frozenset.union(*children)


def winning_actions(game):
    """Return the actions that certainly win if some other action certainly loses, otherwise an empty list."""
    seen = {action: winners(after(game, action)) for action in game.legal_actions().tolist()}
    wins = [action for action, seats in seen.items() if seats == {game.to_move}]
    loses = any(game.to_move not in seats for seats in seen.values())
    return wins if loses else []


def assert_found(game, wins):
    assert most_visited(game, search(game, 3000, np.random.default_rng(0))) in wins


@compiled
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_it_finds_the_winning_actions_of_endings(num_players):
    found = 0
    for seed in range(60):
        for game in endings(num_players, seed, max_movable=9):
            if wins := winning_actions(game):
                found += 1
                assert_found(game, wins)
    assert found >= 8


def negamax_value(game):
    """Return 1 if negamax expects the seat to move to win, otherwise -1.

    Negamax is wrong for 9tka: a seat may move twice in a row, and there may be more than two seats.
    """
    if game.is_over:
        return 1 if game.winner() == game.to_move else -1
    return max(-negamax_value(after(game, action)) for action in game.legal_actions().tolist())


TWICE = {
    2: """
.....21..1.
......2..21
..21....2.2
..2#.#..#2.
.........11
111..#..#1.
.2#..11....
2...1...#1.
.2#.#...11.
222.1..2.22
...2...1...
""",
    3: """
.....2...2.
..21....2.1
32.#.#..#3.
13...1.....
31..3......
.12##...#3.
....2.3..11
......2332.
..1#..##1..
2.12..31...
..33....2..
""",
    4: """
....212....
4....24....
.433..#.22.
..2#....#4.
.2#.#3.....
.1341..3...
.......2#2.
..3#..#31..
.....11#4..
34.....1.11
.3.4.....4.
""",
}
"""Endings by number of players. A winning action leaves the next seats without a slide, so its seat moves again."""
ONCE = """
....2......
321..3.....
2.#..#..331
.....21.#2.
.....2#.#.3
..11......1
..2#3......
..12#1.....
11#.....#2.
.31....2332
.3..2331...
"""


@pytest.mark.parametrize(
    ("num_players", "to_move", "picture", "wins"),
    [
        (2, 1, TWICE[2], [5, 32, 113]),
        (3, 1, TWICE[3], [9]),
        (4, 3, TWICE[4], [11]),
        (3, 2, ONCE, [54, 115]),
    ],
)
def test_it_wins_where_negamax_would_lose(num_players, to_move, picture, wins):
    game = Options(num_players).from_board(board_of(picture), to_move)
    assert winning_actions(game) == wins
    assert any(after(game, action).to_move == to_move for action in wins) == (picture != ONCE)
    flipped = {action: -negamax_value(after(game, action)) for action in game.legal_actions().tolist()}
    assert not {action for action in flipped if flipped[action] == max(flipped.values())} & set(wins)
    assert_found(game, wins)


@compiled
@pytest.mark.parametrize(("num_players", "at_least"), [(2, 22), (3, 18), (4, 16)])
def test_it_beats_random_play(num_players, at_least):
    """Play 24 games; the searching agent has each seat equally often."""
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


# Proofs


def two_player_endings(max_movable=12):
    for seed in range(40):
        auto_pass = bool(seed % 2)
        for game in random_positions(Options(2, auto_pass=auto_pass), seed):
            if game.phase == Phase.MOVEMENT and 0 < game.movable().sum() <= max_movable:
                yield game.copy()
                break
    yield Options(2).from_board(board_of(TWICE[2]), 1)


@compiled
@pytest.mark.parametrize("exact", [1, 100])
def test_proofs_agree_with_exhaustive_search(exact):
    proven = guessed = 0
    for game in two_player_endings():
        legal = game.legal_actions()
        truth = winners_of_moves(game.records, legal)
        result = search(game, 300, np.random.default_rng(0), exact=exact)
        assert all(winner in (UNFINISHED, true) for winner, true in zip(result.winners[legal], truth, strict=True))
        assert (np.delete(result.winners, legal) == UNFINISHED).all()
        proven += np.count_nonzero(result.winners[legal] >= 0)
        guessed += result.visits.sum() == 300
        action = MctsAgent(300, exact=exact).act(game.records, np.random.default_rng(0))[0]
        assert action in legal
        if game.to_move in truth:
            assert truth[legal.tolist().index(action)] == game.to_move
    assert proven > 100
    assert guessed <= 8


@compiled
def test_a_proof_ends_the_search_and_decides_the_move():
    """A slide that is proven to win is played even if other slides have more visits. A proven loss is avoided."""
    against_visits = 0
    for game in two_player_endings():
        result = search(game, 300, np.random.default_rng(0), exact=1)
        legal = game.legal_actions()
        winners = result.winners[legal]
        decided = game.to_move in winners or UNFINISHED not in winners
        assert decided or result.visits.sum() == 300
        action = MctsAgent(300, exact=1).act(game.records, np.random.default_rng(0))[0]
        if game.to_move in winners:
            assert result.winners[action] == game.to_move
            against_visits += action != most_visited(game, result)
        elif UNFINISHED in winners:
            assert result.winners[action] == UNFINISHED
    assert against_visits


@compiled
def test_a_timed_search_has_a_move_in_a_lost_position():
    agent, found = MctsAgent(seconds=1e-6, exact=10_000, threads=1), 0
    for game in two_player_endings(max_movable=6):
        legal = game.legal_actions()
        found += game.to_move not in winners_of_moves(game.records, legal)
        result = agent.run(game.records, np.random.default_rng(0))
        assert result.actions[0] in legal
        assert result.values.sum() == pytest.approx(1)
    assert found > 3


@compiled
def test_a_lost_position_is_played_as_without_proofs():
    """All slides are proven to lose, so the visits decide, as in a search without proofs."""
    found = 0
    for game in two_player_endings(max_movable=8):
        truth = winners_of_moves(game.records, game.legal_actions())
        if game.to_move not in truth and len(truth) > 2 and PASS not in game.legal_actions():
            found += 1
            plain = search(game, 2000, np.random.default_rng(1))
            action = MctsAgent(2000, exact=200).act(game.records, np.random.default_rng(2))[0]
            assert plain.visits[action] >= 0.8 * plain.visits.max()
    assert found >= 3


@pytest.mark.parametrize("num_players", [3, 4])
def test_nothing_is_proven_with_more_players(num_players):
    game = position_after(Options(num_players), 0, Phase.MOVEMENT, 20)
    plain, exact = (search(game, 100, np.random.default_rng(0), exact=exact) for exact in (0, 50))
    assert plain.visits.tolist() == exact.visits.tolist()
    assert (exact.winners == UNFINISHED).all()


# Invalid arguments


def test_a_finished_game_is_not_searched():
    game = position_after(Options(2), 0, Phase.MOVEMENT, 99)
    with pytest.raises(ValueError, match="over"):
        search(game, 10, np.random.default_rng(0))


@pytest.mark.parametrize("simulations", [0, -1, 1.5, True, "3", None, (1 << 24) + 1])
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


@pytest.mark.parametrize("exact", [-1, 1.5, True, None])
def test_exact_is_an_integer_of_at_least_0(exact):
    with pytest.raises(ValueError, match=r"exact=.*at least 0"):
        MctsAgent(exact=exact)
    with pytest.raises(ValueError, match=r"exact=.*at least 0"):
        search(Game.new(2), 1, np.random.default_rng(0), exact=exact)


@pytest.mark.parametrize("threads", [-1, 1.5, True, None])
def test_threads_is_an_integer_of_at_least_0(threads):
    with pytest.raises(ValueError, match=r"threads=.*at least 0"):
        MctsAgent(threads=threads)
