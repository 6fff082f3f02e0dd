"""Measure how well the values of 9tka's networks and tree searches predict the results of games, as R2.

Not part of `make speed`, because it takes two minutes: run `ninetka speed values`. The first `OPENING` moves of
four-player games are sampled from a network's policy; then the network plays its most probable moves. The true value of
a position is estimated by playing the game from its first slide to its end with a tree search, several times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Row, pin_to_one_core, write_rows
from ninetka_agents.agent import Agent, PerGameGenerator, make_agent
from ninetka_agents.search.uct import EXPLORATION
from ninetka_env.core.batch import make_outcomes, play_all, restart_games, write_outcomes
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.geometry import NUM_NEUTRALS, NUM_SLOTS
from ninetka_train.learning.teacher import Teacher, make_teacher

Values = npt.NDArray[np.float64]
PLAYERS, GAMES = 4, 400
OPENING = 20
"""Number of plies sampled from the policy."""
FIRST_SLIDE = NUM_NEUTRALS + NUM_SLOTS
STONE_COUNTS = (OPENING, 28, 36, FIRST_SLIDE)
"""Numbers of stones on the board at which positions are evaluated."""
NETWORKS = ("gen-4", "gen-6", "gen-7", "placements")
PLAYOUTS = (128, 2000, 20_000)
REFERENCE, REPEATS = "mcts:simulations=2000,threads=1", 4
"""Agent that plays each game on from the first slide, and how many times it does so; repeats reduce noise."""
SEED = 12


def continue_games(games: StateArray, agent: Agent, plies: int, seed: int) -> StateArray:
    """Return copies of games after `plies` more plies by an agent, or at their end if that comes earlier."""
    games, playing, rng = games.copy(), np.arange(len(games)), PerGameGenerator(make_streams(seed, len(games)))
    for _ in range(plies):
        if not len(playing):
            break
        finished = np.zeros(len(playing), np.bool_)
        own = PerGameGenerator(rng.streams[playing])
        actions = agent.act(games[playing], own)
        rng.streams[playing] = own.streams
        play_all(games, playing, actions, finished)
        playing = playing[~finished]
    return games


def positions() -> dict[int, StateArray]:
    """Return a mapping from each number in `STONE_COUNTS` to the same games with that number of stones."""
    variant = load_variant("ninetka", num_players=PLAYERS)
    games, numbers = np.zeros(GAMES, variant.dtype), np.arange(GAMES)
    restart_games(games, numbers, np.array([variant.codes] * GAMES), make_streams(SEED, GAMES))
    games = continue_games(games, make_agent("net:gen-7,temperature=1,threads=1"), OPENING, SEED)
    found = {OPENING: games}
    for stones, following in itertools.pairwise(STONE_COUNTS):
        found[following] = continue_games(found[stones], make_agent("net:gen-7,threads=1"), following - stones, SEED)
    return found


def win_shares(games: StateArray) -> Values:
    """Let `REFERENCE` play each game to its end `REPEATS` times; return each seat's share of the wins, (N, 4)."""
    shares = np.zeros((len(games), PLAYERS))
    for repeat in range(REPEATS):
        ends = continue_games(games, make_agent(REFERENCE), 10**6, SEED + repeat)
        endings = make_outcomes(games.dtype, len(games))
        write_outcomes(ends, np.arange(len(games)), endings)
        shares += np.eye(PLAYERS)[endings.winners.astype(np.int64)] / REPEATS
    return shares


def evaluators() -> dict[str, Teacher]:
    """Return the networks and tree searches to measure: a mapping from spec to evaluator of positions."""
    specs = {f"net:{name}": (f"net:{name}", 1) for name in NETWORKS}
    specs |= {f"mcts:simulations={playouts}": ("mcts", playouts) for playouts in PLAYOUTS}
    return {name: make_teacher("ninetka", spec, playouts, EXPLORATION) for name, (spec, playouts) in specs.items()}


def r_squared(values: Values, shares: Values) -> float:
    """Return R2: 1 if the values equal the shares, 0 if they are no better than each seat's mean share."""
    return float(1 - ((values - shares) ** 2).sum() / ((shares - shares.mean(0)) ** 2).sum())


def rows() -> Iterator[Row]:
    """Measure R2 of each evaluator's values at each number of stones in `STONE_COUNTS`."""
    games = positions()
    shares = win_shares(games[FIRST_SLIDE])
    for stones in STONE_COUNTS:
        for name, evaluator in evaluators().items():
            values = evaluator.run(games[stones], PerGameGenerator(make_streams(SEED - 1, GAMES))).values
            note = f"{GAMES} games of {PLAYERS}"
            yield Row(f"{stones} stones set, {name}", "R2", r_squared(values.astype(np.float64), shares), note=note)


if __name__ == "__main__":
    pin_to_one_core()
    write_rows(rows())
