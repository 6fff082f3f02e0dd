"""The network of Go and Kropki, whose weights fit boards of any size.

A convolutional residual network with global pooling, as in Wu, "Accelerating self-play learning in Go", 2019 (KataGo).
The heads for owners and score also come from there, because these targets teach more than the winner alone.
Convolutions and means do not depend on the board size; pooled values are also given scaled by the board's side, see
`_pooled`.

There is no normalisation: a residual block adds nothing at first (its last weights are 0), which is enough at this
depth (Zhang, Dauphin and Ma, "Fixup initialization", ICLR 2019). So the positions of a batch are independent of each
other, training and play compute the same, and no normalisation has to be folded into weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ninetka_agents.board_features import Array, Inputs, Ints, move_entries, symmetries, turn, turn_nodes
from ninetka_agents.outputs import MASKED, Outputs, as_tensors, expected_counts, pools
from ninetka_env.core.verbs import Records

SEATS = 2
POOLING_EVERY = 3
"""One of this many residual blocks uses global pooling."""
USUAL_SIDE = 10
"""Side lengths are divided by this one, so it is 1 on boards of this side."""
USUAL_LEAD = 2
"""The unit of the score head, in points times the board's side: about a typical final margin."""


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
    """Return a convolution with Kaiming initialisation, which keeps the variance behind ReLU (He et al., 2015)."""
    layer = nn.Conv2d(inputs, outputs, side, padding=side // 2)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return layer


def _pooled(trunk: Tensor) -> Tensor:
    """Return (B, 3 * C): per channel of (B, C, height, width) the mean, the maximum, and the mean scaled by the side.

    Unlike in KataGo, the side is not centred: a network trained on one size only could not distinguish its weights for
    the mean from those for the scaled mean, and would be far off on other sizes.
    """
    mean, most = pools(trunk.permute(0, 2, 3, 1).flatten(1, 2))
    return torch.cat([mean, most, mean * (_side(trunk) / USUAL_SIDE)], -1)


def _side(trunk: Tensor) -> Any:
    """Return the side of a square with as many nodes as the board."""
    return (trunk.shape[2] * trunk.shape[3]) ** 0.5


class _Block(nn.Module):
    """A residual block; if it pools, a quarter of its channels give the others information about the whole board."""

    def __init__(self, width: int, pooling: bool) -> None:
        super().__init__()
        self.pooling = width // 4 if pooling else 0
        self.first = _convolution(width, width)
        self.second = _convolution(width - self.pooling, width)
        if pooling:
            self.spread = nn.Linear(3 * self.pooling, width - self.pooling)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(cast(Tensor, self.second.bias))

    def forward(self, trunk: Tensor) -> Tensor:
        """Return the trunk, (B, width, height, width of the board), after this block."""
        hidden = self.first(functional.relu(trunk))
        if self.pooling:
            pooled = _pooled(functional.relu(hidden[:, : self.pooling]))
            hidden = hidden[:, self.pooling :] + self.spread(pooled)[:, :, None, None]
        return trunk + self.second(functional.relu(hidden))


class BoardNetwork(nn.Module):
    """Predicts policy, outcome, final owners and final score; subclasses set the class variables and `encode`."""

    game: ClassVar[str]
    """The name of the game."""
    num_planes: ClassVar[int]
    """Number of planes of an observation."""
    num_globals: ClassVar[int]
    """Number of entries of `Inputs.globals`."""
    action_layers: ClassVar[int]
    """Number of actions per node."""
    other_actions: ClassVar[int]
    """Number of actions after those."""
    symmetries: ClassVar[int] = 8
    """Number of symmetries that `turned` accepts."""
    policy_layers: ClassVar[tuple[str, ...]] = ("policy", "policy_others")
    """The layers that compute the policy logits."""
    bf16: ClassVar[bool] = True
    """Searches may use bfloat16, which takes a third less time if the device supports it in hardware."""

    def __init__(self, config: NetworkConfig | None = None) -> None:
        """Build the layers with random weights from torch's generator."""
        super().__init__()
        self.config = config = config or NetworkConfig()
        width, counted = config.width, 2 * (SEATS + 1) + self.num_globals
        self.stem = _convolution(self.num_planes, width)
        self.stem_globals = nn.Linear(self.num_globals, width, bias=False)
        self.blocks = nn.ModuleList(
            _Block(width, block % POOLING_EVERY == POOLING_EVERY - 1) for block in range(config.blocks)
        )
        self.policy_hidden = _convolution(width, width // 2, 1)
        self.policy_spread = nn.Linear(3 * width, width // 2)
        self.policy = _convolution(width // 2, self.action_layers, 1)
        self.policy_others = nn.Linear(width // 2, self.other_actions)
        self.owner = _convolution(width, SEATS + 1, 1)
        self.whole_hidden = nn.Linear(3 * width + counted, width)
        self.value = nn.Linear(width + counted, SEATS + 1)
        self.score = nn.Linear(width + counted, 1)
        for layer in (self.policy, self.policy_others, self.owner, self.value, self.score):
            nn.init.normal_(layer.weight, std=0.1 / math.sqrt(width))
            nn.init.zeros_(cast(Tensor, layer.bias))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # twice as fast on a CPU

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.stem.weight.device

    def encode(self, games: Records) -> Inputs:
        """Return the inputs for (B,) states on boards of one size, from the point of view of the seats to move.

        Raises:
            ValueError: if the boards have different sizes.
        """
        raise NotImplementedError

    def judge(self, games: Records) -> Outputs:
        """Evaluate (B,) states from the point of view of the seats to move; see `Outputs`."""
        outputs: Outputs = self(as_tensors(self.encode(games), self.device))
        return outputs

    def forward(self, inputs: Inputs) -> Outputs:
        """Evaluate B positions; see `Outputs`."""
        planes = inputs.planes.to(self.stem.weight.dtype, memory_format=torch.channels_last)
        trunk = self.stem(planes) + self.stem_globals(inputs.globals)[:, :, None, None]
        for block in self.blocks:
            trunk = block(trunk)
        trunk = functional.relu(trunk)
        pooled, owner_logits = _pooled(trunk), self.owner(trunk).flatten(2).transpose(1, 2).float()
        counted = torch.cat([expected_counts(owner_logits) / _side(trunk), inputs.globals], -1)
        hidden = functional.relu(self.whole_hidden(torch.cat([pooled, counted], -1)))
        whole = torch.cat([hidden, counted], -1)
        targets = (inputs.mask.shape[1] - self.other_actions) // self.action_layers
        return Outputs(
            self._policy_logits(trunk, pooled, inputs.mask),
            self.value(whole).float(),
            _filled_up(owner_logits, targets),
            self.score(whole).float().squeeze(-1) * (USUAL_LEAD * _side(trunk)),
        )

    def _policy_logits(self, trunk: Tensor, pooled: Tensor, mask: Tensor) -> Tensor:
        """Return (B, A) masked logits: each layer node by node, then the other actions."""
        spread = self.policy_spread(pooled)
        hidden = functional.relu(self.policy_hidden(trunk) + spread[:, :, None, None])
        logits = torch.cat([self.policy(hidden).flatten(1), self.policy_others(functional.relu(spread))], -1).float()
        rest = logits.new_zeros(mask.shape[0], mask.shape[1] - logits.shape[1])
        return torch.cat([logits, rest], -1).masked_fill(mask == 0, MASKED)

    def turned(self, inputs: Inputs, policy: Array, owners: Array, turns: Ints) -> tuple[Any, ...]:
        """Return training examples, each transformed by its own symmetry of the board.

        Args:
            inputs: the result of `encode` for B positions.
            policy: (B, A), 0 for illegal actions.
            owners: (B, T).
            turns: (B,) int64 below `symmetries`: the symmetry of each example. Boards that are not square have half as
                many symmetries, and each of them occurs twice.
        """
        height, width = inputs.planes.shape[2:]
        ways = symmetries(height, width)
        order = ways[turns * len(ways) // self.symmetries]
        rows, before = inputs.mask.nonzero()
        after = self._turned_actions(inputs, order.argsort(1), rows, before)
        inputs, owners = turn(inputs, owners, order)
        inputs = inputs._replace(mask=move_entries(inputs.mask, rows, before, after))
        return inputs, move_entries(policy, rows, before, after), owners

    def _turned_actions(self, inputs: Inputs, places: Ints, rows: Ints, actions: Ints) -> Ints:
        """Return (K,) legal actions of the positions `rows` after a symmetry that moves nodes to `places`, (B, N)."""
        return turn_nodes(actions, places[rows], self.action_layers)


def _filled_up(owner_logits: Tensor, targets: int) -> Tensor:
    """Pad to (B, targets, P + 1); targets beyond the board belong to nobody."""
    nobody = torch.tensor([MASKED] * SEATS + [0.0], device=owner_logits.device)
    beyond = nobody.expand(owner_logits.shape[0], targets - owner_logits.shape[1], SEATS + 1)
    return torch.cat([owner_logits, beyond], 1)
