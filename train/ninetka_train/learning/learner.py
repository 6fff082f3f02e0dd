"""The state of a run of PPO; `ppo.py` has the training loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.agent import Agent
from ninetka_agents.net_agent import SearchSettings
from ninetka_agents.outputs import Outputs
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import OptionCodes, StateArray
from ninetka_train.learning.config import TrainConfig
from ninetka_train.learning.processes import uses_bf16

LEARNER = -1
"""Value in `Learner.opponents` for a game without opponents. In `Learner.seats`: no seat has been drawn yet."""
SAMPLING_SETTINGS = SearchSettings(temperature=1.0)
"""Search settings of the earlier networks in the league: no search, and moves are drawn from the policy."""


@dataclass
class Learner:
    """The state of a run between rollouts: everything that a checkpoint must hold."""

    config: TrainConfig
    network: Any
    optimizer: torch.optim.Optimizer
    games: StateArray
    """(B,) states of the current games."""
    options: OptionCodes
    """(B, k) int64 options of the games."""
    streams: Streams
    """(B,) random streams of the games."""
    rng: np.random.Generator
    """All other random numbers."""
    moves: int = 0
    rollouts: int = 0
    league: list[Any] = field(default_factory=list)
    agents: list[Agent] = field(default_factory=list)
    opponents: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(B,) int64 the opponent in each game, an index into `[*league, *agents]`, or `LEARNER`."""
    seats: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(B,) int64 the learner's seat, used in games with an opponent."""
    device_games: Any = None
    """The `ninetka_train.learning.device_play.DeviceGames` if the games are on a GPU. `games` and `streams` are then
    copies of what they were when the run began or was last saved."""
    torch_threads: int = field(default_factory=torch.get_num_threads)
    """Threads that torch uses for the network; weights are byte-identical only for the same number."""

    @property
    def step(self) -> int:
        """The number of moves so far, which is also the number in the checkpoint's name."""
        return self.moves

    @property
    def total(self) -> int:
        """The number of moves of the whole run."""
        return self.config.ppo.moves

    @property
    def progress(self) -> float:
        """The finished share of the run, 0..1."""
        return min(1.0, self.step / self.total)


def forward(learner: Learner, inputs: Any, network: Any = None) -> Outputs:
    """Return the outputs of a network for inputs on its device; None for the learner's network."""
    device = learner.network.device
    with torch.autocast(device.type, torch.bfloat16, enabled=uses_bf16(learner.config, device)):
        outputs: Outputs = (network or learner.network)(inputs)
        return outputs
