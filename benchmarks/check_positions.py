"""Confirm the labels of the stored positions by a second, unrelated search.

    python -m benchmarks.check_positions --sample 300

The labels of two-player positions are those of `ninetka_agents.ninetka.solver`; the second search is `winner_sets`. The
labels of three- and four-player positions are those of `winner_sets`; the second search is `can_force_win`, for every
seat after every action. The second searches are slower, so the sample is of positions with at most `MAX_STONES` stones
that can slide; labels that they cannot decide within `--nodes` are counted.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON
from ninetka_agents.ninetka.winner_sets import NO_SEAT, winner_sets
from ninetka_env.games.ninetka.game import Game
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.ninetka.exact_positions import PLAYERS, count_stones, load_positions

MAX_STONES = 24
UNDECIDED = 2
"""The second search ran out of nodes."""


def second_labels(game: Game, nodes: int) -> npt.NDArray[np.int8]:
    """Return the value of each legal action, in their order, by the second search."""
    legal = game.legal_actions().tolist()
    if game.num_players == 2:
        sets = winner_sets(game, nodes)[legal]
        found = np.where(sets == 1 << game.to_move, WON, LOST)
        return np.where(sets == NO_SEAT, UNDECIDED, found).astype(np.int8)
    return np.array([_label_by_force(game, action, nodes) for action in legal], np.int8)


def _label_by_force(game: Game, action: int, nodes: int) -> int:
    after = game.copy()
    after.play(action)
    if after.is_over:
        return WON if after.winner() == game.to_move else LOST
    answers = {seat: can_force_win(after, seat, nodes) for seat in range(game.num_players)}
    if True in answers.values():
        return WON if answers[game.to_move] else LOST
    return UNDECIDED if None in answers.values() else UNKNOWN


def check_sample(num_players: int, sample: int, nodes: int) -> tuple[str, ...]:
    """Return the row of a table: players, positions, labels, confirmed, undecided and contradicted labels."""
    positions = load_positions(num_players)
    late = np.flatnonzero(count_stones(positions.states) <= MAX_STONES)
    chosen = np.random.default_rng(0).permutation(late)[:sample]
    labels = confirmed = undecided = 0
    for row in chosen:
        game = positions.game(int(row))
        stored, second = positions.values[row, game.legal_actions()], second_labels(game, nodes)
        labels += len(stored)
        confirmed += int((second == stored).sum())
        undecided += int((second == UNDECIDED).sum())
    return tuple(map(str, (num_players, len(chosen), labels, confirmed, undecided, labels - confirmed - undecided)))


def main() -> None:
    """Check a sample of each set and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="positions of each set")
    parser.add_argument("--nodes", type=int, default=20_000_000, help="maximum nodes of a search")
    arguments = parser.parse_args()
    rows = [check_sample(players, arguments.sample, arguments.nodes) for players in PLAYERS]
    columns = ("players", "positions", "labels", "confirmed", "undecided", "contradicted")
    print("\n".join(markdown_table(columns, rows)))


if __name__ == "__main__":
    main()
