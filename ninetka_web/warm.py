"""Compiled code at hand before anybody waits for it, and a page that is alive meanwhile.

The event loop calls nothing compiled but the rules, and only once they are ready: whoever calls a compiled function for
the first time waits for numba's lock, which a compilation holds for seconds. The first start ever compiles everything
in another process; what that leaves on the disk a thread of the server then loads in a moment. Where no such process
can run, or leave anything on the disk, the thread compiles instead: all comes later, the page lives on.

`python -m ninetka_web.warm GAME JOB...` is that other process. It tells of each job that is done in a line, and ends
with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import importlib.util
import io
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import format_record
from ninetka_env.core.cache import cache_folder
from ninetka_web import analysis
from ninetka_web.players import known_agents, play_once
from ninetka_web.protocol import Create
from ninetka_web.tables import Table

RULES = "rules"
"""The job that comes first: all that the event loop calls."""
ANALYSIS = "analysis by "
"""How the jobs of analyses begin; the engine follows. All other jobs are agents."""

log = logging.getLogger("ninetka")


def known_jobs() -> list[str]:
    """Return what there is to compile, in the order in which it is asked for."""
    agents = known_agents()
    engines = {agent: [f"{ANALYSIS}{agent}"] for agent in analysis.BUDGETS}
    return [RULES, *(job for agent in agents for job in (agent, *engines.get(agent, ())))]


def warm(game: str, job: str) -> None:
    """Load all that a job needs, or compile it."""
    if job == RULES:
        rehearse()
    elif job.startswith(ANALYSIS):
        analysis.warm_up([job.removeprefix(ANALYSIS)])
    else:
        if job == "net":
            _open_torch()
        play_once(f"{job}:simulations=2" if job in ("mcts", "net") else job, game)
    mark = _mark(game, job)
    if mark and not _is_kept(game, job):
        with contextlib.suppress(OSError):
            mark.write_text("compiled\n")


def rehearse() -> None:
    """Do with a table all that the event loop does: play, show, save, record, begin in the middle of a game."""
    table = Table.create(Create(type="create", seats=["me", "me"], neutral_placement="random"), "nobody")
    while not table.is_over:
        table.view()
        analysis.is_solvable(table.game)
        table.play("nobody", len(table.actions), int(table.game.legal_actions()[0]))
    table = Table.from_json(table.to_json())
    for record in read_records(io.StringIO(format_record(table.record()))):
        Table.of_record(record).view()
    for ply in (0, len(table.actions) - 1):
        position = str(table.position(ply))
        Table.create(Create(type="create", seats=["me", "me"], position=position), "nobody").resign("nobody")
    table.game.describe_illegal(0)


def _open_torch() -> None:
    """Open torch's largest library without Python's lock, which `import` would hold for a quarter of a second."""
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin and sys.platform == "linux":
        library = Path(torch.origin).parent / "lib" / "libtorch_cpu.so"
        if library.exists():
            ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_NOW)


def _mark(game: str, job: str) -> Path | None:
    """Return the file whose presence says that a job's code is on the disk; None if none can be written."""
    folder = cache_folder(Path(__file__).absolute().parent)
    return folder / f"{game}, {job}" if folder else None


def _is_kept(game: str, job: str) -> bool:
    mark = _mark(game, job)
    return mark is not None and mark.exists()


class WarmUp:
    """What is ready in a server; made and asked on its event loop."""

    def __init__(self, game: str, tell: Callable[[str], None]) -> None:
        """Begin at once; `tell` hears, on a thread, what is being compiled, and at last that all is."""
        self._game, self._tell = game, tell
        self._loop = asyncio.get_running_loop()
        self._ready = {job: asyncio.Event() for job in known_jobs()}
        self._missing = [job for job in self._ready if not _is_kept(game, job)]
        self._process: subprocess.Popen[str] | None = None
        self._ended = False
        threading.Thread(target=self._run, daemon=True).start()

    def is_compiling(self, job: str) -> bool:
        """Tell whether a job has to wait for the compiler; loading what is on the disk is not worth a word."""
        return job in self._missing and not self._ready[job].is_set()

    async def wait(self, job: str) -> None:
        """Wait until a job is done; there is none for an agent that lacks a package, which says so when it is asked."""
        if job in self._ready:
            await self._ready[job].wait()

    def close(self) -> None:
        """End what still compiles."""
        self._ended = True
        if self._process:
            self._process.kill()

    def _run(self) -> None:
        """Get one job after the other ready."""
        begin = time.monotonic()
        done = self._compile_elsewhere([job for job in self._missing if _mark(self._game, job)])
        for number, job in enumerate(self._ready, 1):
            if job in self._missing:
                self._tell(f"compiling, once: {job} ({number} of {len(self._ready)})")
                next(done, None)
            if self._ended:
                return
            self._load(job)
        if self._missing:
            self._tell(f"all is compiled, after {time.monotonic() - begin:.0f} s")

    def _compile_elsewhere(self, jobs: list[str]) -> Iterator[str]:
        """Yield each job when another process has done it, for as long as that lives."""
        if not jobs:
            return
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ninetka_web.warm", self._game, *jobs],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # where Ctrl+C does not reach it: it ends with the server
            )
        except OSError:
            return
        with self._process:
            assert self._process.stdout is not None
            yield from self._process.stdout

    def _load(self, job: str) -> None:
        if _is_kept(self._game, job):  # quick: what piles up is little, but to search it would hold everybody up
            gc.disable()
        try:
            warm(self._game, job)
        except Exception:  # whoever asks for it hears why it fails; the rest works
            log.exception("%s could not be made ready", job)
        finally:
            gc.freeze()  # it stays
            gc.enable()
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            self._loop.call_soon_threadsafe(self._ready[job].set)


def main() -> None:
    """Compile what the command line names."""
    game, *jobs = sys.argv[1:]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for job in jobs:
        with contextlib.suppress(Exception):  # the server tries itself, and tells
            warm(game, job)
        print(job, flush=True)


def _end_with_parent() -> None:
    """End this process, whatever it does, when the one that began it has closed the pipe or died."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
