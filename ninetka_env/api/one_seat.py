"""Gymnasium environments for every game: the learner plays one seat, agents play the others.

Create them with `gymnasium.make` and `gymnasium.make_vec`; see `ninetka_agents.one_seat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ninetka_env.api.one_seat_games import Generators, OneSeatGames, Opponent, seat_code
from ninetka_env.api.positions import starting_game, starting_states
from ninetka_env.api.rendering import RENDER_MODES, Renderer
from ninetka_env.api.reset_options import ResetOptions
from ninetka_env.core.batch import bytes_per_game
from ninetka_env.core.game import Game
from ninetka_env.core.options import as_action, check_actions, check_choice, check_count, check_memory, short_repr
from ninetka_env.core.random_streams import check_seed, is_seed
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray

Infos = dict[str, Any]


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
        illegal: str = "raise",
    ) -> None:
        """Make an environment; `reset` starts a game.

        Args:
            variant: the game with its options.
            seat: the learner's seat, or `"random"` to draw it for each game.
            opponents: an agent for all other seats, or a sequence of n - 1 agents for the seats after the learner's, in
                turn order.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.
            illegal: what an illegal action of the action space does. `"raise"`: `step` raises `ValueError`, and the
                game does not change. `"lose"`: the action is not played, and the game ends with reward -1, whatever
                `reward` is; `info["illegal_action"]` is True on that step only.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        self.metadata = dict(self.metadata)  # type: ignore[misc]  # Gymnasium 1.1's SyncVectorEnv writes into it
        self._batch = OneSeatGames(1, variant, seat, opponents, reward, illegal, names_games=False)
        self._reset_options = ResetOptions("position", "seat")
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
        """Start a game and play up to the learner's first turn; return the observation and info.

        Args:
            seed: seed of the random generator; None continues its stream.
            options: for this game only, `"seat"` is the learner's seat, as in the constructor, and `"position"` is the
                position to start from: a text that `str(game)` returned, a state or a `Game`, of which the position and
                `last_action` are kept.

        Raises:
            ValueError: if an option is wrong, or if the opponents end the game from this position before the learner's
                first turn. The environment then keeps its game.
            TypeError: if `options` is not a dict.
        """
        given = self._reset_options.read(options)
        variant, seats, states, last_action = self._batch.variant, None, None, -1
        if "seat" in given:
            seats = np.array([seat_code(given["seat"], variant.num_players)], np.int8)
        if "position" in given:
            game = starting_game(given["position"], variant)
            states, last_action = game.records, -1 if game.last_action is None else game.last_action
        super().reset(seed=check_seed(seed))
        with self._batch.rollback_on_error():
            self._batch.restart(np.arange(1), self.np_random, seats, states, last_action)
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[npt.NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        """Play the learner's action and the opponents' actions; on an error the game does not change.

        Raises:
            ValueError: if the action, or an opponent's action, is illegal; see the constructor's `illegal`.
            TypeError: if the action is not an integer.
            Exception: if an opponent raises it.
        """
        action = as_action(action, self._batch.variant.num_actions)
        if not -1 < action < self._batch.variant.num_actions:
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
        info = {"action_mask": self._batch.masks[0].copy(), "seat": self.seat}
        return info | {"illegal_action": bool(self._batch.illegal[0])} if self._batch.loses_illegal else info


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

    A game also ends, as truncated, with step `max_episode_steps` of the learner. Its mask is then not zero.
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
        max_episode_steps: int | None = None,
        illegal: str = "raise",
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
            max_episode_steps: the number of the learner's steps after which a game is truncated, as in Gymnasium's
                `TimeLimit`; None for no limit.
            illegal: as in `OneSeatEnv`; `infos["illegal_action"]` is then (N,) bool.

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
        self._max_steps = None if max_episode_steps is None else check_count("max_episode_steps", max_episode_steps)
        self._batch = OneSeatGames(num_envs, variant, seat, opponents, reward, illegal)
        self._reset_options = ResetOptions("position", "seat", "reset_mask")
        self._generators: list[np.random.Generator] | None = None
        self._all_games, self._all_indices = np.ones(num_envs, np.bool_), np.arange(num_envs)
        self._num_steps = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, np.bool_)
        self.single_observation_space = Box(0, 1, variant.sizes.planes, np.int8)
        self.single_action_space = Discrete(variant.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def games(self) -> StateArray:
        """(N,) states of the current games, for agents and searches; do not write to them."""
        return self._batch.games

    @property
    def seats(self) -> npt.NDArray[np.int8]:
        """(N,) int8, the learner's seat in each current game; a copy."""
        return self._batch.seats.copy()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | npt.NDArray[np.integer[Any]] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[np.int8], Infos]:
        """Start games; return (N, C, H, W) int8 observations and the infos.

        Args:
            seed: seed of the random generator that all games share; None continues its stream. With a sequence or array
                of N seeds, each game has its own generator: game i is the game of a single environment with seed i, and
                does not depend on the other games. Opponents then act in one game after another, which is slower. A
                None in the sequence continues the stream of that game.
            options: the entry `"reset_mask"`, (N,) bool with at least one True, selects the games to restart. By
                default, all games are restarted. For these games only, `"seat"` is the learner's seat: one for all, or
                (N,) integers; and `"position"` is the position to start from: one for all, as in `OneSeatEnv.reset`, or
                (N,) states, or a sequence of N positions; only the positions of `Game`s are kept.

        Raises:
            ValueError: if a seed or an option is wrong, or if the opponents end a game from its position before the
                learner's first turn. No game has then changed.
            TypeError: if `options` is not a dict.
        """
        given = self._reset_options.read(options)
        has_mask = options is not None and "reset_mask" in options
        where = self._check_reset_mask(given.get("reset_mask")) if has_mask else self._all_games
        seats, states, indices = None, None, np.flatnonzero(where)
        if "seat" in given:
            seats = self._check_seats(given["seat"])
        if "position" in given:
            states = starting_states(given["position"], self._batch.variant, where)
        self._seed(seed, indices)
        with self._batch.rollback_on_error():
            self._batch.restart(indices, self._rng, seats, states)
        self._num_steps[indices] = 0
        self._ended[indices] = False
        return self._batch.observations.copy(), self._infos(where)

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], Infos]:
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
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], Infos]:
        batch = self._batch
        if self._ended.any():  # never in `SAME_STEP`
            self._restart_ended_and_play(chosen)
        else:
            batch.play(self._all_indices, chosen, self._rng)
        num_steps = np.where(self._ended, 0, self._num_steps + 1)
        terminated = batch.terminated.copy()
        truncated = np.zeros(self.num_envs, np.bool_) if self._max_steps is None else num_steps >= self._max_steps
        rewards, ended = batch.rewards.astype(np.float64), terminated | truncated
        infos = {}
        if self._autoreset is AutoresetMode.SAME_STEP and ended.any():
            infos = self._restart_finished(ended)
            num_steps[ended] = 0
            ended = np.zeros(self.num_envs, np.bool_)
        infos |= self._infos(self._all_games)
        self._num_steps, self._ended = num_steps, ended  # last, because an error must not change them
        return batch.observations.copy(), rewards, terminated, truncated, infos

    def _restart_ended_and_play(self, chosen: npt.NDArray[np.int64]) -> None:
        """Do a step in which some games have ended earlier: restart those in `NEXT_STEP`, and refuse it otherwise."""
        if self._autoreset is not AutoresetMode.NEXT_STEP:
            index = int(self._ended.argmax())
            raise ValueError(f"game {index}: it is over, and does not restart in the mode DISABLED: call reset for it")
        going, ended = np.flatnonzero(~self._ended), np.flatnonzero(self._ended)
        self._batch.play(going, chosen[going], self._rng)
        self._batch.restart(ended, self._rng)

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

    @property
    def _rng(self) -> Generators:
        return self.np_random if self._generators is None else self._generators

    def _seed(self, seed: Any, indices: npt.NDArray[np.int64]) -> None:
        """Seed the generator of all games, or the generators of the selected games; None changes nothing."""
        if not _is_many(seed):
            super().reset(seed=check_seed(seed))
            self._generators = self._generators if seed is None else None
            return
        seeds = self._check_seeds(seed)
        if self._generators is None:
            drawn = self.np_random.integers(2**62, size=self.num_envs)
            self._generators = [seeding.np_random(one)[0] for one in drawn.tolist()]
        for index in indices.tolist():
            if seeds[index] is not None:
                self._generators[index] = seeding.np_random(seeds[index])[0]

    def _check_seeds(self, seeds: Any) -> list[int | None]:
        are_integers = (one is None or is_seed(one) for one in seeds)
        if len(seeds) != self.num_envs or not all(are_integers):
            raise ValueError(
                f"seed={short_repr(seeds)}: expected an integer of at least 0, or {self.num_envs} of them, one per game"
            )
        return [None if one is None else int(one) for one in seeds]

    def _check_seats(self, seat: Any) -> npt.NDArray[np.int8]:
        """Return the learner's seats, (N,) int8, -1 to draw the seat; `seat` is one for all games or one for each."""
        given = list(seat) if _is_many(seat) else [seat] * self.num_envs
        if len(given) != self.num_envs:
            expected = f"expected one seat, or {self.num_envs} of them, one per game"
            raise ValueError(f"seat: a sequence of {len(given)} is given, {expected}")
        return np.array([seat_code(one, self._batch.variant.num_players) for one in given], np.int8)

    def _check_reset_mask(self, mask: Any) -> npt.NDArray[np.bool_]:
        if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (self.num_envs,) and mask.any():
            return mask
        raise ValueError(f"reset_mask={short_repr(mask)}: expected ({self.num_envs},) bool, at least one of them True")

    def _restart_finished(self, ended: npt.NDArray[np.bool_]) -> Infos:
        """Restart the finished games and return their last observations and infos in the format of `SAME_STEP`."""
        final = {"final_obs": self._batch.observations.copy(), "final_info": self._infos(ended)}
        self._batch.restart(np.flatnonzero(ended), self._rng)
        return final | {"_final_obs": ended, "_final_info": ended}

    def _infos(self, where: npt.NDArray[np.bool_]) -> Infos:
        """Return the infos of the games that `where`, (N,) bool, marks; `_action_mask` and so on are copies of it."""
        infos: Infos = {"action_mask": self._batch.masks.copy(), "seat": self._batch.seats.copy()}
        if self._batch.loses_illegal:
            infos["illegal_action"] = self._batch.illegal.copy()
        return infos | {f"_{name}": where.copy() for name in infos}


def _parse_autoreset_mode(given: Any) -> AutoresetMode:
    """Return the mode for `given`: a member of `AutoresetMode`, its name or its value."""
    spellings = {spelling: mode for mode in AutoresetMode for spelling in (mode.name, mode.value)}
    asked = given.name if isinstance(given, AutoresetMode) else given
    return list(spellings.values())[check_choice("autoreset_mode", asked, tuple(spellings))]


def _is_many(value: Any) -> bool:
    """Return whether an argument holds one value for each game."""
    is_array = isinstance(value, np.ndarray) and value.ndim > 0
    return is_array or (isinstance(value, Sequence) and not isinstance(value, str))
