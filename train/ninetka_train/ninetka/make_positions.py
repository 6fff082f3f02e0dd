"""Make the sets of positions with exact values that `exact_positions.py` loads.

    python -m ninetka_train.ninetka.make_positions --out FOLDER

Agents of different strength, and a mixture of them, play games; each game starts with random plies. From every game at
most one position of each stage is labelled: with two players by the exact solver, with more by `winner_sets`. Positions
whose actions all have the same value are left out. The rest of each stage is chosen so that easy positions, in which
most actions are good, and hard ones are about equally frequent.

All steps are determined by the seed, because no network plays: networks round differently on other machines.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON, solve_batch
from ninetka_agents.ninetka.winner_sets import NO_SEAT, winner_sets
from ninetka_agents.switch import Switch
from ninetka_env.core.files import replace_files
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_train.judging.arena import play_games
from ninetka_train.ninetka.blunders import movement_positions
from ninetka_train.ninetka.exact_positions import (
    PLAYERS,
    STAGES,
    PositionSet,
    count_stones,
    positions_csv,
    stages_of,
)

AGENTS = ("random", "maxn", "mcts:simulations=200", "mcts:simulations=1000")
"""The agents that play the games, in addition to a mixture of them."""
OPENING_PLIES = 6
MIN_SHARES = (0.0, 0.125, 0.25, 0.5, 0.75)
"""Lower bounds of the share of good actions, by difficulty: the hardest positions first."""


class Plan(NamedTuple):
    """How many positions of a stage are labelled and chosen."""

    games: int
    """Maximum number of games of which a position is labelled."""
    quota: int
    """Number of positions to choose."""
    nodes: int
    """Maximum number of nodes per position (two players) or per action."""


_PLANS_OF_SEVERAL = (
    Plan(800, 220, 3_000_000),
    Plan(800, 150, 3_000_000),
    Plan(800, 85, 3_000_000),
    Plan(800, 45, 3_000_000),
)
PLANS = {
    2: (
        Plan(1000, 550, 4_000_000),
        Plan(1500, 550, 2_000_000),
        Plan(1800, 500, 500_000),
        Plan(1800, 280, 500_000),
        Plan(1800, 120, 500_000),
    ),
    3: _PLANS_OF_SEVERAL,
    4: _PLANS_OF_SEVERAL,
}
"""The plan of each of `STAGES`, by number of players."""
GAMES_PER_AGENT = {2: 360, 3: 160, 4: 160}
"""Games of each agent with itself, by number of players."""


class Candidates(NamedTuple):
    """Positions of the movement phases of all games."""

    states: StateArray
    games: npt.NDArray[np.int64]
    slides: npt.NDArray[np.int64]
    stones: npt.NDArray[np.int64]
    """(N,) number of stones that can slide."""
    legal: npt.NDArray[np.int64]
    """(N,) number of legal actions."""


def make_positions(
    num_players: int, seed: int = 0, share: float = 1.0, progress: Callable[[str], None] = lambda line: None
) -> PositionSet:
    """Play games, label positions and choose a set.

    Args:
        num_players: 2, 3 or 4.
        seed: determines everything.
        share: share of the games and of the quotas, for a smaller set.
        progress: called with a line of text after each stage.
    """
    rng = np.random.default_rng(seed)
    found = play_candidates(num_players, seed, max(1, round(share * GAMES_PER_AGENT[num_players])))
    rows: list[int] = []
    values: list[npt.NDArray[np.int8]] = []
    stages = stages_of(num_players, found.slides, found.stones)
    for stage, plan in enumerate(PLANS[num_players]):
        asked = _one_of_each_game(found, stages == stage, rng)[: round(share * plan.games)]
        labelled = list(zip(asked.tolist(), _labels(found, asked, plan.nodes, num_players), strict=True))
        useful = [(row, label) for row, label in labelled if _is_useful(int(found.legal[row]), label)]
        shares = np.array([good_share(int(found.legal[row]), label) for row, label in useful])
        chosen = choose_by_difficulty(shares, round(share * plan.quota), rng)
        rows += [useful[number][0] for number in chosen]
        values += [useful[number][1] for number in chosen]
        what = f"{num_players} players, {' to '.join(map(str, STAGES[num_players][stage]))}"
        progress(f"{what}: {len(asked)} labelled, {len(useful)} useful, {len(chosen)} chosen")
    return PositionSet(
        ids=tuple(f"{num_players}p{number:04d}" for number in range(len(rows))),
        sources=found.games[rows],
        slides=found.slides[rows],
        states=found.states[rows],
        values=np.stack(values),
    )


def play_candidates(num_players: int, seed: int, games: int) -> Candidates:
    """Let each agent, and a mixture of them, play `games` games against itself; return all slide positions."""
    agents: list[Agent] = [make_agent(spec) for spec in AGENTS]
    mixture = Switch(_by_hash, agents, "or")
    parts, first = [], 0
    for number, agent in enumerate([*agents, mixture]):
        results = play_games([agent], num_players, games, seed=1000 * seed + number, opening_plies=OPENING_PLIES)
        states, owners, _, legal = movement_positions(results)
        starts = np.searchsorted(owners, owners)  # the first position of the same game
        parts.append(Candidates(states, owners + first, np.arange(len(owners)) - starts, count_stones(states), legal))
        first += len(results.winners)
    return Candidates(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _by_hash(games: StateArray) -> npt.NDArray[np.int64]:
    """Return the number of an agent for each game: a hash of its board, so that every ply has another agent."""
    weights = np.arange(1, games["board"].shape[1] + 1) ** 2 % 251
    return np.asarray((games["board"] * weights).sum(1) % len(AGENTS), np.int64)


def _one_of_each_game(
    found: Candidates, is_inside: npt.NDArray[np.bool_], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return a random position of a stage, with a choice of actions, of each game, in random order."""
    rows = rng.permutation(np.flatnonzero(is_inside & (found.legal >= 2)))
    return rng.permutation(rows[np.unique(found.games[rows], return_index=True)[1]])


def _labels(
    found: Candidates, rows: npt.NDArray[np.int64], nodes: int, num_players: int
) -> Sequence[npt.NDArray[np.int8]]:
    """Return the values of all actions of each position; an empty array if some are not known."""
    if num_players == 2:
        values = solve_batch(found.states[rows], nodes)[1]
        known = (values != UNKNOWN).sum(1) == found.legal[rows]
        return [value if complete else value[:0] for value, complete in zip(values, known, strict=True)]
    return list(_labels_of_sets(found.states[rows], nodes))


def _labels_of_sets(states: StateArray, nodes: int) -> Iterator[npt.NDArray[np.int8]]:
    for row in range(len(states)):
        game = Game(states[row : row + 1].copy())
        sets, legal = winner_sets(game, nodes), game.legal_actions()
        if (sets[legal] == NO_SEAT).any():
            yield np.empty(0, np.int8)
            continue
        alone = (sets & (sets - 1)) == 0
        label = np.where(sets == 1 << game.to_move, WON, np.where(alone & (sets > 0), LOST, UNKNOWN))
        yield label.astype(np.int8)


def _count_kinds(legal: int, label: npt.NDArray[np.int8]) -> tuple[int, int, int]:
    """Return the numbers of legal actions that are won, lost and open."""
    won, lost = int((label == WON).sum()), int((label == LOST).sum())
    return won, lost, legal - won - lost


def _is_useful(legal: int, label: npt.NDArray[np.int8]) -> bool:
    """Return whether all values of a position are known, and actions have different ones."""
    return len(label) > 0 and max(_count_kinds(legal, label)) < legal


def choose_by_difficulty(shares: npt.NDArray[np.float64], quota: int, rng: np.random.Generator) -> list[int]:
    """Return at most `quota` indices, ascending: if possible, equal numbers of each difficulty.

    Args:
        shares: (N,) the share of the legal actions of a position that are good.
        quota: the number of positions.
        rng: chooses among positions of one difficulty.
    """
    bins = np.digitize(shares, MIN_SHARES[1:])
    waiting = [rng.permutation(np.flatnonzero(bins == level)).tolist() for level in range(len(MIN_SHARES))]
    chosen: list[int] = []
    while len(chosen) < quota and any(waiting):
        for rows in waiting:
            if rows and len(chosen) < quota:
                chosen.append(rows.pop())
    return sorted(chosen)


def good_share(legal: int, label: npt.NDArray[np.int8]) -> float:
    """Return the share of the legal actions that have the best value: those that win, or else those that are open."""
    won, _, num_open = _count_kinds(legal, label)
    return (won or num_open) / legal


def main() -> None:
    """Make all three sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    parser.add_argument("--players", type=int, choices=PLAYERS, nargs="*", default=PLAYERS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="share of all games and positions, for a smaller set")
    arguments = parser.parse_args()
    for players in arguments.players:
        positions = make_positions(players, arguments.seed, arguments.share, lambda line: print(line, flush=True))
        replace_files({arguments.out / f"positions-{players}.csv": [positions_csv(positions).encode()]})


if __name__ == "__main__":
    main()
