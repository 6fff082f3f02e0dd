"""The agent `net`, which plays with a trained network, with or without a search.

`ninetka_agents.outputs` defines the interface of networks. The search depends on the game, the stage of the game and
the board size: see `make_searches`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ninetka_agents.agent import (
    Actions,
    Agent,
    SeatAgent,
    as_unfinished_states,
    check_threads,
    game_streams,
    make_agent,
)
from ninetka_agents.checkpoint import find_checkpoint, load_checkpoint, shipped_network
from ninetka_agents.outputs import MASKED, forward_states
from ninetka_agents.plugins import GuidedRaveSettings, plugins_of
from ninetka_agents.search.evaluation import Evaluate
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.timed_gumbel import TimedGumbelSearch
from ninetka_agents.search.tree import MAX_SIMULATIONS
from ninetka_agents.switch import Switch, by_size, by_stage
from ninetka_env.core.game import Game
from ninetka_env.core.options import check_count, check_nonnegative, short_repr
from ninetka_env.core.registry import DEFAULT_GAME, get_definition, limits_of
from ninetka_env.core.threads import available_cores
from ninetka_env.core.verbs import StateArray

Floats = npt.NDArray[np.float32]
Search: TypeAlias = GumbelSearch | GuidedSearch | GuidedRaveSearch
BATCH_SIZE = 1024
"""Positions per forward pass on a CPU."""
MAX_BATCH_TARGETS = 1 << 17
"""Maximum number of targets (sections, points or nodes) per forward pass on a CPU, so batches are smaller on large
boards."""
GPU_BATCHES = 8
"""Factor by which batches on a GPU are larger: starting its computations takes longer than computing small batches."""
DEFAULT_PROOF_NODES = 200
"""Default maximum number of nodes per proof of the winner after an action, in games that have a prover."""


@dataclass(frozen=True)
class SearchSettings:
    """How a network plays and searches; see `load_net` for the options."""

    simulations: int = 0
    temperature: float = 0.0
    playouts: int | None = None
    exact: int | None = None
    seconds: float = 0.0
    reuse: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for options that are out of range or contradict each other."""
        check_nonnegative("temperature", self.temperature)
        if check_count("simulations", self.simulations, minimum=0) and check_nonnegative("seconds", self.seconds):
            raise ValueError(f"simulations={self.simulations}, seconds={self.seconds:g}: expected one of them")
        for name, default, what in (
            ("playouts", None, "they are for the positions"),
            ("exact", None, "proofs are for the leaves"),
            ("reuse", False, "it is for the tree"),
        ):
            value = getattr(self, name)
            if value != default and not self.has_search:
                raise ValueError(f"{name}={short_repr(value)}: {what} of a search, which needs simulations or seconds")

    @property
    def has_search(self) -> bool:
        """Whether the agent searches before a move."""
        return bool(self.simulations or self.seconds)

    @property
    def num_evaluations(self) -> int:
        """Positions that the network evaluates per move in a search without a time limit."""
        return max(1, self.simulations)


NO_SEARCH = SearchSettings()
"""Play the most probable action, without search."""


class NetAgent(Agent):
    """Plays a network's most probable action, samples from its policy, or searches."""

    def __init__(self, network: Any, settings: SearchSettings = NO_SEARCH, *, name: str = "net") -> None:
        """Create the agent, which plays only the game of its network.

        Args:
            network: see `ninetka_agents.outputs`.
            settings: how it plays.
            name: the name of the agent.

        Raises:
            ValueError: if `reuse` is set and the game's searches cannot keep a tree.
        """
        self.name, self.game, self.network = name, network.game, network
        self.temperature = float(settings.temperature)
        self.repeats_openings = self.temperature == 0
        self._search = _make_search(network, settings)
        self.has_seat_agents = self._search is not None and self._search.has_seat_agents

    @property
    def searcher(self) -> Agent:
        """The search, unless actions are sampled; see `ninetka_agents.agent.Agent.searcher`."""
        return self._search if self._search and self.temperature == 0 else self

    def start(self, game: Game) -> SeatAgent | None:
        """Start to play a game, if the search keeps its tree; see `ninetka_agents.agent.Agent.start`."""
        return self._search.start(game) if self._search else None

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_unfinished_states(games, self.game)
        if self._search:
            return self._search.act(games, rng)
        scores = policy_logits(self.network, games)
        if self.temperature:
            return np.asarray(
                (_apply_temperature(scores, self.temperature) + _gumbel_noise(games, rng)).argmax(1), np.int64
            )
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
    game: str = DEFAULT_GAME,
) -> NetAgent:
    """Load a trained network, which plays its most probable action, or the action that a search finds.

    The network is on the GPU if there is one, otherwise on the CPU.

    Args:
        path: path of a checkpoint or name of a network; empty for the shipped network.
        temperature: 0 plays the most probable action; otherwise actions are drawn with probability proportional to
            p ** (1 / temperature). With a search, it scales the Gumbel noise at the root.
        threads: maximum number of CPU threads; 0 for `default_threads`. torch has one setting per process, so the
            agent that is made last decides.
        simulations: positions that the network evaluates in the search before each move; 0 plays without search.
        playouts: random playouts per evaluated position, twice as many for 9tka's slides; in Go and Kropki, RAVE
            simulations per evaluated position. 0 uses only the network's values. None for the best known number: 128
            in 9tka, 32 in Go, 0 in Kropki up to 12 x 12 and 2048 on larger boards; fewer where the simulations would
            not fit in one RAVE tree.
        exact: with two players, maximum number of nodes to prove the winner at each new node of the search; 0 for no
            proofs. None for the best known number: 200 in 9tka with playouts, otherwise 0.
        seconds: time to search before a move, instead of `simulations`; 0 for no time limit. With a time limit, the
            moves depend on the machine, even with the same seed.
        reuse: keep the search tree from move to move where whole games are played. This applies to stages whose search
            is one tree of playouts; see `ninetka_agents.search.guided` and `guided_rave`.
        game: the game to play.

    Raises:
        ValueError: if the checkpoint cannot be used, or if an option is out of range or contradicts another one.
    """
    if check_count("threads", threads, minimum=0):
        torch.set_num_threads(check_threads(threads))
    elif (count := default_threads()) < torch.get_num_threads():
        torch.set_num_threads(count)
    settings = SearchSettings(simulations, temperature, playouts, exact, seconds, reuse)
    checkpoint = find_checkpoint(path, game) if path else shipped_network(game)
    network = load_checkpoint(checkpoint, best_device(), game)[0]
    if network.game != game:
        raise ValueError(f"checkpoint {path}: its network plays {network.game}, not {game}")
    agent = NetAgent(network, settings)
    agent.files = (checkpoint,)
    return agent


def _make_search(network: Any, settings: SearchSettings) -> Search | Switch[Search] | None:
    """Return the search before a move; None if there is no search."""
    if not settings.has_search:
        return None
    searches = make_searches(fast_evaluate(network), network.game, settings)
    return searches.agents[0] if len(set(searches.agents)) == 1 else searches


def make_searches(evaluate: Evaluate, game: str, settings: SearchSettings) -> Switch[Search]:
    """Return the searches of a game, one per stage or one per range of board sizes.

    By default, the search is the Gumbel search, whose few simulations follow the network's policy. There are two
    exceptions, both only with playouts:

    - The stages in `GamePlugins.guided_stages`, such as 9tka's slides, are decided by looking ahead. They are searched
      by a `GuidedSearch`, one tree that keeps all its playouts. It makes twice as many playouts per evaluation, because
      they are half as long.
    - Games with `GamePlugins.guided_rave`, such as Go and Kropki, are searched by one RAVE tree.

    A position whose winner a prover finds quickly needs no playouts.

    Raises:
        ValueError: if an option is out of range, or if `reuse` is set and no search can keep its tree.
    """
    plugins = plugins_of(game)
    playouts = GumbelOptions.playouts if settings.playouts is None else settings.playouts
    exact = settings.exact
    if exact is None:
        exact = DEFAULT_PROOF_NODES if playouts and plugins.prover else 0
    if plugins.guided_rave and settings.playouts != 0:
        by_points = sorted(plugins.guided_rave.items())
        boards = [_search_for_board(evaluate, game, settings, rave) for _, rave in by_points]
        searches: Switch[Search] = Switch(by_size([points for points, _ in by_points]), boards, "or")
    else:
        gumbel = _gumbel_search(evaluate, settings, playouts, exact)
        guided = (
            _guided_search(evaluate, settings, 2 * playouts, exact) if playouts and plugins.guided_stages else gumbel
        )
        stages = range(len(get_definition(game).stages))
        searches = Switch(by_stage, [guided if stage in plugins.guided_stages else gumbel for stage in stages])
    if settings.reuse and not searches.has_seat_agents:
        raise ValueError(
            "reuse=True: the Gumbel search, which is the only one here, starts a new tree for each move; only a search "
            "with playouts, such as playouts=128, can keep its tree"
        )
    return searches


def _gumbel_search(evaluate: Evaluate, settings: SearchSettings, playouts: int, exact: int) -> Search:
    """Return the Gumbel search, with a number of simulations or a time limit."""
    options = GumbelOptions(settings.num_evaluations, gumbel_scale=settings.temperature, playouts=playouts, exact=exact)
    return (
        TimedGumbelSearch(evaluate, options, settings.seconds) if settings.seconds else GumbelSearch(evaluate, options)
    )


def _guided_search(evaluate: Evaluate, settings: SearchSettings, playouts: int, exact: int) -> Search:
    """Return the search that grows one tree of playouts."""
    return GuidedSearch(
        evaluate,
        settings.num_evaluations,
        playouts,
        settings.temperature,
        exact,
        seconds=settings.seconds,
        reuse=settings.reuse,
    )


def _search_for_board(evaluate: Evaluate, game: str, settings: SearchSettings, rave: GuidedRaveSettings) -> Search:
    """Return the search for one range of board sizes; `rave` holds the settings of the plugins for this range."""
    fitting = min(
        rave.playouts, max(1, MAX_SIMULATIONS // settings.num_evaluations)
    )  # all simulations must fit in one tree
    playouts = fitting if settings.playouts is None else settings.playouts
    if playouts == 0:
        return _gumbel_search(evaluate, settings, 0, settings.exact or 0)
    rules = cast(MctsAgent, make_agent(rave.spec, game)).rave_options._replace(value_weight=rave.value_weight)
    return GuidedRaveSearch(
        evaluate, settings.num_evaluations, playouts, settings.temperature, rules, settings.seconds, settings.reuse
    )


def default_threads() -> int:
    """Return the default number of threads for torch: its current number, at most the cores of this process.

    torch does not know the CPU quota of a container. If `OMP_NUM_THREADS` is set, torch's number is returned unchanged.
    """
    known = torch.get_num_threads()
    return known if "OMP_NUM_THREADS" in os.environ else min(known, available_cores())


def best_device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def has_bf16(device: torch.device) -> bool:
    """Return whether a device supports bfloat16 in hardware; NVIDIA GPUs do since Ampere (2020)."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    is_supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)  # private function of torch 2.5 to 2.13
    return device.type == "cpu" and is_supported is not None and bool(is_supported())


def policy_logits(network: Any, games: StateArray) -> Floats:
    """Return (N, num_actions) float32 masked logits for the seats to move."""
    return _evaluate_batches(network, games)[0]


def network_evaluate(network: Any, bf16: bool = False) -> Evaluate:
    """Return a function that evaluates positions with a network, on the network's device, in batches.

    With `bf16`, the network multiplies in bfloat16, which rounds to 1 part in 256. This is faster if the device
    supports bfloat16 in hardware.
    """

    def evaluate(games: StateArray) -> tuple[Floats, Floats]:
        with torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
            return _evaluate_batches(network, games, normalised=True)

    return evaluate


def fast_evaluate(network: Any) -> Evaluate:
    """Return `network_evaluate`, in bfloat16 if the network allows it and its device supports it in hardware."""
    return network_evaluate(network, bf16=network.bf16 and has_bf16(network.device))


def _evaluate_batches(network: Any, games: StateArray, normalised: bool = False) -> tuple[Floats, Floats]:
    """Return logits (or log probabilities if `normalised`) and win probabilities per relative seat, in batches.

    A batch is encoded while a GPU still evaluates the batch before it.

    Raises:
        ValueError: if the network's outputs for a position are not finite.
    """
    limits = limits_of(games.dtype)
    logits = np.empty((len(games), limits.actions), np.float32)
    values = np.empty((len(games), limits.players), np.float32)
    batches = _start_batches(network, games, _batch_size(network.device, limits.targets), normalised)
    with torch.inference_mode():
        for (part, *tensors), _ in pairwise(chain[Any](batches, [None])):  # the next batch has been started
            logits[part], values[part] = (tensor.cpu().numpy() for tensor in tensors)
    _check_finite(logits, values)
    return logits, values


def _start_batches(
    network: Any, games: StateArray, batch: int, normalised: bool
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield slices of the games with their logits and values, which a GPU may still be computing."""
    for first in range(0, len(games), batch):
        part = slice(first, first + batch)
        outputs = forward_states(network, games[part])
        yield part, outputs.logits.log_softmax(-1) if normalised else outputs.logits, outputs.values


def _batch_size(device: torch.device | str, targets: int) -> int:
    """Return the number of positions with this number of targets that a device evaluates at a time."""
    factor = GPU_BATCHES if torch.device(device).type == "cuda" else 1
    return factor * min(BATCH_SIZE, max(1, MAX_BATCH_TARGETS // max(1, targets)))


def _check_finite(logits: Floats, values: Floats) -> None:
    """Raise `ValueError` for outputs that are not finite, which happens if the weights have become too large."""
    with np.errstate(invalid="ignore", over="ignore"):
        if math.isfinite(logits.sum()) and math.isfinite(values.sum()):  # faster than a check of each number
            return
    row = int((np.isfinite(logits).all(1) & np.isfinite(values).all(1)).argmin())
    what = "values" if np.isfinite(logits[row]).all() else "logits"
    raise ValueError(
        f"the network's {what} for position {row} of {len(logits)} are not finite, since its weights are too large: "
        "lower learning_rate and train again"
    )


def _apply_temperature(scores: Floats, temperature: float) -> npt.NDArray[np.float64]:
    """Return (N, A) logits divided by a temperature, with a maximum of 0; masked actions become -inf."""
    with np.errstate(over="ignore"):
        heated = (scores - scores.max(1, keepdims=True)).astype(np.float64) / temperature
    return np.where(scores > MASKED / 2, heated, -np.inf)


def _gumbel_noise(games: StateArray, rng: np.random.Generator) -> Floats:
    """Draw (N, num_actions) Gumbel noise from one stream per game; the argmax of logits + noise samples the policy."""
    actions = limits_of(games.dtype).actions
    noise = [np.random.default_rng(int(word)).random(actions) for word in game_streams(games, rng)]
    uniform = np.array(noise).reshape(len(games), actions) * (1 - 2e-12) + 1e-12
    return -np.log(-np.log(uniform)).astype(np.float32)
