"""The processes, devices and torch threads of a run.

`alphazero.py` divides its work with these functions. Workers on a Ray cluster are in `ninetka_train.cluster.workers`.

By default there is one process; torchrun starts several that learn together. All processes hold the same state. Each
plays its share of a round's tasks and learns from its share of each minibatch's microbatches ("pieces" here). Gradients
are summed over the processes, so all processes take the steps that one process would take. Only the first process
plays evaluation games, writes files and reports.
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
from ninetka_env.core.threads import available_cores
from ninetka_train.learning.config import TrainConfig

T = TypeVar("T")

PROCESS_TIMEOUT = datetime.timedelta(days=7)
"""How long a process waits for the others, for example while the first process plays evaluation games. If a process
dies, torchrun ends the others."""

_object_group: Any = None
"""Process group for samples and other objects. The default group may exchange gradients at the same time."""


def started_by_torchrun() -> bool:
    """Return whether torchrun has started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Return a context manager that joins the process group if torchrun started this process.

    `device` is the device of this process.

    Raises:
        ConnectionError: if another process ended.
    """
    global _object_group
    if not started_by_torchrun():
        yield
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PROCESS_TIMEOUT)
    _object_group = distributed.new_group(backend="gloo", timeout=PROCESS_TIMEOUT)
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, distributed.DistError) or "by peer" in str(error):
            raise ConnectionError("another of the training processes has ended") from None
        raise
    distributed.destroy_process_group()  # not after errors, because the processes might wait for each other forever


def num_processes() -> int:
    """Return how many processes learn together."""
    return distributed.get_world_size() if started_by_torchrun() and distributed.is_initialized() else 1


def rank() -> int:
    """Return the number of this process, 0 for the first one."""
    return int(os.environ["RANK"]) if started_by_torchrun() else 0


def threads_per_process() -> int:
    """Return the default number of threads of this process: its share of the cores; 0 (all) for a single process."""
    return max(1, available_cores() // int(os.environ["LOCAL_WORLD_SIZE"])) if num_processes() > 1 else 0


def check_distributable(config: TrainConfig) -> None:
    """Raise `ValueError` if this number of processes cannot run a configuration."""
    settings, processes = config.alphazero, num_processes()
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


def own_share(items: Sequence[T]) -> Sequence[T]:
    """Return this process's share of items: one of nearly equal, consecutive parts, in the order of the processes."""
    return items[len(items) * rank() // num_processes() : len(items) * (rank() + 1) // num_processes()]


def gather(own: list[T]) -> list[T]:
    """Return the items of all processes, in the order of the processes."""
    if num_processes() == 1:
        return own
    gathered: list[Any] = [None] * num_processes()
    distributed.all_gather_object(gathered, own, group=_object_group)
    return [item for theirs in gathered for item in theirs]


def broadcast_from_first(make: Callable[[], T]) -> T:
    """Call `make` in the first process and return its result in all processes."""
    if num_processes() == 1:
        return make()
    box: list[Any] = [make() if rank() == 0 else None]
    distributed.broadcast_object_list(box, 0, group=_object_group)
    made: T = box[0]
    return made


# Learning


def distributed_network(network: Any) -> Any:
    """Return the network to call for training; with several processes, it sums gradients over them."""
    return DistributedDataParallel(network) if num_processes() > 1 else network


def each_microbatch(learner: Any, pieces: Sequence[T]) -> Iterator[T]:
    """Yield the microbatches `pieces` of this process. At the last one, gradients are summed over all processes.

    `learner` is the result of `distributed_network`.
    """
    with learner.no_sync() if num_processes() > 1 else contextlib.nullcontext():
        yield from pieces[:-1]
    yield from pieces[-1:]


def backward(loss: Tensor) -> None:
    """Add the gradients of a loss, multiplied by the number of processes, because torch averages over processes."""
    torch.autograd.backward(loss * num_processes() if num_processes() > 1 else loss)


def sum_over_processes(sums: Tensor) -> Tensor:
    """Sum a tensor over all processes, in place; return it."""
    if num_processes() > 1:
        distributed.all_reduce(sums)
    return sums


# Devices


def choose_device(config: TrainConfig) -> torch.device:
    """Return the device of a configuration; each of several processes gets its own GPU.

    Raises:
        ValueError: if there is no such device.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda: torch finds no GPU here; choose cpu or auto")
    return device_of_process(best_device() if config.device == "auto" else torch.device(config.device))


def uses_bf16(config: TrainConfig, device: torch.device) -> bool:
    """Return whether a run multiplies in bfloat16 on a device."""
    if config.bf16 != "auto":
        return config.bf16
    return has_bf16(device)


def device_of_process(device: torch.device) -> torch.device:
    """Return the device of this process: its own GPU if torchrun started several processes.

    Raises:
        ValueError: if there are more processes than GPUs.
    """
    if not started_by_torchrun() or device.type != "cuda":
        return device
    number, known = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if number >= known:
        raise ValueError(f"process {number + 1} of this machine has no GPU: expected at most {known} processes")
    return torch.device("cuda", number)


# Threads

# Torch stores its number of threads per calling thread. A thread's first call takes the number that any thread has set
# last. A task that changed the number would therefore change it for threads that start later.


def set_torch_threads(count: int) -> None:
    """Set the number of threads that torch uses when it is called from this thread.

    Other threads that have called torch before keep their number.
    """
    if torch.get_num_threads() != count:  # the query is a first call, so a later call cannot replace the number
        torch.set_num_threads(count)


def use_threads(count: int) -> None:
    """Set the number of threads that torch uses when called from this thread; 0 for `default_threads`."""
    set_torch_threads(count or default_threads())


@contextmanager
def restoring_torch_threads() -> Iterator[None]:
    """Return a context manager that restores the number of torch threads of this thread at its end."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        set_torch_threads(before)


@functools.cache
def single_threaded_pool(workers: int) -> ThreadPoolExecutor:
    """Return a pool of `workers` threads. In each of them, torch uses one thread. The pool is created once per process.

    Rounding of a network's results depends on the number of torch threads. All workers are started here; then the
    previous number of torch threads is restored, so that threads started later do not take over the workers' number.
    """
    before, started = torch.get_num_threads(), threading.Barrier(workers + 1)

    def start() -> None:
        set_torch_threads(1)
        started.wait()

    pool = ThreadPoolExecutor(workers, "ninetka-task", initializer=start)
    for _ in range(workers):  # each call starts a thread, because none is idle before all have started
        pool.submit(int)
    started.wait()
    torch.set_num_threads(before)
    return pool


def on_one_torch_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a thread in which torch uses one thread, and return the result.

    This is the calling thread if torch uses one thread there, otherwise a thread of a pool.
    """
    if torch.get_num_threads() == 1:
        return function(*arguments)
    return single_threaded_pool(1).submit(function, *arguments).result()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=single_threaded_pool.cache_clear)  # a forked child has none of the threads
