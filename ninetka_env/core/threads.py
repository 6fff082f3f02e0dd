"""Run a compiled loop on several threads, so that a thread without processor time does not delay the others.

Start reading at `run_shared`, `claim` and `ThreadTeam`.

Each thread claims the next few items from a shared counter. With OpenMP, which `numba.prange` uses, the items are
divided beforehand and all threads wait for the slowest at a barrier; on a busy machine, the loop then takes up to a
hundred times longer.
"""

from __future__ import annotations

import functools
import math
import os
import platform
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from ninetka_env.core.jit import jit

Control = npt.NDArray[np.int64]
"""((shares + 1) * COUNTER_STRIDE,) int64: counters in separate cache lines. The first is the number of items done, with
the number of the task in the same cache line; then each share has the index of the next item to claim, and a number
that its thread may use. The items are divided into shares of equal size. A thread claims from its own share first,
because its processor's cache still holds these items from the previous step, and then from the other shares."""

COUNTER_STRIDE = 16
"""Distance between two counters, in int64 elements. It is 128 bytes: a cache line of Apple's processors, or the pair of
cache lines that x86 processors fetch together."""
DONE_COUNTER = 0
TASK = 1
"""Index of the number of the task: what the threads of a team do with the items. Each team numbers its own tasks."""
PAUSES_BEFORE_SLEEP = 10_000
"""Number of times that an idle helper pauses, for about ten nanoseconds each, before it sleeps."""


def make_control(shares: int) -> Control:
    """Return counters for `shares` shares, all zero."""
    return np.zeros((shares + 1) * COUNTER_STRIDE, np.int64)


def atomic_load(control: Control, counter: int) -> int:
    """Read a counter atomically."""
    return int(control[counter])


def atomic_add(control: Control, counter: int, amount: int) -> int:
    """Add to a counter atomically and return its previous value."""
    before = int(control[counter])
    control[counter] += amount
    return before


def atomic_store(control: Control, counter: int, value: int) -> None:
    """Set a counter atomically."""
    control[counter] = value


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic
def _atomic_load(typing_context: Any, control: Any, counter: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(control, types.int64), lower


@intrinsic
def _atomic_add(typing_context: Any, control: Any, counter: Any, amount: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(control, types.int64, types.int64), lower


@intrinsic
def _atomic_swap(typing_context: Any, control: Any, counter: Any, value: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return builder.atomic_rmw("xchg", pointer, arguments[2], "seq_cst")

    return types.int64(control, types.int64, types.int64), lower


def pause() -> None:
    """Wait a few nanoseconds and leave the core's execution units to its other hardware thread; see `_add_pause`."""


def _add_pause(builder: Any, machine: str) -> None:
    """Emit an instruction that waits about ten nanoseconds on a processor of type `machine`, if the type is known."""
    if machine in ("x86_64", "amd64"):
        nothing = ir.FunctionType(ir.VoidType(), [])
        builder.call(get_or_insert_function(builder.module, nothing, "llvm.x86.sse2.pause"), [])
    elif machine in ("aarch64", "arm64"):  # a barrier, because the instruction `yield` takes no time there
        number = ir.IntType(32)
        barrier = ir.FunctionType(ir.VoidType(), [number])
        builder.call(get_or_insert_function(builder.module, barrier, "llvm.aarch64.isb"), [number(15)])


@intrinsic
def _pause_instruction(typing_context: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _add_pause(builder, platform.machine().lower())
        return context.get_dummy_value()

    return types.void(), lower


@overload(pause)
def _pause() -> Any:
    def call() -> Any:
        _pause_instruction()

    return call


@overload(atomic_load)
def _look(control: Any, counter: Any) -> Any:
    def call(control: Any, counter: Any) -> Any:
        return _atomic_load(control, counter)

    return call


@overload(atomic_add)
def _add(control: Any, counter: Any, amount: Any) -> Any:
    def call(control: Any, counter: Any, amount: Any) -> Any:
        return _atomic_add(control, counter, amount)

    return call


@overload(atomic_store)
def _put(control: Any, counter: Any, value: Any) -> Any:
    def call(control: Any, counter: Any, value: Any) -> Any:
        _atomic_swap(control, counter, value)

    return call


@jit
def num_shares(control: Control) -> int:
    """Return the number of shares."""
    return len(control) // COUNTER_STRIDE - 1


@jit
def result_place(share: int) -> int:
    """Return the index in `Control` of the number that the thread of a share may use."""
    return (share + 1) * COUNTER_STRIDE + 1


@jit
def share_start(share: int, shares: int, count: int) -> int:
    """Return the index of the first item of a share, if `count` items are divided into `shares` shares.

    `share == shares` returns `count`, so share s has the items `share_start(s)` to `share_start(s + 1)` - 1.
    """
    return count * share // shares


@jit
def open_shares(control: Control, count: int, task: int) -> None:
    """Make `count` items claimable for a task; no thread may still work on earlier items.

    A thread must read the number of the task after it has claimed an item: before, it can still be an earlier task.
    """
    shares = num_shares(control)
    atomic_store(control, DONE_COUNTER, 0)
    atomic_store(control, TASK, task)
    for share in range(shares):
        atomic_store(control, (share + 1) * COUNTER_STRIDE, share_start(share, shares, count))


@jit
def close_shares(control: Control, count: int) -> None:
    """Mark all `count` items as claimed."""
    for share in range(num_shares(control)):
        atomic_store(control, (share + 1) * COUNTER_STRIDE, count)


@jit
def has_unclaimed(control: Control, share: int, count: int) -> bool:
    """Return whether a share of the `count` items has an item that can be claimed."""
    return atomic_load(control, (share + 1) * COUNTER_STRIDE) < share_start(share + 1, num_shares(control), count)


@jit
def claim(control: Control, own: int, count: int, chunk: int) -> tuple[int, int]:
    """Claim up to `chunk` of `count` items, from share `own` first.

    Returns:
        (first, stop), the range of the claimed items; `first == stop` if no item remains.
    """
    shares = num_shares(control)
    for offset in range(shares):
        share = (own + offset) % shares
        stop = share_start(share + 1, shares, count)
        if has_unclaimed(control, share, count):
            first = atomic_add(control, (share + 1) * COUNTER_STRIDE, chunk)
            if first < stop:
                return first, min(first + chunk, stop)
    return 0, 0


# The default number of threads is the number of cores in the affinity mask, limited by the CPU quota of a container.


def available_cores() -> int:
    """Return the number of cores that this process may use, at least 1; a quota of 1.5 cores counts as 2."""
    return max(1, math.ceil(min(_affinity_cores(), _quota(Path("/")))))


def _affinity_cores() -> int:
    """Return the number of cores in the affinity mask of this process, ignoring any CPU quota."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _quota(root: Path) -> float:
    """Return the CPU quota of this process on Linux in cores, infinity without a limit.

    The quota is the lowest limit of all control groups from the process's own up to the root. Control groups of version
    2 store time and period in `cpu.max` (https://docs.kernel.org/admin-guide/cgroup-v2.html), version 1 in two files.

    Args:
        root: root of the file system; tests use another one.
    """
    limits = [math.inf]
    for folder in _control_groups(root):
        with suppress(OSError, ValueError, ZeroDivisionError):
            time, period = (folder / "cpu.max").read_text("ascii").split()
            limits.append(math.inf if time == "max" else float(time) / float(period))
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, length = (float((folder / f"cpu.cfs_{what}_us").read_text("ascii")) for what in ("quota", "period"))
            limits.append(math.inf if quota < 0 else quota / length)
    return min(limits)


def _control_groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups that limit this process's CPU time, each followed by its parents."""
    mounted, lines = root / "sys/fs/cgroup", ["0::/"]
    with suppress(OSError):
        lines += (root / "proc/self/cgroup").read_text("utf-8", "surrogateescape").splitlines()
    for line in (line for line in lines if line.count(":") >= 2):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _with_parents(mounted, path)
        elif "cpu" in controllers.split(","):
            for name in {controllers, "cpu"}:  # the folder's name may have another order; "cpu" is a link to it
                yield from _with_parents(mounted / name, path)


def _with_parents(top: Path, path: str) -> Iterator[Path]:
    """Yield a folder below `top`, then its parents up to `top`."""
    folder = top / path.strip("/")
    yield folder
    yield from (parent for parent in folder.parents if parent.is_relative_to(top))


def default_num_threads() -> int:
    """Return the default number of threads: `NUMBA_NUM_THREADS` if it is set, else one per core."""
    known = int(numba.config.NUMBA_NUM_THREADS)
    return known if "NUMBA_NUM_THREADS" in os.environ else min(known, available_cores())


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(default_num_threads(), "ninetka")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process does not have the threads of its parent


def run_shared(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
    """Run `kernel(control, *arguments)` on up to `threads` threads at once and wait until all have returned.

    All threads get the same `control`, with one share and all counters 0.
    """
    control = make_control(1)
    extra = 0 if numba.config.DISABLE_JIT else threads - 1  # plain Python has no atomic counters
    helpers = [_pool().submit(kernel, control, *arguments) for _ in range(extra)]
    kernel(control, *arguments)
    for helper in helpers:
        if not helper.cancel():  # a helper that has not started yet is not needed, because all items are claimed
            helper.result()


class ThreadTeam:
    """Helper threads for one kernel; an idle helper polls the counters for a moment before it sleeps.

    It polls first, because waking a sleeping thread takes longer than stepping hundreds of games.
    """

    def __init__(self, helpers: int, watch: Callable[..., Any], control: Control, *arguments: Any) -> None:
        """Start a thread for each share from 1 to `helpers`; it calls `watch(control, share, *arguments)` repeatedly.

        The thread sleeps after each call until `wake`. `watch` is compiled here, by a call, because a process that ends
        while a helper thread compiles would crash.
        """
        watch(control, 0, *arguments)
        self.pid = os.getpid()
        self._closed = False
        self._semaphores = [threading.Semaphore(0) for _ in range(helpers)]
        self._asleep = [False] * helpers
        for place in range(helpers):
            thread = threading.Thread(
                target=self._serve, args=(place, watch, control, place + 1, *arguments), daemon=True
            )
            thread.start()

    def _serve(self, place: int, watch: Callable[..., Any], *arguments: Any) -> None:
        while not self._closed:
            watch(*arguments)
            self._asleep[place] = True
            self._semaphores[place].acquire()

    def wake(self) -> None:
        """Wake sleeping helpers. A helper that is about to sleep may miss the call; other threads then do its work."""
        for place, asleep in enumerate(self._asleep):
            if asleep:
                self._asleep[place] = False
                self._semaphores[place].release()

    def close(self) -> None:
        """Make the threads end after their current call of `watch`, without waiting for them."""
        self._closed = True
        for semaphore in self._semaphores:
            semaphore.release()
