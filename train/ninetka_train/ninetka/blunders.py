"""Blunder rates of agents in 9tka: how often they give a win away in two-player movement phases.

`benchmark_pairs` sets up games that measure how well an agent plays each phase.

    results = play_games([make_agent("maxn"), make_agent("net")], 2, 100)
    for one in figures(results):
        print(one.agent, one.share, one.interval)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.ninetka.by_phase import ByPhase
from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON, solve_batch
from ninetka_env.core.jit import jit, popcount
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.rules import MOVEMENT, STATE_DTYPE, play
from ninetka_train.judging.evaluate import ExactFigures
from ninetka_train.judging.lockstep import NO_AGENT
from ninetka_train.judging.ratings import clustered_interval
from ninetka_train.judging.results import NO_ACTION, Results

NODES = 200_000
"""Maximum number of solver nodes per position, enough for nearly all positions."""
CHUNK = 1000
"""Positions per call of the solver. Ctrl-C takes effect between calls."""


@dataclass(frozen=True)
class Decisions:
    """N decisions of movement phases with their values under perfect play, game by game in the order of play."""

    games: npt.NDArray[np.int64]
    """(N,) index of the game in the results."""
    slides: npt.NDArray[np.int64]
    """(N,) number of slides that were made before in the game."""
    agents: npt.NDArray[np.int64]
    """(N,) index of the agent that decided, `NO_AGENT` for random opening moves."""
    movers: npt.NDArray[np.int8]
    """(N,) int8, the seat that decided."""
    winners: npt.NDArray[np.int8]
    """(N,) int8, the seat that wins under perfect play, `UNFINISHED` if unknown."""
    played: npt.NDArray[np.int8]
    """(N,) int8, the value of the played move for the mover: `WON`, `LOST` or `UNKNOWN`."""
    winning: npt.NDArray[np.int64]
    """(N,) number of moves known to win; 0 if `find_decisions` solved the played moves only."""
    complete: npt.NDArray[np.bool_]
    """(N,) bool, whether the value of every move is known; False if `find_decisions` solved the played moves only."""
    legal: npt.NDArray[np.int64]
    """(N,) number of legal moves."""

    @property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """(N,) bool, whether the solver could not find the value of the played move within its budget."""
        return self.played == UNKNOWN

    @property
    def won(self) -> npt.NDArray[np.bool_]:
        """(N,) bool, whether the mover wins under perfect play and the value of the played move is known."""
        return (self.winners == self.movers) & ~self.unknown

    @property
    def blunders(self) -> npt.NDArray[np.bool_]:
        """(N,) bool, whether the played move gave a win away."""
        return self.won & (self.played == LOST)


def benchmark_pairs(agent: Agent) -> list[tuple[Agent, Agent]]:
    """Return two pairs (agent, opponent) for a benchmark. The opponent is MaxN.

    In the first pair MaxN also plays the agent's movement phase, in the second pair the agent's placement phase.
    """
    maxn = make_agent("maxn")
    return [(ByPhase(agent, maxn), maxn), (ByPhase(maxn, agent), maxn)]


def check_num_players(num_players: int) -> None:
    """Raise `ValueError` unless games of `num_players` players can be solved."""
    if num_players != 2:
        raise ValueError(f"exact with num_players={num_players}: perfect play is known for 2 players only")


def exact_figures(results: Results) -> list[ExactFigures]:
    """Return the figures of each agent: its decisions in won positions of the movement phase, and its blunders."""
    decisions = find_decisions(results)
    starts = results.schedule.group_of[decisions.games]
    return [_figures(decisions, starts, agent, name) for agent, name in enumerate(results.settings.agents)]


def _figures(decisions: Decisions, starts: npt.NDArray[np.int64], agent: int, name: str) -> ExactFigures:
    mine = decisions.agents == agent
    unsolved, won = int((mine & decisions.unknown).sum()), mine & decisions.won
    blunders = decisions.blunders[won]
    share, interval = (float(blunders.mean()), clustered_interval(blunders, starts[won])) if won.any() else (None, None)
    return ExactFigures(name, int(mine.sum()), unsolved, len(blunders), int(blunders.sum()), share, interval)


def find_decisions(results: Results, nodes: int = NODES, threads: int = 0, *, moves: bool = False) -> Decisions:
    """Solve every position of the movement phase. The value of a played move follows from the position after the move.

    Args:
        results: results of two-player games.
        nodes: maximum number of solver nodes per position.
        threads: maximum number of threads; 0 for one per core.
        moves: also find the values of the moves that were not played, which takes several times as long.

    Raises:
        ValueError: if the games have more than two players.
    """
    check_num_players(results.settings.num_players)
    positions, games, plies, legal = movement_positions(results)
    chunks = [slice(first, first + CHUNK) for first in range(0, max(1, len(positions)), CHUNK)]
    solved = [solve_batch(positions[chunk], nodes, threads, moves=moves) for chunk in chunks]
    winners, values = (np.concatenate(parts) for parts in zip(*solved, strict=True))
    movers = positions["to_move"].astype(np.int8)
    after = np.append(winners[1:], UNFINISHED)
    last = np.append(games[1:] != games[:-1], True)
    outcomes = results.winners.copy()
    outcomes[[*results.events]] = UNFINISHED  # the game ended by an event, not by a move
    after[last] = outcomes[games[last]]
    return Decisions(
        games=games,
        slides=plies - _first_plies(games, plies),
        agents=np.where(plies < results.settings.opening_plies, NO_AGENT, results.schedule.seatings[games, movers]),
        movers=movers,
        winners=winners,
        played=np.where(after < 0, UNKNOWN, np.where(after == movers, WON, LOST)).astype(np.int8),
        winning=(values == WON).sum(1),
        complete=(values != UNKNOWN).sum(1) == legal,
        legal=legal,
    )


def first_slide_positions(results: Results) -> tuple[npt.NDArray[np.int64], StateArray]:
    """Return the first position before a slide of each game that has one.

    Returns:
        (N,) indices of the games, ascending; (N,) states.
    """
    positions, games, _, _ = movement_positions(results)
    games, firsts = np.unique(games, return_index=True)
    return games, positions[firsts]


def _first_plies(games: npt.NDArray[np.int64], plies: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return (N,) plies: for each position, the ply of the first position of the same game."""
    _, first, inverse = np.unique(games, return_index=True, return_inverse=True)
    return plies[first][inverse]


def movement_positions(
    results: Results,
) -> tuple[StateArray, npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the N positions of the movement phases of all games.

    Returns:
        (N,) states; (N,) index of the game; (N,) ply; (N,) number of legal moves.
    """
    starts, shape = results.starts[results.schedule.group_of], results.actions.shape
    positions, legal = np.zeros(shape, STATE_DTYPE), np.zeros(shape, np.int64)
    _replay(starts, results.actions, positions, legal)
    games, plies = np.nonzero(legal)
    return positions[games, plies], games, plies, legal[games, plies]


@jit
def _replay(
    starts: StateArray, actions: npt.NDArray[np.int16], positions: StateArray, legal: npt.NDArray[np.int64]
) -> None:
    """Replay T games; write their movement phases into `positions` and `legal`, (T, maximum plies) each."""
    for index in range(len(starts)):
        game = starts[index]
        for ply in range(actions.shape[1]):
            if actions[index, ply] == NO_ACTION:
                break
            if game.phase == MOVEMENT:
                positions[index, ply] = game
                legal[index, ply] = popcount(game.movable[game.to_move])
            play(game, int(actions[index, ply]))
