"""What every way of learning begins with: the first network, and the device that it is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ninetka_agents.checkpoint import load_checkpoint
from ninetka_agents.net_agent import best_device, has_bf16
from ninetka_agents.parts import network_of
from ninetka_train.learning import processes
from ninetka_train.learning.config import TrainConfig

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


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch, called from this thread of Python's, work on one thread alone, so that it always rounds alike."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
