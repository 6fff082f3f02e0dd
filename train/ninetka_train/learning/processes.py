"""Several processes that learn together, each on a device of its own, as torchrun starts them; usually there is one.

All hold the same state. Each plays its share of a round's tasks and learns from its share of each minibatch's pieces;
torch's `DistributedDataParallel` adds up their gradients, so that all take the steps that one process would take. The
first one alone measures, writes and reports.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from ninetka_env.core.cores import cores
from ninetka_train.learning.config import TrainConfig

T = TypeVar("T")

PATIENCE = datetime.timedelta(days=7)
"""How long a process waits for the others: the first one measures meanwhile. Who waits for a dead one is ended by
torchrun."""

_channel: Any = None
"""By which samples go round: it must not be that of the gradients, which are on their way at the same time."""


def launched() -> bool:
    """Tell whether torchrun has started this process."""
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
