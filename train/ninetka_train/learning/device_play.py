"""Rollouts of PPO on a GPU: games, networks and rollouts stay there. Start reading at `play_on_device`.

Random numbers are drawn on the device, so a run on a GPU plays other games than a run on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ninetka_agents.outputs import Outputs
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import Variant, limits_of
from ninetka_env.core.verbs import StateArray
from ninetka_env.gpu.vector import DeviceVectorEnv
from ninetka_train.learning.batch import roll_tensor
from ninetka_train.learning.learner import LEARNER, Learner, forward
from ninetka_train.learning.losses import check_outputs
from ninetka_train.learning.rollout import Rollout


class Endings(NamedTuple):
    """What a ply ended; see `Rollout`."""

    winners: Tensor
    owners: Tensor
    scores: Tensor


class DeviceGames:
    """The games of a run on a GPU, one batch for each variant.

    Here the games are ordered by batch: game i of a run, of variant i % V of V variants, has the index `columns[k] = i`
    for some k.
    """

    def __init__(self, variants: Sequence[Variant], games: StateArray, streams: Streams, device: Any) -> None:
        """Copy the games of a run, (B,) states and (B,) random streams, to a CUDA device."""
        count = len(variants)
        self._rows = [np.arange(first, len(games), count) for first in range(count)]
        self.columns: npt.NDArray[np.int64] = np.concatenate(self._rows)
        self.envs = [
            DeviceVectorEnv(len(own), variant, device=device) for own, variant in zip(self._rows, variants, strict=True)
        ]
        self.device, self.dtype = self.envs[0].device, games.dtype
        self.num_players = torch.from_numpy(games["num_players"][self.columns].astype(np.int8)).to(self.device)
        self.copy_from(games, streams)

    def copy_from(self, games: StateArray, streams: Streams) -> None:
        """Continue with these games and random streams, in the order of the run."""
        for env, own in zip(self.envs, self._rows, strict=True):
            env.reset(options={"position": games[own]})
            env.streams[: env.num_envs] = torch.from_numpy(streams[own].view(np.int64))

    def copy_to(self, games: StateArray, streams: Streams) -> None:
        """Copy the games and their random streams, in the order of the run."""
        games[self.columns] = self.states()
        own = torch.cat([env.streams[: env.num_envs] for env in self.envs])
        streams[self.columns] = own.cpu().numpy().view(np.uint64)

    def states(self, rows: Tensor | None = None) -> StateArray:
        """Return the states of all games, or of the given rows, on the CPU."""
        states = torch.cat([env.state_bytes for env in self.envs])
        chosen = states if rows is None else states[rows]
        return chosen.cpu().numpy().reshape(-1).view(self.dtype)

    def to_move(self) -> Tensor:
        """Return the seats to move, (B,) int8."""
        return torch.cat([env.to_move for env in self.envs])

    def encode(self, network: Any) -> Any:
        """Return the inputs of a network."""
        return join_inputs([network.encode_on_device(env) for env in self.envs])

    def step(self, actions: Tensor) -> Endings:
        """Play one action in each game, (B,) int64, and return what ended."""
        for env, own in zip(self.envs, torch.split(actions, [env.num_envs for env in self.envs]), strict=True):
            env.step(own)
        players = limits_of(self.dtype).players
        ended = torch.cat([env.terminated for env in self.envs])
        winners = torch.cat([env.final_winner for env in self.envs]).where(ended, UNFINISHED)
        scores = [torch.nn.functional.pad(env.final_scores, (0, players - env.num_players)) for env in self.envs]
        return Endings(winners, torch.cat([env.final_targets for env in self.envs]), torch.cat(scores).float())

    def check(self) -> None:
        """Raise `ValueError` if an action was illegal."""
        for env in self.envs:
            env.check()


def join_inputs(parts: Sequence[Any]) -> Any:
    """Return the inputs of several batches, NamedTuples of tensors, as those of one batch."""
    return parts[0] if len(parts) == 1 else type(parts[0])(*map(torch.cat, zip(*parts, strict=True)))


@torch.inference_mode()
def play_on_device(learner: Learner) -> Rollout:
    """Play T plies of all games and return the rollout, as tensors on the device; see `ppo.play`."""
    games: DeviceGames = learner.device_games
    generator = torch.Generator(games.device).manual_seed(int(learner.rng.integers(2**63)))
    opponents = learner.opponents[games.columns]
    seats = torch.from_numpy(learner.seats[games.columns]).to(games.device)
    has_opponent = torch.from_numpy(opponents != LEARNER).to(games.device)
    rows_by_opponent = {
        int(index): torch.from_numpy(np.flatnonzero(opponents == index)).to(games.device)
        for index in np.unique(opponents[opponents != LEARNER])
    }
    inputs, plies = [], []
    for _ in range(learner.config.ppo.plies):
        inputs.append(games.encode(learner.network))
        movers = games.to_move()
        learns = ~has_opponent | (movers == seats)
        outputs = forward(learner, inputs[-1])
        actions, log_probs = sample_on_device(outputs.logits, generator)
        for index, rows in rows_by_opponent.items():
            _choose_actions(learner, index, rows[~learns[rows]], inputs[-1], actions, generator)
        values = _values_by_seat(outputs, movers, games.num_players)
        plies.append((actions, log_probs, learns, movers, values, *games.step(actions)))
    last = _values_by_seat(forward(learner, games.encode(learner.network)), games.to_move(), games.num_players)
    actions, log_probs, learns, movers, values, *endings = map(torch.stack, zip(*plies, strict=True))
    values = torch.cat([values, last[None]])
    check_outputs(log_probs, values)
    games.check()
    return Rollout(join_inputs(inputs), actions, log_probs, learns, movers, games.num_players, values, *endings)


def _choose_actions(
    learner: Learner, index: int, rows: Tensor, inputs: Any, actions: Tensor, generator: torch.Generator
) -> None:
    """Write the actions of an opponent, an index into `[*league, *agents]`, into the given rows of `actions`, (B,)."""
    if not len(rows):
        return
    if index < len(learner.league):
        outputs = forward(learner, type(inputs)(*(tensor[rows] for tensor in inputs)), learner.league[index])
        actions[rows] = sample_on_device(outputs.logits, generator)[0]
    else:
        chosen = learner.agents[index - len(learner.league)].act(learner.device_games.states(rows), learner.rng)
        actions[rows] = torch.from_numpy(chosen).to(actions.device)


def sample_on_device(logits: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw an action per row of masked logits, (N, A); return the actions, (N,) int64, and their log probabilities.

    If an exponentially distributed random number of each action is divided by the action's probability, each action has
    the smallest quotient with its own probability. Here the inverse quotients are compared, so that actions of
    probability 0 are never drawn.
    """
    log_policy = logits.float().log_softmax(1)
    waiting = torch.empty_like(log_policy).exponential_(generator=generator).clamp_(min=torch.finfo().tiny)
    actions = (log_policy.exp() / waiting).argmax(1)
    return actions, log_policy.gather(1, actions[:, None])[:, 0]


def _values_by_seat(outputs: Outputs, movers: Tensor, num_players: Tensor) -> Tensor:
    """Return the win probabilities, (B, P) float32 per seat."""
    return roll_tensor(outputs.values.float(), -movers, num_players)
