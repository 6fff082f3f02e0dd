"""Checks of observations and of the environments: PettingZoo, batches, one seat.

The environments are `GameAEC`, `GameVectorEnv` and `OneSeatEnv` of the package `ninetka_env.api`. `case.py` is the game
under test.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.utils.env_checker import check_env

from ninetka_env.api.aec import GameAEC, wrapped
from ninetka_env.api.conformance.case import GUARD_SIZE, Case
from ninetka_env.api.conformance.rules import check_refused, sample_illegal_actions
from ninetka_env.api.one_seat import OneSeatEnv
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core import verbs
from ninetka_env.core.bits import ALL_ONES, WORD_BITS, Words, num_words
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import REWARDS, UNFINISHED
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.verbs import StateArray

KNOWN_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "unknown option 'options' of reset",
)
"""Warnings in PettingZoo's `api_test`: its own for dict observations unless the environment is on its list, and ours
for the option that it passes to `reset`."""
CYCLES = 100
"""`num_cycles` of PettingZoo's tests."""
CHECKED_GAMES = 20
"""Number of games in which Gymnasium's checker plays a few steps."""

# Observations


def check_observations(case: Case) -> None:
    """Check that observations hold 0 and 1, overwrite every element of the array and do not change the game."""
    shape = case.variant.sizes.planes
    size = int(np.prod(shape))
    for game in case.positions():
        before = game.records.copy()
        for viewer in range(game.num_players):
            seen = case.observe(game, viewer)
            for fill in (0, 1, 7):
                buffer = np.full(size + GUARD_SIZE, fill, np.int8)
                verbs.write_observation(game.records[0], viewer, buffer[:size])
                found = buffer[:size].reshape(shape)
                case.check_same_planes(found, seen, f"the observation of seat {viewer} keeps old contents of the array")
                case.check_equal(buffer[size:], np.full(GUARD_SIZE, fill, np.int8), "the elements after the planes")
            if not np.isin(seen, (0, 1)).all():
                case.fail(f"seat {viewer} observes {sorted(set(seen.ravel().tolist()) - {0, 1})}: expected 0 and 1")
        case.check_same_states(game.records, before, "observing changes the game")


def check_slow_planes(case: Case) -> None:
    """Check `write_slow_planes`, called once per stage, and `write_fast_planes`, called at every ply.

    Together they must give the observation of the seat to move.
    """
    planes, drawn = np.full(case.variant.sizes.planes, 7, np.int8), -1
    for game in case.positions():
        if case.ply == 0:
            drawn = -1
        if game.is_over:
            continue
        if game.stage != drawn:
            verbs.write_slow_planes(game.records[0], game.to_move, planes.reshape(-1))
            drawn = game.stage
        verbs.write_fast_planes(game.records[0], game.to_move, planes.reshape(-1))
        case.check_same_planes(
            planes, case.observe(game, game.to_move), "slow and fast planes differ from the observation"
        )


def check_bits(case: Case) -> None:
    """Check that the bits of a game that writes bits are its observations and masks, and overwrite every word."""
    if not verbs.writes_bits(case.variant.dtype):
        return
    size, actions = int(np.prod(case.variant.sizes.planes)), case.variant.num_actions
    for game in case.positions():
        before, state = game.records.copy(), game.records[0]
        for viewer in range(game.num_players):
            seen, write = case.observe(game, viewer).ravel(), partial(verbs.write_observation_bits, state, viewer)
            _compare_bits(case, write, seen, f"bit of the observation of seat {viewer}", size)
        _compare_bits(case, partial(verbs.write_legal_bits, state), game.legal_mask(), "bit of the mask", actions)
        case.check_same_states(game.records, before, "writing bits changes the game")


def _compare_bits(
    case: Case, write: Callable[[Words], None], expected: npt.NDArray[np.int8], what: str, count: int
) -> None:
    """Compare the bits that `write` writes with `count` bytes, and the unused bits of the last word with 0."""
    for fill in (0, ALL_ONES):
        words = np.full(num_words(count) + GUARD_SIZE, fill, np.uint32)
        used, rest = words[: num_words(count)], words[num_words(count) :]
        write(used)
        bits = np.unpackbits(used.astype("<u4").view(np.uint8), bitorder="little")
        different = np.flatnonzero(bits != np.append(expected, np.zeros(WORD_BITS))[: len(bits)])
        if len(different):
            case.fail(f"{what}, element {different[0]} of {count}: found {bits[different[0]]}")
        case.check_equal(rest, np.full(GUARD_SIZE, fill, np.uint32), "the elements after the words")


# PettingZoo


def check_aec(case: Case) -> None:
    """Check the attributes and observations of PettingZoo's environment at every ply and after the end."""
    for seed in case.seeds():
        for reward in REWARDS:
            env, game, rng = GameAEC(case.variant, reward), case.start(), np.random.default_rng(seed)
            env.reset(seed=seed)
            _compare_aec(case, env, game, reward)
            while not game.is_over:
                action = int(rng.choice(case.legal_actions(game)))
                env.step(action)
                game.play(action)
                case.ply += 1
                _compare_aec(case, env, game, reward)
            while env.agents:
                env.step(None)
                _compare_seen(case, env, game)


def _compare_aec(case: Case, env: GameAEC, game: Game, reward: str) -> None:
    case.check_same_states(env.game.records, game.records, "the environment's game differs from the game played")
    _compare_seen(case, env, game)
    agents = [f"player_{seat}" for seat in range(game.num_players)]
    paid = dict(zip(agents, game.returns(reward).tolist(), strict=True)) if game.is_over else dict.fromkeys(agents, 0.0)
    case.check_equal(env.agents, agents, "agents")
    if not game.is_over:
        case.check_equal(env.agent_selection, agents[game.to_move], "agent_selection")
    case.check_equal(env.rewards, paid, "rewards")
    case.check_equal(env._cumulative_rewards, paid, "cumulative rewards")
    case.check_equal(env.terminations, dict.fromkeys(agents, game.is_over), "terminations")
    case.check_equal(env.truncations, dict.fromkeys(agents, False), "truncations")
    case.check_equal(env.infos, {agent: {} for agent in agents}, "infos")


def _compare_seen(case: Case, env: GameAEC, game: Game) -> None:
    for seat, agent in enumerate(env.possible_agents):
        seen = env.observe(agent)
        if not env.observation_space(agent).contains(seen):
            case.fail(f"the observation of seat {seat} is not in its space")
        case.check_equal({array.dtype for array in seen.values()}, {np.dtype(np.int8)}, "dtypes of the observation")
        case.check_same_planes(
            seen["observation"], case.observe(game, seat), f"the observation of seat {seat} is wrong"
        )
        case.check_equal(seen["action_mask"], case.mask_of(game, seat), f"mask of seat {seat}")


def check_pettingzoo(case: Case) -> None:
    """Check that PettingZoo's tests pass without warnings except `KNOWN_WARNINGS`."""
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "overflow encountered")  # from uncompiled random streams
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # from the tests themselves, on import
        tests: Any = importlib.import_module("pettingzoo.test")  # slow to import
        for make in (GameAEC, lambda *arguments: wrapped(GameAEC(*arguments))):
            for reward in REWARDS:
                tests.api_test(make(case.variant, reward), num_cycles=CYCLES)
            tests.seed_test(lambda make=make: make(case.variant), num_cycles=CYCLES)
    if messages := [str(one.message) for one in caught if not str(one.message).startswith(KNOWN_WARNINGS)]:
        case.fail(f"a warning: {messages[0]}")
    _check_rendering(case)


def _check_rendering(case: Case) -> None:
    """Check that the environment renders text; pictures are optional."""
    env = wrapped(GameAEC(case.variant, render_mode="ansi"))
    env.reset(seed=case.seed)
    for _ in range(5):
        text = env.render()
        if not (isinstance(text, str) and text.strip()):
            case.fail(f"render() in mode 'ansi' returns {text!r}")
        if env.terminations[env.agent_selection]:
            break
        env.step(int(env.unwrapped.game.legal_actions()[0]))


# Batches


def check_batch(case: Case) -> None:
    """Check that a batch plays the same games as PettingZoo's environment, at every ply and across restarts."""
    for reward in REWARDS:
        batch = GameVectorEnv(case.games, case.variant, reward, num_threads=1)
        batch.reset(seed=case.seed)
        envs = [GameAEC(case.variant, reward) for _ in range(case.games)]
        for index, env in enumerate(envs):
            env.reset(seed=case.seed + index)
        rng, case.ply = np.random.default_rng(case.seed), 0
        finished, most = np.zeros(case.games, np.int64), 2 * case.variant.sizes.max_plies
        while finished.min() < 2 and case.ply < most:  # to the end of the second game, if possible
            _compare_batch(case, batch, envs)
            actions = [int(rng.choice(env.game.legal_actions())) for env in envs]
            batch.step(actions)
            case.ply += 1
            for index, env in enumerate(envs):
                env.step(actions[index])
                _compare_end(case, batch, index, env, finished[index] > 0)
                if env.game.is_over:
                    finished[index] += 1
                    env.reset()


def _compare_batch(case: Case, batch: GameVectorEnv, envs: list[GameAEC]) -> None:
    for index, env in enumerate(envs):
        what, seen = f"of game {index} of a batch", env.observe(env.agent_selection)
        case.check_same_states(batch.games[index : index + 1], env.game.records, f"state {what}")
        case.check_equal(int(batch.to_move[index]), env.game.to_move, f"the seat to move {what}")
        case.check_same_planes(batch.observations[index], seen["observation"], f"planes {what}")
        case.check_equal(batch.action_mask[index], seen["action_mask"], f"mask {what}")


def _compare_end(case: Case, batch: GameVectorEnv, index: int, env: GameAEC, is_second: bool) -> None:
    what, game = f"of game {index} of a batch", env.game
    case.check_equal(bool(batch.terminated[index]), game.is_over, f"terminated, {what}")
    case.check_equal(batch.rewards[index].tolist(), list(env.rewards.values()), f"rewards {what}")
    if game.is_over:
        case.check_equal(int(batch.final_winner[index]), game.winner(), f"final winner {what}")
        case.check_equal(batch.final_scores[index].tolist(), game.scores().tolist(), f"final scores {what}")
    elif not is_second:
        case.check_equal(int(batch.final_winner[index]), UNFINISHED, f"final winner {what}, before the first end")


def check_illegal_steps(case: Case) -> None:
    """Check that an illegal step in PettingZoo's environment or a batch raises `ValueError` and changes nothing."""
    for seed in case.seeds():
        rng, env = np.random.default_rng(seed), GameAEC(case.variant)
        batch = GameVectorEnv(2, case.variant, num_threads=1)
        env.reset(seed=seed)
        batch.reset(seed=seed)
        while not env.game.is_over:
            if case.ply % 3 == 0:
                _step_illegally(case, env, batch, rng)
            legal = [int(rng.choice(np.flatnonzero(mask))) for mask in batch.action_mask]
            env.step(legal[0])
            batch.step(legal)
            case.ply += 1


def _step_illegally(case: Case, env: GameAEC, batch: GameVectorEnv, rng: np.random.Generator) -> None:
    other: Game = case.variant.game_class(batch.games[1:].copy())
    legal = int(np.flatnonzero(batch.action_mask[0])[0])
    for action in sample_illegal_actions(case, env.game, rng):
        before = _snapshot(env)
        check_refused(case, env.game, action, partial(env.step, action))
        case.check_equal(_snapshot(env), before, f"illegal action {action}: visible state of the environment")
    for action in sample_illegal_actions(case, other, rng):
        before = _snapshot_of_batch(batch)
        check_refused(case, other, action, partial(batch.step, [legal, action]))
        case.check_equal(_snapshot_of_batch(batch), before, f"illegal action {action}: visible state of the batch")


def _snapshot(env: GameAEC) -> list[Any]:
    """Return the user-visible state of an environment."""
    seen = [array.tobytes() for agent in env.possible_agents for array in env.observe(agent).values()]
    shown = (env.agent_selection, list(env.agents), dict(env.rewards), dict(env.terminations), dict(env.infos))
    return [env.game.records.tobytes(), *seen, *shown]


def _snapshot_of_batch(batch: GameVectorEnv) -> list[bytes]:
    arrays: tuple[npt.NDArray[Any], ...] = (
        batch.games, batch.observations, batch.action_mask, batch.to_move, batch.rewards, batch.terminated,
        batch.final_scores, batch.final_winner,
    )  # fmt: skip
    return [array.tobytes() for array in arrays]


# Starting positions


def check_positions(case: Case) -> None:
    """Check that environments start from positions of a game in every form and continue as the game does."""
    for seed in case.seeds():
        rng = np.random.default_rng(seed)
        played = [game.copy() for game in case.play(lambda legal, rng=rng: int(rng.choice(legal)))]  # type: ignore[misc]
        for case.ply in sorted({(len(played) - 1) // 3, len(played) - 2}):
            _start_single(case, played[case.ply])
            _start_batch(case, played[case.ply])


def _start_single(case: Case, game: Game) -> None:
    """Start PettingZoo's environment from all forms of a position and play one action."""
    for form in (game, game.records, game.records[0]):
        env, there = GameAEC(case.variant), game.copy()
        env.reset(seed=case.seed, options={"position": form})
        _compare_aec(case, env, there, "win")
        action = int(case.legal_actions(there)[-1])
        env.step(action)
        there.play(action)
        _compare_aec(case, env, there, "win")
        env.reset()
        case.check_same_states(
            env.game.records,
            case.variant.game_class.start(case.variant, case.seed).records,
            "the game after a given position is not the first one of the seed",
        )
    with contextlib.suppress(NotImplementedError):
        expected = case.variant.game_class.from_text(str(game))
        env.reset(options={"position": str(game)})
        case.check_equal(env.game == expected, True, "whether a game that starts from a text equals from_text")


def _start_batch(case: Case, game: Game) -> None:
    """Start some games of a batch from a position, and play one action."""
    batch = GameVectorEnv(3, case.variant, num_threads=1)
    batch.reset(seed=case.seed)
    envs = [GameAEC(case.variant) for _ in range(3)]
    for index, env in enumerate(envs):
        env.reset(case.seed + index, None if index == 1 else {"position": game})
    batch.reset(options={"position": [game, None, game.records[0]], "reset_mask": np.array([True, False, True])})
    _compare_batch(case, batch, envs)
    actions = [int(env.game.legal_actions()[-1]) for env in envs]
    batch.step(actions)
    for index, env in enumerate(envs):
        env.step(actions[index])
        _compare_end(case, batch, index, env, is_second=False)


# One seat


class _Random:
    """An opponent that plays random actions."""

    name = "random"

    def act(self, games: StateArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return uniformly random legal actions, (N,) int64."""
        streams = make_streams(int(rng.integers(1 << 32)), len(games))
        actions = [int(verbs.random_action(games[index], streams, index)) for index in range(len(games))]
        return np.array(actions, np.int64)


def check_one_seat(case: Case) -> None:
    """Check the learner's observations, masks and rewards in the one-seat environment; run Gymnasium's checker."""
    for _ in case.seeds():
        for seat in range(case.variant.num_players):
            reward = REWARDS[seat % len(REWARDS)]
            _play_one_seat(case, OneSeatEnv(case.variant, seat, _Random(), reward), reward)
    env = OneSeatEnv(case.variant, "random", _Random())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered")
        for seed in range(CHECKED_GAMES):
            env.action_space.seed(seed)
            check_env(env, skip_render_check=True)


def _play_one_seat(case: Case, env: OneSeatEnv, reward: str) -> None:
    rng, case.ply, over, paid = np.random.default_rng(case.seed), 0, False, 0.0
    seen, info = env.reset(seed=case.seed)
    while not over:
        game = env.game
        case.check_equal(game.to_move, env.seat, "the seat to move, at the learner's turn")
        case.check_same_planes(seen, case.observe(game, env.seat), "the learner's observation is wrong")
        case.check_equal(info["action_mask"], game.legal_mask(), "the learner's mask")
        seen, paid, over, _, info = env.step(int(rng.choice(case.legal_actions(game))))
        case.ply += 1
        if not over:
            case.check_equal(paid, 0.0, "reward before the end")
    case.check_same_planes(seen, case.observe(env.game, env.seat), "the learner's observation after the end is wrong")
    case.check_equal((bool(info["action_mask"].any()), env.game.is_over), (False, True), "any legal action, is_over")
    case.check_equal(paid, float(env.game.returns(reward)[env.seat]), "the learner's reward")
