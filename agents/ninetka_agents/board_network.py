"""The network of Go and Kropki, whose weights fit boards of any size.

A convolutional residual network with global pooling, as in Wu, "Accelerating self-play learning in Go", 2019 (KataGo).
The heads for owners and score also come from KataGo, because these targets contain more information than the winner
alone. Convolutions and means do not depend on the board size. Pooling also returns the mean scaled by the board's side,
see `_global_pooling`.

There are no normalisation layers. The last weights of each residual block are initially 0, so that the block adds
nothing; this is enough at this depth (Zhang, Dauphin and Ma, "Fixup initialization", ICLR 2019). So the positions of a
batch are independent of each other, training and play compute the same, and no normalisation has to be folded into
weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ninetka_agents.board_features import (
    Array,
    Inputs,
    Ints,
    apply_symmetry,
    move_entries,
    symmetries,
    transform_actions,
)
from ninetka_agents.outputs import (
    MASKED,
    ArrayInfo,
    ArrayPart,
    Evaluation,
    Outputs,
    evaluate_states,
    expected_counts,
    mean_and_max,
)
from ninetka_env.core.verbs import StateArray

SEATS = 2
POOLING_INTERVAL = 3
"""Of every `POOLING_INTERVAL` consecutive residual blocks, the last uses global pooling."""
REFERENCE_SIDE = 10
"""Global pooling scales means by the board's side divided by this number."""
SCORE_SCALE = 2
"""The score head's unit is `SCORE_SCALE` times the board's side, in points: about a typical final margin."""


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network."""

    width: int = 64
    """Channels."""
    blocks: int = 6
    """Residual blocks."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a shape that cannot be built."""
        if self.blocks < 1 or self.width < 4:
            raise ValueError(f"{self}: blocks must be at least 1 and width at least 4")


def _convolution(inputs: int, outputs: int, side: int = 3) -> nn.Conv2d:
    """Return a convolution with Kaiming initialisation, which preserves the variance after ReLU (He et al., 2015)."""
    layer = nn.Conv2d(inputs, outputs, side, padding=side // 2)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return layer


def _global_pooling(trunk: Tensor) -> Tensor:
    """Return (B, 3 * C): per channel of (B, C, height, width) the mean, the maximum, and the mean scaled by the side.

    Unlike in KataGo, the side is not centred. Training on one board size cannot distinguish the weights of the mean
    from the weights of the scaled mean; with a centred side, such a network would be far off on other sizes.
    """
    mean, maximum = mean_and_max(trunk.permute(0, 2, 3, 1).flatten(1, 2))
    return torch.cat([mean, maximum, mean * (_board_side(trunk) / REFERENCE_SIDE)], -1)


def _board_side(trunk: Tensor) -> Any:
    """Return the side of a square with as many nodes as the board."""
    return (trunk.shape[2] * trunk.shape[3]) ** 0.5


class _ResidualBlock(nn.Module):
    """A residual block. With `pooling`, global pooling of a quarter of its channels is added to its other channels."""

    def __init__(self, width: int, pooling: bool) -> None:
        super().__init__()
        self.pooled_channels = width // 4 if pooling else 0
        self.first = _convolution(width, width)
        self.second = _convolution(width - self.pooled_channels, width)
        if pooling:
            self.spread = nn.Linear(3 * self.pooled_channels, width - self.pooled_channels)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(cast(Tensor, self.second.bias))

    def forward(self, trunk: Tensor) -> Tensor:
        """Return the trunk, (B, C, height, width), after this block."""
        hidden = self.first(functional.relu(trunk))
        if self.pooled_channels:
            pooled = _global_pooling(functional.relu(hidden[:, : self.pooled_channels]))
            hidden = hidden[:, self.pooled_channels :] + self.spread(pooled)[:, :, None, None]
        return trunk + self.second(functional.relu(hidden))


class BoardNetwork(nn.Module):
    """Base class of networks that predict policy, outcome, final owners and final score.

    Subclasses set the class variables and implement `encode` and `from_export`.
    """

    game: ClassVar[str]
    """The name of the game."""
    num_planes: ClassVar[int]
    """Number of planes of an observation."""
    num_globals: ClassVar[int]
    """Number of entries of `Inputs.globals`."""
    action_layers: ClassVar[int]
    """Number of actions per node."""
    other_actions: ClassVar[int]
    """Number of actions that belong to no node, such as the pass."""
    num_symmetries: ClassVar[int] = 8
    """Number of symmetries that `apply_symmetries` accepts."""
    export_inputs: ClassVar[dict[str, ArrayInfo]]
    """The inputs of the exported network by name: the arguments of `from_export`, in order."""
    export_options: ClassVar[dict[str, str]] = {}
    """The game's options of which the network does not serve all values, with the values that it serves."""
    policy_layers: ClassVar[tuple[str, ...]] = ("policy", "policy_others")
    """The layers that compute the policy logits."""
    bf16: ClassVar[bool] = True
    """Whether searches may use bfloat16, which takes a third less time if the device supports it in hardware."""

    def __init__(self, config: NetworkConfig | None = None) -> None:
        """Build the layers with random weights from torch's generator."""
        super().__init__()
        self.config = config = config or NetworkConfig()
        width, num_counts = config.width, 2 * (SEATS + 1) + self.num_globals
        self.stem = _convolution(self.num_planes, width)
        self.stem_globals = nn.Linear(self.num_globals, width, bias=False)
        self.blocks = nn.ModuleList(
            _ResidualBlock(width, block % POOLING_INTERVAL == POOLING_INTERVAL - 1) for block in range(config.blocks)
        )
        self.policy_hidden = _convolution(width, width // 2, 1)
        self.policy_spread = nn.Linear(3 * width, width // 2)
        self.policy = _convolution(width // 2, self.action_layers, 1)
        self.policy_others = nn.Linear(width // 2, self.other_actions)
        self.owner = _convolution(width, SEATS + 1, 1)
        self.whole_hidden = nn.Linear(3 * width + num_counts, width)
        self.value = nn.Linear(width + num_counts, SEATS + 1)
        self.score = nn.Linear(width + num_counts, 1)
        for layer in (self.policy, self.policy_others, self.owner, self.value, self.score):
            nn.init.normal_(layer.weight, std=0.1 / math.sqrt(width))
            nn.init.zeros_(cast(Tensor, layer.bias))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast on a CPU

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.stem.weight.device

    def encode(self, games: StateArray) -> Inputs:
        """Return the inputs for (B,) states on boards of one size, from the point of view of the seats to move.

        Raises:
            ValueError: if the boards have different sizes.
        """
        raise NotImplementedError

    def encode_on_device(self, envs: Any) -> Inputs:
        """Return the inputs for the games of `envs`, a `ninetka_env.gpu.vector.DeviceVectorEnv`, computed on its GPU.

        They are new tensors, the same numbers as those of `encode(envs.states())`. This does not wait for the device.

        Raises:
            ValueError: if the games are not of the game of this network.
        """
        from ninetka_agents.device_inputs import encode_boards  # it needs numba's module for CUDA

        return encode_boards(self, envs)

    def evaluate(self, games: StateArray) -> Evaluation:
        """Evaluate (B,) states from the point of view of the seats to move."""
        return evaluate_states(self, games)

    def from_export(self, observation: Tensor, action_mask: Tensor, *more: Tensor) -> Inputs:
        """Return the inputs of `forward`, the same as those of `encode`, for what the environment returns.

        Args:
            observation: (B, C, height, width) int8: observations of the seats to move.
            action_mask: (B, A) int8: their legal actions; A is the number of actions of the variant.
            more: what the game needs besides, see `export_inputs`.
        """
        raise NotImplementedError

    def forward(self, inputs: Inputs) -> Outputs:
        """Evaluate B positions; see `Outputs`."""
        planes = inputs.planes.to(self.stem.weight.dtype, memory_format=torch.channels_last)
        trunk = self.stem(planes) + self.stem_globals(inputs.globals)[:, :, None, None]
        for block in self.blocks:
            trunk = block(trunk)
        trunk = functional.relu(trunk)
        pooled, owner_logits = _global_pooling(trunk), self.owner(trunk).flatten(2).transpose(1, 2).float()
        counts = torch.cat([expected_counts(owner_logits) / _board_side(trunk), inputs.globals], -1)
        hidden = functional.relu(self.whole_hidden(torch.cat([pooled, counts], -1)))
        whole = torch.cat([hidden, counts], -1)
        targets = (inputs.mask.shape[1] - self.other_actions) // self.action_layers
        return Outputs(
            self._policy_logits(trunk, pooled, inputs.mask),
            self.value(whole).float(),
            _pad_targets(owner_logits, targets),
            self.score(whole).float().squeeze(-1) * (SCORE_SCALE * _board_side(trunk)),
        )

    def _policy_logits(self, trunk: Tensor, pooled: Tensor, mask: Tensor) -> Tensor:
        """Return (B, A) masked logits: the action layers, each node by node, then the other actions."""
        spread = self.policy_spread(pooled)
        hidden = functional.relu(self.policy_hidden(trunk) + spread[:, :, None, None])
        logits = torch.cat([self.policy(hidden).flatten(1), self.policy_others(functional.relu(spread))], -1).float()
        rest = logits.new_zeros(mask.shape[0], mask.shape[1] - logits.shape[1])
        return torch.cat([logits, rest], -1).masked_fill(mask == 0, MASKED)

    def apply_symmetries(self, inputs: Inputs, policy: Array, owners: Array, indices: Ints) -> tuple[Any, ...]:
        """Return training examples, each transformed by its own symmetry of the board.

        Args:
            inputs: the result of `encode` for B positions.
            policy: (B, A), 0 for illegal actions.
            owners: (B, T), the final owners of the targets.
            indices: (B,) int64 below `num_symmetries`: the symmetry of each example. Boards that are not square have
                half as many symmetries, so two indices mean the same symmetry.

        Returns:
            The transformed inputs, policy and owners.
        """
        height, width = inputs.planes.shape[2:]
        ways = symmetries(height, width)
        order = ways[indices * len(ways) // self.num_symmetries]
        rows, before = inputs.mask.nonzero()
        after = self._transform_actions(inputs, order.argsort(1), rows, before)
        inputs, owners = apply_symmetry(inputs, owners, order)
        inputs = inputs._replace(mask=move_entries(inputs.mask, rows, before, after))
        return inputs, move_entries(policy, rows, before, after), owners

    def _transform_actions(self, inputs: Inputs, places: Ints, rows: Ints, actions: Ints) -> Ints:
        """Return (K,) actions after a symmetry; action k belongs to position `rows[k]`.

        `places` is (B, N): the place that each node of a position moves to.
        """
        return transform_actions(actions, places[rows], self.action_layers)


def observation_inputs(parts: tuple[ArrayPart, ...], seats: str) -> dict[str, ArrayInfo]:
    """Return the descriptions of the inputs `observation` and `action_mask`.

    Args:
        parts: the table of planes.
        seats: what the viewer and the other seat are called in the table.
    """
    shape = ("positions", parts[-1].first + parts[-1].number, "height", "width")
    meaning = f"the environment's observation of the seat to move; {seats}"
    return {
        "observation": ArrayInfo("int8", shape, meaning, parts),
        "action_mask": ArrayInfo("int8", ("positions", "actions"), "the environment's mask: 1 for each legal action"),
    }


def _pad_targets(owner_logits: Tensor, targets: int) -> Tensor:
    """Pad owner logits to (B, targets, P + 1); the added targets, which are beyond the board, have no owner."""
    no_owner = torch.tensor([MASKED] * SEATS + [0.0], device=owner_logits.device)
    beyond = no_owner.expand(owner_logits.shape[0], targets - owner_logits.shape[1], SEATS + 1)
    return torch.cat([owner_logits, beyond], 1)
