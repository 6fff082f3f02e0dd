"""Run external GTP engines as child processes and send them commands."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from queue import Empty, Full, Queue

from ninetka_agents.go.gtp.protocol import read_lines, write_command
from ninetka_env.core.options import shortened

FOLDERS = ("/usr/games", "/usr/local/games")
"""The folders searched for engines after `PATH`: Debian installs games there."""
MOST_WAITING = 10_000
"""The maximum number of unread lines in the queue."""
MOST_ANSWERED = 10_000
"""The maximum number of lines in a response."""
GRACE = 1.0
"""The time in seconds that an engine has to exit after `quit`."""
BYTES = 1 << 16
"""The number of bytes read at once."""

_ANSWER = re.compile(r"[=?](?![=?])")
"""The start of a response; `==` is excluded, because banners may be underlined."""


class EngineError(Exception):
    """Raised if an engine fails or violates the protocol."""

    def __init__(self, message: str, is_late: bool = False) -> None:
        """Set the message, and whether the error is a timeout."""
        super().__init__(message)
        self.is_late = is_late


def find_engine(command: str) -> list[str]:
    """Split a command line without a shell, and find its program on `PATH` or in `FOLDERS`.

    Raises:
        ValueError: if the command line is empty or malformed, or there is no such program.
    """
    try:
        words = _words(command, is_windows=os.name == "nt")
    except ValueError as error:
        raise ValueError(f"engine {shortened(command)}: {error}") from None
    if not words:
        raise ValueError("no engine: expected a command, such as gtp:gnugo --mode gtp")
    program = shutil.which(words[0], path=os.pathsep.join([os.environ.get("PATH", os.defpath), *FOLDERS]))
    if program is None:
        raise ValueError(f"engine {shortened(words[0])}: no such program on PATH or in {', '.join(FOLDERS)}")
    return [program, *words[1:]]


def _words(command: str, is_windows: bool) -> list[str]:
    """Split a command line. On Windows, backslashes belong to paths, and quotes must enclose whole words."""
    if not is_windows:
        return shlex.split(command)
    return [word.strip('"') for word in shlex.split(command, posix=False)]


class EngineProcess:
    """The process of an external engine, which runs until `close`."""

    def __init__(self, words: list[str], timeout: float) -> None:
        """Start an engine.

        Args:
            words: the words of the command line, the program first.
            timeout: the maximum time for each response, in seconds.

        Raises:
            EngineError: if the program cannot be started.
        """
        self._timeout = timeout
        self._lines: Queue[str | None] = Queue(MOST_WAITING)
        self._complaints: deque[str] = deque(maxlen=1)
        self._closed = threading.Event()
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as error:
            raise EngineError(f"cannot be started: {error.strerror}") from None
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._listen, self._overhear)]
        for thread in self._threads:
            thread.start()
        self._known: frozenset[str] | None = None
        self._asked = ""

    def ask(self, name: str, *arguments: object) -> str:
        """Send a command and return the response without `=`.

        Raises:
            EngineError: if the engine sends an error, exits, violates the protocol, or does not respond in time.
        """
        self._forget_talk()
        command = write_command(name, *arguments)
        self._asked = told = repr(command.strip())
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(command.encode())
            self._process.stdin.flush()
        except (OSError, ValueError):  # the latter if it has been closed
            raise EngineError(self._ending(told)) from None
        answer = self._read_answer(told)
        if answer.startswith("?"):
            raise EngineError(f"refused {told}: {answer[1:].strip()[:200]}")
        return answer[1:].strip()

    def knows(self, name: str) -> bool:
        """Return whether the engine has a command."""
        if self._known is None:
            self._known = frozenset(self.ask("list_commands").split())
        return name in self._known

    def close(self) -> None:
        """Send `quit`, wait at most `GRACE` seconds, then kill what is left of the engine."""
        self._closed.set()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"quit\n")
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        self._kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(GRACE)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def _kill(self) -> None:
        """Kill the engine and all processes that it has started."""
        if sys.platform == "win32":
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                kill_tree = ["taskkill", "/F", "/T", "/PID", str(self._process.pid)]
                subprocess.run(kill_tree, check=False, capture_output=True, timeout=10)
            self._process.kill()
        else:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _forget_talk(self) -> None:
        """Discard lines that arrived before the next command.

        Raises:
            EngineError: if one is a second response to the last command, because later responses would be misassigned.
        """
        for _ in range(self._lines.qsize()):
            line = self._lines.get()
            if line is None:
                self._lines.put(None)
            elif self._asked and _ANSWER.match(line.strip()):
                raise EngineError(f"answered {self._asked} more than once")

    def _read_answer(self, told: str) -> str:
        """Return the lines of the next response; lines before `=` or `?` are skipped."""
        stop, lines = time.perf_counter() + self._timeout, list[str]()
        while len(lines) < MOST_ANSWERED:
            try:
                left = stop - time.perf_counter()
                if left <= 0:
                    raise Empty
                line = self._lines.get(timeout=left)
            except Empty:
                raise EngineError(f"no answer to {told} within {self._timeout:g} s", is_late=True) from None
            if line is None:
                raise EngineError(self._ending(told))
            line = line.strip()
            if lines and not line:
                return "\n".join(lines)
            if lines or _ANSWER.match(line):
                lines.append(line)
        raise EngineError(f"answered {told} with more than {MOST_ANSWERED} lines")

    def _ending(self, told: str) -> str:
        """Return a message with the exit status and the last line on stderr."""
        self._closed.set()
        try:
            status = f"exit status {self._process.wait(GRACE)}"
        except subprocess.TimeoutExpired:
            status = "it closed its output"
        self._threads[1].join(GRACE)
        complaint = f": {self._complaints[0][:200]}" if self._complaints else ""
        return f"ended at {told}, {status}{complaint}"

    def _listen(self) -> None:
        """Queue the lines of the engine's stdout, and None at the end; wait while the queue is full."""
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        for line in read_lines(lambda: os.read(source, BYTES)):
            if not self._put(line):
                return
        self._put(None)

    def _put(self, line: str | None) -> bool:
        """Queue a line; return False if the process is closed, so that lines are not read any more."""
        while not self._closed.is_set():
            with contextlib.suppress(Full):
                self._lines.put(line, timeout=0.1)
                return True
        return False

    def _overhear(self) -> None:
        """Read the engine's stderr, so that the pipe does not fill up and block the engine; store the last line."""
        assert self._process.stderr is not None
        source = self._process.stderr.fileno()
        for line in read_lines(lambda: os.read(source, BYTES)):
            if line.strip():
                self._complaints.append(line.strip())
