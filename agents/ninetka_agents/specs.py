"""Parse the options in agents' specs; `ninetka_agents.agent.make_agent` makes the agents."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from ninetka_env.core.options import short_repr
from ninetka_env.core.text import did_you_mean


def parse_options(spec: str, text: str, constructor: Callable[..., Any], game: str) -> dict[str, Any]:
    """Return the keyword arguments with which to call an agent's constructor.

    Args:
        spec: the whole spec, for error messages.
        text: the options in the spec, separated by commas.
        constructor: a class or function. Its parameters are the options, except `game`.
        game: the argument for the parameter `game`, if there is one.

    Raises:
        ValueError: if an option is unknown, wrong, missing or given twice; the message names the allowed options.
    """
    asked = f"agent {short_repr(spec)}"
    parameters = _parameters_of(constructor, asked)
    options: dict[str, Any] = {"game": game} if parameters.pop("game", None) else {}
    for item in filter(None, _split_at_commas(text)):
        key, equals, value = item.partition("=")
        if not equals and isinstance(getattr(parameters.get(item), "default", None), bool):
            key, value = item, "true"
        elif not equals or " " in key or key.startswith("["):
            key, value = next(iter(parameters), ""), item
        if key not in parameters:
            allowed = ", ".join(parameters) or "none"
            unknown = f"unknown option {short_repr(key)}, allowed are {allowed}{did_you_mean(key, list(parameters))}"
            raise ValueError(f"{asked}: {unknown}")
        if key in options:
            raise ValueError(f"{asked}: option {key!r} is given twice")
        options[key] = _convert_option(f"{asked}: option {key}", value, parameters[key])
    missing = [key for key, one in parameters.items() if one.default is one.empty and key not in options]
    if missing:
        raise ValueError(f"{asked}: option {missing[0]} is missing: it has no default")
    return options


def _parameters_of(constructor: Callable[..., Any], asked: str) -> dict[str, Parameter]:
    """Return the parameters that can be given by name; `ValueError` starts with `asked`."""
    try:
        parameters = inspect.signature(constructor).parameters.values()
    except (TypeError, ValueError):  # some classes in C have no signature
        raise ValueError(f"{asked}: the parameters of {short_repr(constructor)} are unknown") from None
    return {one.name: one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


def _split_at_commas(text: str) -> list[str]:
    """Split text at the commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth = max(0, depth + (letter == "[") - (letter == "]"))
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _convert_option(option: str, value: str, parameter: Parameter) -> Any:
    """Convert an option's text to the type of its default, or of its annotation if it has no default or None.

    Without a default and an annotation the value is text. `option` is the start of error messages.
    """
    kind = _type_of(parameter)
    if kind is bool:
        if value in ("true", "false"):
            return value == "true"
        raise ValueError(f"{option}={short_repr(value)} must be true or false")
    if kind is str:
        return value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if kind is None:
        raise ValueError(f"{option} is neither text nor a number, so a spec cannot give it")
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{option}={short_repr(value)} must be a number") from None


def _type_of(parameter: Parameter) -> type[bool] | type[int] | type[float] | type[str] | None:
    """Return the type of an option: bool, int, float or str; None for any other type."""
    default, annotation = parameter.default, parameter.annotation
    if default is not None and default is not parameter.empty:
        return next((kind for kind in (bool, int, float, str) if isinstance(default, kind)), None)
    if annotation is parameter.empty:
        return str
    words = set(re.findall(r"\w+", str(annotation)))  # it may be text, such as "int | None"
    return next((kind for kind in (str, float, int, bool) if kind.__name__ in words), None)
