"""Tests of environments that start from given positions, and of environments whose game is replaced."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from pettingzoo.test import api_test

from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.positions import starting_game
from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.registry import load_variant

GAMES = {
    "ninetka": (ninetka_v0, {"num_players": 3}, {"num_players": 2}),
    "go": (go_v0, {"size": 5}, {"size": 5, "komi": 0.5}),
    "kropki": (kropki_v0, {"width": 5, "height": 4}, {"width": 4, "height": 5}),
}
"""For each game its module, the options of the tests, and other options with states of the same dtype."""
every_game = pytest.mark.parametrize("name", GAMES)


def positions_of(name, seed=0, other=False):
    """Return the positions of a random game, from the start to the end."""
    module = GAMES[name][0]
    rng, game = np.random.default_rng(seed), module.Game.start(variant_of(name, other), seed)
    games = [game.copy()]
    while not game.is_over:
        game.play(int(rng.choice(game.legal_actions())))
        games.append(game.copy())
    return games


def variant_of(name, other=False):
    return load_variant(name, **GAMES[name][2 if other else 1])


def middle_of(name, seed=0, other=False):
    games = positions_of(name, seed, other)
    return games[len(games) // 2]


def make_aec(name, kind="env", **options):
    module, own, _ = GAMES[name]
    return getattr(module, kind)(**own, **options)


def make_batch(name, num_envs, **options):
    module, own, _ = GAMES[name]
    return module.vector_env(num_envs, **own, **options)


def assert_at(env, game):
    """Check that an environment shows a game at the beginning of an episode."""
    assert env.unwrapped.game == game
    assert env.agents == env.possible_agents
    assert env.agent_selection == env.agents[game.to_move]
    assert env.rewards == env.unwrapped._cumulative_rewards == dict.fromkeys(env.agents, 0.0)
    assert env.terminations == env.truncations == dict.fromkeys(env.agents, False)
    observation, reward, terminated, truncated, _ = env.last()
    assert (observation["action_mask"] == game.legal_mask()).all()
    assert (reward, terminated, truncated) == (0.0, False, False)


def assert_batch_at(envs, games):
    """Check that the arrays of a batch show these games."""
    for index, game in enumerate(games):
        assert game.__class__(envs.games[index : index + 1].copy()) == game
        alone = make_alone(envs, game)
        assert (envs.observations[index] == alone["observation"]).all()
        assert (envs.action_mask[index] == game.legal_mask()).all()
        assert envs.to_move[index] == game.to_move


def make_alone(envs, game):
    """Return the observation of the seat to move in an environment of one game."""
    module, own, _ = GAMES[game.name]
    env = module.raw_env(**own)
    env.game = game.copy()
    return env.observe(env.agent_selection)


def forms_of(game):
    """Return a position in every form that `reset` takes."""
    file = io.BytesIO()
    np.save(file, game.records)
    file.seek(0)
    swapped = game.records.astype(game.records.dtype.newbyteorder())
    state = game.records[0]
    return [game, str(game), game.records, state, np.array(state), np.load(file)[0], swapped, swapped[0]]


def as_read(form, game):
    """Return the game that starts from a form of `game`: the text of Go does not contain earlier positions."""
    return type(game).from_text(form) if isinstance(form, str) else game


# One game


@every_game
@pytest.mark.parametrize("kind", ["env", "raw_env"])
def test_a_game_starts_from_every_form_of_a_position(name, kind):
    game = middle_of(name)
    env = make_aec(name, kind, render_mode="ansi")
    for form in forms_of(game):
        env.reset(seed=1, options={"position": form})
        assert_at(env, game)
        assert env.render()
        following = game.copy()
        action = int(following.legal_actions()[0])
        env.step(action)
        following.play(action)
        assert env.unwrapped.game == following != game
        assert env.agent_selection == env.possible_agents[following.to_move]


@every_game
def test_an_episode_from_a_position_ends_as_the_game(name):
    *_, game, last = positions_of(name)
    env = make_aec(name)
    env.reset(options={"position": game})
    env.step(last.last_action)
    assert list(env.rewards.values()) == last.returns().tolist()
    assert all(env.terminations.values())
    for _ in env.agent_iter():
        env.step(None)
    assert not env.agents


def test_a_given_game_keeps_its_last_action_and_is_not_shared():
    game = middle_of("ninetka")
    env = make_aec("ninetka")
    env.reset(options={"position": game})
    assert env.unwrapped.game.last_action == game.last_action is not None
    before = str(game)
    env.step(int(game.legal_actions()[0]))
    assert str(game) == before


def test_the_seed_determines_the_start_after_a_given_position():
    expected = ninetka_v0.Game.new(2, neutral_placement="random", seed=5)
    env = ninetka_v0.env(neutral_placement="random")
    env.reset(seed=5, options={"position": ninetka_v0.Game.new(2, neutral_placement="random", seed=1)})
    env.reset()
    assert env.unwrapped.game == expected
    envs = ninetka_v0.vector_env(3, neutral_placement="random")
    envs.reset(seed=4, options={"position": envs.games[0]})
    envs.reset()
    assert (envs.games[1] == expected.records[0]).all()


def invalid_positions(name):
    """Return values that `reset` refuses as the position of one game, with a part of the message."""
    *_, last = positions_of(name)
    resigned, other = middle_of(name), middle_of(name, other=True)
    resigned.resign()
    elsewhere = middle_of("go" if name != "go" else "kropki")
    over = "the game is over or has not been started"
    expected = "expected a text of str"
    return [
        *((form, over) for form in (last, str(last), last.records, last.records[0], resigned)),
        *((form, "with another") for form in (other, str(other), other.records, other.records[0])),
        *((form, "another game|expected a game of") for form in (elsewhere, elsewhere.records, elsewhere.records[0])),
        (np.zeros(1, last.records.dtype), over),
        ("no position", "found|expected"),
        *((form, expected) for form in (5, b"", {}, object(), np.zeros((1, 1)), last.records[None])),
        (np.zeros(1), "no game has the dtype"),
    ]


@every_game
def test_invalid_positions_are_refused_and_nothing_changes(name):
    env, envs, middle = make_aec(name), make_batch(name, 1), middle_of(name)
    for one in (env, envs):
        one.reset(seed=3, options={"position": middle})
    states = envs.games.copy()
    for wrong, message in invalid_positions(name):
        for one in (env, envs):
            with pytest.raises(ValueError, match=f"^position(.*): .*({message})") as caught:
                one.reset(seed=9, options={"position": wrong})
            assert len(str(caught.value).splitlines()) == 1
        assert_at(env, middle)
        assert (envs.games == states).all()
    for seed in (-1, "x", True):
        for one in (env, envs):
            with pytest.raises(ValueError, match=r"seed="):
                one.reset(seed=seed, options={"position": positions_of(name)[0]})
    assert_at(env, middle)
    assert (envs.games == states).all()
    first = make_aec(name)
    first.reset(seed=3)
    env.reset()
    assert env.unwrapped.game == first.unwrapped.game  # the refused seeds are not used


def test_a_game_without_a_reader_of_texts_takes_states_and_games(monkeypatch):
    game = middle_of("go")

    def not_readable(text):
        raise NotImplementedError

    monkeypatch.setattr(go_v0.Game, "from_text", not_readable)
    assert starting_game(game, variant_of("go")) == starting_game(game.records[0], variant_of("go")) == game
    with pytest.raises(ValueError, match="position: Go has no text of positions: give a state or a Game"):
        starting_game(str(game), variant_of("go"))


# Batches


@every_game
def test_a_batch_starts_from_one_position(name):
    game, envs = middle_of(name), make_batch(name, 3)
    for form in forms_of(game):
        assert envs.reset(seed=2, options={"position": form}) is envs.observations
        assert_batch_at(envs, [as_read(form, game)] * 3)


@every_game
def test_a_batch_starts_from_many_positions(name):
    games = [middle_of(name, seed) for seed in range(4)]
    states = np.concatenate([game.records for game in games])
    swapped = states.astype(states.dtype.newbyteorder())
    envs = make_batch(name, 4)
    many = [games, tuple(map(str, games)), states, swapped, states[::-1].copy()[::-1], [games[0], *states[1:]]]
    for form in many:
        envs.reset(options={"position": form})
        assert_batch_at(envs, [as_read(one, game) for one, game in zip(form, games, strict=True)])


@every_game
def test_only_the_games_of_the_mask_restart(name):
    positions = positions_of(name)
    early, late = positions[1], positions[-2]
    envs = make_batch(name, 3)
    envs.reset(seed=7, options={"position": early})
    envs.reset(options={"position": [None, late, "unread"], "reset_mask": [False, True, False]})
    assert_batch_at(envs, [early, late, early])
    states = np.concatenate([early.records, np.zeros_like(early.records), late.records])
    envs.reset(options={"position": states, "reset_mask": np.array([True, False, True])})
    assert_batch_at(envs, [early, late, late])
    envs.reset(options={"position": states, "reset_mask": np.zeros(3, np.bool_)})
    assert_batch_at(envs, [early, late, late])
    start = type(early)(envs.variant.game_class.start(envs.variant, 9).records)
    envs.reset(seed=8, options={"reset_mask": np.array([False, True, False])})
    assert_batch_at(envs, [early, start, late])


def test_a_masked_reset_keeps_the_results_of_the_last_step():
    *_, game, last = positions_of("go")
    envs = make_batch("go", 2)
    envs.reset(options={"position": [game, positions_of("go")[0]]})
    _, rewards, terminated = envs.step([last.last_action, 0])
    assert terminated.tolist() == [True, False]
    envs.reset(options={"position": game, "reset_mask": terminated})
    assert_batch_at(envs, [game])
    assert terminated.tolist() == [True, False]
    assert rewards[0].tolist() == last.returns().tolist()
    assert (envs.final_scores[0] == last.scores()).all()
    assert envs.final_winner.tolist() == [last.winner(), -2]
    _, rewards, terminated = envs.step([int(game.legal_actions()[0]), 1])
    assert rewards[1].tolist() == [0, 0]
    envs.reset()
    assert not envs.terminated.any()
    assert envs.final_winner.tolist() == [-2, -2]


def test_games_restart_normally_after_one_that_started_from_a_position():
    *_, game, last = positions_of("ninetka")
    envs = make_batch("ninetka", 2, neutral_placement="random")
    envs.reset(seed=6, options={"position": game})
    envs.step([last.last_action] * 2)
    expected = [ninetka_v0.Game.new(3, neutral_placement="random", seed=seed) for seed in (6, 7)]
    assert_batch_at(envs, expected)


@every_game
def test_threads_and_single_games_agree_after_a_position(name):
    game = positions_of(name)[2]
    rng = np.random.default_rng(0)
    one, two = make_batch(name, 1100, num_threads=1), make_batch(name, 1100, num_threads=2)
    for envs in (one, two):
        envs.reset(seed=0, options={"position": game})
    for _ in range(20):
        actions = [int(rng.choice(np.flatnonzero(mask))) for mask in one.action_mask[:1]] * 1100
        if not all(one.action_mask[np.arange(1100), actions]):
            break
        one.step(actions)
        two.step(actions)
        assert (one.games == two.games).all()
        assert (one.observations == two.observations).all()


@pytest.mark.parametrize("name", ["go", "ninetka"])
def test_invalid_batches_of_positions_name_the_game(name):
    *_, game, last = positions_of(name)
    other, zero = middle_of(name, other=True), np.zeros(1, game.records.dtype)
    mixed = np.concatenate([game.records, last.records, game.records])
    wrong = [
        ([game] * 2, "position: a sequence of 2 is given, expected one position, or 3 of them, one per game"),
        (game.records[:0], "position: a sequence of 0 is given, expected one position, or 3 of them, one per game"),
        ([game, game, None], "position of game 2: expected a text"),
        ([game, last, game], "position of game 1: the game is over"),
        ([game, game, str(other)], "position of game 2: states of games with another"),
        (mixed, "position of game 1: the game is over"),
        (np.concatenate([game.records, game.records, zero]), "position of game 2: .*has not been started"),
        (np.concatenate([game.records, other.records, game.records]), "position: states of games with another"),
        (np.zeros(3), "position: no game has the dtype"),
    ]
    envs = make_batch(name, 3)
    envs.reset(seed=0)
    before = envs.games.copy()
    for position, message in wrong:
        with pytest.raises(ValueError, match=f"^{message}"):
            envs.reset(options={"position": position})
        assert (envs.games == before).all()
    for mask in (1, [1, 0, 1], [True], np.ones((3, 1), np.bool_), "x", [[True], [True, False]]):
        with pytest.raises(ValueError, match=r"^reset_mask=.*: expected \(3,\) bool"):
            envs.reset(options={"position": game, "reset_mask": mask})
        assert (envs.games == before).all()


@every_game
def test_arrays_of_texts_and_games_are_sequences(name):
    games = [middle_of(name, seed) for seed in range(3)]
    objects = np.empty(3, object)
    objects[:] = games
    states = np.empty(3, object)
    states[:] = [game.records[0] for game in games]
    texts = np.array([str(game) for game in games])
    envs = make_batch(name, 3)
    read = [as_read(str(game), game) for game in games]
    for positions, expected in ((objects, games), (states, games), (texts, read), (texts.astype(object), read)):
        envs.reset(options={"position": positions})
        assert_batch_at(envs, expected)
    for position in (texts[1:2].reshape(()), np.array(str(games[1]), object)):
        envs.reset(options={"position": position})
        assert_batch_at(envs, [read[1]] * 3)
    with pytest.raises(ValueError, match="position: a sequence of 2 is given, expected one position, or 3 of them"):
        envs.reset(options={"position": texts[:2]})


def test_a_position_is_not_read_if_no_game_restarts():
    envs = make_batch("go", 1)
    envs.reset(seed=0)
    before = envs.games.copy()
    for position in (np.zeros(1, envs.games.dtype), "no position", None):
        envs.reset(options={"position": position, "reset_mask": np.zeros(1, np.bool_)})
        assert (envs.games == before).all()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"ko": "situational"}, "another size of the board or other rules"),
        ({"size": 7}, "another size of the board or other rules"),
        ({"scoring": "territory"}, "another scoring"),
        ({"komi": 1}, "another komi"),
    ],
)
def test_the_option_that_differs_is_named(other, message):
    position = go_v0.Game.new(**({"size": 5} | other))
    for form in (position, position.records, position.records[0], position.records[[0, 0, 0]], [position] * 3):
        with pytest.raises(ValueError, match=f"^position.*: states of games with {message}: expected states of go:"):
            make_batch("go", 3).reset(options={"position": form})


def test_a_batch_warns_once_of_each_unknown_option():
    envs = make_batch("go", 2)
    with pytest.warns(UserWarning, match=r"unknown option 'mask' of reset is ignored: known are position, reset_mask"):
        envs.reset(options={"mask": 1})
    envs.reset(options={"mask": 1})  # a second warning would be an error


def test_a_curriculum_from_game_records():
    """Games start backwards from the end of recorded games."""
    games = positions_of("kropki")
    record = GameRecord.of([game.last_action for game in games[1:]], variant_of("kropki"))
    (read,) = read_records(io.StringIO(format_record(record)))
    states = [game.copy() for game in read.replay()]
    envs = make_batch("kropki", 4)
    envs.reset(options={"position": states[-5:-1]})
    assert_batch_at(envs, games[-5:-1])
    for _ in range(10):
        _, _, terminated = envs.step(envs.action_mask.argmax(axis=1))
        envs.reset(options={"position": states[-2], "reset_mask": terminated})
        assert_batch_at(envs, [games[-2] if ended else game_at(envs, i) for i, ended in enumerate(terminated)])


def game_at(envs, index):
    return envs.variant.game_class(envs.games[index : index + 1].copy())


# A replaced game


@every_game
@pytest.mark.parametrize("kind", ["env", "raw_env"])
def test_an_assigned_game_is_followed(name, kind):
    env = make_aec(name, kind)
    env.reset(seed=0)
    env.last()  # PettingZoo's wrapper stores the mask
    for game in positions_of(name, seed=1)[:-1]:
        for target in (env, env.unwrapped):
            mine = game.copy()
            target.game = mine
            assert env.unwrapped.game is mine
            assert_at(env, mine)
            action = int(mine.legal_actions()[-1])
            env.step(action)
            assert mine != game
            assert mine.last_action == action


@every_game
@pytest.mark.parametrize("event", [False, True])
def test_an_assigned_game_that_is_over_terminates_all_agents(name, event):
    env, game = make_aec(name), (middle_of(name) if event else positions_of(name)[-1])
    if event:
        game.resign()
    env.reset(seed=0)
    env.game = game
    assert list(env.rewards.values()) == game.returns().tolist()
    assert all(env.terminations.values())
    for agent in env.agent_iter():
        observation, reward, terminated, _, _ = env.last()
        assert terminated
        assert reward == game.returns()[env.possible_agents.index(agent)]
        assert not observation["action_mask"].any()
        env.step(None)
    env.game = positions_of(name)[0]
    assert_at(env, positions_of(name)[0])


@every_game
def test_a_game_of_another_kind_cannot_be_assigned(name):
    env, middle = make_aec(name), middle_of(name)
    env.reset(options={"position": middle})
    for wrong in (None, middle.records, middle_of("go" if name != "go" else "kropki")):
        with pytest.raises(TypeError, match="expected a game of"):
            env.game = wrong
    for wrong in (middle_of(name, other=True), type(middle)(np.zeros(1, middle.records.dtype))):
        with pytest.raises(ValueError, match="states of games with another"):
            env.game = wrong
    assert_at(env, middle)


@every_game
def test_a_game_that_is_played_in_place_shows_no_wrong_mask(name):
    for seed in range(3):
        env, rng = make_aec(name), np.random.default_rng(seed)
        env.reset(seed=seed)
        game = env.unwrapped.game
        while not game.is_over:
            env.last()
            game.play(int(rng.choice(game.legal_actions())))
            if env.agent_selection == env.possible_agents[game.to_move] and not game.is_over:
                assert (env.last()[0]["action_mask"] == game.legal_mask()).all()
                continue
            with pytest.raises(RuntimeError, match=r"changed outside the environment: .*assign env\.unwrapped\.game"):
                env.last()
            if not game.is_over:
                others = env.observe(env.possible_agents[game.to_move])
                assert (others["action_mask"] == game.legal_mask()).all()
                env.game = game
                assert_at(env, game)
        env.game = game
        assert all(env.terminations.values())


def after(game, action):
    following = game.copy()
    following.play(action)
    return following


@every_game
def test_a_step_after_a_move_in_place_is_checked_by_the_game(name):
    env = make_aec(name)
    env.reset(seed=0)
    env.last()
    game = env.unwrapped.game
    first, second = next(
        (first, second)
        for first in game.legal_actions().tolist()
        for second in np.flatnonzero(after(game, first).legal_mask()).tolist()
        if second != first
    )
    game.play(first)
    env.step(second)
    assert game.last_action == second
    assert env.agent_selection == env.possible_agents[game.to_move]
    assert not any(env.terminations.values())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_have_a_game_of_their_own(duplicate):
    env, game = make_aec("kropki"), middle_of("kropki")
    env.reset(options={"position": game})
    twin = duplicate(env)
    assert_at(twin, game)
    env.step(int(game.legal_actions()[0]))
    assert_at(twin, game)


@pytest.mark.filterwarnings("ignore:Observation", "ignore:unknown option")
def test_pettingzoo_api_test_passes_after_a_game_was_assigned():
    env = make_aec("go")
    env.game = middle_of("go")
    api_test(env, num_cycles=20)
