"""The settings of a training run: typed and documented, read from YAML, overridden by `key=value`.

config = load_config("quick", ["ppo.moves=100000", "seed=3"])
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
    create_model,
    field_validator,
    model_validator,
)

from ninetka_agents.checkpoint import NETWORKS
from ninetka_agents.parts import games_with_networks, network_of
from ninetka_agents.search.tree import MOST_SIMULATIONS
from ninetka_env.core.files import shown
from ninetka_env.core.options import shortened
from ninetka_env.core.registry import DEFAULT, Definition, Variant, get_definition, load_variant, with_players
from ninetka_env.core.text import nearest
from ninetka_train.learning.teacher import make_teacher
from ninetka_train.parts import selfplay_of

Fraction = Annotated[float, Field(ge=0, le=1)]
Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**12)]
CountOr0 = Annotated[int, Field(ge=0, le=10**12)]
Batch = Annotated[int, Field(ge=1, le=10**6)]
"""A number of things that are in memory at the same time."""
TreePlayouts = Annotated[int, Field(ge=0, le=MOST_SIMULATIONS)]
"""Up to the maximum of one search tree."""
Size = Annotated[int, Field(ge=0, le=4096)]
"""A size of a network; its `NetworkConfig` checks the lower limits."""

MOST_TOLD = 5
"""Maximum number of keys that an error message lists."""
_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED, _CHECKOUT = _PACKAGE / "configs", _PACKAGE.parents[1] / "configs"
CONFIGS = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
"""Folder of the shipped configurations: in the installed package, or in the checkout it is imported from."""


def check_name(name: str) -> str:
    """Return the name of a run; raise `ValueError` unless it is a valid folder name on every system."""
    if not re.fullmatch(r"\w(?:[\w.+-]{0,98}\w)?", name, re.ASCII) or re.match(_RESERVED, name, re.IGNORECASE):
        raise ValueError("expected up to 100 of A..Z a..z 0..9 _, and - + . between them, and no name of a device")
    return name


_RESERVED = r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)"
"""Names that Windows reserves for devices."""


class _Settings(BaseModel):
    """Base class of settings. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


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
    games: Batch = 512
    """Games played in parallel, divided evenly among the variants."""
    plies: Batch = 32
    """Plies per game and rollout; a rollout has games x plies moves."""
    minibatch: Batch = 2048
    """Moves per gradient step."""
    microbatch: Batch = 512
    """Moves per forward and backward pass, whose gradients are summed; small ones fit the processor's cache."""
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
    """Weight of the final score's loss (`ninetka_train.learning.losses.score_losses`), for the same games."""
    gradient_norm: Positive = 1.0
    """Maximum norm of gradients; larger ones are scaled down."""
    league_share: Fraction = 0.0
    """Share of the games in which one seat learns and an opponent from the league plays the others. These games are
    drawn again for each rollout, also among unfinished games."""
    league_size: Batch = 8
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
    games: Batch = 100
    """Games per round and variant of the game (9tka: number of players)."""
    task_games: Batch = 64
    """Maximum number of games per task. Tasks are played independently; the games of a task share the network's
    batches, so this number affects results by rounding."""
    overlap: bool = False
    """Play a round's games while the network learns from the previous round, with the weights from before that
    learning. There is no waiting, but the weights are one round out of date, and a resumed run differs from an
    uninterrupted one."""
    playout_rounds: CountOr0 = 20
    """Number of rounds at the start that search with random playouts; later rounds search with the network."""
    playouts: Annotated[int, Field(ge=2, le=65535)] = 400
    """Playouts per move of a playout round."""
    teacher: Annotated[str, Field(max_length=200)] = ""
    """The search of playout rounds as an agent's spec without simulations; empty for the game's strongest one, such as
    mcts:rave,playouts=heavy in Go. Or net:CHECKPOINT: a network without search, whose policy (with power 1) and values
    (with teacher_mix 1) are the targets, for example to train a smaller network (distillation)."""
    exploration: Finite = 0.7
    """The exploration constant of the teacher, if it is plain UCT."""
    greedy: Fraction = 0.75
    """Probability that a move of a playout round is the most visited one; otherwise it is drawn by visits."""
    power: Positive = 12.0
    """The policy target of playout rounds is visits ** power. Above 1 it is sharper than the visits, which are nearly
    even."""
    teacher_mix: Fraction = 0.0
    """Share of the teacher's values in the value target; the rest is the winner."""
    decided: Annotated[float, Field(gt=0.5, le=1)] = 1.0
    """A game is decided if a seat's win probability is above this. A decided game of a playout round is finished with a
    quarter of the playouts, and in all rounds a tenth as many of its positions are kept; 1: no game is decided."""
    simulations: Annotated[int, Field(ge=1, le=MOST_SIMULATIONS // 256)] = 64  # 9tka's slides get 256 playouts for each
    """Simulations of the Gumbel search per position."""
    considered: Annotated[int, Field(ge=1, le=1024)] = 16
    """Root actions that the Gumbel search considers."""
    leaf_playouts: TreePlayouts = 32
    """Playouts of a tree search from each position that the Gumbel search evaluates; they are half of its value."""
    drawn_plies: CountOr0 = 60
    """The network's games draw moves from the policy up to a random ply below this limit and below three quarters of
    the longest game. Only later positions are kept."""
    share: Fraction = 0.1
    """Probability that a position is searched. Moves of the network's games are chosen by its policy alone."""
    value_share: Fraction = 0.2
    """Probability that a position is kept without search, with its game's result as target."""
    value_mix: Fraction = 0.5
    """Share of the search's values in the value target; the rest is the winner."""
    window: Batch = 20
    """Number of newest rounds to learn from."""
    steps: Count = 100
    """Gradient steps per round."""
    minibatch: Batch = 1024
    """Positions per gradient step."""
    microbatch: Batch = 512
    """Positions per forward and backward pass, whose gradients are summed; small ones fit the processor's cache."""
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
    """The run's folder under runs/: letters, digits, and - _ . between them."""
    game: str | Annotated[tuple[str, ...], Field(min_length=1, max_length=100)] = DEFAULT
    """The game to learn with its options, such as go:komi=6.5; or several variants of one game with the same states and
    planes, for one network."""
    algorithm: Literal["ppo", "alphazero"] = "ppo"
    """The algorithm: self-play with PPO, or AlphaZero, which learns from games played by search."""
    players: Annotated[tuple[Annotated[int, Field(ge=2, le=4)], ...], Field(min_length=1, max_length=100)] = (2,)
    """Numbers of players to learn with one network; one given twice gets twice the games. Go, Kropki: 2."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of weights, games and the order of examples."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """CPU threads; 0 for one per core. Agents given by specs have their own option: maxn:threads=1."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of the network; auto uses a GPU if there is one."""
    bf16: bool | Literal["auto"] = "auto"
    """Multiply in bfloat16; auto: on GPUs and processors with hardware support."""
    checkpoint_every: Count = 20
    """Rollouts (PPO) or rounds (AlphaZero) between two kept checkpoints."""
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
    def _check_game_s_own(self) -> TrainConfig:
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
    fields: dict[str, Any] = {name: (Size if type(one) is int else type(one), one) for name, one in defaults.items()}
    network: Any = create_model("NetworkSettings", __base__=NetworkSettings, __module__=__name__, **fields)
    network.shape = shape
    own = selfplay_of(game)
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
        _override(values, override)
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


def shipped_configs() -> dict[str, Path]:
    """Return the configurations that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"), key=lambda path: path.stem)}


def find_config(path: Path | str) -> Path:
    """Return the file of a configuration, given by its path or name.

    An existing file has priority. Otherwise `quick` and `configs/quick.yaml` both name the shipped configuration. In a
    clone of the repository, `gen-1` names `networks/ninetka/gen-1.yaml`.

    Raises:
        ValueError: if there is no such file; the message names the shipped configurations.
    """
    path, known = Path(path), shipped_configs()
    others = {other.stem: other for other in NETWORKS.glob("*/*.yaml")}
    try:
        if path.exists() and not path.is_dir():
            return path
    except OSError as error:
        raise ValueError(f"{shown(path)}: cannot be read: {error.strerror}") from None
    name = path.name.removesuffix(".yaml")
    places = {Path(): others | known, Path("configs"): known}
    if found := places.get(path.parent, {}).get(name):
        return found
    what = "it is a folder" if path.exists() else "No such file or directory"
    raise ValueError(
        f"{shown(path)}: cannot be read: {what}; the shipped configurations are {', '.join(known) or 'none'}, "
        "those of other networks are in the repository's folder networks/"
    )


def check_config(values: dict[str, Any], where: str = "the configuration") -> TrainConfig:
    """Make a configuration from plain values; raise `ValueError` as `load_config` does."""
    model = _class_for(values.get("game", DEFAULT))
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [_explain(problem, model) for problem in error.errors()]
        more = [f"{len(lines) - MOST_TOLD} more"] if len(lines) > MOST_TOLD else []
        raise ValueError(f"{where}: " + "; ".join([*lines[:MOST_TOLD], *more])) from None


def _class_for(game: Any) -> type[TrainConfig]:
    """Return the configuration class of a game; for an unknown game `TrainConfig`, whose check reports it."""
    spec = game if isinstance(game, str) else game[0] if isinstance(game, (list, tuple)) and game else ""
    try:
        return config_class(get_definition(str(spec).partition(":")[0]).name)
    except ValueError:
        return TrainConfig


def _override(values: dict[str, Any], text: str) -> None:
    """Apply one `key=value` to nested values."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"override {shortened(text)}: expected key=value, such as ppo.epochs=2")
    *parents, last = key.strip().split(".")
    for parent in parents:
        inner = values.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise ValueError(f"override {shortened(text)}: {shortened(parent)} holds no further keys")
        values = inner
    try:
        values[last] = _parse(value)
    except ValueError as error:
        raise ValueError(f"override {shortened(text)}: {shortened(value)} is not a YAML value: {error}") from None


def _explain(problem: Any, model: type[TrainConfig]) -> str:
    """Return a message about one problem that pydantic found."""
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        what = str(problem["msg"]).removeprefix("Value error, ").replace("a valid tuple", "a list, such as [1, 2]")
        return f"{key[:80]}={shortened(problem['input'])}: {what}" if key else what
    others = [get_definition(game).title for game in games_with_networks() if key in _known_keys(config_class(game))]
    instead = f": it is a setting of {', '.join(others)}" if others else _instead(key, _known_keys(model))
    return f"unknown key {shortened(key)}{instead}"


def _instead(key: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown key: a similar key of its section or of another one, else the section's keys."""
    section, _, last = key.rpartition(".")
    inside = [name for name in known if name.rpartition(".")[0] == section]
    for names in (inside, known):
        by_last = {name.rpartition(".")[2]: name for name in names}
        if near := nearest(last, by_last):
            return f" (did you mean {by_last[near]!r}?)"
    return f", there are {', '.join(inside)}" if section and inside else ""


def _known_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, info in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            keys += _known_keys(info.annotation, f"{prefix}{name}.")
    return keys
