"""Who tells browsers what agents think of a position, a few at a time; what was found out is remembered."""

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
"""How many analyses may think at once; as many more may look for perfect play, which comes first and is quick."""
MAX_REMEMBERED = 50_000
"""Positions whose chances are remembered."""
BAND_CHUNK = 8
"""Positions of the band over the game that are looked at in one go."""
EXACT_SECONDS = (0.5, 5.0)
"""Of perfect play for a position: before all else, and beside the search; what is not known by then stays unknown."""
SOLVER_SECONDS = (*EXACT_SECONDS, 30.0)
"""The same where that is all that is asked for."""

log = logging.getLogger("ninetka")


@dataclass(frozen=True)
class Question:
    """What a browser looks at."""

    send: Callable[..., None]
    """Sends the browser a message of these fields."""
    engine: str
    kind: str
    """Of the game: see `Adapter.kind`."""
    ply: int
    line: list[int] | None
    """Actions tried from there; None where nothing is tried."""
    position: Game
    """The one that these lead to."""
    given_up: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for what is found out any more, so that the threads stop soon."""

    def tell(self, kind: str, **found: Any) -> None:
        """Tell something of the position; ply and line say of which."""
        self.send(type=kind, ply=self.ply, line=self.line, **found)


class Analysts:
    """The analyses of one server."""

    def __init__(self, players: Players, warm_up: WarmUp) -> None:
        """Think on the threads of `players`, with what `warm_up` gets ready."""
        self._players, self._warm_up = players, warm_up
        self._free, self._free_for_exact = asyncio.Semaphore(MAX_ANALYSES), asyncio.Semaphore(MAX_ANALYSES)
        self._bands: dict[tuple[str, str, bytes], list[float]] = {}
        self._winners: dict[bytes, int] = {}

    async def explain(self, asked: Question, games: Sequence[Game]) -> None:
        """Tell a guest more and more of a position, and how the game went; to be cancelled when it looks elsewhere.

        Args:
            asked: what it looks at.
            games: all positions of the game.
        """
        await self._or_fail(asked, self._explain(asked, games))

    async def hint(self, asked: Question) -> None:
        """Tell a guest one good move."""
        await self._or_fail(asked, self._hint(asked))

    async def _or_fail(self, asked: Question, work: Awaitable[None]) -> None:
        """Tell why an analysis failed: an agent of any kind may fail in any way. Given up, it stops soon."""
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
                await first  # it takes a moment, and says more than all that follows
            await self._ready(asked, asked.engine)
            async with self._free:
                await self._think(asked, games, first)

    async def _think(self, asked: Question, games: Sequence[Game], first: asyncio.Task[bool]) -> None:
        """Tell all that takes longer than a moment."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._solve_on(asked, first))
            group.create_task(self._tell_course(asked, games))
            if asked.engine != SOLVER:
                group.create_task(self._tell_insight(asked))
                group.create_task(self._tell_candidates(asked))

    async def _ready(self, asked: Question, engine: str) -> None:
        """Wait until an engine is compiled; say so if that is what takes long."""
        job = analysis_job(asked.kind, engine)
        if self._warm_up.is_compiling(job):
            asked.send(type="compiling", what=str(job), engine=asked.engine)
        await self._warm_up.wait(job)

    async def _solve_first(self, asked: Question) -> bool:
        """Tell what a moment finds out about perfect play; return whether nothing is left to find out."""
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
        """Tell what only this game knows of a position."""
        insight = await self._players.run(adapter_of(asked.position.name).study.insight, asked.position)
        asked.tell("insight", insight=insight)

    async def _tell_candidates(self, asked: Question) -> None:
        """Tell the moves, better and better known."""
        budgets = adapter_of(asked.position.name).study.budgets[asked.engine]
        steps = analyse(asked.position, asked.engine, budgets, asked.given_up.is_set)
        while found := await self._players.run(next, steps, None):
            asked.tell("analysis", engine=asked.engine, **found)

    async def _hint(self, asked: Question) -> None:
        """Tell a move that perfect play knows to win, or else the one that the engine likes best."""
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
        """Tell how the game went."""
        await self._tell_winners(asked, games)
        if asked.engine != SOLVER:
            await self._tell_band(asked, games)

    async def _tell_band(self, asked: Question, games: Sequence[Game]) -> None:
        """Tell the chances to win in each position of the game, in parts; those looked at before are remembered."""
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
            self._bands |= told  # others may empty it meanwhile
            if first + BAND_CHUNK < len(missing):
                asked.send(type="shares", engine=engine, shares=[found.get(key) for key in keys])
        asked.send(type="shares", engine=engine, shares=[found[key] for key in keys])

    async def _tell_winners(self, asked: Question, games: Sequence[Game]) -> None:
        """Tell who wins each position under perfect play, from the last back to where that takes too long."""
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
    """Return what a position is remembered by: it has up to some thousand bytes itself."""
    return hashlib.blake2b(game.records.tobytes(), digest_size=16).digest()
