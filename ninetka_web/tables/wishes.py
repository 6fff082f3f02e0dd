"""The request of one of several people at a table to take back moves or to play again."""

from __future__ import annotations

from dataclasses import dataclass, field

from ninetka_web.tables.refusal import RefusedError

MAX_TRIES = 3
"""How often a user may make the same request in one game without success."""
UNDO, REMATCH = "undo", "rematch"


@dataclass
class Wishes:
    """The open request of a table, at most one at a time, and the failed ones of this game."""

    kind: str = ""
    """`UNDO` or `REMATCH`, empty for none."""
    by: str = ""
    """The user who made the request."""
    ply: int = -1
    """The ply to go back to; -1 for none."""
    asked: list[str] = field(default_factory=list)
    """The users who have not answered yet."""
    question: int = 0
    """The number of questions asked at the table so far. An answer names the number of its question."""
    tries: list[list[str]] = field(default_factory=list)
    """[kind, user] of each request of this game that was not granted."""

    def ask(self, kind: str, person: str, others: set[str], ply: int = -1) -> bool:
        """Make a request; return whether it is granted at once: no other users play, or they made the same request."""
        if (self.kind, self.ply) == (kind, ply) and person in self.asked:
            return self.answer(person, True)
        if self.kind:
            raise RefusedError("there is a question already; wait until it is answered")
        if not others:
            return True
        if self.tries.count([kind, person]) >= MAX_TRIES:
            raise RefusedError(f"you have asked for this {MAX_TRIES} times in vain; no more in this game")
        self.tries.append([kind, person])
        self.question += 1
        self.kind, self.by, self.ply, self.asked = kind, person, ply, sorted(others)
        return False

    def answer(self, person: str, accept: bool) -> bool:
        """Agree or disagree; return whether all users have agreed."""
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
        """Remove the open request."""
        self.kind, self.by, self.ply, self.asked = "", "", -1, []

    def check(self, question: int) -> None:
        """Refuse an answer to any question but the latest one."""
        if question != self.question:
            raise RefusedError("that was an answer to an earlier question; look at the current one")

    def rename(self, old: str, new: str) -> None:
        """Replace the user `old` by `new`."""
        self.by = new if self.by == old else self.by
        self.asked = [new if one == old else one for one in self.asked]
        self.tries = [[kind, new if one == old else one] for kind, one in self.tries]
