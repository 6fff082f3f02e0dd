"""The definition of Kropki for the registry of games: its options, sizes and compiled functions.

The rules are in `rules.py`, the class for one position in `game.py`.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from ninetka_env.core.options import Choice, Integer
from ninetka_env.core.registry import Definition, Limits, OptionValues, Sizes, register
from ninetka_env.games.kropki import choices, observation, position, rules
from ninetka_env.games.kropki.geometry import MAX_HEIGHT, MAX_WIDTH, MIN_SIDE, node_symmetries
from ninetka_env.games.kropki.rules import MAX_BOARD_SIZES, STARTS, STATE_DTYPES, TERRITORIES, state_dtype
from ninetka_env.games.kropki.text import SEATS

OPTIONS = (
    Integer("width", 10, "columns of the board", MIN_SIDE, MAX_WIDTH),
    Integer("height", 10, "rows of the board", MIN_SIDE, MAX_HEIGHT),
    Choice("territory", "declared", "regions are drawn by the players after they have placed a point, or all at once "
           "by the rules", TERRITORIES),
    Choice("start", "empty", "the board starts empty, or with a cross of four points in the middle", STARTS),
)  # fmt: skip
"""The options of the game. Compiled code receives `width` and `height` unchanged. For every other option, it receives
the index of the value."""


class KropkiOptions(TypedDict, total=False):
    """The options of Kropki except `width` and `height`, for type checkers. `OPTIONS` has the defaults and checks."""

    territory: str
    """`"declared"` (the default): the players draw regions after they have placed a point. `"immediate"`: the rules
    draw all regions at once."""
    start: str
    """`"empty"` (the default), or `"cross"`: the game starts with two points of each seat in the middle."""


def _sizes(options: OptionValues) -> Sizes:
    """Return the sizes of a variant.

    A game on N nodes has at most N placements. With `"declared"` it also has at most N ends of a turn, and at most N
    drawings, because each drawing makes a live point inert.
    """
    width, height = options["width"], options["height"]
    nodes, declared = width * height, options["territory"] == "declared"
    return Sizes(
        dtype=state_dtype(width, height),
        num_players=2,
        num_actions=2 * nodes + 1 if declared else nodes,
        planes=(observation.NUM_PLANES, height, width),
        max_plies=3 * nodes if declared else nodes,
    )


def _limits(nodes: int) -> Limits:
    return Limits(players=2, actions=2 * nodes + 1, choices=nodes + 1, targets=nodes)


def _symmetries(options: OptionValues) -> np.ndarray:
    """Return the action permutations, (K, num_actions), of the symmetries that map the start to itself.

    With `"declared"` this is only the identity. The action that draws a core is numbered by the first of the core's
    capturable points (see `regions`). A symmetry may make another point the first, so it is no permutation of actions.
    """
    width, height = options["width"], options["height"]
    nodes = node_symmetries(width, height)
    if options["territory"] == "declared":
        return np.arange(2 * nodes.shape[1] + 1)[None]
    points = rules.start_points(width, height) if options["start"] == "cross" else np.zeros(width * height, np.int8)
    return nodes[[bool((points[nodes[k]] == points).all()) for k in range(len(nodes))]]


KROPKI = register(
    Definition(
        name="kropki",
        title="Kropki",
        version="kropki_v0",
        options=OPTIONS,
        sizes=_sizes,
        dtypes={
            record: _limits(width * height)
            for record, (width, height) in zip(STATE_DTYPES, MAX_BOARD_SIZES, strict=True)
        },
        compiled=(
            rules.start, rules.is_over, rules.is_legal, rules.write_legal_mask, rules.play, rules.winner_of,
            rules.plies, rules.num_actions, position.is_consistent,
            rules.write_scores, rules.write_score_rewards, rules.write_targets,
            observation.write_observation, observation.write_slow_planes, observation.write_fast_planes,
            observation.write_observation_bits, rules.write_legal_bits,
            choices.write_choices, choices.choice_action, choices.random_action, choices.playout,
            choices.traced_playout,
        ),
        class_path="ninetka_env.games.kropki.game:Game",
        seats=SEATS,
        score_dtype=np.int16,
        sgf=(40, "ninetka_env.games.kropki.sgf"),
        renderer="ninetka_env.games.kropki.render",
        symmetries=_symmetries,
    )
)  # fmt: skip
