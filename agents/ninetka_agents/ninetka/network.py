"""The network of 9tka for 2, 3 and 4 players: the same small layers for all 36 edge slots and all 9 sections.

Weights are shared over slots and over sections. A slot exchanges information only in ways that are invariant under the
symmetries of the board: with the slot at the other end of its line, with related slots (see `RELATIONS` in
`ninetka_agents.ninetka.feature_tables`), and with means and maxima over all slots. So the network is equivariant: a
rotated or mirrored position gets the rotated or mirrored policy and the same values. It is a graph network whose edges
are the relations. The inputs are in `ninetka_agents.ninetka.features`, the interface in `ninetka_agents.outputs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ninetka_agents.ninetka.feature_tables import (
    CROSSED_SECTIONS,
    GLOBAL_FEATURES,
    LINE_SLOTS,
    NUM_GLOBAL_FEATURES,
    NUM_RELATIONS,
    NUM_SECTION_FEATURES,
    NUM_SLOT_FEATURES,
    OPPOSITE_SLOT,
    RELATIONS,
    SECTION_FEATURES,
    SLOT_FEATURES,
    Feature,
    scales,
)
from ninetka_agents.ninetka.features import Features, make_packed_features
from ninetka_agents.outputs import (
    MASKED,
    ArrayInfo,
    ArrayPart,
    Evaluation,
    Outputs,
    as_tensors,
    encoding_threads,
    evaluate_states,
    expected_counts,
    mean_and_max,
)
from ninetka_env.core.options import short_repr
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.geometry import (
    COLUMN_LINE,
    MAX_PLAYERS,
    NEUTRAL_SQUARE,
    NUM_ACTIONS,
    NUM_SECTIONS,
    NUM_SLOTS,
    ROW_LINE,
    SECTION,
    SLOT_SQUARE,
    SYMMETRIES,
)

MIXINGS = ("pool", "attention", "relations")
NEUTRAL_WIDTH = 16
OWNERS = MAX_PLAYERS + 1
"""Number of classes of a section's final owner: relative seats 0..3, none."""


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network."""

    width: int = 64
    """Channels per token."""
    blocks: int = 2
    """Residual blocks."""
    mixing: str = "relations"
    """How a slot gets information from other slots. `"pool"`: from its opposite slot, and from means and maxima over
    all slots. `"relations"`: like `"pool"`, and from related slots (see `RELATIONS` in
    `ninetka_agents.ninetka.feature_tables`). `"attention"`: like `"pool"`, and by attention over all slots and
    sections."""
    heads: int = 4
    """Number of attention heads; used only with `mixing="attention"`."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a shape that cannot be built."""
        if self.mixing not in MIXINGS:
            raise ValueError(f"mixing={short_repr(self.mixing)}: expected one of {', '.join(map(repr, MIXINGS))}")
        if min(self.width, self.blocks, self.heads) < 1:
            raise ValueError(f"{self}: width, blocks and heads must be at least 1")
        if self.mixing == "relations" and self.width < 2:
            raise ValueError(f"width={self.width}: expected at least 2 where mixing is 'relations'")
        if self.mixing == "attention" and self.width % self.heads:
            raise ValueError(f"width={self.width}: expected a multiple of heads={self.heads}")


class Inputs(NamedTuple):
    """`ninetka_agents.ninetka.features.Features` as tensors on one device; the relations may be packed."""

    slots: Tensor
    sections: Tensor
    globals: Tensor
    relations: Tensor
    mask: Tensor


def as_inputs(features: Features, device: torch.device | str = "cpu") -> Inputs:
    """Move features to a device; on the CPU nothing is copied."""
    return Inputs(*as_tensors(features, device))


def _feature_input(table: dict[str, Feature], rows: tuple[int, ...], meaning: str) -> ArrayInfo:
    parts = tuple(ArrayPart(each.name, each.first, each.count, each.meaning) for each in table.values())
    return ArrayInfo("int8", ("positions", *rows, parts[-1].first + parts[-1].number), meaning, parts)


_RELATED = (NUM_SLOTS, NUM_RELATIONS, NUM_SLOTS)
_EXPORT_INPUTS = {
    "slots": _feature_input(SLOT_FEATURES, (NUM_SLOTS,), "the features of each edge square"),
    "sections": _feature_input(SECTION_FEATURES, (NUM_SECTIONS,), "the features of each section"),
    "globals": _feature_input(GLOBAL_FEATURES, (), "the features of the position; the viewer is the seat to move"),
    "relations": ArrayInfo(
        "int8",
        ("positions", *_RELATED),
        "1 where a relation between two movable slots holds: [position, slot, relation, other slot]",
        tuple(ArrayPart(name, index, 1, f"the slot {name} the other slot") for index, name in enumerate(RELATIONS)),
    ),
    "action_mask": ArrayInfo("int8", ("positions", NUM_ACTIONS), "the environment's mask: 1 for each legal action"),
}


class _Block(nn.Module):
    """A residual block: combines each slot with its opposite slot, related slots and pools over all slots."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.mixing = config.mixing
        self.slot = nn.Linear(width, width)
        self.opposite = nn.Linear(width, width, bias=False)
        self.pools = nn.Linear(3 * width, width, bias=False)
        self.out = nn.Linear(width, width)
        if self.mixing == "relations":
            self.to_related = nn.Linear(width, width // 2)
            self.from_related = nn.Linear(NUM_RELATIONS * (width // 2), width, bias=False)
        if self.mixing == "attention":
            self.norm = nn.LayerNorm(width)
            self.query_key_value = nn.Linear(width, 3 * width)
            self.attention_out = nn.Linear(width, width)
            self.heads = config.heads

    def forward(
        self, slots: Tensor, sections: Tensor, global_embedding: Tensor, relations: Tensor, opposite: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the updated slots and sections.

        Args:
            slots: (B, 36, W).
            sections: (B, 9, W).
            global_embedding: (B, W), the embedded global features.
            relations: (B, 36 * 5, 36), `Features.relations`; used only with `mixing="relations"`.
            opposite: (36,), each slot's opposite slot.
        """
        if self.mixing == "attention":
            slots, sections = self._attend(slots, sections)
        pooled = torch.cat([*mean_and_max(slots), global_embedding], -1)
        hidden = self.slot(slots) + self.opposite(slots.index_select(1, opposite)) + self.pools(pooled)[:, None]
        if self.mixing == "relations":
            related = torch.bmm(relations, self.to_related(slots))
            hidden = hidden + self.from_related(related.view(*slots.shape[:2], -1))
        return slots + self.out(functional.relu(hidden)), sections

    def _attend(self, slots: Tensor, sections: Tensor) -> tuple[Tensor, Tensor]:
        tokens = torch.cat([slots, sections], 1)
        batch, count, width = tokens.shape
        parts = self.query_key_value(self.norm(tokens)).view(batch, count, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        tokens = tokens + self.attention_out(mixed.transpose(1, 2).reshape(batch, count, width))
        return tokens[:, :NUM_SLOTS], tokens[:, NUM_SLOTS:]


class Network(nn.Module):
    """Predicts the policy, the win probability of each relative seat and the final owners of the sections."""

    game: ClassVar[str] = "ninetka"
    """Name of the game that the network plays."""
    num_symmetries: ClassVar[int] = 1
    """Number of symmetries that `apply_symmetries` applies; 1 means none but the identity."""
    export_inputs: ClassVar[dict[str, ArrayInfo]] = _EXPORT_INPUTS
    """The inputs of the exported network by name: the arguments of `from_export`, in order."""
    policy_layers: ClassVar[tuple[str, ...]] = ("policy", "neutral_out")
    """Names of the layers whose outputs are the policy logits."""
    bf16: ClassVar[bool] = False
    """Whether searches evaluate the network in bfloat16 on devices that support it in hardware."""

    def __init__(self, config: NetworkConfig | None = None) -> None:
        """Build the layers with random weights from torch's default generator."""
        super().__init__()
        self.config = config = config or NetworkConfig()
        width = config.width
        self._register_tables()
        self.slot_in = nn.Linear(NUM_SLOT_FEATURES, width)
        self.section_in = nn.Linear(NUM_SECTION_FEATURES, width)
        self.global_in = nn.Linear(NUM_GLOBAL_FEATURES, width)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.blocks))
        self.policy = nn.Linear(width, 1)
        self.neutral_section = nn.Linear(width, NEUTRAL_WIDTH)
        self.neutral_slots = nn.Linear(width, NEUTRAL_WIDTH)
        self.neutral_place = nn.Parameter(torch.zeros(int(_neutral_places().max()) + 1, NEUTRAL_WIDTH))
        self.neutral_out = nn.Linear(NEUTRAL_WIDTH, 1)
        self.section_mix = nn.Linear(4 * width, width)
        self.owner = nn.Linear(width, OWNERS)
        self.value_hidden = nn.Linear(5 * width + 2 * OWNERS, width)
        self.value = nn.Linear(width + 2 * OWNERS, MAX_PLAYERS)
        for layer in (self.policy, self.neutral_out, self.owner, self.value):
            nn.init.normal_(layer.weight, std=0.1 / math.sqrt(width))
            nn.init.zeros_(layer.bias)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.policy.weight.device

    def encode(self, games: StateArray) -> Features:
        """Return the input features of (B,) states, as seen by the seats to move."""
        return make_packed_features(games, threads=encoding_threads())

    def encode_on_device(self, envs: Any) -> Inputs:
        """Return the inputs for the games of `envs`, a `ninetka_env.gpu.vector.DeviceVectorEnv`, computed on its GPU.

        They are new tensors, the same numbers as those of `encode(envs.states())`. This does not wait for the device.

        Raises:
            ValueError: if the games are not of the game of this network.
        """
        from ninetka_agents.ninetka.device_features import encode_games  # it needs numba's module for CUDA

        return Inputs(*encode_games(self, envs))

    def evaluate(self, games: StateArray) -> Evaluation:
        """Evaluate (B,) states from the point of view of the seats to move."""
        return evaluate_states(self, games)

    def from_export(self, *arrays: Tensor) -> Inputs:
        """Return the inputs of `forward`; `ninetka_agents.ninetka.numpy_features` computes them from observations."""
        return Inputs(*arrays)

    @staticmethod
    def apply_symmetries(inputs: Features, policy: Any, owners: Any, indices: Any) -> tuple[Features, Any, Any]:
        """Return the examples unchanged: the network is equivariant, so augmentation would add nothing."""
        return inputs, policy, owners

    def forward(self, inputs: Inputs) -> Outputs:
        """Evaluate B positions; see `Outputs`."""
        slots = functional.relu(self._embed(self.slot_in, inputs.slots, self.slot_scale))
        sections = functional.relu(self._embed(self.section_in, inputs.sections, self.section_scale))
        global_embedding = functional.relu(self._embed(self.global_in, inputs.globals, self.global_scale))
        relations = self._relation_matrices(inputs.relations, slots.dtype)
        for block in self.blocks:
            slots, sections = block(slots, sections, global_embedding, relations, self.table_opposite)
        slots = functional.relu(slots)
        batch, width = global_embedding.shape
        messages = torch.matmul(self.table_spread.to(slots.dtype), slots).view(batch, NUM_SECTIONS, 3 * width)
        sections = functional.relu(self.section_mix(torch.cat([sections, messages], -1)))
        owner_logits = self.owner(sections).float()
        scores = expected_counts(owner_logits).to(global_embedding.dtype)
        pooled = torch.cat([*mean_and_max(slots), *mean_and_max(sections), global_embedding, scores], -1)
        value_logits = self.value(torch.cat([functional.relu(self.value_hidden(pooled)), scores], -1)).float()
        drawn = value_logits.new_full((batch, 1), MASKED)
        return Outputs(
            self._policy_logits(slots, sections, inputs.mask),
            torch.cat([value_logits.masked_fill(self._absent(inputs.globals), MASKED), drawn], -1),
            owner_logits,
        )

    def _relation_matrices(self, relations: Tensor, dtype: torch.dtype) -> Tensor:
        """Return (B, 36 * 5, 36), 0 or 1, of relations in either form; unchanged if the network does not use them."""
        if self.config.mixing != "relations":
            return relations
        if relations.dtype == torch.uint8:
            bits = functional.embedding(relations.int(), self.table_bits.to(dtype))
            return bits.view(-1, NUM_SLOTS * NUM_RELATIONS, NUM_SLOTS)
        return relations.flatten(1, 2).to(dtype)

    def _embed(self, layer: nn.Linear, features: Tensor, scale: Tensor) -> Tensor:
        weight = layer.weight / scale
        dtype = (
            torch.get_autocast_dtype(weight.device.type)
            if torch.is_autocast_enabled(weight.device.type)
            else weight.dtype
        )
        return functional.linear(features.to(dtype), weight, layer.bias)

    def _policy_logits(self, slots: Tensor, sections: Tensor, mask: Tensor) -> Tensor:
        """Return (B, 122) masked logits of slots, neutral squares and the pass, whose logit is always 0."""
        lines = torch.matmul(self.table_neutral_slots.to(slots.dtype), self.neutral_slots(slots))
        blocks = self.neutral_section(sections).index_select(1, self.table_neutral_section)
        hidden = functional.relu(lines + blocks + self.neutral_place[self.table_neutral_place])
        slot_logits, neutral_logits = (
            self.policy(slots).squeeze(-1).float(),
            self.neutral_out(hidden).squeeze(-1).float(),
        )
        logits = torch.cat([slot_logits, neutral_logits, slot_logits.new_zeros(mask.shape[0], 1)], -1)
        return logits.index_select(1, self.table_actions).masked_fill(mask == 0, MASKED)

    def _absent(self, globals_: Tensor) -> Tensor:
        """Return (B, 4) bool: the relative seats that do not exist in the game."""
        first = GLOBAL_FEATURES["num_players"].first
        players = 2 + globals_[:, first : first + 3].argmax(-1, keepdim=True)
        return torch.arange(MAX_PLAYERS, device=globals_.device) >= players

    def _register_tables(self) -> None:
        """Register the geometry as buffers, which move to the device of the weights but are not saved."""
        tables = {
            "slot_scale": scales(SLOT_FEATURES),
            "section_scale": scales(SECTION_FEATURES),
            "global_scale": scales(GLOBAL_FEATURES),
            "table_opposite": OPPOSITE_SLOT,
            "table_bits": np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"),
            "table_spread": _spread_table(),
            "table_neutral_slots": _neutral_slots(),
            "table_neutral_section": SECTION[NEUTRAL_SQUARE].astype(np.int64),
            "table_neutral_place": _neutral_places(),
            "table_actions": _action_entries(),
        }
        for name, table in tables.items():
            self.register_buffer(name, torch.tensor(table), persistent=False)

    slot_scale: Tensor
    section_scale: Tensor
    global_scale: Tensor
    table_opposite: Tensor
    table_bits: Tensor
    table_spread: Tensor
    table_neutral_slots: Tensor
    table_neutral_section: Tensor
    table_neutral_place: Tensor
    table_actions: Tensor


def _spread_table() -> Any:
    """Return (27, 36) float32: row 3 * s + i averages the slots for which section s is the i-th along their line."""
    table = np.zeros((3 * NUM_SECTIONS, NUM_SLOTS), np.float32)
    for order in range(3):
        table[3 * CROSSED_SECTIONS[:, order] + order, np.arange(NUM_SLOTS)] = 1
    return table / table.sum(1, keepdims=True).clip(1)


def _neutral_slots() -> Any:
    """Return (49, 36) float32: 0.5 at the four slots of the two lines through each neutral square."""
    table = np.zeros((len(NEUTRAL_SQUARE), NUM_SLOTS), np.float32)
    for index, square in enumerate(NEUTRAL_SQUARE):
        for line in (ROW_LINE[square], COLUMN_LINE[square]):
            table[index, LINE_SLOTS[line]] = 0.5
    return table


def _neutral_places() -> Any:
    """Return (49,) int64: the symmetry class of each neutral square, numbered from 0."""
    lowest = SYMMETRIES[:, NEUTRAL_SQUARE].min(0)
    return np.unique(lowest, return_inverse=True)[1].astype(np.int64)


def _action_entries() -> Any:
    """Return (122,) int64: each action's index in [slots, neutral squares, pass]; other squares map to pass."""
    entries = np.full(NUM_ACTIONS, NUM_SLOTS + len(NEUTRAL_SQUARE), np.int64)
    entries[SLOT_SQUARE] = np.arange(NUM_SLOTS)
    entries[NEUTRAL_SQUARE] = NUM_SLOTS + np.arange(len(NEUTRAL_SQUARE))
    return entries
