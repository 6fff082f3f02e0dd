"""Plugins of the games: their own agents, provers, heuristics and networks, named by text and imported when needed.

The games' packages do not depend on agents. A new game registers its plugins with `register_parts`; without plugins, it
has the agents of `GENERIC`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from ninetka_env.core.cache import found_by_type
from ninetka_env.core.registry import definition_of, get_definition

GENERIC: Mapping[str, str] = MappingProxyType(
    {
        "random": "ninetka_agents.agent:RandomAgent",
        "mcts": "ninetka_agents.search.mcts:MctsAgent",
    }
)
"""Agents of every game: maps names to constructors, as `"module:name"`."""


@dataclass(frozen=True)
class GuidedRave:
    """How a network's search uses RAVE on boards of one range of sizes."""

    spec: str
    """Spec of the `mcts:rave` agent whose tree the network guides."""
    trust: float = 0.5
    """Weight of the network's values, relative to the playouts."""
    playouts: int = 32
    """Default number of playouts per position that the network evaluates, fewer if they do not fit in one tree; 0
    searches without RAVE."""


@dataclass(frozen=True)
class Parts:
    """Plugins of one game. Modules are named as `"module"`, classes and functions as `"module:name"`."""

    agents: Mapping[str, str] = field(default_factory=dict)
    """The game's own agents, in addition to `GENERIC`."""
    yardstick: str = "mcts:simulations=200"
    """Spec of the default agent for the other seats in `one_seat`, also used as a benchmark opponent."""
    opponents: tuple[str, ...] = ("random", "mcts:simulations=200")
    """Specs of the agents against which networks are evaluated during training."""
    teacher: str = "mcts"
    """Spec of the strongest search with playouts; the first training games of networks are played by it."""
    prover: str = ""
    """Module with the game's prover functions, see `ninetka_agents.search.knowledge`; empty for none."""
    knowledge: str = ""
    """Module with the game's heuristics, see `ninetka_agents.search.knowledge`; empty for none."""
    guided_stages: tuple[int, ...] = ()
    """Stages that are decided by looking ahead, where a network's search is one tree of playouts."""
    guided_rave: Mapping[int, GuidedRave] = field(default_factory=dict)
    """Settings of the networks' RAVE search by board size: maps the minimum number of points of the dtype to settings;
    empty for no RAVE."""
    network: str = ""
    """Module with the classes `Network` and `NetworkConfig`; empty for none. See `ninetka_agents.outputs`."""


_PARTS: dict[str, Parts] = {
    "ninetka": Parts(
        agents={
            "maxn": "ninetka_agents.ninetka.maxn:MaxNAgent",
            "solver": "ninetka_agents.ninetka.solver.solver:SolverAgent",
            "phases": "ninetka_agents.ninetka.by_phase:ByPhase",
            "net": "ninetka_agents.net_agent:load_net",
        },
        yardstick="maxn",
        opponents=("random", "maxn", "mcts:simulations=200"),
        prover="ninetka_agents.ninetka.solver.proof",
        guided_stages=(2,),
        network="ninetka_agents.ninetka.network",
    ),
    "go": Parts(
        agents={"gtp": "ninetka_agents.go.gtp.agent:GtpAgent", "net": "ninetka_agents.net_agent:load_net"},
        opponents=("random", "mcts:simulations=200,rave,playouts=heavy"),
        teacher="mcts:rave,playouts=heavy",
        knowledge="ninetka_agents.go.knowledge",
        guided_rave={0: GuidedRave("mcts:rave,playouts=heavy")},
        network="ninetka_agents.go.network",
    ),
    "kropki": Parts(
        agents={
            "greedy": "ninetka_agents.kropki.greedy:GreedyAgent",
            "exact": "ninetka_agents.kropki.exact:ExactAgent",
            "net": "ninetka_agents.net_agent:load_net",
        },
        opponents=("random", "greedy", "mcts:simulations=200,rave"),
        teacher="mcts:rave",
        knowledge="ninetka_agents.kropki.knowledge",
        # On boards much larger than those of the training, networks' values are unreliable, but their policies are
        # not. Networks are slow there, so they evaluate few positions.
        guided_rave={
            0: GuidedRave("mcts:rave", playouts=0),
            145: GuidedRave("mcts:rave,local,playouts=heavy", trust=0.0, playouts=2048),
        },
        network="ninetka_agents.kropki.network",
    ),
}


def register_parts(game: str, parts: Parts) -> None:
    """Register the plugins of a game.

    This must be done before the first search, because compiled searches are cached.

    Raises:
        ValueError: if the game is unknown, or if other plugins of the game are registered.
    """
    definition = get_definition(game)
    if _PARTS.get(game, parts) != parts:
        raise ValueError(f"game {game!r}: other plugins are registered already")
    if parts.prover:
        found_by_type(definition.dtypes, [importlib.import_module(parts.prover).proven_winner])
    if parts.knowledge:
        functions = vars(importlib.import_module(parts.knowledge)).values()
        found_by_type(definition.dtypes, [one for one in functions if hasattr(one, "py_func")])
    _PARTS[game] = parts


def parts_of(game: str) -> Parts:
    """Return the plugins of a game; raise `ValueError` for an unknown game."""
    return _PARTS.get(get_definition(game).name, Parts())


def agents_of(game: str) -> dict[str, str]:
    """Return all agents of a game, a dict of names and constructors, as `"module:name"`."""
    return {**GENERIC, **parts_of(game).agents}


def games_with(agent: str) -> list[str]:
    """Return the games that have their own agent of this name."""
    return sorted(game for game, parts in _PARTS.items() if agent in parts.agents)


def games_with_networks() -> list[str]:
    """Return the games that have networks."""
    return sorted(game for game, parts in _PARTS.items() if parts.network)


def network_of(game: str) -> Any:
    """Return the module with a game's `Network` and `NetworkConfig`; raise `ValueError` for a game without networks."""
    module = parts_of(game).network
    if not module:
        raise ValueError(f"game={game!r}: it has no networks, unlike {', '.join(games_with_networks())}")
    return importlib.import_module(module)


def load(place: str) -> Any:
    """Import and return the class or function named by `"module:name"`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def find_in_prover(dtype: np.dtype[Any], name: str) -> Any:
    """Return a function of the prover of the game with this dtype; None if the game has no prover."""
    module = parts_of(definition_of(dtype).name).prover
    return getattr(importlib.import_module(module), name) if module else None


def find_in_knowledge(dtype: np.dtype[Any], name: str) -> Any:
    """Return a function of the heuristics of the game with this dtype; None if the game does not have it."""
    module = parts_of(definition_of(dtype).name).knowledge
    return getattr(importlib.import_module(module), name, None) if module else None
