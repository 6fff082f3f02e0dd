"""Game-specific plugins for training and evaluation, imported when first used.

`ninetka_agents/plugins.py` has the plugins for agents.
"""

from __future__ import annotations

import importlib
from typing import Any

from ninetka_agents.agent import Agent
from ninetka_env.core.registry import Variant

_EXACT_PLUGINS = {"ninetka": "ninetka_train.ninetka.blunders"}
_SELFPLAY_PLUGINS = {"ninetka": "ninetka_train.ninetka.selfplay_hooks"}


def exact_plugin_of(variant: Variant) -> Any:
    """Return the module that compares decisions with perfect play, a `ninetka_train.judging.evaluate.ExactPlugin`.

    Raises:
        ValueError: if perfect play is not known for the game.
    """
    if variant.definition.name not in _EXACT_PLUGINS:
        raise ValueError(
            f"exact: perfect play is not known for {variant.definition.title}; "
            f"it is known for {', '.join(_EXACT_PLUGINS)}"
        )
    return importlib.import_module(_EXACT_PLUGINS[variant.definition.name])


def selfplay_plugin_of(game: str) -> Any:
    """Return the module with a game's self-play hooks; None if the game has none.

    The module has a class `Settings`, derived from `ninetka_train.learning.config.AlphaZeroSettings`, and a class
    `Hooks`, derived from `ninetka_train.learning.selfplay.GameHooks`.
    """
    return importlib.import_module(_SELFPLAY_PLUGINS[game]) if game in _SELFPLAY_PLUGINS else None


def benchmark_pairs_of(game: str, agent: Agent) -> list[tuple[Agent, Agent]]:
    """Return the pairs (agent, opponent) that a game adds to the final benchmark of a trained agent."""
    if game not in _EXACT_PLUGINS:
        return []
    pairs: list[tuple[Agent, Agent]] = importlib.import_module(_EXACT_PLUGINS[game]).benchmark_pairs(agent)
    return pairs
