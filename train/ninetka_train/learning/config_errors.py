"""Messages about wrong settings: what is wrong, and which key was probably meant. `config.py` raises the errors.

Start reading at `problem_texts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from ninetka_env.core.options import short_repr
from ninetka_env.core.text import nearest


def problem_texts(
    problems: Sequence[Any], model: type[BaseModel], owners_of: Callable[[str], Sequence[str]]
) -> list[str]:
    """Return messages about the problems that pydantic found, one for each value.

    Args:
        problems: the items of `ValidationError.errors()`.
        model: the class of the configuration.
        owners_of: returns the titles of the games that have a setting.
    """
    found: dict[str, list[str]] = {}
    for problem in problems:
        subject, what = _subject_and_problem(problem, model, owners_of)
        found.setdefault(subject, []).append(what)
    return [subject + _joined_alternatives(texts) for subject, texts in found.items()]


def _subject_and_problem(
    problem: Any, model: type[BaseModel], owners_of: Callable[[str], Sequence[str]]
) -> tuple[str, str]:
    """Return what is wrong, such as `"seed='x': "`, and why."""
    known = known_keys(model)
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        others = owners_of(key)
        hint = f": it is a setting of {', '.join(others)}" if others else _key_hint(key, known)
        return f"unknown key {short_repr(key)}", hint
    if problem["type"] == "model_type":
        example = next((f", such as {name}" for name in known if name.startswith(f"{key}.")), "")
        return f"{key}={short_repr(problem['input'])}: ", f"it is a section, expected its keys{example}"
    what = str(problem["msg"]).removeprefix("Value error, ").replace("a valid tuple", "a list, such as [2, 3]")
    what = re.sub(", unable to (parse|interpret).*", "", what)
    key = _without_types(problem["loc"], known)[:80]
    if problem["input"] is None:
        return f"{key}: ", "it is empty"
    return f"{key}={short_repr(problem['input'])}: " if key else "", what


def _without_types(parts: Sequence[Any], known: Sequence[str]) -> str:
    """Return a key without the names of types that pydantic adds if a setting allows several types."""
    key = ""
    for part in parts:
        longer = f"{key}.{part}".lstrip(".")
        key = longer if isinstance(part, int) or longer in known or key not in known else key
    return key


def _joined_alternatives(texts: Sequence[str]) -> str:
    """Join what is wrong with one value for each type that it could have."""
    first, *others = dict.fromkeys(texts)
    return " or ".join([first, *(text.removeprefix("Input should be ") for text in others)])


def _key_hint(key: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown key: similar keys, preferably of its section; otherwise the keys of its section."""
    section, _, last = re.sub("[:/]|__", ".", key).rpartition(".")
    inside = [name for name in known if name.rpartition(".")[0] == section]
    same = [name for name in known if name.rpartition(".")[2] == last]
    for names in ([name for name in same if name in inside], same, inside, known):
        if near := nearest(last, [name.rpartition(".")[2] for name in names]):
            found = [repr(name) for name in names if name.rpartition(".")[2] == near]
            return f" (did you mean {' or '.join(found)}?)"
    return f", there are {', '.join(inside)}" if section and inside else ""


def example_override(text: str) -> str:
    """Return an example of `key=value`, with the key and the value of a text in which another sign is between them."""
    key, _, value = re.sub(r"^([\w.]+)(?:\s*:\s*|\s+)(?=\S)", r"\1=", text.strip()).partition("=")
    return f"{key}={value or '...'}" if re.fullmatch(r"\w[\w.]{0,80}", key) and len(value) <= 80 else "ppo.epochs=2"


def known_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Return all keys of a configuration, those of sections with dots."""
    keys: list[str] = []
    for name, info in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            keys += known_keys(info.annotation, f"{prefix}{name}.")
    return keys
