"""The network for boards of points, whose weights fit boards of any size.

A convolutional residual network with global pooling: Wu, "Accelerating self-play learning in Go", 2019 (KataGo), which
is also where the heads for owners and score come from, as targets that teach more than who won. Convolutions and means
know no size of the board. What is pooled, and what is counted, is told with the board's side too: see `_pooled`.

There is no normalisation: a residual block adds nothing at first (its last weights are 0), which is enough at this
depth (Zhang, Dauphin and Ma, "Fixup initialization", ICLR 2019). So positions of a batch do not depend on each other,
nothing is different between training and play, and nothing remains to be folded.
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
"""Every so many residual blocks, one hears of the whole board."""
USUAL_SIDE = 10
"""Boards of that side are told so by a 1."""
USUAL_LEAD = 2
"""The score's head counts in so many points times the board's side, about what games are decided by."""


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
    """Return a convolution that neither swells nor shrinks what comes out of a rectifier (He et al., 2015)."""
    layer = nn.Conv2d(inputs, outputs, side, padding=side // 2)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return layer


def _pooled(trunk: Tensor) -> Tensor:
    """Return (B, 3 * C): per channel of (B, C, height, width) its mean, its maximum, its mean times the board's side.

    The side is not centred as in KataGo: a network that saw one size only could not tell its weights for the mean from
    those for its multiple, and would be wrong by much elsewhere.
    """
    mean, most = pools(trunk.permute(0, 2, 3, 1).flatten(1, 2))
    return torch.cat([mean, most, mean * (_side(trunk) / USUAL_SIDE)], -1)


def _side(trunk: Tensor) -> Any:
    """Return the side of a square with as many nodes as the board."""
    return (trunk.shape[2] * trunk.shape[3]) ** 0.5


class _Block(nn.Module):
    """A residual step; where it pools, a quarter of its channels tell the others of the whole board."""

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
        """Step (B, width, height, width of the board)."""
        hidden = self.first(functional.relu(trunk))
        if self.pooling:
            pooled = _pooled(functional.relu(hidden[:, : self.pooling]))
            hidden = hidden[:, self.pooling :] + self.spread(pooled)[:, :, None, None]
        return trunk + self.second(functional.relu(hidden))


class BoardNetwork(nn.Module):
    """Policy, outcome, final owners and final score. A game's `Network` tells what it plays, and encodes it."""

    game: ClassVar[str]
    """What it plays, by name."""
    num_planes: ClassVar[int]
    """Planes of an observation."""
    num_globals: ClassVar[int]
    """Numbers in `Inputs.globals`."""
    action_layers: ClassVar[int]
    """How many actions there are per node."""
    other_actions: ClassVar[int]
    """How many actions follow those."""
    symmetries: ClassVar[int] = 8
    """Ways in which `turned` turns examples."""
    policy_layers: ClassVar[tuple[str, ...]] = ("policy", "policy_others")
    """The layers that the policy's logits come from."""
    bf16: ClassVar[bool] = True
    """Searches ask it in bfloat16, which takes a third less time where the device has it in hardware."""

    def __init__(self, config: NetworkConfig | None = None) -> None:
        """Build the layers with fresh weights from torch's generator."""
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
        """Where the weights are."""
        return self.stem.weight.device

    def encode(self, games: Records) -> Inputs:
        """Return what the network reads of (B,) games on boards of one size, as the seats to move see them.

        Raises:
            ValueError: if the boards are of several sizes.
        """
        raise NotImplementedError

    def judge(self, games: Records) -> Outputs:
        """Judge (B,) games from the eyes of the seats to move; see `Outputs`."""
        outputs: Outputs = self(as_tensors(self.encode(games), self.device))
        return outputs

    def forward(self, inputs: Inputs) -> Outputs:
        """Judge B positions; see `Outputs`."""
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
        """Return (B, A) masked logits: those of each layer, node by node, then the others'."""
        spread = self.policy_spread(pooled)
        hidden = functional.relu(self.policy_hidden(trunk) + spread[:, :, None, None])
        logits = torch.cat([self.policy(hidden).flatten(1), self.policy_others(functional.relu(spread))], -1).float()
        rest = logits.new_zeros(mask.shape[0], mask.shape[1] - logits.shape[1])
        return torch.cat([logits, rest], -1).masked_fill(mask == 0, MASKED)

    def turned(self, inputs: Inputs, policy: Array, owners: Array, turns: Ints) -> tuple[Any, ...]:
        """Return examples each turned by a symmetry of the board of its own.

        Args:
            inputs: what `encode` returns of B positions.
            policy: (B, A), 0 where an action is illegal.
            owners: (B, T).
            turns: (B,) int64 below `symmetries`: by which; boards that are no squares have half as many, each of them
                twice.
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
        """Return what (K,) legal actions of the positions `rows` become if nodes go to `places`, (B, N)."""
        return turn_nodes(actions, places[rows], self.action_layers)


def _filled_up(owner_logits: Tensor, targets: int) -> Tensor:
    """Return (B, targets, P + 1): what is beyond the board is nobody's."""
    nobody = torch.tensor([MASKED] * SEATS + [0.0], device=owner_logits.device)
    beyond = nobody.expand(owner_logits.shape[0], targets - owner_logits.shape[1], SEATS + 1)
    return torch.cat([owner_logits, beyond], 1)
