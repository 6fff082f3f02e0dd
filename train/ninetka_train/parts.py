"""What single games bring to learning and judging. Found by name, imported when asked for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ninetka_agents.agent import Agent
from ninetka_env.core.registry import Variant
from ninetka_train.judging.intervals import Interval

if TYPE_CHECKING:
    from ninetka_train.judging.results import Results


@dataclass(frozen=True)
class ExactFigures:
    """What perfect play says of an agent's decisions."""

    agent: str
    decisions: int
    unsolved: int
    """Decisions of which the solver could not tell within its budget what they were worth."""
    won: int
    """Decisions in positions that perfect play wins."""
    blunders: int
    """Those of them that gave the win away."""
    share: float | None
    """blunders / won, None if nothing was won."""
    interval: Interval | None
    """95 % interval of it; see `clustered_interval`: decisions of games from one start hang together."""


class Exact(Protocol):
    """A module that judges decisions by perfect play."""

    def check(self, num_players: int) -> None:
        """Raise `ValueError` unless games of so many players can be judged."""
        ...

    def figures(self, results: Results) -> list[ExactFigures]:
        """Count what each agent did in positions that perfect play wins."""
        ...


_JUDGING = {"ninetka": "ninetka_train.ninetka.blunders"}
_SELFPLAY = {"ninetka": "ninetka_train.ninetka.slides"}


def exact_of(variant: Variant) -> Exact:
    """Return the module that judges a game; `ValueError` if there is none."""
    if variant.definition.name not in _JUDGING:
        raise ValueError(
            f"exact: perfect play is not known in {variant.definition.title}, but in {', '.join(_JUDGING)}"
        )
    module: Exact = importlib.import_module(_JUDGING[variant.definition.name])
    return module


def selfplay_of(game: str) -> Any:
    """Return the module with what a game adds to self-play, or None.

    Its `Settings` are derived from `ninetka_train.learning.config.AlphaZeroSettings`, its `Hooks` from
    `ninetka_train.learning.selfplay.GameHooks`.
    """
    return importlib.import_module(_SELFPLAY[game]) if game in _SELFPLAY else None


def pairs_of(game: str, agent: Agent) -> list[tuple[Agent, Agent]]:
    """Return the pairs (agent, opponent) that a trained agent's benchmark adds in a game to its usual opponents."""
    if game not in _JUDGING:
        return []
    pairs: list[tuple[Agent, Agent]] = importlib.import_module(_JUDGING[game]).pairs(agent)
    return pairs
