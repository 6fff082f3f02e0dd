"""Who tells browsers what agents think of a position, a few at a time; what was found out is remembered."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web import protocol
from ninetka_web.adapter import adapter_of, told_winner
from ninetka_web.analysis import analyse, exact_moves, win_shares
from ninetka_web.guest import Guest
from ninetka_web.players import Players
from ninetka_web.warm import ANALYSIS, Job, WarmUp

MAX_ANALYSES = 8
"""How many analyses may think at once."""
MAX_REMEMBERED = 50_000
"""Positions whose chances are remembered."""
BAND_CHUNK = 8
"""Positions of the band over the game that are looked at in one go."""


class Analysts:
    """The analyses of one server."""

    def __init__(self, players: Players, warm_up: WarmUp) -> None:
        """Think on the threads of `players`, with what `warm_up` gets ready."""
        self._players, self._warm_up = players, warm_up
        self._free = asyncio.Semaphore(MAX_ANALYSES)
        self._bands: dict[tuple[str, str, bytes], list[float]] = {}
        self._winners: dict[bytes, int] = {}

    async def explain(
        self, guest: Guest, message: protocol.Analyse, kind: str, position: Game, games: Sequence[Game]
    ) -> None:
        """Tell a guest more and more of a position, and how the game went; to be cancelled when it looks elsewhere.

        Args:
            guest: who hears it.
            message: what it asked for.
            kind: of the game: see `Adapter.kind`.
            position: what it looks at.
            games: all positions of the game.
        """
        job = Job(kind, f"{ANALYSIS}{message.engine}")
        if self._warm_up.is_compiling(job):
            guest.tell(type="compiling", what=str(job), engine=message.engine)
        await self._warm_up.wait(job)
        adapter, ply = adapter_of(position.name), message.ply
        async with self._free, asyncio.TaskGroup() as group:
            if adapter.solvable(position):  # it takes a moment, and says more than all that follows
                group.create_task(self._tell_exact(guest, ply, position))
            insight = await self._players.run(adapter.insight, position)
            for number, simulations in enumerate(adapter.budgets[message.engine]):
                found = await self._players.run(analyse, position, message.engine, simulations)
                guest.tell(type="analysis", ply=ply, engine=message.engine, insight=insight, **found)
                if number == 0:
                    await self._tell_band(guest, message.engine, games)
                if not found["candidates"]:
                    break
            await self._tell_winners(guest, games)

    async def _tell_exact(self, guest: Guest, ply: int, position: Game) -> None:
        """Tell who wins a position under perfect play."""
        guest.tell(type="exact", ply=ply, **await self._players.run(exact_moves, position))

    async def _tell_band(self, guest: Guest, engine: str, games: Sequence[Game]) -> None:
        """Tell the chances to win in each position of the game; those looked at before are remembered."""
        if len(self._bands) > MAX_REMEMBERED:
            self._bands.clear()
            self._winners.clear()
        keys = [(engine, game.name, _digest(game)) for game in games]
        found = {key: self._bands[key] for key in keys if key in self._bands}
        missing = [(key, game) for key, game in zip(keys, games, strict=True) if key not in found]
        for first in range(0, len(missing), BAND_CHUNK):
            part = missing[first : first + BAND_CHUNK]
            shares = await self._players.run(win_shares, [game for _, game in part], engine)
            told = {key: share for (key, _), share in zip(part, shares, strict=True)}
            found |= told
            self._bands |= told  # others may empty it meanwhile
        guest.tell(type="shares", engine=engine, shares=[found[key] for key in keys])

    async def _tell_winners(self, guest: Guest, games: Sequence[Game]) -> None:
        """Tell who wins each position under perfect play, from the last back to where that takes too long."""
        adapter = adapter_of(games[0].name)
        if not any(adapter.solvable(game) for game in games):
            return
        winners = [UNFINISHED] * len(games)
        for ply in range(len(games) - 1, -1, -1):
            if not adapter.solvable(games[ply]):
                break
            key = games[ply].records.tobytes()
            if key not in self._winners:
                self._winners[key] = await self._players.run(adapter.exact_winner, games[ply])
            winners[ply] = self._winners[key]
        guest.tell(type="winners", winners=[told_winner(winner) for winner in winners])


def _digest(game: Game) -> bytes:
    """Return what a position is remembered by: it has up to some thousand bytes itself."""
    return hashlib.blake2b(game.records.tobytes(), digest_size=16).digest()
