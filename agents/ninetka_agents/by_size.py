"""A different search for boards of each size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ninetka_agents.agent import Actions, Agent, Player
from ninetka_agents.by_stage import _Player
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelSearch, SearchResult
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.game import Game
from ninetka_env.core.registry import get_definition, limits_of
from ninetka_env.core.verbs import Records

Search: TypeAlias = GumbelSearch | GuidedSearch | GuidedRaveSearch


class BySize(Agent):
    """Asks the search for boards of the games' size."""

    def __init__(self, searches: Mapping[int, Search]) -> None:
        """Join searches, by how many points (in Kropki nodes) the games' type has room for, the least of them 0."""
        self.searches = searches
        self.name = " or ".join(dict.fromkeys(search.name for search in searches.values()))
        self.remembers = any(search.remembers for search in searches.values())

    def search_for(self, games: Records) -> Search:
        """Return the search that is asked about games of this type."""
        points = limits_of(games.dtype).targets
        return self.searches[max(least for least in self.searches if least <= points)]

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.search_for(games).act(games, rng)

    def run(self, games: Records, rng: np.random.Generator) -> TreeResult | SearchResult:
        """Search (N,) games of one type; see `Search.run`."""
        return self.search_for(games).run(games, rng)

    def start(self, game: Game) -> Player | None:
        """Start to play a game, if one of the searches remembers it; see `ninetka_agents.agent.Agent.start`."""
        search = self.search_for(game.records)
        return _Player([search] * len(get_definition(game.name).stages), game) if self.remembers else None
