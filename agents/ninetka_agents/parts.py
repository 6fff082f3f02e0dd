"""What each game brings to agents: its own players, a prover, a network. Found by name, imported when asked for.

Games know nothing of agents; whoever adds a game adds its parts here with `register_parts`. A game without any has the
agents of `GENERIC`.
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
"""Agents of every game: by name, where the class or function is that makes them."""


@dataclass(frozen=True)
class GuidedRave:
    """How a network's search goes about boards of some size."""

    spec: str
    """Of the `mcts:rave` whose tree the network guides where it is searched with playouts."""
    trust: float = 0.5
    """What the network's values count there, in times of the playouts."""
    playouts: int = 32
    """Playouts for each position that the network is asked about, unless told, fewer if they do not fit in one tree; 0
    searches without RAVE."""


@dataclass(frozen=True)
class Parts:
    """What one game brings. Modules and classes are named by text, `"module"` and `"module:name"`."""

    agents: Mapping[str, str] = field(default_factory=dict)
    """The game's own agents, beside `GENERIC`."""
    yardstick: str = "mcts:simulations=200"
    """Who plays the other seats unless told."""
    opponents: tuple[str, ...] = ("random", "mcts:simulations=200")
    """Whom a network is measured against while it learns."""
    teacher: str = "mcts"
    """The strongest search with playouts, as an agent's spec: networks learn from its games first."""
    prover: str = ""
    """Module with the game's own functions of `ninetka_agents.search.knowledge`; empty for none."""
    knowledge: str = ""
    """Module with the game's own functions of `ninetka_agents.search.knowledge`; empty for none."""
    guided_stages: tuple[int, ...] = ()
    """Stages that are won by reading ahead: a network's search is one tree of playouts there."""
    guided_rave: Mapping[int, GuidedRave] = field(default_factory=dict)
    """By how many points the type of a game's records has room for, at least, how networks are searched; empty for none
    by RAVE."""
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
        # On boards much larger than those that networks learned on their values mislead, their policies do not;
        # they are slow there, so they are asked about few positions.
        guided_rave={
            0: GuidedRave("mcts:rave", playouts=0),
            145: GuidedRave("mcts:rave,local,playouts=heavy", trust=0.0, playouts=2048),
        },
        network="ninetka_agents.kropki.network",
    ),
}


def register_parts(game: str, parts: Parts) -> None:
    """Say what a game brings; before anything is searched, since what is compiled is kept.

    Raises:
        ValueError: if the game is unknown, or has said something else before.
    """
    definition = get_definition(game)
    if _PARTS.get(game, parts) != parts:
        raise ValueError(f"game {game!r}: its parts are registered already")
    if parts.prover:
        found_by_type(definition.dtypes, [importlib.import_module(parts.prover).proven_winner])
    if parts.knowledge:
        functions = vars(importlib.import_module(parts.knowledge)).values()
        found_by_type(definition.dtypes, [one for one in functions if hasattr(one, "py_func")])
    _PARTS[game] = parts


def parts_of(game: str) -> Parts:
    """Return what a game brings; `ValueError` names the games that there are."""
    return _PARTS.get(get_definition(game).name, Parts())


def agents_of(game: str) -> dict[str, str]:
    """Return all agents of a game: by name, where the class or function is that makes them."""
    return {**GENERIC, **parts_of(game).agents}


def games_with(agent: str) -> list[str]:
    """Return the games that have an agent of that name as their own."""
    return sorted(game for game, parts in _PARTS.items() if agent in parts.agents)


def games_with_networks() -> list[str]:
    """Return the games that have networks."""
    return sorted(game for game, parts in _PARTS.items() if parts.network)


def network_of(game: str) -> Any:
    """Return the module with a game's `Network` and `NetworkConfig`; `ValueError` names the games that have one."""
    module = parts_of(game).network
    if not module:
        raise ValueError(f"game={game!r}: it has no networks, unlike {', '.join(games_with_networks())}")
    return importlib.import_module(module)


def load(place: str) -> Any:
    """Return the class or function at `"module:name"`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def find_in_prover(dtype: np.dtype[Any], name: str) -> Any:
    """Return a function of the prover of the game whose records have this type; None if it has no prover."""
    module = parts_of(definition_of(dtype).name).prover
    return getattr(importlib.import_module(module), name) if module else None


def find_in_knowledge(dtype: np.dtype[Any], name: str) -> Any:
    """Return a function of the knowledge of the game whose records have this type; None if it brings none."""
    module = parts_of(definition_of(dtype).name).knowledge
    return getattr(importlib.import_module(module), name, None) if module else None
