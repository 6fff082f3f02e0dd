"""Run external GTP engines as child processes and send them commands.

Start reading at `EngineProcess.ask`. `agent.py` plays the moves of these engines.
"""

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

from ninetka_agents.go.gtp.known_engines import complete_options
from ninetka_agents.go.gtp.protocol import format_command, read_lines
from ninetka_env.core.options import short_repr
from ninetka_env.core.text import one_line

ENGINE_FOLDERS = ("/usr/games", "/usr/local/games")
"""The folders searched for engines after `PATH`: Debian installs games there."""
MAX_QUEUED_LINES = 10_000
"""The maximum number of unread lines in the queue."""
MAX_RESPONSE_LINES = 10_000
"""The maximum number of lines in a response."""
QUIT_TIMEOUT_S = 1.0
"""The time in seconds that an engine has to exit after `quit`."""
READ_SIZE = 1 << 16
"""The maximum number of bytes per read."""

_RESPONSE_START = re.compile(r"[=?](?![=?])")
"""The start of a response; `==` is excluded, because some engines print banners underlined with `=`."""


class EngineError(Exception):
    """Raised if an engine fails or violates the protocol."""

    def __init__(self, message: str, is_timeout: bool = False) -> None:
        """Set the message, and whether the error is a timeout."""
        super().__init__(message)
        self.is_timeout = is_timeout


def find_engine(command: str) -> list[str]:
    """Return the words of a command line, with the path of its program, found on `PATH` or in `ENGINE_FOLDERS`.

    The command lines of well-known engines are completed; see `ninetka_agents.go.gtp.known_engines`.

    Raises:
        ValueError: if the command line is empty or malformed, or there is no such program.
    """
    try:
        words = _words(command, is_windows=os.name == "nt")
    except ValueError as error:
        raise ValueError(f"engine {short_repr(command)}: {error}") from None
    if not words:
        raise ValueError("no engine: expected a command, such as gtp:gnugo")
    program = shutil.which(words[0], path=os.pathsep.join([os.environ.get("PATH", os.defpath), *ENGINE_FOLDERS]))
    if program is None:
        raise ValueError(f"engine {short_repr(words[0])}: no such program on PATH or in {', '.join(ENGINE_FOLDERS)}")
    return [program, *complete_options(words[0], words[1:])]


def _words(command: str, is_windows: bool) -> list[str]:
    """Split a command line. On Windows, backslashes belong to paths, and quotes must enclose whole words."""
    if not is_windows:
        return shlex.split(command)
    return [word.strip('"') for word in shlex.split(command, posix=False)]


class FirstOutput:
    """The first and the last lines of a program's output before its first response, for error messages."""

    def __init__(self) -> None:
        """Create an empty record."""
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=2)
        self._is_cut = False

    def add(self, line: str) -> None:
        """Record a line of stdout or stderr, unless it is blank."""
        if not (text := one_line(line, 200)):
            return
        if len(self._first) < 2:
            self._first.append(text)
        else:
            self._is_cut |= len(self._last) == self._last.maxlen
            self._last.append(text)

    def __str__(self) -> str:
        """Return the lines in one line, separated by ` / `; it is empty if there are none."""
        return " / ".join([*self._first, *["..."] * self._is_cut, *self._last])


class EngineProcess:
    """The process of an external engine, which runs until `close`."""

    def __init__(self, words: list[str], timeout: float, first_timeout: float | None = None) -> None:
        """Start an engine.

        Args:
            words: the words of the command line, the program first.
            timeout: the maximum time for each response, in seconds.
            first_timeout: the same for the first response, if it differs.

        Raises:
            EngineError: if the program cannot be started.
        """
        self._timeout = timeout
        self._first_timeout = timeout if first_timeout is None else first_timeout
        self._has_responded = False
        self._first_output = FirstOutput()
        self._lines: Queue[str | None] = Queue(MAX_QUEUED_LINES)
        self._last_stderr_line: deque[str] = deque(maxlen=1)
        self._closed = threading.Event()
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except OSError as error:
            raise EngineError(f"cannot be started: {error.strerror}") from None
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._read_stdout, self._read_stderr)]
        for thread in self._threads:
            thread.start()
        self._known: frozenset[str] | None = None
        self._last_command = ""

    def ask(self, name: str, *arguments: object) -> str:
        """Send a command and return the text of the response, without `=`.

        Raises:
            EngineError: if the engine sends an error, exits, violates the protocol, or does not respond in time.
        """
        self._discard_unexpected_lines()
        command = format_command(name, *arguments)
        self._last_command = quoted_command = repr(command.strip())
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(command.encode())
            self._process.stdin.flush()
        except (OSError, ValueError):  # ValueError if stdin has been closed
            raise EngineError(self._describe_exit(quoted_command)) from None
        answer = self._read_response(quoted_command)
        if answer.startswith("?"):
            raise EngineError(f"refused {quoted_command}: {answer[1:].strip()[:200]}")
        return answer[1:].strip()

    def supports(self, name: str) -> bool:
        """Return whether the engine supports a command, according to `list_commands`."""
        if self._known is None:
            self._known = frozenset(self.ask("list_commands").split())
        return name in self._known

    def close(self) -> None:
        """Send `quit`, wait at most `QUIT_TIMEOUT_S` seconds, then kill the engine and its child processes."""
        self._closed.set()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"quit\n")
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(QUIT_TIMEOUT_S)
        self._kill()
        self._process.wait()
        for thread in self._threads:
            thread.join(QUIT_TIMEOUT_S)
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

    def _discard_unexpected_lines(self) -> None:
        """Discard lines that arrived before the next command.

        Raises:
            EngineError: if a line starts a second response to the last command; later responses would be misassigned.
        """
        for _ in range(self._lines.qsize()):
            line = self._lines.get()
            if line is None:
                self._lines.put(None)
            elif self._last_command and _RESPONSE_START.match(line.strip()):
                raise EngineError(f"answered {self._last_command} more than once")

    def _read_response(self, quoted_command: str) -> str:
        """Return the next response, starting with `=` or `?`; lines before it are skipped."""
        limit = self._timeout if self._has_responded else self._first_timeout
        stop, lines = time.perf_counter() + limit, list[str]()
        while len(lines) < MAX_RESPONSE_LINES:
            try:
                left = stop - time.perf_counter()
                if left <= 0:
                    raise Empty
                line = self._lines.get(timeout=left)
            except Empty:
                raise EngineError(self._describe_timeout(quoted_command, limit), is_timeout=True) from None
            if line is None:
                raise EngineError(self._describe_exit(quoted_command))
            line = line.strip()
            if lines and not line:
                self._has_responded = True
                return "\n".join(lines)
            if lines or _RESPONSE_START.match(line):
                lines.append(line)
        raise EngineError(f"answered {quoted_command} with more than {MAX_RESPONSE_LINES} lines")

    def _describe_timeout(self, quoted_command: str, limit: float) -> str:
        """Return an error message; before the first response, it says what was printed and what may be wrong."""
        message = f"no answer to {quoted_command} within {limit:g} s"
        if self._has_responded:
            return message
        printed = f"printed {str(self._first_output)!r}" if str(self._first_output) else "printed nothing"
        return (
            f"{message}, and the program {printed}: expected an engine in GTP mode (for GNU Go: --mode gtp) that "
            "starts in this time; timeout=SECONDS sets another time"
        )

    def _describe_exit(self, quoted_command: str) -> str:
        """Return an error message with the engine's exit status, and its first output or its last line on stderr."""
        self._closed.set()
        try:
            status = f"exit status {self._process.wait(QUIT_TIMEOUT_S)}"
        except subprocess.TimeoutExpired:
            status = "it closed its output"
        for thread in self._threads:
            thread.join(QUIT_TIMEOUT_S)
        last = self._last_stderr_line[0][:200] if self._last_stderr_line else ""
        printed = last if self._has_responded else str(self._first_output)
        return f"ended at {quoted_command}, {status}{printed and f': {printed}'}"

    def _read_stdout(self) -> None:
        """Queue the lines of the engine's stdout, and None at the end; wait while the queue is full."""
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        for line in read_lines(lambda: os.read(source, READ_SIZE)):
            if not self._has_responded:
                self._first_output.add(line)
            if not self._put(line):
                return
        self._put(None)

    def _put(self, line: str | None) -> bool:
        """Queue a line, waiting while the queue is full; return False if `close` has been called, to stop reading."""
        while not self._closed.is_set():
            with contextlib.suppress(Full):
                self._lines.put(line, timeout=0.1)
                return True
        return False

    def _read_stderr(self) -> None:
        """Read the engine's stderr, so that the pipe does not fill up and block the engine; store the last line."""
        assert self._process.stderr is not None
        source = self._process.stderr.fileno()
        for line in read_lines(lambda: os.read(source, READ_SIZE)):
            if not self._has_responded:
                self._first_output.add(line)
            if line.strip():
                self._last_stderr_line.append(line.strip())
