"""Losses for any game: `ninetka_agents.outputs.Outputs` against targets by relative seat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ninetka_agents.outputs import MASKED, Outputs
from ninetka_env.core.verbs import Records

Log = dict[str, float]
"""Metrics by name."""
UNKNOWN = -100
"""Class of an unknown owner; its loss is ignored."""
CLOSE = 8.0
"""Error in points below which the loss of a score is quadratic, and above which it is linear (smooth L1's beta)."""

CHECKED = 64
"""Maximum number of positions on which `check_finite` evaluates a network."""


def check_finite(network: Any, games: Records, bf16: bool) -> None:
    """Raise `ValueError` if a network has diverged.

    Outputs are checked as well, because they can overflow while all weights are finite.

    Args:
        network: in evaluation mode.
        games: (N,) states of unfinished games; the first `CHECKED` are evaluated.
        bf16: whether self-play multiplies in bfloat16.
    """
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise ValueError("the network's weights are not finite any more: lower learning_rate in a new run")
    with torch.inference_mode(), torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
        outputs = network.judge(games[:CHECKED])
    check_outputs(outputs.logits, outputs.values)


def check_outputs(*outputs: Tensor) -> None:
    """Raise `ValueError` if outputs of a network are not finite."""
    if not all(bool(output.isfinite().all()) for output in outputs):
        raise ValueError("the network's outputs are not finite any more: lower learning_rate in a new run")


def named(names: Sequence[str], numbers: Tensor, outputs: Outputs) -> Log:
    """Return numbers by name, without the score's loss if the network predicts no score."""
    told = dict(zip(names, numbers.tolist(), strict=True))
    return {name: number for name, number in told.items() if name != "score_loss" or outputs.score is not None}


def policy_losses(logits: Tensor, policy: Tensor) -> Tensor:
    """Return the policy losses, (N,) float32: the cross-entropy with searched policies; 0 where there is no target.

    Where all winning moves are known (each has target 1), the loss is -log of the sum of their probabilities. The
    network learns to distinguish winning moves from the others, not which winning move a search preferred.

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
        owners: (N, T) int64 relative seats, P for no owner, or `UNKNOWN`.
    """
    beyond = outputs.owner_logits[..., 0] <= MASKED / 2
    classes = owners.masked_fill(beyond, UNKNOWN)
    losses = functional.cross_entropy(outputs.owner_logits.mT, classes, reduction="none", ignore_index=UNKNOWN)
    return losses.sum(-1) / (classes != UNKNOWN).sum(-1).clamp(min=1)


def score_losses(outputs: Outputs, scores: Tensor) -> Tensor:
    """Return (N,) float32: the smooth L1 losses of final scores, in points; 0 where a score is nan.

    All losses are 0 if the network predicts no score.
    """
    if outputs.score is None:
        return torch.zeros_like(scores)
    losses = functional.smooth_l1_loss(outputs.score, scores.nan_to_num(), reduction="none", beta=CLOSE)
    return losses * ~scores.isnan()
