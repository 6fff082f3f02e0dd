"""Options of games, environments and agents: checks of values, with errors that name the option and what is allowed."""

from __future__ import annotations

import functools
import inspect
import math
import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> int:
    """Return the index of an option's value in `allowed`; `ValueError` names the option, the value and the choices."""
    is_bool = isinstance(value, (bool, np.bool_))
    for place, choice in enumerate(allowed):
        scalar = isinstance(value, (str, int, np.integer, np.bool_, type(None)))
        if scalar and isinstance(choice, bool) == is_bool and value == choice:
            return place
    raise ValueError(f"{name}={shortened(value)}: expected one of {', '.join(map(repr, allowed))}")


MOST_COUNTED = 1 << 53
"""The default maximum of `check_count`: floats are exact up to here, and it fits into the 64 bits of compiled code."""


def check_count(name: str, value: Any, least: int = 1, most: int = MOST_COUNTED) -> int:
    """Return the value of a counting option as int; `ValueError` unless it is an integer within the bounds."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        limit = f" and at most {most}" if most < MOST_COUNTED or (whole and value > most) else ""
        raise ValueError(f"{name}={shortened(value)}: expected an integer of at least {least}{limit}")
    return int(value)


def check_memory(name: str, value: int, bytes_each: int) -> None:
    """Raise `ValueError` if `value` items of `bytes_each` bytes do not fit into the machine's memory."""
    known = hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= os.sysconf_names.keys()
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else 1 << 40
    if value * bytes_each > most:
        needed, there = (f"{size / (1 << 30):.3g} GiB" for size in (value * bytes_each, most))
        raise ValueError(f"{name}={shortened(value)}: would take {needed} of memory, but the machine has {there}")


def check_scale(name: str, value: Any) -> float:
    """Return the value of an option as float; `ValueError` unless it is a finite number of at least 0."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise ValueError(f"{name}={shortened(value)}: expected a finite number of at least 0")
    return float(value)


def check_actions(actions: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return one action per game as (count,) int64; `TypeError` for other types, `ValueError` for other shapes."""
    try:
        chosen = np.asarray(actions)
    except ValueError:  # sequences of different lengths
        raise ValueError(f"actions: expected shape ({count},), got {shortened(actions)}") from None
    if chosen.dtype.kind not in "iu":
        raise TypeError(f"actions: expected integers, got {shortened(chosen.dtype)}")
    if chosen.shape != (count,):
        raise ValueError(f"actions: expected shape ({count},), got {chosen.shape}")
    return np.ascontiguousarray(chosen, np.int64)


def as_action(action: Any, num_actions: int) -> int:
    """Return an integer or integer scalar as int; `TypeError` for anything else, such as floats, bools and arrays."""
    if isinstance(action, (int, np.integer)) and not isinstance(action, bool):
        return int(action)
    if isinstance(action, np.ndarray) and action.ndim == 0 and np.issubdtype(action.dtype, np.integer):
        return int(action)
    raise TypeError(f"an action is an integer 0..{num_actions - 1}, got {shortened(action)}")


def shortened(value: Any) -> str:
    """Return a value's repr in one line, cut off after 80 characters, or its type if repr fails."""
    try:
        text = _SHORT.repr(value) if type(value) in (list, tuple, dict, set, frozenset) else repr(value)
    except Exception:  # an int of thousands of digits, deep recursion, or an error in a user's class
        text = f"<{type(value).__name__}>"
    text = " ".join(map(str.strip, text.split("\n")))
    return text if len(text) <= 80 else f"{text[:80]} ..."


_SHORT = reprlib.Repr()  # shows the first items only, because an item may be repeated 2 ** 30 times
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = 20


@dataclass(frozen=True)
class Option(ABC):
    """One option of a game: its name, default and meaning.

    Compiled code receives every option as an int.
    """

    name: str
    default: Any
    meaning: str

    @abstractmethod
    def encode(self, value: Any) -> int:
        """Return the int that represents a value; `ValueError` names the option and the allowed values."""

    @abstractmethod
    def decode(self, code: int) -> Any:
        """Return the value that an int represents."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """Return the value that a text represents, such as one of a command line; `ValueError` as in `encode`."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The allowed values, as text."""


@dataclass(frozen=True)
class Choice(Option):
    """An option with a few values."""

    values: tuple[Any, ...]

    def encode(self, value: Any) -> int:
        """Return the index of the value in `values`."""
        return check_choice(self.name, value, self.values)

    def decode(self, code: int) -> Any:
        """Return the value at an index."""
        return self.values[code]

    def parse(self, text: str) -> Any:
        """Return the value whose `str` is the text; booleans are also accepted in lower case."""
        for value in self.values:
            if text == str(value) or (isinstance(value, bool) and text == str(value).lower()):
                return value
        raise ValueError(f"{self.name}={shortened(text)}: expected one of {self.allowed}")

    @property
    def allowed(self) -> str:
        """The values, separated by commas."""
        return ", ".join(map(repr, self.values))


@dataclass(frozen=True)
class Whole(Option):
    """An option that is an integer within bounds; its code is the integer itself."""

    least: int
    most: int

    def encode(self, value: Any) -> int:
        """Return the number."""
        return check_count(self.name, value, self.least, self.most)

    def decode(self, code: int) -> Any:
        """Return the number."""
        return code

    def parse(self, text: str) -> Any:
        """Return the number that the text represents."""
        try:
            return self.encode(int(text))
        except ValueError:
            raise ValueError(f"{self.name}={shortened(text)}: expected {self.allowed}") from None

    @property
    def allowed(self) -> str:
        """The bounds."""
        return f"an integer {self.least}..{self.most}"


F = TypeVar("F", bound=Callable[..., Any])


def _misfit(
    function: str, places: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any], known: Collection[str]
) -> str:
    """Return the error message for arguments that do not match the signature, with Python's wording."""
    if twice := [name for name in places[: len(arguments)] if name in named]:
        return f"{function}() got multiple values for argument {twice[0]!r}"
    if unknown := [name for name in named if name not in known]:
        return f"{function}() got an unexpected keyword argument {unknown[0]!r}"
    count = f"{len(places)} positional argument{'s' * (len(places) != 1)}"
    return f"{function}() takes at most {count} but {len(arguments)} were given"


def takes_options(options: Sequence[Option], *, by_name: bool = False) -> Callable[[F], F]:
    """Return a decorator that lists a game's options in the signature of a function with `**options: Unpack[Options]`.

    The new signature has every option with its default, in order, after the positional parameters and before the
    keyword-only ones. Calls are checked against it. `Options` is a `TypedDict` for type checkers; an option that
    type checkers should accept by position must also be a parameter of the function.

    Args:
        options: the options of the game.
        by_name: make the options keyword-only, except those that are parameters. If False, all parameters can be given
            by position.
    """

    def decorate(function: F) -> F:
        given = inspect.signature(function)
        *own, rest = given.parameters.values()
        types = get_type_hints(get_args(get_type_hints(function)[rest.name])[0])
        kind = Parameter.KEYWORD_ONLY if by_name else Parameter.POSITIONAL_OR_KEYWORD
        listed = [
            given.parameters.get(name) or Parameter(name, kind, default=default, annotation=types[name])
            for name, default in ((one.name, one.default) for one in options)
        ]
        own = [one for one in own if one not in listed]
        before = [one for one in own if one.kind is not Parameter.KEYWORD_ONLY]
        after = [one.replace(kind=kind) for one in own if one.kind is Parameter.KEYWORD_ONLY]
        signature = given.replace(parameters=[*before, *listed, *after])
        places = [name for name, one in signature.parameters.items() if one.kind is not Parameter.KEYWORD_ONLY]
        known = signature.parameters.keys()

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:  # like `signature.bind`, but five times as fast
            by_place = dict(zip(places, arguments, strict=False))
            if len(arguments) > len(places) or not named.keys() <= known or named.keys() & by_place.keys():
                raise TypeError(_misfit(function.__qualname__, places, arguments, named, known))
            return function(**by_place, **named)

        meanings = "".join(f"\n    {one.name}: {one.meaning}; {one.allowed}." for one in options)
        call.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:{meanings}\n"
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
