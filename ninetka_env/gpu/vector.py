"""Vector environment for self-play on a GPU: many games at once, as tensors of PyTorch that never leave the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from torch import Tensor

from ninetka_env.api.aec import observation_space
from ninetka_env.api.positions import starting_states
from ninetka_env.api.reset_options import ResetOptions, check_reset_mask
from ninetka_env.core.batch import make_outcomes
from ninetka_env.core.options import check_actions, check_choice, check_count
from ninetka_env.core.outcome import REWARDS, UNFINISHED
from ninetka_env.core.random_streams import make_game_streams
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray
from ninetka_env.gpu import kernels
from ninetka_env.gpu.device import IS_SIMULATED, as_array, find_device, launch, launch_per_game

OUTPUT_THREADS = 4 if IS_SIMULATED else 128
"""Threads per block that write outputs; the simulator starts a thread of Python for each."""


class DeviceVectorEnv:
    """Environment for self-play in N games at once on a GPU; each step plays one action per game for its seat to move.

    The games are those of `ninetka_env.api.vector.GameVectorEnv`, bit for bit: with the same seeds and actions, all
    arrays have the same contents. They are tensors on the device here, which `reset` and `step` overwrite. No method
    waits for the device, except those whose description says so.

    An illegal action changes nothing in its game, but is noted on the device. The game is not played any more until
    `check` or `reset` has reported the action.

    Attributes:
        device: the device of the tensors.
        observations: (N, C, H, W) int8, each game as its seat to move sees it.
        action_mask: (N, num_actions) int8, the legal actions of the seat to move.
        to_move: (N,) int8, the seat that acts next.
        rewards: (N, n) float32, per seat; zero except on the step that ends a game.
        terminated: (N,) bool, whether the last step ended the game.
        final_scores: (N, n) of the game's `score_dtype`, the final scores of the last game that has ended in each row.
        final_winner: (N,) int8, the winner of the last game that has ended in each row: a seat or -1 (`DRAWN`); -2
            (`UNFINISHED`) if no game has ended there.
        final_targets: (N, T) int8, the final targets of the last game that has ended in each row; see
            `ninetka_env.core.verbs.write_targets`.
        streams: (2 * N,) int64, the bits of the random streams of the games' starts, then of `sample_legal`.
        state_bytes: (N, B) uint8, the bytes of the states, for other kernels; see `states`.
    """

    def __init__(
        self, num_envs: int, variant: Variant, reward: str = "win", device: Any = "cuda", validate: bool = False
    ) -> None:
        """Allocate the tensors and start the games with unseeded random streams; `reset` restarts them.

        Args:
            num_envs: N, the number of games, at least 1.
            variant: the game with its options.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            device: a CUDA device of PyTorch.
            validate: whether each step waits for the device and raises an error for an illegal action, like `check`.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
            RuntimeError: if there is no such GPU, or numba-cuda is not installed.
        """
        self.variant = variant
        self.metadata = {"name": variant.definition.version, "autoreset_mode": AutoresetMode.SAME_STEP}
        self._reward = check_choice("reward", reward, REWARDS)
        self.num_envs = check_count("num_envs", num_envs)
        self._validate = bool(check_choice("validate", validate, (False, True)))
        self.device = find_device(device)
        self.single_observation_space = observation_space(variant)
        self.single_action_space = Discrete(variant.num_actions)
        self._allocate()
        self._reset_options = ResetOptions("position", "reset_mask")
        self._set_streams(None, np.ones(self.num_envs, np.bool_))
        self.reset()

    def _allocate(self) -> None:
        """Allocate the tensors, and make the arrays that kernels take."""
        count, variant, device = self.num_envs, self.variant, self.device
        outcomes = make_outcomes(variant.dtype, count, variant.num_players)
        planes = int(np.prod(variant.sizes.planes))
        observations, masks = _flat_bytes(count * planes, device), _flat_bytes(count * variant.num_actions, device)
        self.observations = observations[: count * planes].view(count, *variant.sizes.planes)
        self.action_mask = masks[: count * variant.num_actions].view(count, variant.num_actions)
        self.to_move = torch.zeros(count, dtype=torch.int8, device=device)
        self.terminated = torch.zeros(count, dtype=torch.bool, device=device)
        self.final_winner, self.final_scores, self.rewards, self.final_targets = (
            torch.from_numpy(array).to(device) for array in outcomes
        )
        self.state_bytes = torch.zeros((count, variant.dtype.itemsize), dtype=torch.uint8, device=device)
        self._actions = torch.zeros(count, dtype=torch.int64, device=device)
        self._illegal = torch.full((count,), kernels.NO_ACTION, device=device)
        self._chosen = torch.zeros(count, dtype=torch.bool, device=device)
        self.streams = torch.zeros(2 * count, dtype=torch.int64, device=device)  # the bits of uint64
        options = torch.tensor(variant.codes, dtype=torch.int64, device=device)
        self._options = options  # kernels use its memory
        games, streams = as_array(self.state_bytes, variant.dtype), as_array(self.streams, np.uint64)
        actions, terminated = as_array(self._actions), as_array(self.terminated)
        outcome_arrays = map(as_array, (self.final_winner, self.final_scores, self.rewards, self.final_targets))
        self._start_arguments = games, as_array(self._chosen), as_array(options), streams
        self._sample_arguments = games, streams, actions
        self._step_arguments = (
            games, actions, as_array(self._illegal), as_array(options), streams, self._reward, terminated,
            *outcome_arrays,
        )  # fmt: skip
        self._outputs = kernels.output_kernel(variant.dtype, planes, variant.num_actions)
        self._output_arguments = (
            games, *(as_array(one, self._outputs.dtype) for one in (observations, masks)), as_array(self.to_move)
        )  # fmt: skip

    @property
    def num_players(self) -> int:
        """Number of seats of each game."""
        return self.variant.num_players

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Tensor:
        """Restart games, by default all, and return `observations`; see `GameVectorEnv.reset`.

        This waits for the device. A `reset_mask` can be a tensor.

        Raises:
            ValueError: if the seed, a position or the mask is not valid, or an action since the last check was illegal;
                nothing changes.
        """
        given = self._reset_options.read(options)
        mask, position = given.get("reset_mask"), given.get("position")
        mask = mask.cpu().numpy() if isinstance(mask, Tensor) else mask
        where = np.ones(self.num_envs, np.bool_) if mask is None else check_reset_mask(mask, self.num_envs)
        states = None if position is None else starting_states(position, self.variant, where)
        self.check()
        if seed is not None:
            self._set_streams(seed, where)
        if mask is None:
            self.rewards.zero_()
            self.terminated.zero_()
            self.final_scores.zero_()
            self.final_winner.fill_(UNFINISHED)
        self._chosen.copy_(torch.from_numpy(where))
        if states is None:
            launch_per_game(kernels.start_games, self.device, self.num_envs, *self._start_arguments)
        else:
            rows = np.broadcast_to(states, where.sum()).copy().view(np.uint8).reshape(where.sum(), -1)
            self.state_bytes[self._chosen] = torch.from_numpy(rows).to(self.device)
        self._refresh()
        return self.observations

    def step(self, actions: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Play one action in every game and return `observations`, `rewards` and `terminated`.

        Args:
            actions: (N,) integers, one legal action per game for its seat to move: a tensor, or what
                `GameVectorEnv.step` accepts. If it is not on the device, it is copied.

        Raises:
            ValueError: if the shape is wrong; with `validate`, if an action is illegal.
            TypeError: if the actions are not integers.
        """
        self._actions.copy_(self._checked(actions))
        launch_per_game(kernels.step_games, self.device, self.num_envs, *self._step_arguments)
        self._refresh()
        if self._validate:
            self.check()
        return self.observations, self.rewards, self.terminated

    def sample_legal(self) -> Tensor:
        """Return a random legal action for each game, (N,) int64; the same as `GameVectorEnv.sample_legal`."""
        launch_per_game(kernels.sample_actions, self.device, self.num_envs, *self._sample_arguments)
        return self._actions.clone()

    def check(self) -> None:
        """Wait for the device, and raise an error if an action since the last check was illegal.

        The games can be played on afterwards: an illegal action has changed nothing.

        Raises:
            ValueError: the message names the first such game, its first illegal action and the legal actions.
        """
        wrong = (self._illegal != kernels.NO_ACTION).nonzero()
        if len(wrong):
            index = int(wrong[0])
            action, state = int(self._illegal[index]), self.states()[index : index + 1]
            self._illegal.fill_(kernels.NO_ACTION)
            raise ValueError(f"game {index}: {self.variant.game_class(state).describe_illegal(action)}")

    def states(self) -> StateArray:
        """Wait for the device, and return the states of the games, an (N,) state array on the CPU.

        They can be given to agents, to `reset` of any environment as positions, and saved.
        """
        return self.state_bytes.cpu().numpy().copy().reshape(-1).view(self.variant.dtype)

    def close(self) -> None:
        """Do nothing; for symmetry with the environment on the CPU."""

    def _checked(self, actions: Any) -> Tensor:
        """Return actions as a tensor, after checking shape and dtype."""
        if not isinstance(actions, Tensor):
            return torch.from_numpy(check_actions(actions, self.num_envs))
        if actions.is_floating_point() or actions.is_complex() or actions.dtype == torch.bool:
            raise TypeError(f"actions: expected integers, got {actions.dtype}")
        if actions.shape != (self.num_envs,):
            raise ValueError(f"actions: expected shape ({self.num_envs},), got {tuple(actions.shape)}")
        return actions

    def _set_streams(self, seed: int | None, where: npt.NDArray[np.bool_]) -> None:
        """Seed the random streams of the chosen games."""
        streams = torch.from_numpy(make_game_streams(seed, self.num_envs).view(np.int64)).to(self.device)
        chosen = torch.from_numpy(np.tile(where, 2)).to(self.device)
        self.streams.copy_(torch.where(chosen, streams, self.streams))

    def _refresh(self) -> None:
        """Write observations, masks and seats to move."""
        per_block = self._outputs.games_per_block
        threads = max(OUTPUT_THREADS, min(per_block, self.num_envs))
        launch(self._outputs.kernel, self.device, -(-self.num_envs // per_block), threads, *self._output_arguments)


def _flat_bytes(size: int, device: torch.device) -> Tensor:
    """Return an int8 tensor with at least `size` elements, all 0; kernels write eight bytes at once."""
    return torch.zeros(-(-size // 8) * 8, dtype=torch.int8, device=device)
