"""The GTP engine: read commands, run them one by one, and write the responses.

Start reading at `Engine.serve`. The commands are in `commands.py`, `extensions.py` and `analysis.py`, the state between
commands in `session.py`. For external engines as agents, see `agent.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from ninetka_agents.go.gtp import analysis, commands, extensions
from ninetka_agents.go.gtp.command_registry import GtpResponse, run_command
from ninetka_agents.go.gtp.move_chooser import MoveChooser
from ninetka_agents.go.gtp.protocol import (
    MAX_LINE,
    GtpError,
    format_response,
    is_interrupt,
    parse_command,
    read_lines,
    response_prefix,
)
from ninetka_agents.go.gtp.session import RESIGN_THRESHOLD, Session
from ninetka_env.core.files import is_closed_pipe
from ninetka_env.core.registry import load_variant

COMMAND_MODULES = (commands, extensions, analysis)
"""The modules with commands. Importing them registers the commands."""

READ_SIZE = 1 << 16
"""The maximum number of bytes per read."""
Write = Callable[[str], None]
"""A function that writes text without buffering."""


@dataclass
class _QueuedLine:
    """A line of input, and an event that is set to interrupt its command."""

    text: str
    interrupted: threading.Event = field(default_factory=threading.Event)


class ProtocolLog:
    """A log file of commands and responses. Logging stops at the first write error."""

    def __init__(self, file: IO[str] | None = None) -> None:
        """Log to an open text file; None for no log."""
        self._file = file

    def write(self, mark: str, text: str) -> None:
        """Log text line by line, each with the time and a mark: `<` input, `>` output, `!` error."""
        if self._file is None:
            return
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        try:
            self._file.writelines(f"{now} {mark} {line}\n" for line in text.rstrip("\n").split("\n"))
            self._file.flush()
        except OSError as error:
            self._file = None
            print(f"logging stopped: {error.strerror}", file=sys.stderr)


class Engine:
    """Respond to the commands of one controller."""

    def __init__(self, session: Session, write: Write, log: ProtocolLog | None = None) -> None:
        """Write responses with `write`; log input and output to `log`, if given."""
        self._session, self._write_out, self._log = session, write, log or ProtocolLog()
        self._lines: SimpleQueue[_QueuedLine | None] = SimpleQueue()
        session.has_pending_command = lambda: not self._lines.empty()

    def serve(self, read: Callable[[], bytes]) -> None:
        """Respond to commands until `quit`, or until `read` returns no bytes.

        Another thread calls `read`. What agents print to stdout is redirected to stderr.
        """
        threading.Thread(target=self._queue_lines, args=(read,), daemon=True).start()
        with contextlib.redirect_stdout(sys.stderr):
            self._session.move_chooser.warm_up(self._session.game)
            with contextlib.suppress(BrokenPipeError):  # the controller has closed the connection
                while (line := self._next_line()) is not None:
                    self._session.is_interrupted = line.interrupted.is_set
                    if not self.respond(line.text):
                        return

    def _next_line(self) -> _QueuedLine | None:
        """Wait for the next line and return it, or None at the end of the input; the agent may ponder while waiting.

        An error while pondering is logged and does not end the engine.
        """
        try:
            for _ in self._session.ponder():
                if not self._lines.empty():
                    break
        except Exception as error:
            self._log.write("!", traceback.format_exc())
            print(f"pondering stopped: {type(error).__name__}", file=sys.stderr)
            self._session.move_chooser.close()
        return self._lines.get()

    def _queue_lines(self, read: Callable[[], bytes]) -> None:
        """Queue the lines with commands; let each `# interrupt` comment interrupt the last command before it."""
        last = None
        for text in read_lines(read):
            if is_interrupt(text) and last is not None:
                last.interrupted.set()
            elif parse_command(text) is not None:
                last = _QueuedLine(text)
                self._lines.put(last)
        self._lines.put(None)

    def respond(self, text: str) -> bool:
        """Run the command of a line, if any, and write the response; return False after `quit`."""
        command = parse_command(text)
        if command is None:
            return True
        self._log.write("<", text.rstrip("\n"))
        try:
            if len(text) > MAX_LINE:
                raise GtpError(f"a line has at most {MAX_LINE} characters")
            self._write_response(command.id, run_command(self._session, command.name, command.arguments))
        except GtpError as error:
            self._write(format_response(command.id, str(error), success=False))
        except BrokenPipeError:
            raise
        except Exception as error:
            self._log.write("!", traceback.format_exc())
            self._write(format_response(command.id, f"internal error: {type(error).__name__}", success=False))
        return command.name != "quit"

    def _write_response(self, number: str, reply: GtpResponse) -> None:
        """Write a response at once, or its lines as they are generated.

        An error before the first line is raised before anything is written, so that it becomes an error response.
        """
        if isinstance(reply, str):
            self._write(format_response(number, reply))
            return
        line = next(reply, "")
        self._write(f"{response_prefix(number)}\n{line}\n")
        try:
            for line in reply:
                self._write(f"{line}\n")
        except (GtpError, ValueError) as error:  # too late for an error response
            self._log.write("!", str(error))
        self._write("\n")

    def _write(self, text: str) -> None:
        self._log.write(">", text)
        try:
            self._write_out(text)
        except OSError as error:
            if is_closed_pipe(error):
                raise BrokenPipeError from error
            raise


def serve(
    agent: str,
    game: str,
    version: str,
    seed: int | None = None,
    log: Path | None = None,
    resign_threshold: float = RESIGN_THRESHOLD,
    ponders: bool = False,
) -> None:
    """Run an engine on stdin and stdout until `quit` or the end of the input.

    Args:
        agent: the spec of the agent.
        game: the spec of the game; its options apply until a command changes them.
        version: the version of the package, for the command `version`.
        seed: the seed of the agent's random numbers; None uses fresh entropy.
        log: the file to append commands and responses to.
        resign_threshold: the share of wins below which the agent resigns, see `session.RESIGN_THRESHOLD`; 0 for never.
        ponders: whether the agent searches during the opponent's turn.

    Raises:
        ValueError: if a spec or an option is not valid.
        OSError: if the log cannot be opened.
    """
    variant = load_variant(game)
    if variant.definition.name != "go":
        raise ValueError(f"game={game!r}: the Go Text Protocol is for go")
    if variant.options["handicap"]:
        raise ValueError(f"game={game!r}: expected no handicap, controllers set it with fixed_handicap")
    if not 0 <= resign_threshold <= 1:
        raise ValueError(f"resign={resign_threshold}: expected a share of wins, 0 to 1")
    thinker = MoveChooser(agent, seed, ponders)
    source, target = sys.stdin.fileno(), sys.stdout.fileno()
    with contextlib.ExitStack() as stack:
        stack.callback(thinker.close)
        file = stack.enter_context(log.open("a", encoding="utf-8", errors="backslashreplace")) if log else None
        engine = Engine(
            Session(thinker, variant, version, resign_threshold), partial(_write_all, target), ProtocolLog(file)
        )
        engine.serve(lambda: os.read(source, READ_SIZE))


def _write_all(target: int, text: str) -> None:
    """Write text to a file descriptor without buffering."""
    left = text.encode("utf-8", "backslashreplace")
    while left:
        left = left[os.write(target, left) :]
