"""What one of several people at a table asks the others for: to take moves back, to play again."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninetka_web.tables.refusal import RefusedError

MAX_TRIES = 3
"""How often a person may ask for the same in vain in one game."""
UNDO, REMATCH = "undo", "rematch"


@dataclass
class Wishes:
    """At most one wish at a time."""

    kind: str = ""
    """`UNDO` or `REMATCH`, empty for none."""
    by: str = ""
    """The person who wishes it."""
    ply: int = -1
    """The ply to go back to."""
    asked: list[str] = field(default_factory=list)
    """The people who have not answered yet."""
    question: int = 0
    """Counts all that was asked at the table, so that an answer tells which question it is for."""
    tries: list[list[str]] = field(default_factory=list)
    """Kind and person of each time that somebody asked in this game and it was not granted."""

    def ask(self, kind: str, person: str, others: set[str], ply: int = -1) -> bool:
        """Ask the others, and return whether it is granted at once: there are none, or they wish the same."""
        if (self.kind, self.ply) == (kind, ply) and person in self.asked:
            return self.answer(person, True)
        if self.kind:
            raise RefusedError("there is a question already that is not answered yet")
        if not others:
            return True
        if self.tries.count([kind, person]) >= MAX_TRIES:
            raise RefusedError(f"you have asked for this {MAX_TRIES} times in vain; no more in this game")
        self.tries.append([kind, person])
        self.question += 1
        self.kind, self.by, self.ply, self.asked = kind, person, ply, sorted(others)
        return False

    def answer(self, person: str, accept: bool) -> bool:
        """Agree or disagree; return whether everybody has agreed now."""
        if person not in self.asked:
            raise RefusedError("nobody has asked you for anything")
        self.asked.remove(person)
        if accept and not self.asked:
            self.tries.remove([self.kind, self.by])
            return True
        if not accept:
            self.clear()
        return False

    def clear(self) -> None:
        """Wish for nothing."""
        self.kind, self.by, self.ply, self.asked = "", "", -1, []

    def check(self, question: int) -> None:
        """Refuse an answer to another question than the last one."""
        if question != self.question:
            raise RefusedError("that was an answer to an earlier question; look again what is asked now")

    def rename(self, old: str, new: str) -> None:
        """Let another one be the person."""
        self.by = new if self.by == old else self.by
        self.asked = [new if one == old else one for one in self.asked]
        self.tries = [[kind, new if one == old else one] for kind, one in self.tries]
