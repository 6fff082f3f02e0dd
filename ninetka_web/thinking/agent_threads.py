"""Threads on which agents and analyses run, so that slow ones do not block the event loop or each other.

`agents.py` and `analysis_service.py` use these threads.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import numpy as np

from ninetka_agents import make_agent
from ninetka_agents.agent import Agent
from ninetka_env.core.game import Game
from ninetka_env.core.registry import load_variant
from ninetka_web.games.adapter import adapter_of

NUM_THREADS = 64
"""The number of threads. Compiled searches release the GIL, so the system schedules them fairly."""

P = ParamSpec("P")
T = TypeVar("T")
_local = threading.local()


class AgentThreads:
    """A thread pool for agents and analyses."""

    def __init__(self) -> None:
        """Create the pool; its threads start on demand."""
        self._pool = ThreadPoolExecutor(NUM_THREADS, "thinking", initializer=_lower_priority)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on a thread and return its result.

        A call that is cancelled before it starts never runs. If it has started, it runs to its end and its result is
        dropped.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, functools.partial(function, *args, **kwargs))

    def close(self) -> None:
        """Let the threads end; calls that have not started are dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def choose_action(spec: str, game: Game) -> int:
    """Return the action that an agent chooses."""
    return int(get_agent(spec, game.name).act(game.records, np.random.default_rng())[0])


def get_agent(spec: str, game: str) -> Agent:
    """Return this thread's agent for a spec and a game. Searches have scratch arrays, so threads share no agents.

    Raises:
        ValueError: if the page does not offer the spec. So no spec starts a program or opens a file.
    """
    full_spec = adapter_of(game).offer.spec(spec)
    agents: dict[tuple[str, str], Agent] = _local.__dict__.setdefault("agents", {})
    if (spec, game) not in agents:
        if len(agents) >= 16:
            agents.clear()
        agents[spec, game] = make_agent(full_spec, game)
    return agents[spec, game]


def play_game(spec: str, compile_key: str, plies: int = 1_000) -> None:
    """Play a game, or its first `plies`, with one agent in all seats."""
    variant = load_variant(compile_key)
    position = variant.game_class.start(variant)
    for _ in range(plies):
        if position.is_over:
            return
        position.play(choose_action(spec, position))


def _lower_priority() -> None:
    """Lower the priority of this thread below that of the event loop's thread.

    Only Linux has a priority per thread. On other systems the page is slower while agents think.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
