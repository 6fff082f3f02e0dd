"""The registry of games, their definitions and their options.

A game's *definition* holds what generic code cannot get from the compiled rules. A *variant* is a game with chosen
options, such as `go:komi=6.5`. To add a game, read docs/guides/adding-a-game.md.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ninetka_env.core import imports, verbs
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
    """Name in commands and configurations, in lower-case letters; digits, `_` and `-` are allowed, `python` is not."""
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
    """Location `"module:Class"` of the game's `Game` class, which is derived from `ninetka_env.core.game.Game`.

    A pickle of the definition or of a variant names this module, so that another process imports it: importing the
    module must register the game. (For a game that was loaded by a spec `python:MODULE:NAME`, the pickle names MODULE.)
    """
    seats: tuple[str, ...]
    """Names of the seats in turn order, for the maximum number of players."""
    stages: tuple[str, ...] = ("moves",)
    """Names of the stages: see `verbs.stage`. If `stages_in_order`, a game record has one line of moves for each."""
    stages_in_order: bool = True
    """Whether every game has each stage once, in order."""
    score_dtype: type = np.int8
    """dtype of scores in arrays of many games."""
    renderer: str = ""
    """Name of the module with `render_ansi(game, color)` and `render_rgb(game)`; if empty, `str(game)` is shown.

    If `render_rgb` has a parameter `theme`, the game also has dark pictures."""
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
        there = ", ".join(known) or "none"
        raise ValueError(f"{self.name}: unknown option {short_repr(name)}, there are {there}{meant}")

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
        """Pickle by name and module, so that another process gets the definition that is registered there."""
        return _restore_definition, (self.name, _place_of(self))


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
        """Pickle by name, codes and module, so that another process uses the game that is registered there."""
        return _make_variant, (self.definition.name, self.codes, _place_of(self.definition))


def _make_variant(name: str, codes: tuple[int, ...], place: str = "") -> Variant:
    return _restore_definition(name, place).variant_from_codes(codes)


def _place_of(definition: Definition) -> str:
    """Return what a pickle names: the `"MODULE:NAME"` of the spec that loaded the game, or the module of its class."""
    return _REGISTRY.places.get(definition.name, definition.class_path.partition(":")[0])


def _restore_definition(name: str, place: str) -> Definition:
    """Return the definition named by a pickle, after an import of `place` if this process does not know the game.

    Raises:
        ValueError: if the import fails, or does not register the game.
    """
    known = name in _REGISTRY.definitions or name in _REGISTRY.modules or name in imports.entry_points(imports.GAMES)
    if known or not place:
        return get_definition(name)
    asked = f"game {short_repr(name)} of a pickle"
    if ":" in place:
        _import_definition(place, asked)
        _REGISTRY.places.setdefault(name, place)
    else:
        imports.import_module(place, asked)
    if name not in _REGISTRY.definitions:
        raise ValueError(f"{asked}: the import of {place!r} does not register it")
    return _REGISTRY.definitions[name]


@dataclass
class _Registry:
    """The games that this process knows."""

    modules: dict[str, str] = field(default_factory=dict)
    """For each game of this package, by name, the module that registers the game when it is imported."""
    places: dict[str, str] = field(default_factory=dict)
    """For each game that was loaded by a spec `python:MODULE:NAME`, by name, the place `"MODULE:NAME"`."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    dtypes: dict[np.dtype[Any], Definition] = field(default_factory=dict)


PACKAGE_GAMES = ("ninetka", "go", "kropki")
"""The games of this package."""
_REGISTRY = _Registry({name: f"ninetka_env.games.{name}.definition" for name in PACKAGE_GAMES})
DEFAULT_GAME = "ninetka"
"""The default game."""


def register(definition: Definition) -> Definition:
    """Register a game and return its definition.

    Raises:
        ValueError: if the name is not allowed, another game has the same name or dtype, a dtype is a prefix of another
            dtype, a field or verb is missing, or a function is not a valid verb.
    """
    if not re.fullmatch(r"[a-z0-9_-]+", definition.name) or definition.name == imports.PREFIX:
        raise ValueError(
            f"game {short_repr(definition.name)}: a name has lower-case letters, digits, _ and -, and is not 'python'"
        )
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
    """Return the names of all games, sorted: those of this package, registered ones, and those of installed packages.

    Installed packages offer games as entry points of the group `ninetka.games`, which are not imported for this list.
    """
    return sorted({*_REGISTRY.modules, *_REGISTRY.definitions, *imports.entry_points(imports.GAMES)})


def definitions() -> Iterator[Definition]:
    """Yield the definitions of all games: those of this package, registered ones, then those of installed packages.

    A game of an installed package is imported when its turn comes, and left out if its import fails.
    """
    known = dict.fromkeys([*_REGISTRY.modules, *_REGISTRY.definitions])
    yield from map(get_definition, known)
    for name in imports.entry_points(imports.GAMES):
        if name not in known:
            with suppress(ValueError):
                yield get_definition(name)


def get_definition(name: str) -> Definition:
    """Return a game's definition by name; this imports no module that the name itself contains.

    Raises:
        ValueError: if the game is unknown, or if it cannot be imported from the package that offers it. The message
            lists the known games, or says what fails.
    """
    if name not in _REGISTRY.definitions:
        if name in _REGISTRY.modules:
            importlib.import_module(_REGISTRY.modules[name])
        elif (place := imports.entry_points(imports.GAMES).get(name)) is not None:
            found = _import_definition(place, f"game {name!r} of an installed package")
            if found.name != name:
                raise ValueError(f"game {name!r} of an installed package: {place} is the game {found.name!r}")
    if name not in _REGISTRY.definitions:
        known = known_games()
        raise ValueError(f"unknown game {short_repr(name)}: known are {', '.join(known)}{did_you_mean(name, known)}")
    return _REGISTRY.definitions[name]


def _import_definition(place: str, asked: str) -> Definition:
    """Import and register the definition at `"MODULE:NAME"`; `ValueError` starts with the words `asked`."""
    found = imports.import_place(place, asked)
    if not isinstance(found, Definition):
        raise ValueError(f"{asked}: {place} is {short_repr(found)}, expected the Definition of a game")
    return register(found)


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
    """Import all games, also those of installed packages."""
    for _ in definitions():
        pass


verbs.on_unknown_dtype(_load_all)


def limits_of(dtype: np.dtype[Any]) -> Limits:
    """Return the limits for a state dtype; `ValueError` if it belongs to no game."""
    return definition_of(dtype).dtypes[dtype]


def load_variant(spec: str | Variant = DEFAULT_GAME, **options: Any) -> Variant:
    """Return the variant of a spec: `"ninetka"`, `"go:komi=6.5"`, `"kropki:width=12,height=12"`.

    A game's title and capital letters are understood, too: `"9tka"`, `"Go"`.

    A spec `"python:MODULE:NAME,option=value"` imports a module and takes the `Definition` NAME in it. From then on,
    this process knows the game by its name. Such a spec runs code, so do not take it from a file or another user.

    Args:
        spec: the spec, or a variant.
        options: further options; they override the options in `spec`.

    Raises:
        ValueError: if the game or an option is wrong, or a module cannot be imported; the message names it, and the
            allowed values or what fails.
    """
    if isinstance(spec, Variant):
        return spec.replace_options(**options) if options else spec
    if not isinstance(spec, str):
        raise ValueError(f"game={short_repr(spec)}: expected text, such as {DEFAULT_GAME!r}")
    definition, text = definition_of_spec(spec)
    return definition.variant(**{**_parse(definition, text.split(",")), **options})


def definition_of_spec(spec: str) -> tuple[Definition, str]:
    """Return the definition that a game's spec names, and the text of the options; raises as `load_variant` does."""
    own = imports.split_spec(spec)
    if own is None:
        name, _, text = spec.partition(":")
        return get_definition(_name_as_known(name)), text
    place, text = own
    definition = _import_definition(place, f"game {short_repr(spec)}")
    _REGISTRY.places.setdefault(definition.name, place)
    return definition, text


def _name_as_known(name: str) -> str:
    """Return the name of the game that a user means: the name itself, in any case, or the game's title.

    A text that is neither is returned unchanged.
    """
    wanted = name.strip().lower()
    if wanted in known_games():
        return wanted
    return next((one.name for one in definitions() if one.title.lower() == wanted), name)


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
