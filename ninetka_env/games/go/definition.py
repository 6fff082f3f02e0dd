"""Go for the register of games."""

from __future__ import annotations

import numpy as np

from ninetka_env.core.registry import Definition, Limits, Sizes, Values, register
from ninetka_env.games.go import choices, observation, rules, scoring, start
from ninetka_env.games.go.geometry import LARGEST, SMALLEST, USUAL, action_symmetries
from ninetka_env.games.go.text import SEATS


def _sizes(options: Values) -> Sizes:
    size = options["size"]
    points = size * size
    if abs(options["komi"]) > points:
        expected = f"a multiple of 0.5 from -{points} to {points} on a board of size {size}, such as komi=0"
        raise ValueError(f"komi={options['komi']}: expected {expected}")
    if options["handicap"] and size != USUAL:
        raise ValueError(
            f"handicap={options['handicap']}: expected 0 on a board of size {size}, handicaps are for {USUAL}"
        )
    return Sizes(
        rules.record_type(size, options["ko"] != "simple"),
        2,
        num_actions(options),
        (observation.PLANE_COUNTS[rules.PLANE_SETS.index(options["planes"])], size, size),
        options["max_plies"] or 2 * points,
    )


def num_actions(options: Values) -> int:
    """Return the number of actions: points, pass, and resigning where that is one."""
    return int(options["size"]) ** 2 + 1 + int(options["allow_resign"])


def _limits(size: int) -> Limits:
    points = size * size
    return Limits(players=2, actions=points + 2, choices=points + 1, targets=points)


GO = register(
    Definition(
        name="go",
        title="Go",
        version="go_v0",
        options=start.OPTIONS,
        sizes=_sizes,
        dtypes={
            rules.record_type(size, superko): _limits(size)
            for size in range(SMALLEST, LARGEST + 1)
            for superko in (False, True)
        },
        compiled=(
            start.start, rules.is_over, rules.is_legal, rules.num_actions, rules.write_legal_mask, rules.play,
            scoring.winner_of, scoring.write_scores, scoring.write_score_rewards, scoring.write_targets,
            observation.write_observation,
            choices.write_choices, choices.random_action, choices.playout, choices.traced_playout,
        ),
        game="ninetka_env.games.go.game:Game",
        seats=SEATS,
        score_dtype=np.float64,
        pictures="ninetka_env.games.go.render",
        sgf=(1, "ninetka_env.games.go.sgf"),
        symmetries=lambda options: action_symmetries(options["size"], num_actions(options)),
    )
)  # fmt: skip
