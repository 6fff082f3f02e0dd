"""AlphaZero for any game (Silver et al., 2018; for more than two players Petosa and Balch, 2019).

Start reading at `train_alphazero`; `selfplay.py` plays the games.

A round plays games by search, stores the search results of their positions, and trains the network on the newest
rounds. The first rounds use tree search with random playouts instead of the network, because an untrained network gives
a worse policy target. Later rounds use the Gumbel search with the current network.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ninetka_agents.agent import check_threads
from ninetka_agents.checkpoint import Checkpoint
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.outputs import Outputs, as_tensors
from ninetka_train.learning import processes
from ninetka_train.learning.config import AlphaZeroSettings, TrainConfig
from ninetka_train.learning.joined_evaluate import JoinedEvaluate
from ninetka_train.learning.losses import (
    UNKNOWN_OWNER,
    Metrics,
    check_finite,
    losses_by_name,
    owner_losses,
    policy_losses,
    score_losses,
    value_losses,
)
from ninetka_train.learning.resume import (
    CheckpointWriter,
    initial_network,
    newest_checkpoint,
    oldest_step,
    optimizer_tensors,
    restore_errors,
    restore_optimizer,
    rounding_notes,
    signals_deferred,
    unreported_metrics,
    warn_if_rounding_differs,
)
from ninetka_train.learning.samples import (
    Samples,
    draw,
    join,
    read_samples,
    relative_scores,
    relative_seats,
    relative_values,
    take,
    write_samples,
)
from ninetka_train.learning.selfplay import play_task, tasks_of

TargetShares = tuple[float, float]
"""Share of the positions that have a policy target, and share of the positions that have a value target."""
Ints = npt.NDArray[np.int64]
"""Indices of positions in the window, or of the symmetries applied to them."""
PREFETCHED_MINIBATCHES = 4
"""Number of minibatches prepared in advance for a GPU, which would otherwise wait for data half of the time."""
LOSS_NAMES = ("policy_loss", "value_loss", "owner_loss", "score_loss", "agreement")
"""The metrics that `losses` returns in addition to the total loss.

`agreement` is a share of the positions with a policy target: those where the network's most probable action has the
largest target."""


@dataclass
class Examples:
    """N positions and their targets as tensors on the network's device; seats are relative to the mover."""

    inputs: Any
    """The network's inputs."""
    policy: Tensor
    """(N, A) float32; see `ninetka_train.learning.samples.Samples`."""
    values: Tensor
    """(N, P + 1) float32; see `ninetka_train.learning.samples.Samples`."""
    owners: Tensor
    """(N, T) int64 final owners as relative seats, P for no owner; `UNKNOWN_OWNER` without a value target."""
    scores: Tensor
    """(N,) float32 the mover's final score minus the best other score; nan where there is only a policy target."""


Minibatch = tuple[list[Examples], TargetShares, float]
"""Data of a gradient step: the microbatches of this process; of the whole minibatch the target shares, and the share of
positions from the network's own games."""


@dataclass
class TrainState:
    """The state of a run between rounds: everything that a checkpoint must hold."""

    config: TrainConfig
    network: Any
    optimizer: torch.optim.Optimizer
    rng: np.random.Generator
    """Draws minibatches. Games use separate random streams, which depend on the index of the round."""
    rounds: int = 0
    positions: int = 0
    window: list[Samples] = field(default_factory=list)
    """The newest rounds."""
    torch_threads: int = field(default_factory=torch.get_num_threads)
    """Threads that torch uses for learning; weights are byte-identical only for the same number."""

    @property
    def step(self) -> int:
        """The number of finished rounds, which is also the number in the checkpoint's name."""
        return self.rounds

    @property
    def total(self) -> int:
        """The number of rounds of the whole run."""
        return self.config.alphazero.rounds

    @property
    def progress(self) -> float:
        """The finished share of the run, 0..1."""
        return min(1.0, self.step / self.total)


PlayRound = Callable[[TrainState], tuple[Samples, Metrics]]
"""Callback that plays the games of the next round of a state; returns the samples and metrics such as speed.

On a CPU the games must depend on the state only, not on the process or machine that plays them; see
`ninetka_train.learning.selfplay.play_task`."""


def train_alphazero(
    config: TrainConfig,
    folder: Path | None = None,
    report: Callable[[TrainState, Metrics], None] | None = None,
    resume: bool = False,
    play: PlayRound | None = None,
) -> Any:
    """Train a network on games played by search, for `config.alphazero.rounds` rounds.

    Args:
        config: with `algorithm="alphazero"`.
        folder: receives checkpoints, `step-*.safetensors`, and the window's games, `games/`; None writes nothing.
        report: called after each round with the metrics; it must not change the state.
        resume: continue from the newest valid checkpoint in `folder`, if there is one.
        play: plays a round's games; None plays them in this process (`play_round`). If several processes learn together
            (see `ninetka_train.learning.processes`), only the first process's callback is used.

    Returns:
        The trained network, in evaluation mode.
    """
    processes.use_threads(config.threads or processes.threads_per_process())
    state = new_state(config)
    numbers = restore(state, folder) if resume and folder else {}
    if len(start_rounds := set(processes.gather([state.rounds]))) > 1:
        raise ValueError(f"processes start after different rounds {start_rounds}: all need {folder} on a shared disk")
    recorder = _RoundRecorder(state, folder if processes.rank() == 0 else None, report)
    with contextlib.closing(_played_rounds(state, _round_player(play))) as rounds, recorder.writer.save_on_error():
        if numbers:
            recorder.finish_round(numbers)
        _train_rounds(rounds, state, recorder)
    return state.network.eval()


def _round_player(play: PlayRound | None) -> PlayRound:
    """Return the function by which every process gets the games of a round.

    If the first process has a callback `play`, it plays all games and sends them to the other processes. Otherwise each
    process plays its share.
    """
    if not processes.broadcast_from_first(lambda: play is not None):
        return play_round
    return lambda state: processes.broadcast_from_first(lambda: play(state))  # type: ignore[misc]  # only the first one calls it


def _train_rounds(rounds: Iterator[tuple[Samples, Metrics]], state: TrainState, recorder: _RoundRecorder) -> None:
    """Learn from the games of each round and record the round, until all rounds are finished."""
    config = state.config
    while state.rounds < config.alphazero.rounds:
        start = time.perf_counter()
        samples, playing = next(rounds)
        played = time.perf_counter()
        state.window = [*state.window, samples][-config.alphazero.window :]
        state.positions += len(samples.games)
        log = learn(state)
        state.rounds += 1
        share = (played - start) / (time.perf_counter() - start)
        own = {"own_games": float(state.rounds > config.alphazero.playout_rounds)}
        recorder.finish_round(log | {"positions": state.positions, "share_of_play": share} | own | playing)


def new_state(config: TrainConfig) -> TrainState:
    """Return the initial state of a run: new weights, or the weights of `config.start_from`."""
    network = initial_network(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.alphazero.learning_rate, weight_decay=0.01)
    return TrainState(config, network, optimizer, np.random.default_rng(config.seed))


# --- playing ---------------------------------------------------------------------------------------------------------


def _played_rounds(state: TrainState, play: PlayRound) -> Generator[tuple[Samples, Metrics]]:
    """Yield the games of each round. The caller must learn from a round before it asks for the next one.

    With `alphazero.overlap`, a round is played while the network learns from the previous round. The games then use a
    copy of the weights that was made before this learning. The metric `staleness` is the age of these weights in
    rounds.
    """
    if not state.config.alphazero.overlap:
        while True:
            samples, log = play(state)
            yield samples, log | {"staleness": 0}
    executor = ThreadPoolExecutor(1)
    try:
        pending, staleness = executor.submit(play, _snapshot(state, 0)), 0
        while True:
            samples, log = pending.result()
            if state.rounds + 1 < state.config.alphazero.rounds:
                pending = executor.submit(play, _snapshot(state, 1))
            yield samples, log | {"staleness": staleness}
            staleness = 1
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _snapshot(state: TrainState, rounds_ahead: int) -> TrainState:
    """Return a copy of the state for playing games. `rounds_ahead` is added to its number of finished rounds."""
    network = copy.deepcopy(state.network)
    return replace(state, network=network, rounds=state.rounds + rounds_ahead, window=[])


def play_round(state: TrainState) -> tuple[Samples, Metrics]:
    """Play the games of one round, the same number of each variant; return the samples and the speed.

    Several tasks are played at the same time, each in its own thread.
    """
    start = time.perf_counter()
    samples = join(processes.gather(_play_tasks(state)))
    return samples, playing_speed(state.config, samples, time.perf_counter() - start)


def playing_speed(config: TrainConfig, samples: Samples, seconds: float) -> Metrics:
    """Return the speed at which the games of a round were played, as metrics."""
    games = config.alphazero.games * len(config.variants)
    return {"games_per_second": games / seconds, "samples_per_second": len(samples.games) / seconds}


def _play_tasks(state: TrainState) -> list[Samples]:
    """Play this process's share of a round's tasks.

    In rounds of a network on a GPU, twice as many tasks as threads run at the same time, and their positions are
    evaluated together: while half of the tasks search, the positions of the others are evaluated.
    """
    config, network, tasks = state.config, state.network.eval(), processes.own_share(tasks_of(state.config))
    threads = check_threads(config.threads or processes.threads_per_process())
    joins = state.rounds >= config.alphazero.playout_rounds and _joins_positions(network)
    workers = 2 * threads if joins else threads
    at_once = max(1, min(workers, len(tasks)))
    play = functools.partial(play_task, config, network, state.rounds, threads=-(-threads // at_once))
    if not joins:
        return list(processes.single_threaded_pool(workers).map(play, tasks))
    evaluate = network_evaluate(network, bf16=processes.uses_bf16(config, network.device))
    joined = JoinedEvaluate(evaluate, threads)

    def play_joined(task: range) -> Samples:
        with joined.user():
            return play(task, evaluate=joined)

    return list(processes.single_threaded_pool(workers).map(play_joined, tasks))


def _joins_positions(network: Any) -> bool:
    """Return whether positions of several tasks are evaluated together; on a CPU, results must not depend on it."""
    return bool(network.device.type != "cpu")


# --- learning --------------------------------------------------------------------------------------------------------


def learn(state: TrainState) -> Metrics:
    """Take a round's gradient steps on minibatches from the window; return the mean losses and the learning rate."""
    settings, network = state.config.alphazero, state.network
    processes.set_torch_threads(state.torch_threads)  # agents created in the meantime may have changed the number
    bf16 = processes.uses_bf16(state.config, network.device)
    sums = torch.zeros(len(LOSS_NAMES), device=network.device)
    own_shares = []
    network.train()
    learner = processes.distributed_network(network)
    minibatches = minibatches_of(state, PREFETCHED_MINIBATCHES if network.device.type == "cuda" else 0)
    for step, (pieces, shares, own_share) in enumerate(minibatches):
        own_shares.append(own_share)
        _set_learning_rate(state, step)
        state.optimizer.zero_grad(set_to_none=True)
        for examples in processes.each_microbatch(learner, pieces):
            with torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
                outputs = learner(examples.inputs)
            total, parts = losses(outputs, examples, settings, shares)
            weight = len(examples.policy) / settings.minibatch
            processes.backward(total * weight)
            sums += parts * weight
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        state.optimizer.step()
    network.eval()
    newest = next(samples.games for samples in reversed(state.window) if len(samples.games))
    check_finite(network, newest, bf16)
    rate = {"learning_rate": state.optimizer.param_groups[0]["lr"], "own_share": float(np.mean(own_shares))}
    return losses_by_name(LOSS_NAMES, processes.sum_over_processes(sums) / settings.steps, outputs) | rate


def minibatches_of(state: TrainState, prefetch: int) -> Iterator[Minibatch]:
    """Yield a round's minibatches. `prefetch` minibatches are prepared in advance on separate threads.

    The positions are drawn in order on the calling thread, so the minibatches do not depend on `prefetch`.
    """
    drawn = (_draw_minibatch(state) for _ in range(state.config.alphazero.steps))
    make = functools.partial(_make_minibatch, state)
    if not prefetch:
        yield from map(make, drawn)
        return
    pool = ThreadPoolExecutor(prefetch)  # `pool.map` would prepare all minibatches at once and hold them in memory
    try:
        pending = deque(pool.submit(make, numbers) for numbers in islice(drawn, prefetch))
        while pending:
            ready = pending.popleft().result()
            pending.extend(pool.submit(make, numbers) for numbers in islice(drawn, 1))
            yield ready
    finally:
        pool.shutdown(cancel_futures=True)


def _draw_minibatch(state: TrainState) -> list[tuple[Ints, Ints]]:
    """Draw the indices of positions and symmetries for each microbatch of a minibatch."""
    settings = state.config.alphazero
    symmetries = state.network.num_symmetries if settings.turned else 1
    chosen = draw(state.window, settings.minibatch, state.rng)
    pieces = np.array_split(chosen, -(-settings.minibatch // settings.microbatch))
    return [(piece, state.rng.integers(0, symmetries, len(piece))) for piece in pieces]


def _make_minibatch(state: TrainState, numbers: list[tuple[Ints, Ints]]) -> Minibatch:
    """Make the examples of this process's microbatches, and the target shares of the whole minibatch."""
    pieces = [(take(state.window, chosen), turns) for chosen, turns in numbers]
    shares = _target_shares([samples for samples, _ in pieces], state.config.alphazero.minibatch)
    chosen = np.concatenate([indices for indices, _ in numbers])
    own = float(np.mean(chosen >= _num_teacher_positions(state)))
    return [make_examples(state.network, *piece) for piece in processes.own_share(pieces)], shares, own


def _num_teacher_positions(state: TrainState) -> int:
    """Return how many positions at the start of the window come from games of the playout rounds' search."""
    first = state.rounds + 1 - len(state.window)  # number of the window's oldest round; the newest is not counted yet
    rounds = max(0, state.config.alphazero.playout_rounds - first)
    return sum(len(samples.games) for samples in state.window[:rounds])


def _set_learning_rate(state: TrainState, step: int) -> None:
    """Set the learning rate of a step: linear warm-up, multiplied by a linear decay to 1 % over the run."""
    settings = state.config.alphazero
    done = state.rounds * settings.steps + step
    share = min(1.0, (done + 1) / settings.warm_up) * (1 - 0.99 * done / (settings.rounds * settings.steps))
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate * share


def make_examples(network: Any, samples: Samples, symmetries: npt.NDArray[np.int64] | None = None) -> Examples:
    """Make examples, with targets relative to the mover.

    Args:
        network: encodes the positions and applies the symmetries.
        samples: N positions.
        symmetries: (N,) int64 the index of the symmetry that is applied to each position; None applies none.
    """
    arrays, policy, owners = network.encode(samples.games), samples.policy.astype(np.float32), relative_seats(samples)
    if symmetries is not None and symmetries.any():
        arrays, policy, owners = network.apply_symmetries(arrays, policy, owners, symmetries)
    values, scores = relative_values(samples), relative_scores(samples)
    is_valued = np.asarray(values.any(1))  # the others have a policy target only, see `Samples.values`
    owners = np.where(is_valued[:, None], owners, UNKNOWN_OWNER)
    targets = (policy, values, owners, np.where(is_valued, scores, np.float32(np.nan)))
    tensors = (torch.from_numpy(target).to(network.device) for target in targets)
    return Examples(as_tensors(arrays, network.device), *tensors)


def _target_shares(samples: Sequence[Samples], minibatch: int) -> TargetShares:
    """Return the share of a minibatch's positions with a policy target, and the share with a value target."""
    searched = sum(np.count_nonzero(part.policy.any(1)) for part in samples)
    valued = sum(np.count_nonzero(part.values.any(1)) for part in samples)
    return searched / minibatch, valued / minibatch


def losses(
    outputs: Outputs, examples: Examples, settings: AlphaZeroSettings, shares: TargetShares
) -> tuple[Tensor, Tensor]:
    """Return the total loss, and the metrics of `LOSS_NAMES`, (5,) float32, detached.

    `shares` are the target shares of the whole minibatch. With them, each loss is averaged over the expected number of
    targets in a microbatch, so a position has the same weight in any microbatch.
    """
    has_policy_target = examples.policy.sum(-1) > 0
    searched, valued = (max(1e-9, share * len(has_policy_target)) for share in shares)
    policy = policy_losses(outputs.logits, examples.policy).sum() / searched
    value = value_losses(outputs, examples.values).sum() / valued
    owner = owner_losses(outputs, examples.owners).sum() / valued
    score = score_losses(outputs, examples.scores).sum() / valued
    best = examples.policy.gather(1, outputs.logits.argmax(-1, keepdim=True))[:, 0] == examples.policy.amax(-1)
    agreement = (best & has_policy_target).sum() / searched
    total = policy + value + settings.owner_weight * owner + settings.score_weight * score
    return total, torch.stack([policy, value, owner, score, agreement]).detach()


# --- checkpoints -----------------------------------------------------------------------------------------------------


class _RoundRecorder:
    """Reports rounds, and writes the files that are needed to resume after them."""

    def __init__(
        self, state: TrainState, folder: Path | None, report: Callable[[TrainState, Metrics], None] | None
    ) -> None:
        self._state, self._folder, self._report = state, folder, report
        self.writer = CheckpointWriter(folder, state.config)

    def finish_round(self, numbers: Metrics) -> None:
        """Report the newest round, and write a checkpoint if one is due.

        The state is copied before `report` is called, so that nothing is lost if the run is stopped during the report,
        which may play evaluation games. The checkpoint is written after the report, so that a resumed run does not skip
        the report of any round.
        """
        state, folder = self._state, self._folder
        if folder:
            with signals_deferred():
                write_samples(folder / "games" / f"round-{state.rounds:06}.npz", state.window[-1])
                self.writer.hold(state.network, _make_checkpoint(state), optimizer_tensors(state.optimizer), numbers)
        if self._report:
            self._report(state, numbers)
        if folder:
            self.writer.write(state.rounds % state.config.checkpoint_every == 0 or state.progress == 1)
            _remove_games(folder, state.config.alphazero.window)


def _make_checkpoint(state: TrainState) -> Checkpoint:
    """Return the metadata of a checkpoint."""
    notes = {"positions": state.positions, "rng": state.rng.bit_generator.state}
    notes |= rounding_notes(state.network.device, state.torch_threads)
    return Checkpoint(state.network.config, state.step, state.config.model_dump(mode="json"), notes)


def _remove_games(folder: Path, window: int) -> None:
    """Remove the games of rounds that no checkpoint's window needs."""
    last = oldest_step(folder) - window
    for path in (folder / "games").glob("round-*.npz"):
        if int(path.stem.removeprefix("round-")) <= last:
            path.unlink()


def restore(state: TrainState, folder: Path) -> Metrics:
    """Restore the newest valid checkpoint of a folder, if there is one, and the games of its window.

    Returns:
        The metrics of its round if the run has not reported them yet, else an empty dict.

    Raises:
        ValueError: if there are checkpoints but none is valid, or games are damaged; the message names the files.
    """
    found = newest_checkpoint(folder)
    if found is None:
        return {}
    network, about, tensors = found
    with restore_errors(folder):
        state.network.load_state_dict(network.state_dict())
        restore_optimizer(state.optimizer, tensors)
        state.rounds, state.positions = about.step, int(about.notes["positions"])
        state.rng.bit_generator.state = about.notes["rng"]
        numbers = unreported_metrics(about)
    warn_if_rounding_differs(about.notes, state.network.device, state.torch_threads)
    first = max(0, state.rounds - state.config.alphazero.window)
    kept = range(first + 1, state.rounds + 1)
    dtype = state.config.variants[0].dtype
    state.window = [read_samples(folder / "games" / f"round-{number:06}.npz", dtype) for number in kept]
    return numbers
