"""Before agents play: they sit down at games that they remember, and act once, which compiles what they need."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ninetka_agents.agent import Agent, Forfeit, GameRandom, Player
from ninetka_env.core.game import Game
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records

if TYPE_CHECKING:
    from ninetka_train.judging.results import Results


class AgentError(RuntimeError):
    """An agent failed: it raised an exception, or answered with something other than one legal action per game."""

    results: Results | None = None
    """The rotation groups that were over, for `ninetka_train.judging.evaluate.summarise`; None if none was."""


class AnswerError(ValueError):
    """An agent answered with something other than one legal action per game."""


def check_own(error: BaseException) -> None:
    """Raise again what is no failure of an agent: stopping the program, and memory that has run out."""
    if isinstance(error, (KeyboardInterrupt, MemoryError)):
        raise error


def failure_text(failure: BaseException) -> str:
    """Return what went wrong with an agent, of a wrong answer with the position in the lines that follow."""
    try:
        text = str(failure)
    except Exception:  # an exception of somebody's own may raise another one
        text = "its text cannot be read"
    return text if isinstance(failure, AnswerError) else f"{type(failure).__name__}: {text}"


def sit_down(agent: Agent, game: Game) -> Player | None:
    """Have an agent that remembers games start one; None for any other agent."""
    return agent.start(game.copy())


def warm_up(agents: Sequence[Agent], variant: Variant, start: Records) -> None:
    """Let every agent act in every stage before a clock runs, on one game and on two: first calls compile.

    An agent that remembers games does so by a player in one game.
    """
    for agent in agents:
        try:
            with contextlib.ExitStack() as stack:
                _play_once(agent, variant.game_class(start.copy()), stack)
        except Forfeit as event:
            if str(event):
                raise AgentError(f"agent {agent.name!r}: {event}") from event
        except BaseException as error:
            check_own(error)
            raise AgentError(f"agent {agent.name!r}, before the first game: {failure_text(error)}") from error


def _play_once(agent: Agent, game: Game, stack: contextlib.ExitStack) -> None:
    """Play a game at random until the agent has acted in every stage."""
    rng, player = np.random.default_rng(0), sit_down(agent, game)
    if player is not None:
        stack.callback(player.close)
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
