"""Messages about wrong settings: what is wrong, and which key was probably meant. `config.py` raises the errors.

Start reading at `problem_text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from ninetka_env.core.options import short_repr
from ninetka_env.core.text import nearest


def problem_text(problem: Any, model: type[BaseModel], owners_of: Callable[[str], Sequence[str]]) -> str:
    """Return a message about one problem that pydantic found.

    Args:
        problem: an item of `ValidationError.errors()`.
        model: the class of the configuration.
        owners_of: returns the titles of the games that have a setting.
    """
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        others = owners_of(key)
        hint = f": it is a setting of {', '.join(others)}" if others else _key_hint(key, known_keys(model))
        return f"unknown key {short_repr(key)}{hint}"
    if problem["type"] == "model_type":
        example = next((f", such as {name}" for name in known_keys(model) if name.startswith(f"{key}.")), "")
        return f"{key}={short_repr(problem['input'])}: it is a section, expected its keys{example}"
    what = str(problem["msg"]).removeprefix("Value error, ").replace("a valid tuple", "a list, such as [2, 3]")
    what = what.partition(", unable to parse")[0]
    return f"{key[:80]}={short_repr(problem['input'])}: {what}" if key else what


def _key_hint(key: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown key: similar keys, preferably of its section; otherwise the keys of its section."""
    section, _, last = re.sub("[:/]", ".", key).rpartition(".")
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
