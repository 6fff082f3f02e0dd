"""Compare thousands of random games with the slow reference: `PYTHONPATH=tests python -m kropki.lock_step`.

Games are played on every size of `SIZES`, more on small boards, with both rules and both starts. Points, regions,
scores, legal actions and the seat to move must be the same, and `Game.from_board` must restore the position. A
difference ends the command with an error. A game on the largest board takes some seconds; `--nodes 200` skips it.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from kropki.reference import ReferenceGame

from ninetka_env.games.kropki.game import Game

RULES = [(territory, start) for territory in ("declared", "immediate") for start in ("empty", "cross")]
SIZES = [(3, 3), (4, 4), (5, 5), (6, 6), (8, 8), (10, 10), (7, 4), (4, 9), (3, 12), (12, 5), (13, 13), (3, 32), (39, 3),
         (20, 20), (39, 32)]  # fmt: skip
FULL = 64
"""Number of nodes. On larger boards, fewer positions are compared, because the reference is slow."""


def play_in_lock_step(size: tuple[int, int], rule: tuple[str, str], seed: int, every: int = 1) -> int:
    """Play a random game in both implementations; compare every `every`-th position and the last position.

    `rule` is a pair of the options `territory` and `start`. Return the number of points placed.
    """
    rng = np.random.default_rng(seed)
    game, reference = Game.new(*size, territory=rule[0], start=rule[1]), ReferenceGame(*size, *rule)
    late = rng.random() < 0.5  # in half of the games, seats often end their turns without drawing
    for number in itertools.count():
        if number % every == 0 or reference.is_over():
            assert_equal(game, reference)
        if reference.is_over():
            break
        legal = reference.legal_actions()
        action = legal[-1] if late and reference.placed and rng.random() < 0.7 else int(rng.choice(legal))
        game.play(action)
        reference.play(action)
    return reference.plies


def assert_equal(game: Game, reference: ReferenceGame) -> None:
    assert game.board.ravel().tolist() == [reference.board[node] for node in reference.nodes]
    assert game.region.ravel().tolist() == [reference.region[node] for node in reference.nodes]
    assert game.scores().tolist() == reference.scores()
    assert game.is_over == reference.is_over()
    assert (game.drawing, game.ply) == (reference.placed, reference.plies)
    assert game.is_over or game.to_move == reference.to_move
    assert game.legal_actions().tolist() == reference.legal_actions()
    assert game.records["cell_list"].any() == game.drawing
    assert game.records["cell"].max() < 128
    rebuilt = Game.from_board(
        game.board, game.region, game.to_move, drawing=game.drawing, last=game.last_point,
        territory=game.territory, start=game.start_option,
    )  # fmt: skip
    assert rebuilt.records.tobytes() == game.records.tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=5000, help="approximate number of games (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first game of each size and rule")
    parser.add_argument(
        "--nodes", type=int, default=39 * 32, help="maximum number of nodes of a board (default: %(default)s, all)"
    )
    chosen = parser.parse_args()
    shares = {(width, height): (width * height) ** -1.5 for width, height in SIZES if width * height <= chosen.nodes}
    for size, share in shares.items():
        games = max(1, round(chosen.games * share / sum(shares.values()) / len(RULES)))
        seeds = range(chosen.seed, chosen.seed + games)
        points = sum(play_in_lock_step(size, rule, seed, 1 + size[0] * size[1] // FULL)
                     for rule in RULES for seed in seeds)  # fmt: skip
        print(f"{size[0]} x {size[1]}: {games * len(RULES)} games, {points} points, 0 differences", flush=True)


if __name__ == "__main__":
    main()
