"""Measure how well the values of 9tka's networks and tree searches predict the results of games, as R2.

Not part of `make bench`, because it takes two minutes: run `ninetka bench values`. The opening moves of four-player
games are sampled from a network's policy; the network's most probable moves follow. The true value of a position is
estimated by tree searches that play the game to its end from the first slide, several times.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Row, one_core, write_rows
from ninetka_agents.agent import Agent, GameRandom, make_agent
from ninetka_agents.search.uct import EXPLORATION
from ninetka_env.core.batch import begin, make_endings, play_all, write_endings
from ninetka_env.core.chance import make_streams
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import Records
from ninetka_env.games.ninetka.geometry import NUM_NEUTRALS, NUM_SLOTS
from ninetka_train.learning.teacher import Teacher, make_teacher

Values = npt.NDArray[np.float64]
PLAYERS, GAMES = 4, 400
OPENING = 20
"""Number of plies sampled from the policy."""
FIRST_SLIDE = NUM_NEUTRALS + NUM_SLOTS
STAGES = (OPENING, 28, 36, FIRST_SLIDE)
"""Numbers of stones on the board at which positions are evaluated."""
NETWORKS = ("gen-4", "gen-6", "gen-7", "placements")
PLAYOUTS = (128, 2000, 20_000)
TRUTH, REPEATS = "mcts:simulations=2000,threads=1", 4
"""Agent that continues games from the first slide, and how often: one result says little about a position's value."""
SEED = 12


def played_on(games: Records, agent: Agent, plies: int, seed: int) -> Records:
    """Return games after at most `plies` more plies by an agent; games that end earlier stay at their end."""
    games, playing, rng = games.copy(), np.arange(len(games)), GameRandom(make_streams(seed, len(games)))
    for _ in range(plies):
        if not len(playing):
            break
        over = np.zeros(len(playing), np.bool_)
        own = GameRandom(rng.streams[playing])
        actions = agent.act(games[playing], own)
        rng.streams[playing] = own.streams
        play_all(games, playing, actions, over)
        playing = playing[~over]
    return games


def positions() -> dict[int, Records]:
    """Return the same games at each number of stones in `STAGES`."""
    variant = load_variant("ninetka", num_players=PLAYERS)
    games, numbers = np.zeros(GAMES, variant.dtype), np.arange(GAMES)
    begin(games, numbers, np.array([variant.codes] * GAMES), make_streams(SEED, GAMES))
    games = played_on(games, make_agent("net:gen-7,temperature=1,threads=1"), OPENING, SEED)
    found = {OPENING: games}
    for stage, following in itertools.pairwise(STAGES):
        found[following] = played_on(found[stage], make_agent("net:gen-7,threads=1"), following - stage, SEED)
    return found


def shares_won(games: Records) -> Values:
    """Return the share of games that each seat wins if `TRUTH` continues the games, (N, 4)."""
    shares = np.zeros((len(games), PLAYERS))
    for repeat in range(REPEATS):
        ends = played_on(games, make_agent(TRUTH), 10**6, SEED + repeat)
        endings = make_endings(games.dtype, len(games))
        write_endings(ends, np.arange(len(games)), endings)
        shares += np.eye(PLAYERS)[endings.winners.astype(np.int64)] / REPEATS
    return shares


def judges() -> dict[str, Teacher]:
    """Return the evaluators to measure, by the agent's spec."""
    specs = {f"net:{name}": (f"net:{name}", 1) for name in NETWORKS}
    specs |= {f"mcts:simulations={playouts}": ("mcts", playouts) for playouts in PLAYOUTS}
    return {name: make_teacher("ninetka", spec, playouts, EXPLORATION) for name, (spec, playouts) in specs.items()}


def explained(values: Values, shares: Values) -> float:
    """Return R2: 1 if the values equal the shares, 0 if they are no better than each seat's mean share."""
    return float(1 - ((values - shares) ** 2).sum() / ((shares - shares.mean(0)) ** 2).sum())


def rows() -> Iterator[Row]:
    """Evaluate the positions of all stages with all evaluators."""
    games = positions()
    shares = shares_won(games[FIRST_SLIDE])
    for stage in STAGES:
        for name, judge in judges().items():
            values = judge.run(games[stage], GameRandom(make_streams(SEED - 1, GAMES))).values
            note = f"{GAMES} games of {PLAYERS}"
            yield Row(f"{stage} stones set, {name}", "R2", explained(values.astype(np.float64), shares), note=note)


if __name__ == "__main__":
    one_core()
    write_rows(rows())
