"""Tests of the Gymnasium environments: Gymnasium's own tests, opponents, vector environments, a trainer."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import Counter

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ninetka.positions import observe
from test_api.one_seat_helpers import actions_for, assert_equal, masked

from ninetka_agents.agent import RandomAgent, make_agent
from ninetka_agents.one_seat import one_seat, one_seat_vector
from ninetka_env.api.one_seat import OneSeatEnv, OneSeatVectorEnv
from ninetka_env.games.go.game import Game as GoGame
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.observation import SHAPE

ID = "ninetka_env:ninetka_env/Ninetka-v0"


class FixedAgent:
    """An agent that plays the lowest (`place=0`) or the highest (-1) legal action, and counts its actions per seat."""

    name = "fixed"

    def __init__(self, place=0):
        self.place = place
        self.seats = Counter()

    def act(self, games, rng):
        self.seats.update(games["to_move"].tolist())
        return np.array([Game(games[i : i + 1]).legal_actions()[self.place] for i in range(len(games))])


def play_game(env, rng, seed=None):
    """Play a game with random actions; yield (observation, reward, over, info) of the reset and of each step."""
    seen, info = env.reset(seed=seed)
    yield seen, 0.0, False, info
    over = False
    while not over:
        seen, reward, over, _, info = env.step(masked(rng, info["action_mask"]))
        yield seen, reward, over, info


# Gymnasium's own tests


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_gymnasium_check_env(num_players, monkeypatch):
    """The checker samples its actions from the action space, so all samples must be legal."""
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make(ID, num_players=num_players, opponents="random", render_mode="ansi").unwrapped
    for seed in range(10):
        env.action_space.seed(seed)
        check_env(env, skip_render_check=seed > 0)


def test_samples_of_the_action_space_are_legal():
    env = one_seat(num_players=3, opponents="random")
    env.action_space.seed(0)
    env.reset(seed=0)
    over, sampled = False, set()
    while not over:
        sampled |= {int(env.action_space.sample()) for _ in range(20)}
        over = env.step(env.action_space.sample())[2]
    assert len(sampled) > 50
    everything = np.ones(122, np.int8)
    assert len({int(env.action_space.sample(everything)) for _ in range(2000)}) == 122


@pytest.mark.parametrize("render_mode", ["ansi", "rgb_array"])
def test_rendering(render_mode):
    pytest.importorskip("pygame")
    env = gymnasium.make(ID, opponents="random", render_mode=render_mode)
    env.reset(seed=0)
    drawn = env.render()
    assert isinstance(drawn, str) if render_mode == "ansi" else drawn.dtype == np.uint8
    with pytest.raises(ValueError, match="render_mode=None"):
        one_seat(opponents="random").render()


def test_gymnasium_makes_one_and_many():
    env = gymnasium.make(ID, num_players=3, opponents="random")
    assert isinstance(env.unwrapped, OneSeatEnv)
    for _ in play_game(env, np.random.default_rng(0)):  # through gymnasium's passive checker
        pass
    envs = gymnasium.make_vec(ID, num_envs=3, num_players=3, opponents="random")
    assert isinstance(envs.unwrapped, OneSeatVectorEnv)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert envs.observation_space.shape == (3, *SHAPE)
    assert envs.observation_space.contains(envs.reset(seed=0)[0])
    sync = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="sync", opponents="random")
    assert sync.observation_space.contains(sync.reset(seed=0)[0])


# One game


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("reward", ["win", "score"])
@pytest.mark.parametrize("neutral_placement", ["players", "random"])
def test_observations_and_rewards_of_the_learner(num_players, reward, neutral_placement):
    env = one_seat(num_players=num_players, opponents="random", reward=reward, neutral_placement=neutral_placement)
    rng, seats = np.random.default_rng(0), set()
    for seed in range(12):
        for seen, paid, over, info in play_game(env, rng, seed):
            game, seat = env.game, env.seat
            assert info["seat"] == seat
            assert env.observation_space.contains(seen)
            assert (seen == observe(game, seat)).all()
            assert over == game.is_over
            assert over or game.to_move == seat
            assert (info["action_mask"] == game.legal_mask()).all()
            assert (env.action_masks() == game.legal_mask()).all()
            assert (info["action_mask"].dtype, env.action_masks().dtype) == (np.int8, np.bool_)
            assert paid == (pytest.approx(expected_reward(game, seat, reward)) if over else 0)
        seats.add(seat)
        with pytest.raises(ValueError, match="over"):
            env.step(12)
    assert seats == set(range(num_players))


def expected_reward(game, seat, reward):
    if reward == "win":
        return 1.0 if game.winner() == seat else -1 / (game.num_players - 1)
    return (game.scores()[seat] - game.scores().mean()) / 9


def test_seeds_repeat_games_and_observations_stay():
    def play(env, seed):
        return [
            (seen.tobytes(), paid, info["seat"])
            for seen, paid, _, info in play_game(env, np.random.default_rng(0), seed)
        ]

    env = one_seat(num_players=3, opponents="random", neutral_placement="random")
    first = play(env, 5)
    assert play(env, 5) == first
    assert play(one_seat(num_players=3, opponents="random", neutral_placement="random"), 5) == first
    assert play(env, None) != first
    kept = [(seen, seen.copy()) for seen, *_ in play_game(env, np.random.default_rng(0))]
    assert all((seen == before).all() for seen, before in kept)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_continues_identically(duplicate):
    env = one_seat(num_players=3, opponents="random")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        env.step(masked(rng, env.action_masks()))
    before, twin = str(env.game), duplicate(env)
    texts = []
    for one in (twin, env):
        assert str(one.game) == before  # nothing is shared
        one.action_space.seed(0)
        over = False
        while not over:
            over = one.step(one.action_space.sample())[2]
        texts.append(str(one.game))
    assert texts[0] == texts[1]


def test_an_illegal_action_is_named_and_changes_nothing():
    env = one_seat(num_players=2, seat=0, opponents=FixedAgent())
    env.reset(seed=0)
    before = str(env.game)
    for action in (0, 121, 122, -1):
        with pytest.raises(ValueError, match=rf"action {action}\b.*NEUTRAL"):
            env.step(action)
        assert str(env.game) == before
    for wrong in (1.0, None, np.array([24])):
        with pytest.raises(TypeError, match="integer"):
            env.step(wrong)
    env.step(np.int64(24))
    assert env.game.ply == 2


# Opponents


@pytest.mark.parametrize("seat", [0, 1, 2])
def test_a_sequence_names_the_opponents_in_turn_order(seat):
    first, second = FixedAgent(0), FixedAgent(-1)
    env = one_seat(num_players=3, seat=seat, opponents=[first, second])
    for _ in play_game(env, np.random.default_rng(0), seed=0):
        assert env.seat == seat
    assert set(first.seats) == {(seat + 1) % 3}
    assert set(second.seats) == {(seat + 2) % 3}


def test_one_agent_may_hold_several_seats():
    agent = FixedAgent()
    for opponents in (agent, [agent, agent, agent], (agent, "random", agent)):
        agent.seats.clear()
        for _ in play_game(one_seat(num_players=4, seat=1, opponents=opponents), np.random.default_rng(0), seed=0):
            pass
        assert set(agent.seats) == ({0, 2} if "random" in np.atleast_1d(opponents) else {0, 2, 3})


@pytest.mark.parametrize(
    "opponents", ["random", "maxn:depth=1", "mcts:simulations=2", RandomAgent(), ["random", "maxn:depth=2"]]
)
def test_opponents_are_specs_or_agents(opponents):
    env = one_seat(num_players=3, opponents=opponents)
    results = list(play_game(env, np.random.default_rng(0), seed=0))
    assert results[-1][2]


@pytest.mark.parametrize("make", [one_seat, lambda **options: one_seat_vector(2, **options)])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"num_players": 5}, r"num_players=5: .*2, 3, 4"),
        ({"seat": 2}, r"seat=2: .*'random', 0, 1$"),
        ({"seat": 3, "num_players": 3}, r"seat=3: .*'random', 0, 1, 2$"),
        ({"seat": -1}, r"seat=-1: .*'random', 0, 1$"),
        ({"seat": True}, r"seat=True: .*'random', 0, 1$"),
        ({"seat": "first"}, r"seat='first': .*'random', 0, 1$"),
        ({"seat": None}, r"seat=None: .*'random', 0, 1$"),
        ({"neutral_placement": "dice"}, r"neutral_placement='dice': .*'players', 'random'"),
        ({"turn_order": "reverse"}, r"turn_order='reverse': .*'restart', 'continue'"),
        ({"reward": None}, r"reward=None: .*'win', 'score'"),
        ({"opponents": "chess"}, r"unknown agent 'chess': known are .*maxn.*mcts.*random"),
        ({"opponents": ["random"], "num_players": 3}, r"opponents: 1 given, expected one for all or 2"),
        ({"opponents": []}, r"opponents: 0 given, expected one for all or 1"),
        ({"opponents": 3}, r"opponents: 3 is neither an agent's spec nor an agent"),
        ({"opponents": [None]}, r"opponents: None is neither an agent's spec nor an agent"),
        ({"auto_pass": 1}, r"auto_pass=1: .*False, True"),
        ({"komi": 6.5}, r"unknown option 'komi', there are num_players"),
        ({"num_player": 3}, r"unknown option 'num_player'.*did you mean 'num_players'"),
        ({"opponent": "maxn"}, r"unknown option 'opponent', .*, seat, opponents, reward, .*did you mean 'opponents'"),
        ({"game": "go", "opponents": make_agent("maxn")}, r"agent 'maxn' was made for ninetka, not go"),
        ({"game": "go", "opponents": [make_agent("maxn")]}, r"agent 'maxn' was made for ninetka, not go"),
        ({"game": "chess"}, r"unknown game 'chess': known are .*ninetka"),
    ],
)
def test_a_wrong_option_is_named_with_the_allowed_values(make, option, message):
    with pytest.raises(ValueError, match=message):
        make(**{"opponents": "random"} | option)


def test_a_wrong_number_of_games_or_render_mode_is_named():
    with pytest.raises(ValueError, match=r"num_envs=0: .*at least 1"):
        one_seat_vector(0)
    with pytest.raises(ValueError, match=r"render_mode='4k': .*'human', 'rgb_array', 'ansi'"):
        one_seat(render_mode="4k")


def test_default_opponents_are_the_benchmark_opponent():
    for spec in (None, "maxn"):
        env = one_seat(opponents=spec, seat=1)
        assert [agent.name for _, agent in env._batch._opponents] == ["maxn"]
    assert gymnasium.make(ID).unwrapped._batch._opponents[0][1].name == "maxn"


def test_a_spec_that_comes_twice_is_one_agent():
    env = one_seat(num_players=4, opponents=["random", "maxn:depth=1", "random"])
    assert [(seats, agent.name) for seats, agent in env._batch._opponents] == [
        ([1, 3], "random"),
        ([2], "maxn:depth=1"),
    ]


def test_passes_are_automatic_or_actions():
    passes = 0
    for auto_pass in (True, False):
        env = one_seat(num_players=3, opponents="random", auto_pass=auto_pass)
        for seed in range(20):
            for _, _, over, info in play_game(env, np.random.default_rng(seed), seed):
                passes += info["action_mask"][121]
                assert auto_pass <= (not info["action_mask"][121])
                assert over or info["action_mask"].any()
    assert passes


def test_the_action_space_alone_is_copied_without_the_games():
    env = one_seat(num_players=3, opponents="random")
    env.action_space.seed(3)
    for duplicate in (copy.deepcopy, lambda space: pickle.loads(pickle.dumps(space))):
        twin = duplicate(env.action_space)
        assert type(twin) is Discrete
        assert twin == Discrete(122)
        assert twin.np_random.integers(2**60) == copy.deepcopy(env.action_space.np_random).integers(2**60)
    assert len(pickle.dumps(env.action_space)) < 2000


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_action_space_of_a_copy_draws_the_same_legal_samples(duplicate):
    env = one_seat(num_players=3, opponents="random")
    env.action_space.seed(3)
    env.reset(seed=0)
    twin = duplicate(env)
    over = False
    while not over:
        action = twin.action_space.sample()
        assert env.action_space.sample() == action
        assert env.action_masks()[action]
        env.step(action)
        over = twin.step(action)[2]
    assert str(env.game) == str(twin.game)


# Many games


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("turn_order", ["restart", "continue"])
def test_many_games_equal_gymnasiums_vector_of_single_ones(num_players, mode, turn_order):
    """The seat is fixed and the opponents are deterministic, so random numbers cannot make the results differ."""
    options = {
        "num_players": num_players,
        "turn_order": turn_order,
        "seat": num_players - 1,
        "opponents": FixedAgent(-1),
    }
    envs = one_seat_vector(4, **options, autoreset_mode=mode)
    single = SyncVectorEnv([lambda: one_seat(**options)] * 4, autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"] is mode
    rng, ended = np.random.default_rng(0), 0
    assert_equal(envs.reset(seed=0), single.reset(seed=0))
    for _ in range(120):
        actions = actions_for(envs, rng)
        one, two = envs.step(actions), single.step(actions)
        assert_equal(one, two)
        over = one[2]
        ended += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            assert_equal(*(each.reset(options={"reset_mask": over.copy()}) for each in (envs, single)))
    assert ended >= 8


def test_a_game_that_ended_restarts_in_the_next_step_whatever_its_action():
    envs = one_seat_vector(6, num_players=3, opponents="random", autoreset_mode="NEXT_STEP")
    seen, infos = envs.reset(seed=0)
    rng, over, restarted = np.random.default_rng(0), np.zeros(6, np.bool_), 0
    for _ in range(120):
        seats = infos["seat"]
        seen, rewards, now_over, _, infos = envs.step(actions_for(envs, rng))
        assert not rewards[~now_over].any()
        assert not now_over[over].any()
        assert (now_over == ~infos["action_mask"].any(axis=1)).all()
        assert not {"final_obs", "final_info"} & set(infos)
        for i in np.flatnonzero(over):
            assert envs._batch.game(i).ply < 3  # at most the two other seats have moved
            restarted += 1
        for i in np.flatnonzero(now_over):
            assert infos["seat"][i] == seats[i]
            assert_final_observation(seen[i], rewards[i], int(seats[i]), "win")
        over = now_over
    assert restarted > 12


def test_an_illegal_action_next_to_a_finished_game_changes_nothing():
    envs = one_seat_vector(2, seat=0, opponents=FixedAgent(), autoreset_mode="NEXT_STEP")
    rng, over = np.random.default_rng(0), np.zeros(2, np.bool_)
    envs.reset(seed=0)
    while not over.any():
        over = envs.step(actions_for(envs, rng))[2]
    envs.reset(options={"reset_mask": np.array([False, True])})  # now only the first game is over
    before = envs._batch.games.tobytes()
    with pytest.raises(ValueError, match=r"^game 1: action 0 \(A11\)"):
        envs.step(np.array([0, 0]))
    assert envs._batch.games.tobytes() == before
    assert not envs.step(np.array([0, 24]))[2].any()


def test_a_game_that_is_over_and_not_reset_is_refused():
    envs = one_seat_vector(1, seat=0, opponents=FixedAgent(), autoreset_mode="Disabled")
    envs.reset(seed=0)
    while not envs.step(actions_for(envs, np.random.default_rng(0)))[2].any():
        pass
    with pytest.raises(ValueError, match=r"game 0: .*over"):
        envs.step(np.array([24]))


def test_reset_mask_selects_the_games_to_restart():
    envs = one_seat_vector(3, seat=0, opponents=FixedAgent())
    envs.reset(seed=0)
    envs.step(np.array([24, 24, 24]))
    where = np.array([False, True, False])
    _, infos = envs.reset(options={"reset_mask": where})
    assert [envs._batch.game(i).ply for i in range(3)] == [2, 0, 2]
    assert (infos["_action_mask"] == where).all()
    for wrong in (np.ones(3), np.ones(2, np.bool_), np.zeros(3, np.bool_), [True, True, True], None):
        with pytest.raises(ValueError, match=r"^reset_mask=.*expected \(3,\) bool, at least one"):
            envs.reset(options={"reset_mask": wrong})


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_mode_is_a_member_of_gymnasiums_enum_or_its_name_or_value(mode):
    for spelling in (mode, mode.name, mode.value):
        envs = gymnasium.make_vec(ID, num_envs=2, opponents="random", autoreset_mode=spelling)
        assert envs.metadata["autoreset_mode"] is mode
    assert OneSeatVectorEnv.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    for wrong in ("next", None, 1, ["NextStep"]):
        with pytest.raises(ValueError, match=r"^autoreset_mode=.*'NEXT_STEP', 'NextStep', 'SAME_STEP'"):
            one_seat_vector(2, autoreset_mode=wrong)


def test_many_games_are_drawn_one_frame_each():
    pytest.importorskip("pygame")
    envs = gymnasium.make_vec(ID, num_envs=3, opponents="random", seat=0, render_mode="rgb_array")
    assert envs.render_mode == "rgb_array"
    envs.reset(seed=0)
    envs.step(np.array([24, 24, 27]))
    frames = envs.render()
    assert isinstance(frames, tuple)
    single = one_seat(opponents="random", seat=0, render_mode="rgb_array")
    for index, frame in enumerate(frames):
        assert (frame.dtype, frame.ndim) == (np.uint8, 3)
        single._batch.games[:], single._batch.last_actions[:] = (
            envs.unwrapped._batch.games[index],
            envs.unwrapped._batch.last_actions[index],
        )
        assert (frame == single.render()).all()
    texts = one_seat_vector(2, opponents="random", render_mode="ansi")
    texts.reset(seed=0)
    assert [type(text) for text in texts.render()] == [str, str]
    with pytest.raises(ValueError, match="render_mode=None"):
        one_seat_vector(2).render()
    for mode in ("human", "4k"):
        with pytest.raises(ValueError, match=rf"render_mode='{mode}': expected one of None, 'rgb_array', 'ansi'"):
            gymnasium.make_vec(ID, num_envs=2, render_mode=mode)


@pytest.mark.parametrize("reward", ["win", "score"])
def test_rewards_and_final_observations_belong_to_the_learners_seats(reward):
    envs = one_seat_vector(16, num_players=3, opponents="random", reward=reward)
    _, infos = envs.reset(seed=0)
    rng, ended = np.random.default_rng(0), Counter()
    for _ in range(60):
        assert envs.action_masks().dtype == np.bool_
        assert (envs.action_masks() == infos["action_mask"]).all()
        seats = infos["seat"]
        seen, rewards, over, truncated, infos = envs.step([masked(rng, mask) for mask in envs.action_masks()])
        assert envs.observation_space.contains(seen)
        assert not truncated.any()
        assert (rewards[~over] == 0).all()
        assert ("final_obs" in infos) == over.any()
        for i in np.flatnonzero(over):
            assert_final_observation(infos["final_obs"][i], rewards[i], int(seats[i]), reward)
            assert not infos["final_info"]["action_mask"][i].any()
            assert infos["final_info"]["seat"][i] == seats[i]
            assert infos["action_mask"][i].any()
            ended[int(seats[i])] += 1
    assert set(ended) == {0, 1, 2}


def assert_final_observation(planes, paid, seat, reward):
    """Rebuild the final board from the planes that `seat` sees; check that `paid` is the reward of type `reward`."""
    board = sum((planes[relative] * ((seat + relative) % 3 + 1) for relative in range(3)), 5 * planes[4])
    game = Game.from_board(board, 0, 3)
    assert game.is_over
    assert paid == pytest.approx(expected_reward(game, seat, reward))


def test_opponents_act_on_all_games_in_one_call():
    agent = FixedAgent()
    sizes = []
    act = agent.act
    agent.act = lambda games, rng: sizes.append(len(games)) or act(games, rng)
    envs = one_seat_vector(8, seat=1, opponents=agent)
    envs.reset(seed=0)
    assert sizes == [8]


def test_seats_are_drawn_uniformly_and_anew():
    envs = one_seat_vector(900, num_players=3, opponents="random")
    first = envs.reset(seed=0)[1]["seat"]
    assert (abs(np.bincount(first) - 300) < 50).all()
    assert (envs.reset()[1]["seat"] != first).any()
    assert (envs.reset(seed=0)[1]["seat"] == first).all()


def test_an_illegal_action_names_its_game_and_moves_nothing():
    envs = one_seat_vector(3, seat=0, opponents=FixedAgent())
    envs.reset(seed=0)
    before = envs.action_masks()
    with pytest.raises(ValueError, match=r"^game 2: action 0 \(A11\).*NEUTRAL"):
        envs.step(np.array([24, 24, 0]))
    with pytest.raises(ValueError, match=r"expected shape \(3,\)"):
        envs.step(np.array([24, 24]))
    with pytest.raises(TypeError, match="expected integers"):
        envs.step(np.array([24.0, 24.0, 24.0]))
    assert (envs.action_masks() == before).all()


def test_results_stay_as_they_were_returned():
    envs = one_seat_vector(4, opponents="random")
    kept = [envs.reset(seed=0)[0]]
    before = [kept[0].copy()]
    rng = np.random.default_rng(0)
    for _ in range(50):
        seen, rewards, over, _, infos = envs.step([masked(rng, mask) for mask in envs.action_masks()])
        kept += [seen, rewards, over, infos["action_mask"]]
        before += [array.copy() for array in kept[-4:]]
    assert all((one == two).all() for one, two in zip(kept, before, strict=True))


# A trainer


def test_maskable_ppo_trains():
    """MaskablePPO samples with `action_masks()`; an illegal action would raise an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sb3_contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
        env = gymnasium.make(ID, opponents="random")
        model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
        model.learn(128)
    assert model.num_timesteps == 128


# Errors of opponents leave the games unchanged


class FailingAgent:
    """An agent that plays the lowest legal action, or `failure` if that is an integer, or raises `failure`."""

    name = "failing"

    def __init__(self):
        self.failure = None

    def act(self, games, rng):
        if self.failure is not None and len(games):
            if isinstance(self.failure, BaseException):
                raise self.failure
            return np.full(len(games), self.failure)
        return np.array([GoGame(games[i : i + 1]).legal_actions()[0] for i in range(len(games))])


@pytest.mark.parametrize("failure_of_act", [ConnectionError("engine went away"), KeyboardInterrupt(), -1])
def test_a_failing_opponent_leaves_the_game_unchanged(failure_of_act):
    opponent = FailingAgent()
    env = gymnasium.make("ninetka_env:ninetka_env/Go-v0", opponents=opponent, seat=0, size=5).unwrapped
    env.reset(seed=0)
    seen, *_, info = env.step(12)
    before, opponent.failure = str(env.game), failure_of_act
    for fail in (lambda: env.step(13), lambda: env.step(13)):
        with pytest.raises(ValueError if failure_of_act == -1 else type(failure_of_act)):
            fail()
        assert (str(env.game), env.game.last_action, env.game.to_move) == (before, 0, 0)
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
    opponent.failure = None
    assert (env.step(14)[0] != seen).any()
    assert env.game.board[14 // 5, 14 % 5] == env.game.board[12 // 5, 12 % 5]  # of the learner's colour


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_failing_opponent_leaves_all_games_unchanged(mode):
    opponent, rng = FailingAgent(), np.random.default_rng(0)
    options = {"opponents": opponent, "seat": "random", "size": 3, "komi": 0.5, "autoreset_mode": mode}
    options["ko"] = "positional"  # the same as in other tests of 3 x 3 boards, so that they share the compiled code
    envs = gymnasium.make_vec("ninetka_env:ninetka_env/Go-v0", num_envs=8, **options)
    envs.reset(seed=0)
    failed = 0
    for _ in range(60):
        masks = envs.action_masks()
        actions = np.array([masked(rng, mask) if mask.any() else 0 for mask in masks])
        if mode is AutoresetMode.DISABLED and not masks.any(1).all():
            envs.reset(options={"reset_mask": ~masks.any(1)})
            continue
        batch = envs._batch
        shown = (batch.games, batch.seats, batch.observations, batch.masks, batch.terminated)
        before = [each.copy() for each in shown]
        opponent.failure = RuntimeError("out of ideas")
        try:
            envs.step(actions)
        except RuntimeError:
            failed += 1
            assert all((now == then).all() for now, then in zip(shown, before, strict=True))
            opponent.failure = None
            envs.step(actions)
        opponent.failure = None
    assert failed > 40


def test_a_game_that_ends_before_the_learners_turn_is_restarted():
    options = {"seat": "random", "size": 5, "opponents": "random", "max_plies": 1}
    envs = gymnasium.make_vec("ninetka_env:ninetka_env/Go-v0", num_envs=16, **options)
    _, info = envs.reset(seed=0)
    assert info["action_mask"].any(1).all()
    for _ in range(5):
        _, _, over, _, info = envs.step(info["action_mask"].argmax(1))
        assert over.all()
        assert info["action_mask"].any(1).all()
    never_to_move = gymnasium.make("ninetka_env:ninetka_env/Go-v0", seat=1, size=5, opponents="random", max_plies=1)
    with pytest.raises(ValueError, match="ended 100 times before seat 1 could move"):
        never_to_move.reset(seed=0)


@pytest.mark.parametrize("game", ["Ninetka", "Go", "Kropki"])
def test_before_the_first_reset_there_is_no_game(game):
    envs = gymnasium.make_vec(f"ninetka_env:ninetka_env/{game}-v0", num_envs=2, opponents="random", render_mode="ansi")
    for use in (envs.render, lambda: envs.step(np.zeros(2, np.int64))):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
            use()
    env = gymnasium.make(f"ninetka_env:ninetka_env/{game}-v0", opponents="random").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        _ = env.game
