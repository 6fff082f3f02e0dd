"""One trial of the fuzzer: an input is tried, and its outcome must be success or one clear sentence of our own."""

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

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [ROOT / place for place in ("ninetka_env", "agents", "train", "ninetka_web", "benchmarks")]
MOST_LINES, MOST_CHARACTERS = 3, 900
"""Of a sentence."""
PATIENCE = 120
"""Seconds after which a trial hangs; what is tried for the first time may have to be compiled."""


class Hang(BaseException):
    """A trial took too long."""


class Findings:
    """What was found: how often, and the first example of each kind."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def add(self, target: str, why: str, example: object) -> None:
        """Note a trial that went wrong."""
        kind = f"{target}: {why}"
        self.counts[kind] += 1
        self.examples.setdefault(kind, ascii(example)[:300])

    def lines(self) -> Iterator[str]:
        """Tell what was tried and what was found."""
        for target, count in self.tried.items():
            yield f"{target}: {count} tried"
        for kind, count in self.counts.most_common():
            yield f"FOUND {count} times: {kind}\n      such as {self.examples[kind]}"
        yield f"{self.tried.total()} inputs, {self.counts.total()} findings"


def tried(
    findings: Findings, target: str, call: Callable[[], Any], allowed: tuple[type[Exception], ...], example: object
) -> bool:
    """Try a call; note everything but success and the errors that its documentation promises. Tell if it succeeded."""
    findings.tried[target] += 1
    try:
        with patience():
            call()
    except allowed as error:
        if why := not_a_sentence(str(error)):
            findings.add(target, f"{type(error).__name__}, {why}: {where(error)}", example)
        elif not told_by_us(error):
            findings.add(target, f"{type(error).__name__} by chance: {where(error)}", example)
        return False
    except (Exception, Hang) as error:
        findings.add(target, f"{type(error).__name__}: {where(error)}", example)
        return False
    return True


@contextmanager
def patience(seconds: float = PATIENCE) -> Iterator[None]:
    """Raise `Hang` when what is done takes too long; only the main thread can be interrupted."""
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
    """Say what keeps a message from being a clear sentence; empty if nothing does."""
    if not text.strip():
        return "no message"
    if len(text.splitlines()) > MOST_LINES:
        return f"{len(text.splitlines())} lines"
    if len(text) > MOST_CHARACTERS:
        return f"{len(text)} characters"
    return ""


def told_by_us(error: Exception) -> bool:
    """Tell whether a `raise` of this project raised an error, or the system said no to a file that it names."""
    if isinstance(error, OSError) and error.filename is not None:
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    path = Path(frame.filename)
    return any(path.is_relative_to(place) for place in PACKAGES) and frame.lineno in _raising_lines(path)


@functools.cache
def _raising_lines(path: Path) -> frozenset[int]:
    """Return the lines of a file that belong to a `raise`."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Raise)]
    return frozenset(line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def where(error: BaseException) -> str:
    """Say where an error comes from and what it says, shortly."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if any(Path(frame.filename).is_relative_to(place) for place in PACKAGES)]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} {ascii(str(error))[:160]}"
