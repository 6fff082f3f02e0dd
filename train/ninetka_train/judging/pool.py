"""Ratings of everybody who plays a game, in one pool: yardsticks, and every known network."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Sequence

from ninetka_agents.parts import parts_of
from ninetka_train.judging.evaluate import Evaluation
from ninetka_train.judging.report import elo_text, headings, markdown_table, share_text
from ninetka_train.machine import machine

LEVELS = ("random", "mcts:simulations=200", "mcts:simulations=2000")
"""Yardsticks of every game, beside its own."""
SEARCH = "net:simulations=64"
"""How the best network searches."""


def usual_pool(game: str) -> list[str]:
    """Return the specs of those who play a game: yardsticks, then every known network, and the best with search."""
    parts = parts_of(game)
    specs = [*LEVELS, *parts.opponents, parts.yardstick]
    if parts.network and importlib.util.find_spec("torch"):
        from ninetka_agents.checkpoint import known_networks

        networks = [f"net:{name}" for name in known_networks(game)]
        specs += [*networks, SEARCH] if networks else []
    return list(dict.fromkeys(specs))


def ratings_page(evaluation: Evaluation, table: str, named: Sequence[str] = ()) -> str:
    """Return the ratings as a page of Markdown, the strongest first.

    Args:
        evaluation: of the pool.
        table: path of the page, which tells the command that writes it.
        named: the agents that were asked for, none for the usual pool.
    """
    settings = evaluation.settings
    asked = {"game": settings.game, "games": settings.num_games, "seed": settings.seed}
    asked |= {"opening-plies": settings.opening_plies, "anchor": evaluation.anchor, "table": table}
    options = [item for key, value in asked.items() if value is not None for item in (f"--{key}", str(value))]
    title = settings.variant.definition.title
    rows = [
        (
            agent.name,
            elo_text(agent),
            share_text(agent.share, agent.interval),
            str(agent.games),
            _seconds(agent.seconds),
        )
        for agent in sorted(evaluation.agents, key=lambda agent: -(agent.elo or 0))
    ]
    zero = f"`{evaluation.anchor}` is 0" if evaluation.anchor else "the pool's mean is 0"
    return "\n".join(
        [
            f"# Ratings: {title}, {settings.num_players} players",
            "",
            f"Round robin with rotated seats; {zero}. Intervals are 95 %: cluster-robust by rotation for ratings, "
            "Wilson's for win rates; a draw counts as 1 / n of a win for each of n seats. A rating has no "
            "interval where no games bound it: where agents are not linked by games that each took from the other, "
            "directly or by way of others. Games were played in batches: s/move is a batch's time over its moves. "
            f"Written on {machine()} by `{shlex.join(['ninetka', 'rate', *named, *options])}`.",
            "",
            *markdown_table(("agent", "Elo [95 %]", "wins % [95 %]", "games", "s/move"), rows),
            "",
            *(f"{line}  " for line in headings(evaluation)),
            "",
        ]
    )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3g}"
