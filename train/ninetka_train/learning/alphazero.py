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
from ninetka_agents.outputs import Outputs, as_tensors
from ninetka_train.learning import processes
from ninetka_train.learning.config import AlphaZeroSettings, TrainConfig
from ninetka_train.learning.losses import (
    UNKNOWN,
    Log,
    check_finite,
    named,
    owner_losses,
    policy_losses,
    score_losses,
    value_losses,
)
from ninetka_train.learning.resume import (
    CheckpointWriter,
    first_network,
    newest_checkpoint,
    oldest_step,
    optimizer_tensors,
    restore_optimizer,
    rounding,
    signals_deferred,
    taking_up,
    unreported,
    warn_of_rounding,
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

Shares = tuple[float, float]
"""Share of the positions that have a policy target, and share that have a value target."""
Numbers = npt.NDArray[np.int64]
"""Indices of positions in the window, or of the symmetries applied to them."""
AHEAD = 4
"""Minibatches prepared ahead for a GPU, which would otherwise wait for them half of the time."""
LOSSES = ("policy_loss", "value_loss", "owner_loss", "score_loss", "agreement")
"""The metrics that `losses` returns in addition to the total loss.

agreement: share of positions where the most probable action is also the target's."""


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
    """(N, T) int64 relative seats, P for no owner, `UNKNOWN` where there is only a policy target."""
    scores: Tensor
    """(N,) float32 the mover's final score minus the best other score; nan where there is only a policy target."""


Minibatch = tuple[list[Examples], Shares]
"""Data of a gradient step: the microbatches of this process, and the target shares of the whole minibatch."""


@dataclass
class TrainState:
    """The state of a run between rounds: everything that a checkpoint must hold."""

    config: TrainConfig
    network: Any
    optimizer: torch.optim.Optimizer
    rng: np.random.Generator
    """Draws minibatches. Games use separate random streams, which depend on the round's number."""
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


Play = Callable[[TrainState], tuple[Samples, Log]]
"""Callback that plays the games of the next round of a state; returns the samples and metrics such as speed.

The games depend on the state alone, not on what plays them; see `ninetka_train.learning.selfplay.play_task`."""


def train_alphazero(
    config: TrainConfig,
    folder: Path | None = None,
    report: Callable[[TrainState, Log], None] | None = None,
    resume: bool = False,
    play: Play | None = None,
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
    processes.use_threads(config.threads or processes.own_threads())
    state = new_state(config)
    numbers = restore(state, folder) if resume and folder else {}
    if len(beginnings := set(processes.of_all([state.rounds]))) > 1:
        raise ValueError(f"processes start after different rounds {beginnings}: all need {folder} on a shared disk")
    keeper = _Keeper(state, folder if processes.rank() == 0 else None, report)
    with contextlib.closing(_played_rounds(state, _shared(play))) as rounds, keeper.writer.saving():
        if numbers:
            keeper.finish_round(numbers)
        _go_through(rounds, state, keeper)
    return state.network.eval()


def _shared(play: Play | None) -> Play:
    """Return the callback for all processes: each plays its share, or the first process's `play` plays all."""
    if not processes.by_first(lambda: play is not None):
        return play_round
    return lambda state: processes.by_first(lambda: play(state))  # type: ignore[misc]  # only the first one calls it


def _go_through(rounds: Iterator[tuple[Samples, Log]], state: TrainState, keeper: _Keeper) -> None:
    """Learn from each round when its games have been played."""
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
        keeper.finish_round(log | {"positions": state.positions, "share_of_play": share} | playing)


def new_state(config: TrainConfig) -> TrainState:
    """Return the initial state of a run: new weights, or the weights of `config.start_from`."""
    network = first_network(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.alphazero.learning_rate, weight_decay=0.01)
    return TrainState(config, network, optimizer, np.random.default_rng(config.seed))


# --- playing ---------------------------------------------------------------------------------------------------------


def _played_rounds(state: TrainState, play: Play) -> Generator[tuple[Samples, Log]]:
    """Yield the games of each round. The caller must learn from a round before it asks for the next one.

    With `alphazero.overlap`, a round is played while the network learns from the previous round, with the weights from
    before that learning. The metric `staleness` is the number of rounds by which these weights are out of date.
    """
    if not state.config.alphazero.overlap:
        while True:
            samples, log = play(state)
            yield samples, log | {"staleness": 0}
    ahead = ThreadPoolExecutor(1)
    try:
        coming, staleness = ahead.submit(play, _snapshot(state, 0)), 0
        while True:
            samples, log = coming.result()
            if state.rounds + 1 < state.config.alphazero.rounds:
                coming = ahead.submit(play, _snapshot(state, 1))
            yield samples, log | {"staleness": staleness}
            staleness = 1
    finally:
        ahead.shutdown(wait=False, cancel_futures=True)


def _snapshot(state: TrainState, later: int) -> TrainState:
    """Return a copy of the state for playing the round `later` rounds ahead; learning does not change the copy."""
    network = copy.deepcopy(state.network)
    return replace(state, network=network, rounds=state.rounds + later, window=[])


def play_round(state: TrainState) -> tuple[Samples, Log]:
    """Play the games of one round, the same number of each variant, with several tasks at a time."""
    start = time.perf_counter()
    samples = join(processes.of_all(_play_tasks(state)))
    return samples, pace_of(state.config, samples, time.perf_counter() - start)


def pace_of(config: TrainConfig, samples: Samples, seconds: float) -> Log:
    """Return the speed at which the games of a round were played, as metrics."""
    games = config.alphazero.games * len(config.variants)
    return {"games_per_second": games / seconds, "samples_per_second": len(samples.games) / seconds}


def _play_tasks(state: TrainState) -> list[Samples]:
    """Play this process's share of a round's tasks."""
    config, tasks = state.config, processes.share(tasks_of(state.config))
    threads = check_threads(config.threads or processes.own_threads())
    at_once = max(1, min(threads, len(tasks)))
    state.network.eval()
    play = functools.partial(play_task, config, state.network, state.rounds, threads=-(-threads // at_once))
    return list(processes.single_threaded_pool(threads).map(play, tasks))


# --- learning --------------------------------------------------------------------------------------------------------


def learn(state: TrainState) -> Log:
    """Take a round's gradient steps on minibatches from the window; return the mean losses and the learning rate."""
    settings, network = state.config.alphazero, state.network
    processes.set_torch_threads(state.torch_threads)  # agents created since then may have changed the number
    bf16 = processes.uses_bf16(state.config, network.device)
    sums = torch.zeros(len(LOSSES), device=network.device)
    network.train()
    learner = processes.learner_of(network)
    minibatches = minibatches_of(state, AHEAD if network.device.type == "cuda" else 0)
    for step, (pieces, shares) in enumerate(minibatches):
        _set_learning_rate(state, step)
        state.optimizer.zero_grad(set_to_none=True)
        for examples in processes.each_piece(learner, pieces):
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
    rate = {"learning_rate": state.optimizer.param_groups[0]["lr"]}
    return named(LOSSES, processes.total(sums) / settings.steps, outputs) | rate


def minibatches_of(state: TrainState, ahead: int) -> Iterator[Minibatch]:
    """Yield a round's minibatches. `ahead` minibatches are prepared in advance on separate threads.

    The positions are drawn in order on the calling thread, so the minibatches do not depend on `ahead`.
    """
    drawn = (_draw_minibatch(state) for _ in range(state.config.alphazero.steps))
    make = functools.partial(_make_minibatch, state)
    if not ahead:
        yield from map(make, drawn)
        return
    pool = ThreadPoolExecutor(ahead)  # `pool.map` would prepare all minibatches at once and hold them in memory
    try:
        coming = deque(pool.submit(make, numbers) for numbers in islice(drawn, ahead))
        while coming:
            ready = coming.popleft().result()
            coming.extend(pool.submit(make, numbers) for numbers in islice(drawn, 1))
            yield ready
    finally:
        pool.shutdown(cancel_futures=True)


def _draw_minibatch(state: TrainState) -> list[tuple[Numbers, Numbers]]:
    """Draw the indices of positions and symmetries for each microbatch of a minibatch."""
    settings = state.config.alphazero
    symmetries = state.network.symmetries if settings.turned else 1
    chosen = draw(state.window, settings.minibatch, state.rng)
    pieces = np.array_split(chosen, -(-settings.minibatch // settings.microbatch))
    return [(piece, state.rng.integers(0, symmetries, len(piece))) for piece in pieces]


def _make_minibatch(state: TrainState, numbers: list[tuple[Numbers, Numbers]]) -> Minibatch:
    """Make the examples of this process's microbatches, and the target shares of the whole minibatch."""
    pieces = [(take(state.window, chosen), turns) for chosen, turns in numbers]
    shares = _shares([samples for samples, _ in pieces], state.config.alphazero.minibatch)
    return [make_examples(state.network, *piece) for piece in processes.share(pieces)], shares


def _set_learning_rate(state: TrainState, step: int) -> None:
    """Set the learning rate of a step: linear warm-up, multiplied by a linear decay to 1 % over the run."""
    settings = state.config.alphazero
    done = state.rounds * settings.steps + step
    share = min(1.0, (done + 1) / settings.warm_up) * (1 - 0.99 * done / (settings.rounds * settings.steps))
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate * share


def make_examples(network: Any, samples: Samples, turns: npt.NDArray[np.int64] | None = None) -> Examples:
    """Make examples with targets relative to the mover; turn each position by its symmetry in `turns`, (N,)."""
    arrays, policy, owners = network.encode(samples.games), samples.policy.astype(np.float32), relative_seats(samples)
    if turns is not None and turns.any():
        arrays, policy, owners = network.turned(arrays, policy, owners, turns)
    values, scores = relative_values(samples), relative_scores(samples)
    is_valued = np.asarray(values.any(1))  # the others have a policy target only, see `Samples.values`
    owners = np.where(is_valued[:, None], owners, UNKNOWN)
    targets = (policy, values, owners, np.where(is_valued, scores, np.float32(np.nan)))
    tensors = (torch.from_numpy(target).to(network.device) for target in targets)
    return Examples(as_tensors(arrays, network.device), *tensors)


def _shares(samples: Sequence[Samples], minibatch: int) -> Shares:
    """Return the shares of a minibatch's positions that have a policy target and a value target."""
    searched = sum(np.count_nonzero(part.policy.any(1)) for part in samples)
    valued = sum(np.count_nonzero(part.values.any(1)) for part in samples)
    return searched / minibatch, valued / minibatch


def losses(outputs: Outputs, examples: Examples, settings: AlphaZeroSettings, shares: Shares) -> tuple[Tensor, Tensor]:
    """Return the total loss, and the metrics of `LOSSES`, (5,) float32, detached.

    `shares` are the shares of the whole minibatch's positions that have a policy target and a value target. With them
    every position has the same weight in its loss, regardless of the other positions of its microbatch.
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


# --- keeping ---------------------------------------------------------------------------------------------------------


class _Keeper:
    """Reports rounds, and writes the files that are needed to resume after them."""

    def __init__(
        self, state: TrainState, folder: Path | None, report: Callable[[TrainState, Log], None] | None
    ) -> None:
        self._state, self._folder, self._report = state, folder, report
        self.writer = CheckpointWriter(folder, state.config.checkpoint_minutes)

    def finish_round(self, numbers: Log) -> None:
        """Report the newest round, and write a checkpoint if one is due.

        The state is copied before the report, so that a run stopped during a measurement loses nothing. It is written
        after the report, so that a resumed run has reported every round before the checkpoint.
        """
        state, folder = self._state, self._folder
        if folder:
            with signals_deferred():
                write_samples(folder / "games" / f"round-{state.rounds:06}.npz", state.window[-1])
                self.writer.hold(state.network, _about(state), optimizer_tensors(state.optimizer), numbers)
        if self._report:
            self._report(state, numbers)
        if folder:
            self.writer.write(state.rounds % state.config.checkpoint_every == 0 or state.progress == 1)
            _remove_games(folder, state.config.alphazero.window)


def _about(state: TrainState) -> Checkpoint:
    """Return the metadata of a checkpoint."""
    notes = {"positions": state.positions, "rng": state.rng.bit_generator.state}
    notes |= rounding(state.network.device, state.torch_threads)
    return Checkpoint(state.network.config, state.step, state.config.model_dump(mode="json"), notes)


def _remove_games(folder: Path, window: int) -> None:
    """Remove the games of rounds that no checkpoint's window needs."""
    last = oldest_step(folder) - window
    for path in (folder / "games").glob("round-*.npz"):
        if int(path.stem.removeprefix("round-")) <= last:
            path.unlink()


def restore(state: TrainState, folder: Path) -> Log:
    """Restore the newest valid checkpoint of a folder and the games of its window, if there is one.

    Returns:
        The metrics of its round if the run has not reported them yet, else an empty dict.

    Raises:
        ValueError: if there are checkpoints but none is valid, or games are damaged; the message names the files.
    """
    found = newest_checkpoint(folder)
    if found is None:
        return {}
    network, about, tensors = found
    with taking_up(folder):
        state.network.load_state_dict(network.state_dict())
        restore_optimizer(state.optimizer, tensors)
        state.rounds, state.positions = about.step, int(about.notes["positions"])
        state.rng.bit_generator.state = about.notes["rng"]
        numbers = unreported(about)
    warn_of_rounding(about.notes, state.network.device, state.torch_threads)
    first = max(0, state.rounds - state.config.alphazero.window)
    kept = range(first + 1, state.rounds + 1)
    dtype = state.config.variants[0].dtype
    state.window = [read_samples(folder / "games" / f"round-{number:06}.npz", dtype) for number in kept]
    return numbers
