"""The settings of a training run: typed, a sentence each, read from YAML, overridden by `key=value`.

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
"""Of things that are in memory at once."""
TreePlayouts = Annotated[int, Field(ge=0, le=MOST_SIMULATIONS)]
"""As many as one tree may have."""
Size = Annotated[int, Field(ge=0, le=4096)]
"""Of a network; its own configuration says what is too small."""

MOST_TOLD = 5
"""Keys that an error tells of."""
_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED, _CHECKOUT = _PACKAGE / "configs", _PACKAGE.parents[1] / "configs"
CONFIGS = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
"""Where the shipped configurations are: in the installed package, or in the checkout it is imported from."""


def check_name(name: str) -> str:
    """Return the name of a run; `ValueError` unless every system takes it for the name of one folder."""
    if not re.fullmatch(r"\w(?:[\w.+-]{0,98}\w)?", name, re.ASCII) or re.match(_RESERVED, name, re.IGNORECASE):
        raise ValueError("expected up to 100 of A..Z a..z 0..9 _, and - + . between them, and no name of a device")
    return name


_RESERVED = r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)"
"""Names that Windows takes for devices."""


class _Settings(BaseModel):
    """Settings that refuse unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class NetworkSettings(_Settings):
    """The shape of the network: the fields of the `NetworkConfig` of its game, which `config_class` puts in here."""

    shape: ClassVar[Any] = None
    """That `NetworkConfig`."""

    @model_validator(mode="after")
    def _check(self) -> NetworkSettings:
        self.build()
        return self

    def build(self) -> Any:
        """Return the network's own configuration."""
        return self.shape(**self.model_dump())


class PPOSettings(_Settings):
    """Self-play with proximal policy optimisation."""

    moves: Count = 3_000_000
    """Moves to see in all; the run ends after the rollout that reaches it."""
    games: Batch = 512
    """Games stepped at once, shared out evenly over the variants."""
    plies: Batch = 32
    """Plies per game and rollout; a learning batch is games x plies moves."""
    minibatch: Batch = 2048
    """Moves per gradient step."""
    microbatch: Batch = 512
    """Moves per forward and backward pass; smaller ones stay in the processor's cache, gradients are summed."""
    epochs: Count = 1
    """Passes over a rollout's moves."""
    learning_rate: Positive = 1e-3
    """AdamW's step size at the start; it falls to `final_learning_rate` in a straight line over the run."""
    final_learning_rate: Positive = 1e-4
    """The step size at the end."""
    weight_decay: Finite = 0.0
    """AdamW's weight decay."""
    clip: Positive = 0.2
    """How far a probability may move away from the one the move was played with, as a ratio, before it is ignored."""
    entropy: Finite = 0.02
    """Weight of the policy's entropy at the start; it falls to `final_entropy` in a straight line."""
    final_entropy: Finite = 0.003
    """The entropy's weight at the end."""
    discount_lambda: Fraction = 0.95
    """Lambda of the advantages, over each seat's own decisions (rewards come at the end only, undiscounted)."""
    value_weight: Finite = 1.0
    """Weight of the value's cross-entropy."""
    owner_weight: Finite = 0.2
    """Weight of the cross-entropy of the sections' or points' final owners, where the game ended within the rollout."""
    score_weight: Finite = 0.02
    """Weight of the final score's loss (see `ninetka_train.learning.losses.score_losses`), there too."""
    gradient_norm: Positive = 1.0
    """Gradients are scaled down to at most this norm."""
    league_share: Fraction = 0.0
    """Share of the games in which one seat learns and the others are held by an opponent from the league; drawn for
    all games anew with each rollout, also for those that are under way."""
    league_size: Batch = 8
    """Past selves kept; when full, a random older one makes room."""
    league_every: Count = 20
    """Rollouts between two past selves."""
    league_agents: tuple[str, ...] = ()
    """Specs of further opponents in the league, such as maxn; they are asked move by move and may be slow."""

    @model_validator(mode="after")
    def _check(self) -> PPOSettings:
        if self.minibatch % self.microbatch:
            raise ValueError(f"minibatch={self.minibatch}: expected a multiple of microbatch={self.microbatch}")
        if self.league_agents and not self.league_share:
            raise ValueError("league_agents: expected league_share above 0, else they play no games")
        return self


class AlphaZeroSettings(_Settings):
    """Learning from searched games: first with random playouts, then with the network."""

    rounds: Count = 20
    """Times that new games are played and learned from."""
    games: Batch = 100
    """Games per round and variant of the game (9tka: number of players)."""
    task_games: Batch = 64
    """A round's games are played in tasks of so many at most, each on its own: what the games of a task share is the
    network's batches, so that results hang on it by rounding."""
    overlap: bool = False
    """Play a round's games while the network learns from the round before, by its weights from before that: nobody
    waits, but games are a round of learning behind, and a resumed run is not what an unbroken one would have been."""
    playout_rounds: CountOr0 = 20
    """So many rounds at the start search with random playouts; the later ones with the network."""
    playouts: Annotated[int, Field(ge=2, le=65535)] = 400
    """Playouts per move of a playout round."""
    teacher: Annotated[str, Field(max_length=200)] = ""
    """That search as an agent's spec, without its simulations; empty for the strongest that the game has, such as
    mcts:rave,playouts=heavy in Go. Or net:CHECKPOINT: a network without search, whose policy (power 1) and values
    (teacher_mix 1) this one learns, such as a smaller one that is to be as good (distillation)."""
    exploration: Finite = 0.7
    """The exploration constant of that search, if it is plain UCT."""
    greedy: Fraction = 0.75
    """Chance that a move of a playout round is the most visited one; else it is drawn by visits."""
    power: Positive = 12.0
    """The policy learns visits ** power: above 1 is sharper than that search, whose visits are nearly even."""
    teacher_mix: Fraction = 0.0
    """Share of that search's own values in the value's target; the rest is who won."""
    decided: Annotated[float, Field(gt=0.5, le=1)] = 1.0
    """A seat whose chance to win is higher has won: a game of a playout round is then played on by a quarter of the
    playouts, and in all rounds a tenth of the positions are kept that there else would be; 1: no game is decided."""
    simulations: Annotated[int, Field(ge=1, le=MOST_SIMULATIONS // 256)] = 64  # 9tka's slides get 256 playouts for each
    """Simulations of the Gumbel search."""
    considered: Annotated[int, Field(ge=1, le=1024)] = 16
    """Root actions that it considers."""
    leaf_playouts: TreePlayouts = 32
    """Playouts of a tree search from each position that it evaluates, which count half in its value."""
    drawn_plies: CountOr0 = 60
    """The network's games draw their moves from the policy up to a random ply below this, and below three quarters of
    the longest game; positions are kept from there on."""
    share: Fraction = 0.1
    """Chance that a position is searched; the network's games go on by its policy alone."""
    value_share: Fraction = 0.2
    """Chance that one is kept without search, to learn from how its game ended."""
    value_mix: Fraction = 0.5
    """Share of the search's own values in the value's target; the rest is who won."""
    window: Batch = 20
    """Rounds whose positions are kept to learn from."""
    steps: Count = 100
    """Gradient steps per round."""
    minibatch: Batch = 1024
    """Positions per gradient step."""
    microbatch: Batch = 512
    """Positions per forward and backward pass; smaller ones stay in the processor's cache, gradients are summed."""
    learning_rate: Positive = 2e-3
    """AdamW's step size at the start; it falls to 1 % in a straight line over the run."""
    warm_up: Count = 100
    """Steps over which the step size first grows from almost nothing."""
    owner_weight: Finite = 0.3
    """Weight of the cross-entropy of the final owners, of sections or points."""
    score_weight: Finite = 0.02
    """Weight of the final score's loss (see `ninetka_train.learning.losses.score_losses`), if the network tells one."""
    turned: bool = True
    """Turn each example by a random symmetry of the board, if its network can."""


class TrainConfig(_Settings):
    """A whole run."""

    name: Annotated[str, AfterValidator(check_name)] = "run"
    """The run's folder under runs/: letters, digits, and - _ . between them."""
    game: str | Annotated[tuple[str, ...], Field(min_length=1, max_length=100)] = DEFAULT
    """What to learn: a game that has networks, with its options, such as go:komi=6.5; or several variants of one game
    whose records and planes are alike, all in one network."""
    algorithm: Literal["ppo", "alphazero"] = "ppo"
    """How to learn: self-play with PPO, or from searched games."""
    players: Annotated[tuple[Annotated[int, Field(ge=2, le=4)], ...], Field(min_length=1, max_length=100)] = (2,)
    """Player counts to learn, all in one network; one that is named twice gets twice the games. Go and Kropki: 2."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Decides weights, games and the order of learning."""
    threads: Annotated[int, Field(ge=0, le=1024)] = 0
    """CPU threads; 0 for one per core. Agents that are named by specs have options of their own: maxn:threads=1."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network runs; auto takes a GPU if there is one."""
    bf16: bool | Literal["auto"] = "auto"
    """Multiply in bfloat16; auto: on GPUs and processors that have it in hardware."""
    checkpoint_every: Count = 20
    """Rollouts, or rounds, between two checkpoints that are kept."""
    checkpoint_minutes: Positive = 5.0
    """After this time another checkpoint is written at the end of a rollout, or round. It serves resuming only and is
    replaced by the next one."""
    start_from: str = ""
    """Checkpoint whose weights to start from; empty for fresh ones."""
    network: Any = None
    """The network's shape, the fields of its game's `NetworkConfig`; see `config_class`."""
    ppo: PPOSettings = PPOSettings()
    """Settings of PPO."""
    alphazero: AlphaZeroSettings = AlphaZeroSettings()
    """Settings of AlphaZero, those that its game adds included; see `config_class`."""

    @property
    def definition(self) -> Definition:
        """The game."""
        return self.variants[0].definition

    @functools.cached_property
    def variants(self) -> tuple[Variant, ...]:
        """What is learned: each spec of `game` at each number of `players`."""
        specs = (self.game,) if isinstance(self.game, str) else self.game
        return tuple(with_players(load_variant(spec), players) for spec in specs for players in self.players)

    @field_validator("game")
    @classmethod
    def _check_game(cls, game: str | tuple[str, ...]) -> str | tuple[str, ...]:
        variants = [load_variant(spec) for spec in ((game,) if isinstance(game, str) else game)]
        network_of(variants[0].definition.name)
        for variant in variants:
            if variant.options.get("num_players", 2) != 2:
                raise ValueError(f"{variant}: numbers of players are told by players=[...]")
            if (variant.dtype, variant.sizes.planes) != (variants[0].dtype, variants[0].sizes.planes):
                raise ValueError(
                    f"{variant} and {variants[0]} differ in records or planes: one network cannot learn both"
                )
        return game

    @model_validator(mode="after")
    def _check_game_s_own(self) -> TrainConfig:
        """Refuse numbers of players, and a teacher, that the game does not have."""
        name, settings = self.definition.name, self.alphazero
        if self.algorithm == "ppo" and set(self.variants[: self.ppo.games]) != set(self.variants):
            raise ValueError(f"ppo.games={self.ppo.games}: too few for each of {len(self.variants)} variants")
        make_teacher(name, settings.teacher, settings.playouts, settings.exploration)
        return self


@functools.cache
def config_class(game: str) -> type[TrainConfig]:
    """Return the configuration whose `network` and `alphazero` have the settings of a game.

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
        overrides: `key=value` with dots for nested keys, the value in YAML: `ppo.epochs=2`, `players=[2, 3]`.

    Raises:
        ValueError: naming the file and each key that is unknown (and the nearest known one) or has a wrong value; or
            the shipped configurations, if there is no such file.
    """
    where = str(path) if path else "the configuration"
    values = read_settings(find_config(path)) if path else {}
    for override in overrides:
        _override(values, override)
    return check_config(values, where)


class _Loader(yaml.SafeLoader):
    """Reads plain values, and no key twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = []
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark)
            seen.append(key.value)
        return super().construct_mapping(node, deep)


def _parse(text: str) -> Any:
    """Return the value that a YAML text means; `ValueError` says what is wrong, and where that is known the line."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem or error.context}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except Exception as error:  # a character that YAML does not allow, a date such as 2024-13-45
        raise ValueError(str(error).partition("\n")[0]) from None


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values; `ValueError` names the file and says what is wrong with it."""
    try:
        values = _parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is no text in UTF-8: {error.reason} at byte {error.start}") from None
    except ValueError as error:
        raise ValueError(f"{path}: is no YAML of settings: {error}") from None
    if not isinstance(values, dict | None):
        raise ValueError(f"{path}: expected keys and values, got {type(values).__name__}")
    return values or {}


def shipped_configs() -> dict[str, Path]:
    """Return the configurations that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"), key=lambda path: path.stem)}


def find_config(path: Path | str) -> Path:
    """Return the file that a path, or the name of a known configuration, stands for.

    A file that exists comes first. Else `quick` and `configs/quick.yaml` both name the shipped one, wherever one is. In
    a clone of the repository, `gen-1` names `networks/ninetka/gen-1.yaml`.

    Raises:
        ValueError: if it is neither, naming the shipped ones.
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
    """Make a configuration of plain values; raises `ValueError` as `load_config` does."""
    model = _class_for(values.get("game", DEFAULT))
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [_explain(problem, model) for problem in error.errors()]
        more = [f"{len(lines) - MOST_TOLD} more"] if len(lines) > MOST_TOLD else []
        raise ValueError(f"{where}: " + "; ".join([*lines[:MOST_TOLD], *more])) from None


def _class_for(game: Any) -> type[TrainConfig]:
    """Return the configuration for what `game` names; the general one, which says what is wrong, if it is no game."""
    spec = game if isinstance(game, str) else game[0] if isinstance(game, (list, tuple)) and game else ""
    try:
        return config_class(get_definition(str(spec).partition(":")[0]).name)
    except ValueError:
        return TrainConfig


def _override(values: dict[str, Any], text: str) -> None:
    """Set one `key=value` in nested values."""
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
        raise ValueError(f"override {shortened(text)}: {shortened(value)} is no YAML value: {error}") from None


def _explain(problem: Any, model: type[TrainConfig]) -> str:
    """Say what is wrong with one key."""
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        what = str(problem["msg"]).removeprefix("Value error, ").replace("a valid tuple", "a list, such as [1, 2]")
        return f"{key[:80]}={shortened(problem['input'])}: {what}" if key else what
    others = [get_definition(game).title for game in games_with_networks() if key in _known_keys(config_class(game))]
    instead = f": it is a setting of {', '.join(others)}" if others else _instead(key, _known_keys(model))
    return f"unknown key {shortened(key)}{instead}"


def _instead(key: str, known: Sequence[str]) -> str:
    """Say what an unknown key may have been meant to be: one of its section, or of another; else what there is."""
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
