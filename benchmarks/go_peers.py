"""Peers of `benchmarks.go`: 9 x 9 Go of OpenSpiel and pgx, and GNU Go."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetka_agents.go.gtp.process import EngineProcess, find_engine

GNU_GO_COMMAND = "gnugo --mode gtp --chinese-rules --capture-all-dead --level"
SPIEL_GAME = "go(board_size=9,komi=7.0)"


def openspiel() -> Callable[[], int]:
    """Return a function that plays one random game of OpenSpiel and returns the number of plies.

    The function reads the observation tensor and the action mask at every ply.
    """
    import pyspiel

    game, rng = pyspiel.load_game(SPIEL_GAME), np.random.default_rng(0)

    def run() -> int:
        state, moves = game.new_initial_state(), 0
        while not state.is_terminal():
            state.observation_tensor(state.current_player())
            legal = np.flatnonzero(state.legal_actions_mask())
            state.apply_action(int(legal[int(rng.random() * len(legal))]))
            moves += 1
        return moves

    return run


def pgx(num_envs: int = 1024) -> Callable[[], int]:
    """Return a function that plays a random ply in each of `num_envs` games of pgx, on JAX's default device."""
    import jax
    import pgx

    env = pgx.make("go_9x9")
    step = pgx.experimental.wrappers.auto_reset(env.step, env.init)

    def random_step(state: Any, key: Any) -> tuple[Any, Any]:
        keys = jax.random.split(key)
        logits = jax.numpy.log(state.legal_action_mask.astype(float))
        action = jax.random.categorical(keys[0], logits, axis=1)
        return jax.vmap(step)(state, action, jax.random.split(keys[1], num_envs)), keys[1]

    jitted, key = jax.jit(random_step), jax.random.PRNGKey(0)
    held = [jax.vmap(env.init)(jax.random.split(key, num_envs)), key]

    def run() -> int:
        held[:] = jitted(*held)
        jax.block_until_ready(held[0].observation)
        return num_envs

    return run


def gnu_go_move_seconds(level: int, moves: int = 60) -> list[float]:
    """Return the seconds that GNU Go takes for each move of a game against itself.

    Args:
        level: GNU Go's level.
        moves: maximum number of moves.

    Raises:
        ValueError: if GNU Go is not installed.
    """
    engine, took, passed = EngineProcess(find_engine(f"{GNU_GO_COMMAND} {level}"), timeout=600), list[float](), 0
    engine.ask("boardsize", 9)
    engine.ask("komi", 7)
    while passed < 2 and len(took) < moves:
        start = time.perf_counter()
        answer = engine.ask("genmove", "bw"[len(took) % 2])
        took.append(time.perf_counter() - start)
        passed = passed + 1 if answer.lower() in ("pass", "resign") else 0
    engine.close()
    return took
