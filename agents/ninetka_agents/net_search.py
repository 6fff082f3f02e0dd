"""Which search a network gets before a move: each game says how, for each of its stages and sizes of its boards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ninetka_agents.agent import make_agent
from ninetka_agents.by_size import BySize, Search
from ninetka_agents.parts import GuidedRave, parts_of
from ninetka_agents.search.evaluation import Evaluate
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelSearch, SearchOptions
from ninetka_agents.search.gumbel_by_clock import GumbelByClock
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.tree import MOST_SIMULATIONS
from ninetka_env.core.options import check_count, check_scale, shortened
from ninetka_env.core.registry import get_definition

EXACT = 200
"""Usual most nodes to prove who wins after an action that is tried, where the game has a prover."""


@dataclass(frozen=True)
class SearchSettings:
    """How a network is searched; the options of `ninetka_agents.net_agent.NetAgent`, where they are explained."""

    simulations: int = 0
    temperature: float = 0.0
    playouts: int | None = None
    exact: int | None = None
    seconds: float = 0.0
    reuse: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for options that do not go together."""
        if check_count("simulations", self.simulations, least=0) and check_scale("seconds", self.seconds):
            raise ValueError(f"simulations={self.simulations}, seconds={self.seconds:g}: expected one of them")
        for name, usual, what in (
            ("playouts", None, "they are for the positions"),
            ("exact", None, "proofs are for the leaves"),
            ("reuse", False, "it is for the tree"),
        ):
            value = getattr(self, name)
            if value != usual and not self.is_on:
                raise ValueError(f"{name}={shortened(value)}: {what} of a search, which needs simulations or seconds")

    @property
    def is_on(self) -> bool:
        """Whether there is a search at all."""
        return bool(self.simulations or self.seconds)

    @property
    def positions(self) -> int:
        """Positions to ask the network about in a search that does not go by the clock."""
        return max(1, self.simulations)


def make_searches(evaluate: Evaluate, game: str, settings: SearchSettings) -> list[Search | BySize]:
    """Return the search for each stage of a game.

    The Gumbel search's few simulations go where the network points. Where a game is won by reading ahead (9tka's
    slides), one tree that keeps all its playouts does better: twice as many of them, for they are half as long there.
    What a prover decides in little time needs none of them; without playouts the network is trusted alone.
    With playouts, games that say so, such as Go and Kropki, are searched by one tree of RAVE (`Parts.guided_rave`).

    Raises:
        ValueError: if an option is out of range, or no stage has a tree that can be kept.
    """
    parts, stages = parts_of(game), len(get_definition(game).stages)
    playouts = SearchOptions.playouts if settings.playouts is None else settings.playouts
    exact = settings.exact
    if exact is None:
        exact = EXACT if playouts and parts.prover else 0
    if parts.guided_rave and settings.playouts != 0:
        by_size = {points: _for_board(evaluate, game, settings, rave) for points, rave in parts.guided_rave.items()}
        searches: list[Search | BySize] = [by_size[0] if len(by_size) == 1 else BySize(by_size)] * stages
    else:
        searches = [_gumbel(evaluate, settings, playouts, exact)] * stages
        if playouts and parts.guided_stages:
            tree = _guided(evaluate, settings, 2 * playouts, exact)
            searches = [tree if stage in parts.guided_stages else one for stage, one in enumerate(searches)]
    if settings.reuse and not any(search.remembers for search in searches):
        raise ValueError(
            "reuse=True: the Gumbel search, which is the only one here, begins each move anew; a tree "
            "that grows by playouts can be kept, such as that of playouts=128"
        )
    return searches


def _gumbel(evaluate: Evaluate, settings: SearchSettings, playouts: int, exact: int) -> Search:
    """Return the Gumbel search, by simulations or by the clock."""
    options = SearchOptions(settings.positions, gumbel_scale=settings.temperature, playouts=playouts, exact=exact)
    return GumbelByClock(evaluate, options, settings.seconds) if settings.seconds else GumbelSearch(evaluate, options)


def _guided(evaluate: Evaluate, settings: SearchSettings, playouts: int, exact: int) -> Search:
    """Return the search by one tree of playouts."""
    return GuidedSearch(
        evaluate,
        settings.positions,
        playouts,
        settings.temperature,
        exact,
        seconds=settings.seconds,
        reuse=settings.reuse,
    )


def _for_board(evaluate: Evaluate, game: str, settings: SearchSettings, rave: GuidedRave) -> Search:
    """Return the search for boards of one range of sizes."""
    fitting = min(rave.playouts, max(1, MOST_SIMULATIONS // settings.positions))  # all are in one tree
    playouts = fitting if settings.playouts is None else settings.playouts
    if playouts == 0:
        return _gumbel(evaluate, settings, 0, settings.exact or 0)
    rules = cast(MctsAgent, make_agent(rave.spec, game)).rules._replace(trust=rave.trust)
    return GuidedRaveSearch(
        evaluate, settings.positions, playouts, settings.temperature, rules, settings.seconds, settings.reuse
    )
