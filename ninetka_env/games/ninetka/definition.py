"""The definition of 9tka for the registry of games: its options, sizes and compiled functions.

The rules are in `rules.py`, the class for one position in `game.py`.
"""

from __future__ import annotations

from typing import TypedDict

from ninetka_env.core.options import Choice
from ninetka_env.core.registry import Definition, Limits, OptionValues, Sizes, register
from ninetka_env.games.ninetka import choices, observation, position, rules
from ninetka_env.games.ninetka.geometry import (
    ACTION_SYMMETRIES,
    MAX_PLAYERS,
    NEUTRAL_SQUARE,
    NUM_ACTIONS,
    NUM_NEUTRALS,
    NUM_SECTIONS,
)
from ninetka_env.games.ninetka.observation import SHAPE
from ninetka_env.games.ninetka.rules import NEUTRAL_PLACEMENTS, STATE_DTYPE, TURN_ORDERS, Phase
from ninetka_env.games.ninetka.text import SEATS

OPTIONS = (
    Choice("num_players", 2, "number of players", (2, 3, 4)),
    Choice("neutral_placement", "players", "who places the neutral stones: the players in turn, or the game at "
           "random before the first turn", NEUTRAL_PLACEMENTS),
    Choice("turn_order", "restart", "seat 0 opens every phase, or turns continue from phase to phase", TURN_ORDERS),
    Choice("auto_pass", True, "the rules play forced passes, or the seat to move passes by action 121", (False, True)),
)  # fmt: skip
"""The options of the game. Compiled code receives, for each option, the index of its value."""


class NinetkaOptions(TypedDict, total=False):
    """The options of 9tka except `num_players`, for type checkers. `OPTIONS` has the defaults and the checks."""

    neutral_placement: str
    """`"players"` (the default): the players place the neutral stones in turn. `"random"`: the game draws one uniformly
    random legal square per section, and starts with the placement phase and seat 0 to move."""
    turn_order: str
    """`"restart"` (the default): seat 0 opens every phase. `"continue"`: turns continue from phase to phase."""
    auto_pass: bool
    """True (the default): the rules play forced passes at once. False: the seat to move must pass by action 121."""


MAX_PLIES, MAX_PASSES = 81, 36 * 3
"""The maximum numbers of plies without passes (9 neutral stones, 36 placements, 36 slides), and of passes.

Passes are actions only without `auto_pass`. After each slide, each of the at most 3 other seats may pass once."""


def _sizes(options: OptionValues) -> Sizes:
    plies = MAX_PLIES if options["auto_pass"] else MAX_PLIES + MAX_PASSES
    num_drawn = NUM_NEUTRALS if options["neutral_placement"] == "random" else 0
    return Sizes(STATE_DTYPE, options["num_players"], NUM_ACTIONS, SHAPE, plies, num_drawn)


NINETKA = register(
    Definition(
        name="ninetka",
        title="9tka",
        version="ninetka_v0",
        options=OPTIONS,
        sizes=_sizes,
        dtypes={STATE_DTYPE: Limits(MAX_PLAYERS, NUM_ACTIONS, len(NEUTRAL_SQUARE), NUM_SECTIONS)},
        compiled=(
            rules.start, rules.is_over, rules.is_legal, rules.write_legal_mask, rules.play, rules.winner_of,
            rules.plies, rules.num_actions, rules.stage, position.is_consistent,
            rules.write_scores, rules.write_score_rewards, rules.write_targets,
            observation.write_observation, observation.write_slow_planes, observation.write_fast_planes,
            observation.write_observation_bits, rules.write_legal_bits,
            choices.write_choices, choices.choice_action, choices.play_choice, choices.prepare_root,
            choices.forced_action, choices.random_action, choices.playout,
        ),
        class_path="ninetka_env.games.ninetka.game:Game",
        seats=SEATS,
        stages=tuple(phase.name.lower() for phase in Phase),
        renderer="ninetka_env.games.ninetka.render",
        symmetries=lambda options: ACTION_SYMMETRIES,
    )
)  # fmt: skip
