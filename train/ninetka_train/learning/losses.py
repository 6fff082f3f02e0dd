"""What networks of any game learn, as losses: of `ninetka_agents.outputs.Outputs` against targets by relative seat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ninetka_agents.outputs import MASKED, Outputs
from ninetka_env.core.verbs import Records

Log = dict[str, float]
"""Plain numbers about a step of learning, by name."""
UNKNOWN = -100
"""Class of an owner that is not known."""
CLOSE = 8.0
"""Points by which a score is told wrong up to where its loss grows with the square, from where on in a line."""

CHECKED = 64
"""Positions that show whether a network has diverged."""


def check_finite(network: Any, games: Records, bf16: bool) -> None:
    """Raise `ValueError` if a network has diverged, so that it could neither play nor be kept.

    Its weights may be finite while what it computes with them is not.

    Args:
        network: in evaluation mode.
        games: (N,) positions of its game that are not over; the first `CHECKED` are evaluated.
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
    """Return numbers by name, without the score's loss for a network that tells no score."""
    told = dict(zip(names, numbers.tolist(), strict=True))
    return {name: number for name, number in told.items() if name != "score_loss" or outputs.score is not None}


def policy_losses(logits: Tensor, policy: Tensor) -> Tensor:
    """Return (N,) float32: the cross-entropy of searched policies; 0 where there is none.

    Where all winning moves are known it is that of winning, -log of their probabilities' sum: the network need not
    learn which of them a search happened to like, only to tell them from the others.

    Args:
        logits: (N, A) float32, masked.
        policy: (N, A) float32; see `ninetka_train.learning.samples.Samples`.
    """
    log_policy = logits.log_softmax(-1)
    searched = -(policy * log_policy).sum(-1)
    winning = -log_policy.masked_fill(policy == 0, MASKED).logsumexp(-1)
    return torch.where(policy.sum(-1) > 1.5, winning, searched)


def value_losses(outputs: Outputs, values: Tensor) -> Tensor:
    """Return (N,) float32: the cross-entropy of (N, P + 1) shares of the outcomes; 0 where there are none."""
    return -(values * outputs.value_logits.log_softmax(-1).clamp(min=MASKED / 2)).sum(-1)


def owner_losses(outputs: Outputs, owners: Tensor) -> Tensor:
    """Return (N,) float32: the mean cross-entropy of each position's final owners; 0 where none is known.

    Left out are also targets that nobody can own, as the network says: what is beyond the board of a variant.

    Args:
        outputs: of N positions.
        owners: (N, T) int64 relative seats, P for nobody, `UNKNOWN`.
    """
    beyond = outputs.owner_logits[..., 0] <= MASKED / 2
    classes = owners.masked_fill(beyond, UNKNOWN)
    losses = functional.cross_entropy(outputs.owner_logits.mT, classes, reduction="none", ignore_index=UNKNOWN)
    return losses.sum(-1) / (classes != UNKNOWN).sum(-1).clamp(min=1)


def score_losses(outputs: Outputs, scores: Tensor) -> Tensor:
    """Return (N,) float32: the smooth L1 losses of final scores, in points; 0 where a score is nan.

    They are 0 for a network that tells no score.
    """
    if outputs.score is None:
        return torch.zeros_like(scores)
    losses = functional.smooth_l1_loss(outputs.score, scores.nan_to_num(), reduction="none", beta=CLOSE)
    return losses * ~scores.isnan()
