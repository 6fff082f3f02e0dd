"""The agent that plays what a trained network says, at once or after a search.

What a game's network must be stands in `ninetka_agents.outputs`.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.agent import Actions, Agent, Player, as_positions, check_threads, game_streams
from ninetka_agents.by_stage import ByStage
from ninetka_agents.checkpoint import best_shipped, load_checkpoint
from ninetka_agents.net_search import SearchSettings, make_searches
from ninetka_agents.outputs import MASKED
from ninetka_agents.search.evaluation import Evaluate
from ninetka_agents.search.mcts import TreeSearch
from ninetka_env.core.cores import cores
from ninetka_env.core.game import Game
from ninetka_env.core.options import check_count, check_scale
from ninetka_env.core.registry import DEFAULT, limits_of
from ninetka_env.core.verbs import Records

Floats = npt.NDArray[np.float32]
BATCH = 1024
"""Positions per forward pass."""
BATCH_TARGETS = 1 << 17
"""Sections, points or nodes of all those positions at most: there are fewer of them on large boards."""


class NetAgent(Agent):
    """Plays a network's most probable action, draws from its policy, or searches first."""

    def __init__(
        self,
        path: str = "",
        temperature: float = 0.0,
        threads: int = 0,
        simulations: int = 0,
        playouts: int | None = None,
        exact: int | None = None,
        seconds: float = 0.0,
        reuse: bool = False,
        game: str = DEFAULT,
    ) -> None:
        """Load a network onto the GPU if there is one, else onto the CPU.

        Args:
            path: of a checkpoint; empty for the best shipped one.
            temperature: 0 plays the most probable action; else actions are drawn by p ** (1 / temperature).
                With a search, it scales the Gumbel noise at the root.
            threads: at most this many CPU threads; 0 for `default_threads`. It is torch's for the whole process:
                of several agents in one, the last that is made decides.
            simulations: positions that the search before each move asks the network about; 0 plays without search.
            playouts: random ones for each of them, twice as many for slides; simulations of RAVE in Go and Kropki; 0
                trusts the network alone. None for what is best: 128, in Go 32, in Kropki 0, on its boards larger than
                12 x 12 2048, fewer where so many simulations would not fit in one tree of RAVE.
            exact: with two players, most nodes to prove who wins after a slide that is searched; 0 for none. None for
                what is best: in 9tka 200, without playouts 0.
            seconds: how long to search before a move, in place of `simulations`; 0 goes by those. What is played then
                depends on the machine, whatever the seed.
            reuse: keep the tree from move to move where whole games are played, in stages that are searched by one
                tree of playouts; see `ninetka_agents.search.guided` and `guided_rave`.
            game: the game that it plays.

        Raises:
            ValueError: if the checkpoint is no good, or an option is out of range, or does not go with another one.
        """
        if check_count("threads", threads, least=0):
            torch.set_num_threads(check_threads(threads))
        elif (count := default_threads()) < torch.get_num_threads():
            torch.set_num_threads(count)
        self.name = "net"
        self.temperature = check_scale("temperature", temperature)
        self.network = load_checkpoint(path or best_shipped(game), best_device(), game)[0]
        if self.network.game != game:
            raise ValueError(f"checkpoint {path}: its network plays {self.network.game}, not {game}")
        self._set_search(SearchSettings(simulations, self.temperature, playouts, exact, seconds, reuse))

    @classmethod
    def of(
        cls,
        network: Any,
        temperature: float = 0.0,
        name: str = "net",
        simulations: int = 0,
        playouts: int | None = None,
        exact: int | None = None,
        seconds: float = 0.0,
        reuse: bool = False,
    ) -> NetAgent:
        """Make an agent of a network at hand, for that network's game."""
        agent = cls.__new__(cls)
        agent.name, agent.temperature, agent.network = name, check_scale("temperature", temperature), network
        agent._set_search(SearchSettings(simulations, agent.temperature, playouts, exact, seconds, reuse))
        return agent

    def _set_search(self, settings: SearchSettings) -> None:
        """Make the search before a move, if there shall be one."""
        self.game = self.network.game
        self._search = _make_search(self.network, settings)
        self.opens_alike = self.temperature == 0
        """See `ninetka_agents.agent.Agent`."""
        self.remembers = self._search is not None and self._search.remembers
        if isinstance(self._search, TreeSearch) and self.temperature == 0:  # whoever grows its tree plays the best move
            self.budget, self.make_tree = self._search.budget, self._search.make_tree

    def start(self, game: Game) -> Player | None:
        """Start to play a game, if the search remembers it; see `ninetka_agents.agent.Agent.start`."""
        return self._search.start(game) if self._search else None

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games, self.game)
        if self._search:
            return self._search.act(games, rng)
        scores = policy_logits(self.network, games)
        if self.temperature:
            return np.asarray((_heated(scores, self.temperature) + _gumbel(games, rng)).argmax(1), np.int64)
        return np.asarray(scores.argmax(1), np.int64)


def _make_search(network: Any, settings: SearchSettings) -> Agent | None:
    """Return the search before a move, None for none."""
    if not settings.is_on:
        return None
    searches = make_searches(quick_evaluate(network), network.game, settings)
    return searches[0] if len(set(searches)) == 1 else ByStage(searches)


def default_threads() -> int:
    """Return the default number of threads for torch: its current number, at most the cores of this process.

    torch does not know the CPU quota of a container. With `OMP_NUM_THREADS` set, its number is left alone.
    """
    known = torch.get_num_threads()
    return known if "OMP_NUM_THREADS" in os.environ else min(known, cores())


def best_device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def has_bf16(device: torch.device) -> bool:
    """Return whether a device multiplies in bfloat16 in hardware: of NVIDIA's GPUs, those from Ampere (2020) on."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    is_supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)  # private: torch 2.5 to 2.13 have it
    return device.type == "cpu" and is_supported is not None and bool(is_supported())


def policy_logits(network: Any, games: Records) -> Floats:
    """Return (N, num_actions) float32 masked logits of the seats to move."""
    return _judge(network, games)[0]


def network_evaluate(network: Any, batch: int = BATCH, bf16: bool = False) -> Evaluate:
    """Return the function that asks a network, on its own device, `batch` positions at a time.

    With `bf16` it multiplies in bfloat16: faster where the device does so in hardware, and rounded to 1 part in 256.
    """

    def evaluate(games: Records) -> tuple[Floats, Floats]:
        with torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
            return _judge(network, games, batch, normalised=True)

    return evaluate


def quick_evaluate(network: Any) -> Evaluate:
    """Return `network_evaluate` in bfloat16 if the network may be asked so and its device has that in hardware."""
    return network_evaluate(network, bf16=network.bf16 and has_bf16(network.device))


def _judge(network: Any, games: Records, batch: int = BATCH, normalised: bool = False) -> tuple[Floats, Floats]:
    """Return logits, or logarithms of the policy, and chances to win per relative seat, from batches of positions.

    Raises:
        ValueError: if the network's outputs for a position are not finite.
    """
    limits = limits_of(games.dtype)
    batch = min(batch, max(1, BATCH_TARGETS // max(1, limits.targets)))
    logits = np.empty((len(games), limits.actions), np.float32)
    values = np.empty((len(games), limits.players), np.float32)
    with torch.inference_mode():
        for first in range(0, len(games), batch):
            part = slice(first, first + batch)
            outputs = network.judge(games[part])
            logits[part] = (outputs.logits.log_softmax(-1) if normalised else outputs.logits).cpu().numpy()
            values[part] = outputs.values.cpu().numpy()
    _check_finite(logits, values)
    return logits, values


def _check_finite(logits: Floats, values: Floats) -> None:
    """Raise `ValueError` for outputs that are not finite: finite weights overflow when they have become too large."""
    with np.errstate(invalid="ignore", over="ignore"):
        if math.isfinite(logits.sum()) and math.isfinite(values.sum()):  # quicker than to look at each number
            return
    row = int((np.isfinite(logits).all(1) & np.isfinite(values).all(1)).argmin())
    what = "values" if np.isfinite(logits[row]).all() else "logits"
    raise ValueError(
        f"the network's {what} for position {row} of {len(logits)} are not finite, since its weights are too large: "
        "lower learning_rate and train again"
    )


def _heated(scores: Floats, temperature: float) -> npt.NDArray[np.float64]:
    """Return (N, A) logits divided by a temperature, the best 0; whatever it is, masked ones are never drawn."""
    with np.errstate(over="ignore"):
        heated = (scores - scores.max(1, keepdims=True)).astype(np.float64) / temperature
    return np.where(scores > MASKED / 2, heated, -np.inf)


def _gumbel(games: Records, rng: np.random.Generator) -> Floats:
    """Draw (N, num_actions) Gumbel noise, each game's from a stream of its own; the argmax then samples the softmax."""
    actions = limits_of(games.dtype).actions
    noise = [np.random.default_rng(int(word)).random(actions) for word in game_streams(games, rng)]
    uniform = np.array(noise).reshape(len(games), actions) * (1 - 2e-12) + 1e-12
    return -np.log(-np.log(uniform)).astype(np.float32)
