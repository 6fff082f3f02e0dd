"""Options of games, environments and agents: checks of values, with errors that name the option and what is allowed.

Start reading at `Option`, and for the checks of other values at `check_count`. `registry.py` makes a `Variant` from a
game and its options.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
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
    raise ValueError(f"{name}={short_repr(value)}: expected one of {', '.join(map(repr, allowed))}")


MAX_COUNT = 1 << 53
"""The default maximum of `check_count`: floats represent all integers up to here, and it fits into an int64."""


def check_count(name: str, value: Any, minimum: int = 1, maximum: int = MAX_COUNT) -> int:
    """Return the value of a counting option as int; `ValueError` unless it is an integer within the bounds."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not minimum <= value <= maximum:
        limit = f" and at most {maximum}" if maximum < MAX_COUNT or (whole and value > maximum) else ""
        raise ValueError(f"{name}={short_repr(value)}: expected an integer of at least {minimum}{limit}")
    return int(value)


def check_memory(name: str, value: int, bytes_each: int) -> None:
    """Raise `ValueError` if `value` items of `bytes_each` bytes do not fit into the machine's memory."""
    known = hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= os.sysconf_names.keys()
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else 1 << 40
    if value * bytes_each > available:
        needed, there = (f"{size / (1 << 30):.3g} GiB" for size in (value * bytes_each, available))
        raise ValueError(f"{name}={short_repr(value)}: would take {needed} of memory, but the machine has {there}")


def check_nonnegative(name: str, value: Any) -> float:
    """Return the value of an option as float; `ValueError` unless it is a finite number of at least 0."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise ValueError(f"{name}={short_repr(value)}: expected a finite number of at least 0")
    return float(value)


def check_actions(actions: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return one action per game as (count,) int64; `TypeError` for other types, `ValueError` for other shapes."""
    try:
        chosen = np.asarray(actions)
    except ValueError:  # sequences of different lengths
        raise ValueError(f"actions: expected shape ({count},), got {short_repr(actions)}") from None
    if chosen.dtype.kind not in "iu":
        raise TypeError(f"actions: expected integers, got {short_repr(chosen.dtype)}")
    if chosen.shape != (count,):
        raise ValueError(f"actions: expected shape ({count},), got {chosen.shape}")
    return np.ascontiguousarray(chosen, np.int64)


def as_action(action: Any, num_actions: int) -> int:
    """Return an action as int; `TypeError` unless it is an integer.

    Integers are Python's and NumPy's, and all 0-d objects with a method `__index__`, such as tensors of PyTorch and
    arrays of JAX; booleans are none. The range is not checked; `num_actions` is only used in the error message.
    """
    if isinstance(action, (int, np.integer)) and not isinstance(action, bool):
        return int(action)
    is_bool = isinstance(action, bool) or "bool" in str(getattr(action, "dtype", ""))
    if not is_bool and getattr(action, "ndim", 0) == 0:
        with suppress(TypeError):
            return operator.index(action)
    raise TypeError(f"an action is an integer 0..{num_actions - 1}, got {short_repr(action)}")


def short_repr(value: Any) -> str:
    """Return a value's repr in one line, cut off after 80 characters, or its type if repr fails."""
    try:
        text = _SHORT.repr(value) if type(value) in (list, tuple, dict, set, frozenset) else repr(value)
    except Exception:  # an int of thousands of digits, deep recursion, or an error in a user's class
        text = f"<{type(value).__name__}>"
    text = " ".join(map(str.strip, text.split("\n")))
    return text if len(text) <= 80 else f"{text[:80]} ..."


_SHORT = reprlib.Repr()  # shows only the first items, because a list may have 2 ** 30 of them
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
        """Return the value that a text represents, for example on a command line; `ValueError` as in `encode`."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The allowed values, as text."""


@dataclass(frozen=True)
class Choice(Option):
    """An option with a fixed set of values."""

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
        raise ValueError(f"{self.name}={short_repr(text)}: expected one of {self.allowed}")

    @property
    def allowed(self) -> str:
        """The values, separated by commas."""
        return ", ".join(map(repr, self.values))


@dataclass(frozen=True)
class Integer(Option):
    """An option that is an integer within bounds; its code is the integer itself."""

    minimum: int
    maximum: int

    def encode(self, value: Any) -> int:
        """Return the number."""
        return check_count(self.name, value, self.minimum, self.maximum)

    def decode(self, code: int) -> Any:
        """Return the number."""
        return code

    def parse(self, text: str) -> Any:
        """Return the number that the text represents."""
        try:
            return self.encode(int(text))
        except ValueError:
            raise ValueError(f"{self.name}={short_repr(text)}: expected {self.allowed}") from None

    @property
    def allowed(self) -> str:
        """The bounds, as text."""
        return f"an integer {self.minimum}..{self.maximum}"


F = TypeVar("F", bound=Callable[..., Any])


def _call_error(
    function: str, places: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any], known: Collection[str]
) -> str:
    """Return the error message for arguments that do not match the signature, with Python's wording."""
    if twice := [name for name in places[: len(arguments)] if name in named]:
        return f"{function}() got multiple values for argument {twice[0]!r}"
    if unknown := [name for name in named if name not in known]:
        return f"{function}() got an unexpected keyword argument {unknown[0]!r}"
    count = f"{len(places)} positional argument{'s' * (len(places) != 1)}"
    return f"{function}() takes at most {count} but {len(arguments)} were given"


def takes_options(options: Sequence[Option], *, keyword_only: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds a game's options to the signature of a function with `**options: Unpack[Options]`.

    The new signature has every option with its default, in order, after the positional parameters and before the
    keyword-only parameters. Calls are checked against this signature, and the docstring lists the options. `Options`
    is a `TypedDict` for type checkers. They accept an option by position only if it is also a parameter of the
    function.

    Args:
        options: the options of the game.
        keyword_only: make the options keyword-only, except options that are also parameters of the function. If False,
            all parameters of the new signature can be given by position.
    """

    def decorate(function: F) -> F:
        given = inspect.signature(function)
        *own, rest = given.parameters.values()
        types = get_type_hints(get_args(get_type_hints(function)[rest.name])[0])
        kind = Parameter.KEYWORD_ONLY if keyword_only else Parameter.POSITIONAL_OR_KEYWORD
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
                raise TypeError(_call_error(function.__qualname__, places, arguments, named, known))
            return function(**by_place, **named)

        meanings = "".join(f"\n    {one.name}: {one.meaning}; {one.allowed}." for one in options)
        call.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:{meanings}\n"
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
