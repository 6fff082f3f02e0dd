"""The agent that plays what a trained network says, at once or after a search.

What a game's network must be stands in `ninetka_agents.outputs`. How it is searched is up to the game, for each of its
stages and sizes of its boards: see `make_searches`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.agent import Actions, Agent, Player, as_positions, check_threads, game_streams, make_agent
from ninetka_agents.checkpoint import best_shipped, load_checkpoint
from ninetka_agents.outputs import MASKED
from ninetka_agents.parts import GuidedRave, parts_of
from ninetka_agents.search.evaluation import Evaluate
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelSearch, SearchOptions
from ninetka_agents.search.gumbel_by_clock import GumbelByClock
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.tree import MOST_SIMULATIONS
from ninetka_agents.switch import Switch, by_size, by_stage
from ninetka_env.core.game import Game
from ninetka_env.core.options import check_count, check_scale, shortened
from ninetka_env.core.registry import DEFAULT, get_definition, limits_of
from ninetka_env.core.threads import cores
from ninetka_env.core.verbs import Records

Floats = npt.NDArray[np.float32]
Search: TypeAlias = GumbelSearch | GuidedSearch | GuidedRaveSearch
BATCH = 1024
"""Positions per forward pass."""
BATCH_TARGETS = 1 << 17
"""Sections, points or nodes of all those positions at most: there are fewer of them on large boards."""
EXACT = 200
"""Usual most nodes to prove who wins after an action that is tried, where the game has a prover."""


@dataclass(frozen=True)
class SearchSettings:
    """How a network plays and is searched; the options are explained at `load_net`."""

    simulations: int = 0
    temperature: float = 0.0
    playouts: int | None = None
    exact: int | None = None
    seconds: float = 0.0
    reuse: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for options out of range, or that do not go together."""
        check_scale("temperature", self.temperature)
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


PLAIN = SearchSettings()
"""The most probable action, without search."""


class NetAgent(Agent):
    """Plays a network's most probable action, draws from its policy, or searches first."""

    def __init__(self, network: Any, settings: SearchSettings = PLAIN, *, name: str = "net") -> None:
        """Play as a network says, its game alone.

        Args:
            network: see `ninetka_agents.outputs`.
            settings: how it plays.
            name: of the agent.

        Raises:
            ValueError: if there is no tree that could be kept.
        """
        self.name, self.game, self.network = name, network.game, network
        self.temperature = float(settings.temperature)
        self.opens_alike = self.temperature == 0
        self._search = _make_search(network, settings)
        self.remembers = self._search is not None and self._search.remembers

    @property
    def searcher(self) -> Agent:
        """The search, unless it draws actions; see `ninetka_agents.agent.Agent.searcher`."""
        return self._search if self._search and self.temperature == 0 else self

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


def load_net(
    path: str = "",
    temperature: float = 0.0,
    threads: int = 0,
    simulations: int = 0,
    playouts: int | None = None,
    exact: int | None = None,
    seconds: float = 0.0,
    reuse: bool = False,
    game: str = DEFAULT,
) -> NetAgent:
    """Make the agent of a checkpoint, on the GPU if there is one, else on the CPU: the options of the agent `net`.

    Args:
        path: of a checkpoint; empty for the shipped one.
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
    settings = SearchSettings(simulations, temperature, playouts, exact, seconds, reuse)
    network = load_checkpoint(path or best_shipped(game), best_device(), game)[0]
    if network.game != game:
        raise ValueError(f"checkpoint {path}: its network plays {network.game}, not {game}")
    return NetAgent(network, settings)


def _make_search(network: Any, settings: SearchSettings) -> Search | Switch[Search] | None:
    """Return the search before a move, None for none."""
    if not settings.is_on:
        return None
    searches = make_searches(quick_evaluate(network), network.game, settings)
    return searches.agents[0] if len(set(searches.agents)) == 1 else searches


def make_searches(evaluate: Evaluate, game: str, settings: SearchSettings) -> Switch[Search]:
    """Return the searches for the stages of a game, or for the sizes of its boards.

    The Gumbel search's few simulations go where the network points. Where a game is won by reading ahead (9tka's
    slides), one tree that keeps all its playouts does better: twice as many of them, for they are half as long there.
    What a prover decides in little time needs none of them; without playouts the network is trusted alone.
    With playouts, games that say so, such as Go and Kropki, are searched by one tree of RAVE (`Parts.guided_rave`).

    Raises:
        ValueError: if an option is out of range, or no stage has a tree that can be kept.
    """
    parts = parts_of(game)
    playouts = SearchOptions.playouts if settings.playouts is None else settings.playouts
    exact = settings.exact
    if exact is None:
        exact = EXACT if playouts and parts.prover else 0
    if parts.guided_rave and settings.playouts != 0:
        by_points = sorted(parts.guided_rave.items())
        boards = [_search_for_board(evaluate, game, settings, rave) for _, rave in by_points]
        searches: Switch[Search] = Switch(by_size([points for points, _ in by_points]), boards, "or")
    else:
        usual = _gumbel_search(evaluate, settings, playouts, exact)
        guided = _guided_search(evaluate, settings, 2 * playouts, exact) if playouts and parts.guided_stages else usual
        stages = range(len(get_definition(game).stages))
        searches = Switch(by_stage, [guided if stage in parts.guided_stages else usual for stage in stages])
    if settings.reuse and not searches.remembers:
        raise ValueError(
            "reuse=True: the Gumbel search, which is the only one here, begins each move anew; a tree "
            "that grows by playouts can be kept, such as that of playouts=128"
        )
    return searches


def _gumbel_search(evaluate: Evaluate, settings: SearchSettings, playouts: int, exact: int) -> Search:
    """Return the Gumbel search, by simulations or by the clock."""
    options = SearchOptions(settings.positions, gumbel_scale=settings.temperature, playouts=playouts, exact=exact)
    return GumbelByClock(evaluate, options, settings.seconds) if settings.seconds else GumbelSearch(evaluate, options)


def _guided_search(evaluate: Evaluate, settings: SearchSettings, playouts: int, exact: int) -> Search:
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


def _search_for_board(evaluate: Evaluate, game: str, settings: SearchSettings, rave: GuidedRave) -> Search:
    """Return the search for boards of one range of sizes."""
    fitting = min(rave.playouts, max(1, MOST_SIMULATIONS // settings.positions))  # all are in one tree
    playouts = fitting if settings.playouts is None else settings.playouts
    if playouts == 0:
        return _gumbel_search(evaluate, settings, 0, settings.exact or 0)
    rules = cast(MctsAgent, make_agent(rave.spec, game)).rules._replace(trust=rave.trust)
    return GuidedRaveSearch(
        evaluate, settings.positions, playouts, settings.temperature, rules, settings.seconds, settings.reuse
    )


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
