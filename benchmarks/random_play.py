"""Print what random play says about each game: lengths, branching factors, wins by seat, and ties of 9tka.

    python -m benchmarks.random_play

The game pages of the documentation have this table. It takes about two minutes.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.registry import load_variant
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.judging.ratings_page import markdown_table

NUM_GAMES = 20_000
NUM_TIE_BREAK_GAMES = 4_000
SPECS = (
    *(f"ninetka:num_players={players}" for players in (2, 3, 4)),
    *("go", "go:size=13", "go:size=19"),
    *("kropki", "kropki:territory=immediate,start=cross"),
)


def row(spec: str) -> tuple[str, ...]:
    """Play `NUM_GAMES` random games of a variant; return the row of the table."""
    envs = GameVectorEnv(NUM_GAMES, load_variant(spec))
    envs.reset(seed=0)
    is_first = np.ones(NUM_GAMES, np.bool_)  # finished games start again, and only first games count
    lengths, choices = np.zeros(NUM_GAMES, np.int64), np.zeros(NUM_GAMES, np.int64)
    rewards = np.zeros((NUM_GAMES, envs.variant.num_players))
    while is_first.any():
        lengths += is_first
        choices += is_first * envs.action_mask.sum(axis=1, dtype=np.int64)
        _, gained, terminated = envs.step(envs.sample_legal())
        rewards[is_first & terminated] = gained[is_first & terminated]
        is_first &= ~terminated
    low, high = np.percentile(lengths, (5, 95))
    wins = " / ".join(f"{share:.1f}" for share in 100 * (rewards > 0).mean(axis=0))
    draws = 100 * (rewards == 0).all(axis=1).mean()
    branching = choices.sum() / lengths.sum()
    return spec, f"{lengths.mean():.1f}", f"{low:.0f} to {high:.0f}", f"{branching:.1f}", wins, f"{draws:.1f}"


def tie_break_row(num_players: int) -> tuple[str, str]:
    """Play `NUM_TIE_BREAK_GAMES` random games of 9tka; return in how many of them another tie-break changes the winner.

    It lets the tied player win who slid last. Here, the tied player latest in turn order wins.
    """
    rng, changed = np.random.default_rng(0), 0
    for seed in range(NUM_TIE_BREAK_GAMES):
        game, last_slides = Game.new(num_players, seed=seed), np.full(num_players, -1)
        while not game.is_over:
            action = int(rng.choice(game.legal_actions()))
            if game.phase == Phase.MOVEMENT and action != PASS:
                last_slides[game.to_move] = game.ply
            game.play(action)
        tied = np.flatnonzero(game.scores() == game.scores().max())
        changed += int(tied[last_slides[tied].argmax()] != game.winner())
    return f"{num_players} players", f"{100 * changed / NUM_TIE_BREAK_GAMES:.1f}"


def main() -> None:
    """Print the tables."""
    columns = ("game", "actions, mean", "5 to 95 %", "legal actions, mean", "wins by seat, %", "draws, %")
    print(f"{NUM_GAMES} random games each, seed 0:\n")
    print("\n".join(markdown_table(columns, map(row, SPECS))))
    print(f"\n9tka, {NUM_TIE_BREAK_GAMES} random games each: another winner, if the tied player who slid last wins:\n")
    print("\n".join(markdown_table(("game", "of games, %"), map(tie_break_row, (2, 3, 4)))))


if __name__ == "__main__":
    main()
