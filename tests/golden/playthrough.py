"""Golden playthroughs: text files that record random games ply by ply, to be replayed and compared.

A file has a header and then blocks: one for the start and one for each action. A block lists facts about the position,
one per line; a fact that is the same as in the previous block is omitted. The position is drawn at the start, at each
new stage and at the end.

    12. 46 = C7               the twelfth action is 46, named C7; passes count
    ply: 12                   `Game.ply`
    to_move: 0                a seat; so are `winner` (by the current board) and `passed` (skipped after this action)
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

The facts are reported by *faces*: the file itself, the package's interfaces to a game, and the game's slow reference.
The faces play in lock-step and must agree. To check a file, the game is played with the file as one of the faces; to
write a file, it is played without. This module is independent of the games and the package.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Words = Sequence[str | None]
"""The words of a fact; None for a word that a face does not know."""
Facts = dict[str, Words]


class DifferenceError(AssertionError):
    """Raised if faces report different facts."""


# Facts as words


def digest(numbers: Any) -> str:
    """Return the 8-byte BLAKE2b digest of an int8 array, in hexadecimal."""
    return hashlib.blake2b(np.ascontiguousarray(numbers, np.int8).tobytes(), digest_size=8).hexdigest()


def ranges(numbers: Iterable[int]) -> list[str]:
    """Format increasing numbers; runs of consecutive numbers become `first-last`."""
    runs: list[list[int]] = []
    for number in map(int, numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in runs]


def numbers_of(words: Words) -> list[int]:
    """Parse the output of `ranges`."""
    numbers: list[int] = []
    for word in words:
        first, _, last = str(word).partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def amounts(numbers: Iterable[float]) -> list[str]:
    """Format scores or rewards with the precision of float32."""
    return [str(np.float32(number) + np.float32(0)).removesuffix(".0") for number in numbers]  # + 0 turns -0 into 0


def integers(numbers: Iterable[int]) -> list[str]:
    return [str(int(number)) for number in numbers]


WORDING: dict[str, Callable[[Any], Words]] = {
    "ply": lambda ply: integers([ply]),
    "to_move": lambda seat: integers([seat]),
    "passed": lambda seats: integers(sorted(seats)),
    "stage": lambda name: [name],
    "legal": ranges,
    "mask": lambda mask: [digest(mask)],
    "planes": lambda views: [None if planes is None else digest(planes) for planes in views],
    "scores": amounts,
    "winner": lambda seat: integers([seat]),
    "win": amounts,
    "score": amounts,
    "over": lambda ends: ["yes" if end else "no" for end in ends],
}
"""Functions that format each fact, in the order of the lines of a block."""


def tell(**facts: Any) -> Facts:
    """Return the given facts as words, in the order of `WORDING`."""
    assert not facts.keys() - WORDING.keys()
    return {name: wording(facts[name]) for name, wording in WORDING.items() if name in facts}


class Face:
    """Base class of the faces: plays a game and reports facts about its position."""

    name: str

    def tell(self) -> Facts:
        """Return the facts of the current position that this face knows."""
        raise NotImplementedError

    def play(self, action: int) -> None:
        """Play an action."""
        raise NotImplementedError

    def position(self) -> list[str] | None:
        """Return the lines of the drawn position; None if this face cannot draw it."""
        return None

    def action_name(self, action: int) -> str | None:
        """Return the name of a legal action; None if this face does not know it."""
        return None

    def at(self, fact: str) -> str:
        """Return where the face reports a fact, for error messages."""
        return self.name


# Playing in lock-step


def write(header: Mapping[str, Any], faces: Sequence[Face], choose: Callable[[list[int]], int]) -> str:
    """Play a game to its end and return its playthrough.

    Args:
        header: fields of the header, by name.
        faces: the faces; together they must know every fact.
        choose: called with the legal actions; returns the next action.

    Raises:
        DifferenceError: if faces disagree; names the first such fact and what each face reports.
    """
    lines = [f"{name}: {value}" for name, value in header.items()]
    before: Facts = {}
    count, title = 0, "start"
    while True:
        facts = agreed(title, {face: face.tell() for face in faces})
        assert list(facts) == list(WORDING), "no face reports some of the facts"
        lines += ["", title]
        lines += [f"{name}: {_shown(words)}" for name, words in facts.items() if words != before.get(name)]
        over = "no" not in facts["over"]
        if over or facts["stage"] != before.get("stage"):
            drawn = agreed(title, {face: {"position": face.position() or [None]} for face in faces})["position"]
            lines += [f"| {line}".rstrip() for line in drawn]
        if over:
            return "\n".join([*lines, ""])
        action = choose(numbers_of(facts["legal"]))
        count, before = count + 1, facts
        told = {face: {"action": [face.action_name(action)]} for face in faces}
        title = f"{count}. {action} = {agreed(title, told)['action'][0]}"
        for face in faces:
            face.play(action)


def agreed(where: str, told: Mapping[Face, Facts]) -> Facts:
    """Merge the facts of all faces, in the order of `WORDING`; raise `DifferenceError` if they disagree."""
    facts: Facts = {}
    teller: dict[str, Face] = {}
    for face, theirs in told.items():
        for name, words in theirs.items():
            known = facts.get(name)
            if known is None or known == [None]:
                facts[name], teller[name] = words, face
            elif words != [None]:
                facts[name] = _agreed_words(where, name, known, words, teller[name], face)
    return {name: facts[name] for name in [*WORDING, *facts] if name in facts}


def _agreed_words(where: str, name: str, known: Words, words: Words, first: Face, other: Face) -> Words:
    differ = any(a != b for a, b in zip(known, words, strict=False) if a is not None and b is not None)
    if differ or len(known) != len(words):
        end = "\n        " if name == "position" else " "
        told = [f"\n    {face.at(name)}:{end}{_shown(said, end)}" for face, said in ((first, known), (other, words))]
        raise DifferenceError(f"{name} after {where!r}{''.join(told)}")
    return [b if a is None else a for a, b in zip(known, words, strict=True)]


def _shown(words: Words, between: str = " ") -> str:
    return between.join("?" if word is None else word for word in words) or "-"


# Files


class File(Face):
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

    def tell(self) -> Facts:
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

    def at(self, fact: str) -> str:
        end = self._first + len(self._blocks[self._block])
        elsewhere = {"position": end - len(self._position), "action": end + 1}
        return f"{self.name}, line {self._lines.get(fact) or elsewhere[fact]}"
