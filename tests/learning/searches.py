"""Small searches with an untrained network, and games that they play, for tests of training targets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Network, NetworkConfig
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.tree import TreeResult, empty_result
from ninetka_env.core.batch import restart_games
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.registry import limits_of, load_variant
from ninetka_env.core.verbs import StateArray
from ninetka_train.learning.rollout import options_of_games
from ninetka_train.learning.samples import Samples
from ninetka_train.learning.selfplay import network_games, playout_games
from ninetka_train.learning.teacher import make_teacher
from ninetka_train.ninetka.selfplay_hooks import Hooks, Settings

MAX_DRAWN = 60


def some_search(simulations: int) -> GumbelSearch:
    torch.manual_seed(0)
    network = Network(NetworkConfig(width=8, blocks=1)).eval()
    return GumbelSearch(network_evaluate(network), GumbelOptions(simulations))


class LowestSlide:
    """An agent that plays the lowest legal action."""

    name = "lowest"

    def act(self, games: StateArray, rng: np.random.Generator | None) -> npt.NDArray[np.int64]:
        return make_features(games).mask.argmax(1)


class StoneEvaluator:
    """Values positions. A stone counts as its square's index; a seat's win probability is its share of the total."""

    def run(self, games: StateArray, rng: np.random.Generator) -> TreeResult:
        result = empty_result(len(games), limits_of(games.dtype))
        for seat in range(4):
            result.values[:, seat] = ((games["board"] == seat + 1) * np.arange(121)).sum(1)
        result.values[:] /= result.values.sum(1, keepdims=True)
        return result


class LowestSlides(Hooks):
    """Hooks for slides: `LowestSlide` plays them, and a search with 8 playouts gives their policy targets.

    `StoneEvaluator` values the positions at the first slide.
    """

    def __init__(self, settings: Settings, search: GumbelSearch) -> None:
        super().__init__(settings, search.evaluate, 1)
        self.agent, self.guided = LowestSlide(), GuidedSearch(some_search(1).evaluate, 1, 8)
        self.first_slide_search = StoneEvaluator()


def some_games(players: npt.ArrayLike, seed: int) -> tuple[StateArray, Streams]:
    """Start games with the given numbers of players."""
    variants = [load_variant("ninetka", num_players=int(number)) for number in np.asarray(players)]
    games, streams = np.zeros(len(variants), variants[0].dtype), make_streams(seed, len(variants))
    restart_games(games, np.arange(len(games)), options_of_games(variants, range(len(games))), streams)
    return games, streams


def with_playouts(players: npt.ArrayLike, seed: int, playouts: int, threads: int = 1, **changes: object) -> Samples:
    """Play games by tree search with playouts; return their samples."""
    settings = Settings(**{"power": 1.0, "exact_nodes": 0, "playouts": playouts, **changes})
    teacher, quick = (make_teacher("ninetka", "", count, settings.exploration, threads) for count in (playouts, 1))
    return playout_games(*some_games(players, seed), teacher, quick, settings, Hooks(settings, None, threads))


def with_network(search: GumbelSearch, players: npt.ArrayLike, seed: int, share: float, **changes: object) -> Samples:
    """Play games by a network and return their samples; search a position with probability `share`.

    `changes` are settings. With `slide_playouts`, `LowestSlide` plays the slides.
    """
    defaults = {"value_share": 0.0, "value_mix": 0.0, "exact_nodes": 0}
    settings = Settings(**{**defaults, "share": share, **changes})
    hooks = LowestSlides(settings, search)
    return network_games(*some_games(players, seed), search, settings, hooks, MAX_DRAWN)
