"""AlphaZero for 2, 3 and 4 players (Silver et al., 2018; Petosa and Balch, 2019): read it from `train_alphazero` down.

A round plays games by search, keeps what the search found out about their positions, and lets the network learn from
the newest rounds. The first rounds search with random playouts and need no network: an untrained one would only
mislead. Later rounds use the Gumbel search with the network as it is by then.
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

from ninetka_agents.agent import check_threads
from ninetka_agents.checkpoint import Checkpoint
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Inputs, Network, as_inputs
from ninetka_agents.outputs import MASKED, Outputs
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import Evaluate, GumbelSearch, SearchOptions
from ninetka_agents.search.mcts import MctsAgent
from ninetka_train.learning.config import AlphaZeroSettings, TrainConfig
from ninetka_train.learning.resume import (
    keep_checkpoint,
    newest_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    taking_up,
)
from ninetka_train.learning.selfplay import (
    Samples,
    Slides,
    network_games,
    playout_games,
    read_samples,
    relative_seats,
    relative_values,
    write_samples,
)
from ninetka_train.learning.setup import Log, first_network, uses_bf16

LOSSES = ("policy_loss", "value_loss", "owner_loss", "agreement")
"""What `losses` returns beside the loss to be lowered; agreement: how often the network's best is the target's."""


@dataclass
class Examples:
    """N positions with their targets, seats relative to the mover, on the learner's device."""

    inputs: Inputs
    policy: Tensor
    """(N, 122) float32; see `ninetka_train.learning.selfplay.Samples`."""
    values: Tensor
    """(N, 5) float32 shares of the outcomes, summing to 1: each relative seat wins; drawn."""
    owners: Tensor
    """(N, 9) int64 relative seats, 4 for nobody."""


@dataclass
class TrainState:
    """All that a run carries from one round to the next, and that a checkpoint must hold."""

    config: TrainConfig
    network: Network
    optimizer: torch.optim.Optimizer
    rng: np.random.Generator
    """Draws minibatches; games have chance of their own, numbered by round."""
    rounds: int = 0
    positions: int = 0
    window: list[Samples] = field(default_factory=list)
    """The newest rounds."""

    @property
    def progress(self) -> float:
        """How much of the run is done, 0..1."""
        return min(1.0, self.rounds / self.config.alphazero.rounds)


def train_alphazero(
    config: TrainConfig,
    folder: Path | None = None,
    report: Callable[[TrainState, Log], None] | None = None,
    resume: bool = False,
) -> Network:
    """Learn from searched games for `config.alphazero.rounds` rounds.

    Args:
        config: with `algorithm="alphazero"`.
        folder: for checkpoints, `step-*.safetensors`, and the window's games, `games/`; None keeps nothing.
        report: called after each round with plain numbers; it must leave the state alone.
        resume: go on from the newest good checkpoint in `folder`, if there is one.

    Returns:
        The trained network, in evaluation mode.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    state = new_state(config)
    if resume and folder:
        restore(state, folder)
    while state.rounds < config.alphazero.rounds:
        start = time.perf_counter()
        samples = play_round(state)
        played = time.perf_counter()
        state.window = [*state.window, samples][-config.alphazero.window :]
        state.positions += len(samples.games)
        log = learn(state)
        state.rounds += 1
        if folder:
            keep(state, folder)
        if report:
            share = (played - start) / (time.perf_counter() - start)
            report(state, log | {"positions": state.positions, "share_of_play": share})
    return state.network.eval()


def new_state(config: TrainConfig) -> TrainState:
    """Set a run up: fresh weights, or those to start from."""
    network = first_network(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.alphazero.learning_rate, weight_decay=0.01)
    return TrainState(config, network, optimizer, np.random.default_rng(config.seed))


# --- playing ---------------------------------------------------------------------------------------------------------


def play_round(state: TrainState) -> Samples:
    """Play the games of one round, the same number for each player count."""
    config, settings = state.config, state.config.alphazero
    players = np.repeat(config.players, settings.games)
    seed = (config.seed << 32) + state.rounds * len(players)
    if state.rounds < settings.playout_rounds:
        threads = check_threads(config.threads)
        tree = (settings.playouts, settings.exploration, settings.greedy, settings.power, settings.exact_nodes)
        return playout_games(players, seed, *tree, threads=threads)
    state.network.eval()
    options = SearchOptions(settings.simulations, settings.considered, playouts=settings.leaf_playouts)
    evaluate, threads = network_evaluate(state.network), check_threads(config.threads)
    kept = (settings.share, settings.value_share, settings.value_mix, settings.exact_nodes, settings.exact_share)
    slides = _slides(settings, evaluate, threads)
    return network_games(GumbelSearch(evaluate, options, threads), players, seed, *kept, slides)


def _slides(settings: AlphaZeroSettings, evaluate: Evaluate, threads: int) -> Slides | None:
    """Return who slides in the network's games, None for its policy."""
    if settings.slide_playouts == 0:
        return None
    agent = MctsAgent(settings.slide_playouts, threads=threads)
    return Slides(agent, GuidedSearch(evaluate, settings.simulations, threads=threads), settings.slide_share)


# --- learning --------------------------------------------------------------------------------------------------------


def learn(state: TrainState) -> Log:
    """Take a round's gradient steps on minibatches drawn from the window; return the mean losses."""
    settings, network = state.config.alphazero, state.network
    bf16 = uses_bf16(state.config, network.device)
    pieces = -(-settings.minibatch // settings.microbatch)
    sums = torch.zeros(len(LOSSES), device=network.device)
    network.train()
    for step in range(settings.steps):
        _set_learning_rate(state, step)
        state.optimizer.zero_grad(set_to_none=True)
        for part in np.array_split(draw(state.window, settings.minibatch, state.rng), pieces):
            examples = make_examples(take(state.window, part), network.device)
            with torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
                outputs = network(examples.inputs)
            total, parts = losses(outputs, examples, settings)
            torch.autograd.backward(total * (len(part) / settings.minibatch))
            sums += parts * (len(part) / settings.minibatch)
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        state.optimizer.step()
    network.eval()
    return dict(zip(LOSSES, (sums / settings.steps).tolist(), strict=True))


def _set_learning_rate(state: TrainState, step: int) -> None:
    """Warm the step size up over 100 steps, then lower it in a straight line to 1 %."""
    settings = state.config.alphazero
    done = state.rounds * settings.steps + step
    share = min(1.0, (done + 1) / 100) * (1 - 0.99 * done / (settings.rounds * settings.steps))
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate * share


def draw(window: list[Samples], count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw (count,) int64 numbers of positions: every round alike, however many positions it has.

    Raises:
        ValueError: if there are none.
    """
    sizes = np.array([len(samples.games) for samples in window])
    filled = np.flatnonzero(sizes)
    if not len(filled):
        raise ValueError("no position was searched in these games: alphazero.games or alphazero.share is too small")
    rounds = filled[rng.integers(0, len(filled), count)]
    return (sizes.cumsum() - sizes)[rounds] + rng.integers(0, sizes[rounds])


def take(window: list[Samples], chosen: npt.NDArray[np.int64]) -> Samples:
    """Return the positions of those numbers, counted through the window."""
    ends = np.cumsum([len(samples.games) for samples in window])
    numbers = np.searchsorted(ends, chosen, side="right")
    parts = []
    for number in np.unique(numbers):
        rows = chosen[numbers == number] - (ends[number] - len(window[number].games))
        parts.append([array[rows] for array in window[number]])
    return Samples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def make_examples(samples: Samples, device: torch.device | str = "cpu") -> Examples:
    """Turn positions by seat into examples from the mover's eyes."""
    targets = (samples.policy.astype(np.float32), relative_values(samples), relative_seats(samples))
    return Examples(
        as_inputs(make_features(samples.games), device), *(torch.from_numpy(array).to(device) for array in targets)
    )


def losses(outputs: Outputs, examples: Examples, settings: AlphaZeroSettings) -> tuple[Tensor, Tensor]:
    """Return the loss to be lowered, and (4,) float32 what it is made of, detached; see `LOSSES`."""
    has_policy_target = examples.policy.sum(-1) > 0
    among = has_policy_target.sum().clamp(min=1)
    policy = policy_losses(outputs.logits, examples.policy).sum() / among
    value = -(examples.values * outputs.value_logits.log_softmax(-1).clamp(min=MASKED / 2)).sum(-1).mean()
    owner = functional.cross_entropy(outputs.owner_logits.flatten(0, 1), examples.owners.flatten())
    best = examples.policy.gather(1, outputs.logits.argmax(-1, keepdim=True))[:, 0] == examples.policy.amax(-1)
    agreement = (best & has_policy_target).sum() / among
    total = policy + value + settings.owner_weight * owner
    return total, torch.stack([policy, value, owner, agreement]).detach()


def policy_losses(logits: Tensor, policy: Tensor) -> Tensor:
    """Return (N,) float32: the cross-entropy of searched policies; 0 where there is none.

    Where all winning moves are known it is that of winning, -log of their probabilities' sum: the network need not
    learn which of them a search happened to like, only to tell them from the others.

    Args:
        logits: (N, 122) float32, masked.
        policy: (N, 122) float32; see `ninetka_train.learning.selfplay.Samples`.
    """
    log_policy = logits.log_softmax(-1)
    searched = -(policy * log_policy).sum(-1)
    winning = -log_policy.masked_fill(policy == 0, MASKED).logsumexp(-1)
    return torch.where(policy.sum(-1) > 1.5, winning, searched)


# --- keeping ---------------------------------------------------------------------------------------------------------


def keep(state: TrainState, folder: Path) -> None:
    """Write the newest round's games, and now and then a checkpoint; remove games that the window has left behind."""
    config = state.config
    games = folder / "games"
    write_samples(games / f"round-{state.rounds:06}.npz", state.window[-1])
    if state.rounds % config.checkpoint_every and state.progress < 1:
        return
    notes = {"positions": state.positions, "rng": state.rng.bit_generator.state}
    about = Checkpoint(state.network.config, state.rounds, config.model_dump(mode="json"), notes)
    keep_checkpoint(folder, state.network, about, optimizer_tensors(state.optimizer))
    for old in sorted(games.glob("round-*.npz"))[: -config.alphazero.window - 2 * config.checkpoint_every]:
        old.unlink()


def restore(state: TrainState, folder: Path) -> None:
    """Take up the newest good checkpoint of a folder and the games of its window, if there is one.

    Raises:
        ValueError: if nothing that is there is good, naming the files and what is wrong with them.
    """
    found = newest_checkpoint(folder)
    if found is None:
        return
    network, about, tensors = found
    with taking_up(folder):
        state.network.load_state_dict(network.state_dict())
        restore_optimizer(state.optimizer, tensors)
        state.rounds, state.positions = about.step, int(about.notes["positions"])
        state.rng.bit_generator.state = about.notes["rng"]
    first = max(0, state.rounds - state.config.alphazero.window)
    numbers = range(first + 1, state.rounds + 1)
    state.window = [read_samples(folder / "games" / f"round-{number:06}.npz") for number in numbers]
