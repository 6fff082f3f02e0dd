"""YAML as settings need it: keys and plain values, and one sentence that names the line where it is anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MOST_CHARACTERS = 100_000
"""Of a file of settings."""
MOST_NESTED = 20
"""Lists and keys inside each other."""


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values.

    Raises:
        ValueError: naming the file and, where it can be told, the line that is wrong.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)  # not all: it may be /dev/zero
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is no text in UTF-8: {error.reason} at byte {error.start}") from None
    try:
        values = parse_yaml(text)
    except ValueError as error:
        raise ValueError(f"{path}: is no YAML of settings: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected keys and values, got {type(values).__name__}")
    return values


def parse_yaml(text: str) -> Any:
    """Return the value that a YAML text means; `ValueError` tells the line and what is wrong there."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"more than {MOST_CHARACTERS} characters")
    try:
        _check_shape(text)
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{_cut(error.problem or error.context)}") from None
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise ValueError(_cut(str(error).partition("\n")[0])) from None


def _check_shape(text: str) -> None:
    """Refuse what grows beyond its text when it is read: deep nesting, and aliases of things that hold aliases."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_NESTED:
            raise _error(f"nested deeper than {MOST_NESTED} levels", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise _error("aliases (*) are not read: write the value again", event.start_mark)


class _Loader(yaml.SafeLoader):
    """Plain values only, whose every problem has a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Make the value of a node."""
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception:  # what a tag such as !!timestamp makes of a text that is none
            kind = node.tag.rpartition(":")[2]
            raise _error(f"{_cut(repr(node.value), 40)} is no {_cut(kind, 40)}", node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make a mapping; a key that comes twice is an error."""
        values = super().construct_mapping(node, deep)
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if not isinstance(key, str):
                raise _error(f"key {_cut(repr(key))} is no text", key_node.start_mark)
            if key in seen:
                raise _error(f"key {_cut(repr(key))} is given twice", key_node.start_mark)
            seen.add(key)
        return values


def _error(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _cut(text: Any, most: int = 80) -> str:
    text = " ".join(str(text).split())
    return text if len(text) <= most else f"{text[:most]} ..."
