"""Start and resume training: the initial network, and checkpoints of the whole state of a run.

Scheduled checkpoints, `step-<number>`, are written after fixed numbers of rollouts or rounds, so they do not depend on
the clock. A further checkpoint, `resume-<number>`, is written after `checkpoint_minutes` and when a run is stopped. It
is only used for resuming.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ninetka_agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ninetka_agents.plugins import network_of
from ninetka_env.core.options import short_repr
from ninetka_train.learning.config import TrainConfig
from ninetka_train.learning.processes import choose_device
from ninetka_train.machine import processor_name

STEP_PREFIX, RESUME_PREFIX = "step", "resume"
"""Prefixes of the names of scheduled checkpoints, and of the checkpoint that is only used for resuming."""
UNREPORTED_KEY = "unreported"
"""Key in a checkpoint's notes for the metrics of its round, if the run was stopped before it reported them."""


def initial_network(config: TrainConfig) -> Any:
    """Return the initial network of a run: new weights, or the weights of `config.start_from`.

    Raises:
        ValueError: if the network of `config.start_from` is for another game, or has another shape than
            `config.network`.
    """
    device, game = choose_device(config), config.definition.name
    torch.manual_seed(config.seed)
    if config.start_from:
        network, _, _ = load_checkpoint(config.start_from, device, game)
        if network.game != game:
            raise ValueError(f"start_from={config.start_from}: its network plays {network.game}, not {game}")
        for name, value in config.network.model_dump(exclude_unset=True).items():
            if (there := getattr(network.config, name)) != value:
                raise ValueError(f"network.{name}={value}: expected {there}, as start_from={config.start_from} has")
        return network
    return network_of(game).Network(config.network.build()).to(device)


@dataclass(frozen=True)
class _HeldState:
    """A copy of a run's state after a complete round, ready to be written."""

    network: Any
    about: Checkpoint
    tensors: dict[str, Tensor]

    def save(self, folder: Path, kind: str) -> Path:
        return save_checkpoint(folder / f"{kind}-{self.about.step:012}", self.network, self.about, self.tensors)


class CheckpointWriter:
    """Writes the checkpoints of one run: on schedule, after some minutes, and when the run is stopped."""

    def __init__(self, folder: Path | None, config: TrainConfig) -> None:
        """Start the clock.

        Args:
            folder: of the run; None writes nothing.
            config: of the run: `checkpoint_minutes` and `keep_checkpoints`.
        """
        self._folder, self._seconds, self._num_kept = folder, 60 * config.checkpoint_minutes, config.keep_checkpoints
        self._written = time.perf_counter()
        self._newest: _HeldState | None = None
        """The state after the newest complete round, unless it has been written."""

    def hold(
        self, network: Any, about: Checkpoint, tensors: Mapping[str, Tensor], numbers: Mapping[str, float]
    ) -> None:
        """Hold a copy of the state after a complete round that has not been reported yet.

        Args:
            network: the network that learns.
            about: metadata; its step is the number in the checkpoint's name.
            tensors: further state.
            numbers: the round's metrics. If this run is stopped before it reports them, the resumed run does; see
                `unreported_metrics`.
        """
        if self._folder is None:
            return
        about = replace(about, notes=about.notes | {UNREPORTED_KEY: dict(numbers)})
        copies = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        self._newest = _HeldState(deepcopy(network), about, copies)

    def write(self, scheduled: bool) -> None:
        """Write the held state if a checkpoint is due. Its round must have been reported.

        Args:
            scheduled: whether to write a scheduled checkpoint; it replaces the one for resuming.

        Raises:
            OSError: if a file cannot be written; the message names the file.
        """
        if self._folder is None or self._newest is None:
            return
        del self._newest.about.notes[UNREPORTED_KEY]
        if scheduled:
            _write_scheduled(self._folder, self._newest, self._num_kept)
            self._newest, self._written = None, time.perf_counter()
        elif time.perf_counter() - self._written >= self._seconds:
            self._write_to_resume()

    @contextmanager
    def save_on_error(self) -> Iterator[None]:
        """Return a context manager that writes the held state if its body raises any exception."""
        try:
            yield
        except BaseException as cause:
            try:
                with suppress(KeyboardInterrupt), signals_deferred():  # Ctrl-C again: the run is already being stopped
                    self._write_to_resume()
            except OSError as error:
                what = f"{error.filename}: {error.strerror}; what was learned since the last checkpoint is lost"
                if not isinstance(cause, OSError):  # an OSError already reports the full disk
                    warnings.warn(what, stacklevel=2)
            raise

    def _write_to_resume(self) -> None:
        if self._folder and self._newest:
            path = self._newest.save(self._folder, RESUME_PREFIX)
            _remove_checkpoints(old for old in self._folder.glob(f"{RESUME_PREFIX}-*.safetensors") if old != path)
            self._newest, self._written = None, time.perf_counter()


def _write_scheduled(folder: Path, state: _HeldState, num_kept: int) -> None:
    """Write a scheduled checkpoint; then remove the checkpoint for resuming and old scheduled checkpoints.

    The newest `num_kept` scheduled checkpoints are kept, or all of them for 0.
    """
    state.save(folder, STEP_PREFIX)
    old = sorted(folder.glob(f"{STEP_PREFIX}-*.safetensors"))[:-num_kept] if num_kept else []
    _remove_checkpoints([*old, *folder.glob(f"{RESUME_PREFIX}-*.safetensors")])


def _remove_checkpoints(checkpoints: Iterable[Path]) -> None:
    for path in checkpoints:
        path.unlink()
        path.with_suffix(".json").unlink(missing_ok=True)


def newest_step(folder: Path) -> int:
    """Return the step of the newest checkpoint of a run, 0 if there is none."""
    return max((_step_of(path) for path in _checkpoints(folder)), default=0)


def oldest_step(folder: Path) -> int:
    """Return the step of the oldest checkpoint of a run, 0 if there is none."""
    return min((_step_of(path) for path in _checkpoints(folder)), default=0)


def newest_checkpoint(folder: Path) -> tuple[Any, Checkpoint, dict[str, Tensor]] | None:
    """Read the newest valid checkpoint of a run's folder; return None if there is none.

    Warns about each newer checkpoint that cannot be read. A checkpoint without its JSON file, which is written last, is
    incomplete.

    Raises:
        ValueError: if there are checkpoints but none is valid; the message has the problem of each.
    """
    problems: list[str] = []
    for path in reversed(_checkpoints(folder)):
        try:
            found = load_checkpoint(path)
        except ValueError as error:
            problems.append(str(error))
            continue
        _warn_of_problems(problems, f"resuming from the one before it, {path.name}")
        return found
    if any(path.with_suffix(".json").exists() for path in _checkpoints(folder)):
        raise ValueError("; ".join(problems))
    _warn_of_problems(problems, "it was never finished: starting a new run")
    return None


def _warn_of_problems(problems: Iterable[str], instead: str) -> None:
    for problem in problems:
        warnings.warn(f"{problem}; {instead}", stacklevel=3)


def _checkpoints(folder: Path) -> list[Path]:
    """Return the `.safetensors` files of a run sorted by step; for the same step, a scheduled one comes last."""
    return sorted(
        [*folder.glob(f"{RESUME_PREFIX}-*.safetensors"), *folder.glob(f"{STEP_PREFIX}-*.safetensors")], key=_step_of
    )


def _step_of(path: Path) -> int:
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else -1


def unreported_metrics(about: Checkpoint) -> dict[str, float]:
    """Return the metrics of a checkpoint's round if they have not been reported yet, else an empty dict."""
    numbers = about.notes.get(UNREPORTED_KEY, {})
    if not isinstance(numbers, dict) or not all(isinstance(number, (int, float)) for number in numbers.values()):
        raise ValueError(f"{UNREPORTED_KEY}={short_repr(numbers)}: expected numbers by name")
    return numbers


def rounding_notes(device: torch.device, threads: int) -> dict[str, Any]:
    """Return the conditions that affect rounding of the network's arithmetic, as notes of a checkpoint."""
    on_cpu = {"threads": threads, "processor": processor_name()} if device.type == "cpu" else {}
    return {"device": device.type, "torch": torch.__version__, **on_cpu}


def warn_if_rounding_differs(notes: Mapping[str, Any], device: torch.device, threads: int) -> None:
    """Warn if a checkpoint was written under conditions that round differently."""
    changed = [
        f"{name}={short_repr(value)} (was {short_repr(notes[name])})"
        for name, value in rounding_notes(device, threads).items()
        if name in notes and notes[name] != value
    ]
    if changed:
        warnings.warn(
            f"resuming with {', '.join(changed)}: weights will differ by rounding from those of an uninterrupted run",
            stacklevel=2,
        )


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Return a context manager that defers SIGINT, SIGTERM and SIGUSR1 until its end.

    Python handles signals in the main thread only, so in other threads nothing is deferred.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in arrived:
        signal.raise_signal(number)


@contextmanager
def restore_errors(folder: Path) -> Iterator[None]:
    """Return a context manager that turns errors about a checkpoint's content into a `ValueError` with the folder."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"{folder}: cannot continue from its newest checkpoint: {short_repr(error)}") from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of an optimiser as named tensors."""
    return {
        f"optimizer.{index}.{name}": torch.as_tensor(value)
        for index, slots in optimizer.state_dict()["state"].items()
        for name, value in slots.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Tensor]) -> None:
    """Restore the state that `optimizer_tensors` returned; other tensors in `state` are ignored."""
    slots = numbered_tensors(state, "optimizer")
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
    for parameter, values in optimizer.state.items():
        for name, value in values.items():
            if value.shape not in (parameter.shape, ()):
                raise ValueError(f"the optimiser's {name} has shape {tuple(value.shape)}, not {tuple(parameter.shape)}")


def numbered_tensors(state: Mapping[str, Tensor], kind: str) -> dict[int, dict[str, Tensor]]:
    """Return the tensors named `<kind>.<number>.<name>` as `{number: {name: tensor}}`, sorted by number."""
    parts: dict[int, dict[str, Tensor]] = {}
    for key, value in state.items():
        if key.startswith(f"{kind}."):
            number, _, name = key.removeprefix(f"{kind}.").partition(".")
            parts.setdefault(int(number), {})[name] = value
    return dict(sorted(parts.items()))
