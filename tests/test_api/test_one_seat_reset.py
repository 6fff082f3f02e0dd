"""Tests of `reset` of the one-seat environments: starting positions, seats and seeds, single and vectorised."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_api.one_seat_helpers import (
    IDS,
    ChoosingAgent,
    FirstAgent,
    actions_for,
    assert_equal,
    game_of,
    make,
    make_vec,
    masked,
)

from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.one_seat import OneSeatVectorEnv
from ninetka_env.core.registry import load_variant


def variant_of(env):
    return env._batch.variant


def position_after(env, plies, seed=0):
    """Return a game of the environment's variant after some random actions, fewer if the game would be over."""
    rng, game = np.random.default_rng(seed), variant_of(env).game_class.start(variant_of(env), seed)
    for _ in range(plies):
        before = game.copy()
        game.play(masked(rng, game.legal_mask()))
        if game.is_over:
            return before
    return game


def after_opponents(game, seat):
    """Return the position at the learner's turn if all other seats play the lowest legal action."""
    game = game.copy()
    while not game.is_over and game.to_move != seat:
        game.play(game.legal_actions()[0])
    return game


def spellings(game):
    return str(game), game, game.records, game.records[0]


# Starting positions


@pytest.mark.parametrize("name", IDS)
def test_a_game_starts_from_a_position_and_later_games_start_as_always(name):
    env, twin = make(name, opponents=FirstAgent(), seat=0), make(name, opponents=FirstAgent(), seat=0)
    for plies in (1, 4, 5, 9):
        game = position_after(env, plies, seed=plies)
        expected = after_opponents(game, 0)
        for position in spellings(game):
            seen, info = env.reset(seed=plies, options={"position": position})
            assert str(env.game) == str(expected)
            assert env.observation_space.contains(seen)
            assert (info["action_mask"] == expected.legal_mask()).all()
            assert (info["seat"], env.game.to_move) == (0, 0)
        env.step(masked(np.random.default_rng(0), info["action_mask"]))
        assert env.game.ply > expected.ply
        assert str(game) == str(position_after(env, plies, seed=plies))  # the user's game has not changed
        twin.reset(seed=plies)
        env.reset(seed=plies)
        assert str(env.game) == str(twin.game)


@pytest.mark.parametrize("name", IDS)
def test_a_seat_is_for_one_game(name):
    env = make(name, opponents=FirstAgent(), seat=0)
    game = position_after(env, 5)
    for seat in range(game.num_players):
        for options in ({"seat": seat}, {"seat": np.int8(seat), "position": game}):
            start = game if "position" in options else variant_of(env).game_class.start(variant_of(env), 0)
            _, info = env.reset(seed=0, options=options)
            assert (info["seat"], env.seat, env.game.to_move) == (seat, seat, seat)
            assert str(env.game) == str(after_opponents(start, seat))
            assert env.reset()[1]["seat"] == 0
    env = make(name, opponents="random", seat=1)
    assert {env.reset(seed=seed, options={"seat": "random"})[1]["seat"] for seed in range(30)} == set(
        range(game.num_players)
    )


@pytest.mark.parametrize("name", IDS)
def test_many_games_start_from_positions_and_seats(name):
    envs = make_vec(name, 4, opponents=FirstAgent(), seat=0)
    games = [position_after(envs, plies, seed=plies) for plies in (1, 4, 5, 9)]
    states = np.concatenate([game.records for game in games])
    seats = np.array([1, 0, variant_of(envs).num_players - 1, 1])
    for position in (states, games, [str(game) for game in games]):
        seen, infos = envs.reset(options={"position": position, "seat": seats})
        assert (infos["seat"] == seats).all()
        assert (envs.seats == seats).all()
        assert (envs.games == envs._batch.games).all()
        for index, (game, seat) in enumerate(zip(games, seats, strict=True)):
            expected = after_opponents(game, seat)
            assert str(game_of(envs._batch.games, index)) == str(expected)
            assert (infos["action_mask"][index] == expected.legal_mask()).all()
        assert envs.observation_space.contains(seen)
    for position in spellings(games[1]):
        envs.reset(options={"position": position})
        for index in range(4):
            assert str(game_of(envs._batch.games, index)) == str(after_opponents(games[1], 0))
    assert (envs.reset()[1]["seat"] == 0).all()


@pytest.mark.parametrize("name", IDS)
def test_a_curriculum_restarts_some_games_from_positions(name):
    envs = make_vec(name, 4, opponents=FirstAgent(), seat=0)
    games = [position_after(envs, plies) for plies in (3, 4, 5, 6)]
    envs.reset(seed=0)
    before, where = envs._batch.games.copy(), np.array([False, True, False, True])
    broken = np.concatenate([game.records for game in games])
    broken[~where] = np.zeros(1, broken.dtype)  # positions of games that do not restart are not read
    _, infos = envs.reset(options={"position": broken, "reset_mask": where, "seat": [0, 1, 0, 1]})
    assert (infos["_action_mask"] == where).all()
    assert (infos["seat"] == [0, 1, 0, 1]).all()
    for index in range(4):
        expected = after_opponents(games[index], 1) if where[index] else game_of(before, index)
        assert str(game_of(envs._batch.games, index)) == str(expected)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_games_that_restart_automatically_use_the_seat_of_the_constructor(mode):
    envs = make_vec("Go", 3, opponents="random", seat=1, autoreset_mode=mode)
    envs.reset(seed=0, options={"seat": [0, 1, 0], "position": position_after(envs, 3)})
    rng, seats = np.random.default_rng(0), {0: [], 1: [], 2: []}
    for _ in range(25):
        over = ~envs.action_masks().any(axis=1)
        if mode is AutoresetMode.DISABLED and over.any():
            infos = envs.reset(options={"reset_mask": over})[1]
        else:
            *_, infos = envs.step(actions_for(envs, rng))
        for index, seat in enumerate(infos["seat"].tolist()):
            seats[index].append(seat)
    for index, first in enumerate((0, 1, 0)):
        assert (seats[index][0], seats[index][-1]) == (first, 1)


@pytest.mark.parametrize("name", IDS)
def test_a_position_from_which_the_opponents_end_the_game_is_refused(name):
    env = make(name, opponents=FirstAgent(), seat=0)
    game = variant_of(env).game_class.start(variant_of(env), 0)
    while not game.is_over:
        before = game.copy()
        game.play(game.legal_actions()[0])
    learner = (before.to_move + 1) % before.num_players
    env.reset(seed=0)
    envs = make_vec(name, 2, opponents=FirstAgent(), seat=0)
    envs.reset(seed=0)
    for one, label in ((env, "^"), (envs, "^game 1: ")):
        kept, text = one._batch.games.tobytes(), one.action_masks().tobytes()
        position = before if one is env else [position_after(env, 2), before]
        with pytest.raises(ValueError, match=rf"{label}the opponents end it from this position .*seat {learner}, can"):
            one.reset(options={"position": position, "seat": learner})
        assert (one._batch.games.tobytes(), one.action_masks().tobytes()) == (kept, text)
        one.reset(options={"position": before, "seat": before.to_move})  # the learner itself may end it


def test_wrong_positions_and_seats_are_named_and_change_nothing():
    env, envs = make("Go", opponents="random"), make_vec("Go", 2, opponents="random")
    env.reset(seed=0)
    envs.reset(seed=0)
    kept = env._batch.games.tobytes(), envs._batch.games.tobytes()
    over = go_v0.Game.new(size=5, max_plies=16)
    over.resign()
    for position in ("no board", 3, kropki_v0.Game.new(), ninetka_v0.Game.new().records, go_v0.Game.new(size=7), over):
        for one in (env, envs):
            with pytest.raises(ValueError, match=r"^position"):
                one.reset(seed=1, options={"position": position})
    for seat in (2, -1, True, "first", [[0]], 1.0):
        for one in (env, envs):
            with pytest.raises(ValueError, match=r"^seat"):
                one.reset(seed=1, options={"seat": seat})
    for wrong in ([0], [0, 1, 0], np.zeros((2, 2)), [0, 2]):
        with pytest.raises(ValueError, match=r"^seat"):
            envs.reset(seed=1, options={"seat": wrong})
    with pytest.raises(ValueError, match="a sequence of 3 is given, expected one position, or 2 of them, one per game"):
        envs.reset(options={"position": np.repeat(go_v0.Game.new(size=5, max_plies=16).records, 3)})
    for one in (env, envs):
        with pytest.raises(TypeError, match="options of reset: expected a dict or None"):
            one.reset(options=3)
    assert kept == (env._batch.games.tobytes(), envs._batch.games.tobytes())


def test_unknown_options_are_warned_of_once():
    for one in (make("Kropki", opponents="random"), make_vec("Kropki", 2, opponents="random")):
        with pytest.warns(UserWarning, match="unknown option 'positon' of reset is ignored: known are position, seat"):
            one.reset(seed=0, options={"positon": 1})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.reset(seed=0, options={"positon": 1})
            one.reset(options={})
            one.reset(options={"seat": None, "position": None})
    check_env(make("Kropki", opponents="random"), skip_render_check=True)


def test_a_given_game_keeps_its_last_action_until_the_next_move():
    env = make("Go", opponents="random")
    game = position_after(env, 4)
    env.reset(options={"position": game, "seat": game.to_move})
    assert env.unwrapped.game.last_action == game.last_action is not None
    env.reset(options={"position": str(game), "seat": game.to_move})
    assert env.unwrapped.game.last_action is None


def test_gymnasiums_vector_of_single_environments_passes_the_options():
    game = position_after(make("Go", opponents="random"), 4)
    envs = SyncVectorEnv([lambda: make("Go", opponents=FirstAgent())] * 2)
    _, infos = envs.reset(seed=0, options={"position": game, "seat": 1})
    assert infos["seat"].tolist() == [1, 1]
    assert [str(env.game) for env in envs.envs] == [str(after_opponents(game, 1))] * 2


# Seeds


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    ("name", "opponents"),
    [("Ninetka", "random"), ("Ninetka", ChoosingAgent()), ("Go", "mcts:simulations=3"), ("Kropki", "random")],
)
def test_games_with_own_seeds_equal_single_environments(name, opponents, mode):
    seeds = [7, 0, 7, 2**63 + 1]
    options = {"opponents": opponents} | ({"neutral_placement": "random"} if name == "Ninetka" else {})
    envs = make_vec(name, 4, **options, autoreset_mode=mode)
    single = SyncVectorEnv([lambda: make(name, **options)] * 4, autoreset_mode=mode)
    rng, ended = np.random.default_rng(0), 0
    assert_equal(envs.reset(seed=seeds), single.reset(seed=seeds))
    for count in range(60):
        actions = actions_for(envs, rng)
        actions[2] = actions[0] if count < 2 else actions[2]  # for a while, the same game as game 0
        one = envs.step(actions)
        assert_equal(one, single.step(actions))
        ended += one[2].sum()
        if mode is AutoresetMode.DISABLED and one[2].any():
            assert_equal(*(each.reset(options={"reset_mask": one[2].copy()}) for each in (envs, single)))
    assert ended >= 4


def test_a_game_with_its_own_seed_does_not_depend_on_the_others():
    few, many = make_vec("Kropki", 2, opponents=ChoosingAgent()), make_vec("Kropki", 5, opponents=ChoosingAgent())
    few.reset(seed=np.array([3, 4]))
    many.reset(seed=(9, 9, 4, 9, 3))
    for _ in range(40):
        first = few.action_masks().argmax(axis=1)
        others = many.action_masks()[:, ::-1].argmax(axis=1)
        actions = many.action_masks().shape[1] - 1 - others  # the highest legal actions
        actions[[4, 2]] = first
        few.step(first)
        many.step(actions)
        assert (few._batch.observations == many._batch.observations[[4, 2]]).all()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
def test_seeds_of_some_games_and_of_all_games(duplicate):
    envs = make_vec("Go", 3, opponents="random")
    envs.reset(seed=0)
    first = envs._batch.games.copy()
    where = np.array([True, False, True])

    def continued(envs):
        envs.reset(seed=[5, 6, None], options={"reset_mask": where})
        for _ in range(20):
            envs.step(envs.action_masks().argmax(axis=1))
        return envs._batch.games.copy()

    twin = duplicate(envs)
    assert (continued(envs) == continued(twin)).all()  # a None draws from a stream that the first seed determines
    assert (duplicate(envs)._batch.games == envs._batch.games).all()
    envs.reset(seed=[5, 6, 7])
    own = envs._batch.games.copy()
    envs.reset(seed=0)  # all games share one generator again
    assert (envs._batch.games == first).all()
    envs.reset(seed=[5, 6, 7])
    assert (envs._batch.games == own).all()


@pytest.mark.parametrize(
    "seeds",
    [[1], [1, 2, 3, 4], [1, -1, 2], [1, 2.0, 3], [1, True, 2], [1, 2, "x"], np.zeros(3), np.ones(3, bool), [[1], 2, 3]],
)
def test_wrong_seeds_are_named_and_change_nothing(seeds):
    envs = make_vec("Go", 3, opponents="random")
    envs.reset(seed=0)
    kept = envs._batch.games.tobytes()
    with pytest.raises(ValueError, match=r"^seed=.*: expected an integer of at least 0, or 3 of them, one per game"):
        envs.reset(seed=seeds)
    assert envs._batch.games.tobytes() == kept


@pytest.mark.parametrize("seed", [True, -1, 1.0, "1", np.array(1)])
def test_one_wrong_seed_is_named(seed):
    for env in (make("Go", opponents="random"), make_vec("Go", 3, opponents="random")):
        with pytest.raises(ValueError, match=r"^seed=.*: expected an integer of at least 0, or None"):
            env.reset(seed=seed)


def test_positions_of_a_game_without_text():
    """`OneSeatVectorEnv` accepts states of any registered game."""
    variant = load_variant("go:size=5")
    envs = OneSeatVectorEnv(2, variant, 0, FirstAgent())
    envs.reset(options={"position": variant.game_class.start(variant).records})
    assert envs.action_masks().sum() == 2 * 26
