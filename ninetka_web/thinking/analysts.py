"""Runs the analyses that browsers request, a few at a time, and sends and caches their results."""

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
from ninetka_web.games.adapter import adapter_of, told_winner
from ninetka_web.games.offer import SOLVER
from ninetka_web.thinking.analysis import analyse, solve, told_exact, win_shares
from ninetka_web.thinking.players import Players
from ninetka_web.thinking.warm import WarmUp, analysis_job

MAX_ANALYSES = 8
"""How many analyses may search at once; as many more may run the solver, which comes first and is fast."""
MAX_REMEMBERED = 50_000
"""The number of positions whose win probabilities are cached."""
BAND_CHUNK = 8
"""Positions of the win-probability graph that are evaluated in one call."""
EXACT_SECONDS = (0.5, 5.0)
"""Time limits of the solver for a position: before the search, and while the search runs."""
SOLVER_SECONDS = (*EXACT_SECONDS, 30.0)
"""The same limits if the engine is the solver."""

log = logging.getLogger("ninetka")


@dataclass(frozen=True)
class Question:
    """A browser's request for an analysis."""

    send: Callable[..., None]
    """Sends the browser a message with the given fields."""
    engine: str
    kind: str
    """The key of the game's compiled code: see `Adapter.kind`."""
    ply: int
    line: list[int] | None
    """Actions that the user tries after `ply`; None if the user tries none."""
    position: Game
    """The position to analyse, after `ply` actions and `line`."""
    given_up: threading.Event = field(default_factory=threading.Event)
    """Set when the analysis has ended or was cancelled, so that its threads stop soon."""

    def tell(self, kind: str, **found: Any) -> None:
        """Send a message of type `kind` about the position, with its ply and line."""
        self.send(type=kind, ply=self.ply, line=self.line, **found)


class Analysts:
    """The analyses of one server."""

    def __init__(self, players: Players, warm_up: WarmUp) -> None:
        """Run analyses on the threads of `players`, with code that `warm_up` compiles."""
        self._players, self._warm_up = players, warm_up
        self._free, self._free_for_exact = asyncio.Semaphore(MAX_ANALYSES), asyncio.Semaphore(MAX_ANALYSES)
        self._bands: dict[tuple[str, str, bytes], list[float]] = {}
        self._winners: dict[bytes, int] = {}

    async def explain(self, asked: Question, games: Sequence[Game]) -> None:
        """Send the growing analysis of a position, and that of the whole game; runs until done or cancelled.

        Args:
            asked: the request.
            games: all positions of the game.
        """
        await self._or_fail(asked, self._explain(asked, games))

    async def hint(self, asked: Question) -> None:
        """Send one good move."""
        await self._or_fail(asked, self._hint(asked))

    async def _or_fail(self, asked: Question, work: Awaitable[None]) -> None:
        """Run an analysis; if an engine fails, send the reason. In the end, tell its threads to stop."""
        try:
            await work
        except Exception as error:
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            log.error("an analysis failed", exc_info=error)
            asked.tell("failed", engine=asked.engine, reason=str(error) or type(error).__name__)
        finally:
            asked.given_up.set()

    async def _explain(self, asked: Question, games: Sequence[Game]) -> None:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(self._solve_first(asked))
            if self._warm_up.is_ready(analysis_job(asked.kind, SOLVER)):
                await first  # it is fast and more informative than the search
            await self._ready(asked, asked.engine)
            async with self._free:
                await self._think(asked, games, first)

    async def _think(self, asked: Question, games: Sequence[Game], first: asyncio.Task[bool]) -> None:
        """Send the results that take longer."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._solve_on(asked, first))
            group.create_task(self._tell_course(asked, games))
            if asked.engine != SOLVER:
                group.create_task(self._tell_insight(asked))
                group.create_task(self._tell_candidates(asked))

    async def _ready(self, asked: Question, engine: str) -> None:
        """Wait until an engine is compiled or loaded; send `compiling` if it must be compiled."""
        job = analysis_job(asked.kind, engine)
        if self._warm_up.is_compiling(job):
            asked.send(type="compiling", what=str(job), engine=asked.engine)
        await self._warm_up.wait(job)

    async def _solve_first(self, asked: Question) -> bool:
        """Send what the solver finds in a short time; return whether no more values can be found."""
        if not adapter_of(asked.position.name).study.solvable(asked.position):
            return True
        await self._ready(asked, SOLVER)
        async with self._free_for_exact:
            return await self._tell_exact(asked, EXACT_SECONDS[0])

    async def _solve_on(self, asked: Question, first: asyncio.Task[bool]) -> None:
        whole = await first
        for seconds in (SOLVER_SECONDS if asked.engine == SOLVER else EXACT_SECONDS)[1:]:
            whole = whole or await self._tell_exact(asked, seconds)

    async def _tell_exact(self, asked: Question, seconds: float) -> bool:
        exact = await self._players.run(solve, asked.position, seconds, asked.given_up.is_set)
        asked.tell("exact", **told_exact(asked.position, exact))
        return exact.is_whole

    async def _tell_insight(self, asked: Question) -> None:
        """Send the game-specific facts about the position."""
        insight = await self._players.run(adapter_of(asked.position.name).study.insight, asked.position)
        asked.tell("insight", insight=insight)

    async def _tell_candidates(self, asked: Question) -> None:
        """Send the candidate moves after each budget of simulations."""
        budgets = adapter_of(asked.position.name).study.budgets[asked.engine]
        steps = analyse(asked.position, asked.engine, budgets, asked.given_up.is_set)
        while found := await self._players.run(next, steps, None):
            asked.tell("analysis", engine=asked.engine, **found)

    async def _hint(self, asked: Question) -> None:
        """Send a move that wins under perfect play if one is known, otherwise the engine's best move."""
        engine = "mcts" if asked.engine == SOLVER else asked.engine
        await self._ready(asked, engine)
        async with self._free:
            budgets = adapter_of(asked.position.name).study.budgets[engine][:3]
            *_, found = await self._players.run(list, analyse(asked.position, engine, budgets))
            exact = await self._players.run(solve, asked.position, EXACT_SECONDS[0])
        best = found["candidates"]
        sure = [one for one in best if exact.after.get(one["action"]) == asked.position.to_move]
        asked.tell("hint", wins=bool(sure), **(sure or best)[0])

    async def _tell_course(self, asked: Question, games: Sequence[Game]) -> None:
        """Send the analysis of the whole game."""
        await self._tell_winners(asked, games)
        if asked.engine != SOLVER:
            await self._tell_band(asked, games)

    async def _tell_band(self, asked: Question, games: Sequence[Game]) -> None:
        """Send the win probabilities of each position of the game, growing in parts; known ones come from the cache."""
        if len(self._bands) > MAX_REMEMBERED:
            self._bands.clear()
            self._winners.clear()
        engine = asked.engine
        keys = [(engine, game.name, _digest(game)) for game in games]
        found = {key: self._bands[key] for key in keys if key in self._bands}
        missing = [(key, game) for key, game in zip(keys, games, strict=True) if key not in found]
        for first in range(0, len(missing), BAND_CHUNK):
            part = missing[first : first + BAND_CHUNK]
            shares = await self._players.run(win_shares, [game for _, game in part], engine)
            told = {key: share for (key, _), share in zip(part, shares, strict=True)}
            found |= told
            self._bands |= told  # another analysis may empty the cache in the meantime
            if first + BAND_CHUNK < len(missing):
                asked.send(type="shares", engine=engine, shares=[found.get(key) for key in keys])
        asked.send(type="shares", engine=engine, shares=[found[key] for key in keys])

    async def _tell_winners(self, asked: Question, games: Sequence[Game]) -> None:
        """Send the winner of each position under perfect play, from the last one back to the first unsolved one."""
        solvable = adapter_of(games[0].name).study.solvable
        if not any(map(solvable, games)):
            return
        await self._ready(asked, SOLVER)
        winners = [UNFINISHED] * len(games)
        for ply in range(len(games) - 1, -1, -1):
            winners[ply] = await self._winner(games[ply])
            if winners[ply] == UNFINISHED:
                break
        asked.send(type="winners", winners=[told_winner(winner) for winner in winners])

    async def _winner(self, game: Game) -> int:
        key = _digest(game)
        if key not in self._winners:
            self._winners[key] = (await self._players.run(solve, game, EXACT_SECONDS[0], moves=False)).winner
        return self._winners[key]


def _digest(game: Game) -> bytes:
    """Return the cache key of a position: a digest, because states have up to several thousand bytes."""
    return hashlib.blake2b(game.records.tobytes(), digest_size=16).digest()
