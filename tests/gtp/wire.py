"""A controller at the other end of an engine of ours, in the same process."""

from __future__ import annotations

from ninetka_agents.go.gtp.engine import Engine
from ninetka_agents.go.gtp.session import Session
from ninetka_agents.go.gtp.thinker import Thinker
from ninetka_env.core.registry import load_variant


class Wire:
    """Sends a line at a time."""

    def __init__(
        self, agent: str = "random", game: str = "go", seed: int = 0, resign_below: float = 0.0, ponders: bool = False
    ) -> None:
        self.written: list[str] = []
        self.session = Session(Thinker(agent, seed, ponders), load_variant(game), "1.2.3", resign_below)
        self.engine = Engine(self.session, self.written.append)

    def send(self, line: str) -> str:
        """Return all that is written in answer to a line."""
        self.written.clear()
        self.engine.answer(line)
        return "".join(self.written)

    def ask(self, line: str) -> str:
        """Return the text of a success."""
        answer = self.send(line)
        assert answer.startswith("="), answer
        assert answer.endswith("\n\n")
        assert "\n\n" not in answer[:-2]
        return answer[1:].strip()

    def fail(self, line: str) -> str:
        """Return the message of a failure."""
        answer = self.send(line)
        assert answer.startswith("? "), answer
        assert answer.endswith("\n\n")
        assert answer.count("\n") == 2
        return answer[2:].strip()

    def board(self) -> str:
        """Return the drawn board, without names of files and ranks."""
        rows = self.ask("showboard").splitlines()[: self.session.size]
        return "/".join("".join(row.split()[1:]) for row in rows)
