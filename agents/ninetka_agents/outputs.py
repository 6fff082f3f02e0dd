"""The interface that training and play require of a network of any game, and its outputs.

The module named by `ninetka_agents.plugins.GamePlugins.network` has two classes. `NetworkConfig`, a frozen dataclass
with defaults, is the shape of a network; it raises `ValueError` for a shape that cannot be built. `Network(config)` is
a torch module with

- `game`, the name of its game; `config`; `device`, the device of its weights; `bf16`, whether searches may evaluate it
  in bfloat16 if the device supports that in hardware;
- `policy_layers`, the names of the linear layers whose outputs are the policy logits;
- `encode(games)`, which returns the inputs for (B,) states: a NamedTuple of numpy arrays with B rows each, from the
  point of view of the seats to move. It raises `ValueError` for states that cannot share a batch;
- `forward(inputs)`, which returns `Outputs`; the inputs are those of `encode` as tensors on the network's device (see
  `as_tensors`);
- `num_symmetries`, the number of symmetries of the board; 1 for a network without symmetries;
- `apply_symmetries(inputs, policy, owners, indices)`, which transforms each training example by its own symmetry of the
  board. Its arguments are the arrays of `encode`, a policy (B, A), owners (B, T), and (B,) indices of symmetries, below
  `num_symmetries`. It returns the transformed inputs, policy and owners.

The networks of this package also have `evaluate(games)`, which returns an `Evaluation`, and what
`ninetka_agents.export` needs to describe a network and to give it other inputs than the arrays of `encode`:
`export_inputs`, `export_options` and `from_export`. See `ninetka_agents.board_network.BoardNetwork`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ninetka_env.core.threads import default_num_threads
from ninetka_env.core.verbs import StateArray

Floats: TypeAlias = npt.NDArray[np.float32]

MASKED = -1e9
"""Logit of an impossible outcome: its probability becomes 0. It is finite, so that no gradient becomes nan."""


class Outputs(NamedTuple):
    """A network's outputs for B positions of a game with at most A actions, P players and T targets.

    A, P and T are the limits of the dtype, `ninetka_env.core.registry.limits_of(games.dtype)`. Seats are relative:
    relative seat r is `(to_move + r) % n`, so relative seat 0 is to move.
    """

    logits: Tensor
    """(B, A) float32: policy logits, `MASKED` for actions that are illegal or do not exist in the variant."""
    value_logits: Tensor
    """(B, P + 1) float32: logits of the outcomes: a win of each relative seat, `MASKED` for seats that are not in play,
    and a draw, `MASKED` in games without draws."""
    owner_logits: Tensor
    """(B, T, P + 1) float32: logits of the final owner of each target (`ninetka_env.core.verbs.write_targets`): each
    relative seat, then no owner."""
    score: Tensor | None = None
    """(B,) float32: the expected final lead in points, own score minus the best other; None if not predicted."""

    @property
    def values(self) -> Tensor:
        """(B, P) float32: win probability per relative seat with draws shared, P(win) + P(draw) / n."""
        outcomes = self.value_logits.softmax(-1)
        players = (self.value_logits[:, :-1] > MASKED / 2).sum(-1, keepdim=True)
        return outcomes[:, :-1] + outcomes[:, -1:] / players


class Evaluation(NamedTuple):
    """What a network predicts for B positions of a game with at most A actions, P players and T targets, in numpy.

    A, P, T and relative seats are as in `Outputs`. An exported network has outputs of the same names; see
    `ninetka_agents.export`.
    """

    logits: Floats
    """(B, A) float32: policy logits, `MASKED` for actions that are illegal or do not exist in the variant."""
    values: Floats
    """(B, P) float32: win probability per relative seat, with draws shared."""
    owners: Floats
    """(B, T, P + 1) float32: the probabilities that each target is owned at the end by each relative seat, or, last,
    by none."""
    score: Floats | None = None
    """(B,) float32: the expected final lead of relative seat 0 in points; None if the network does not predict it."""


class ArrayPart(NamedTuple):
    """Some planes of an observation, or some features: `number` of them from index `first` on."""

    name: str
    first: int
    number: int
    meaning: str


class ArrayInfo(NamedTuple):
    """The description of an input or output of an exported network."""

    dtype: str
    """The name of numpy's dtype."""
    shape: tuple[int | str, ...]
    """The length of each dimension; a name where the length may vary."""
    meaning: str
    parts: tuple[ArrayPart, ...] = ()
    """What the planes or features of an input mean."""


def forward_states(network: Any, games: StateArray) -> Outputs:
    """Return the outputs of a network for (B,) states, from the point of view of the seats to move, as tensors."""
    outputs: Outputs = network(as_tensors(network.encode(games), network.device))
    return outputs


def evaluate_states(network: Any, games: StateArray) -> Evaluation:
    """Evaluate (B,) states with a network, from the point of view of the seats to move."""
    with torch.inference_mode():
        outputs = forward_states(network, games)
        return Evaluation(
            outputs.logits.cpu().numpy(),
            outputs.values.cpu().numpy(),
            outputs.owner_logits.softmax(-1).cpu().numpy(),
            None if outputs.score is None else outputs.score.cpu().numpy(),
        )


def encoding_threads() -> int:
    """Return the number of threads that share the encoding of a batch: as many as torch uses when called from here."""
    return min(torch.get_num_threads(), default_num_threads())


def as_tensors(arrays: tuple[Any, ...], device: torch.device | str = "cpu") -> Any:
    """Convert the arrays of a NamedTuple to tensors on a device; on the CPU the data is not copied.

    A copy to a GPU is not awaited, so the caller can encode the next batch during the copy.
    """
    kind: Any = type(arrays)
    tensors = map(torch.from_numpy, arrays)
    if torch.device(device).type == "cuda":
        return kind(*(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors))
    return kind(*(tensor.to(device) for tensor in tensors))


# Layers that the networks of all games use


class _MaxOverTokens(torch.autograd.Function):
    """The maximum over dimension 1; the gradient is divided equally among equal maxima.

    `Tensor.amax` computes the same, but its backward pass takes five times as long on a CPU.
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


def mean_and_max(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and maximum over dimension 1.

    The mean is computed from a sum, because `Tensor.mean` takes ten times as long on a CPU.
    """
    maximum: Tensor = _MaxOverTokens.apply(tokens) if torch.is_grad_enabled() else tokens.amax(1)  # type: ignore[no-untyped-call]
    return tokens.sum(1) / tokens.shape[1], maximum


def expected_counts(owner_logits: Tensor) -> Tensor:
    """Return the means, then the variances, of the number of targets per owner, (B, 2 * (P + 1)).

    These counts decide the winner. Without them as inputs, the value head hardly learns to count the predicted owners.

    Args:
        owner_logits: (B, T, P + 1), see `Outputs`.
    """
    owners = owner_logits.softmax(-1)
    return torch.cat([owners.sum(1), (owners * (1 - owners)).sum(1)], -1)
