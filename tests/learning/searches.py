"""Small searches with an untrained network, for tests of what is learned from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Network, NetworkConfig
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import GumbelSearch, SearchOptions
from ninetka_env.core.verbs import Records
from ninetka_train.learning.selfplay import Slides


def some_search(simulations: int) -> GumbelSearch:
    torch.manual_seed(0)
    network = Network(NetworkConfig(width=8, blocks=1)).eval()
    return GumbelSearch(network_evaluate(network), SearchOptions(simulations))


class LowestSlide:
    """Plays the legal action of the lowest number."""

    name = "lowest"

    def act(self, games: Records, rng: np.random.Generator | None) -> npt.NDArray[np.int64]:
        return make_features(games).mask.argmax(1)


def some_slides(share: float = 1.0) -> Slides:
    return Slides(LowestSlide(), GuidedSearch(some_search(1).evaluate, 1, 8), share)
