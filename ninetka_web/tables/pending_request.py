"""A user's request to take back moves or to play again, to which the other people at the table must agree.

`Table.undo`, `Table.rematch` and `Table.answer` in `table.py` use the class.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ninetka_web.tables.refusal import RefusedError

MAX_ATTEMPTS = 3
"""How often a user may make the same request in one game without success."""
UNDO, REMATCH = "undo", "rematch"


@dataclass
class PendingRequest:
    """The open request of a table, at most one at a time, and the requests of this game that were not granted."""

    kind: str = ""
    """`UNDO` or `REMATCH`, empty for none."""
    requested_by: str = ""
    """The user who made the request."""
    ply: int = -1
    """The ply to go back to; -1 for none."""
    unanswered: list[str] = field(default_factory=list)
    """The users who have not answered yet."""
    question: int = 0
    """The number of questions asked at the table so far. An answer names the number of its question."""
    attempts: list[list[str]] = field(default_factory=list)
    """[kind, user] of each request of this game that was not granted."""

    def ask(self, kind: str, user: str, others: set[str], ply: int = -1) -> bool:
        """Make a request; if another user has made the same request, agree to it. Return whether all users agree.

        Args:
            kind: `UNDO` or `REMATCH`.
            user: the user who asks.
            others: the users who must agree; if there are none, the request is granted at once.
            ply: the ply to go back to; -1 for none.
        """
        if (self.kind, self.ply) == (kind, ply) and user in self.unanswered:
            return self.answer(user, True)
        if self.kind:
            raise RefusedError("there is a question already; wait until it is answered")
        if not others:
            return True
        if self.attempts.count([kind, user]) >= MAX_ATTEMPTS:
            raise RefusedError(f"this was refused {MAX_ATTEMPTS} times; no more such requests in this game")
        self.attempts.append([kind, user])
        self.question += 1
        self.kind, self.requested_by, self.ply, self.unanswered = kind, user, ply, sorted(others)
        return False

    def answer(self, user: str, accept: bool) -> bool:
        """Agree to the open request or refuse it; return whether all users have agreed."""
        if user not in self.unanswered:
            raise RefusedError("there is no request to answer")
        self.unanswered.remove(user)
        if accept and not self.unanswered:
            self.attempts.remove([self.kind, self.requested_by])
            return True
        if not accept:
            self.clear()
        return False

    def clear(self) -> None:
        """Remove the open request."""
        self.kind, self.requested_by, self.ply, self.unanswered = "", "", -1, []

    def check_question(self, question: int) -> None:
        """Refuse an answer to any question but the latest one."""
        if question != self.question:
            raise RefusedError("that was an answer to an earlier question; look at the current one")

    def replace_user(self, old: str, new: str) -> None:
        """Replace the user `old` by `new`."""
        self.requested_by = new if self.requested_by == old else self.requested_by
        self.unanswered = [new if user == old else user for user in self.unanswered]
        self.attempts = [[kind, new if user == old else user] for kind, user in self.attempts]
