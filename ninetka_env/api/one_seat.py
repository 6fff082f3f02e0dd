"""Gymnasium environments for every game: the learner plays one seat, agents play the others.

Create them with `gymnasium.make` and `gymnasium.make_vec`; see `ninetka_agents.one_seat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ninetka_env.api.rendering import RENDER_MODES, Renderer
from ninetka_env.core.batch import bytes_per_game, option_codes, play_all, restart_games, write_finished
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import as_action, check_actions, check_choice, check_count, check_memory, short_repr
from ninetka_env.core.outcome import REWARDS, write_rewards
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray, is_over, write_legal_mask, write_observation

MAX_STARTS = 100
"""Maximum number of attempts to start a game that does not end before the learner's first turn."""


class Opponent(Protocol):
    """Interface of the agents that play the other seats, such as the agents of `ninetka_agents`."""

    name: str

    def act(self, games: StateArray, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return (N,) int64 legal actions for (N,) states of unfinished games."""
        ...


class OneSeatGames:
    """N games in which the learner plays one seat and opponents play the others.

    `OneSeatEnv` and `OneSeatVectorEnv` are based on this class.

    Attributes:
        games: (N,) states.
        seats: (N,) int8, the learner's seat in each game.
        observations: (N, C, H, W) int8, as the learner's seat sees each game.
        masks: (N, num_actions) int8, 1 for legal actions.
        rewards: (N,) float32, the learner's reward where the game is over, else 0.
        terminated: (N,) bool, whether the game is over.
        last_actions: (N,) int64, the action played last in each game, -1 at the start.
    """

    def __init__(self, num_envs: int, variant: Variant, seat: int | str, opponents: Any, reward: str) -> None:
        """Check the options and allocate the arrays; see `OneSeatEnv` for the arguments."""
        self.variant = variant
        self._reward = check_choice("reward", reward, REWARDS)
        check_choice("seat", seat, ("random", *range(variant.num_players)))
        self._seat = seat
        self._opponents = _group_opponents(opponents, variant.num_players)
        self._options = option_codes(variant, num_envs)
        self.games = np.zeros(num_envs, variant.dtype)
        self.seats = np.zeros(num_envs, np.int8)
        self.observations = np.zeros((num_envs, *variant.sizes.planes), np.int8)
        self.masks = np.zeros((num_envs, variant.num_actions), np.int8)
        self.rewards = np.zeros(num_envs, np.float32)
        self.terminated = np.zeros(num_envs, np.bool_)
        self.last_actions = np.full(num_envs, -1, np.int64)

    def _check_started(self, indices: npt.NDArray[np.int64] | int) -> None:
        """Raise `gymnasium.error.ResetNeeded` unless the selected games have been started."""
        if not self.games["num_players"][indices].all():
            raise gymnasium.error.ResetNeeded("there is no game yet: call reset first")

    @contextmanager
    def rollback_on_error(self) -> Iterator[None]:
        """Restore the games if an exception leaves the context, such as an opponent's error or `KeyboardInterrupt`."""
        before = self.games.copy(), self.seats.copy(), self.last_actions.copy()
        try:
            yield
        except BaseException:
            self.games[:], self.seats[:], self.last_actions[:] = before
            self._write_outputs(np.flatnonzero(self.games["num_players"]))  # only the games that have been started
            raise

    def restart(self, indices: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Restart the selected games and let the opponents move until it is the learner's turn.

        Raises:
            ValueError: if a game has ended `MAX_STARTS` times before the learner's turn.
        """
        for _ in range(MAX_STARTS):
            self._start(indices, rng)
            indices = indices[self.terminated[indices]]
            if len(indices) == 0:
                return
        raise ValueError(
            f"game {indices[0]}: it ended {MAX_STARTS} times before seat {self.seats[indices[0]]} could move"
        )

    def _start(self, indices: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        drawn = self._seat == "random"
        self.seats[indices] = rng.integers(self.variant.num_players, size=len(indices)) if drawn else self._seat
        streams = np.zeros(len(self.games), np.uint64)
        streams[indices] = rng.integers(0, 2**64, size=len(indices), dtype=np.uint64)
        self.last_actions[indices] = -1
        restart_games(self.games, indices, self._options, streams)
        self._let_opponents_move(indices, rng)

    def play(self, indices: npt.NDArray[np.int64], actions: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Play the learner's actions in the selected games, then let the opponents move.

        Raises:
            ValueError: if an action is illegal. For an action of the learner, no game has changed, and the message
                names the game. For an action of an opponent, the message names the opponent.
            gymnasium.error.ResetNeeded: if a game has not been started.
        """
        self._check_started(indices)
        if (illegal := play_all(self.games, indices, actions, np.zeros(len(indices), np.bool_))) >= 0:
            index = int(indices[illegal])
            raise ValueError(f"game {index}: {self.game(index).describe_illegal(int(actions[illegal]))}")
        self.last_actions[indices] = actions
        self._let_opponents_move(indices, rng)

    def game(self, index: int) -> Game:
        """Return the current position as a `Game` that shares memory with this object.

        Raises:
            gymnasium.error.ResetNeeded: if the game has not been started.
        """
        self._check_started(index)
        game: Game = self.variant.game_class(self.games[index : index + 1])
        last = int(self.last_actions[index])
        game.last_action = None if last < 0 else last
        return game

    def _let_opponents_move(self, indices: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Play the opponents' moves until each selected game is over or the learner is to move; update the outputs."""
        over = np.zeros(len(indices), np.bool_)
        while True:
            write_finished(self.games, indices, over)
            relative = (self.games["to_move"][indices] - self.seats[indices]) % self.variant.num_players
            relative[over] = 0
            if not relative.any():
                break
            for seats, agent in self._opponents:
                theirs = indices[np.isin(relative, seats)]
                if len(theirs):
                    self._move(agent, theirs, rng)
        self._write_outputs(indices)

    def _move(self, agent: Opponent, indices: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Let an opponent move in the selected games; raise `ValueError` with its name if an action is illegal."""
        actions = check_actions(agent.act(self.games[indices], rng), len(indices))
        if (illegal := play_all(self.games, indices, actions, np.zeros(len(indices), np.bool_))) >= 0:
            game = self.game(int(indices[illegal]))
            raise ValueError(f"opponent {agent.name!r}: {game.describe_illegal(int(actions[illegal]))}")
        self.last_actions[indices] = actions

    def _write_outputs(self, indices: npt.NDArray[np.int64]) -> None:
        flat = self.observations.reshape(len(self.games), -1)
        _write_outputs(self.games, indices, self.seats, self._reward, flat, self.masks, self.rewards, self.terminated)


class LegalActions(Discrete):
    """`Discrete(num_actions)` whose samples are by default legal in the current position."""

    def __init__(self, masks: npt.NDArray[np.int8]) -> None:
        """Keep a reference to `masks`, (N, num_actions) int8; each sample reads the first row at that time."""
        super().__init__(masks.shape[1])
        self._masks = masks

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action; arguments as in `gymnasium.spaces.Discrete.sample`."""
        return super().sample(self._masks[0] if mask is None and probability is None else mask, probability)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy as a plain `Discrete` with the same random generator, because a copy has no current position."""
        return Discrete, (int(self.n),), {name: value for name, value in vars(self).items() if name != "_masks"}


class OneSeatEnv(gymnasium.Env[npt.NDArray[np.int8], np.int64]):
    """A game as a Gymnasium environment for a learner in one seat.

    Observations are only the planes, (C, H, W) int8, as the learner's seat sees the game. The legal actions are in
    `info["action_mask"]`, (num_actions,) int8, and are returned by `action_masks()`. Each step plays the learner's
    action, then the opponents' actions up to the learner's next turn. The reward is nonzero only on the last step.

    When the game is over the mask is all zero, because no action is legal, and `step` raises `ValueError` until
    `reset`. Samples from such a mask are meaningless: `Discrete.sample(mask)` returns action 0, a softmax over logits
    of minus infinity gives NaN, and a softmax over equal logits gives any action.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # type: ignore[misc]

    def __init__(
        self,
        variant: Variant,
        seat: int | str = "random",
        opponents: Opponent | Sequence[Opponent] = (),
        reward: str = "win",
        render_mode: str | None = None,
    ) -> None:
        """Make an environment; `reset` starts a game.

        Args:
            variant: the game with its options.
            seat: the learner's seat, or `"random"` to draw it for each game.
            opponents: an agent for all other seats, or a sequence of n - 1 agents for the seats after the learner's, in
                turn order.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        self._batch = OneSeatGames(1, variant, seat, opponents, reward)
        self.observation_space = Box(0, 1, variant.sizes.planes, np.int8)
        self.action_space = LegalActions(self._batch.masks)

    @property
    def game(self) -> Game:
        """The current game; it shares memory with the environment, so do not play in it but use `step`."""
        return self._batch.game(0)

    @property
    def seat(self) -> int:
        """The learner's seat in the current game."""
        return int(self._batch.seats[0])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.int8], dict[str, Any]]:
        """Start a game and play up to the learner's first turn; return the observation and info."""
        super().reset(seed=seed)
        with self._batch.rollback_on_error():
            self._batch.restart(np.arange(1), self.np_random)
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[npt.NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        """Play the learner's action and the opponents' actions; on an error the game does not change.

        Raises:
            ValueError: if the action, or an opponent's action, is illegal.
            TypeError: if the action is not an integer.
            Exception: if an opponent raises it.
        """
        action = as_action(action, self._batch.variant.num_actions)
        if not -1 < action < 1 << 31:
            raise ValueError(self.game.describe_illegal(action))
        with self._batch.rollback_on_error():
            self._batch.play(np.arange(1), np.array([action], np.int64), self.np_random)
        return self._observation(), float(self._batch.rewards[0]), bool(self._batch.terminated[0]), False, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, (num_actions,) bool; SB3-contrib's MaskablePPO calls this method."""
        return self._batch.masks[0].astype(np.bool_)

    def render(self) -> Any:
        """Return or show the board; see `ninetka_env.api.rendering.Renderer.render`."""
        self._renderer.check_mode()
        return self._renderer.render(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._renderer.close()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy of the environment; its action space draws legal actions of the copy's position."""
        vars(self).update(state)
        plain, self.action_space = self.action_space, LegalActions(self._batch.masks)
        vars(self.action_space).update(vars(plain))

    def _observation(self) -> npt.NDArray[np.int8]:
        if self.render_mode == "human":
            self._renderer.render(self.game)
        return self._batch.observations[0].copy()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._batch.masks[0].copy(), "seat": self.seat}


class OneSeatVectorEnv(VectorEnv[npt.NDArray[np.int8], npt.NDArray[np.int64], npt.NDArray[Any]]):
    """Vector environment of N games as in `OneSeatEnv`.

    One call of an opponent's `act` returns its actions for all games where it is to move.

    Gymnasium's `AutoresetMode`, in `metadata["autoreset_mode"]`, defines what happens when a game ends:

    - `SAME_STEP`: the game restarts in the same step. `info["final_obs"]` and `info["final_info"]` hold the last
      observation and info of the games marked in `info["_final_obs"]`. Every mask has a legal action.
    - `NEXT_STEP`: the step returns the last observation with a mask that is all zero. The next step ignores the action
      for this game, starts the next game and returns its first observation, reward 0 and terminated False.
      Gymnasium's observation wrappers require this mode. A policy gets an all-zero mask once in each game: mask the
      logits with a large finite number, because minus infinity gives NaN, and do not train on these steps.
    - `DISABLED`: the game stays finished, and `step` raises an error, until `reset(options={"reset_mask": mask})`
      restarts it.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        variant: Variant,
        seat: int | str = "random",
        opponents: Opponent | Sequence[Opponent] = (),
        reward: str = "win",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    ) -> None:
        """Make the environment; `reset` starts the games.

        Args:
            num_envs: N, the number of games, at least 1.
            variant: the game with its options.
            seat: the learner's seat in every game, or `"random"` to draw it for each game.
            opponents: as in `OneSeatEnv`.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            render_mode: None, `"rgb_array"` or `"ansi"`; to get a window, wrap an environment of mode `"rgb_array"` in
                Gymnasium's `wrappers.vector.HumanRendering`.
            autoreset_mode: a member of `gymnasium.vector.AutoresetMode`, or its name or value as text, such as
                `"NEXT_STEP"` or `"NextStep"`.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        self.num_envs = check_count("num_envs", num_envs)
        check_memory("num_envs", self.num_envs, bytes_per_game(variant))
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        self._autoreset = _parse_autoreset_mode(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": self._autoreset}  # type: ignore[misc]
        self._batch = OneSeatGames(num_envs, variant, seat, opponents, reward)
        self._all_games = np.ones(num_envs, np.bool_)
        self.single_observation_space = Box(0, 1, variant.sizes.planes, np.int8)
        self.single_action_space = Discrete(variant.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.int8], dict[str, Any]]:
        """Start games; return (N, C, H, W) int8 observations and the infos.

        Args:
            seed: seed of the random generator; None continues its stream.
            options: the entry `"reset_mask"`, (N,) bool with at least one True, selects the games to restart. By
                default, all games are restarted.

        Raises:
            ValueError: if `"reset_mask"` is not such an array.
        """
        where = self._all_games if not options else self._check_reset_mask(options.get("reset_mask", self._all_games))
        super().reset(seed=seed)
        with self._batch.rollback_on_error():
            self._batch.restart(np.flatnonzero(where), self.np_random)
        return self._batch.observations.copy(), self._infos(where)

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Play one action per game, (N,) integers, and let the opponents move.

        On an error no game changes. In `NEXT_STEP` the actions for games that restart are ignored.

        Returns:
            (N, C, H, W) int8 observations, (N,) float64 rewards, (N,) bool terminated, (N,) bool truncated, and infos.

        Raises:
            ValueError: if the shape is wrong or an action is illegal; the message names the first such game. Also if an
                opponent's action is illegal.
            TypeError: if the actions are not integers.
            Exception: if an opponent raises it.
        """
        chosen = check_actions(actions, self.num_envs)
        with self._batch.rollback_on_error():
            return self._step(chosen)

    def _step(
        self, chosen: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        batch = self._batch
        if self._autoreset is AutoresetMode.NEXT_STEP and batch.terminated.any():
            ended, going = np.flatnonzero(batch.terminated), np.flatnonzero(~batch.terminated)
            batch.play(going, chosen[going], self.np_random)
            batch.restart(ended, self.np_random)
        else:
            batch.play(np.arange(self.num_envs), chosen, self.np_random)
        rewards, over = batch.rewards.astype(np.float64), batch.terminated.copy()
        infos = self._restart_finished(over) if self._autoreset is AutoresetMode.SAME_STEP and over.any() else {}
        return (
            batch.observations.copy(),
            rewards,
            over,
            np.zeros(self.num_envs, np.bool_),
            infos | self._infos(self._all_games),
        )

    def render(self) -> tuple[Any, ...]:
        """Return one frame per game: (H, W, 3) uint8 pictures (`rgb_array`) or texts (`ansi`).

        Raises:
            ValueError: if the environment was made without a render mode, or the game has no pictures.
            ImportError: if pygame is missing; the message names the extra to install.
        """
        self._renderer.check_mode()
        return tuple(self._renderer.render(self._batch.game(index)) for index in range(self.num_envs))

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, (N, num_actions) bool."""
        return self._batch.masks.astype(np.bool_)

    def _check_reset_mask(self, mask: Any) -> npt.NDArray[np.bool_]:
        if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (self.num_envs,) and mask.any():
            return mask
        raise ValueError(f"reset_mask={short_repr(mask)}: expected ({self.num_envs},) bool, at least one of them True")

    def _restart_finished(self, over: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Restart the finished games and return their last observations and infos in the format of `SAME_STEP`."""
        final = {"final_obs": self._batch.observations.copy(), "final_info": self._infos(over)}
        self._batch.restart(np.flatnonzero(over), self.np_random)
        return final | {"_final_obs": over, "_final_info": over}

    def _infos(self, where: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return the infos of the games that `where`, (N,) bool, marks; `_action_mask` and `_seat` are copies of it."""
        masks, seats = self._batch.masks.copy(), self._batch.seats.copy()
        return {"action_mask": masks, "_action_mask": where.copy(), "seat": seats, "_seat": where.copy()}


def _parse_autoreset_mode(given: Any) -> AutoresetMode:
    """Return the mode for `given`: a member of `AutoresetMode`, its name or its value."""
    spellings = {spelling: mode for mode in AutoresetMode for spelling in (mode.name, mode.value)}
    asked = given.name if isinstance(given, AutoresetMode) else given
    return list(spellings.values())[check_choice("autoreset_mode", asked, tuple(spellings))]


def _group_opponents(opponents: Any, num_players: int) -> list[tuple[list[int], Opponent]]:
    """Return each distinct agent with its relative seats; relative seat r (1..n-1) is r places after the learner's."""
    given = list(opponents) if isinstance(opponents, Sequence) else [opponents] * (num_players - 1)
    if len(given) != num_players - 1:
        raise ValueError(f"opponents: {len(given)} given, expected one for all or {num_players - 1}, one per seat")
    for one in given:
        if not callable(getattr(one, "act", None)):
            raise ValueError(f"opponents: {short_repr(one)} is neither an agent's spec nor an agent with a method act")
    agents = {id(one): one for one in given}
    return [([r for r, one in enumerate(given, start=1) if id(one) == key], agent) for key, agent in agents.items()]


@jit
def _write_outputs(
    games: StateArray,
    indices: npt.NDArray[np.int64],
    seats: npt.NDArray[np.int8],
    reward: int,
    planes: npt.NDArray[np.int8],
    masks: npt.NDArray[np.int8],
    rewards: npt.NDArray[np.float32],
    terminated: npt.NDArray[np.bool_],
) -> None:
    """Write the learner's observations, masks and rewards of the selected games, and whether they are over."""
    for index in indices:
        game, seat = games[index], seats[index]
        paid = np.empty(game.num_players, np.float32)
        write_observation(game, seat, planes[index])
        write_legal_mask(game, masks[index])
        terminated[index] = is_over(game)
        rewards[index] = 0.0
        if terminated[index]:
            write_rewards(game, reward, paid)
            rewards[index] = paid[seat]
