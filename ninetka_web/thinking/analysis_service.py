"""Runs the analyses that browsers request, a few at a time, and sends and caches their results.

The analyses are computed in `analysis.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web.games.adapter import adapter_of, winner_json
from ninetka_web.games.offer import SOLVER
from ninetka_web.thinking.agent_threads import AgentThreads
from ninetka_web.thinking.analysis import analyse, exact_json, solve, win_shares
from ninetka_web.thinking.warm import WarmUp, analysis_job

MAX_ANALYSES = 8
"""The number of analyses that may search at the same time.

The same limit holds separately for the first, short call of the solver.
"""
MAX_CACHED = 50_000
"""The number of positions whose win probabilities are cached."""
TIMELINE_CHUNK = 8
"""Positions of the win-probability graph that are evaluated in one call."""
EXACT_SECONDS = (0.5, 5.0)
"""Time limits of the solver for a position: before the search, and while the search runs."""
SOLVER_SECONDS = (*EXACT_SECONDS, 30.0)
"""The time limits if the engine is the solver, which tries them one after another."""

log = logging.getLogger("ninetka")


@dataclass(frozen=True)
class AnalysisRequest:
    """A browser's request for an analysis."""

    send: Callable[..., None]
    """Sends the browser a message with the given fields."""
    engine: str
    compile_key: str
    """The key of the game's compiled code: see `Adapter.compile_key`."""
    ply: int
    variation: list[int] | None
    """Actions that the user tries after `ply`; None if the user tries none."""
    position: Game
    """The position to analyse, after `ply` actions and `variation`."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the analysis has ended or was cancelled, so that its threads stop soon."""

    def report(self, message_type: str, **fields: Any) -> None:
        """Send a message of type `message_type` about the position, with its ply and variation."""
        self.send(type=message_type, ply=self.ply, variation=self.variation, **fields)


class AnalysisService:
    """The analyses of one server."""

    def __init__(self, threads: AgentThreads, warm_up: WarmUp) -> None:
        """Run analyses on the threads of `threads`, with code that `warm_up` compiles."""
        self._threads, self._warm_up = threads, warm_up
        self._search_slots, self._solver_slots = asyncio.Semaphore(MAX_ANALYSES), asyncio.Semaphore(MAX_ANALYSES)
        self._win_shares: dict[tuple[str, str, bytes], list[float]] = {}
        self._winners: dict[bytes, int] = {}

    async def run_analysis(self, request: AnalysisRequest, games: Sequence[Game]) -> None:
        """Send the analysis of a position and of the whole game, as results are found, until done or cancelled.

        Args:
            request: the request.
            games: all positions of the game.
        """
        await self._report_failure(request, self._run_analysis(request, games))

    async def run_hint(self, request: AnalysisRequest) -> None:
        """Send one good move."""
        await self._report_failure(request, self._run_hint(request))

    async def _report_failure(self, request: AnalysisRequest, work: Awaitable[None]) -> None:
        """Run an analysis; if an engine fails, send the reason. At the end, signal its threads to stop."""
        try:
            await work
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            log.error("an analysis failed", exc_info=error)
            request.report("failed", engine=request.engine, reason=str(error) or type(error).__name__)
        finally:
            request.cancelled.set()

    async def _run_analysis(self, request: AnalysisRequest, games: Sequence[Game]) -> None:
        async with asyncio.TaskGroup() as group:
            quick_solve = group.create_task(self._solve_quickly(request))
            if self._warm_up.is_ready(analysis_job(request.compile_key, SOLVER)):
                await quick_solve  # it is fast and more informative than the search
            await self._wait_until_ready(request, request.engine)
            async with self._search_slots:
                await self._run_slow_parts(request, games, quick_solve)

    async def _run_slow_parts(
        self, request: AnalysisRequest, games: Sequence[Game], quick_solve: asyncio.Task[bool]
    ) -> None:
        """Send the results that take longer."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._solve_longer(request, quick_solve))
            group.create_task(self._send_game_analysis(request, games))
            if request.engine != SOLVER:
                group.create_task(self._send_insight(request))
                group.create_task(self._send_candidates(request))

    async def _wait_until_ready(self, request: AnalysisRequest, engine: str) -> None:
        """Wait until an engine is compiled or loaded; send `compiling` if it must be compiled."""
        job = analysis_job(request.compile_key, engine)
        if self._warm_up.is_compiling(job):
            request.send(type="compiling", what=str(job), engine=request.engine)
        await self._warm_up.wait(job)

    async def _solve_quickly(self, request: AnalysisRequest) -> bool:
        """Send what the solver finds in a short time; return whether solving longer cannot find more."""
        if not adapter_of(request.position.name).study.solvable(request.position):
            return True
        await self._wait_until_ready(request, SOLVER)
        async with self._solver_slots:
            return await self._send_exact(request, EXACT_SECONDS[0])

    async def _solve_longer(self, request: AnalysisRequest, quick_solve: asyncio.Task[bool]) -> None:
        is_complete = await quick_solve
        for seconds in (SOLVER_SECONDS if request.engine == SOLVER else EXACT_SECONDS)[1:]:
            is_complete = is_complete or await self._send_exact(request, seconds)

    async def _send_exact(self, request: AnalysisRequest, seconds: float) -> bool:
        exact = await self._threads.run(solve, request.position, seconds, request.cancelled.is_set)
        request.report("exact", **exact_json(request.position, exact))
        return exact.is_complete

    async def _send_insight(self, request: AnalysisRequest) -> None:
        """Send the game-specific facts about the position."""
        insight = await self._threads.run(adapter_of(request.position.name).study.insight, request.position)
        request.report("insight", insight=insight)

    async def _send_candidates(self, request: AnalysisRequest) -> None:
        """Send the candidate moves after each budget of simulations."""
        budgets = adapter_of(request.position.name).study.budgets[request.engine]
        steps = analyse(request.position, request.engine, budgets, request.cancelled.is_set)
        while result := await self._threads.run(next, steps, None):
            request.report("analysis", engine=request.engine, **result)

    async def _run_hint(self, request: AnalysisRequest) -> None:
        """Send a move that wins under perfect play if one is known, otherwise the engine's best move."""
        engine = "mcts" if request.engine == SOLVER else request.engine
        await self._wait_until_ready(request, engine)
        async with self._search_slots:
            budgets = adapter_of(request.position.name).study.budgets[engine][:3]
            *_, result = await self._threads.run(list, analyse(request.position, engine, budgets))
            exact = await self._threads.run(solve, request.position, EXACT_SECONDS[0])
        candidates = result["candidates"]
        winning = [
            candidate
            for candidate in candidates
            if exact.winner_after.get(candidate["action"]) == request.position.to_move
        ]
        request.report("hint", wins=bool(winning), **(winning or candidates)[0])

    async def _send_game_analysis(self, request: AnalysisRequest, games: Sequence[Game]) -> None:
        """Send the analysis of the whole game."""
        await self._send_winners(request, games)
        if request.engine != SOLVER:
            await self._send_win_shares(request, games)

    async def _send_win_shares(self, request: AnalysisRequest, games: Sequence[Game]) -> None:
        """Send the win probabilities of all positions of the game.

        Positions that are not in the cache are evaluated in chunks; after each chunk, all known probabilities are sent.
        """
        if len(self._win_shares) > MAX_CACHED:
            self._win_shares.clear()
            self._winners.clear()
        engine = request.engine
        keys = [(engine, game.name, _digest(game)) for game in games]
        all_shares = {key: self._win_shares[key] for key in keys if key in self._win_shares}
        missing = [(key, game) for key, game in zip(keys, games, strict=True) if key not in all_shares]
        for first in range(0, len(missing), TIMELINE_CHUNK):
            chunk = missing[first : first + TIMELINE_CHUNK]
            shares = await self._threads.run(win_shares, [game for _, game in chunk], engine)
            new_shares = {key: share for (key, _), share in zip(chunk, shares, strict=True)}
            all_shares |= new_shares
            self._win_shares |= new_shares  # unlike `all_shares`, another analysis may clear it
            if first + TIMELINE_CHUNK < len(missing):
                request.send(type="shares", engine=engine, shares=[all_shares.get(key) for key in keys])
        request.send(type="shares", engine=engine, shares=[all_shares[key] for key in keys])

    async def _send_winners(self, request: AnalysisRequest, games: Sequence[Game]) -> None:
        """Send each position's winner under perfect play, from the last position back to the first unsolved one."""
        solvable = adapter_of(games[0].name).study.solvable
        if not any(map(solvable, games)):
            return
        await self._wait_until_ready(request, SOLVER)
        winners = [UNFINISHED] * len(games)
        for ply in range(len(games) - 1, -1, -1):
            winners[ply] = await self._winner(games[ply])
            if winners[ply] == UNFINISHED:
                break
        request.send(type="winners", winners=[winner_json(winner) for winner in winners])

    async def _winner(self, game: Game) -> int:
        key = _digest(game)
        if key not in self._winners:
            self._winners[key] = (await self._threads.run(solve, game, EXACT_SECONDS[0], moves=False)).winner
        return self._winners[key]


def _digest(game: Game) -> bytes:
    """Return the cache key of a position: a digest, because states have up to several thousand bytes."""
    return hashlib.blake2b(game.records.tobytes(), digest_size=16).digest()
