"""Golden playthroughs: text files that record random games ply by ply, to be replayed and compared.

A file has a header and then blocks: one for the start and one for each action. A block lists facts about the position,
one per line; a fact that is the same as in the previous block is omitted. The position is drawn at the start, at each
new stage and at the end.

    12. 46 = C7               the twelfth action is 46, named C7; passes count
    ply: 12                   `Game.ply`
    to_move: 0                a seat; so are `winner` (of the current board) and `passed` (skipped after this action)
    stage: placement
    legal: 1-9 11 21-22       legal actions of the seat to move
    mask: 5a0e...             digest of the action mask of the seat to move; the masks of other seats are empty
    planes: 73c1... e09b...   digest of the observation of each seat, seat 0 first
    scores: 0 0               one value per seat, also in the next three lines
    win: 0 0                  rewards of kind "win"
    score: 0 0                rewards of kind "score"
    over: no no               terminations
    | 9tka  players=2 ...     the position as drawn by `str(game)`

A digest is BLAKE2b with 8 bytes of the int8 values. `-` means an empty list.

The facts are reported by *views*: the file itself, the package's interfaces to a game, and the game's slow reference.
The views play in lock-step and must agree. To check a file, the game is played with the file as one of the views; to
write a file, it is played without the file. This module is independent of the games and the package.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Words = Sequence[str | None]
"""The words of a fact; None for a word that a view does not know."""
Facts = dict[str, Words]


class DifferenceError(AssertionError):
    """Raised if views report different facts."""


# Facts as words


def digest(numbers: Any) -> str:
    """Return the 8-byte BLAKE2b digest of an int8 array, in hexadecimal."""
    return hashlib.blake2b(np.ascontiguousarray(numbers, np.int8).tobytes(), digest_size=8).hexdigest()


def format_ranges(numbers: Iterable[int]) -> list[str]:
    """Format increasing numbers; runs of consecutive numbers become `first-last`."""
    runs: list[list[int]] = []
    for number in map(int, numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]


def parse_ranges(words: Words) -> list[int]:
    """Parse the output of `format_ranges`."""
    numbers: list[int] = []
    for word in words:
        first, _, last = str(word).partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def format_amounts(numbers: Iterable[float]) -> list[str]:
    """Format scores or rewards with the precision of float32."""
    return [str(np.float32(number) + np.float32(0)).removesuffix(".0") for number in numbers]  # + 0 turns -0 into 0


def format_integers(numbers: Iterable[int]) -> list[str]:
    return [str(int(number)) for number in numbers]


FORMATTERS: dict[str, Callable[[Any], Words]] = {
    "ply": lambda ply: format_integers([ply]),
    "to_move": lambda seat: format_integers([seat]),
    "passed": lambda seats: format_integers(sorted(seats)),
    "stage": lambda name: [name],
    "legal": format_ranges,
    "mask": lambda mask: [digest(mask)],
    "planes": lambda views: [None if planes is None else digest(planes) for planes in views],
    "scores": format_amounts,
    "winner": lambda seat: format_integers([seat]),
    "win": format_amounts,
    "score": format_amounts,
    "over": lambda ends: ["yes" if end else "no" for end in ends],
}
"""Functions that format each fact, in the order of the lines of a block."""


def to_facts(**facts: Any) -> Facts:
    """Return the given facts as words, in the order of `FORMATTERS`."""
    assert not facts.keys() - FORMATTERS.keys()
    return {name: formatter(facts[name]) for name, formatter in FORMATTERS.items() if name in facts}


class View:
    """Base class of the views: plays a game and reports facts about its position."""

    name: str

    def facts(self) -> Facts:
        """Return the facts of the current position that this view knows."""
        raise NotImplementedError

    def play(self, action: int) -> None:
        """Play an action."""
        raise NotImplementedError

    def position(self) -> list[str] | None:
        """Return the lines of the drawn position; None if this view cannot draw it."""
        return None

    def action_name(self, action: int) -> str | None:
        """Return the name of a legal action; None if this view does not know it."""
        return None

    def location(self, fact: str) -> str:
        """Return where the view reports a fact, for error messages."""
        return self.name


# Playing in lock-step


def write_playthrough(header: Mapping[str, Any], views: Sequence[View], choose: Callable[[list[int]], int]) -> str:
    """Play a game to its end and return its playthrough.

    Args:
        header: fields of the header, by name.
        views: the views; together they must know every fact.
        choose: called with the legal actions; returns the next action.

    Raises:
        DifferenceError: if views disagree; names the first such fact and what each view reports.
    """
    lines = [f"{name}: {value}" for name, value in header.items()]
    before: Facts = {}
    count, title = 0, "start"
    while True:
        facts = merge_facts(title, {view: view.facts() for view in views})
        assert list(facts) == list(FORMATTERS), "no view reports some of the facts"
        lines += ["", title]
        lines += [f"{name}: {_join_words(words)}" for name, words in facts.items() if words != before.get(name)]
        finished = "no" not in facts["over"]
        if finished or facts["stage"] != before.get("stage"):
            drawn = merge_facts(title, {view: {"position": view.position() or [None]} for view in views})["position"]
            lines += [f"| {line}".rstrip() for line in drawn]
        if finished:
            return "\n".join([*lines, ""])
        action = choose(parse_ranges(facts["legal"]))
        count, before = count + 1, facts
        names = {view: {"action": [view.action_name(action)]} for view in views}
        title = f"{count}. {action} = {merge_facts(title, names)['action'][0]}"
        for view in views:
            view.play(action)


def merge_facts(where: str, by_view: Mapping[View, Facts]) -> Facts:
    """Merge the facts of all views, in the order of `FORMATTERS`; raise `DifferenceError` if they disagree."""
    facts: Facts = {}
    sources: dict[str, View] = {}
    for view, theirs in by_view.items():
        for name, words in theirs.items():
            known = facts.get(name)
            if known is None or known == [None]:
                facts[name], sources[name] = words, view
            elif words != [None]:
                facts[name] = _merge_words(where, name, known, words, sources[name], view)
    return {name: facts[name] for name in [*FORMATTERS, *facts] if name in facts}


def _merge_words(where: str, name: str, known: Words, words: Words, first: View, other: View) -> Words:
    differ = any(a != b for a, b in zip(known, words, strict=False) if a is not None and b is not None)
    if differ or len(known) != len(words):
        end = "\n        " if name == "position" else " "
        reports = [
            f"\n    {view.location(name)}:{end}{_join_words(reported, end)}"
            for view, reported in ((first, known), (other, words))
        ]
        raise DifferenceError(f"{name} after {where!r}{''.join(reports)}")
    return [b if a is None else a for a, b in zip(known, words, strict=True)]


def _join_words(words: Words, between: str = " ") -> str:
    return between.join("?" if word is None else word for word in words) or "-"


# Files


class FileView(View):
    """A playthrough file."""

    def __init__(self, path: Path) -> None:
        self.name = f"{path.parent.name}/{path.name}"
        self.text = path.read_text(encoding="utf-8")
        header, *self._blocks = (block.split("\n") for block in self.text.removesuffix("\n").split("\n\n"))
        self.header = dict(line.split(": ", 1) for line in header)
        self._facts: Facts = {}
        self._lines: dict[str, int] = {}
        self._block, self._first = 0, len(header) + 2
        self._read_block()

    def _read_block(self) -> None:
        _, *lines = self._blocks[self._block]
        self._position = [line[2:] for line in lines if line.startswith("|")]
        for number, line in enumerate(lines, self._first + 1):
            if not line.startswith("|"):
                fact, words = line.split(": ", 1)
                self._facts[fact], self._lines[fact] = [] if words == "-" else words.split(), number

    def facts(self) -> Facts:
        return dict(self._facts)

    def position(self) -> list[str] | None:
        return self._position

    def next_action(self, legal: list[int]) -> int:
        """Return the next action of the file."""
        if self._block + 1 == len(self._blocks):
            raise DifferenceError(f"{self.name} ends, but the game continues")
        return int(self._next_title()[0])

    def action_name(self, action: int) -> str | None:
        return self._next_title()[1]

    def _next_title(self) -> tuple[str, str]:
        found = re.fullmatch(r"\d+\. (\d+) = (.+)", self._blocks[self._block + 1][0])
        assert found, f"{self.name}: no action in {self._blocks[self._block + 1][0]!r}"
        return found[1], found[2]

    def play(self, action: int) -> None:
        self._first += len(self._blocks[self._block]) + 1
        self._block += 1
        self._read_block()

    def location(self, fact: str) -> str:
        end = self._first + len(self._blocks[self._block])
        other_lines = {"position": end - len(self._position), "action": end + 1}
        return f"{self.name}, line {self._lines.get(fact) or other_lines[fact]}"
