"""Check games on a GPU against the CPU, bit for bit, and measure them: `python -m benchmarks.gpu`.

`ninetka speed` does not run it, because it needs a GPU. In numba's simulator (see `docs/guides/gpu.md`) it plays a few
games only, and its speeds mean nothing.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.go_peers import pgx
from benchmarks.measure import Row, is_installed, write_rows
from benchmarks.startup import process_seconds
from ninetka_agents.checkpoint import load_checkpoint, shipped_network
from ninetka_agents.net_agent import network_evaluate
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.registry import load_variant
from ninetka_env.gpu.device import IS_SIMULATED
from ninetka_env.gpu.vector import DeviceVectorEnv
from ninetka_train.learning.config import check_config
from ninetka_train.learning.ppo import train_ppo

GAMES, PLIES = (2, 4) if IS_SIMULATED else (65_536, 160)
"""Games and plies per variant whose arrays are compared: 10 M plies."""
COMPARED_EVERY = 1 if IS_SIMULATED else 8
"""Number of plies after which all arrays are compared; states, rewards and endings are compared after every ply."""
VARIANTS = (
    "ninetka",
    "ninetka:num_players=3,neutral_placement=random",
    "ninetka:num_players=4,auto_pass=False,turn_order=continue",
    "go",
    "go:ko=situational,scoring=territory,planes=alphazero",
    "kropki",
    "kropki:territory=immediate,start=cross",
)
MEASURED = ("ninetka", "kropki", "go")
BATCHES = (2,) if IS_SIMULATED else (16_384, 262_144)
ENCODED = 4 if IS_SIMULATED else 32_768
TRAINED, ROLLOUTS = ((2, 4), 3) if IS_SIMULATED else ((16_384, 32), 12)
"""Games and plies of a rollout of PPO, and number of rollouts; the first two are not measured."""
FIRST_STEP = """
from ninetka_env.core.registry import load_variant
from ninetka_env.gpu.vector import DeviceVectorEnv
envs = DeviceVectorEnv({games}, load_variant("{spec}"))
envs.reset(seed=0)
envs.step(envs.sample_legal())
envs.check()
"""


def differences(spec: str) -> int:
    """Return the number of plies after which an array of the GPU differs from that of the CPU."""
    variant, found = load_variant(spec), 0
    cpu, gpu = GameVectorEnv(GAMES, variant, "score"), DeviceVectorEnv(GAMES, variant, "score")
    cpu.reset(seed=1)
    gpu.reset(seed=1)
    outputs = ("observations", "action_mask", "to_move", "final_scores", "final_winner")
    network = load_network(spec)
    for ply in range(PLIES):
        actions = gpu.sample_legal()
        same = np.array_equal(actions.cpu(), cpu.sample_legal())
        gpu.step(actions)
        cpu.step(actions.cpu().numpy())
        names = ("rewards", "terminated", *outputs * (ply % COMPARED_EVERY == 0))
        same &= all(np.array_equal(getattr(gpu, name).cpu(), getattr(cpu, name)) for name in names)
        if ply % COMPARED_EVERY == 0:
            inputs = zip(network.encode_on_device(gpu), network.encode(cpu.games), strict=True)
            same &= all(np.array_equal(tensor.cpu(), array) for tensor, array in inputs)
        found += not (same and gpu.states().tobytes() == cpu.games.tobytes())
    gpu.check()
    return found


def rate(run: Callable[[], object], amount: int, seconds: float = 2.0) -> float:
    """Return the amount of work per second that calls of `run` do on the device; compiling is not included."""
    run()
    _wait()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(1 if IS_SIMULATED else 20):
            run()
            calls += 1
        _wait()
    return calls * amount / (time.perf_counter() - start)


def _wait() -> None:
    if not IS_SIMULATED:
        torch.cuda.synchronize()


def random_games(spec: str, count: int) -> Callable[[], None]:
    """Return a function that plays a random action in each of `count` games."""
    env = DeviceVectorEnv(count, load_variant(spec))
    env.reset(seed=0)

    def run() -> None:
        env.step(env.sample_legal())

    return run


def load_network(spec: str) -> Any:
    """Return the shipped network of a game, on the GPU."""
    game, device = load_variant(spec).definition.name, torch.device("cpu" if IS_SIMULATED else "cuda")
    return load_checkpoint(shipped_network(game), device, game)[0].eval()


def evaluations(spec: str, bf16: bool) -> Callable[[], None]:
    """Return a function that evaluates `ENCODED` positions on the CPU with a network on the GPU."""
    envs, evaluate = GameVectorEnv(ENCODED, load_variant(spec)), network_evaluate(load_network(spec), bf16=bf16)
    for _ in range(2 if IS_SIMULATED else 50):
        envs.step(envs.sample_legal())

    def run() -> None:
        evaluate(envs.games)

    return run


def device_evaluations(spec: str, bf16: bool) -> Callable[[], None]:
    """Return a function that evaluates `ENCODED` positions on the GPU with a network there."""
    network, envs = load_network(spec), DeviceVectorEnv(ENCODED, load_variant(spec))
    for _ in range(2 if IS_SIMULATED else 50):
        envs.step(envs.sample_legal())

    def run() -> None:
        with torch.inference_mode(), torch.autocast(network.device.type, torch.bfloat16, enabled=bf16):
            network(network.encode_on_device(envs))

    return run


def pgx_rate(count: int) -> tuple[float, str] | tuple[None, str]:
    """Return the plies per second of random play in `count` games of Go with pgx, if it is installed, and a title."""
    if not is_installed("pgx"):
        return None, ""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the GPU's memory
    import jax

    return rate(pgx(count), count), f"pgx go_9x9, {jax.default_backend()}"


def start_up(spec: str, card: str) -> Iterator[Row]:
    """Measure new processes to the first step of a batch, without networks, with an empty and with a full cache."""
    code = FIRST_STEP.format(games=BATCHES[0], spec=spec)
    with tempfile.TemporaryDirectory() as folder:
        for what, runs, target in (("nothing", 1, 20), ("everything", 3, 5)):
            seconds = process_seconds(code, runs, folder)
            title = f"{spec}: process to the first step, {what} cached, {card}"
            yield Row(title, "s", seconds, target=target, lower_is_better=True)


def learned_plies(spec: str) -> float:
    """Return the number of plies per second that PPO plays and learns from, with a network of the default shape."""
    games, plies = TRAINED
    settings = {"games": games, "plies": plies, "moves": ROLLOUTS * games * plies}
    settings |= {"minibatch": games, "microbatch": games}
    speeds: list[float] = []
    config = check_config({"game": spec, "device": "auto", "ppo": settings})
    train_ppo(config, report=lambda _, metrics: speeds.append(metrics["moves_per_second"]))
    return float(np.median(speeds[2:]))


def rows() -> Iterator[Row]:
    """Check, then measure."""
    card = "simulator" if IS_SIMULATED else torch.cuda.get_device_name()
    for spec in VARIANTS:
        what = f"{spec}: plies with a difference, of {GAMES} games x {PLIES} plies, {card}"
        yield Row(what, "plies", differences(spec), target=0, lower_is_better=True)
    for spec in MEASURED:
        yield from start_up(spec, card)
        for count in BATCHES:
            what = f"{spec}: random play, {count} games, observation and mask, {card}"
            peer = pgx_rate(count) if spec == "go" else (None, "")
            yield Row(what, "plies/s", rate(random_games(spec, count), count), *peer)
        for bf16 in (False, True):
            for place, runs in (("CPU", evaluations), ("GPU", device_evaluations)):
                what = f"{spec}: its network, {ENCODED} states on the {place}, {'bfloat16' if bf16 else 'float32'}"
                yield Row(f"{what}, {card}", "positions/s", rate(runs(spec, bf16), ENCODED))
        yield Row(f"{spec}: PPO, {TRAINED[0]} games, {card}", "plies/s", learned_plies(spec))


if __name__ == "__main__":
    write_rows(rows())
