"""Runs the agents of all tables and proposes the scores of finished games, while a connection watches the table."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from ninetka_web.tables.endings import propose
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.table import Table
from ninetka_web.thinking.players import Players, choose
from ninetka_web.thinking.warm import COUNTING, RULES, Job, WarmUp

log = logging.getLogger("ninetka")


class Place(NamedTuple):
    """The position that a task thinks about, and its agent."""

    history: int
    """`Course.history`."""
    ply: int
    agent: str
    """The agent's spec; empty for the proposal of a score."""


class Agents:
    """The agents of all tables of one server. At each table at most one task thinks."""

    def __init__(
        self,
        players: Players,
        warm_up: WarmUp,
        is_seen: Callable[[str], bool],
        changed: Callable[[Table], None],
        show: Callable[[str], None],
        announce: Callable[[str, str], None],
    ) -> None:
        """Set the collaborators.

        Args:
            players: the threads on which agents think.
            warm_up: compiles their code.
            is_seen: returns whether any connection watches a table.
            changed: saves and sends a table after a move.
            show: sends a table's state.
            announce: sends a notice to a table's connections.
        """
        self._players, self._warm_up = players, warm_up
        self._is_seen, self._changed, self._show, self._announce = is_seen, changed, show, announce
        self._thinking: dict[str, asyncio.Task[None]] = {}
        self._places: dict[str, Place] = {}

    def prompt(self, table: Table) -> None:
        """Start the agent to move if any connection watches the table. A call from the table's own task does nothing.

        If the agent already thinks about this position, it continues even if the pace has changed: a search cannot be
        interrupted, so many changes of the pace would start many searches at once.
        """
        task, is_seen = self._thinking.get(table.id), self._is_seen(table.id)
        if task and task is asyncio.current_task():
            return
        if task and is_seen and self._places.get(table.id) == _place_of(table):
            return
        self.stop(table.id)
        thinks = table.agent_to_move and not table.paused
        if is_seen and (thinks or _waits_for_proposal(table)):
            self._thinking[table.id] = asyncio.create_task(self._think(table))

    def stop(self, table_id: str) -> None:
        """Cancel the task of a table."""
        task = self._thinking.pop(table_id, None)
        self._places.pop(table_id, None)
        if task and task is not asyncio.current_task():
            task.cancel()

    def is_compiling(self, table: Table) -> bool:
        """Return whether the table waits for the compiler."""
        job = _job_of(table)
        return job is not None and any(map(self._warm_up.is_compiling, (_rules_of(table), job)))

    def close(self) -> None:
        """Cancel all tasks."""
        for table in list(self._thinking):
            self.stop(table)

    async def _think(self, table: Table) -> None:
        """Play the agents' moves until a person is to move. Any other change of the table cancels this task."""
        try:
            while job := _job_of(table):
                self._places[table.id] = _place_of(table)
                await self._wait_for(job, table)
                if not table.agent_to_move:
                    propose(table, await self._players.run(table.adapter.settle, table.game.copy()))
                    self._changed(table)
                    return
                begin = time.perf_counter()
                action = await self._players.run(choose, table.agent_to_move, table.game.copy())
                await asyncio.sleep(table.wait / 1000 - (time.perf_counter() - begin))
                if table.paused:
                    return
                table.play_agent(action)
                self._changed(table)
        except RefusedError as refusal:  # the move could not be saved
            self._announce(table.id, str(refusal))
        except Exception as error:  # an agent may fail in any way; only its table waits
            log.exception("an agent failed at table %s", table.id)
            self._announce(table.id, f"the agent could not choose a move: {error}; continue to let it try again")
            self._pause(table)
        finally:
            if self._thinking.get(table.id) is asyncio.current_task():
                self.stop(table.id)

    def _pause(self, table: Table) -> None:
        """Pause the agents of a table until a person continues."""
        table.paused = True
        with contextlib.suppress(RefusedError):  # if the change cannot be saved, the agents try again automatically
            self._changed(table)

    async def _wait_for(self, job: Job, table: Table) -> None:
        """Wait until the rules and an agent are compiled; then send the state, which shows that the agent thinks."""
        jobs, compiling = (_rules_of(table), job), self.is_compiling(table)
        for wanted in jobs:
            self._warm_up.want(wanted, table.maker)
        for wanted in jobs:
            await self._warm_up.wait(wanted, table.maker)
        if compiling:
            self._show(table.id)


def _place_of(table: Table) -> Place:
    return Place(table.course.history, len(table.actions), table.agent_to_move)


def _rules_of(table: Table) -> Job:
    return Job(table.setup.kind, RULES)


def _job_of(table: Table) -> Job | None:
    """Return the job for the table's next task: its agent, of any strength, or the proposal of a score; else None."""
    if table.agent_to_move:
        return Job(table.setup.kind, table.agent_to_move.partition(":")[0])
    return Job(table.setup.kind, COUNTING) if _waits_for_proposal(table) else None


def _waits_for_proposal(table: Table) -> bool:
    return table.is_settling and table.proposal is None
