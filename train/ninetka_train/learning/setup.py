"""What every way of learning begins with: the first network, its device, and the threads that torch computes with."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from ninetka_agents.checkpoint import load_checkpoint
from ninetka_agents.net_agent import best_device, default_threads, has_bf16
from ninetka_agents.parts import network_of
from ninetka_train.learning import processes
from ninetka_train.learning.config import TrainConfig

T = TypeVar("T")

Log = dict[str, float]
"""Plain numbers about a step of learning, by name."""


def first_network(config: TrainConfig) -> Any:
    """Return the network that a run begins with: fresh weights, or those to start from.

    Raises:
        ValueError: if those are of another game, or of another shape than the configuration names.
    """
    device, game = choose_device(config), config.definition.name
    torch.manual_seed(config.seed)
    if config.start_from:
        network = load_checkpoint(config.start_from, device, game)[0]
        if network.game != game:
            raise ValueError(f"start_from={config.start_from}: its network plays {network.game}, not {game}")
        for name, value in config.network.model_dump(exclude_unset=True).items():
            if (there := getattr(network.config, name)) != value:
                raise ValueError(f"network.{name}={value}: expected {there}, as start_from={config.start_from} has")
        return network
    return network_of(game).Network(config.network.build()).to(device)


def choose_device(config: TrainConfig) -> torch.device:
    """Return the device that a configuration asks for; of several processes each has its own.

    Raises:
        ValueError: if there is no such device.
    """
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device=cuda: torch finds no GPU here; choose cpu or auto")
    return processes.own_device(best_device() if config.device == "auto" else torch.device(config.device))


def uses_bf16(config: TrainConfig, device: torch.device) -> bool:
    """Tell whether to multiply in bfloat16."""
    if config.bf16 != "auto":
        return config.bf16
    return has_bf16(device)


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
