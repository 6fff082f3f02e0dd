"""Plugins of the games: agents, provers, heuristics and networks, registered by module name, imported when needed.

The games' packages do not depend on agents. A new game registers its plugins with `register_plugins`; a game
without plugins has the agents of `GENERIC_AGENTS`. Agents of other packages are found by `ninetka_env.core.imports`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from ninetka_env.core import imports
from ninetka_env.core.cache import found_by_type
from ninetka_env.core.registry import definition_of, get_definition

GENERIC_AGENTS: Mapping[str, str] = MappingProxyType(
    {
        "random": "ninetka_agents.agent:RandomAgent",
        "mcts": "ninetka_agents.search.mcts:MctsAgent",
    }
)
"""Agents of every game: maps names to constructors, as `"module:name"`."""


@dataclass(frozen=True)
class GuidedRaveSettings:
    """How a network's search uses RAVE on boards of one range of sizes."""

    spec: str
    """Spec of the `mcts:rave` agent whose tree the network guides."""
    value_weight: float = 0.5
    """Weight of the network's values: they count as `value_weight` times the playouts per evaluated position."""
    playouts: int = 32
    """Default number of playouts per evaluated position. It is reduced if the playouts of a search do not fit in one
    tree. 0: the default search is Gumbel search without playouts."""


@dataclass(frozen=True)
class GamePlugins:
    """Plugins of one game. Modules are named as `"module"`, classes and functions as `"module:name"`."""

    agents: Mapping[str, str] = field(default_factory=dict)
    """The game's own agents, in addition to `GENERIC_AGENTS`."""
    default_opponent: str = "mcts:simulations=200"
    """Spec of the default agent for the other seats in `one_seat`, also used as a benchmark opponent."""
    evaluation_opponents: tuple[str, ...] = ("random", "mcts:simulations=200")
    """Specs of the agents against which networks are evaluated during training."""
    teacher: str = "mcts"
    """Spec of the strongest search with playouts, which plays the first training games of a network."""
    prover: str = ""
    """Module with the game's prover functions, see `ninetka_agents.search.heuristics`; empty for none."""
    heuristics: str = ""
    """Module with the game's heuristics, see `ninetka_agents.search.heuristics`; empty for none."""
    guided_stages: tuple[int, ...] = ()
    """Stages in which networks search by `ninetka_agents.search.guided`, because looking ahead decides these stages."""
    guided_rave: Mapping[int, GuidedRaveSettings] = field(default_factory=dict)
    """Settings of the networks' RAVE search by board size; empty for no RAVE. A key is the smallest number of points of
    the dtype (nodes in Kropki) for which its settings are used."""
    network: str = ""
    """Module with the classes `Network` and `NetworkConfig`; empty for none. See `ninetka_agents.outputs`."""
    network_inputs: str = ""
    """Module with the game's own `write_game_inputs` and `NUM_GLOBALS`, see `ninetka_agents.board_features`; empty for
    the default inputs. It is imported without PyTorch."""


_PLUGINS: dict[str, GamePlugins] = {
    "ninetka": GamePlugins(
        agents={
            "maxn": "ninetka_agents.ninetka.maxn:MaxNAgent",
            "paranoid": "ninetka_agents.ninetka.alpha_beta:ParanoidAgent",
            "brs": "ninetka_agents.ninetka.alpha_beta:BestReplyAgent",
            "solver": "ninetka_agents.ninetka.solver.solver:SolverAgent",
            "phases": "ninetka_agents.ninetka.by_phase:ByPhase",
            "net": "ninetka_agents.net_agent:load_net",
        },
        default_opponent="maxn",
        evaluation_opponents=("random", "maxn", "mcts:simulations=200"),
        prover="ninetka_agents.ninetka.solver.proof",
        guided_stages=(2,),
        network="ninetka_agents.ninetka.network",
    ),
    "go": GamePlugins(
        agents={"gtp": "ninetka_agents.go.gtp.agent:GtpAgent", "net": "ninetka_agents.net_agent:load_net"},
        evaluation_opponents=("random", "mcts:simulations=200,rave,playouts=heavy"),
        teacher="mcts:rave,playouts=heavy",
        heuristics="ninetka_agents.go.heuristics",
        guided_rave={0: GuidedRaveSettings("mcts:rave,playouts=heavy")},
        network="ninetka_agents.go.network",
        network_inputs="ninetka_agents.go.inputs",
    ),
    "kropki": GamePlugins(
        agents={
            "greedy": "ninetka_agents.kropki.greedy:GreedyAgent",
            "exact": "ninetka_agents.kropki.exact:ExactAgent",
            "net": "ninetka_agents.net_agent:load_net",
        },
        evaluation_opponents=("random", "greedy", "mcts:simulations=200,rave"),
        teacher="mcts:rave",
        heuristics="ninetka_agents.kropki.heuristics",
        # On boards much larger than the training boards, the values of networks are unreliable, but the policies are
        # not. Networks are slow on large boards, so they evaluate few positions.
        guided_rave={
            0: GuidedRaveSettings("mcts:rave", playouts=0),
            145: GuidedRaveSettings("mcts:rave,local,playouts=heavy", value_weight=0.0, playouts=2048),
        },
        network="ninetka_agents.kropki.network",
        network_inputs="ninetka_agents.kropki.inputs",
    ),
}


def register_plugins(game: str, plugins: GamePlugins) -> None:
    """Register the plugins of a game.

    Call this before the first search of the game, because compiled searches are cached.

    Raises:
        ValueError: if the game is unknown, or if other plugins of the game are registered.
    """
    definition = get_definition(game)
    if _PLUGINS.get(game, plugins) != plugins:
        raise ValueError(f"game {game!r}: other plugins are registered already")
    if plugins.prover:
        found_by_type(definition.dtypes, [importlib.import_module(plugins.prover).proven_winner])
    for module in filter(None, (plugins.heuristics, plugins.network_inputs)):
        functions = vars(importlib.import_module(module)).values()
        found_by_type(definition.dtypes, [one for one in functions if hasattr(one, "py_func")])
    _PLUGINS[game] = plugins


def plugins_of(game: str) -> GamePlugins:
    """Return the plugins of a game; raise `ValueError` for an unknown game."""
    return _PLUGINS.get(get_definition(game).name, GamePlugins())


def agents_of(game: str) -> dict[str, str]:
    """Return all agents of a game: a dict of names to constructors, each as `"module:name"`."""
    return {**GENERIC_AGENTS, **plugins_of(game).agents}


def games_with_agent(agent: str) -> list[str]:
    """Return the games that have their own agent of this name."""
    return sorted(game for game, parts in _PLUGINS.items() if agent in parts.agents)


def is_agent_name(name: str) -> bool:
    """Return whether a name is that of an agent of any game, or of an installed package, or begins a `python:` spec."""
    return bool(
        name in GENERIC_AGENTS
        or games_with_agent(name)
        or name == imports.PREFIX
        or name in imports.entry_points(imports.AGENTS)
    )


def games_with_networks() -> list[str]:
    """Return the games that have networks."""
    return sorted(game for game, parts in _PLUGINS.items() if parts.network)


def network_of(game: str) -> Any:
    """Return the module with a game's `Network` and `NetworkConfig`; raise `ValueError` for a game without networks."""
    module = plugins_of(game).network
    if not module:
        raise ValueError(f"game={game!r}: it has no networks, unlike {', '.join(games_with_networks())}")
    return importlib.import_module(module)


def import_object(place: str) -> Any:
    """Import and return the class or function named by `"module:name"`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def find_in_prover(dtype: np.dtype[Any], name: str) -> Any:
    """Return the function `name` of the prover of the game with this dtype; None if the game has no prover."""
    module = plugins_of(definition_of(dtype).name).prover
    return getattr(importlib.import_module(module), name) if module else None


def find_in_heuristics(dtype: np.dtype[Any], name: str) -> Any:
    """Return the function `name` of the heuristics of the game with this dtype; None if there is no such function."""
    module = plugins_of(definition_of(dtype).name).heuristics
    return getattr(importlib.import_module(module), name, None) if module else None


def find_in_network_inputs(dtype: np.dtype[Any], name: str) -> Any:
    """Return `name` of the module of network inputs of the game with this dtype; None if there is none."""
    module = plugins_of(definition_of(dtype).name).network_inputs
    return getattr(importlib.import_module(module), name, None) if module else None
