"""The settings of a training run: typed and documented, read from YAML, overridden by `key=value`.

    config = load_config("quick", ["ppo.moves=100000", "seed=3"])

`TrainConfig` lists the settings.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from ninetka_agents.plugins import games_with_networks, network_of
from ninetka_agents.search.tree import MAX_SIMULATIONS
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import (
    DEFAULT_GAME,
    Definition,
    Variant,
    definition_of_spec,
    get_definition,
    load_variant,
    with_players,
)
from ninetka_train.learning.config_errors import example_override, known_keys, problem_texts
from ninetka_train.learning.config_files import find_config
from ninetka_train.learning.teacher import make_teacher
from ninetka_train.plugins import selfplay_plugin_of

Fraction = Annotated[float, Field(ge=0, le=1)]
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**12)]
NonNegativeCount = Annotated[int, Field(ge=0, le=10**12)]
BatchSize = Annotated[int, Field(ge=1, le=10**6)]
"""A count of items that are held in memory at the same time."""
TreePlayouts = Annotated[int, Field(ge=0, le=MAX_SIMULATIONS)]
"""Number of playouts of one search tree."""
NetworkSize = Annotated[int, Field(ge=0, le=4096)]
"""A size of a network; its `NetworkConfig` checks the lower limits."""

MAX_REPORTED_PROBLEMS = 5
"""Maximum number of keys that an error message lists."""


def check_name(name: str) -> str:
    """Return the name of a run; raise `ValueError` unless it is a valid folder name on every system."""
    if not re.fullmatch(r"\w(?:[\w.+-]{0,98}\w)?", name, re.ASCII) or re.match(_RESERVED, name, re.IGNORECASE):
        raise ValueError("expected up to 100 of A..Z a..z 0..9 _, and - + . between them, and no name of a device")
    return name


_RESERVED = r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)"
"""Names that Windows reserves for devices."""


_EXPONENT = r"\d{1,20}(\.\d{0,20})?[eE]\+?\d{1,3}"
"""Pattern of numbers with an exponent, which YAML 1.1 reads as text."""


class _Settings(BaseModel):
    """Base class of settings. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _read_exponent(cls, value: Any, info: ValidationInfo) -> Any:
        """Return a whole number with an exponent, such as 1e6, as an integer; YAML reads it as text."""
        is_integer = cls.model_fields[str(info.field_name)].annotation is int
        if not (is_integer and isinstance(value, str) and re.fullmatch(_EXPONENT, value)):
            return value
        return int(float(value)) if float(value).is_integer() else value


class NetworkSettings(_Settings):
    """The shape of the network; `config_class` adds the fields of the game's `NetworkConfig`."""

    shape: ClassVar[Any] = None
    """The game's `NetworkConfig`."""

    @model_validator(mode="after")
    def _check(self) -> NetworkSettings:
        self.build()
        return self

    def build(self) -> Any:
        """Return the `NetworkConfig`."""
        return self.shape(**self.model_dump())


class PPOSettings(_Settings):
    """Settings of self-play with proximal policy optimisation."""

    moves: Count = 3_000_000
    """Total number of moves; the run ends after the rollout that reaches it."""
    games: BatchSize = 512
    """Games played in parallel, divided evenly among the variants."""
    plies: BatchSize = 32
    """Plies per game and rollout; a rollout has games x plies moves."""
    minibatch: BatchSize = 2048
    """Moves per gradient step."""
    microbatch: BatchSize = 512
    """Moves per forward and backward pass; gradients are summed. Small microbatches fit the processor's cache."""
    epochs: Count = 1
    """Passes over a rollout's moves."""
    learning_rate: Positive = 1e-3
    """AdamW's learning rate at the start; it falls linearly to `final_learning_rate` over the run."""
    final_learning_rate: Positive = 1e-4
    """The learning rate at the end."""
    weight_decay: Finite = 0.0
    """AdamW's weight decay."""
    clip: Positive = 0.2
    """PPO's clip range: the ratio of a move's new to its old probability is clipped to 1 - clip .. 1 + clip."""
    entropy: Finite = 0.02
    """Weight of the policy's entropy at the start; it falls linearly to `final_entropy`."""
    final_entropy: Finite = 0.003
    """The entropy's weight at the end."""
    discount_lambda: Fraction = 0.95
    """Lambda of the advantages over each seat's own decisions (the only reward is at the end, undiscounted)."""
    value_weight: Finite = 1.0
    """Weight of the value's cross-entropy."""
    owner_weight: Finite = 0.2
    """Weight of the cross-entropy of the sections' or points' final owners, where the game ended within the rollout."""
    score_weight: Finite = 0.02
    """Weight of the final score's loss (`ninetka_train.learning.losses.score_losses`), where the game ended within the
    rollout."""
    gradient_norm: Positive = 1.0
    """Maximum norm of gradients; larger ones are scaled down."""
    league_share: Fraction = 0.0
    """Share of the games in which one seat learns and an opponent from the league plays the other seats. These games
    are chosen again for each rollout; unfinished games can be chosen, too."""
    league_size: BatchSize = 8
    """Maximum number of earlier networks in the league; when it is full, a random one is replaced."""
    league_every: Count = 20
    """Rollouts between two additions to the league."""
    league_agents: tuple[str, ...] = ()
    """Specs of further opponents in the league, such as maxn. They are called for each ply and may be slow."""

    @model_validator(mode="after")
    def _check(self) -> PPOSettings:
        if self.minibatch % self.microbatch:
            raise ValueError(f"minibatch={self.minibatch}: expected a multiple of microbatch={self.microbatch}")
        if self.league_agents and not self.league_share:
            raise ValueError("league_agents: expected league_share above 0, else they play no games")
        return self


class AlphaZeroSettings(_Settings):
    """Settings of learning from games played by search: first with random playouts, then with the network."""

    rounds: Count = 20
    """Number of rounds; each plays new games and learns from them."""
    games: BatchSize = 100
    """Games per round for each variant. Each spec in `game` combined with each number in `players` is a variant."""
    task_games: BatchSize = 64
    """Maximum number of games per task. Tasks are played independently; the games of a task share the network's
    batches, so this number affects results by rounding."""
    overlap: bool = False
    """Play a round's games while the network learns from the previous round. A round then takes less time, but its
    games use weights that are one round old, and a resumed run differs from an uninterrupted one."""
    playout_rounds: NonNegativeCount = 20
    """Number of rounds at the start that search with random playouts; later rounds search with the network."""
    playouts: Annotated[int, Field(ge=2, le=65535)] = 400
    """Playouts per move of a playout round."""
    teacher: Annotated[str, Field(max_length=200)] = ""
    """The search of playout rounds: an agent's spec without simulations; empty for the game's strongest tree search,
    such as mcts:rave,playouts=heavy in Go. net:CHECKPOINT uses a network without search, for example to train a smaller
    network (distillation). With power 1 and teacher_mix 1, its policy and values are the targets."""
    exploration: Finite = 0.7
    """The exploration constant of a teacher without RAVE whose spec does not set it."""
    greedy: Fraction = 0.75
    """Probability that a move of a playout round is the most visited one; otherwise it is drawn by visits."""
    power: Positive = 12.0
    """The policy target of playout rounds is proportional to visits ** power. A power above 1 sharpens the
    distribution, because the visits are nearly even."""
    teacher_mix: Fraction = 0.0
    """Share of the teacher's values in the value target; the rest is the result of the game."""
    decided: Annotated[float, Field(gt=0.5, le=1)] = 1.0
    """Win probability of a seat above which a game is decided; with 1, no game is decided. Positions of a decided game
    are kept with a tenth of the usual probability. A playout round finishes the game with a quarter of the playouts."""
    simulations: Annotated[int, Field(ge=1, le=MAX_SIMULATIONS // 256)] = 64  # 9tka's slides: 256 playouts each
    """Simulations of the Gumbel search per position."""
    considered: Annotated[int, Field(ge=1, le=1024)] = 16
    """Number of root actions that the Gumbel search considers."""
    leaf_playouts: TreePlayouts = 32
    """Playouts of a tree search from each position that the Gumbel search evaluates. The value of the position is half
    their result and half the network's value."""
    drawn_plies: NonNegativeCount = 60
    """Limit of the random ply up to which a game of the network draws its moves from the policy, for variety. Only
    later positions are kept. The limit is at most three quarters of the longest game's plies."""
    share: Fraction = 0.1
    """Probability that a position is searched. Moves of the network's games are chosen by its policy alone."""
    value_share: Fraction = 0.2
    """Probability that a position is kept without search, with the result of its game as value target."""
    value_mix: Fraction = 0.5
    """Share of the search's values in the value target; the rest is the result of the game."""
    window: BatchSize = 20
    """Number of newest rounds to learn from."""
    steps: Count = 100
    """Gradient steps per round."""
    minibatch: BatchSize = 1024
    """Positions per gradient step."""
    microbatch: BatchSize = 512
    """Positions per forward and backward pass; gradients are summed. Small microbatches fit the processor's cache."""
    learning_rate: Positive = 2e-3
    """AdamW's learning rate at the start; it falls linearly to 1 % over the run."""
    warm_up: Count = 100
    """Steps over which the learning rate grows linearly at the start."""
    owner_weight: Finite = 0.3
    """Weight of the cross-entropy of the final owners of sections or points."""
    score_weight: Finite = 0.02
    """Weight of the final score's loss (`ninetka_train.learning.losses.score_losses`), if the network predicts one."""
    turned: bool = True
    """Apply a random symmetry of the board to each example, if the network supports it."""


class TrainConfig(_Settings):
    """The configuration of a run."""

    name: Annotated[str, AfterValidator(check_name)] = "run"
    """The run's folder under runs/: letters, digits and _, and between them also - + and dots."""
    game: str | Annotated[tuple[str, ...], Field(min_length=1, max_length=100)] = DEFAULT_GAME
    """The spec of the game to learn, such as go:komi=6.5; or several specs of one game, for one network. Their variants
    must have the same state dtype and the same number of planes."""
    algorithm: Literal["ppo", "alphazero"] = "ppo"
    """The algorithm: self-play with PPO, or AlphaZero, which learns from games played by search."""
    players: Annotated[tuple[Annotated[int, Field(ge=2, le=4)], ...], Field(min_length=1, max_length=100)] = (2,)
    """Numbers of players of the games, all learned by one network; a number that is listed twice has twice as many
    games. Go and Kropki have 2 players."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of weights, games and the order of examples."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """CPU threads; 0 for one per core. The specs of agents have their own option, such as maxn:threads=1."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of the network; auto uses a GPU if there is one."""
    bf16: bool | Literal["auto"] = "auto"
    """Whether to multiply in bfloat16; auto: if the GPU or processor supports it in hardware."""
    checkpoint_every: Count = 20
    """Rollouts (PPO) or rounds (AlphaZero) between two scheduled checkpoints."""
    keep_checkpoints: NonNegativeCount = 2
    """Number of newest scheduled checkpoints to keep; 0 for all. If the newest one gets damaged, a run is resumed from
    the one before it, if that is kept."""
    curve_games: NonNegativeCount = 40
    """Games against each opponent, in each variant, in each of the ten measurements of the learning curve; 0 for no
    curve."""
    checkpoint_minutes: Positive = 5.0
    """Minutes after which a checkpoint for resuming is written at the end of a rollout or round. The next checkpoint
    replaces it."""
    start_from: str = ""
    """Checkpoint with the initial weights; empty for new ones."""
    network: Any = None
    """The network's shape: the fields of its game's `NetworkConfig`; see `config_class`."""
    ppo: PPOSettings = PPOSettings()
    """Settings of PPO."""
    alphazero: AlphaZeroSettings = AlphaZeroSettings()
    """Settings of AlphaZero, including those that the game adds; see `config_class`."""

    @property
    def definition(self) -> Definition:
        """The game."""
        return self.variants[0].definition

    @functools.cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The variants to learn: each spec of `game` with each number of `players`."""
        specs = (self.game,) if isinstance(self.game, str) else self.game
        return tuple(with_players(load_variant(spec), players) for spec in specs for players in self.players)

    @field_validator("game")
    @classmethod
    def _check_game(cls, game: str | tuple[str, ...]) -> str | tuple[str, ...]:
        variants = [load_variant(spec) for spec in ((game,) if isinstance(game, str) else game)]
        network_of(variants[0].definition.name)
        for variant in variants:
            if variant.options.get("num_players", 2) != 2:
                raise ValueError(f"{variant}: set the numbers of players with players=[...]")
            if (variant.dtype, variant.sizes.planes) != (variants[0].dtype, variants[0].sizes.planes):
                raise ValueError(
                    f"{variant} and {variants[0]} differ in states or planes: one network cannot learn both"
                )
        return game

    @model_validator(mode="after")
    def _check_variants_and_teacher(self) -> TrainConfig:
        """Check the numbers of players, the number of games, and the teacher."""
        name, settings = self.definition.name, self.alphazero
        if self.algorithm == "ppo" and set(self.variants[: self.ppo.games]) != set(self.variants):
            raise ValueError(f"ppo.games={self.ppo.games}: too few for each of {len(self.variants)} variants")
        make_teacher(name, settings.teacher, settings.playouts, settings.exploration)
        return self


@functools.cache
def config_class(game: str) -> type[TrainConfig]:
    """Return the `TrainConfig` subclass whose `network` and `alphazero` have the settings of a game.

    Raises:
        ValueError: if the game is unknown or has no networks.
    """
    shape = network_of(game).NetworkConfig
    defaults = {one.name: one.default for one in dataclasses.fields(shape)}
    fields: dict[str, Any] = {
        name: (NetworkSize if type(one) is int else type(one), one) for name, one in defaults.items()
    }
    network: Any = create_model("NetworkSettings", __base__=NetworkSettings, __module__=__name__, **fields)
    network.shape = shape
    own = selfplay_plugin_of(game)
    settings: Any = own.Settings if own else AlphaZeroSettings
    sections: dict[str, Any] = {"network": (network, network()), "alphazero": (settings, settings())}
    return create_model("TrainConfig", __base__=TrainConfig, __module__=__name__, **sections)


def load_config(path: Path | str | None = None, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read a configuration.

    Args:
        path: of a YAML file, or the name of a shipped configuration (see `find_config`); None for the defaults.
        overrides: `key=value` with dots for nested keys and values in YAML: `ppo.epochs=2`, `players=[2, 3]`.

    Raises:
        ValueError: if a key is unknown or has a wrong value; the message names the file, the keys, and the nearest
            known ones. If there is no such file, the message names the shipped configurations.
    """
    where = str(path) if path else "the configuration"
    values = read_settings(find_config(path)) if path else {}
    for override in overrides:
        _apply_override(values, override)
    return check_config(values, where)


class _Loader(yaml.SafeLoader):
    """Loads plain values; a repeated key in a mapping is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = []
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark)
            seen.append(key.value)
        return super().construct_mapping(node, deep)


def _parse(text: str) -> Any:
    """Return the value of a YAML text; raise `ValueError` with the problem and, if known, its line."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem or error.context}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except Exception as error:  # for example an invalid character, or an invalid date such as 2024-13-45
        raise ValueError(str(error).partition("\n")[0]) from None


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values; raise `ValueError` with the file and the problem if it is invalid."""
    try:
        values = _parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ValueError(f"{path}: is not a YAML file of settings: {error}") from None
    if not isinstance(values, dict | None):
        raise ValueError(f"{path}: expected keys and values, got {type(values).__name__}")
    return values or {}


def check_config(values: dict[str, Any], where: str = "the configuration") -> TrainConfig:
    """Make a configuration from plain values; raise `ValueError` as `load_config` does."""
    model = _class_for(values.get("game", DEFAULT_GAME))
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = problem_texts(error.errors(), model, _owners_of)
        more = [f"{len(lines) - MAX_REPORTED_PROBLEMS} more"] if len(lines) > MAX_REPORTED_PROBLEMS else []
        raise ValueError(f"{where}: " + "; ".join([*lines[:MAX_REPORTED_PROBLEMS], *more])) from None


def _class_for(game: Any) -> type[TrainConfig]:
    """Return the configuration class of a game; for an unknown game `TrainConfig`, whose validation fails."""
    spec = game if isinstance(game, str) else game[0] if isinstance(game, (list, tuple)) and game else ""
    try:
        return config_class(definition_of_spec(str(spec))[0].name)
    except ValueError:
        return TrainConfig


def _owners_of(key: str) -> list[str]:
    """Return the titles of the games whose configurations have a key."""
    return [get_definition(game).title for game in games_with_networks() if key in known_keys(config_class(game))]


def _apply_override(values: dict[str, Any], text: str) -> None:
    """Apply one `key=value` to nested values."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"override {short_repr(text)}: expected key=value, such as {example_override(text)}")
    *parents, last = key.strip().split(".")
    for parent in parents:
        inner = values.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ValueError(f"override {short_repr(text)}: {short_repr(parent)} holds no further keys")
        values = inner
    try:
        values[last] = _parse(value)
    except ValueError as error:
        raise ValueError(f"override {short_repr(text)}: {short_repr(value)} is not a YAML value: {error}") from None
