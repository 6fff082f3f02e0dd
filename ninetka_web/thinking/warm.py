"""Compiles the server's numba code in the background, so that the page responds while code is compiled.

The event loop calls only the compiled rules, and only when they are ready: the first call of a compiled function waits
for numba's lock, which a compilation holds for seconds. Therefore a separate process compiles code that is not in the
cache on disk, and a thread of the server then loads it from the cache, which is fast. If the process cannot run or the
cache cannot be written, the thread compiles the code instead; this takes longer, but the page still responds.

For each key of compiled code (see `Adapter.kind`) there are jobs: one for the first board, one for all rules, one for
each agent and one for each analysis. The jobs of the default games are done without being requested, cached ones first.
Requested jobs come before all others; the users who requested jobs take turns, one job each.

`python -m ninetka_web.thinking.warm` is the separate process. It reads jobs, one per line, writes a line for each
finished job, and exits with its parent.
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
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import format_record
from ninetka_env.core.cache import cache_folder
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import read_sgf
from ninetka_web.games.adapter import adapter_of, usual_kinds
from ninetka_web.games.offer import SOLVER
from ninetka_web.tables.endings import resign
from ninetka_web.tables.journal import table_from, text_of
from ninetka_web.tables.records import record_of, sgf_of, table_of_record
from ninetka_web.tables.setup import Seat, Setup
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import view_of
from ninetka_web.thinking import analysis
from ninetka_web.thinking.players import choose, play_once

FIRST = "first board"
"""The first job of a game: what a new table needs until the first move."""
RULES = "rules"
"""All other code that the event loop calls."""
ANALYSIS = "analysis by "
"""The prefix of analyses; the engine's name follows. All other names are agents."""
EXACT = "perfect play"
"""The solver of positions, for games that have one."""
COUNTING = "counting"
"""The proposal of a finished game's score."""
WARM_PLIES = 4
"""Plies that a searching agent plays to compile all its code."""

log = logging.getLogger("ninetka")


class Job(NamedTuple):
    """A part of a game's code to compile or load."""

    kind: str
    """The key of the game's compiled code, a variant's spec; see `Adapter.kind`."""
    what: str

    def __str__(self) -> str:
        """Return the name of the job for messages."""
        title = load_variant(self.kind).definition.title
        return f"{title}, {self.what}"


def analysis_job(kind: str, engine: str) -> Job:
    """Return the job of an engine's analysis."""
    return Job(kind, EXACT if engine == SOLVER else f"{ANALYSIS}{engine}")


def usual_jobs() -> list[Job]:
    """Return the jobs that are done without a request: first boards, rules, then game by game the rest."""
    kinds = list(usual_kinds())
    begin = [Job(kind, what) for what in (FIRST, RULES) for kind in kinds]
    return begin + [job for kind in kinds for job in _further_jobs(kind)]


def _further_jobs(kind: str) -> list[Job]:
    adapter = adapter_of(kind.partition(":")[0])
    whats = [player.name for player in adapter.agents()]
    for engine in (one for one in adapter.engines() if one != SOLVER):
        whats.insert(whats.index(engine) + 1, f"{ANALYSIS}{engine}")
    return [Job(kind, what) for what in [*[EXACT] * adapter.study.solves, *whats, *[COUNTING] * adapter.settles]]


def warm(job: Job) -> None:
    """Do a job: load the code that it needs from the cache, or compile it."""
    variant = load_variant(job.kind)
    adapter = adapter_of(variant.definition.name)
    start = variant.game_class.start(variant)
    if job.what == FIRST:
        begin(job.kind)
    elif job.what == RULES:
        rehearse(job.kind)
    elif job.what == COUNTING:
        adapter.settle(start)
    elif job.what == EXACT:
        analysis.warm_up(start, SOLVER)
    elif job.what == SOLVER:
        choose(f"{SOLVER}:nodes=9", analysis.play_until(start, adapter.study.solvable))
    elif job.what.startswith(ANALYSIS):
        analysis.warm_up(start, job.what.removeprefix(ANALYSIS))
    else:
        if job.what == "net":
            _open_torch()
        searches = job.what in ("mcts", "net")
        play_once(f"{job.what}:simulations=2" if searches else job.what, job.kind, *[WARM_PLIES] * searches)
    mark = _mark(job)
    if mark and not is_kept(job):
        with contextlib.suppress(OSError):
            mark.write_text("compiled\n", encoding="utf-8")


def begin(kind: str) -> Table:
    """Dry run: do with a table what the event loop does before the first move. Return the table."""
    options, _ = adapter_of(kind.partition(":")[0]).rehearsal
    setup = Setup.of(load_variant(kind).replaced(**options))
    table = Table("rehearsal", setup, [Seat(holder="nobody") for _ in range(setup.variant.num_players)])
    table.wind()
    view_of(table)
    return table_from(text_of(table))


def rehearse(kind: str) -> None:
    """Dry run: call everything that the event loop does with a table."""
    table = begin(kind)
    setup, moves = table.setup, table.adapter.rehearsal[1]
    names = moves.split()
    while table.is_running:
        view_of(table)
        table.adapter.study.solvable(table.game)
        action = table.game.action_index(names.pop(0)) if names else int(table.game.legal_actions()[0])
        table.play("nobody", len(table.actions), action)
    table.adapter.rehearse(table.course.position(len(moves.split())))
    view_of(table)
    if table.is_settling:
        table.agreed = True
    table = table_from(text_of(table))
    for record in read_records(io.StringIO(format_record(record_of(table)))):
        view_of(table_of_record(record))
    if table.game.definition().sgf is not None:
        view_of(table_of_record(*read_sgf(sgf_of(table).encode())))
    for ply in (0, len(table.actions) - 1):
        position = str(table.course.position(ply))
        resign(Table("rehearsal", Setup(setup.game, setup.options, position=position), table.seats), "nobody")
    table.game.describe_illegal(0)


def _open_torch() -> None:
    """Load torch's largest library without the GIL, which `import torch` would hold for a quarter of a second."""
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin and sys.platform == "linux":
        library = Path(torch.origin).parent / "lib" / "libtorch_cpu.so"
        if library.exists():
            ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_NOW)


def _mark(job: Job) -> Path | None:
    """Return the file that marks a job's code as cached on disk; None if the cache cannot be written."""
    folder = cache_folder(Path(__file__).absolute().parent.parent)
    return folder / f"{job.kind.replace(':', ' ')}, {job.what}" if folder else None


def is_kept(job: Job) -> bool:
    """Return whether a job's code is cached on disk."""
    mark = _mark(job)
    return mark is not None and mark.exists()


class WarmUp:
    """The jobs of a server and which of them are done. Its methods must be called on the event loop."""

    def __init__(self, jobs: Sequence[Job], tell: Callable[[str], None]) -> None:
        """Start the jobs; `tell` is called on a thread with each job that is compiled, and when all are compiled."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Job, asyncio.Event] = {}
        self._missing: set[Job] = set()
        self._waiting: list[Job] = []
        self._asked: dict[str, list[Job]] = {}
        """The requested jobs by quota key; the key whose turn it is comes first."""
        self._change = threading.Condition()
        self._compiler: subprocess.Popen[str] | None = None
        self._ended = False
        for job in jobs:
            self._add(job)
        self._waiting.sort(key=lambda job: job in self._missing)
        threading.Thread(target=self._run, daemon=True).start()

    def _add(self, job: Job) -> None:
        self._ready[job] = asyncio.Event()
        if not is_kept(job):
            self._missing.add(job)
        self._waiting.append(job)

    def is_ready(self, job: Job) -> bool:
        """Return whether a job is done. The rules include the code of the first board."""
        doing = (job, Job(job.kind, RULES)) if job.what == FIRST else (job,)
        return any(one in self._ready and self._ready[one].is_set() for one in doing)

    def is_compiling(self, job: Job) -> bool:
        """Return whether a job waits for the compiler, not only for loading cached code, which is fast."""
        return not self.is_ready(job) and (job in self._missing if job in self._ready else not is_kept(job))

    async def wait(self, job: Job, who: str = "") -> None:
        """Request a job for the quota key `who`, and wait until it is done."""
        self.want(job, who)
        if not self.is_ready(job):
            await self._ready[job].wait()

    def want(self, job: Job, who: str = "") -> None:
        """Request a job for the quota key `who`. Requested jobs come first, and the keys take turns."""
        if self.is_ready(job):
            return
        with self._change:
            if job not in self._ready:
                self._add(job)
            self._asked.setdefault(who, []).append(job)
            self._change.notify()

    def close(self) -> None:
        """Stop the thread and kill the compiling process."""
        with self._change:
            self._ended = True
            self._change.notify()
        if self._compiler:
            self._compiler.kill()

    def _run(self) -> None:
        """Do jobs until `close`, then wait for the end of the compiling process."""
        self._work()
        if self._compiler:
            self._compiler.kill()
            with contextlib.suppress(OSError):
                self._compiler.communicate()

    def _work(self) -> None:
        """Do one job after another."""
        begin, compiled, done = time.perf_counter(), 0, 0
        while (job := self._next()) is not None:
            done += 1
            if job in self._missing:
                self._tell(f"compiling, once: {job} ({done} of {len(self._ready)})")
                compiled += 1
                self._compile_elsewhere(job)
            if self._ended:
                return
            self._load(job)
            if compiled and not self._waiting:
                self._tell(f"all is compiled, after {time.perf_counter() - begin:.0f} s")
                compiled = 0

    def _next(self) -> Job | None:
        """Wait for the next job; None after `close`."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._ended)
            return None if self._ended else self._pick()

    def _pick(self) -> Job:
        """Remove and return the next job: the first of the key whose turn it is, or one without a request."""
        open_jobs = set(self._waiting)
        asked = {who: [job for job in jobs if job in open_jobs] for who, jobs in self._asked.items()}
        self._asked = {who: jobs for who, jobs in asked.items() if jobs}
        job = self._waiting[0]
        if self._asked:
            who, jobs = next(iter(self._asked.items()))
            job = jobs[0]
            self._asked[who] = self._asked.pop(who)[1:]
        self._waiting.remove(job)
        return job

    def _compile_elsewhere(self, job: Job) -> None:
        """Wait until the separate process has done a job or has died. A process that died is not restarted."""
        if _mark(job) is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._compiler is None:
                self._compiler = subprocess.Popen(
                    [sys.executable, "-m", "ninetka_web.thinking.warm"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # so that Ctrl+C does not reach it; it exits with the server
                )
            assert self._compiler.stdin is not None
            assert self._compiler.stdout is not None
            self._compiler.stdin.write(f"{job.kind}\t{job.what}\n")
            self._compiler.stdin.flush()
            self._compiler.stdout.readline()

    def _load(self, job: Job) -> None:
        if is_kept(job):  # loading is fast and leaves little garbage; a collection would block the event loop
            gc.disable()
        try:
            warm(job)
        except Exception:  # a user of the job gets the error when it is called; the rest works
            log.exception("%s could not be made ready", job)
        finally:
            gc.freeze()  # the loaded code stays in memory
            gc.enable()
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._ready[job].set)


def main() -> None:
    """Do the jobs that the server sends."""
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        line = jobs.get()
        with contextlib.suppress(Exception):  # the server then does the job itself and reports the error
            warm(Job(*line.split("\t")))
        print(line, flush=True)


def _listen(jobs: queue.Queue[str]) -> None:
    """Read jobs; exit immediately when the server has closed the pipe or died."""
    for line in sys.stdin:
        jobs.put(line.rstrip("\n"))
    os._exit(1)


if __name__ == "__main__":
    main()
