"""Self-play with proximal policy optimisation (Schulman et al., 2017). Start reading at `train_ppo`.

The learner plays every seat of every game, except in games against the league, where it plays one seat. Without a
league, a rollout of T plies of B games therefore has T * B decisions. A seat's trajectory consists of its own
successive decisions; see `ninetka_train.learning.advantages.seat_advantages`.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.checkpoint import Checkpoint
from ninetka_agents.net_agent import NetAgent
from ninetka_agents.outputs import Outputs, as_tensors
from ninetka_env.core.batch import make_outcomes, step_with_autoreset
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import StateArray
from ninetka_train.learning.batch import Batch, make_batch, take
from ninetka_train.learning.config import PPOSettings, TrainConfig
from ninetka_train.learning.learner import LEARNER, SAMPLING_SETTINGS, Learner, forward
from ninetka_train.learning.losses import (
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
    options_of_games,
    roll_seats,
    sample_actions,
    start_games,
)


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
    writer = CheckpointWriter(folder, config)
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
    del rollout  # its inputs can fill a GPU
    log = learn(learner, batch)
    learner.moves += settings.games * settings.plies
    learner.rollouts += 1
    grow_league(learner)
    done = time.perf_counter()
    speed = {"moves": learner.moves, "moves_per_second": settings.games * settings.plies / (done - start)}
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
    if _can_play_on_device(network):
        from ninetka_train.learning.device_play import DeviceGames  # it needs numba's module for CUDA

        learner.device_games = DeviceGames(variants, games, streams, network.device)
    return learner


def _can_play_on_device(network: Any) -> bool:
    """Return whether the games of a run can be where its network is, on a GPU."""
    if network.device.type != "cuda" or importlib.util.find_spec("numba_cuda") is None:
        return False
    from ninetka_env.gpu.device import MIN_CAPABILITY

    is_new_enough = torch.cuda.get_device_capability(network.device) >= MIN_CAPABILITY
    return is_new_enough and hasattr(network, "encode_on_device")


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
    if learner.device_games is not None:
        from ninetka_train.learning.device_play import play_on_device  # it needs numba's module for CUDA

        return play_on_device(learner)
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
    outputs = forward(learner, as_tensors(arrays, learner.network.device))
    check_outputs(outputs.logits, outputs.values)
    values = np.ascontiguousarray(outputs.values.cpu().numpy())
    roll_seats(values, -games["to_move"].astype(np.int8), games["num_players"].astype(np.int8))
    return outputs.logits.cpu().numpy(), values


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
                outputs = forward(learner, piece.inputs)
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
    if learner.device_games is not None:
        learner.device_games.copy_to(learner.games, learner.streams)
    state["games"] = torch.from_numpy(learner.games.view(np.uint8).reshape(len(learner.games), -1).copy())
    state["streams"] = torch.from_numpy(learner.streams.view(np.int64).copy())
    for index, past in enumerate(learner.league):
        state |= {f"league.{index}.{name}": value for name, value in past.state_dict().items()}
    return state


def _restore_tensors(learner: Learner, state: dict[str, Tensor]) -> None:
    learner.games[:] = state["games"].numpy().view(learner.games.dtype)[:, 0]
    learner.streams[:] = state["streams"].numpy().view(np.uint64)
    if learner.device_games is not None:
        learner.device_games.copy_from(learner.games, learner.streams)
    restore_optimizer(learner.optimizer, state)
    learner.league = [
        _copy_with_weights(learner.network, weights) for weights in numbered_tensors(state, "league").values()
    ]
