"""Compiled code at hand before anybody waits for it, and a page that is alive meanwhile.

The event loop calls nothing compiled but the rules, and only once they are ready: whoever calls a compiled function for
the first time waits for numba's lock, which a compilation holds for seconds. What is not on the disk is compiled in
another process; what that leaves there a thread of the server then loads in a moment. Where no such process can run, or
leave anything on the disk, the thread compiles instead: all comes later, the page lives on.

There is a job for the first board of each kind of game (see `Adapter.kind`), one for all its rules, one for each of its
agents and for each analysis. Those of the kinds that are usual are done unasked, those on the disk first; what somebody
waits for comes before all, and of those who wait one comes after the other, however much each of them has asked for.

`python -m ninetka_web.thinking.warm` is that other process. It reads jobs line by line, writes a line for each that is
done, and ends with its parent.
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
"""What comes first: what shows a new table until somebody plays."""
RULES = "rules"
"""All else that the event loop calls."""
ANALYSIS = "analysis by "
"""How analyses begin; the engine follows. All others are agents."""
EXACT = "perfect play"
"""What tells who wins for certain, where a game knows that."""
COUNTING = "counting"
"""What is proposed when people settle how a game is counted."""
WARM_PLIES = 4
"""By agents that search, which is enough to have all of them compiled."""

log = logging.getLogger("ninetka")


class Job(NamedTuple):
    """Something to be compiled and loaded."""

    kind: str
    """Of the game, a spec."""
    what: str

    def __str__(self) -> str:
        """Name it for people."""
        title = load_variant(self.kind).definition.title
        return f"{title}, {self.what}"


def analysis_job(kind: str, engine: str) -> Job:
    """Return what an analysis needs."""
    return Job(kind, EXACT if engine == SOLVER else f"{ANALYSIS}{engine}")


def usual_jobs() -> list[Job]:
    """Return what there is to compile unasked, in this order: first boards, rules, then game by game the rest."""
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
    """Load all that a job needs, or compile it."""
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
    """Do with a table what the event loop does before anybody plays there: make, show and save it."""
    options, _ = adapter_of(kind.partition(":")[0]).rehearsal
    setup = Setup.of(load_variant(kind).replaced(**options))
    table = Table("rehearsal", setup, [Seat(holder="nobody") for _ in range(setup.variant.num_players)])
    table.wind()
    view_of(table)
    return table_from(text_of(table))


def rehearse(kind: str) -> None:
    """Do with a table all that the event loop does: play, show, save, record, begin in the middle of a game."""
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
    """Open torch's largest library without Python's lock, which `import` would hold for a quarter of a second."""
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin and sys.platform == "linux":
        library = Path(torch.origin).parent / "lib" / "libtorch_cpu.so"
        if library.exists():
            ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_NOW)


def _mark(job: Job) -> Path | None:
    """Return the file whose presence says that a job's code is on the disk; None if none can be written."""
    folder = cache_folder(Path(__file__).absolute().parent.parent)
    return folder / f"{job.kind.replace(':', ' ')}, {job.what}" if folder else None


def is_kept(job: Job) -> bool:
    """Return whether a job's code is on the disk."""
    mark = _mark(job)
    return mark is not None and mark.exists()


class WarmUp:
    """What is ready in a server; made and asked on its event loop."""

    def __init__(self, jobs: Sequence[Job], tell: Callable[[str], None]) -> None:
        """Begin at once; `tell` hears, on a thread, what is being compiled, and at last that all is."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Job, asyncio.Event] = {}
        self._missing: set[Job] = set()
        self._waiting: list[Job] = []
        self._asked: dict[str, list[Job]] = {}
        """What each of those who wait has asked for; whose turn it is comes first."""
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
        """Return whether a job is done; who has all rules needs none of the first board."""
        doing = (job, Job(job.kind, RULES)) if job.what == FIRST else (job,)
        return any(one in self._ready and self._ready[one].is_set() for one in doing)

    def is_compiling(self, job: Job) -> bool:
        """Return whether a job has to wait for the compiler; loading what is on the disk is not worth a word."""
        return not self.is_ready(job) and (job in self._missing if job in self._ready else not is_kept(job))

    async def wait(self, job: Job, who: str = "") -> None:
        """Want a job, and wait until it is done."""
        self.want(job, who)
        if not self.is_ready(job):
            await self._ready[job].wait()

    def want(self, job: Job, who: str = "") -> None:
        """Have a job done before all that nobody wants; those who want something take turns."""
        if self.is_ready(job):
            return
        with self._change:
            if job not in self._ready:
                self._add(job)
            self._asked.setdefault(who, []).append(job)
            self._change.notify()

    def close(self) -> None:
        """End what still compiles."""
        with self._change:
            self._ended = True
            self._change.notify()
        if self._compiler:
            self._compiler.kill()

    def _run(self) -> None:
        """Get jobs ready until the end, and leave nothing running."""
        self._work()
        if self._compiler:
            self._compiler.kill()
            with contextlib.suppress(OSError):
                self._compiler.communicate()

    def _work(self) -> None:
        """Get one job after the other ready."""
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
        """Wait for a job; None at the end."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._ended)
            return None if self._ended else self._pick()

    def _pick(self) -> Job:
        """Take the job that is next: the first of whoever's turn it is, or one that nobody waits for."""
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
        """Wait until another process has done a job, or has died; one that died once is not asked again."""
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
                    start_new_session=True,  # where Ctrl+C does not reach it: it ends with the server
                )
            assert self._compiler.stdin is not None
            assert self._compiler.stdout is not None
            self._compiler.stdin.write(f"{job.kind}\t{job.what}\n")
            self._compiler.stdin.flush()
            self._compiler.stdout.readline()

    def _load(self, job: Job) -> None:
        if is_kept(job):  # quick: what piles up is little, but to search it would hold everybody up
            gc.disable()
        try:
            warm(job)
        except Exception:  # whoever asks for it hears why it fails; the rest works
            log.exception("%s could not be made ready", job)
        finally:
            gc.freeze()  # it stays
            gc.enable()
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            self._loop.call_soon_threadsafe(self._ready[job].set)


def main() -> None:
    """Compile what is asked for."""
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        line = jobs.get()
        with contextlib.suppress(Exception):  # the server tries itself, and tells
            warm(Job(*line.split("\t")))
        print(line, flush=True)


def _listen(jobs: queue.Queue[str]) -> None:
    """Take jobs in; end this process, whatever it does, when the one that began it has closed the pipe or died."""
    for line in sys.stdin:
        jobs.put(line.rstrip("\n"))
    os._exit(1)


if __name__ == "__main__":
    main()
