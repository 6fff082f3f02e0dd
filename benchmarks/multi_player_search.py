"""Compare searches for three and four players at equal time: max^n, paranoid, best-reply search and UCT.

    python -m benchmarks.multi_player_search

Each search slides stones in one seat against copies of `maxn`, the program of Stefani et al. (2019), in all other
seats; all place stones as `maxn` does. The page `docs/multi-player-search.md` has this table.
"""

from __future__ import annotations

from ninetka_agents.agent import make_agent
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.judging.texts import share_text
from ninetka_train.ninetka.exact_positions import load_positions
from ninetka_train.ninetka.position_score import score_positions

GAMES = 1_800
SEED = 7
SEARCHES = {
    3: (
        ("maxn", "maxn:depth=8"),
        ("paranoid:nodes=2000", "paranoid:nodes=20000"),
        ("brs:nodes=2000", "brs:nodes=20000"),
        ("mcts:simulations=200", "mcts:simulations=2000"),
    ),
    4: (
        ("maxn", "maxn:depth=8"),
        ("paranoid:nodes=8000", "paranoid:nodes=80000"),
        ("brs:nodes=8000", "brs:nodes=80000"),
        ("mcts:simulations=500", "mcts:simulations=5000"),
    ),
}
"""Searches by number of players: with a budget that takes about as long as the paper's depth n + 3, and a larger."""


def row(spec: str, num_players: int) -> tuple[str, ...]:
    """Return the row of a search: budget, share of wins, milliseconds per slide, and errors in exact positions."""
    agent = make_agent(_on_one_thread(spec))
    player = make_agent(f"phases:placement=maxn,movement=[{_on_one_thread(spec)}]")
    results = play_games([player, "maxn:threads=1"], num_players, GAMES, seed=SEED, opening_plies=4)
    figures = summarise(results).agents[0]
    seconds, moves = results.times.seconds[0, Phase.MOVEMENT], results.times.moves[0, Phase.MOVEMENT]
    score = score_positions(agent, load_positions(num_players))
    share = share_text(figures.share, figures.interval)
    return spec, share, f"{1000 * seconds / moves:.2f}", share_text(score.rate, score.interval)


def _on_one_thread(spec: str) -> str:
    return f"{spec}{',' if ':' in spec else ':'}threads=1"


def main() -> None:
    """Print a table for each number of players."""
    for num_players, searches in SEARCHES.items():
        rows = [row(spec, num_players) for specs in zip(*searches, strict=True) for spec in specs]
        print(f"\n{num_players} players, {GAMES:,} games each; equal agents win {100 / num_players:.1f} %\n")
        columns = ("slides by", "wins % [95 %]", "ms per slide", "errors % [95 %]")
        print("\n".join(markdown_table(columns, rows)), flush=True)


if __name__ == "__main__":
    main()
