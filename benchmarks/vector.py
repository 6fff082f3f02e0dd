"""Benchmark batched random play, including observations and action masks.

`benchmarks.aec` measures single games.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Row, is_installed, rates, write_rows, write_rows_on_one_core
from ninetka_env import ninetka_v0
from ninetka_env.api.vector import GameVectorEnv

BATCHES = (1, 64, 256, 512, 1024, 8192)


def random_play(envs: GameVectorEnv) -> Callable[[], int]:
    """Return a function that plays random actions in a batch of any game and returns their number."""
    envs.reset(seed=0)
    steps = max(1, 4096 // envs.num_envs)

    def run() -> int:
        for _ in range(steps):
            envs.step(envs.sample_legal())
        return steps * envs.num_envs

    return run


def pgx_hex(num_envs: int) -> Callable[[], int]:
    """Return a function that plays random actions in pgx's Hex on 11 x 11 (JAX on the CPU, all cores)."""
    import jax
    import pgx

    env = pgx.make("hex")

    def random_step(state: Any, key: Any) -> tuple[Any, Any]:
        keys = jax.random.split(key)
        logits = jax.numpy.log(state.legal_action_mask.astype(float))
        action = jax.random.categorical(keys[0], logits, axis=1)
        return jax.vmap(step)(state, action, jax.random.split(keys[1], num_envs)), keys[1]

    step = pgx.experimental.wrappers.auto_reset(env.step, env.init)
    jitted = jax.jit(random_step)
    key = jax.random.PRNGKey(0)
    state = jax.vmap(env.init)(jax.random.split(key, num_envs))
    held = [state, key]

    def run() -> int:
        held[:] = jitted(*held)
        jax.block_until_ready(held[0].observation)
        return num_envs

    return run


def one_core_rows() -> Iterator[Row]:
    """Measure on one core, for every number of players."""
    for n in (2, 3, 4):
        (ours,) = rates(random_play(ninetka_v0.vector_env(1024, n, num_threads=1)))
        target = 8e6 if n == 2 else None
        yield Row(f"batched random play, 1024 games of {n}, one core", "plies/s", ours, target=target)


def two_core_rows() -> Iterator[Row]:
    """Measure two threads, compared with one at every batch size, and with pgx if it is installed."""
    for batch in BATCHES:
        two, one = rates(*(random_play(ninetka_v0.vector_env(batch, 2, num_threads=threads)) for threads in (2, 1)))
        target = 15e6 if batch == 1024 else None
        yield Row(f"batched random play, {batch} games of 2, two threads", "plies/s", two, one, "one thread", target)
    if is_installed("pgx"):
        ours, peer = rates(random_play(ninetka_v0.vector_env(1024, 2, num_threads=2)), pgx_hex(1024))
        yield Row("batched random play, 1024 games, two cores", "plies/s", ours, peer, "pgx hex 11 x 11")


if __name__ == "__main__":
    write_rows_on_one_core(one_core_rows())
    write_rows(two_core_rows())
