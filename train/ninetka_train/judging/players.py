"""Before agents play: they sit down at games that they remember, and act once, which compiles what they need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ninetka_agents.agent import Agent, Forfeit, GameRandom, Player
from ninetka_env.core.game import Game
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records

if TYPE_CHECKING:
    from ninetka_train.judging.results import Results

FAILURES = (Exception, SystemExit)
"""What an agent may raise; stopping the program is none of its own."""


class AgentError(RuntimeError):
    """An agent failed: it raised an exception, or answered with something other than one legal action per game."""

    results: Results | None = None
    """The rotation groups that were over by then, for `ninetka_train.judging.evaluate.summarise`; None if none was."""


class AnswerError(ValueError):
    """An agent answered with something other than one legal action per game."""


def failure_text(failure: BaseException) -> str:
    """Return what went wrong with an agent; memory that has run out is no fault of its own, and is raised again."""
    if isinstance(failure, MemoryError):
        raise failure
    return str(failure) if isinstance(failure, AnswerError) else f"{type(failure).__name__}: {failure}"


def sit_down(agent: Agent, game: Game, stack: contextlib.ExitStack) -> Player | None:
    """Have an agent that remembers games start one, to be closed by the stack; None for any other agent."""
    start: Callable[[Game], Player] | None = getattr(agent, "start", None)
    if start is None:
        return None
    player = start(game.copy())
    stack.callback(player.close)
    return player


def warm_up(agents: Sequence[Agent], variant: Variant, start: Records) -> None:
    """Let every agent act in every stage before a clock runs, on one game and on two: first calls compile.

    An agent that remembers games does so by a player in one game.
    """
    for agent in agents:
        with contextlib.ExitStack() as stack:
            try:
                _play_once(agent, variant.game_class(start.copy()), stack)
            except Forfeit as event:
                if str(event):
                    raise AgentError(f"agent {agent.name!r}: {event}") from event
            except FAILURES as error:
                raise AgentError(f"agent {agent.name!r}, before the first game: {failure_text(error)}") from error


def _play_once(agent: Agent, game: Game, stack: contextlib.ExitStack) -> None:
    """Play a game at random until the agent has acted in every stage."""
    rng, player = np.random.default_rng(0), sit_down(agent, game, stack)
    seen: set[int] = set()
    while not game.is_over and len(seen) < len(game.definition().stages):
        if game.stage not in seen:
            seen.add(game.stage)
            _act_once(agent, player, game)
        action = int(rng.choice(game.legal_actions()))
        game.play(action)
        if player is not None:
            player.observe(action)


def _act_once(agent: Agent, player: Player | None, game: Game) -> None:
    if player is not None:
        player.act(GameRandom(np.zeros(1, np.uint64)))
        return
    for count in (1, 2):
        agent.act(np.repeat(game.records, count), GameRandom(np.zeros(count, np.uint64)))
