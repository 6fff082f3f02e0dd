"""Plugins of single games for training and evaluation, imported when first used.

`ninetka_agents/parts.py` has the plugins for agents.
"""

from __future__ import annotations

import importlib
from typing import Any

from ninetka_agents.agent import Agent
from ninetka_env.core.registry import Variant

_JUDGING = {"ninetka": "ninetka_train.ninetka.blunders"}
_SELFPLAY = {"ninetka": "ninetka_train.ninetka.slides"}


def exact_of(variant: Variant) -> Any:
    """Return the module that evaluates decisions by perfect play, a `ninetka_train.judging.evaluate.Exact`.

    Raises:
        ValueError: if perfect play is not known for the game.
    """
    if variant.definition.name not in _JUDGING:
        raise ValueError(
            f"exact: perfect play is not known for {variant.definition.title}; it is known for {', '.join(_JUDGING)}"
        )
    return importlib.import_module(_JUDGING[variant.definition.name])


def selfplay_of(game: str) -> Any:
    """Return the module with a game's additions to self-play, or None.

    Its `Settings` are derived from `ninetka_train.learning.config.AlphaZeroSettings`, its `Hooks` from
    `ninetka_train.learning.selfplay.GameHooks`.
    """
    return importlib.import_module(_SELFPLAY[game]) if game in _SELFPLAY else None


def pairs_of(game: str, agent: Agent) -> list[tuple[Agent, Agent]]:
    """Return the pairs (agent, opponent) that a game adds to the final benchmark of a trained agent."""
    if game not in _JUDGING:
        return []
    pairs: list[tuple[Agent, Agent]] = importlib.import_module(_JUDGING[game]).pairs(agent)
    return pairs
