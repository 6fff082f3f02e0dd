"""Layers that networks of all games share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Max(torch.autograd.Function):
    """The maximum over dimension 1; equal ones share its gradient.

    `Tensor.amax` is the same, but its backward pass takes five times as long on a CPU.
    """

    @staticmethod
    def forward(context: Any, tokens: Tensor) -> Tensor:
        most = tokens.amax(1, keepdim=True)
        context.save_for_backward(tokens, most)
        return most.squeeze(1)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        tokens, most = context.saved_tensors
        here = (tokens == most).to(tokens.dtype)
        return here * (gradients[0] / here.sum(1))[:, None]


def pools(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and maximum over dimension 1 (on a CPU, `Tensor.mean` takes ten times as long as a sum)."""
    most: Tensor = _Max.apply(tokens) if torch.is_grad_enabled() else tokens.amax(1)  # type: ignore[no-untyped-call]
    return tokens.sum(1) / tokens.shape[1], most


def expected_counts(owner_logits: Tensor) -> Tensor:
    """Return (B, 2 * (P + 1)) mean and variance of how many targets each relative seat, and nobody, will own.

    They decide who wins: without this short way, values hardly learn to count what the owners' head foresees.

    Args:
        owner_logits: (B, T, P + 1), see `ninetka_agents.outputs.Outputs`.
    """
    owners = owner_logits.softmax(-1)
    return torch.cat([owners.sum(1), (owners * (1 - owners)).sum(1)], -1)
