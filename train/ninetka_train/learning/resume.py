"""What training keeps on disk to go on from: checkpoints of everything that a run carries, the newest ones only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ninetka_agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ninetka_env.core.options import shortened

KEPT = 2
"""Checkpoints that stay: the newest, and one more in case it gets damaged."""


def keep_checkpoint(folder: Path, network: Any, about: Checkpoint, state: Mapping[str, Tensor]) -> Path:
    """Write `step-<about.step>` into a run's folder and remove all but the newest checkpoints there."""
    path = save_checkpoint(folder / f"step-{about.step:012}", network, about, state)
    for old in sorted(folder.glob("step-*.safetensors"))[:-KEPT]:
        old.unlink()
        old.with_suffix(".json").unlink(missing_ok=True)
    return path


def newest_checkpoint(folder: Path) -> tuple[Any, Checkpoint, dict[str, Tensor]] | None:
    """Read the newest good checkpoint of a run's folder; None if there is none at all.

    Raises:
        ValueError: if there are checkpoints but none is good, with what is wrong with each.
    """
    problems = []
    for path in sorted(folder.glob("step-*.safetensors"), reverse=True):
        try:
            return load_checkpoint(path)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))
    return None


@contextmanager
def taking_up(folder: Path) -> Iterator[None]:
    """Say in a `ValueError` that the newest checkpoint of a folder does not hold what its run has to go on with."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"{folder}: cannot go on from its newest checkpoint: {shortened(error)}") from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimiser's state as named tensors."""
    return {
        f"optimizer.{index}.{name}": torch.as_tensor(value)
        for index, slots in optimizer.state_dict()["state"].items()
        for name, value in slots.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` returned; other tensors in `state` are left alone."""
    slots = numbered_parts(state, "optimizer")
    optimizer.load_state_dict({"state": slots, "param_groups": optimizer.state_dict()["param_groups"]})
    for parameter, values in optimizer.state.items():
        for name, value in values.items():
            if value.shape not in (parameter.shape, ()):
                raise ValueError(f"the optimiser's {name} has shape {tuple(value.shape)}, not {tuple(parameter.shape)}")


def numbered_parts(state: Mapping[str, Tensor], kind: str) -> dict[int, dict[str, Tensor]]:
    """Return the tensors that are called `kind.<number>.<name>`, by number and name, in order of the numbers."""
    parts: dict[int, dict[str, Tensor]] = {}
    for key, value in state.items():
        if key.startswith(f"{kind}."):
            number, _, name = key.removeprefix(f"{kind}.").partition(".")
            parts.setdefault(int(number), {})[name] = value
    return dict(sorted(parts.items()))
