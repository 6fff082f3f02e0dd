"""AlphaZero for any game (Silver et al., 2018; for more than two players Petosa and Balch, 2019).

Read it from `train_alphazero` down.

A round plays games by search, keeps what the search found out about their positions, and lets the network learn from
the newest rounds. The first rounds search with random playouts and need no network: an untrained one would only
mislead. Later rounds use the Gumbel search with the network as it is by then.
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
"""Of positions that have a policy to learn, and of those that have values."""
Numbers = npt.NDArray[np.int64]
"""Of positions, counted through the window, or of the symmetries that turn them."""
AHEAD = 4
"""Minibatches that are made at once while a GPU learns, which would else wait for them half of the time."""
LOSSES = ("policy_loss", "value_loss", "owner_loss", "score_loss", "agreement")
"""What `losses` returns beside the loss to be lowered; agreement: how often the network's best is the target's."""


@dataclass
class Examples:
    """N positions with their targets, seats relative to the mover, on the learner's device."""

    inputs: Any
    """What the network reads."""
    policy: Tensor
    """(N, A) float32; see `ninetka_train.learning.samples.Samples`."""
    values: Tensor
    """(N, P + 1) float32; see `ninetka_train.learning.samples.Samples`."""
    owners: Tensor
    """(N, T) int64 relative seats, P for nobody, `UNKNOWN` where only the policy is to be learned."""
    scores: Tensor
    """(N,) float32 the mover's final score less the best other, nan there."""


Minibatch = tuple[list[Examples], Shares]
"""What a gradient step learns from: this process's pieces, one for each backward pass, and all pieces' shares."""


@dataclass
class TrainState:
    """All that a run carries from one round to the next, and that a checkpoint must hold."""

    config: TrainConfig
    network: Any
    optimizer: torch.optim.Optimizer
    rng: np.random.Generator
    """Draws minibatches; games have chance of their own, numbered by round."""
    rounds: int = 0
    positions: int = 0
    window: list[Samples] = field(default_factory=list)
    """The newest rounds."""
    torch_threads: int = field(default_factory=torch.get_num_threads)
    """Threads that the learner computes with; weights are the same bytes only for the same number."""

    @property
    def step(self) -> int:
        """What is done, in rounds: the number in the name of this state's checkpoint."""
        return self.rounds

    @property
    def total(self) -> int:
        """The rounds of the whole run."""
        return self.config.alphazero.rounds

    @property
    def progress(self) -> float:
        """How much of the run is done, 0..1."""
        return min(1.0, self.step / self.total)


Play = Callable[[TrainState], tuple[Samples, Log]]
"""Plays the games of the round that a state is about to learn from; returns what is known of the playing, too. What is
played depends on the state alone, not on who plays it; see `ninetka_train.learning.selfplay.play_task`."""


def train_alphazero(
    config: TrainConfig,
    folder: Path | None = None,
    report: Callable[[TrainState, Log], None] | None = None,
    resume: bool = False,
    play: Play | None = None,
) -> Any:
    """Learn from searched games for `config.alphazero.rounds` rounds.

    Args:
        config: with `algorithm="alphazero"`.
        folder: for checkpoints, `step-*.safetensors`, and the window's games, `games/`; None keeps nothing.
        report: called after each round with plain numbers; it must leave the state alone.
        resume: go on from the newest good checkpoint in `folder`, if there is one.
        play: who plays a round's games; None for this process, `play_round`. Of several that learn together (see
            `ninetka_train.learning.processes`), only the first one's counts.

    Returns:
        The trained network, in evaluation mode.
    """
    processes.use_threads(config.threads or processes.own_threads())
    state = new_state(config)
    numbers = restore(state, folder) if resume and folder else {}
    if len(beginnings := set(processes.of_all([state.rounds]))) > 1:
        raise ValueError(f"processes begin after rounds {beginnings}: all need {folder}, on a disk that they share")
    keeper = _Keeper(state, folder if processes.rank() == 0 else None, report)
    with contextlib.closing(_played_rounds(state, _shared(play))) as rounds, keeper.writer.saving():
        if numbers:
            keeper.finish_round(numbers)
        _go_through(rounds, state, keeper)
    return state.network.eval()


def _shared(play: Play | None) -> Play:
    """Return how each of the processes gets a round's games: all play, or the first one has somebody who does."""
    if not processes.by_first(lambda: play is not None):
        return play_round
    return lambda state: processes.by_first(lambda: play(state))  # type: ignore[misc]  # only the first one's is called


def _go_through(rounds: Iterator[tuple[Samples, Log]], state: TrainState, keeper: _Keeper) -> None:
    """Learn from each round as its games are there."""
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
    """Set a run up: fresh weights, or those to start from."""
    network = first_network(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=config.alphazero.learning_rate, weight_decay=0.01)
    return TrainState(config, network, optimizer, np.random.default_rng(config.seed))


# --- playing ---------------------------------------------------------------------------------------------------------


def _played_rounds(state: TrainState, play: Play) -> Generator[tuple[Samples, Log]]:
    """Yield the games of round after round, each once the state has learned from those before.

    With `alphazero.overlap` a round is played while the network learns from the one before, by the weights from before
    that: `staleness` says how many rounds of learning these are behind.
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
    """Return a state to play the round with that comes so many rounds later, which learning leaves alone."""
    network = copy.deepcopy(state.network)
    return replace(state, network=network, rounds=state.rounds + later, window=[])


def play_round(state: TrainState) -> tuple[Samples, Log]:
    """Play the games of one round, the same number of each variant: task by task, some of them at once."""
    start = time.perf_counter()
    samples = join(processes.of_all(_play_tasks(state)))
    return samples, pace_of(state.config, samples, time.perf_counter() - start)


def pace_of(config: TrainConfig, samples: Samples, seconds: float) -> Log:
    """Return how fast the games of a round were played."""
    games = config.alphazero.games * len(config.variants)
    return {"games_per_second": games / seconds, "samples_per_second": len(samples.games) / seconds}


def _play_tasks(state: TrainState) -> list[Samples]:
    """Play the tasks of a round that are this process's."""
    config, tasks = state.config, processes.share(tasks_of(state.config))
    threads = check_threads(config.threads or processes.own_threads())
    at_once = max(1, min(threads, len(tasks)))
    state.network.eval()
    play = functools.partial(play_task, config, state.network, state.rounds, threads=-(-threads // at_once))
    return list(processes.single_threaded_pool(threads).map(play, tasks))


# --- learning --------------------------------------------------------------------------------------------------------


def learn(state: TrainState) -> Log:
    """Take a round's gradient steps on minibatches from the window; return the mean losses and the last step size."""
    settings, network = state.config.alphazero, state.network
    processes.set_torch_threads(state.torch_threads)  # agents that were made meanwhile may have changed it
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
    """Yield a round's minibatches; so many at once are made before they are needed, on threads of their own.

    They are drawn in order, so what they are does not depend on it.
    """
    drawn = (_draw_minibatch(state) for _ in range(state.config.alphazero.steps))
    make = functools.partial(_make_minibatch, state)
    if not ahead:
        yield from map(make, drawn)
        return
    pool = ThreadPoolExecutor(ahead)  # its own `map` would make all of them at once, and hold them
    try:
        coming = deque(pool.submit(make, numbers) for numbers in islice(drawn, ahead))
        while coming:
            ready = coming.popleft().result()
            coming.extend(pool.submit(make, numbers) for numbers in islice(drawn, 1))
            yield ready
    finally:
        pool.shutdown(cancel_futures=True)


def _draw_minibatch(state: TrainState) -> list[tuple[Numbers, Numbers]]:
    """Draw the numbers of a minibatch's positions, and of the symmetries that turn them, piece by piece."""
    settings = state.config.alphazero
    symmetries = state.network.symmetries if settings.turned else 1
    chosen = draw(state.window, settings.minibatch, state.rng)
    pieces = np.array_split(chosen, -(-settings.minibatch // settings.microbatch))
    return [(piece, state.rng.integers(0, symmetries, len(piece))) for piece in pieces]


def _make_minibatch(state: TrainState, numbers: list[tuple[Numbers, Numbers]]) -> Minibatch:
    """Make the examples of this process's pieces, and the shares of all."""
    pieces = [(take(state.window, chosen), turns) for chosen, turns in numbers]
    shares = _shares([samples for samples, _ in pieces], state.config.alphazero.minibatch)
    return [make_examples(state.network, *piece) for piece in processes.share(pieces)], shares


def _set_learning_rate(state: TrainState, step: int) -> None:
    """Warm the step size up over the first steps, then lower it in a straight line to 1 %."""
    settings = state.config.alphazero
    done = state.rounds * settings.steps + step
    share = min(1.0, (done + 1) / settings.warm_up) * (1 - 0.99 * done / (settings.rounds * settings.steps))
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate * share


def make_examples(network: Any, samples: Samples, turns: npt.NDArray[np.int64] | None = None) -> Examples:
    """Make examples from the mover's eyes of positions by seat, each turned by the symmetry of that number."""
    arrays, policy, owners = network.encode(samples.games), samples.policy.astype(np.float32), relative_seats(samples)
    if turns is not None and turns.any():
        arrays, policy, owners = network.turned(arrays, policy, owners, turns)
    values, scores = relative_values(samples), relative_scores(samples)
    is_valued = np.asarray(values.any(1))  # the others teach nothing of how games end, see `Samples.values`
    owners = np.where(is_valued[:, None], owners, UNKNOWN)
    targets = (policy, values, owners, np.where(is_valued, scores, np.float32(np.nan)))
    tensors = (torch.from_numpy(target).to(network.device) for target in targets)
    return Examples(as_tensors(arrays, network.device), *tensors)


def _shares(samples: Sequence[Samples], minibatch: int) -> Shares:
    """Return the shares of a minibatch's positions that have a policy, and values, to learn."""
    searched = sum(np.count_nonzero(part.policy.any(1)) for part in samples)
    valued = sum(np.count_nonzero(part.values.any(1)) for part in samples)
    return searched / minibatch, valued / minibatch


def losses(outputs: Outputs, examples: Examples, settings: AlphaZeroSettings, shares: Shares) -> tuple[Tensor, Tensor]:
    """Return the loss to be lowered, and (5,) float32 what it is made of, detached; see `LOSSES`.

    `shares` are those of the whole minibatch's positions that have a policy, and values, to learn: each counts the same
    for its loss, with however many others it shares a microbatch.
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
    """Reports rounds, and keeps what is needed to resume after them."""

    def __init__(
        self, state: TrainState, folder: Path | None, report: Callable[[TrainState, Log], None] | None
    ) -> None:
        self._state, self._folder, self._report = state, folder, report
        self.writer = CheckpointWriter(folder, state.config.checkpoint_minutes)

    def finish_round(self, numbers: Log) -> None:
        """Report the newest round, and write what is due.

        The state is held before, so that a run that is stopped while it is measured loses nothing. It is written after,
        so that a resumed run has reported all that lies before it.
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
    """Return what a checkpoint holds beside tensors."""
    notes = {"positions": state.positions, "rng": state.rng.bit_generator.state}
    notes |= rounding(state.network.device, state.torch_threads)
    return Checkpoint(state.network.config, state.step, state.config.model_dump(mode="json"), notes)


def _remove_games(folder: Path, window: int) -> None:
    """Remove the games of rounds that are in the window of no checkpoint."""
    last = oldest_step(folder) - window
    for path in (folder / "games").glob("round-*.npz"):
        if int(path.stem.removeprefix("round-")) <= last:
            path.unlink()


def restore(state: TrainState, folder: Path) -> Log:
    """Take up the newest good checkpoint of a folder and the games of its window, if there is one.

    Returns:
        The numbers of its round that are still to be reported, if any.

    Raises:
        ValueError: if nothing that is there is good, naming the files and what is wrong with them.
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
