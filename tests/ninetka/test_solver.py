"""Tests of the exact solver: results against plain search to the end, budgets, threads and errors."""

from __future__ import annotations

import numpy as np
import pytest
from ninetka.brute import brute_force_margin, brute_force_winner, winners_of_moves
from ninetka.positions import Options, position_after, random_action
from ninetka.reference import ReferenceGame
from scale import Scaled

from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON, Budget, solve, solve_batch
from ninetka_env.core.jit import popcount
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import ACTION_SYMMETRIES, SYMMETRIES
from ninetka_env.games.ninetka.rules import Phase

TWO = [Options(2, turn_order=order, auto_pass=passes) for order in ("restart", "continue") for passes in (True, False)]


def endings(count: int, most: int, seed: int = 0) -> StateArray:
    """Return `count` positions of random games with 1 to `most` movable stones."""
    found: list[StateArray] = []
    rng = np.random.default_rng(seed)
    while len(found) < count:
        game = position_after(TWO[len(found) % 4], seed + len(found), Phase.MOVEMENT, 10)
        while not game.is_over:
            stones = popcount(int(np.bitwise_or.reduce(game.records["movable"][0])))
            if stones <= most and rng.random() < 0.5:
                found.append(game.records.copy())
                break
            game.play(random_action(game, rng))
    return np.concatenate(found)


def test_winners_match_brute_force(scaled: Scaled) -> None:
    games = endings(scaled(500, 5), 12)
    winners, _ = solve_batch(games, moves=False)
    assert winners.tolist() == [brute_force_winner(games, index) for index in range(len(games))]
    assert 0 < np.count_nonzero(winners) < len(games)


def test_move_values_match_brute_force(scaled: Scaled) -> None:
    games = endings(scaled(500, 5), 9, seed=1_000_000)
    winners, values = solve_batch(games)
    for index, winner in enumerate(winners):
        game = Game(games[index : index + 1])
        legal = game.legal_actions()
        expected = [WON if seat == game.to_move else LOST for seat in winners_of_moves(games[index : index + 1], legal)]
        assert values[index, legal].tolist() == expected
        assert np.count_nonzero(values[index]) == len(legal)
        assert (winner == game.to_move) == (WON in expected)


def max_n_winner(game: ReferenceGame) -> int:
    """Return the winner if each seat plays for its own win (max^n), by recursion over the reference rules."""
    if game.is_over():
        return game.winner()
    winners = []
    for action in game.legal_actions():
        child = game.copy()
        child.play(action)
        winners.append(max_n_winner(child))
    return game.to_move if game.to_move in winners else winners[0]


def test_winners_match_max_n_over_the_reference_rules(scaled: Scaled) -> None:
    games = endings(scaled(40, 4), 5, seed=3_000_000)
    winners, _ = solve_batch(games, moves=False)
    for index, winner in enumerate(winners):
        assert winner == max_n_winner(TWO[index % 4].reference_of(Game(games[index : index + 1])))
    assert {*winners.tolist()} == {0, 1}


def test_margins_match_brute_force(scaled: Scaled) -> None:
    games = endings(scaled(100, 10), 8, seed=2_000_000)
    for index in range(len(games)):
        solution = solve(Game(games[index : index + 1]), margin=True, moves=False)
        assert solution.margin == brute_force_margin(games, index)


def test_a_finished_game_has_its_winner_and_its_margin() -> None:
    for seed in range(20):
        game = position_after(TWO[seed % 4], seed, Phase.MOVEMENT, 99)
        first, second = game.scores()
        solution = solve(game, margin=True)
        assert (solution.winner, solution.margin, solution.nodes) == (game.winner(), first - second, 0)


def test_an_exhausted_budget_leaves_values_unknown() -> None:
    game = position_after(TWO[0], 1, Phase.MOVEMENT, 0)
    solution = solve(game, Budget(nodes=10))
    assert (solution.winner, solution.nodes) == (UNFINISHED, 10)
    assert (solution.moves == UNKNOWN).all()


def midgame_positions(count: int, slides: int, seed: int = 0) -> list[Game]:
    """Return positions of random games after some slides."""
    return [position_after(TWO[index % 4], seed + index, Phase.MOVEMENT, slides) for index in range(count)]


def test_budgets_are_not_exceeded() -> None:
    for nodes in (1, 7, 100, 3000):
        for game in midgame_positions(5, 2, seed=nodes):
            assert solve(game, Budget(nodes=nodes), margin=True).nodes <= nodes
    solution = solve(midgame_positions(1, 0)[0], Budget(seconds=0.2))
    assert solution.seconds < 2
    assert solve(midgame_positions(1, 0)[0], Budget(should_stop=lambda: True)).nodes == 0


def test_known_values_are_right_for_any_budget_and_table_size() -> None:
    """Uses a table that is far too small, and budgets that run out in the middle of the search."""
    for game in midgame_positions(8, 5, seed=50):
        truth = solve(game, margin=True)
        assert truth.winner >= 0
        assert truth.margin is not None
        assert (truth.margin > 0) == (truth.winner == 0)
        crowded = solve(game, Budget(memory_mb=1), margin=True)
        assert (crowded.winner, crowded.margin, crowded.moves.tolist()) == (
            *truth[0:1],
            truth.margin,
            truth.moves.tolist(),
        )
        for nodes in (5, 50, 500, 5000):
            partial = solve(game, Budget(nodes=nodes))
            assert partial.winner in (UNFINISHED, truth.winner)
            assert ((partial.moves == UNKNOWN) | (partial.moves == truth.moves)).all()


def test_symmetric_positions_have_symmetric_solutions() -> None:
    for game in midgame_positions(4, 6, seed=80):
        moves = solve(game).moves
        for symmetry, where in zip(SYMMETRIES, ACTION_SYMMETRIES, strict=True):
            board = np.empty(121, np.int8)
            board[symmetry] = game.board.ravel()
            options = {"turn_order": game.turn_order, "auto_pass": game.auto_pass}
            mirrored = solve(Game.from_board(board.reshape(11, 11), game.to_move, 2, **options)).moves
            assert mirrored[where].tolist() == moves.tolist()


def test_batches_match_single_solutions_on_any_number_of_threads() -> None:
    games = [
        *midgame_positions(10, 6, seed=90),
        position_after(TWO[0], 0, Phase.PLACEMENT, 3),
        midgame_positions(1, 99)[0],
    ]
    records = np.concatenate([game.records for game in games])
    winners, moves = solve_batch(records, 1_000_000, threads=1)
    for game, winner, values in zip(games[:10], winners, moves, strict=False):
        solution = solve(game)
        assert (solution.winner, solution.moves.tolist()) == (winner, values.tolist())
    assert winners[10:].tolist() == [UNFINISHED, games[11].winner()]
    assert not moves[10:].any()
    again = solve_batch(records, 1_000_000, threads=2)
    assert (again[0].tolist(), again[1].tolist()) == (winners.tolist(), moves.tolist())


def continuations(roots: int, each: int, seed: int) -> tuple[StateArray, list[int]]:
    """Play games at random: `each` games from each of `roots` positions.

    Return all positions of the games, the latest plies first, and for each position the number of its root.
    """
    rng, found = np.random.default_rng(seed), []
    for number, root in enumerate(midgame_positions(roots, 5, seed=seed)):
        for _ in range(each):
            game, ply = root.copy(), 0
            while not game.is_over:
                found.append((-ply, number, game.records.copy()))
                game.play(random_action(game, rng))
                ply += 1
    found.sort(key=lambda one: one[0])
    return np.concatenate([records for _, _, records in found]), [number for _, number, _ in found]


@pytest.mark.slow
def test_grouped_positions_have_the_same_solutions() -> None:
    records, roots = continuations(8, 4, seed=91)
    alone, together = solve_batch(records, 1_000_000), solve_batch(records, 1_000_000, 1, groups=np.array(roots))
    assert (alone[0] >= 0).all()
    for one, other in zip(alone, together, strict=True):
        assert one.tolist() == other.tolist()
    by_few, by_few_alone = solve_batch(records, 100, groups=np.array(roots)), solve_batch(records, 100)
    for known, value in zip(by_few, alone, strict=True):
        unknown = UNFINISHED if known.ndim == 1 else UNKNOWN
        assert ((known == unknown) | (known == value)).all()
    assert (by_few[0] >= 0).sum() > (by_few_alone[0] >= 0).sum()
    on_two_threads = solve_batch(records, 100, 2, groups=np.array(roots))
    assert (on_two_threads[0].tolist(), on_two_threads[1].tolist()) == (by_few[0].tolist(), by_few[1].tolist())


def test_other_games_and_phases_are_refused() -> None:
    with pytest.raises(ValueError, match="3 players"):
        solve(position_after(Options(3), 0, Phase.MOVEMENT, 0))
    with pytest.raises(ValueError, match="two-player"):
        solve_batch(position_after(Options(4), 0, Phase.MOVEMENT, 0).records)
    with pytest.raises(ValueError, match="seconds=0"):
        solve(position_after(Options(2), 0, Phase.MOVEMENT, 0), Budget(seconds=0))
    with pytest.raises(ValueError, match="PLACEMENT"):
        solve(position_after(Options(2), 0, Phase.PLACEMENT, 3))
