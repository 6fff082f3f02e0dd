"""Losses for any game: compare `ninetka_agents.outputs.Outputs` with targets by relative seat.

`alphazero.py` and `ppo.py` add up the losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ninetka_agents.outputs import MASKED, Outputs, forward_states
from ninetka_env.core.verbs import StateArray

Metrics = dict[str, float]
"""Metrics by name."""
UNKNOWN_OWNER = -100
"""Class index of an unknown owner, which has no loss."""
SCORE_LOSS_BETA = 8.0
"""Error in points below which the loss of a score is quadratic, and above which it is linear (smooth L1's beta)."""

MAX_CHECKED_POSITIONS = 64
"""Maximum number of positions on which `check_finite` evaluates a network."""


def check_finite(network: Any, games: StateArray, bf16: bool) -> None:
    """Raise `ValueError` if a network has diverged.

    Outputs are checked as well, because they can overflow while all weights are finite.

    Args:
        network: in evaluation mode.
        games: (N,) states of unfinished games; the first `MAX_CHECKED_POSITIONS` are evaluated.
        bf16: whether self-play multiplies in bfloat16.
    """
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise ValueError("the network's weights are not finite any more: lower learning_rate in a new run")
    with torch.inference_mode(), torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
        outputs = forward_states(network, games[:MAX_CHECKED_POSITIONS])
    check_outputs(outputs.logits, outputs.values)


def check_outputs(*outputs: Tensor) -> None:
    """Raise `ValueError` if outputs of a network are not finite."""
    if not all(bool(output.isfinite().all()) for output in outputs):
        raise ValueError("the network's outputs are not finite any more: lower learning_rate in a new run")


def losses_by_name(names: Sequence[str], numbers: Tensor, outputs: Outputs) -> Metrics:
    """Return a dictionary of metrics. Omit `score_loss` if the network predicts no score.

    Args:
        names: names of the K metrics.
        numbers: (K,) their values.
        outputs: outputs of the network.
    """
    all_losses = dict(zip(names, numbers.tolist(), strict=True))
    return {name: number for name, number in all_losses.items() if name != "score_loss" or outputs.score is not None}


def policy_losses(logits: Tensor, policy: Tensor) -> Tensor:
    """Return the policy losses, (N,) float32: the cross-entropy with searched policies; 0 where there is no target.

    Where the targets are the winning moves, each with target 1, the loss is -log of the sum of their probabilities. It
    teaches the network to prefer winning moves to losing moves, but no winning move to another.

    Args:
        logits: (N, A) float32, masked.
        policy: (N, A) float32; see `ninetka_train.learning.samples.Samples`.
    """
    log_policy = logits.log_softmax(-1)
    searched = -(policy * log_policy).sum(-1)
    winning = -log_policy.masked_fill(policy == 0, MASKED).logsumexp(-1)
    return torch.where(policy.sum(-1) > 1.5, winning, searched)


def value_losses(outputs: Outputs, values: Tensor) -> Tensor:
    """Return (N,) float32: the cross-entropy with (N, P + 1) shares of the outcomes; 0 where there is no target."""
    return -(values * outputs.value_logits.log_softmax(-1).clamp(min=MASKED / 2)).sum(-1)


def owner_losses(outputs: Outputs, owners: Tensor) -> Tensor:
    """Return (N,) float32: the mean cross-entropy of each position's final owners; 0 where none is known.

    Targets beyond the board of a variant, which the network masks, are ignored as well.

    Args:
        outputs: the network's outputs for N positions.
        owners: (N, T) int64 relative seats, P for no owner, or `UNKNOWN_OWNER`.
    """
    beyond = outputs.owner_logits[..., 0] <= MASKED / 2
    classes = owners.masked_fill(beyond, UNKNOWN_OWNER)
    losses = functional.cross_entropy(outputs.owner_logits.mT, classes, reduction="none", ignore_index=UNKNOWN_OWNER)
    return losses.sum(-1) / (classes != UNKNOWN_OWNER).sum(-1).clamp(min=1)


def score_losses(outputs: Outputs, scores: Tensor) -> Tensor:
    """Return (N,) float32: the smooth L1 losses of final scores, in points; 0 where a score is nan.

    All losses are 0 if the network predicts no score.
    """
    if outputs.score is None:
        return torch.zeros_like(scores)
    losses = functional.smooth_l1_loss(outputs.score, scores.nan_to_num(), reduction="none", beta=SCORE_LOSS_BETA)
    return losses * ~scores.isnan()
