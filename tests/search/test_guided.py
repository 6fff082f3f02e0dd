"""Test guided search: strength against exact solutions, use of the network, and batches."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from ninetka.brute import winners_of_moves
from ninetka.positions import Options, position_after, random_position
from test_gumbel import (
    endings,
    forced_pass,
    games_of_more_players,
    mixed_games,
    records_of,
    searched_together_and_alone,
    two_player_endings,
    untrained,
)

from ninetka_agents.net_agent import NetAgent, SearchSettings, network_evaluate
from ninetka_agents.search import guided
from ninetka_agents.search.guided import VIRTUAL_VISITS, GuidedSearch
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import MOVEMENT, Phase


def make_search(simulations=4, playouts=8, **options) -> GuidedSearch:
    return GuidedSearch(network_evaluate(untrained()), simulations, playouts, **options)


def policy_on_one_action(game: Game, share: float, value: float):
    """Return an evaluation function and an action.

    The function gives the action the probability `share`, and the mover the value `value`.
    """
    legal = game.legal_actions()
    chosen = int(legal[len(legal) // 2])

    def evaluate(games):
        logits = np.full((len(games), 122), np.log((1 - share) / (len(legal) - 1)), np.float32)
        logits[:, chosen] = np.log(share)
        others = (1 - value) / (game.num_players - 1)
        values = np.where(np.arange(4) < game.num_players, np.float32(others), np.float32(0))
        values = np.tile(values, (len(games), 1)).astype(np.float32)
        values[:, 0] = value
        return logits, values

    return evaluate, chosen


# Strength


@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_untrained_network_finds_the_slides_that_win(players):
    found = endings(players)
    result = make_search(16, 200).run(records_of([ending.game for ending in found]), np.random.default_rng(0))
    for ending, action in zip(found, result.actions, strict=True):
        assert action in ending.best


def test_proofs_help_with_any_budget():
    games = two_player_endings(8)
    for exact in (1, 20, 10_000):
        actions = make_search(8, 8, exact=exact).run(games, np.random.default_rng(0)).actions
        for index in range(len(games)):
            game = Game(games[index : index + 1])
            truth = np.array(winners_of_moves(game.records, legal := game.legal_actions()))
            if exact > 1:
                assert game.to_move not in truth or truth[legal == actions[index]] == game.to_move
            assert actions[index] in legal


def test_noise_does_not_select_actions_that_are_proven_to_lose():
    games, found = two_player_endings(8), 0
    for seed in range(8):
        actions = make_search(16, 32, exact=10_000, gumbel_scale=3.0).run(games, np.random.default_rng(seed)).actions
        for index in range(len(games)):
            game = Game(games[index : index + 1])
            truth = np.array(winners_of_moves(game.records, legal := game.legal_actions()))
            if game.to_move in truth:
                assert truth[legal == actions[index]] == game.to_move
                found += 1
    assert found > 8


def test_an_untried_action_is_played_if_all_tried_ones_lose():
    """With two playouts, two actions are tried."""
    games, found = two_player_endings(8), 0
    for seed in range(20):
        for scale in (0.0, 1.0):
            search = make_search(1, 2, exact=10_000, gumbel_scale=scale)
            result = search.run(games, np.random.default_rng(seed))
            for index, action in enumerate(result.actions.tolist()):
                game = Game(games[index : index + 1])
                winners = winners_of_moves(game.records, moves := game.legal_actions())
                truth = dict(zip(moves.tolist(), winners, strict=True))
                tried = np.flatnonzero(result.visits[index]).tolist()
                assert action in truth
                if all(truth[one] != game.to_move for one in tried) and len(tried) < len(truth):
                    assert action not in tried
                    found += 1
    assert found > 20


def test_proofs_are_for_two_players():
    more = games_of_more_players()
    exact, plain = (make_search(exact=nodes).run(more, np.random.default_rng(0)) for nodes in (20, 0))
    assert all((first == second).all() for first, second in zip(exact, plain, strict=True))


# The network's policy and values


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_policy_is_followed_where_nothing_else_is_known(players):
    game = random_position(Options(players), 5, 12)
    evaluate, chosen = policy_on_one_action(game, 0.9, 1 / players)
    result = GuidedSearch(evaluate, 1, 12).run(game.records, np.random.default_rng(0))
    assert result.actions[0] == chosen


@pytest.mark.parametrize("players", [2, 3, 4])
def test_values_count_like_playouts_for_the_right_seat(players):
    """The network predicts a win after one slide, a loss after the others, and equal values elsewhere."""
    game = position_after(Options(players), 3, Phase.MOVEMENT, 2)
    legal, seat = game.legal_actions().tolist(), game.to_move
    wanted, predicted_winner = legal[-1], {}
    for action in legal:
        child = game.copy()
        child.play(action)
        predicted_winner[child.records.tobytes()] = seat if action == wanted else (seat + 1) % players

    def evaluate(games):
        values = np.tile((np.arange(4) < players).astype(np.float32) / players, (len(games), 1))
        for row, record in enumerate(games):
            if record.tobytes() in predicted_winner:
                values[row] = np.arange(4) == (predicted_winner[record.tobytes()] - record.to_move) % players
        return np.full((len(games), 122), -3, np.float32), values

    result = GuidedSearch(evaluate, 2 * len(legal), 4).run(game.records, np.random.default_rng(0))
    assert result.actions[0] == wanted


@pytest.mark.parametrize(("players", "winner"), [(2, 0), (3, 2), (4, 1)])
def test_values_are_reported_by_absolute_seat(players, winner):
    """The network always predicts a win of one seat, and there are few playouts."""

    def evaluate(games):
        values = np.arange(4) == (winner - games["to_move"].astype(int)[:, None]) % players
        return np.zeros((len(games), 122), np.float32), values.astype(np.float32)

    game = position_after(Options(players), 3, Phase.MOVEMENT, 2)
    values = GuidedSearch(evaluate, 4, 2).run(game.records, np.random.default_rng(0)).values[0]
    assert values.sum() == pytest.approx(1)
    assert values[winner] >= 4 * VIRTUAL_VISITS / (4 * VIRTUAL_VISITS + 4 * 2)


def test_each_position_is_evaluated_once_and_all_playouts_count():
    games, asked = mixed_games(), []

    def evaluate(positions):
        asked.extend(record.tobytes() for record in positions)
        return network_evaluate(untrained())(positions)

    before = games.tobytes()
    result = GuidedSearch(evaluate, 6, 10).run(games, np.random.default_rng(0))
    assert games.tobytes() == before
    for index in range(len(games)):
        game = Game(games[index : index + 1])
        assert set(result.visits[index].nonzero()[0]) <= set(game.legal_actions())
        evaluated, rest = divmod(int(result.visits[index].sum()) - 60, VIRTUAL_VISITS)
        assert rest == 0
        assert 0 <= evaluated <= 6
        assert result.actions[index] in game.legal_actions()
    assert len(asked) <= 6 * len(games)
    assert set(asked) >= {record.tobytes() for record in games if record.auto_pass}
    asked.clear()
    one = position_after(Options(3), 1, Phase.MOVEMENT, 0)
    GuidedSearch(evaluate, 12, 16).run(one.records, np.random.default_rng(0))
    assert len(asked) == len(set(asked)) == 12


def test_a_forced_pass_is_searched_through():
    result = make_search().run(forced_pass().records, np.random.default_rng(0))
    assert result.actions[0] == PASS
    assert result.visits[0, PASS] == result.visits[0].sum() > 0


# Randomness and batches


def test_a_batch_is_searched_like_each_game_alone():
    together, each = searched_together_and_alone(make_search())
    for i, alone in enumerate(each):
        assert alone.actions[0] == together.actions[i]
        assert (alone.visits[0] == together.visits[i]).all()


def test_threads_and_memory_change_nothing(monkeypatch):
    games = mixed_games()
    one, two = (make_search(threads=threads, exact=5).run(games, np.random.default_rng(3)) for threads in (1, 2))
    monkeypatch.setattr(guided, "MAX_TREE_BYTES", 1)
    parts = make_search(exact=5).run(games, np.random.default_rng(3))
    for other in (two, parts):
        assert (one.actions == other.actions).all()
        assert (one.visits == other.visits).all()
        np.testing.assert_allclose(one.values, other.values, rtol=1e-5)  # torch may round differently


def test_noise_draws_by_visits():
    game = position_after(Options(2), 0, Phase.MOVEMENT, 20)
    games, rng = np.repeat(game.records, 3000), np.random.default_rng(0)
    result = make_search(2, 20, gumbel_scale=1.0).run(games, rng)
    drawn = np.bincount(result.actions, minlength=122) / len(games)
    expected = (result.visits / result.visits.sum(1, keepdims=True)).mean(0)
    np.testing.assert_allclose(drawn, expected, atol=0.04)
    noiseless = make_search(2, 20).run(games[:50], np.random.default_rng(1))
    assert (noiseless.visits[np.arange(50), noiseless.actions] == noiseless.visits.max(1)).all()


@pytest.mark.parametrize(
    "options", [{"simulations": 0}, {"playouts": 0}, {"playouts": 1 << 23}, {"exact": -1}, {"gumbel_scale": -1}]
)
def test_error_names_the_wrong_option(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        make_search(**options)


# The agent


def test_the_agent_slides_by_guided_search():
    games = mixed_games()
    moving = games[games["phase"] == MOVEMENT]
    agent = NetAgent(untrained(), SearchSettings(4, playouts=4))
    expected = make_search(4, 8, exact=200).run(moving, np.random.default_rng(1)).actions
    assert agent.act(moving, np.random.default_rng(1)).tolist() == expected.tolist()
