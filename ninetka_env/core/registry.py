"""The registry of games, their definitions and their options.

A game's *definition* holds what generic code cannot get from the compiled rules. A *variant* is a game with chosen
options, such as `go:komi=6.5`. To add a game, read docs/guides/adding-a-game.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ninetka_env.core import verbs
from ninetka_env.core.options import Option, short_repr
from ninetka_env.core.text import did_you_mean

OptionValues = Mapping[str, Any]
"""Option values of a game by name."""


class Limits(NamedTuple):
    """Maxima over all variants that share a state dtype; they determine the sizes of arrays."""

    players: int
    actions: int
    choices: int
    """Number of choices in search: see `ninetka_env.core.verbs.write_choices`."""
    targets: int = 0
    """Number of auxiliary training targets: see `ninetka_env.core.verbs.write_targets`."""


class Sizes(NamedTuple):
    """Properties of a game that depend on its options."""

    dtype: np.dtype[Any]
    """The dtype of states, one of `Definition.dtypes`."""
    num_players: int
    num_actions: int
    """Number of actions, legal or not; actions are 0 .. num_actions - 1."""
    planes: tuple[int, int, int]
    """Shape (C, H, W) of an observation, int8 of 0 and 1."""
    max_plies: int
    """Maximum number of actions in a game. Passes that are actions count; turns that the rules skip do not."""
    num_drawn: int = 0
    """Number of actions drawn at random before the first turn: see `Game.drawn_actions`."""


@dataclass(frozen=True, eq=False, repr=False)
class Definition:
    """Everything that generic code must know about a game; see docs/guides/adding-a-game.md."""

    name: str
    """Name in commands and configurations, in lower-case letters."""
    title: str
    """Name in texts for people."""
    version: str
    """The text NAME_vN; N increases with any change of rules, actions, masks, planes or rewards."""
    options: tuple[Option, ...]
    """The game's options, in the order of the ints that `verbs.start` receives. Options of the environment, such as
    `reward` and `render_mode`, are not included."""
    sizes: Callable[[OptionValues], Sizes]
    """Returns the `Sizes` for option values; raises `ValueError` for a combination that is not allowed."""
    dtypes: Mapping[np.dtype[Any], Limits]
    """The state dtypes of the game's variants with their `Limits`; no other game may use these dtypes. All have the
    fields `num_players` and `to_move`. If variants share a dtype, the states store the option values."""
    compiled: tuple[Callable[..., Any], ...]
    """The game's implementations of verbs; each has the name of a verb in `ninetka_env.core.verbs`."""
    class_path: str
    """Location `"module:Class"` of the game's `Game` class, which is derived from `ninetka_env.core.game.Game`."""
    seats: tuple[str, ...]
    """Names of the seats in turn order, for the maximum number of players."""
    stages: tuple[str, ...] = ("moves",)
    """Names of the stages: see `verbs.stage`. If `stages_in_order`, a game record has one line of moves for each."""
    stages_in_order: bool = True
    """Whether every game has each stage once, in order."""
    score_dtype: type = np.int8
    """dtype of scores in arrays of many games."""
    renderer: str = ""
    """Name of the module with `render_ansi(game, color)` and `render_rgb(game)`; if empty, `str(game)` is shown."""
    sgf: tuple[int, str] | None = None
    """The game's number in the Smart Game Format (property `GM`), and the name of the module that reads and writes its
    SGF nodes; see `ninetka_env.core.sgf`."""
    symmetries: Callable[[OptionValues], Any] | None = None
    """Returns, for option values, K board symmetries as (K, num_actions) int64: row k maps each action to its image
    under symmetry k. Row 0 is the identity."""

    @cached_property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions of `compiled` by name."""
        return MappingProxyType({function.__name__: function for function in self.compiled})

    @cached_property
    def game_class(self) -> Any:
        """The game's `Game` class."""
        module, _, name = self.class_path.partition(":")
        return getattr(importlib.import_module(module), name)

    def option(self, name: str, others: Sequence[str] = ()) -> Option:
        """Return an option by name; `ValueError` if there is none.

        The error lists the names of all options and `others`, further names that the caller accepts.
        """
        for one in self.options:
            if one.name == name:
                return one
        known = [*(one.name for one in self.options), *others]
        meant = did_you_mean(name, known)
        raise ValueError(f"{self.name}: unknown option {short_repr(name)}, there are {', '.join(known)}{meant}")

    def variant(self, **options: Any) -> Variant:
        """Return the variant with these options; the others have their defaults.

        Raises:
            ValueError: if an option is wrong; the message names the option and the allowed values.
        """
        for name in options:
            self.option(name)
        codes = tuple(one.encode(options.get(one.name, one.default)) for one in self.options)
        return self.variant_from_codes(codes)

    def variant_from_codes(self, codes: tuple[int, ...]) -> Variant:
        """Return the variant for option values encoded as ints."""
        values = {one.name: one.decode(code) for one, code in zip(self.options, codes, strict=True)}
        return Variant(self, MappingProxyType(values), codes, self.sizes(values))

    def __repr__(self) -> str:
        """Return a text with the name of the game."""
        return f"<Definition of {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, so that another process gets the definition that is registered there."""
        return get_definition, (self.name,)


@dataclass(frozen=True, eq=False)
class Variant:
    """A game with chosen options; created by `load_variant("go:komi=6.5")` or `Definition.variant`."""

    definition: Definition
    options: OptionValues
    """All option values by name."""
    codes: tuple[int, ...]
    """The option values as ints, in the order of `Definition.options`."""
    sizes: Sizes

    @property
    def num_players(self) -> int:
        """The number of players."""
        return self.sizes.num_players

    @property
    def num_actions(self) -> int:
        """The number of actions, legal or not; actions are 0 .. num_actions - 1."""
        return self.sizes.num_actions

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of states."""
        return self.sizes.dtype

    @property
    def game_class(self) -> Any:
        """The game's `Game` class."""
        return self.definition.game_class

    @property
    def spec(self) -> str:
        """The text from which `load_variant` makes this variant; options with default values are left out."""
        changed = [f"{one.name}={self.options[one.name]}" for one in self.definition.options
                if self.options[one.name] != one.default]  # fmt: skip
        return self.definition.name + (f":{','.join(changed)}" if changed else "")

    def replace_options(self, **options: Any) -> Variant:
        """Return a variant of the same game with some options changed."""
        return self.definition.variant(**{**self.options, **options})

    def __str__(self) -> str:
        """Return the spec."""
        return self.spec

    def __eq__(self, other: object) -> bool:
        """Return whether game and options are equal."""
        return isinstance(other, Variant) and (self.definition, self.codes) == (other.definition, other.codes)

    def __hash__(self) -> int:
        """Hash game and options."""
        return hash((self.definition.name, self.codes))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name and codes, so that another process uses the game that is registered there."""
        return _make_variant, (self.definition.name, self.codes)


def _make_variant(name: str, codes: tuple[int, ...]) -> Variant:
    return get_definition(name).variant_from_codes(codes)


@dataclass
class _Registry:
    """The games that this process knows."""

    modules: dict[str, str] = field(default_factory=dict)
    """For each game of this package, by name, the module that registers the game when it is imported."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    dtypes: dict[np.dtype[Any], Definition] = field(default_factory=dict)


_REGISTRY = _Registry({name: f"ninetka_env.games.{name}.definition" for name in ("ninetka", "go", "kropki")})
DEFAULT_GAME = "ninetka"
"""The default game."""


def register(definition: Definition) -> Definition:
    """Register a game and return its definition.

    Raises:
        ValueError: if another game has the same name or dtype, a dtype is a prefix of another dtype, a field or verb is
            missing, or a function is not a valid verb.
    """
    before = _REGISTRY.definitions.get(definition.name)
    if before is not None and before is not definition:
        raise ValueError(f"game {definition.name!r}: another game of that name is registered already")
    for dtype in definition.dtypes:
        owner = _REGISTRY.dtypes.get(dtype, definition)
        if owner is not definition:
            raise ValueError(
                f"game {definition.name!r}: its dtype is the dtype of {owner.name!r}; add a field with another name"
            )
        for other in {**_REGISTRY.dtypes, **definition.dtypes}:
            if dtype != other and _is_prefix(dtype, other):
                names = ", ".join(name for name in dtype.names or () if name in (other.names or ()))
                raise ValueError(
                    f"game {definition.name!r}: the fields of a dtype are a prefix of another dtype, {names}; "
                    f"numba would confuse the two"
                )
        if lacking := {"num_players", "to_move"} - set(dtype.names or ()):
            raise ValueError(f"game {definition.name!r}: its dtype lacks {', '.join(sorted(lacking))}")
    try:
        verbs.register_functions(definition.dtypes, definition.functions)
    except ValueError as error:
        raise ValueError(f"game {definition.name!r}: {error}") from None
    _REGISTRY.definitions[definition.name] = definition
    _REGISTRY.dtypes.update(dict.fromkeys(definition.dtypes, definition))
    return definition


def _is_prefix(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether one dtype is a prefix of the other (same field names, types and offsets)."""
    names = list(zip(one.names or (), other.names or (), strict=False))
    return (
        one.fields is None
        or other.fields is None
        or all(mine == theirs and one.fields[mine][:2] == other.fields[theirs][:2] for mine, theirs in names)
    )


def known_games() -> list[str]:
    """Return the names of all games, sorted."""
    return sorted({*_REGISTRY.modules, *_REGISTRY.definitions})


def get_definition(name: str) -> Definition:
    """Return a game's definition by name; `ValueError` lists the known games."""
    if name not in _REGISTRY.definitions and name in _REGISTRY.modules:
        importlib.import_module(_REGISTRY.modules[name])
    if name not in _REGISTRY.definitions:
        known = known_games()
        raise ValueError(f"unknown game {short_repr(name)}: known are {', '.join(known)}{did_you_mean(name, known)}")
    return _REGISTRY.definitions[name]


def definition_of(dtype: np.dtype[Any]) -> Definition:
    """Return the definition of the game whose states have this dtype; `ValueError` if there is none."""
    definition = _REGISTRY.dtypes.get(dtype)  # only one lookup, because hashing a dtype is slow
    if definition is None:
        _load_all()
        definition = _REGISTRY.dtypes.get(dtype)
    if definition is None:
        raise ValueError(f"no game has the dtype {short_repr(dtype)}: known games are {', '.join(known_games())}")
    return definition


def canonical_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the registered dtype that equals this one; `ValueError` if there is none.

    Equal dtypes may differ in their alignment, for example after `np.save` and `np.load`, and numba would compile code
    for each of them.
    """
    return next(own for own in definition_of(dtype).dtypes if own == dtype)


def _load_all() -> None:
    """Import all games of this package."""
    for name in _REGISTRY.modules:
        get_definition(name)


verbs.on_unknown_dtype(_load_all)


def limits_of(dtype: np.dtype[Any]) -> Limits:
    """Return the limits for a state dtype; `ValueError` if it belongs to no game."""
    return definition_of(dtype).dtypes[dtype]


def load_variant(spec: str | Variant = DEFAULT_GAME, **options: Any) -> Variant:
    """Return the variant of a spec: `"ninetka"`, `"go:komi=6.5"`, `"kropki:width=12,height=12"`.

    Args:
        spec: the spec, or a variant.
        options: further options; they override the options in `spec`.

    Raises:
        ValueError: if the game or an option is wrong; the message names it and the allowed values.
    """
    if isinstance(spec, Variant):
        return spec.replace_options(**options) if options else spec
    if not isinstance(spec, str):
        raise ValueError(f"game={short_repr(spec)}: expected text, such as {DEFAULT_GAME!r}")
    name, _, text = spec.partition(":")
    definition = get_definition(name)
    return definition.variant(**{**_parse(definition, text.split(",")), **options})


def with_players(variant: Variant, num_players: int) -> Variant:
    """Return the variant for `num_players` players; `ValueError` if its game does not allow that number."""
    if num_players == variant.num_players:
        return variant
    if all(option.name != "num_players" for option in variant.definition.options):
        raise ValueError(
            f"num_players={short_repr(num_players)}: {variant.definition.title} has {variant.num_players} players"
        )
    return variant.replace_options(num_players=num_players)


def _parse(definition: Definition, items: Iterable[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in filter(None, items):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{definition.name}: expected option=value, found {short_repr(item)}")
        if key in values:
            raise ValueError(f"{definition.name}: option {short_repr(key)} is given twice")
        values[key] = definition.option(key).parse(value)
    return values
