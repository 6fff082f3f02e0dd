"""Import games and agents of other packages: specs `python:MODULE:NAME,option=value`, and entry points.

A spec `python:MODULE:NAME` runs code of the module, so it may only come from the user of this process: from a call, the
command line or a configuration. Names in files and messages are looked up by functions that do not accept such specs,
such as `ninetka_env.core.registry.get_definition`.
"""

from __future__ import annotations

import functools
import importlib
import traceback
from collections.abc import Mapping
from importlib import metadata
from types import MappingProxyType, ModuleType
from typing import Any

from ninetka_env.core.text import did_you_mean, one_line

GAMES, AGENTS = "ninetka.games", "ninetka.agents"
"""Groups of entry points in which installed packages offer games and agents."""
PREFIX = "python"
"""The first part of a spec that names a module."""


def split_spec(spec: str) -> tuple[str, str] | None:
    """Return the place `"MODULE:NAME"` and the options of a spec `python:MODULE:NAME,options`; None for other specs."""
    prefix, _, rest = spec.partition(":")
    place, _, options = rest.partition(",")
    return (place, options) if prefix == PREFIX else None


@functools.cache
def entry_points(group: str) -> Mapping[str, str]:
    """Return the entry points of installed packages: maps each name to its place, `"MODULE:NAME"`.

    Nothing is imported. If two packages have the same name, the first one on Python's path is used. Packages that are
    installed later are found by the next process.
    """
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        try:
            points = list(distribution.entry_points)
        except Exception:  # damaged metadata of a package, which may be unrelated to this project
            continue
        for point in points:
            if point.group == group:
                found.setdefault(point.name, point.value.partition("[")[0].strip())
    return MappingProxyType(found)


def import_place(place: str, asked: str) -> Any:
    """Import a module and return an object in it.

    Args:
        place: `"MODULE:NAME"`; a dotted NAME is an attribute of an object in the module.
        asked: the first words of error messages, such as `"agent 'python:mybot:Bot'"`.

    Raises:
        ValueError: if `place` has another form, if there is no such module or name, or if the module raises an
            exception, also in its `__getattr__`. The message is one sentence; the exception of the module is the cause.
    """
    module, _, name = place.partition(":")
    if module.endswith(".py") or not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
        raise ValueError(f"{asked}: {place!r} is not of the form MODULE:NAME, as in python:mybot:Bot,depth=3")
    found = import_module(module, asked)
    try:
        return functools.reduce(getattr, name.split("."), found)
    except AttributeError:
        where = getattr(found, "__file__", None) or "built in"
        raise ValueError(f"{asked}: {module} ({where}) has no {name!r}{did_you_mean(name, vars(found))}") from None
    except (Exception, SystemExit) as error:  # a module's `__getattr__`, which may import another module
        raise ValueError(f"{asked}: {place} fails: {describe_error(error)}") from error


def import_module(module: str, asked: str) -> ModuleType:
    """Import a module by its dotted name; raises `ValueError` as `import_place` does."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"{asked}: there is no module {error.name!r} on Python's path") from error
        raise ValueError(f"{asked}: the import of {module!r} fails: {describe_error(error)}") from error


def install_command(extras: str) -> str:
    """Return the command that installs extras of this package, for error messages about a missing package."""
    return f'pip install -e ".[{extras}]" (in a clone of the repository)'


def describe_error(error: BaseException) -> str:
    """Return the type, the message and the place of an exception in one line, such as `KeyError: 'a' (bot.py, line 3)`.

    The place is the last line of Python code, unless that line belongs to the import system or to the function that has
    caught the exception. A `SyntaxError` has the place in its message.
    """
    text = one_line(f"{type(error).__name__}: {error}", 300)
    frames = traceback.extract_tb(error.__traceback__)[1:]
    inner = [one for one in frames if not one.filename.startswith("<frozen ") and one.filename != importlib.__file__]
    if isinstance(error, SyntaxError) or not inner:
        return text
    return f"{text} ({inner[-1].filename}, line {inner[-1].lineno})"
