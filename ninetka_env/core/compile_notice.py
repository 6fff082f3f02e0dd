"""Print that code is being compiled, because users would wait without knowing why.

Start reading at `listen`. The command `ninetka` sets the environment variable `NINETKA_COMPILE_NOTICE` to 1; programs
may do so, too.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from numba.core import event

VARIABLE = "NINETKA_COMPILE_NOTICE"
NOTICE_AFTER_S = 2.0
"""Seconds of compilation after which the notice is printed."""
NOTICE = "compiling, once on this machine: up to a minute (ninetka warm does it ahead)"
"""At most 80 characters, for narrow terminals."""


def listen() -> None:
    """Print `NOTICE` once on stderr, as soon as this process has compiled for `NOTICE_AFTER_S` seconds in all.

    Code that is loaded from the cache does not count. Nothing is printed unless the variable is 1.
    """
    if os.environ.get(VARIABLE) == "1":
        event.register("numba:compile", CompileTimer(lambda: print(NOTICE, file=sys.stderr, flush=True)))


class CompileTimer(event.Listener):
    """Measures the time of compilations, which may be nested and run in several threads."""

    def __init__(self, say: Callable[[], object]) -> None:
        """Call `say` once, in another thread, after `NOTICE_AFTER_S` seconds of compilation."""
        self._say: Callable[[], object] | None = say
        self._lock = threading.Lock()
        self._running, self._seconds, self._start = 0, 0.0, 0.0
        self._timer: threading.Timer | None = None

    def on_start(self, found: event.Event) -> None:
        """Start the clock at the start of a compilation."""
        with self._lock:
            self._running += 1
            if self._running == 1 and self._say:
                self._start = time.perf_counter()
                self._timer = threading.Timer(max(0.0, NOTICE_AFTER_S - self._seconds), self._give_notice)
                self._timer.daemon = True
                self._timer.start()

    def on_end(self, found: event.Event) -> None:
        """Stop the clock at the end of the last running compilation."""
        with self._lock:
            self._running -= 1
            if not self._running and self._timer:
                self._timer.cancel()
                self._seconds += time.perf_counter() - self._start

    def _give_notice(self) -> None:
        with self._lock:
            say = self._say if self._running else None
            self._say = None if say else self._say
        if say:
            say()
