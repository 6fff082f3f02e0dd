"""Test Gumbel search: strength against exact solutions, batches, noise and legality."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from ninetka.brute import winners_of_moves
from ninetka.positions import Options, position_after, random_position, random_positions

from ninetka_agents.agent import PerGameGenerator, game_streams
from ninetka_agents.net_agent import NetAgent, SearchSettings, network_evaluate
from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.network import Network, NetworkConfig
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.selection import halving_schedule
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import MOVEMENT, STATE_DTYPE, Phase

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SIMULATIONS = 24


@functools.cache
def untrained() -> Network:
    torch.manual_seed(0)
    return Network(NetworkConfig(width=16, blocks=1)).eval()


def make_search(simulations=SIMULATIONS, threads=1, playouts=0, **options) -> GumbelSearch:
    options = GumbelOptions(simulations, playouts=playouts, **options)
    return GumbelSearch(network_evaluate(untrained()), options, threads)


def records_of(games: list[Game]) -> StateArray:
    return np.concatenate([game.records for game in games])


@functools.cache
def mixed_games() -> StateArray:
    """Return unfinished positions of all phases and numbers of players, with and without automatic passes."""
    plies = [0, 3, 8, 9, 10, 11, 20, 44, 45, 55, 60]
    games = [
        random_position(Options(players, auto_pass=auto_pass), 7 * ply + players, ply)
        for players in (2, 3, 4)
        for auto_pass in (True, False)
        for ply in plies
    ]
    return records_of([game for game in games if not game.is_over])


@functools.cache
def forced_pass() -> Game:
    for seed in range(100):
        for plies in range(50, 80):
            game = random_position(Options(3, auto_pass=False), seed, plies)
            if game.legal_actions().tolist() == [PASS]:
                return game
    raise AssertionError("no forced pass found")


# Exact solutions by outcome


def after(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def winners(game: Game) -> frozenset[int]:
    """Return the possible winners. A seat that can force a win does so; all other seats may play any action."""
    if game.is_over:
        return frozenset([game.winner()])
    children = [winners(after(game, int(action))) for action in game.legal_actions()]
    sure = frozenset([game.to_move])
    return sure if sure in children else frozenset().union(*children)


def negamax_value(game: Game) -> int:
    """Return 1 if negamax expects the seat to move to win, otherwise -1.

    Negamax is wrong for 9tka: a seat may move twice in a row, and there may be more than two seats.
    """
    if game.is_over:
        return 1 if game.winner() == game.to_move else -1
    return max(-negamax_value(after(game, int(action))) for action in game.legal_actions())


class Ending(NamedTuple):
    """A position in which some actions certainly win and all others certainly lose."""

    game: Game
    best: list[int]
    moves_twice: bool  # after each action in `best`, the same seat moves again
    misleads_negamax: bool  # `negamax_value` prefers a losing action


def solve(game: Game) -> Ending | None:
    """Return the position as an `Ending`; None if its actions are not divided into winning and losing ones."""
    actions, seat = game.legal_actions().tolist(), game.to_move
    outcomes = [winners(after(game, action)) for action in actions]
    best = [action for action, outcome in zip(actions, outcomes, strict=True) if outcome == {seat}]
    if not best or sum(seat in outcome for outcome in outcomes) != len(best) or len(best) == len(actions):
        return None
    nexts = [after(game, action) for action in best]
    negamax = {action: -negamax_value(after(game, action)) for action in actions}
    misleads = max(negamax.values()) > max(negamax[action] for action in best)
    return Ending(game, best, all(not one.is_over and one.to_move == seat for one in nexts), misleads)


@functools.cache
def ending_of(players: int, seed: int, stones: int) -> Ending | None:
    """Solve the first position of a random game with at most `stones` movable stones; return None as `solve` does."""
    for game in random_positions(Options(players), seed):
        if game.phase == Phase.MOVEMENT and game.movable().sum() <= stones:
            return None if game.is_over else solve(game.copy())
    raise AssertionError("no such position")


ENDINGS = {
    2: [(3, 6), (16, 6), (65, 6), (125, 6), (134, 6), (148, 6), (386, 4), (489, 6), (761, 4)],
    3: [(9, 6), (21, 6), (118, 6), (172, 6), (222, 6), (289, 6), (350, 4), (485, 6), (635, 6)],
    4: [(7, 6), (46, 6), (56, 4), (424, 4), (609, 6), (659, 6), (748, 6)],
}
"""Arguments (seed, stones) of `ending_of` that give an `Ending`, by number of players."""


def endings(players: int) -> list[Ending]:
    return [ending for seed, stones in ENDINGS[players] if (ending := ending_of(players, seed, stones))]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_untrained_network_finds_the_slides_that_win(players):
    found = endings(players)
    assert len(found) == len(ENDINGS[players])
    result = make_search(256, gumbel_scale=0).run(
        records_of([ending.game for ending in found]), np.random.default_rng(0)
    )
    for ending, action, policy, values in zip(found, result.actions, result.policy, result.values, strict=True):
        assert action in ending.best
        assert policy[ending.best].sum() > 0.9
        assert values[ending.game.to_move] > 0.7


def test_the_endings_include_hard_cases():
    assert any(ending.moves_twice for ending in endings(2))
    for players in (2, 3, 4):
        assert any(ending.misleads_negamax for ending in endings(players))
    assert any(ending.moves_twice for ending in endings(3))


# With proofs


@functools.cache
def two_player_endings(stones: int) -> StateArray:
    """Return the first positions of random games with at most `stones` movable stones."""
    found = []
    for seed in range(16):
        for game in random_positions(Options(2, auto_pass=bool(seed % 2)), seed):
            if game.phase == Phase.MOVEMENT and game.movable().sum() <= stones:
                found += [] if game.is_over else [game.copy()]
                break
    return records_of(found)


def test_proofs_find_the_winner_after_each_slide():
    """With one simulation and one successful proof per slide, the result is exact."""
    games, asked = two_player_endings(12), []

    def count(positions):
        asked.append(len(positions))
        return network_evaluate(untrained())(positions)

    options = GumbelOptions(18, considered=18, gumbel_scale=0, playouts=0, exact=10_000)
    result = GumbelSearch(count, options).run(games, np.random.default_rng(0))
    assert asked == [len(games)]  # the roots are evaluated, but no leaf
    for index in range(len(games)):
        game = Game(games[index : index + 1])
        legal = game.legal_actions()
        truth = np.array(winners_of_moves(game.records, legal))
        assert set(result.visits[index].nonzero()[0]) == set(legal)
        if game.to_move in truth:
            assert truth[legal == result.actions[index]] == game.to_move
        if len(legal) == 1 or (truth == truth[0]).all():
            assert result.values[index, truth[0]] == pytest.approx(1)


def test_proofs_help_with_any_budget():
    games = two_player_endings(8)
    for exact in (1, 20):
        result = make_search(64, gumbel_scale=0, exact=exact).run(games, np.random.default_rng(0))
        assert (result.visits.sum(1) == 64).all()
        for index in range(len(games)):
            game = Game(games[index : index + 1])
            truth = np.array(winners_of_moves(game.records, legal := game.legal_actions()))
            assert game.to_move not in truth or truth[legal == result.actions[index]] == game.to_move


def test_proofs_depend_on_nothing_but_the_game():
    games = records_of([position_after(Options(2), seed, Phase.MOVEMENT, 8) for seed in range(20)])
    search = make_search(exact=20)
    streams = game_streams(games, np.random.default_rng(0))
    one = search.run(games, PerGameGenerator(streams.copy()))
    two = make_search(threads=2, exact=20).run(games, PerGameGenerator(streams.copy()))
    assert all((first == second).all() for first, second in zip(one, two, strict=True))
    plain = make_search().run(games, PerGameGenerator(streams.copy()))
    assert (one.values != plain.values).any()
    for i in (0, 7, 19):
        alone = search.run(games[i : i + 1], PerGameGenerator(streams[i : i + 1].copy()))
        assert (alone.visits[0] == one.visits[i]).all()
    more = games_of_more_players()
    exact, plain = (make_search(exact=nodes).run(more, np.random.default_rng(0)) for nodes in (20, 0))
    assert all((first == second).all() for first, second in zip(exact, plain, strict=True))


def games_of_more_players() -> StateArray:
    games = mixed_games()
    return games[games["num_players"] > 2]


# Invariants


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_only_legal_actions_are_visited_and_every_simulation_counts(scale):
    games = mixed_games()
    assert {int(phase) for phase in games["phase"]} == {0, 1, 2}
    before = games.tobytes()
    result = make_search(gumbel_scale=scale).run(games, np.random.default_rng(0))
    masks = np.array([Game(games[i : i + 1]).legal_mask() for i in range(len(games))])
    assert games.tobytes() == before
    assert (result.visits.sum(1) == SIMULATIONS).all()
    assert masks[np.arange(len(games)), result.actions].all()
    for by_action in (result.visits, result.policy, result.prior):
        assert not by_action[masks == 0].any()
    assert (result.visits[np.arange(len(games)), result.actions] == result.visits.max(1)).all()
    for chances in (result.policy, result.prior, result.values):
        np.testing.assert_allclose(chances.sum(1), 1, atol=1e-5)
    for values, players in zip(result.values, games["num_players"], strict=True):
        assert not values[players:].any()


def test_types_and_shapes():
    result = make_search(4).run(mixed_games()[:3], np.random.default_rng(0))
    kinds = {name: (array.shape, array.dtype) for name, array in result._asdict().items()}
    assert kinds == {
        "actions": ((3,), np.int64),
        "policy": ((3, 122), np.float32),
        "values": ((3, 4), np.float32),
        "visits": ((3, 122), np.int64),
        "prior": ((3, 122), np.float32),
    }
    assert make_search(4).run(np.zeros(0, STATE_DTYPE), np.random.default_rng(0)).actions.shape == (0,)


def test_the_prior_is_the_policy_of_the_network():
    games = mixed_games()
    logits, values = network_evaluate(untrained())(games)
    result = make_search(1, gumbel_scale=0).run(games, np.random.default_rng(0))
    passing = result.actions == PASS
    np.testing.assert_allclose(result.prior[~passing], np.exp(logits[~passing]), atol=1e-6)
    assert np.isfinite(values).all()
    favourite = int(np.argmax(logits[0]))
    assert result.actions[0] == favourite  # without noise, the first simulation goes to the most probable action


def test_values_are_reported_by_absolute_seat():
    def evaluate(games):  # win probabilities of the absolute seats are 1/6, 2/6, 3/6
        seats = (games["to_move"][:, None].astype(int) + np.arange(4)) % 3
        values = np.where(np.arange(4) < 3, (seats + 1) / 6, 0)
        return np.full((len(games), 122), -3, np.float32), values.astype(np.float32)

    games = records_of([position_after(Options(3), 5, Phase.PLACEMENT, plies) for plies in range(3)])
    assert games["to_move"].tolist() == [0, 1, 2]
    result = GumbelSearch(evaluate, GumbelOptions(40, playouts=0)).run(games, np.random.default_rng(0))
    np.testing.assert_allclose(result.values, np.tile([1 / 6, 2 / 6, 3 / 6, 0], (3, 1)), atol=1e-6)


def test_a_forced_pass_is_searched_through():
    game = forced_pass()
    result = make_search().run(np.repeat(game.records, 2), np.random.default_rng(0))
    assert result.actions.tolist() == [PASS, PASS]
    assert (result.visits[:, PASS] == SIMULATIONS).all()
    for shares in (result.policy, result.prior):
        assert (shares[:, PASS] == 1).all()
        assert (shares.sum(axis=1) == 1).all()
    onward = make_search().run(after(game, PASS).records, np.random.default_rng(0))
    if onward.actions[0] != PASS:
        np.testing.assert_allclose(result.values[:1], onward.values, atol=1e-6)


# Randomness and batches


def searched_together_and_alone(search):
    """Search `mixed_games` in one batch, and each game alone with the same random stream; return both results."""
    games = mixed_games()
    streams = game_streams(games, np.random.default_rng(0))
    parts = [slice(i, i + 1) for i in range(len(games))]
    together = search.run(games, PerGameGenerator(streams.copy()))
    return together, [search.run(games[part], PerGameGenerator(streams[part].copy())) for part in parts]


def test_a_batch_is_searched_like_each_game_alone():
    together, each = searched_together_and_alone(make_search(playouts=3))
    for i, alone in enumerate(each):
        assert alone.actions[0] == together.actions[i]
        assert (alone.visits[0] == together.visits[i]).all()
        np.testing.assert_allclose(alone.policy[0], together.policy[i], atol=1e-3)
        np.testing.assert_allclose(alone.values[0], together.values[i], atol=1e-4)


def test_threads_change_nothing():
    games = mixed_games()
    one, two = (make_search(threads=threads, playouts=3).run(games, np.random.default_rng(3)) for threads in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert (first == second).all()


def test_randomness_comes_only_from_the_generator():
    games, search = mixed_games(), make_search()
    first, again, other = (search.run(games, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all((one == two).all() for one, two in zip(first, again, strict=True))
    assert (first.visits != other.visits).any()
    noiseless = make_search(gumbel_scale=0)
    rng = np.random.default_rng(1)
    assert (noiseless.run(games, rng).visits == noiseless.run(games, np.random.default_rng(2)).visits).all()
    assert rng.random() == np.random.default_rng(1).random()


def wins_at_random(game: Game, playouts: int) -> np.ndarray:
    """Return each seat's share of wins in random playouts, (4,)."""
    rng, wins = np.random.default_rng(0), np.zeros(4)
    for _ in range(playouts):
        playing = game.copy()
        while not playing.is_over:
            playing.play(int(rng.choice(playing.legal_actions())))
        wins[playing.winner()] += 1 / playouts
    return wins


def only_move_before_a_forced_win(players: int) -> tuple[Game, int]:
    """Return a position with one legal action, after which a seat can force a win that random playouts often miss."""
    for seed in range(2000):
        for game in random_positions(Options(players), seed):
            if game.phase == Phase.MOVEMENT and len(game.legal_actions()) == 1 and 5 < game.movable().sum() < 9:
                after = game.copy()
                after.play(int(game.legal_actions()[0]))
                seat = after.to_move
                if not after.is_over and can_force_win(after, seat) and wins_at_random(after, 200)[seat] < 0.7:
                    return game, seat
    raise AssertionError("no such position")


@pytest.mark.slow
@pytest.mark.parametrize("players", [2, 3, 4])
def test_playouts_are_mixed_into_the_value(players):
    game, winner = only_move_before_a_forced_win(players)

    def surely_the_mover(games):
        return np.full((len(games), 122), -3, np.float32), np.tile(np.float32([1, 0, 0, 0]), (len(games), 1))

    def values(share):
        options = GumbelOptions(1, playouts=4000, playout_share=share)
        return GumbelSearch(surely_the_mover, options).run(game.records, np.random.default_rng(0)).values[0]

    assert values(1.0)[winner] > 0.9
    np.testing.assert_allclose(values(0.25), 0.75 * values(0.0) + 0.25 * values(1.0), atol=1e-6)


def test_gumbel_noise_samples_the_policy():
    """With one simulation, the Gumbel-max trick samples from the network's policy."""
    game = position_after(Options(2), 0, Phase.MOVEMENT, 20)
    games = np.repeat(game.records, 4000)
    result = make_search(1).run(games, np.random.default_rng(0))
    shares = np.bincount(result.actions, minlength=122) / len(games)
    np.testing.assert_allclose(shares, result.prior[0], atol=0.04)


@pytest.mark.parametrize(
    ("considered", "simulations", "visits"),
    [(1, 5, [5]), (2, 8, [4, 4]), (4, 16, [6, 6, 2, 2]), (4, 3, [1, 1, 1, 0]), (16, 64, [15, 15, 7, 7] + [3] * 4)],
)
def test_sequential_halving_by_hand(considered, simulations, visits):
    spent = [0] * considered
    for wanted in halving_schedule(16, simulations)[considered]:
        spent[spent.index(wanted)] += 1  # the actions are in descending order of their scores
    assert spent[: len(visits)] == visits
    assert sum(spent) == simulations


def test_few_actions_are_considered():
    games = records_of([Options(2).new_game(seed) for seed in range(4)])
    result = make_search(32, considered=4).run(games, np.random.default_rng(0))
    assert ((result.visits > 0).sum(1) == 4).all()


@pytest.mark.parametrize(
    "options",
    [
        {"simulations": 0},
        {"considered": 0},
        {"gumbel_scale": -1},
        {"value_scale": float("nan")},
        {"playouts": -1},
        {"exact": -1},
        {"playout_share": 1.5},
    ],
)
def test_error_names_the_wrong_option(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        GumbelOptions(**options)


# The agent `net`


def test_the_agent_searches_without_noise():
    games = mixed_games()
    games = games[games["phase"] != MOVEMENT]
    agent = NetAgent(untrained(), SearchSettings(simulations=SIMULATIONS))
    expected = make_search(playouts=128, gumbel_scale=0).run(games, np.random.default_rng(1)).actions.tolist()
    assert agent.act(games, np.random.default_rng(1)).tolist() == expected
    noisy = NetAgent(untrained(), SearchSettings(temperature=1.0, simulations=SIMULATIONS))
    assert noisy.act(games, np.random.default_rng(1)).tolist() != expected
    with pytest.raises(ValueError, match="simulations=-1"):
        NetAgent(untrained(), SearchSettings(simulations=-1))


def test_net_agent_uses_proofs_in_its_search():
    games = two_player_endings(12)
    agent = NetAgent(untrained(), SearchSettings(simulations=SIMULATIONS, playouts=0, exact=50))
    result = make_search(gumbel_scale=0, exact=50).run(games, np.random.default_rng(1))
    assert agent.act(games, np.random.default_rng(1)).tolist() == result.actions.tolist()
    with pytest.raises(ValueError, match="needs simulations"):
        NetAgent(untrained(), SearchSettings(exact=50))


@pytest.mark.parametrize(("playouts", "default"), [(4, 200), (0, 0)])
def test_net_agent_uses_proofs_with_playouts_by_default(playouts, default):
    games = two_player_endings(24)

    def actions(**exact):
        agent = NetAgent(untrained(), SearchSettings(simulations=SIMULATIONS, playouts=playouts, **exact))
        return agent.act(games, np.random.default_rng(1)).tolist()

    assert actions() == actions(exact=default)
    assert actions() != actions(exact=200 - default)
