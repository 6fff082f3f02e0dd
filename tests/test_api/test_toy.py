"""Tests that a game with only the required functions works with environments, records, search, agents and the arena."""

import io

import numpy as np
import pytest
from toy.tictactoe import DEFINITION, Game

from ninetka_agents.agent import RandomAgent, make_agent
from ninetka_agents.conformance import evaluate_uniformly
from ninetka_agents.one_seat import one_seat, one_seat_vector
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.uct import search
from ninetka_env.api.aec import GameAEC, wrapped
from ninetka_env.api.one_seat import OneSeatEnv
from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.api.records import GameRecord
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import load_variant
from ninetka_train.judging.arena import play_games

VARIANT = DEFINITION.variant()
WON, DREW = (0, 3, 1, 4, 2), (0, 1, 2, 4, 3, 5, 7, 6, 8)
"""Actions of a game that seat 0 wins, and of a drawn game."""


def after(*actions):
    game = Game.new()
    for action in actions:
        game.play(action)
    return game


def test_the_rules():
    game = after(*WON)
    assert (game.is_over, game.winner(), game.scores().tolist()) == (True, 0, [1, 0])
    assert [game.returns(reward).tolist() for reward in ("win", "score")] == [[1, -1], [1, -1]]
    game = after(*DREW)
    assert (game.is_over, game.winner(), game.scores().tolist()) == (True, DRAWN, [0, 0])
    assert [game.returns(reward).tolist() for reward in ("win", "score")] == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match=r"action 4 \(b2\) is illegal for seat 1: legal are a1, b1,"):
        after(4).play(4)


def test_it_is_loaded_by_name():
    assert load_variant("tictactoe") == VARIANT
    assert VARIANT.spec == "tictactoe"


# Environments


def test_pettingzoo():
    env = wrapped(GameAEC(VARIANT))
    env.reset(seed=0)
    for action in DREW:
        observation, reward, terminated, _, _ = env.last()
        assert (reward, terminated, observation["action_mask"][action]) == (0, False, 1)
        env.step(action)
    assert env.rewards == {"player_0": 0, "player_1": 0}
    assert env.terminations == {"player_0": True, "player_1": True}


def test_batches():
    batch = GameVectorEnv(4, VARIANT, num_threads=1)
    batch.reset(seed=0)
    for ply, action in enumerate(DREW):
        _, rewards, terminated = batch.step([*[action] * 3, (*WON, *DREW)[ply]])
        assert terminated.tolist() == [*[ply == 8] * 3, ply == 4]
        assert rewards[3].tolist() == ([1, -1] if ply == 4 else [0, 0])
        assert batch.final_winner.tolist() == [*[UNFINISHED if ply < 8 else DRAWN] * 3, UNFINISHED if ply < 4 else 0]


@pytest.mark.parametrize(
    "make", [lambda: OneSeatEnv(VARIANT, 0, RandomAgent()), lambda: one_seat("tictactoe", 0, "random")]
)
def test_one_seat(make):
    env, paid = make(), []
    for seed in range(20):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            _, reward, over, _, info = env.step(int(info["action_mask"].argmax()))
        paid.append(reward)
    assert {1, -1} <= set(paid) <= {1, 0, -1}


def test_one_seat_in_batches_against_the_default_opponent():
    env = one_seat_vector(3, "tictactoe")
    env.reset(seed=0)
    for _ in range(5):
        env.step(env.action_masks().argmax(axis=1))


def test_records():
    drawn = GameRecord.of(DREW, VARIANT, tags={"crosses": "mcts", "noughts": "random"})
    assert drawn.winner == DRAWN
    file = io.StringIO()
    assert write_records(file, [drawn, GameRecord.of(WON, VARIANT)]) == 2
    file.seek(0)
    assert list(read_records(file)) == [drawn, GameRecord.of(WON, VARIANT)]
    assert "moves: a1 b1 c1 b2 a2 c2 b3 a3 c3\nresult: crosses 0, noughts 0; drawn\n" in file.getvalue()
    assert "; crosses wins" in file.getvalue()


# Agents


@pytest.mark.exhaustive
def test_searches_find_the_win_and_the_only_defence():
    guided = GuidedSearch(evaluate_uniformly, simulations=16, playouts=64)
    gumbel = GumbelSearch(evaluate_uniformly, GumbelOptions(simulations=512, gumbel_scale=0.0, playouts=8))
    for actions, best in (((0, 3, 1, 4), 2), ((0, 4, 1), 2), ((4, 0, 8, 2), 1)):
        game, rng = after(*actions), np.random.default_rng(0)
        assert search(game, 2000, rng).visits.argmax() == best
        assert gumbel.act(game.records, rng).tolist() == [best]
        assert guided.act(game.records, rng).tolist() == [best]


def test_a_draw_is_worth_half_to_each_seat():
    found = search(after(*DREW[:-1]), 100, np.random.default_rng(0))
    assert found.wins[DREW[-1]].tolist() == [0.5, 0.5]
    found = search(Game.new(), 2000, np.random.default_rng(0))
    np.testing.assert_allclose(found.wins.sum(axis=1), 1, rtol=1e-5)


def test_mcts_never_loses_to_random_and_the_arena_counts_draws_as_half():
    agents = [make_agent(spec, "tictactoe") for spec in ("mcts:simulations=2000,threads=1", "random")]
    results = play_games(agents, num_games=200, game="tictactoe")
    assert len(results.winners) == 200
    assert not (results.winning_agents == 1).any()
    draws = results.winners == DRAWN
    assert 0 < draws.sum() < 40
    assert results.shares[draws].tolist() == [[0.5, 0.5]] * int(draws.sum())
    assert results.shares[~draws].tolist() == [[1, 0]] * int((~draws).sum())


def test_two_mcts_draw():
    agents = [make_agent("mcts:simulations=2000,threads=1", "tictactoe")] * 2
    results = play_games(agents, num_games=20, game="tictactoe")
    assert (results.winners == DRAWN).all()
    assert (results.shares == 0.5).all()


def test_agents_of_another_game_are_refused_by_name():
    with pytest.raises(ValueError, match="agent 'maxn' plays ninetka, not tictactoe: known are mcts, random"):
        make_agent("maxn", "tictactoe")
