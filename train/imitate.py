"""Learning from a teacher that needs no network: tree search with random playouts, which the network learns to foresee.

Visit counts are the policy's target, the winner the value's, the final owners of the sections the third head's: the
first iteration of AlphaZero (Silver et al., 2018), with a uniform prior. The loop reads from `train_imitation` down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from agents.agent import check_threads
from agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from agents.features import make_features
from agents.network import Inputs, Network, Outputs, as_inputs
from train.config import ImitationSettings, TrainConfig
from train.ppo import Log, choose_device, uses_bf16
from train.selfplay import Samples, relative_seats, search_games

LOSSES = ("policy_loss", "value_loss", "owner_loss", "agreement")
"""What `losses` returns beside the loss to be lowered; agreement: how often the network's best is the search's."""


@dataclass
class Examples:
    """N positions with their targets, seats relative to the mover, on the learner's device."""

    inputs: Inputs
    policy: Tensor
    """(N, 122) float16, summing to 1."""
    winners: Tensor
    """(N,) int64 relative seats."""
    owners: Tensor
    """(N, 9) int64 relative seats, 4 for nobody."""


@dataclass
class Student:
    """All that a run carries from one round to the next."""

    config: TrainConfig
    network: Network
    optimizer: torch.optim.Optimizer
    rng: np.random.Generator
    rounds: int = 0
    window: list[Examples] = field(default_factory=list)

    @property
    def progress(self) -> float:
        """How much of the run is done, 0..1."""
        return min(1.0, self.rounds / self.config.imitate.rounds)


def train_imitation(
    config: TrainConfig, folder: Path | None = None, report: Callable[[Student, Log], None] | None = None
) -> Network:
    """Learn from the search's games for `config.imitate.rounds` rounds.

    Args:
        config: with `algorithm="imitate"`.
        folder: for the checkpoint `last.safetensors`; None keeps nothing.
        report: called after each round with plain numbers; it must leave the student alone.

    Returns:
        The trained network, in evaluation mode.
    """
    settings = config.imitate
    if config.threads:
        torch.set_num_threads(config.threads)
    student = new_student(config)
    positions = 0
    while student.rounds < settings.rounds:
        start = time.perf_counter()
        samples = play_round(config, student.rounds)
        played = time.perf_counter()
        student.window += [make_examples(part, settings.power, student.network.device) for part in samples]
        del student.window[: -settings.window * len(samples)]
        positions += sum(len(part.games) for part in samples)
        log = learn(student)
        student.rounds += 1
        if folder and (student.rounds % config.checkpoint_every == 0 or student.progress == 1):
            about = Checkpoint(student.network.config, positions, config.model_dump(mode="json"))
            save_checkpoint(folder / "last", student.network, about)
        if report:
            share = (played - start) / (time.perf_counter() - start)
            report(student, log | {"positions": positions, "share_of_play": share})
    return student.network.eval()


def new_student(config: TrainConfig) -> Student:
    """Set a run up: fresh weights, or those to start from."""
    device = choose_device(config)
    torch.manual_seed(config.seed)
    if config.start_from:
        network = load_checkpoint(config.start_from, device)[0]
    else:
        network = Network(config.network.build()).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.imitate.learning_rate, weight_decay=0.01)
    return Student(config, network, optimizer, np.random.default_rng(config.seed))


def play_round(config: TrainConfig, number: int) -> list[Samples]:
    """Play the games of one round, for each player count."""
    settings, threads = config.imitate, check_threads(config.threads)
    seed = (config.seed << 32) + number * settings.games
    return [
        search_games(
            settings.games, players, settings.simulations, seed, settings.exploration, settings.greedy, threads
        )
        for players in config.players
    ]


def make_examples(samples: Samples, power: float, device: torch.device | str = "cpu") -> Examples:
    """Turn positions by seat into examples from the mover's eyes."""
    features = make_features(samples.games)
    return Examples(
        as_inputs(features, device),
        torch.from_numpy(policy_targets(samples.visits, power)).to(device),
        torch.from_numpy(relative_seats(samples.winners, samples.games)).to(device),
        torch.from_numpy(relative_seats(samples.owners, samples.games)).to(device),
    )


def policy_targets(visits: npt.NDArray[np.uint16], power: float) -> npt.NDArray[np.float16]:
    """Return (N, 122) float16 policies: visits ** power, each row summing to 1."""
    weights = (visits / visits.max(1, keepdims=True)).astype(np.float32) ** power
    return (weights / weights.sum(1, keepdims=True)).astype(np.float16)


def learn(student: Student) -> Log:
    """Take a round's gradient steps on minibatches drawn from the window; return the mean losses."""
    settings, network = student.config.imitate, student.network
    sizes = np.array([len(examples.winners) for examples in student.window])
    sums = torch.zeros(len(LOSSES), device=network.device)
    network.train()
    for step in range(settings.steps):
        progress = (student.rounds + step / settings.steps) / settings.rounds
        for group in student.optimizer.param_groups:
            warm = min(1.0, (student.rounds * settings.steps + step + 1) / 100)
            group["lr"] = settings.learning_rate * warm * (1 - 0.99 * progress)
        batch = draw(student.window, sizes, settings.minibatch, student.rng)
        with torch.autocast(network.device.type, torch.bfloat16, enabled=uses_bf16(student.config, network.device)):
            outputs = network(batch.inputs)
        total, parts = losses(outputs, batch, settings)
        student.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(total)
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        student.optimizer.step()
        sums += parts
    network.eval()
    return dict(zip(LOSSES, (sums / settings.steps).tolist(), strict=True))


def draw(window: list[Examples], sizes: npt.NDArray[np.int64], count: int, rng: np.random.Generator) -> Examples:
    """Draw `count` examples from all rounds of the window alike."""
    ends = sizes.cumsum()
    chosen = rng.integers(0, ends[-1], count)
    parts = []
    for number, examples in enumerate(window):
        rows = torch.from_numpy(chosen[(chosen < ends[number]) & (chosen >= ends[number] - sizes[number])])
        rows = (rows - int(ends[number] - sizes[number])).to(examples.winners.device)
        inputs = Inputs(*(tensor[rows] for tensor in examples.inputs))
        parts.append((*inputs, examples.policy[rows], examples.winners[rows], examples.owners[rows]))
    joined = [torch.cat(tensors) for tensors in zip(*parts, strict=True)]
    return Examples(Inputs(*joined[:4]), *joined[4:])


def losses(outputs: Outputs, examples: Examples, settings: ImitationSettings) -> tuple[Tensor, Tensor]:
    """Return the loss to be lowered, and (4,) float32 what it is made of, detached; see `LOSSES`."""
    targets = examples.policy.float()
    policy = -(targets * outputs.logits.log_softmax(-1)).sum(-1).mean()
    value = functional.cross_entropy(outputs.value_logits, examples.winners)
    owner = functional.cross_entropy(outputs.owner_logits.flatten(0, 1), examples.owners.flatten())
    agreement = (outputs.logits.argmax(-1) == targets.argmax(-1)).float().mean()
    total = policy + value + settings.owner_weight * owner
    return total, torch.stack([policy, value, owner, agreement]).detach()
