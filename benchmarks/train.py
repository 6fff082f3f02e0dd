"""Benchmark training: PPO compared with SB3-contrib, moves of the network, and the network's share of search time.

`benchmarks.ppo` compares the strength that PPO reaches; `benchmarks.networks` measures the networks of Go and Kropki.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import Row, rates, write_rows
from benchmarks.networks import positions as random_positions
from ninetka_agents.agent import RandomAgent
from ninetka_agents.checkpoint import load_checkpoint, shipped_network
from ninetka_agents.net_agent import NetAgent, has_bf16, network_evaluate
from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Network, as_inputs
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_train.learning.batch import make_batch
from ninetka_train.learning.config import TrainConfig, load_config
from ninetka_train.learning.ppo import draw_opponents, learn, new_learner, play

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
SIMULATIONS = 32
GAMES = 256
SHIPPED = ("ninetka", "go", "kropki")
"""Games that have a shipped network."""

warnings.filterwarnings("ignore")


def ppo_moves(config: TrainConfig) -> Callable[[], int]:
    """Return a function that plays a rollout, learns from it, and returns its number of moves."""
    learner = new_learner(config)

    def run() -> int:
        draw_opponents(learner)
        rollout = play(learner)
        learn(learner, make_batch(rollout, config.ppo.discount_lambda, learner.network.device))
        return int(rollout.actions.size)

    return run


def sb3_moves(config: TrainConfig, num_envs: int = 16, steps: int = 256) -> Callable[[], int]:
    """Return a function that trains SB3-contrib's MaskablePPO on PettingZoo's connect four and returns the moves.

    One policy plays both seats. The sizes of minibatches and the epochs are taken from `config`; the network is SB3's
    default.
    """
    import gymnasium
    from pettingzoo.classic import connect_four_v3
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    class SelfPlay(gymnasium.Env):
        """Connect four as a single-agent environment that plays both seats and rewards the player who moved."""

        def __init__(self) -> None:
            self.game = connect_four_v3.raw_env()
            self.game.reset(seed=0)
            first = self.game.possible_agents[0]
            self.action_space = self.game.action_space(first)
            self.observation_space = self.game.observation_space(first)["observation"]

        def _see(self) -> Any:
            return self.game.observe(self.game.agent_selection)

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            self.game.reset(seed=seed)
            return self._see()["observation"], {}

        def step(self, action: Any) -> Any:
            mover = self.game.agent_selection
            self.game.step(int(action))
            ended = any(self.game.terminations.values())
            return self._see()["observation"], self.game.rewards[mover], ended, False, {}

        def action_masks(self) -> Any:
            return self._see()["action_mask"]

    envs, settings = DummyVecEnv([SelfPlay] * num_envs), config.ppo
    options: dict[str, Any] = {"batch_size": settings.minibatch, "n_epochs": settings.epochs, "device": "cpu"}
    model = MaskablePPO("MlpPolicy", envs, n_steps=steps, **options)

    def run() -> int:
        model.learn(num_envs * steps)
        return num_envs * steps

    return run


def ppo_flops(config: TrainConfig) -> float:
    """Return the floating-point operations in matrix products to play a move and to learn from it."""
    network, inputs = Network(config.network.build()), as_inputs(make_features(positions(GAMES)))
    with FlopCounterMode(display=False) as counter:
        with torch.inference_mode():
            network(inputs)
        for _ in range(config.ppo.epochs):
            outputs = network(inputs)
            (outputs.logits.sum() + outputs.value_logits.sum() + outputs.owner_logits.sum()).backward()
    return counter.get_total_flops() / GAMES


def product_flops(size: int = 2048) -> float:
    """Return the floating-point operations per second of a large float32 product, the machine's best case."""
    one, other = torch.rand(2, size, size)

    def run() -> int:
        torch.mm(one, other)
        return 2 * size**3

    return rates(run, seconds=1, rounds=3)[0]


def positions(count: int) -> StateArray:
    """Return `count` positions of random two-player games, after 0 to 59 plies."""
    rng, agent, found = np.random.default_rng(0), RandomAgent(), []
    for plies in range(count):
        game = Game.new(2)
        for _ in range(plies % 60):
            if not game.is_over:
                game.play(int(agent.act(game.records, rng)[0]))
        found.append(Game.new(2).records if game.is_over else game.records)
    return np.concatenate(found)


def network_ms(network: Network, count: int, repeats: int) -> float:
    """Return the median time per game, in ms, to choose moves by the network without search in `count` games."""
    agent, games, rng = NetAgent(network), positions(count), np.random.default_rng(0)
    taken = []
    for _ in range(repeats + 3):
        start = time.perf_counter()
        agent.act(games, rng)
        taken.append(time.perf_counter() - start)
    return 1e3 * float(np.median(taken[3:])) / count


class SearchTime(NamedTuple):
    """Time of the network in Gumbel searches of a batch of games."""

    network_share: float
    """Share of the time inside the network's `forward`."""
    evaluated_per_second: float
    """Positions that the network evaluates per second of search."""


def search_time(network: Any, games: StateArray, options: GumbelOptions) -> SearchTime:
    """Search games three times, as self-play does, and measure the share of the time in the network."""
    entered_at, inside, evaluated = 0.0, 0.0, 0

    def on_enter(_network: Any, _inputs: Any) -> None:
        nonlocal entered_at
        entered_at = time.perf_counter()

    def on_leave(_network: Any, _inputs: Any, outputs: Any) -> None:
        nonlocal inside, evaluated
        inside, evaluated = inside + time.perf_counter() - entered_at, evaluated + len(outputs.logits)

    hooks = network.register_forward_pre_hook(on_enter), network.register_forward_hook(on_leave)
    evaluate = network_evaluate(network, bf16=network.bf16 and has_bf16(network.device))
    search = GumbelSearch(evaluate, options, torch.get_num_threads())
    search.run(games, np.random.default_rng(0))
    inside, evaluated, start = 0.0, 0, time.perf_counter()
    for seed in range(3):
        search.run(games, np.random.default_rng(seed))
    taken = time.perf_counter() - start
    for hook in hooks:
        hook.remove()
    return SearchTime(inside / taken, evaluated / taken)


def rows() -> Iterator[Row]:
    """Measure everything on all cores."""
    config, threads = load_config(CONFIGS / "ppo.yaml", ["device=cpu"]), torch.get_num_threads()
    weights = sum(parameter.numel() for parameter in Network(config.network.build()).parameters())
    ours, peer = rates(ppo_moves(config), sb3_moves(config), seconds=3, rounds=2)
    what = f"PPO from game to gradient, {threads} threads, {weights / 1e3:.0f} k weights, {config.ppo.epochs} epochs"
    yield Row(what, "moves/s", ours, peer, "SB3-contrib MaskablePPO, MLP, connect four", 10e3)
    flops = ppo_flops(config)
    yield Row("the same: operations in its matrix products", "MFLOP/move", flops / 1e6)
    yield Row("the same, did it nothing else, at the speed of large products", "moves/s", product_flops() / flops)
    torch.manual_seed(0)
    network = Network(load_config(CONFIGS / "quick.yaml").network.build()).eval()
    yield Row("a move of the network alone, one game", "ms", network_ms(network, 1, 50), target=5, lower_is_better=True)
    what = f"the same, {GAMES} games at once, per game"
    yield Row(what, "ms", network_ms(network, GAMES, 10), target=0.3, lower_is_better=True)
    for game in SHIPPED:
        shipped = load_checkpoint(shipped_network(game), game=game)[0]
        time_split = search_time(shipped, random_positions(game, GAMES), GumbelOptions(SIMULATIONS, playouts=0))
        what = f"{game}: Gumbel search, {SIMULATIONS} simulations, {GAMES} games, no playouts, the shipped network"
        yield Row(f"{what}: share of the time inside it", "%", 100 * time_split.network_share, target=80)
        yield Row("the same: positions that it judged", "positions/s", time_split.evaluated_per_second)


if __name__ == "__main__":
    write_rows(rows())
