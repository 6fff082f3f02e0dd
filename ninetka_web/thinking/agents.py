"""Runs the agents of all tables and proposes the scores of finished games, while a connection watches the table.

Start reading at `AgentRunner.start_thinking`. The agents themselves are in the package `ninetka_agents`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from ninetka_web.tables.endings import set_proposal
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.table import Table
from ninetka_web.thinking.agent_threads import AgentThreads, choose_action
from ninetka_web.thinking.warm import COUNTING, RULES, Job, WarmUp

log = logging.getLogger("ninetka")


class AgentTurn(NamedTuple):
    """What a task works on: a position, given by `version` and `ply`, and the agent that moves in it."""

    version: int
    """`GameHistory.version`."""
    ply: int
    agent: str
    """The agent's spec; empty for the proposal of a score."""


class AgentRunner:
    """The agents of all tables of one server. Each table has at most one task."""

    def __init__(
        self,
        threads: AgentThreads,
        warm_up: WarmUp,
        is_watched: Callable[[str], bool],
        save_and_send: Callable[[Table], None],
        send_state: Callable[[str], None],
        announce: Callable[[str, str], None],
    ) -> None:
        """Store the callbacks and services.

        Args:
            threads: the threads on which agents think.
            warm_up: compiles their code.
            is_watched: returns whether any connection watches a table.
            save_and_send: saves and sends a table after a move.
            send_state: sends a table's state.
            announce: sends a notice to a table's connections.
        """
        self._threads, self._warm_up = threads, warm_up
        self._is_watched, self._save_and_send, self._send_state, self._announce = (
            is_watched,
            save_and_send,
            send_state,
            announce,
        )
        self._thinking: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[str, AgentTurn] = {}

    def start_thinking(self, table: Table) -> None:
        """Start the task that plays the agents' moves at a table or proposes a score; stop it if it is not needed.

        The task is needed if a connection watches the table and either a score must be proposed, or an agent is to move
        and the table is not paused. A call from the task itself does nothing. If the task already works on this
        position, it continues even if the pace has changed: a search cannot be interrupted, so each change of the pace
        would start one more search.
        """
        task, is_watched = self._thinking.get(table.id), self._is_watched(table.id)
        if task and task is asyncio.current_task():
            return
        if task and is_watched and self._turns.get(table.id) == _turn_of(table):
            return
        self.stop(table.id)
        agent_thinks = table.agent_to_move and not table.paused
        if is_watched and (agent_thinks or _waits_for_proposal(table)):
            self._thinking[table.id] = asyncio.create_task(self._think(table))

    def stop(self, table_id: str) -> None:
        """Cancel the task of a table."""
        task = self._thinking.pop(table_id, None)
        self._turns.pop(table_id, None)
        if task and task is not asyncio.current_task():
            task.cancel()

    def waits_for_compiler(self, table: Table) -> bool:
        """Return whether the table's next task waits for compilation."""
        job = _job_of(table)
        return job is not None and any(map(self._warm_up.is_compiling, (_rules_job_of(table), job)))

    def close(self) -> None:
        """Cancel all tasks."""
        for table in list(self._thinking):
            self.stop(table)

    async def _think(self, table: Table) -> None:
        """Play the agents' moves until a person is to move. Any other change of the table cancels this task."""
        try:
            while job := _job_of(table):
                self._turns[table.id] = _turn_of(table)
                await self._wait_for(job, table)
                if not table.agent_to_move:
                    set_proposal(table, await self._threads.run(table.adapter.propose_score, table.game.copy()))
                    self._save_and_send(table)
                    return
                start = time.perf_counter()
                action = await self._threads.run(choose_action, table.agent_to_move, table.game.copy())
                await asyncio.sleep(table.agent_delay_ms / 1000 - (time.perf_counter() - start))
                if table.paused:
                    return
                table.play_agent(action)
                self._save_and_send(table)
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
            self._save_and_send(table)

    async def _wait_for(self, job: Job, table: Table) -> None:
        """Wait until the rules and `job` are compiled; after a compilation, send the state."""
        jobs, compiling = (_rules_job_of(table), job), self.waits_for_compiler(table)
        for each_job in jobs:
            self._warm_up.request(each_job, table.created_by)
        for each_job in jobs:
            await self._warm_up.wait(each_job, table.created_by)
        if compiling:
            self._send_state(table.id)


def _turn_of(table: Table) -> AgentTurn:
    return AgentTurn(table.history.version, len(table.actions), table.agent_to_move)


def _rules_job_of(table: Table) -> Job:
    return Job(table.setup.compile_key, RULES)


def _job_of(table: Table) -> Job | None:
    """Return the job that compiles the code of the agent to move or of the score proposal; None if neither is due."""
    if table.agent_to_move:
        return Job(table.setup.compile_key, table.agent_to_move.partition(":")[0])
    return Job(table.setup.compile_key, COUNTING) if _waits_for_proposal(table) else None


def _waits_for_proposal(table: Table) -> bool:
    return table.is_settling and table.proposal is None
