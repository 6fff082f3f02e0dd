"""Compiles the server's numba code in the background, so that the page responds while code is compiled.

The event loop calls only the compiled rules, and only when they are ready: the first call of a compiled function waits
for numba's lock, which a compilation holds for seconds. Therefore a separate process compiles code that is not in the
cache on disk, and a thread of the server then loads it from the cache, which is fast. If the process cannot run or the
cache cannot be written, the thread compiles the code instead; this takes longer, but the page still responds.

For each key of compiled code (see `Adapter.compile_key`) there are jobs: one for the first board, one for all rules,
one for each agent and one for each analysis. The jobs of all games with default options are done without a request,
those with cached code first. A requested job comes before all jobs without a request. If several quota keys have
requested jobs, the keys take turns, one job each.

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
from ninetka_env.core.cache import cache_folders
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import read_sgf
from ninetka_web.games.adapter import adapter_of, default_compile_keys
from ninetka_web.games.offer import SOLVER
from ninetka_web.tables.endings import resign
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.records import record_of, sgf_of, table_of_record
from ninetka_web.tables.setup import LOCAL_USER, Seat, Setup
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import view_of
from ninetka_web.thinking import analysis
from ninetka_web.thinking.agent_threads import choose_action, play_game

FIRST_BOARD = "first board"
"""The code that a new table needs until its first move; the first job of each game."""
RULES = "rules"
"""All other code that the event loop calls."""
ANALYSIS_PREFIX = "analysis by "
"""The prefix of an analysis; the engine's name follows."""
PERFECT_PLAY = "perfect play"
"""The solver of positions, for games that have one."""
COUNTING = "counting"
"""The proposal of a finished game's score."""
WARM_UP_PLIES = 4
"""Plies that a searching agent plays to compile all its code."""

log = logging.getLogger("ninetka")


class Job(NamedTuple):
    """A part of a game's code to compile or load.

    `component` is the name of an agent, `ANALYSIS_PREFIX` and the name of an engine, or another constant above.
    """

    compile_key: str
    """The key of the game's compiled code, a variant's spec; see `Adapter.compile_key`."""
    component: str

    def __str__(self) -> str:
        """Return the name of the job for messages."""
        title = load_variant(self.compile_key).definition.title
        return f"{title}, {self.component}"


def analysis_job(compile_key: str, engine: str) -> Job:
    """Return the job of an engine's analysis."""
    return Job(compile_key, PERFECT_PLAY if engine == SOLVER else f"{ANALYSIS_PREFIX}{engine}")


def default_jobs() -> list[Job]:
    """Return the jobs that are done without a request: first boards, rules, then the other jobs game by game."""
    compile_keys = list(default_compile_keys())
    first_jobs = [Job(compile_key, component) for component in (FIRST_BOARD, RULES) for compile_key in compile_keys]
    return first_jobs + [job for compile_key in compile_keys for job in _further_jobs(compile_key)]


def _further_jobs(compile_key: str) -> list[Job]:
    adapter = adapter_of(compile_key.partition(":")[0])
    components = [agent.name for agent in adapter.agents()]
    for engine in (name for name in adapter.engines() if name != SOLVER):
        components.insert(components.index(engine) + 1, f"{ANALYSIS_PREFIX}{engine}")
    return [
        Job(compile_key, component)
        for component in [*[PERFECT_PLAY] * adapter.study.has_solver, *components, *[COUNTING] * adapter.settles]
    ]


def compile_or_load(job: Job) -> None:
    """Do a job: load its code from the cache, or compile it and mark it as cached."""
    variant = load_variant(job.compile_key)
    adapter = adapter_of(variant.definition.name)
    start = variant.game_class.start(variant)
    if job.component == FIRST_BOARD:
        dry_run_new_table(job.compile_key)
    elif job.component == RULES:
        dry_run_table(job.compile_key)
    elif job.component == COUNTING:
        adapter.propose_score(start)
    elif job.component == PERFECT_PLAY:
        analysis.warm_up(start, SOLVER)
    elif job.component == SOLVER:
        choose_action(f"{SOLVER}:nodes=9", analysis.play_until(start, adapter.study.solvable))
    elif job.component.startswith(ANALYSIS_PREFIX):
        analysis.warm_up(start, job.component.removeprefix(ANALYSIS_PREFIX))
    else:
        if job.component == "net":
            _preload_torch()
        searches = job.component in ("mcts", "net")
        play_game(
            f"{job.component}:simulations=2" if searches else job.component,
            job.compile_key,
            *[WARM_UP_PLIES] * searches,
        )
    marker = _marker_file(job)
    if marker and not is_cached(job):
        with contextlib.suppress(OSError):
            marker.write_text("compiled\n", encoding="utf-8")


def dry_run_new_table(compile_key: str) -> Table:
    """Create a table, call all code that the event loop calls before its first move, and return the table."""
    options, _ = adapter_of(compile_key.partition(":")[0]).dry_run_setup
    setup = Setup.of(load_variant(compile_key).replace_options(**options))
    table = Table("dry-run", setup, [Seat(user=LOCAL_USER) for _ in range(setup.variant.num_players)])
    table.update_clock()
    view_of(table)
    return load_table(dump_table(table))


def dry_run_table(compile_key: str) -> None:
    """Play a game at a table, and call all code of the rules that the event loop calls."""
    table = dry_run_new_table(compile_key)
    setup, moves = table.setup, table.adapter.dry_run_setup[1]
    names = moves.split()
    while table.is_running:
        view_of(table)
        table.adapter.study.solvable(table.game)
        action = table.game.action_index(names.pop(0)) if names else int(table.game.legal_actions()[0])
        table.play(LOCAL_USER, len(table.actions), action)
    table.adapter.dry_run(table.history.position(len(moves.split())))
    view_of(table)
    if table.is_settling:
        table.agreed = True
    table = load_table(dump_table(table))
    for record in read_records(io.StringIO(format_record(record_of(table)))):
        view_of(table_of_record(record))
    if table.game.definition().sgf is not None:
        view_of(table_of_record(*read_sgf(sgf_of(table).encode())))
    for ply in range(len(table.actions)):
        position = str(table.history.position(ply))
        resign(Table("dry-run", Setup(setup.game, setup.options, position=position), table.seats), LOCAL_USER)
    table.game.describe_illegal(0)


def _preload_torch() -> None:
    """Load torch's largest library without the GIL, which `import torch` would hold for a quarter of a second."""
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin and sys.platform == "linux":
        library = Path(torch.origin).parent / "lib" / "libtorch_cpu.so"
        if library.exists():
            ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_NOW)


def _marker_file(job: Job) -> Path | None:
    """Return the file that marks a job's code as cached on disk; None if the cache cannot be written."""
    folder = cache_folders(Path(__file__).absolute().parent.parent).writable
    return folder / f"{job.compile_key.replace(':', ' ')}, {job.component}" if folder else None


def is_cached(job: Job) -> bool:
    """Return whether a job's code is cached on disk."""
    marker = _marker_file(job)
    return marker is not None and marker.exists()


class WarmUp:
    """The jobs of a server and which of them are done. Its methods must be called on the event loop."""

    def __init__(self, jobs: Sequence[Job], report: Callable[[str], None]) -> None:
        """Start the jobs; `report` is called on a thread with each job that is compiled, and when all are compiled."""
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Job, asyncio.Event] = {}
        self._not_cached: set[Job] = set()
        self._pending: list[Job] = []
        self._requests: dict[str, list[Job]] = {}
        """The requested jobs by quota key; the key whose turn it is comes first."""
        self._condition = threading.Condition()
        self._compiler: subprocess.Popen[str] | None = None
        self._closed = False
        for job in jobs:
            self._add(job)
        self._pending.sort(key=lambda job: job in self._not_cached)
        threading.Thread(target=self._run, daemon=True).start()

    def _add(self, job: Job) -> None:
        self._ready[job] = asyncio.Event()
        if not is_cached(job):
            self._not_cached.add(job)
        self._pending.append(job)

    def is_ready(self, job: Job) -> bool:
        """Return whether a job is done. The job of the rules includes the code of the first board."""
        jobs = (job, Job(job.compile_key, RULES)) if job.component == FIRST_BOARD else (job,)
        return any(each in self._ready and self._ready[each].is_set() for each in jobs)

    def is_compiling(self, job: Job) -> bool:
        """Return whether a job is not done and its code is not cached, so that it must be compiled."""
        return not self.is_ready(job) and (job in self._not_cached if job in self._ready else not is_cached(job))

    async def wait(self, job: Job, quota_key: str = "") -> None:
        """Request a job for the quota key `quota_key`, and wait until it is done."""
        self.request(job, quota_key)
        if not self.is_ready(job):
            await self._ready[job].wait()

    def request(self, job: Job, quota_key: str = "") -> None:
        """Request a job for the quota key `quota_key`. Requested jobs come first, and the keys take turns."""
        if self.is_ready(job):
            return
        with self._condition:
            if job not in self._ready:
                self._add(job)
            self._requests.setdefault(quota_key, []).append(job)
            self._condition.notify()

    def close(self) -> None:
        """Stop the thread and kill the compiling process."""
        with self._condition:
            self._closed = True
            self._condition.notify()
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
        start, compiled, done = time.perf_counter(), 0, 0
        while (job := self._wait_for_job()) is not None:
            done += 1
            if job in self._not_cached:
                self._report(f"compiling, once: {job} ({done} of {len(self._ready)})")
                compiled += 1
                self._compile_in_subprocess(job)
            if self._closed:
                return
            self._load(job)
            if compiled and not self._pending:
                self._report(f"all is compiled, after {time.perf_counter() - start:.0f} s")
                compiled = 0

    def _wait_for_job(self) -> Job | None:
        """Wait for the next job; None after `close`."""
        with self._condition:
            self._condition.wait_for(lambda: self._pending or self._closed)
            return None if self._closed else self._pop_job()

    def _pop_job(self) -> Job:
        """Remove and return the next job: the first of the key whose turn it is, or one without a request."""
        open_jobs = set(self._pending)
        requests = {quota_key: [job for job in jobs if job in open_jobs] for quota_key, jobs in self._requests.items()}
        self._requests = {quota_key: jobs for quota_key, jobs in requests.items() if jobs}
        job = self._pending[0]
        if self._requests:
            quota_key, jobs = next(iter(self._requests.items()))
            job = jobs[0]
            self._requests[quota_key] = self._requests.pop(quota_key)[1:]
        self._pending.remove(job)
        return job

    def _compile_in_subprocess(self, job: Job) -> None:
        """Send a job to the separate process, and wait until it is done or the process has died."""
        if _marker_file(job) is None:
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
            self._compiler.stdin.write(f"{job.compile_key}\t{job.component}\n")
            self._compiler.stdin.flush()
            self._compiler.stdout.readline()

    def _load(self, job: Job) -> None:
        if is_cached(job):  # loading is fast and leaves little garbage; a collection would block the event loop
            gc.disable()
        try:
            compile_or_load(job)
        except Exception:  # the error occurs again when the code is used; other code works
            log.exception("%s could not be made ready", job)
        finally:
            gc.freeze()  # the loaded code stays in memory, so collections skip it
            gc.enable()
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._ready[job].set)


def main() -> None:
    """Do the jobs that the server sends."""
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    while True:
        line = jobs.get()
        with contextlib.suppress(Exception):  # the server then does the job itself and reports the error
            compile_or_load(Job(*line.split("\t")))
        print(line, flush=True)


def _read_jobs(jobs: queue.Queue[str]) -> None:
    """Read jobs; exit immediately when the server has closed the pipe or died."""
    for line in sys.stdin:
        jobs.put(line.rstrip("\n"))
    os._exit(1)


if __name__ == "__main__":
    main()
