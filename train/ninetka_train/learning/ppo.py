"""Self-play with proximal policy optimisation (Schulman et al., 2017). Start reading at `train_ppo`.

The learner plays every seat of every game, except in games against the league, where it plays one seat. Without a
league, a rollout of T plies of B games therefore has T * B decisions. A seat's trajectory consists of its own
successive decisions; see `ninetka_train.learning.advantages.seat_advantages`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.checkpoint import Checkpoint
from ninetka_agents.net_agent import NetAgent, SearchSettings
from ninetka_agents.outputs import Outputs, as_tensors
from ninetka_env.core.batch import make_outcomes, step_with_autoreset
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import OptionCodes, StateArray, relative_seats
from ninetka_train.learning.config import PPOSettings, TrainConfig
from ninetka_train.learning.losses import (
    UNKNOWN_OWNER,
    Metrics,
    check_finite,
    check_outputs,
    losses_by_name,
    owner_losses,
    score_losses,
    value_losses,
)
from ninetka_train.learning.processes import set_torch_threads, use_threads, uses_bf16
from ninetka_train.learning.resume import (
    CheckpointWriter,
    initial_network,
    newest_checkpoint,
    numbered_tensors,
    optimizer_tensors,
    restore_errors,
    restore_optimizer,
    rounding_notes,
    unreported_metrics,
    warn_if_rounding_differs,
)
from ninetka_train.learning.rollout import (
    Floats,
    Rollout,
    ending_plies,
    options_of_games,
    own_decision_targets,
    roll_seats,
    sample_actions,
    start_games,
)
from ninetka_train.learning.samples import relative_leads

LEARNER = -1
"""Value in `Learner.opponents` for a game without opponents. In `Learner.seats`: no seat has been drawn yet."""
SAMPLING_SETTINGS = SearchSettings(temperature=1.0)
"""Search settings of the earlier networks in the league: no search, and moves are drawn from the policy."""


class Batch(NamedTuple):
    """N decisions to learn from; seats are relative to the mover."""

    inputs: Any
    """The network's inputs."""
    actions: Tensor
    """(N,) int64."""
    log_probs: Tensor
    """(N,) float32 at the time of the rollout."""
    advantages: Tensor
    """(N,) float32."""
    values: Tensor
    """(N, P + 1) float32 shares of the outcomes, summing to 1: win of each relative seat; draw."""
    owners: Tensor
    """(N, T') int64 final owners as relative seats, P for no owner, or `UNKNOWN_OWNER`."""
    scores: Tensor
    """(N,) float32 the mover's final score minus the best other score; nan if unknown."""


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


def train_ppo(
    config: TrainConfig,
    folder: Path | None = None,
    report: Callable[[Learner, Metrics], None] | None = None,
    resume: bool = False,
) -> Any:
    """Train a network by self-play until `config.ppo.moves` moves have been played.

    Args:
        config: with `algorithm="ppo"`.
        folder: receives checkpoints, `step-*.safetensors`; None writes nothing.
        report: called after each rollout with the metrics; it must not change the learner.
        resume: continue from the newest valid checkpoint in `folder`, if there is one.

    Returns:
        The trained network, in evaluation mode.
    """
    use_threads(config.threads)
    learner = new_learner(config)
    numbers = restore(learner, folder) if resume and folder else {}
    writer = CheckpointWriter(folder, config.checkpoint_minutes)
    with writer.save_on_error():
        if numbers:
            _finish_rollout(learner, writer, report, numbers)
        while learner.progress < 1:
            _finish_rollout(learner, writer, report, _play_and_learn(learner))
    return learner.network.eval()


def _play_and_learn(learner: Learner) -> Metrics:
    """Play a rollout and learn from it; return the metrics."""
    settings, start = learner.config.ppo, time.perf_counter()
    set_torch_threads(learner.torch_threads)  # agents created in the meantime may have changed the number
    set_learning_rate(learner)
    draw_opponents(learner)
    rollout = play(learner)
    played = time.perf_counter()
    batch = make_batch(rollout, settings.discount_lambda, learner.network.device)
    log = learn(learner, batch)
    learner.moves += settings.games * settings.plies
    learner.rollouts += 1
    grow_league(learner)
    done = time.perf_counter()
    speed = {"moves": learner.moves, "moves_per_second": rollout.actions.size / (done - start)}
    return log | speed | {"share_of_play": (played - start) / (done - start)}


def _finish_rollout(
    learner: Learner, writer: CheckpointWriter, report: Callable[[Learner, Metrics], None] | None, numbers: Metrics
) -> None:
    """Report the newest rollout, and write a checkpoint if one is due.

    The state is copied before `report` is called, so that nothing is lost if the run is stopped during the report,
    which may play evaluation games. The checkpoint is written after the report, so that a resumed run does not skip the
    report of any rollout.
    """
    writer.hold(learner.network, _make_checkpoint(learner), _state_tensors(learner), numbers)
    if report:
        report(learner, numbers)
    writer.write(learner.rollouts % learner.config.checkpoint_every == 0 or learner.progress == 1)


def new_learner(config: TrainConfig) -> Learner:
    """Return the initial state of a run: the initial network, and games after random numbers of random plies."""
    settings, network = config.ppo, initial_network(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    variants = config.variants
    games, options = np.zeros(settings.games, variants[0].dtype), options_of_games(variants, range(settings.games))
    streams = make_streams(config.seed << 20, settings.games)
    start_games(games, options, streams, max(variant.sizes.max_plies for variant in variants))
    learner = Learner(config, network, optimizer, games, options, streams, np.random.default_rng(config.seed))
    learner.agents = league_agents(config)
    learner.opponents = np.full(settings.games, LEARNER)
    learner.seats = np.full(settings.games, LEARNER)
    return learner


def league_agents(config: TrainConfig) -> list[Agent]:
    """Make the league's agents; raise `ValueError` if a spec is wrong."""
    threads = torch.get_num_threads()
    agents = [make_agent(spec, config.definition.name) for spec in config.ppo.league_agents]
    set_torch_threads(threads)  # an agent such as `net:threads=1` must not change the learner's number of threads
    return agents


def set_learning_rate(learner: Learner) -> None:
    """Set the learning rate, which falls linearly over the run."""
    settings = learner.config.ppo
    for group in learner.optimizer.param_groups:
        group["lr"] = _interpolate(settings.learning_rate, settings.final_learning_rate, learner.progress)


def _interpolate(first: float, last: float, progress: float) -> float:
    return first + (last - first) * progress


# --- playing ---------------------------------------------------------------------------------------------------------


def draw_opponents(learner: Learner) -> None:
    """Draw which games of a rollout have an opponent, the opponents from the league, and the learner's seats."""
    known = len(learner.league) + len(learner.agents)
    count = len(learner.games)
    learner.opponents[:] = LEARNER
    if known and learner.config.ppo.league_share:
        chosen = np.flatnonzero(learner.rng.random(count) < learner.config.ppo.league_share)
        learner.opponents[chosen] = learner.rng.integers(0, known, len(chosen))
    learner.seats = learner.rng.integers(0, learner.games["num_players"].astype(np.int64))


def grow_league(learner: Learner) -> None:
    """Every `league_every` rollouts, add a copy of the network to the league; a full league loses a random network."""
    settings = learner.config.ppo
    if not settings.league_share or learner.rollouts % settings.league_every:
        return
    if len(learner.league) == settings.league_size:
        del learner.league[int(learner.rng.integers(len(learner.league)))]
    learner.league.append(_copy_with_weights(learner.network, learner.network.state_dict()))


def _copy_with_weights(network: Any, weights: Mapping[str, Tensor]) -> Any:
    """Return a network of the same shape with the given weights, in evaluation mode."""
    past = type(network)(network.config).to(network.device).eval()
    past.load_state_dict(weights)
    return past


@torch.inference_mode()
def play(learner: Learner) -> Rollout:
    """Play T plies of all games and return the rollout."""
    games, arrays = learner.games, []
    rollout = _empty_rollout(learner)
    endings = make_outcomes(games.dtype, len(games))
    for ply in range(learner.config.ppo.plies):
        arrays.append(learner.network.encode(games))
        rollout.movers[ply] = games["to_move"]
        rollout.is_learner_ply[ply] = (learner.opponents == LEARNER) | (games["to_move"] == learner.seats)
        logits, rollout.values[ply] = evaluate(learner, arrays[-1], games)
        uniform = learner.rng.random(len(games), np.float32)
        rollout.actions[ply], rollout.log_probs[ply] = sample_actions(logits, uniform)
        _choose_opponents_actions(learner, rollout.actions[ply], ~rollout.is_learner_ply[ply])
        step_with_autoreset(games, rollout.actions[ply], learner.options, learner.streams, endings)
        rollout.winners[ply], rollout.owners[ply] = endings.winners, endings.targets
        rollout.scores[ply] = endings.scores
    _, rollout.values[-1] = evaluate(learner, learner.network.encode(games), games)
    read = type(arrays[0])(*(np.concatenate(parts) for parts in zip(*arrays, strict=True)))
    return rollout._replace(arrays=read)


def _empty_rollout(learner: Learner) -> Rollout:
    """Return a rollout with arrays of the right shapes, without the network's inputs."""
    shape = (learner.config.ppo.plies, len(learner.games))
    limits, players = limits_of(learner.games.dtype), learner.games["num_players"].astype(np.int8)
    return Rollout(
        None, np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.bool_),
        np.zeros(shape, np.int8), players,
        np.zeros((shape[0] + 1, shape[1], limits.players), np.float32), np.zeros(shape, np.int8),
        np.zeros((*shape, limits.targets), np.int8), np.zeros((*shape, limits.players), np.float32),
    )  # fmt: skip


def evaluate(learner: Learner, arrays: Any, games: StateArray) -> tuple[Floats, Floats]:
    """Return (B, A) float32 masked logits and (B, P) float32 win probabilities per seat."""
    outputs = _forward(learner, as_tensors(arrays, learner.network.device))
    check_outputs(outputs.logits, outputs.values)
    values = np.ascontiguousarray(outputs.values.cpu().numpy())
    roll_seats(values, -games["to_move"].astype(np.int8), games["num_players"].astype(np.int8))
    return outputs.logits.cpu().numpy(), values


def _forward(learner: Learner, inputs: Any) -> Outputs:
    device = learner.network.device
    with torch.autocast(device.type, torch.bfloat16, enabled=uses_bf16(learner.config, device)):
        outputs: Outputs = learner.network(inputs)
        return outputs


def _choose_opponents_actions(
    learner: Learner, actions: npt.NDArray[np.int64], is_opponent_ply: npt.NDArray[np.bool_]
) -> None:
    """Write the opponents' actions into `actions` (B,), in the games selected by the mask `is_opponent_ply` (B,)."""
    for index in np.unique(learner.opponents[is_opponent_ply]):
        chosen = np.flatnonzero(is_opponent_ply & (learner.opponents == index))
        past = len(learner.league)
        agent = NetAgent(learner.league[index], SAMPLING_SETTINGS) if index < past else learner.agents[index - past]
        actions[chosen] = agent.act(learner.games[chosen], learner.rng)


# --- learning --------------------------------------------------------------------------------------------------------


def make_batch(rollout: Rollout, decay: float, device: torch.device | str = "cpu") -> Batch:
    """Return the learner's decisions of a rollout with their targets; `decay` is the lambda of the advantages."""
    (plies, _), seats = rollout.movers.shape, rollout.values.shape[2]
    advantages, targets = own_decision_targets(
        rollout.movers, rollout.num_players, rollout.values, rollout.winners, decay
    )
    movers, players = rollout.movers.ravel(), np.tile(rollout.num_players, plies)
    values = targets.reshape(-1, seats)
    roll_seats(values, movers, players)
    values = np.clip(values, 0, None) + 1e-6 * (np.arange(seats) < players[:, None])
    values = np.pad(values / values.sum(1, keepdims=True), ((0, 0), (0, 1)))  # draws are included as shares of wins
    owners, scores = _final_targets(rollout, movers, players)
    kept = np.flatnonzero(rollout.is_learner_ply.ravel())
    arrays = (rollout.actions.ravel(), rollout.log_probs.ravel(), advantages.ravel(), values.astype(np.float32))
    inputs = as_tensors(type(rollout.arrays)(*(array[kept] for array in rollout.arrays)), device)
    return Batch(inputs, *(torch.from_numpy(array[kept]).to(device) for array in (*arrays, owners, scores)))


def _final_targets(
    rollout: Rollout, movers: npt.NDArray[np.int8], players: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the `owners` and `scores` of a `Batch` for T * B positions, unknown if the game did not end."""
    ending = ending_plies(rollout.winners)
    column = np.arange(ending.shape[1])
    owners = rollout.owners[ending, column].reshape(ending.size, -1)
    scores = rollout.scores[ending, column].reshape(ending.size, -1)
    relative = relative_seats(owners, movers[:, None], players[:, None])
    classes = np.where(owners < 0, scores.shape[1], relative)
    unknown = ending.ravel() < 0
    return np.where(unknown[:, None], UNKNOWN_OWNER, classes), np.where(
        unknown, np.float32(np.nan), relative_leads(scores, movers, players)
    )


def learn(learner: Learner, batch: Batch) -> Metrics:
    """Take gradient steps on a batch, in minibatches drawn without replacement; return the mean losses.

    Return an empty dict if only opponents moved.
    """
    settings, device = learner.config.ppo, batch.actions.device
    if len(batch.actions) == 0:
        return {}
    learner.network.train()
    entropy_weight = _interpolate(settings.entropy, settings.final_entropy, learner.progress)
    sums, passes = torch.zeros(len(LOSS_NAMES), device=device), 0
    for _ in range(settings.epochs):
        order = torch.from_numpy(learner.rng.permutation(len(batch.actions))).to(device)
        for minibatch in torch.tensor_split(order, -(-len(order) // settings.minibatch)):  # of similar sizes
            learner.optimizer.zero_grad(set_to_none=True)
            advantages = batch.advantages[minibatch]
            mean, deviation = advantages.mean(), advantages.std(correction=0) + 1e-6
            known_share = (~batch.scores[minibatch].isnan()).float().mean()
            for part in torch.split(minibatch, settings.microbatch):
                piece = take(batch, part)
                piece = piece._replace(advantages=(piece.advantages - mean) / deviation)
                outputs = _forward(learner, piece.inputs)
                total, parts = losses(outputs, piece, settings, entropy_weight, known_share)
                torch.autograd.backward(total * (len(part) / len(minibatch)))
                sums += parts * (len(part) / len(minibatch))
            torch.nn.utils.clip_grad_norm_(learner.network.parameters(), settings.gradient_norm)
            learner.optimizer.step()
            passes += 1
    learner.network.eval()
    check_finite(learner.network, learner.games, uses_bf16(learner.config, device))
    schedule = {"learning_rate": learner.optimizer.param_groups[0]["lr"], "entropy_weight": entropy_weight}
    return losses_by_name(LOSS_NAMES, sums / passes, outputs) | schedule


LOSS_NAMES = ("policy_loss", "value_loss", "owner_loss", "score_loss", "entropy", "clipped", "kl")
"""The metrics that `losses` returns in addition to the total loss."""


def losses(
    outputs: Outputs, batch: Batch, settings: PPOSettings, entropy_weight: float, known_share: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the total loss, and the metrics of `LOSS_NAMES`, (7,) float32, detached.

    `known_share` is the share of the whole minibatch's moves whose game ended in the rollout; only these moves have
    owners and scores. With it, these losses are averaged over the expected number of such moves in a microbatch, so a
    move has the same weight in any microbatch.

    The policy loss is the clipped surrogate objective of Schulman et al. (2017), equation 7. Advantages must be
    normalised already.
    """
    log_policy = outputs.logits.log_softmax(-1)
    chosen = log_policy.gather(1, batch.actions[:, None])[:, 0]
    log_ratio = chosen - batch.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    policy = -torch.minimum(ratio * batch.advantages, clipped * batch.advantages).mean()
    entropy = -(log_policy.exp() * log_policy).sum(-1).mean()
    value, ended = value_losses(outputs, batch.values).mean(), (known_share * len(batch.scores)).clamp(min=1e-9)
    owner, score = owner_losses(outputs, batch.owners).sum() / ended, score_losses(outputs, batch.scores).sum() / ended
    total = policy + settings.value_weight * value + settings.owner_weight * owner
    total = total + settings.score_weight * score - entropy_weight * entropy
    share, kl = (clipped != ratio).float().mean(), (ratio - 1 - log_ratio).mean()
    return total, torch.stack([policy, value, owner, score, entropy, share, kl]).detach()


def take(batch: Batch, index: Tensor) -> Batch:
    """Return the rows `index` of a batch."""
    inputs = type(batch.inputs)(*(tensor[index] for tensor in batch.inputs))
    return Batch(inputs, *(tensor[index] for tensor in batch[1:]))


# --- checkpoints -----------------------------------------------------------------------------------------------------


def _make_checkpoint(learner: Learner) -> Checkpoint:
    """Return the metadata of a checkpoint."""
    notes = {"rollouts": learner.rollouts, "rng": learner.rng.bit_generator.state}
    notes |= rounding_notes(learner.network.device, learner.torch_threads)
    return Checkpoint(learner.network.config, learner.step, learner.config.model_dump(mode="json"), notes)


def restore(learner: Learner, folder: Path) -> Metrics:
    """Restore the newest valid checkpoint of a folder, if there is one; see `newest_checkpoint`.

    Returns:
        The metrics of its rollout if the run has not reported them yet, else an empty dict.
    """
    found = newest_checkpoint(folder)
    if found is None:
        return {}
    network, about, state = found
    with restore_errors(folder):
        learner.network.load_state_dict(network.state_dict())
        learner.moves, learner.rollouts = about.step, int(about.notes["rollouts"])
        learner.rng.bit_generator.state = about.notes["rng"]
        _restore_tensors(learner, state)
        numbers = unreported_metrics(about)
    warn_if_rounding_differs(about.notes, learner.network.device, learner.torch_threads)
    return numbers


def _state_tensors(learner: Learner) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint in addition to the network's weights."""
    state = optimizer_tensors(learner.optimizer)
    state["games"] = torch.from_numpy(learner.games.view(np.uint8).reshape(len(learner.games), -1).copy())
    state["streams"] = torch.from_numpy(learner.streams.view(np.int64).copy())
    for index, past in enumerate(learner.league):
        state |= {f"league.{index}.{name}": value for name, value in past.state_dict().items()}
    return state


def _restore_tensors(learner: Learner, state: dict[str, Tensor]) -> None:
    learner.games[:] = state["games"].numpy().view(learner.games.dtype)[:, 0]
    learner.streams[:] = state["streams"].numpy().view(np.uint64)
    restore_optimizer(learner.optimizer, state)
    learner.league = [
        _copy_with_weights(learner.network, weights) for weights in numbered_tensors(state, "league").values()
    ]
