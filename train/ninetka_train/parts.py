"""What single games bring to learning and judging. Found by name, imported when asked for."""

from __future__ import annotations

import importlib
from typing import Any

from ninetka_agents.agent import Agent
from ninetka_env.core.registry import Variant

_JUDGING = {"ninetka": "ninetka_train.ninetka.blunders"}
_SELFPLAY = {"ninetka": "ninetka_train.ninetka.slides"}


def exact_of(variant: Variant) -> Any:
    """Return the module that judges a game, a `ninetka_train.judging.evaluate.Exact`; `ValueError` if there is none."""
    if variant.definition.name not in _JUDGING:
        raise ValueError(
            f"exact: perfect play is not known in {variant.definition.title}, but in {', '.join(_JUDGING)}"
        )
    return importlib.import_module(_JUDGING[variant.definition.name])


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
