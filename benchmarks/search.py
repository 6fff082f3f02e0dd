"""Benchmark playouts, MaxN and UCT of 9tka in the movement phase, on one core.

`benchmarks.go` measures the search of Go, `benchmarks.solver` the exact solver of 9tka.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Row, is_installed, pin_to_one_core, rates, write_rows
from benchmarks.plain_maxn import plain_search
from ninetka_agents.agent import RandomAgent
from ninetka_agents.ninetka.maxn import MaxNAgent
from ninetka_agents.ninetka.maxn import search as maxn_search
from ninetka_agents.search.uct import search as mcts_search
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.choices import playout
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import MOVEMENT

PAPER_MS = {2: 180, 3: 270, 4: 541}
"""Upper bounds on the mean milliseconds per move in the movement phase, by number of players. They are from Stefani et
al. (2019), for the authors' Java program on their machine."""
TARGET_MS = {2: 1.0, 3: 1.5, 4: 2.0}


def movement_start(num_players: int, seed: int = 0) -> Game:
    """Return a game before the first slide, after random placements."""
    game, rng = Game.new(num_players), np.random.default_rng(seed)
    agent = RandomAgent()
    while game.phase < MOVEMENT:
        game.play(int(agent.act(game.records, rng)[0]))
    return game


@jit
def _playouts(games: StateArray, streams: Streams, count: int) -> int:
    for _ in range(count):
        games[1] = games[0]
        playout(games[1], streams, 0)
    return count


def playouts(num_players: int) -> Callable[[], int]:
    """Return a function that plays 20,000 random movement phases."""
    games, streams = np.repeat(movement_start(num_players).records, 2), make_streams(0)
    return lambda: int(_playouts(games, streams, 20_000))


def simulations(num_players: int, count: int) -> Callable[[], int]:
    """Return a function that searches the first slide by UCT and returns the number of simulations."""
    game, rng = movement_start(num_players), np.random.default_rng(0)
    return lambda: int(mcts_search(game, count, rng).visits.sum())


def spiel_mcts(name: str, count: int) -> Callable[[], int]:
    """Return a function that searches the start of an OpenSpiel game with OpenSpiel's C++ MCTS, `count` simulations."""
    import pyspiel

    game = pyspiel.load_game(name)
    state = game.new_initial_state()
    bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, 1), 2.0, count, 1000, False, 1, False)

    def run() -> int:
        bot.step(state)
        return count

    return run


def maxn_games(num_players: int, num_games: int = 20) -> list[Game]:
    """Return all positions of the movement phase in games that MaxN plays against itself."""
    agent, rng, positions = MaxNAgent(threads=1), np.random.default_rng(1), []
    for _ in range(num_games):
        game = Game.new(num_players)
        while not game.is_over:
            if game.phase == MOVEMENT:
                positions.append(game.copy())
            game.play(int(agent.act(game.records, rng)[0]))
    return positions


def mean_ms(positions: list[Game], choose: Callable[[Game], object]) -> float:
    """Return the mean time of a call of `choose` in milliseconds."""
    begin = time.perf_counter()
    for game in positions:
        choose(game)
    return 1e3 * (time.perf_counter() - begin) / len(positions)


def maxn_rows() -> Iterator[Row]:
    """Measure MaxN at the paper's depth, compared with `plain_search`, which returns the same moves and values."""
    for n in (2, 3, 4):
        positions = maxn_games(n)
        for game in positions[:5]:  # compiles both searches and checks that they agree
            action, values = maxn_search(game)
            plain_action, plain_values = plain_search(game.records, n + 3)
            assert (action, *values) == (plain_action, *plain_values[:n])
        ours = statistics.median(mean_ms(positions, maxn_search) for _ in range(3))
        plain = mean_ms(positions, lambda game, n=n: plain_search(game.records, n + 3))  # type: ignore[misc]
        note = f"the paper: under {PAPER_MS[n]} ms"
        what = f"MaxN, {n} players, depth {n + 3}, mean per movement move"
        yield Row(what, "ms", ours, plain, "plain max^n, compiled", TARGET_MS[n], lower_is_better=True, note=note)


def rows() -> Iterator[Row]:
    """Measure everything on one core."""
    for n in (2, 3, 4):
        (ours,) = rates(playouts(n))
        yield Row(f"random playouts from the first slide, {n} players", "playouts/s", ours, target=1e6)
    yield from maxn_rows()
    for n in (2, 3, 4):
        what, target = f"UCT from the first slide, {n} players, 2,000 a move", 300e3
        if is_installed("pyspiel"):
            ours, peer = rates(simulations(n, 2000), spiel_mcts("hex(board_size=11)", 500))
            yield Row(what, "simulations/s", ours, peer, "OpenSpiel C++ MCTS, hex 11 x 11", target)
        else:
            yield Row(what, "simulations/s", rates(simulations(n, 2000))[0], target=target)


if __name__ == "__main__":
    pin_to_one_core()
    write_rows(rows())
