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

from ninetka_env.core.options import shortened

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / place for place in ("ninetka_env", "agents", "train", "ninetka_web", "benchmarks")]
MOST_LINES, MOST_CHARACTERS = 3, 900
"""Limits of a clear error message."""
PATIENCE = 120
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
        self.examples.setdefault(kind, shortened(example))

    def lines(self) -> Iterator[str]:
        """Yield the lines of a report: numbers of trials and findings."""
        for target, count in self.tried.items():
            yield f"{target}: {count} tried"
        for kind, count in self.counts.most_common():
            yield f"FOUND {count} times: {kind}\n      example: {self.examples[kind]}"
        yield f"{self.tried.total()} inputs, {self.counts.total()} findings"


def tried(
    findings: Findings, target: str, call: Callable[[], Any], allowed: tuple[type[Exception], ...], example: object
) -> bool:
    """Run a call, add a finding unless it succeeds or raises a clear `allowed` error; return whether it succeeded."""
    findings.tried[target] += 1
    try:
        with patience():
            call()
    except allowed as error:
        if why := not_a_sentence(str(error)):
            findings.add(target, f"{type(error).__name__}, {why}: {where(error)}", example)
        elif not told_by_us(error):
            findings.add(target, f"{type(error).__name__} not raised by the project: {where(error)}", example)
        return False
    except (Exception, Hang) as error:
        findings.add(target, f"{type(error).__name__}: {where(error)}", example)
        return False
    return True


@contextmanager
def patience(seconds: float = PATIENCE) -> Iterator[None]:
    """Raise `Hang` in the context after `seconds`; without effect outside the main thread, which alone gets signals."""
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


def not_a_sentence(text: str) -> str:
    """Return why a message is not clear, such as its length; empty if it is clear."""
    if not text.strip():
        return "no message"
    if len(text.splitlines()) > MOST_LINES:
        return f"{len(text.splitlines())} lines"
    if len(text) > MOST_CHARACTERS:
        return f"{len(text)} characters"
    return ""


def told_by_us(error: Exception) -> bool:
    """Return whether a `raise` in this project raised the error, or it is an `OSError` that names a file."""
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


def where(error: BaseException) -> str:
    """Return a short text of the place and the message of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if any(Path(frame.filename).is_relative_to(place) for place in PACKAGES)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} {ascii(str(error))[:160]}"
