"""Run one trial of the fuzzer: its outcome must be success or one clear error message of the project."""

from __future__ import annotations

import ast
import functools
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from ninetka_env.core.options import short_repr

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / place for place in ("ninetka_env", "agents", "train", "ninetka_web", "benchmarks")]
MAX_LINES, MAX_CHARACTERS = 3, 900
"""Limits of a clear error message."""
TIMEOUT_S = 120
"""Time limit of a trial, in seconds. It includes compilation, which the first trial of a function may need."""


class Hang(BaseException):
    """Raised when a trial exceeds the time limit."""


class Findings:
    """The problems found: their number and the first example of each kind."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def add(self, target: str, why: str, example: object) -> None:
        """Add a failed trial."""
        kind = f"{target}: {why}"
        self.counts[kind] += 1
        self.examples.setdefault(kind, short_repr(example))

    def lines(self) -> Iterator[str]:
        """Yield the lines of a report: numbers of trials and findings."""
        for target, count in self.tried.items():
            yield f"{target}: {count} tried"
        for kind, count in self.counts.most_common():
            yield f"FOUND {count} times: {kind}\n      example: {self.examples[kind]}"
        yield f"{self.tried.total()} inputs, {self.counts.total()} findings"


def run_trial(
    findings: Findings, target: str, call: Callable[[], Any], allowed: tuple[type[Exception], ...], example: object
) -> bool:
    """Run a call and return whether it succeeded.

    An error is a finding unless its type is `allowed`, its message is clear and the project raised it. `target` names
    the tested function; `example` is the input, which is reported with a finding.
    """
    findings.tried[target] += 1
    try:
        with time_limit():
            call()
    except allowed as error:
        if why := message_problem(str(error)):
            findings.add(target, f"{type(error).__name__}, {why}: {describe_error(error)}", example)
        elif not raised_by_project(error):
            findings.add(target, f"{type(error).__name__} not raised by the project: {describe_error(error)}", example)
        return False
    except (Exception, Hang) as error:
        findings.add(target, f"{type(error).__name__}: {describe_error(error)}", example)
        return False
    return True


@contextmanager
def time_limit(seconds: float = TIMEOUT_S) -> Iterator[None]:
    """Raise `Hang` in the context after `seconds`. Only the main thread gets signals; no other thread has a limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


def message_problem(text: str) -> str:
    """Return what makes a message unclear, such as "5 lines"; an empty string if the message is clear."""
    if not text.strip():
        return "no message"
    if len(text.splitlines()) > MAX_LINES:
        return f"{len(text.splitlines())} lines"
    if len(text) > MAX_CHARACTERS:
        return f"{len(text)} characters"
    return ""


def raised_by_project(error: Exception) -> bool:
    """Return whether a `raise` in this project raised the error, or the error is an `OSError` that names a file."""
    if isinstance(error, OSError) and error.filename is not None:
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    path = Path(frame.filename)
    return any(path.is_relative_to(place) for place in PACKAGES) and frame.lineno in _raising_lines(path)


@functools.cache
def _raising_lines(path: Path) -> frozenset[int]:
    """Return the numbers of the lines of a file that belong to a `raise` statement."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Raise)]
    return frozenset(line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def describe_error(error: BaseException) -> str:
    """Return a short text with the location and the message of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if any(Path(frame.filename).is_relative_to(place) for place in PACKAGES)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} {ascii(str(error))[:160]}"
