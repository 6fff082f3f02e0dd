"""A GTP controller for tests, which runs the engine in the same process."""

from __future__ import annotations

from ninetka_agents.go.gtp.engine import Engine
from ninetka_agents.go.gtp.move_chooser import MoveChooser
from ninetka_agents.go.gtp.session import Session
from ninetka_env.core.registry import load_variant


class Wire:
    """Sends lines to an engine and returns the responses."""

    def __init__(
        self, agent: str = "random", game: str = "go", seed: int = 0, resign_below: float = 0.0, ponders: bool = False
    ) -> None:
        self.written: list[str] = []
        self.session = Session(MoveChooser(agent, seed, ponders), load_variant(game), "1.2.3", resign_below)
        self.engine = Engine(self.session, self.written.append)

    def send(self, line: str) -> str:
        """Send a line; return all that the engine writes."""
        self.written.clear()
        self.engine.respond(line)
        return "".join(self.written)

    def ask(self, line: str) -> str:
        """Send a line; return the text of the success response."""
        answer = self.send(line)
        assert answer.startswith("="), answer
        assert answer.endswith("\n\n")
        assert "\n\n" not in answer[:-2]
        return answer[1:].strip()

    def fail(self, line: str) -> str:
        """Send a line; return the message of the error response."""
        answer = self.send(line)
        assert answer.startswith("? "), answer
        assert answer.endswith("\n\n")
        assert answer.count("\n") == 2
        return answer[2:].strip()

    def board(self) -> str:
        """Return the board from `showboard`, without names of files and ranks, with `/` between ranks."""
        rows = self.ask("showboard").splitlines()[: self.session.size]
        return "/".join("".join(row.split()[1:]) for row in rows)
