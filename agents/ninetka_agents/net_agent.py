"""The agent that plays what a trained network says, at once or after a search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.agent import Actions, Agent, game_streams
from ninetka_agents.ninetka.by_phase import ByPhase
from ninetka_agents.checkpoint import best_shipped, load_checkpoint
from ninetka_agents.ninetka.features import make_features
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import Evaluate, GumbelSearch, SearchOptions, network_evaluate
from ninetka_agents.ninetka.network import Network, as_inputs
from ninetka_env.games.ninetka.game import check_count, check_scale
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS
from ninetka_env.games.ninetka.rules import Records

BATCH = 1024
"""Positions per forward pass."""


class NetAgent:
    """Plays a network's most probable action, draws from its policy, or searches first."""

    def __init__(
        self,
        path: str = "",
        temperature: float = 0.0,
        threads: int = 0,
        simulations: int = 0,
        playouts: int = SearchOptions.playouts,
        exact: int = 0,
    ) -> None:
        """Load a network onto the GPU if there is one, else onto the CPU.

        Args:
            path: of a checkpoint; empty for the best shipped one.
            temperature: 0 plays the most probable action; else actions are drawn by p ** (1 / temperature).
                With a search, it scales the Gumbel noise at the root.
            threads: at most this many CPU threads; 0 leaves torch's setting alone.
            simulations: positions that the search before each move asks the network about; 0 plays without search.
            playouts: random ones for each of them, twice as many for slides; 0 trusts the network alone.
            exact: with two players, most nodes to prove who wins after a slide that is searched; 0 for none.

        Raises:
            ValueError: if the checkpoint is no good, or an option is out of range.
        """
        if check_count("threads", threads, least=0):
            torch.set_num_threads(threads)
        self.name = "net"
        self.temperature = check_scale("temperature", temperature)
        self.network = load_checkpoint(path or best_shipped(), best_device())[0]
        self._search = _make_search(self.network, simulations, temperature, playouts, exact)

    @classmethod
    def of(
        cls,
        network: Network,
        temperature: float = 0.0,
        name: str = "net",
        simulations: int = 0,
        playouts: int = SearchOptions.playouts,
        exact: int = 0,
    ) -> NetAgent:
        """Make an agent of a network at hand."""
        agent = cls.__new__(cls)
        agent.name, agent.temperature, agent.network = name, check_scale("temperature", temperature), network
        agent._search = _make_search(network, simulations, temperature, playouts, exact)
        return agent

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        if self._search:
            return self._search.act(games, rng)
        scores = policy_logits(self.network, games)
        if self.temperature:
            scores = scores / np.float32(self.temperature) + _gumbel(games, rng)
        return np.asarray(scores.argmax(1), np.int64)


def _make_search(network: Network, simulations: int, temperature: float, playouts: int, exact: int) -> Agent | None:
    """Return the search before a move, None for none."""
    if exact and not simulations:
        raise ValueError(f"exact={exact!r}: proofs are for the leaves of a search, which needs simulations")
    if not check_count("simulations", simulations, least=0):
        return None
    placement, movement = make_searches(network_evaluate(network), simulations, temperature, playouts, exact)
    return placement if movement is placement else ByPhase(placement, movement)


def make_searches(
    evaluate: Evaluate,
    simulations: int,
    temperature: float = 0.0,
    playouts: int = SearchOptions.playouts,
    exact: int = 0,
) -> tuple[GumbelSearch, GumbelSearch | GuidedSearch]:
    """Return the searches for placing stones and for sliding them.

    Stones are placed by the Gumbel search, whose few simulations go where the network points. Slides are won by reading
    ahead: one tree that keeps all its playouts (they are half as long there, hence twice as many) does that better.
    """
    placement = GumbelSearch(
        evaluate, SearchOptions(simulations, gumbel_scale=temperature, playouts=playouts, exact=exact)
    )
    if playouts == 0:
        return placement, placement
    return placement, GuidedSearch(evaluate, simulations, 2 * playouts, temperature, exact)


def best_device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def policy_logits(network: Network, games: Records) -> npt.NDArray[np.float32]:
    """Return (N, 122) float32 masked logits of the seats to move."""
    logits = np.empty((len(games), NUM_ACTIONS), np.float32)
    with torch.inference_mode():
        for first in range(0, len(games), BATCH):
            part = slice(first, first + BATCH)
            logits[part] = network(as_inputs(make_features(games[part]), network.device)).logits.cpu().numpy()
    return logits


def _gumbel(games: Records, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Draw (N, 122) float32 Gumbel noise, each game's from a stream of its own; the argmax then samples the softmax."""
    noise = [np.random.default_rng(int(word)).random(NUM_ACTIONS) for word in game_streams(games, rng)]
    uniform = np.array(noise).reshape(len(games), NUM_ACTIONS) * (1 - 2e-12) + 1e-12
    return -np.log(-np.log(uniform)).astype(np.float32)
