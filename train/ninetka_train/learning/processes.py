"""What a run learns on: processes, their devices, and the threads that torch computes with.

Usually there is one process; torchrun starts several that learn together. All hold the same state. Each plays its share
of a round's tasks and learns from its share of each minibatch's pieces; torch's `DistributedDataParallel` adds up their
gradients, so that all take the steps that one process would take. The first one alone measures, writes and reports.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from ninetka_agents.net_agent import best_device, default_threads, has_bf16
from ninetka_env.core.threads import cores
from ninetka_train.learning.config import TrainConfig

T = TypeVar("T")

PATIENCE = datetime.timedelta(days=7)
"""How long a process waits for the others: the first one measures meanwhile. Who waits for a dead one is ended by
torchrun."""

_channel: Any = None
"""By which samples go round: it must not be that of the gradients, which are on their way at the same time."""


def launched() -> bool:
    """Return whether torchrun has started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


@contextmanager
def joined(device: torch.device) -> Iterator[None]:
    """Learn together with the other processes that torchrun has started, if it has; `device` is this one's.

    Raises:
        ConnectionError: if another one has ended meanwhile.
    """
    global _channel
    if not launched():
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    _channel = distributed.new_group(backend="gloo", timeout=PATIENCE)
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "by peer" in str(error):
            raise ConnectionError("another of the processes that learn together has ended") from None
        raise
    distributed.destroy_process_group()  # not after errors: others might wait for this one, and it for them


def count() -> int:
    """Return how many processes learn together."""
    return distributed.get_world_size() if launched() and distributed.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, 0 for the first one."""
    return int(os.environ["RANK"]) if launched() else 0


def own_threads() -> int:
    """Return how many threads this process may use where nobody tells: its share of the cores; 0 for all."""
    return max(1, cores() // int(os.environ["LOCAL_WORLD_SIZE"])) if count() > 1 else 0


def check_shareable(config: TrainConfig) -> None:
    """Raise `ValueError` if so many processes cannot learn together what a configuration says."""
    settings, processes = config.alphazero, count()
    if processes == 1:
        return
    if config.algorithm != "alphazero":
        raise ValueError(f"algorithm={config.algorithm}: only alphazero learns in several processes")
    pieces = -(-settings.minibatch // settings.microbatch)
    if processes > pieces:
        raise ValueError(
            f"{processes} processes, but a minibatch has only {pieces} microbatches to share out "
            f"(alphazero.minibatch={settings.minibatch}, alphazero.microbatch={settings.microbatch})"
        )


# Playing


def share(items: Sequence[T]) -> Sequence[T]:
    """Return this process's share of items: those of all processes, one after the other, are all items in order."""
    return items[len(items) * rank() // count() : len(items) * (rank() + 1) // count()]


def of_all(own: list[T]) -> list[T]:
    """Return the items of all processes, in their order."""
    if count() == 1:
        return own
    everybody: list[Any] = [None] * count()
    distributed.all_gather_object(everybody, own, group=_channel)
    return [item for theirs in everybody for item in theirs]


def by_first(make: Callable[[], T]) -> T:
    """Return, in all processes, what the first one makes."""
    if count() == 1:
        return make()
    box: list[Any] = [make() if rank() == 0 else None]
    distributed.broadcast_object_list(box, 0, group=_channel)
    made: T = box[0]
    return made


# Learning


def learner_of(network: Any) -> Any:
    """Return what to call for outputs to learn from: the network, so that gradients are added up over all processes."""
    return DistributedDataParallel(network) if count() > 1 else network


def each_piece(learner: Any, pieces: Sequence[T]) -> Iterator[T]:
    """Yield this process's pieces of a minibatch; with the last one, gradients are added up over all processes."""
    with learner.no_sync() if count() > 1 else contextlib.nullcontext():
        yield from pieces[:-1]
    yield from pieces[-1:]


def backward(loss: Tensor) -> None:
    """Add the gradients of a piece's share in the minibatch's loss: torch takes the processes' mean, this their sum."""
    torch.autograd.backward(loss * count() if count() > 1 else loss)


def total(sums: Tensor) -> Tensor:
    """Return the sums over all processes."""
    if count() > 1:
        distributed.all_reduce(sums)
    return sums


# Devices


def choose_device(config: TrainConfig) -> torch.device:
    """Return the device that a configuration asks for; of several processes each has its own.

    Raises:
        ValueError: if there is no such device.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda: torch finds no GPU here; choose cpu or auto")
    return own_device(best_device() if config.device == "auto" else torch.device(config.device))


def uses_bf16(config: TrainConfig, device: torch.device) -> bool:
    """Return whether to multiply in bfloat16."""
    if config.bf16 != "auto":
        return config.bf16
    return has_bf16(device)


def own_device(device: torch.device) -> torch.device:
    """Return which of the machine's devices is this process's.

    Raises:
        ValueError: if there are more processes than GPUs.
    """
    if not launched() or device.type != "cuda":
        return device
    number, known = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= known:
        raise ValueError(f"process {number + 1} of this machine has no GPU of its own: there are {known}")
    return torch.device("cuda", number)


# Threads

# torch keeps its number of threads for each thread that calls it, but a thread's first call takes over the number that
# was set last, by whichever thread. A task that changed it would therefore change it for threads that start meanwhile.


def set_torch_threads(count: int) -> None:
    """Make torch compute with `count` threads when it is called from this thread.

    Threads that have called torch before keep their number.
    """
    if torch.get_num_threads() != count:  # asking is a first call, too, so that no later one replaces our number
        torch.set_num_threads(count)


def use_threads(count: int) -> None:
    """Make torch compute with `count` threads when it is called from this thread; 0 for `default_threads`."""
    set_torch_threads(count or default_threads())


@contextmanager
def kept_torch_threads() -> Iterator[None]:
    """Restore in the end the number of threads that torch computes with when it is called from this thread."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        set_torch_threads(before)


@functools.cache
def single_threaded_pool(workers: int) -> ThreadPoolExecutor:
    """Return the process's pool of `workers` threads from each of which torch computes with one thread.

    Results of a network are rounded differently for different numbers of threads. All workers are started here, and
    the number that other threads begin with is restored, so tasks change nothing outside their own thread.
    """
    before, started = torch.get_num_threads(), threading.Barrier(workers + 1)

    def start() -> None:
        set_torch_threads(1)
        started.wait()

    pool = ThreadPoolExecutor(workers, "ninetka-task", initializer=start)
    for _ in range(workers):  # each starts a thread, since none is idle before all are started
        pool.submit(int)
    started.wait()
    torch.set_num_threads(before)
    return pool


def on_one_torch_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function from a thread from which torch computes with one thread: this one, if it is such a thread."""
    if torch.get_num_threads() == 1:
        return function(*arguments)
    return single_threaded_pool(1).submit(function, *arguments).result()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=single_threaded_pool.cache_clear)  # a child process has none of the threads
