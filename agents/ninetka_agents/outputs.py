"""What a network of any game says, and what it is to those who train and play it.

The module that `ninetka_agents.parts.Parts.network` names has two classes. `NetworkConfig`, a frozen dataclass with
defaults, is the shape of a network; it raises `ValueError` for one that cannot be built. `Network(config)` is a torch
module with

- `game`, the name of its game; `config`; `device`, where its weights are; `bf16`, whether searches ask it in bfloat16
  where that device has it in hardware;
- `policy_layers`, the names of the linear layers that the policy's logits come from, with nothing after them;
- `encode(games)`: all that it reads of (B,) records, a NamedTuple of numpy arrays with B rows each, as the seats to
  move see it; records that cannot share a batch are a `ValueError`;
- `forward(inputs)`: `Outputs`, from the same as tensors on its device (`as_tensors` makes them);
- `judge(games)`: both;
- `turned(inputs, policy, owners, turns)`: the arrays of `encode`, a policy (B, A) and owners (B, T), each example
  turned by a symmetry of the board of its own, (B,) numbers below `symmetries`; 1 for a network that turns nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

MASKED = -1e9
"""Logit of what cannot be: finite, so that no gradient becomes nan; its probability is 0."""


class Outputs(NamedTuple):
    """What a network says of B positions, of a game of A actions, P players and T targets at most.

    A, P and T are those of the record type, `ninetka_env.core.registry.limits_of(games.dtype)`. Seats are relative:
    seat r is `(to_move + r) % n`, so it is the one to move that is seat 0.
    """

    logits: Tensor
    """(B, A) float32: policy logits, `MASKED` where an action is illegal, or none of the variant's."""
    value_logits: Tensor
    """(B, P + 1) float32: logits of the outcomes: each relative seat wins, `MASKED` for seats that are not in play;
    drawn, `MASKED` where the game knows no draws."""
    owner_logits: Tensor
    """(B, T, P + 1) float32: logits of the final owner of each target (`ninetka_env.core.verbs.write_targets`): each
    relative seat, nobody."""
    score: Tensor | None = None
    """(B,) float32: the final score expected, own less the best other, in points; None if the network tells none."""

    @property
    def values(self) -> Tensor:
        """(B, P) float32: chance to win per relative seat, P(it wins) + P(drawn) / n."""
        outcomes = self.value_logits.softmax(-1)
        players = (self.value_logits[:, :-1] > MASKED / 2).sum(-1, keepdim=True)
        return outcomes[:, :-1] + outcomes[:, -1:] / players


def as_tensors(arrays: tuple[Any, ...], device: torch.device | str = "cpu") -> Any:
    """Move a NamedTuple of numpy arrays to a device, as one of tensors; on the CPU nothing is copied."""
    kind: Any = type(arrays)
    return kind(*(torch.from_numpy(array).to(device) for array in arrays))


# Layers that networks of all games share


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
        owner_logits: (B, T, P + 1), see `Outputs`.
    """
    owners = owner_logits.softmax(-1)
    return torch.cat([owners.sum(1), (owners * (1 - owners)).sum(1)], -1)
