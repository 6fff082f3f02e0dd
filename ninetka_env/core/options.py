"""Options of games, environments and agents: what they may be, and errors that name the one that is wrong."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> int:
    """Return the place of an option's value among the allowed ones; `ValueError` names option, value and choices."""
    is_bool = isinstance(value, (bool, np.bool_))
    for place, choice in enumerate(allowed):
        scalar = isinstance(value, (str, int, np.integer, np.bool_, type(None)))
        if scalar and isinstance(choice, bool) == is_bool and value == choice:
            return place
    raise ValueError(f"{name}={shortened(value)}: expected one of {', '.join(map(repr, allowed))}")


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return an option that counts something as int; `ValueError` unless it is an integer within the bounds."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(f"{name}={shortened(value)}: expected an integer of at least {least}{limit}")
    return int(value)


def check_scale(name: str, value: Any) -> float:
    """Return an option that scales something as float; `ValueError` unless it is a finite number of at least 0."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise ValueError(f"{name}={shortened(value)}: expected a finite number of at least 0")
    return float(value)


def check_actions(actions: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return one action per game as (count,) int64; `TypeError` or `ValueError` if they are no such integers."""
    chosen = np.asarray(actions)
    if chosen.dtype.kind not in "iu":
        raise TypeError(f"actions: expected integers, got {chosen.dtype}")
    if chosen.shape != (count,):
        raise ValueError(f"actions: expected shape ({count},), got {chosen.shape}")
    return np.ascontiguousarray(chosen, np.int64)


def as_action(action: Any, num_actions: int) -> int:
    """Return an int or integer scalar as int; `TypeError` for anything else, such as floats, bools and arrays."""
    if isinstance(action, (int, np.integer)) and not isinstance(action, bool):
        return int(action)
    if isinstance(action, np.ndarray) and action.ndim == 0 and np.issubdtype(action.dtype, np.integer):
        return int(action)
    raise TypeError(f"an action is an integer 0..{num_actions - 1}, got {shortened(action)}")


def shortened(value: Any) -> str:
    """Return a value's repr, cut off where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]} ..."


@dataclass(frozen=True)
class Option(ABC):
    """One option of a game: its name, the value that it has unless told, and what it means.

    Compiled code knows every option as an int.
    """

    name: str
    default: Any
    meaning: str

    @abstractmethod
    def encode(self, value: Any) -> int:
        """Return the int that stands for a value; `ValueError` names the option and the values allowed."""

    @abstractmethod
    def decode(self, code: int) -> Any:
        """Return the value that an int stands for."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """Return the value that a text means, such as one given on a command line; `ValueError` as in `encode`."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The values allowed, in words."""


@dataclass(frozen=True)
class Choice(Option):
    """An option with a few values."""

    values: tuple[Any, ...]

    def encode(self, value: Any) -> int:
        """Return the place of the value among those allowed."""
        return check_choice(self.name, value, self.values)

    def decode(self, code: int) -> Any:
        """Return the value at a place."""
        return self.values[code]

    def parse(self, text: str) -> Any:
        """Return the value whose `str` is the text; booleans also in lower case."""
        for value in self.values:
            if text == str(value) or (isinstance(value, bool) and text == str(value).lower()):
                return value
        raise ValueError(f"{self.name}={shortened(text)}: expected one of {self.allowed}")

    @property
    def allowed(self) -> str:
        """The values, with commas between them."""
        return ", ".join(map(repr, self.values))


@dataclass(frozen=True)
class Whole(Option):
    """An option that is a whole number; compiled code knows it as itself."""

    least: int
    most: int

    def encode(self, value: Any) -> int:
        """Return the number."""
        return check_count(self.name, value, self.least, self.most)

    def decode(self, code: int) -> Any:
        """Return the number."""
        return code

    def parse(self, text: str) -> Any:
        """Return the number that the text shows."""
        try:
            return self.encode(int(text))
        except ValueError:
            raise ValueError(f"{self.name}={shortened(text)}: expected {self.allowed}") from None

    @property
    def allowed(self) -> str:
        """The bounds."""
        return f"an integer {self.least}..{self.most}"
