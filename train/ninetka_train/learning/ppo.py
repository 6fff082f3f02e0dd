"""Self-play with proximal policy optimisation (Schulman et al., 2017): one loop, read it from `train_ppo` down.

Every seat of every game is played by the learner (or, in the league's games, one seat), so a rollout of T plies of B
games holds T * B decisions. A seat's trajectory is its own successive decisions; see
`ninetka_train.learning.rollout.own_decision_targets`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.checkpoint import Checkpoint
from ninetka_agents.net_agent import NetAgent
from ninetka_agents.ninetka.features import Features, make_features
from ninetka_agents.ninetka.network import Inputs, Network, as_inputs
from ninetka_agents.outputs import MASKED, Outputs
from ninetka_env.core.batch import Endings, advance
from ninetka_env.core.chance import Streams, make_streams
from ninetka_env.core.seats import relative_seats
from ninetka_env.core.verbs import Codes, Records
from ninetka_env.games.ninetka.definition import MOST_PLIES
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS
from ninetka_env.games.ninetka.rules import GAME
from ninetka_train.learning.config import PPOSettings, TrainConfig
from ninetka_train.learning.resume import (
    keep_checkpoint,
    newest_checkpoint,
    numbered_parts,
    optimizer_tensors,
    restore_optimizer,
    taking_up,
)
from ninetka_train.learning.rollout import Rollout, own_decision_targets, owner_targets, roll_seats, start_games
from ninetka_train.learning.selfplay import codes_for
from ninetka_train.learning.setup import Log, first_network, uses_bf16

LEARNER = -1
"""Stands for a game without opponents in `Learner.opponents`, and for any seat in `Learner.seats`."""


class Batch(NamedTuple):
    """N decisions to learn from, seats relative to the mover."""

    inputs: Inputs
    actions: Tensor
    """(N,) int64."""
    log_probs: Tensor
    """(N,) float32, when they were played."""
    advantages: Tensor
    """(N,) float32."""
    values: Tensor
    """(N, 5) float32 shares of the outcomes, summing to 1: each relative seat wins; drawn."""
    owners: Tensor
    """(N, 9) int64 relative seats, 4 for nobody, -100 for unknown."""


@dataclass
class Learner:
    """All that a run carries from one rollout to the next, and that a checkpoint must hold."""

    config: TrainConfig
    network: Network
    optimizer: torch.optim.Optimizer
    games: Records
    """(B,) the games under way."""
    options: Codes
    """(B, k) int64: the options of each."""
    streams: Streams
    """(B,) chance of the games."""
    rng: np.random.Generator
    """All other chance, torch's included."""
    moves: int = 0
    rollouts: int = 0
    league: list[Network] = field(default_factory=list)
    agents: list[Agent] = field(default_factory=list)
    opponents: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(B,) the opponent (past selves first, then agents) in each game, or `LEARNER`."""
    seats: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(B,) the learner's seat in a game with an opponent."""

    @property
    def progress(self) -> float:
        """How much of the run is done, 0..1."""
        return min(1.0, self.moves / self.config.ppo.moves)


def train_ppo(
    config: TrainConfig,
    folder: Path | None = None,
    report: Callable[[Learner, Log], None] | None = None,
    resume: bool = False,
) -> Network:
    """Learn by self-play until `config.ppo.moves` moves have been seen.

    Args:
        config: with `algorithm="ppo"`.
        folder: for checkpoints, `step-*.safetensors`; None keeps nothing.
        report: called after each rollout with plain numbers; it must leave the learner alone.
        resume: go on from the newest good checkpoint in `folder`, if there is one.

    Returns:
        The trained network, in evaluation mode.
    """
    settings = config.ppo
    if config.threads:
        torch.set_num_threads(config.threads)
    learner = new_learner(config)
    if resume and folder:
        restore(learner, folder)
    while learner.moves < settings.moves:
        start = time.perf_counter()
        set_learning_rate(learner)
        draw_opponents(learner)
        rollout = play(learner)
        played = time.perf_counter()
        batch = make_batch(rollout, settings.discount_lambda, learner.network.device)
        log = learn(learner, batch)
        learner.moves += settings.games * settings.plies
        learner.rollouts += 1
        grow_league(learner)
        if folder and (learner.rollouts % config.checkpoint_every == 0 or learner.progress == 1):
            keep(learner, folder)
        if report:
            done = time.perf_counter()
            log |= {"moves": learner.moves, "moves_per_second": rollout.actions.size / (done - start)}
            report(learner, log | {"share_of_play": (played - start) / (done - start)})
    return learner.network.eval()


def new_learner(config: TrainConfig) -> Learner:
    """Set a run up: fresh weights (or those to start from), games spread over all phases."""
    settings, network = config.ppo, first_network(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    games, options = np.zeros(settings.games, GAME), codes_for(np.resize(config.players, settings.games))
    streams = make_streams(config.seed << 20, settings.games)
    start_games(games, options, streams, MOST_PLIES)
    learner = Learner(config, network, optimizer, games, options, streams, np.random.default_rng(config.seed))
    learner.agents = [make_agent(spec, config.game) for spec in settings.league_agents]
    learner.opponents = np.full(settings.games, LEARNER)
    learner.seats = np.full(settings.games, LEARNER)
    return learner


def set_learning_rate(learner: Learner) -> None:
    """Lower the learning rate in a straight line."""
    settings = learner.config.ppo
    for group in learner.optimizer.param_groups:
        group["lr"] = _between(settings.learning_rate, settings.final_learning_rate, learner.progress)


def _between(first: float, last: float, progress: float) -> float:
    return first + (last - first) * progress


# --- playing ---------------------------------------------------------------------------------------------------------


def draw_opponents(learner: Learner) -> None:
    """Seat opponents from the league in a share of the games, anew for each rollout."""
    known = len(learner.league) + len(learner.agents)
    count = len(learner.games)
    learner.opponents[:] = LEARNER
    if known and learner.config.ppo.league_share:
        chosen = np.flatnonzero(learner.rng.random(count) < learner.config.ppo.league_share)
        learner.opponents[chosen] = learner.rng.integers(0, known, len(chosen))
    learner.seats = learner.rng.integers(0, learner.games["num_players"].astype(np.int64))


def grow_league(learner: Learner) -> None:
    """Add a copy of the learner to the league now and then."""
    settings = learner.config.ppo
    if not settings.league_share or learner.rollouts % settings.league_every:
        return
    past = Network(learner.network.config).to(learner.network.device).eval()
    past.load_state_dict(learner.network.state_dict())
    if len(learner.league) == settings.league_size:
        del learner.league[int(learner.rng.integers(len(learner.league)))]
    learner.league.append(past)


@torch.inference_mode()
def play(learner: Learner) -> Rollout:
    """Play T plies of all games and return what happened."""
    settings, games = learner.config.ppo, learner.games
    shape = (settings.plies, settings.games)
    features = []
    players = games["num_players"].astype(np.int8)
    rollout = Rollout(
        Features(*(np.zeros(0, np.int8),) * len(Features._fields)),
        np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.bool_), np.zeros(shape, np.int8),
        players,
        np.zeros((settings.plies + 1, settings.games, MAX_PLAYERS), np.float32), np.zeros(shape, np.int8),
        np.zeros((*shape, 9), np.int8),
    )  # fmt: skip
    scores, rewards = (
        np.zeros((settings.games, MAX_PLAYERS), np.int8),
        np.zeros((settings.games, MAX_PLAYERS), np.float32),
    )
    for ply in range(settings.plies):
        features.append(make_features(games))
        rollout.movers[ply] = games["to_move"]
        rollout.learned[ply] = (learner.opponents == LEARNER) | (games["to_move"] == learner.seats)
        logits, rollout.values[ply] = evaluate(learner, features[-1], games)
        rollout.actions[ply], rollout.log_probs[ply] = sample(logits, learner.rng)
        _ask_opponents(learner, rollout.actions[ply], ~rollout.learned[ply])
        endings = Endings(rollout.winners[ply], scores, rewards, rollout.owners[ply])
        advance(games, rollout.actions[ply], learner.options, learner.streams, endings)
    rollout.values[-1] = evaluate(learner, make_features(games), games)[1]
    return rollout._replace(features=Features(*(np.concatenate(parts) for parts in zip(*features, strict=True))))


def evaluate(
    learner: Learner, features: Features, games: Records
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return (B, 122) float32 masked logits and (B, 4) float32 chances to win per seat."""
    outputs = _forward(learner, as_inputs(features, learner.network.device))
    values = np.ascontiguousarray(outputs.values.cpu().numpy())
    roll_seats(values, -games["to_move"].astype(np.int8), games["num_players"].astype(np.int8))
    return outputs.logits.cpu().numpy(), values


def _forward(learner: Learner, inputs: Inputs) -> Outputs:
    device = learner.network.device
    with torch.autocast(device.type, torch.bfloat16, enabled=uses_bf16(learner.config, device)):
        outputs: Outputs = learner.network(inputs)
        return outputs


def sample(
    logits: npt.NDArray[np.float32], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Draw an action per row of (B, 122) logits; return them, (B,) int64, and their log probabilities, (B,) float32."""
    shifted = logits - logits.max(1, keepdims=True)
    weights = np.exp(shifted, dtype=np.float32)
    sums = weights.cumsum(1)
    # The first action whose share of the sum exceeds a number below all of it is never one of weight 0.
    thresholds = rng.random(len(logits), np.float32)[:, None] * sums[:, -1:] * np.float32(1 - 1e-6)
    actions = (sums > thresholds).argmax(1)
    rows = np.arange(len(logits))
    return actions, shifted[rows, actions] - np.log(sums[:, -1])


def _ask_opponents(learner: Learner, actions: npt.NDArray[np.int64], theirs: npt.NDArray[np.bool_]) -> None:
    """Let the opponents choose the actions of the games where they are to move."""
    for index in np.unique(learner.opponents[theirs]):
        chosen = np.flatnonzero(theirs & (learner.opponents == index))
        past = len(learner.league)
        agent = NetAgent.of(learner.league[index], 1.0) if index < past else learner.agents[index - past]
        actions[chosen] = agent.act(learner.games[chosen], learner.rng)


# --- learning --------------------------------------------------------------------------------------------------------


def make_batch(rollout: Rollout, decay: float, device: torch.device | str = "cpu") -> Batch:
    """Turn a rollout into the learner's own decisions with their targets."""
    plies, count = rollout.movers.shape
    advantages, targets = np.zeros((plies, count), np.float32), np.zeros((plies, count, MAX_PLAYERS), np.float32)
    own_decision_targets(
        rollout.movers, rollout.num_players, rollout.values, rollout.winners, decay, advantages, targets
    )
    movers, players = rollout.movers.ravel(), np.tile(rollout.num_players, plies)
    values = targets.reshape(-1, MAX_PLAYERS)
    roll_seats(values, movers, players)
    values = np.clip(values, 0, None) + 1e-6 * (np.arange(MAX_PLAYERS) < players[:, None])
    values = np.pad(values / values.sum(1, keepdims=True), ((0, 0), (0, 1)))  # draws count as shares of wins
    seats = owner_targets(rollout.winners, rollout.owners).reshape(-1, 9).astype(np.int64)
    owners = np.where(
        seats >= 0, relative_seats(seats, movers[:, None], players[:, None]), np.where(seats == -1, MAX_PLAYERS, -100)
    )
    kept = np.flatnonzero(rollout.learned.ravel())
    arrays = (rollout.actions.ravel(), rollout.log_probs.ravel(), advantages.ravel(), values.astype(np.float32), owners)
    inputs = as_inputs(Features(*(array[kept] for array in rollout.features)), device)
    return Batch(inputs, *(torch.from_numpy(array[kept]).to(device) for array in arrays))


def learn(learner: Learner, batch: Batch) -> Log:
    """Take gradient steps on a batch, in minibatches drawn without repetition; return the mean losses."""
    settings, device = learner.config.ppo, batch.actions.device
    learner.network.train()
    entropy_weight = _between(settings.entropy, settings.final_entropy, learner.progress)
    sums, passes = torch.zeros(len(LOSSES), device=device), 0
    for _ in range(settings.epochs):
        order = torch.from_numpy(learner.rng.permutation(len(batch.actions))).to(device)
        for minibatch in torch.split(order, settings.minibatch):
            learner.optimizer.zero_grad(set_to_none=True)
            advantages = batch.advantages[minibatch]
            mean, deviation = advantages.mean(), advantages.std(correction=0) + 1e-6
            for part in torch.split(minibatch, settings.microbatch):
                piece = take(batch, part)
                piece = piece._replace(advantages=(piece.advantages - mean) / deviation)
                total, parts = losses(_forward(learner, piece.inputs), piece, settings, entropy_weight)
                torch.autograd.backward(total * (len(part) / len(minibatch)))
                sums += parts * (len(part) / len(minibatch))
            torch.nn.utils.clip_grad_norm_(learner.network.parameters(), settings.gradient_norm)
            learner.optimizer.step()
            passes += 1
    learner.network.eval()
    return dict(zip(LOSSES, (sums / max(1, passes)).tolist(), strict=True))


LOSSES = ("policy_loss", "value_loss", "owner_loss", "entropy", "clipped", "kl")
"""What `losses` returns beside the loss to be lowered."""


def losses(outputs: Outputs, batch: Batch, settings: PPOSettings, entropy_weight: float) -> tuple[Tensor, Tensor]:
    """Return the loss to be lowered, and (6,) float32 what it is made of, detached; see `LOSSES`.

    The policy's is the clipped surrogate of Schulman et al. 2017, equation 7; advantages are to be normalised already.
    """
    log_policy = outputs.logits.log_softmax(-1)
    chosen = log_policy.gather(1, batch.actions[:, None])[:, 0]
    log_ratio = chosen - batch.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    policy = -torch.minimum(ratio * batch.advantages, clipped * batch.advantages).mean()
    entropy = -(log_policy.exp() * log_policy).sum(-1).mean()
    value = -(batch.values * outputs.value_logits.log_softmax(-1).clamp(min=MASKED / 2)).sum(-1).mean()
    known = (batch.owners != -100).sum()
    owner = functional.cross_entropy(outputs.owner_logits.flatten(0, 1), batch.owners.flatten(), reduction="sum")
    owner = owner / known.clamp(min=1)
    total = policy + settings.value_weight * value + settings.owner_weight * owner - entropy_weight * entropy
    share, kl = (clipped != ratio).float().mean(), (ratio - 1 - log_ratio).mean()
    return total, torch.stack([policy, value, owner, entropy, share, kl]).detach()


def take(batch: Batch, index: Tensor) -> Batch:
    """Return the rows `index` of a batch."""
    inputs = Inputs(*(tensor[index] for tensor in batch.inputs))
    return Batch(inputs, *(tensor[index] for tensor in batch[1:]))


# --- keeping ---------------------------------------------------------------------------------------------------------


def keep(learner: Learner, folder: Path) -> None:
    """Write a checkpoint to resume from."""
    notes = {"rollouts": learner.rollouts, "rng": learner.rng.bit_generator.state}
    about = Checkpoint(learner.network.config, learner.moves, learner.config.model_dump(mode="json"), notes)
    keep_checkpoint(folder, learner.network, about, _state(learner))


def restore(learner: Learner, folder: Path) -> None:
    """Take up the newest good checkpoint of a folder, if there is one; see `newest_checkpoint`."""
    found = newest_checkpoint(folder)
    if found:
        network, about, state = found
        with taking_up(folder):
            learner.network.load_state_dict(network.state_dict())
            learner.moves, learner.rollouts = about.step, int(about.notes["rollouts"])
            learner.rng.bit_generator.state = about.notes["rng"]
            _set_state(learner, state)


def _state(learner: Learner) -> dict[str, Tensor]:
    """Return everything but the network and the notes as tensors."""
    state = optimizer_tensors(learner.optimizer)
    state["games"] = torch.from_numpy(learner.games.view(np.uint8).reshape(len(learner.games), -1).copy())
    state["streams"] = torch.from_numpy(learner.streams.view(np.int64).copy())
    for index, past in enumerate(learner.league):
        state |= {f"league.{index}.{name}": value for name, value in past.state_dict().items()}
    return state


def _set_state(learner: Learner, state: dict[str, Tensor]) -> None:
    learner.games[:] = state["games"].numpy().view(GAME)[:, 0]
    learner.streams[:] = state["streams"].numpy().view(np.uint64)
    restore_optimizer(learner.optimizer, state)
    learner.league = []
    for weights in numbered_parts(state, "league").values():
        network = Network(learner.network.config).to(learner.network.device).eval()
        network.load_state_dict(weights)
        learner.league.append(network)
