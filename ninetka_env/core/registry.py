"""What a game is to the rest of the house: its definition, its options, and the register of all games.

A game's *definition* says what generic code must know and cannot ask the compiled rules; a *variant* is a game with its
options chosen, such as `go:komi=6.5`.
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
from ninetka_env.core.options import Option, shortened
from ninetka_env.core.text import did_you_mean

Values = Mapping[str, Any]
"""Options of a game by name, each with its value."""


class Limits(NamedTuple):
    """The most that any game of one record type can have: how large arrays must be that hold what is known of it."""

    players: int
    actions: int
    choices: int
    """Numbers that stand for actions in search: see `ninetka_env.core.verbs.write_choices`."""
    targets: int = 0
    """What a network may foresee beside the winner: see `ninetka_env.core.verbs.write_targets`."""


class Sizes(NamedTuple):
    """What the options of a game decide."""

    dtype: np.dtype[Any]
    """Of the records, one of `Definition.dtypes`."""
    num_players: int
    num_actions: int
    """Actions are 0 .. num_actions - 1."""
    planes: tuple[int, int, int]
    """(C, H, W) of an observation, int8 of 0 and 1."""
    most_plies: int
    """No game has more actions: passes that players must play count, those that the rules play do not."""
    drawn: int = 0
    """What chance plays before the first turn: how many actions. See `Game.drawn_actions`."""


@dataclass(frozen=True, eq=False, repr=False)
class Definition:
    """Everything that generic code must know of a game; see docs/guides/adding-a-game.md."""

    name: str
    """How commands and configurations call it: lower-case letters."""
    title: str
    """How people call it."""
    version: str
    """NAME_vN: raised with any change of rules, actions, masks, planes or rewards."""
    options: tuple[Option, ...]
    """In the order of the ints that `verbs.start` receives. The environment's own (reward, rendering) are not among
    them."""
    sizes: Callable[[Values], Sizes]
    """What the options decide; raises `ValueError` for a combination that cannot be."""
    dtypes: Mapping[np.dtype[Any], Limits]
    """The record types that the game's variants have, each of this game alone. All have the fields `num_players` and
    `to_move`. A record type may serve several values of options, then its records hold them."""
    compiled: tuple[Callable[..., Any], ...]
    """The game's own functions, by their names the verbs of `ninetka_env.core.verbs`."""
    game: str
    """Where the class of its readable positions is, `"module:Class"`, one derived from `ninetka_env.core.game.Game`."""
    seats: tuple[str, ...]
    """What people call the seats, in turn order: as many as there can be players."""
    stages: tuple[str, ...] = ("moves",)
    """Stages of the game: see `verbs.stage`. In a game record, each has a line of its moves if `stages_follow`."""
    stages_follow: bool = True
    """Whether stages follow one another, each once, in order."""
    score_dtype: type = np.int8
    """Of the scores in arrays of many games."""
    pictures: str = ""
    """The module that draws positions, with `render_ansi(game)` and `render_rgb(game)`; empty for a plain one."""
    sgf: tuple[int, str] | None = None
    """The game's number in the Smart Game Format, and the module that reads and writes its records in it; see
    `ninetka_env.core.sgf`."""
    symmetries: Callable[[Values], Any] | None = None
    """Returns (K, num_actions) int64: where each symmetry of the board takes each action, the first one none."""

    @cached_property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """`compiled` by name."""
        return MappingProxyType({function.__name__: function for function in self.compiled})

    @cached_property
    def game_class(self) -> Any:
        """The class of its readable positions."""
        module, _, name = self.game.partition(":")
        return getattr(importlib.import_module(module), name)

    def option(self, name: str, others: Sequence[str] = ()) -> Option:
        """Return an option by name; `ValueError` names those that there are, and `others` that the caller takes."""
        for one in self.options:
            if one.name == name:
                return one
        known = [*(one.name for one in self.options), *others]
        meant = did_you_mean(name, known)
        raise ValueError(f"{self.name}: unknown option {shortened(name)}, there are {', '.join(known)}{meant}")

    def variant(self, **options: Any) -> Variant:
        """Choose options; those left out have their defaults.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        for name in options:
            self.option(name)
        codes = tuple(one.encode(options.get(one.name, one.default)) for one in self.options)
        return self.decoded(codes)

    def decoded(self, codes: tuple[int, ...]) -> Variant:
        """Return the variant that the ints of compiled code stand for."""
        values = {one.name: one.decode(code) for one, code in zip(self.options, codes, strict=True)}
        return Variant(self, MappingProxyType(values), codes, self.sizes(values))

    def __repr__(self) -> str:
        """Name the game."""
        return f"<Definition of {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process is the one registered there."""
        return get_definition, (self.name,)


@dataclass(frozen=True, eq=False)
class Variant:
    """A game with its options chosen; `load_variant("go:komi=6.5")` and `Definition.variant` make one."""

    definition: Definition
    options: Values
    """All options by name."""
    codes: tuple[int, ...]
    """The same as ints, in the order of `Definition.options`."""
    sizes: Sizes

    @property
    def num_players(self) -> int:
        """Seats at the table."""
        return self.sizes.num_players

    @property
    def num_actions(self) -> int:
        """Actions are 0 .. num_actions - 1."""
        return self.sizes.num_actions

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the records."""
        return self.sizes.dtype

    @property
    def game_class(self) -> Any:
        """The class of readable positions, `Game` of the game's public face."""
        return self.definition.game_class

    @property
    def spec(self) -> str:
        """The text that `load_variant` reads back, with the options that are not as usual."""
        told = [f"{one.name}={self.options[one.name]}" for one in self.definition.options
                if self.options[one.name] != one.default]  # fmt: skip
        return self.definition.name + (f":{','.join(told)}" if told else "")

    def replaced(self, **options: Any) -> Variant:
        """Return the variant with some options changed."""
        return self.definition.variant(**{**self.options, **options})

    def __str__(self) -> str:
        """Return the spec."""
        return self.spec

    def __eq__(self, other: object) -> bool:
        """Compare game and options."""
        return isinstance(other, Variant) and (self.definition, self.codes) == (other.definition, other.codes)

    def __hash__(self) -> int:
        """Hash game and options."""
        return hash((self.definition.name, self.codes))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process is made from the game that is registered there."""
        return _make_variant, (self.definition.name, self.codes)


def _make_variant(name: str, codes: tuple[int, ...]) -> Variant:
    return get_definition(name).decoded(codes)


@dataclass
class _Register:
    """All games known to this process."""

    modules: dict[str, str] = field(default_factory=dict)
    """By name, the module that registers a game when it is imported."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    dtypes: dict[np.dtype[Any], Definition] = field(default_factory=dict)


_REGISTER = _Register({name: f"ninetka_env.games.{name}.definition" for name in ("ninetka", "go", "kropki")})
DEFAULT = "ninetka"
"""The game that is meant unless told."""


def register(definition: Definition) -> Definition:
    """Make a game known; returns its definition.

    Raises:
        ValueError: if another game has its name or one of its record types, or something is missing or misnamed.
    """
    before = _REGISTER.definitions.get(definition.name)
    if before is not None and before is not definition:
        raise ValueError(f"game {definition.name!r}: another game of that name is registered already")
    for dtype in definition.dtypes:
        owner = _REGISTER.dtypes.get(dtype, definition)
        if owner is not definition:
            raise ValueError(
                f"game {definition.name!r}: its record type is that of {owner.name!r}; give it a field of its own"
            )
        for other in {**_REGISTER.dtypes, **definition.dtypes}:
            if dtype != other and _begin_alike(dtype, other):
                names = ", ".join(name for name in dtype.names or () if name in (other.names or ()))
                raise ValueError(
                    f"game {definition.name!r}: the fields of a record type are the first ones of another, {names}; "
                    f"numba would take one for the other"
                )
        if lacking := {"num_players", "to_move"} - set(dtype.names or ()):
            raise ValueError(f"game {definition.name!r}: its records lack {', '.join(sorted(lacking))}")
    try:
        verbs.define(definition.dtypes, definition.functions)
    except ValueError as error:
        raise ValueError(f"game {definition.name!r}: {error}") from None
    _REGISTER.definitions[definition.name] = definition
    _REGISTER.dtypes.update(dict.fromkeys(definition.dtypes, definition))
    return definition


def _begin_alike(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Tell whether all fields of one of the types are the first fields of the other, in name, kind and place."""
    names = list(zip(one.names or (), other.names or (), strict=False))
    return (
        one.fields is None
        or other.fields is None
        or all(mine == theirs and one.fields[mine][:2] == other.fields[theirs][:2] for mine, theirs in names)
    )


def known_games() -> list[str]:
    """Return the names of all games, sorted."""
    return sorted({*_REGISTER.modules, *_REGISTER.definitions})


def get_definition(name: str) -> Definition:
    """Return a game's definition by name; `ValueError` names the games that there are."""
    if name not in _REGISTER.definitions and name in _REGISTER.modules:
        importlib.import_module(_REGISTER.modules[name])
    if name not in _REGISTER.definitions:
        known = known_games()
        raise ValueError(f"unknown game {shortened(name)}: known are {', '.join(known)}{did_you_mean(name, known)}")
    return _REGISTER.definitions[name]


def definition_of(dtype: np.dtype[Any]) -> Definition:
    """Return the game whose records have this type; `ValueError` if there is none."""
    definition = _REGISTER.dtypes.get(dtype)  # once, since finding the hash of a type takes as long as the rest
    if definition is None:
        _load_all()
        definition = _REGISTER.dtypes.get(dtype)
    if definition is None:
        raise ValueError(f"records of {shortened(dtype)} belong to no game: known are {', '.join(known_games())}")
    return definition


def own_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a game that equals this one; `ValueError` if there is none.

    Equal dtypes may differ in their alignment, such as after `np.save` and `np.load`, and numba compiles code for each.
    """
    return next(own for own in definition_of(dtype).dtypes if own == dtype)


def _load_all() -> None:
    """Import every game of this package."""
    for name in _REGISTER.modules:
        get_definition(name)


verbs.when_unknown(_load_all)


def limits_of(dtype: np.dtype[Any]) -> Limits:
    """Return the most that games of this record type can have."""
    return definition_of(dtype).dtypes[dtype]


def load_variant(spec: str | Variant = DEFAULT, **options: Any) -> Variant:
    """Return the game that a text names, with its options: `"ninetka"`, `"go:komi=6.5"`, `"kropki:width=12,height=12"`.

    Args:
        spec: the text; a variant is taken as it is.
        options: further options, which come before those of the text.

    Raises:
        ValueError: naming the game or option that is wrong and what is allowed.
    """
    if isinstance(spec, Variant):
        return spec.replaced(**options) if options else spec
    if not isinstance(spec, str):
        raise ValueError(f"game={shortened(spec)}: expected text, such as {DEFAULT!r}")
    name, _, text = spec.partition(":")
    definition = get_definition(name)
    return definition.variant(**{**_parse(definition, text.split(",")), **options})


def with_players(variant: Variant, num_players: int) -> Variant:
    """Return a variant for so many players; `ValueError` if its game has not the choice."""
    if num_players == variant.num_players:
        return variant
    if all(option.name != "num_players" for option in variant.definition.options):
        raise ValueError(
            f"num_players={shortened(num_players)}: {variant.definition.title} has {variant.num_players} players"
        )
    return variant.replaced(num_players=num_players)


def _parse(definition: Definition, items: Iterable[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in filter(None, items):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{definition.name}: expected option=value, found {shortened(item)}")
        if key in values:
            raise ValueError(f"{definition.name}: option {shortened(key)} is given twice")
        values[key] = definition.option(key).parse(value)
    return values
