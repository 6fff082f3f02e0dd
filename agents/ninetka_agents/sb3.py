"""`OneSeatVecEnv`: the native one-seat vector environment as a `VecEnv` of Stable-Baselines3.

Stable-Baselines3 is no dependency of this package, and nothing else imports this module. docs/trainers/sb3.md shows how
to train with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import VecEnv

from ninetka_env.api.one_seat import OneSeatVectorEnv
from ninetka_env.core.options import short_repr

GameIndices = int | Iterable[int] | None
"""The games that a method of `VecEnv` concerns; None for all."""


class OneSeatVecEnv(VecEnv):
    """N one-seat games for Stable-Baselines3 and SB3-contrib.

    Observations, rewards and infos are as in a `DummyVecEnv` of `gymnasium.make`. Steps are faster, because one call
    steps all games, and the opponents choose their actions for all games together. `MaskablePPO` reads the legal
    actions with `env_method("action_masks")`.

    There is no environment object per game: `set_attr` sets an attribute of `envs` for all games, and no game is
    wrapped. To record episodes, wrap this object in SB3's `VecMonitor`.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        """Wrap a vector environment.

        Args:
            envs: from `gymnasium.make_vec("ninetka_env:ninetka_env/Ninetka-v0", num_envs=N, ...)`.

        Raises:
            TypeError: if `envs` is another object, such as a wrapper of Gymnasium.
            ValueError: if finished games do not restart in the same step.
        """
        if not isinstance(envs, OneSeatVectorEnv):
            raise TypeError(f"envs: expected gymnasium.make_vec(...) of a game of ninetka, got {short_repr(envs)}")
        if (mode := envs.metadata["autoreset_mode"]) is not AutoresetMode.SAME_STEP:
            raise ValueError(f"envs: autoreset_mode={mode.name!r}, expected 'SAME_STEP'")
        self.envs = envs
        self._next_seed: int | None = None
        self._next_options: dict[str, Any] = {}
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next `reset`, for the random generator that all games share; None draws a seed."""
        seeds = super().seed(seed)
        self._next_seed = seeds[0]
        return seeds

    def set_options(self, options: Any = None) -> None:
        """Set the options of the next `reset`: a dict, as for `envs.reset`, or a list with the options of each game.

        Raises:
            ValueError: if `options` is neither, or the options of the games have different names.
        """
        rows = options if isinstance(options, list) else [options or {}]
        if not all(isinstance(one, dict) for one in rows):
            raise ValueError(f"options: expected a dict or {self.num_envs} dicts, got {short_repr(options)}")
        if isinstance(options, list):
            if len(rows) != self.num_envs or any(one.keys() != rows[0].keys() for one in rows):
                raise ValueError(f"options: expected {self.num_envs} dicts with equal keys, got {short_repr(options)}")
            options = {name: [one[name] for one in rows] for name in rows[0]}
        self._next_options = dict(options or {})

    def reset(self) -> npt.NDArray[np.int8]:
        """Restart all games and return their observations, (N, C, H, W) int8; the infos are in `reset_infos`."""
        seen, infos = self.envs.reset(seed=self._next_seed, options=self._next_options)
        self._next_seed, self._next_options = None, {}
        self.reset_infos = _rows(infos)
        return seen

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Keep the actions, (N,) integers, for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Play the actions and the opponents' moves; return observations, rewards, dones and infos.

        The info of a game that has ended holds its last mask and observation (`"terminal_observation"`).
        """
        seen, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        rows, dones = _rows(infos), terminated | truncated
        if dones.any():
            final = _rows(infos["final_info"])
            for index in np.flatnonzero(dones).tolist():
                self.reset_infos[index] = rows[index]
                rows[index] = final[index] | {"terminal_observation": infos["final_obs"][index]}
        for row, is_cut in zip(rows, (truncated & ~terminated).tolist(), strict=True):
            row["TimeLimit.truncated"] = is_cut
        return seen, rewards.astype(np.float32), dones, rows

    def env_method(
        self, method_name: str, *method_args: Any, indices: GameIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Return the results of `"action_masks"`, (num_actions,) bool, or `"render"` for each selected game."""
        if method_name not in ("action_masks", "render"):
            raise AttributeError(f"no method {method_name!r} of single games: there are action_masks and render")
        results = getattr(self.envs, method_name)()
        return [results[index] for index in self._selected(indices)]

    def get_attr(self, attr_name: str, indices: GameIndices = None) -> list[Any]:
        """Return an attribute for each selected game: `seat`, a method of `env_method`, or an attribute of `envs`.

        `observation_space` and `action_space` are those of one game.
        """
        selected = self._selected(indices)
        if attr_name == "seat":
            return [int(self.envs.seats[index]) for index in selected]
        if attr_name in ("action_masks", "render"):
            return [partial(self._call, attr_name, index) for index in selected]
        owner = self if attr_name in ("observation_space", "action_space") else self.envs
        return [getattr(owner, attr_name)] * len(selected)

    def set_attr(self, attr_name: str, value: Any, indices: GameIndices = None) -> None:
        """Set an attribute of `envs`; raise `ValueError` if `indices` does not select all games."""
        if sorted(self._selected(indices)) != list(range(self.num_envs)):
            raise ValueError(f"indices={short_repr(indices)}: expected all games, because they share their attributes")
        setattr(self.envs, attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: GameIndices = None) -> list[bool]:
        """Return False for each selected game."""
        return [False] * len(self._selected(indices))

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """Return a picture of each game, (H, W, 3) uint8; they need `render_mode="rgb_array"`."""
        return list(self.envs.render())

    def close(self) -> None:
        """Close the vector environment."""
        self.envs.close()

    def _call(self, method_name: str, index: int) -> Any:
        return self.env_method(method_name, indices=index)[0]

    def _selected(self, indices: GameIndices) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return [indices] if isinstance(indices, int) else list(indices)


def _rows(infos: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the infos of each game as a dict."""
    names = [name for name in infos if not name.startswith(("_", "final_"))]
    columns = [list(infos[name]) if infos[name].ndim > 1 else infos[name].tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
