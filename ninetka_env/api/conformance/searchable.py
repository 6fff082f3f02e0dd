"""Checks of a game's functions for search: choices, forced actions, random actions, playouts.

A *choice* is a number that represents a legal action in a search. `ninetka_env.core.verbs` documents these functions;
`ninetka_agents.conformance` checks the searches themselves.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.api.conformance.case import Case
from ninetka_env.core import verbs
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import BITS_PER_WORD, StateArray, trace_action, trace_seat

DRAWS = 100
"""Number of random actions drawn per legal action to test whether all are equally likely."""
DRAWS_EVERY = 5
"""Whether all actions are equally likely is tested at every ply that is a multiple of this number."""


def check_choices(case: Case) -> None:
    """Check that choices correspond to legal actions one to one, and that playing a choice plays its action.

    A legal action without a choice must lose the game at once, such as resigning.
    """
    for game in case.positions():
        if game.is_over or verbs.forced_action(game.records[0]) >= 0:
            continue
        choices = _choices(case, game)
        actions = [int(verbs.choice_action(game.records[0], choice)) for choice in choices]
        found = sorted([*actions, *_losing(case, game, actions)])
        case.check_equal(found, case.legal_actions(game).tolist(), "the actions of the choices")
        for choice, action in zip(choices, actions, strict=True):
            chosen, played = game.copy(), game.copy()
            passed = verbs.play_choice(chosen.records[0], choice)
            case.check_equal(passed, verbs.play(played.records[0], action), f"seats skipped by choice {choice}")
            case.check_same_states(chosen.records, played.records, f"choice {choice} and its action {action} differ")


def _losing(case: Case, game: Game, choices: list[int]) -> list[int]:
    """Return the legal actions, except those in `choices`, that end the game with a loss of the seat to move."""
    losing = []
    for action in set(case.legal_actions(game).tolist()) - set(choices):
        after = game.copy()
        after.play(action)
        if after.is_over and after.winner() not in (DRAWN, game.to_move):
            losing.append(action)
    return losing


def _choices(case: Case, game: Game) -> list[int]:
    """Return the legal choices; fail if `write_choices` leaves a word of the array as it was, or sets a wrong bit."""
    limit = limits_of(case.variant.dtype).choices
    words = np.full(-(-limit // BITS_PER_WORD), -1, np.int64)
    verbs.write_choices(game.records[0], words)
    if (words < 0).any():
        case.fail("write_choices sets sign bits: choice k is bit k % 63 of word k // 63")
    found = [
        63 * word + bit for word in range(len(words)) for bit in range(BITS_PER_WORD) if int(words[word]) >> bit & 1
    ]
    if found and found[-1] >= limit:
        case.fail(f"choice {found[-1]}: expected choices below {limit}, which is Limits.choices")
    return found


def check_forced(case: Case) -> None:
    """Check that a forced action is the only legal action, and that there are no choices if an action is forced.

    Also check that a game prepared by `prepare_root` has choices and no forced action, until it is over.
    """
    for game in case.positions():
        if game.is_over:
            continue
        forced = int(verbs.forced_action(game.records[0]))
        if forced >= 0:
            case.check_equal(
                [forced], case.legal_actions(game).tolist(), "the forced action, compared with the legal actions"
            )
            case.check_equal(_choices(case, game), [], "choices where the action is forced")
        root = game.copy()
        verbs.prepare_root(root.records[0])
        if forced < 0:
            case.check_equal(
                root.to_move, game.to_move, "to_move of a game prepared for search, where no action is forced"
            )
        if not root.is_over:
            case.check_equal(
                int(verbs.forced_action(root.records[0])), -1, "forced action of a game prepared for search"
            )
            if not _choices(case, root):
                case.fail("a game prepared for search has no choices, but is not over")
    _check_prepared(case)


def _check_prepared(case: Case) -> None:
    """Check that games prepared for search can be played to the end by choices only."""
    for seed in case.seeds():
        rng, game = np.random.default_rng(seed), case.start()
        verbs.prepare_root(game.records[0])
        while not game.is_over:
            choices = _choices(case, game)
            if not choices:
                case.fail("no choices, but the game, prepared for search at its start, is not over")
            if case.ply == case.variant.sizes.max_plies:
                case.fail(f"a game prepared for search is not over after {case.ply} choices")
            verbs.play_choice(game.records[0], int(rng.choice(choices)))
            case.ply += 1


def check_random(case: Case) -> None:
    """Check that `random_action` draws legal actions uniformly, only from its own stream."""
    for game in case.positions():
        if game.is_over:
            continue
        legal, before, streams = case.legal_actions(game), game.records.copy(), make_streams(case.seed + case.ply, 3)
        counts = np.zeros(case.variant.num_actions, np.int64)
        others = streams[[0, 2]]
        draws = DRAWS * len(legal) if case.ply % DRAWS_EVERY == 0 else 4
        outside = _draw(game.records, streams, counts, draws)
        if outside or np.delete(counts, legal).any():
            case.fail("random_action draws an illegal action")
        case.check_equal(streams[[0, 2]], others, "the other streams after random_action")
        case.check_same_states(game.records, before, "random_action changes the game")
        expected = draws / len(legal)
        surprise = float(((counts[legal] - expected) ** 2).sum() / expected)
        # Pearson's chi-square of k equally likely actions has the mean k - 1 and the variance 2 (k - 1).
        if draws > 4 and surprise > len(legal) - 1 + 8 * np.sqrt(2 * len(legal)) + 16:
            rare, common = legal[counts[legal].argmin()], legal[counts[legal].argmax()]
            case.fail(f"of {draws} random actions {counts[common]} are {common} and {counts[rare]} are {rare}")


@jit
def _draw(games: StateArray, streams: Streams, counts: npt.NDArray[np.int64], draws: int) -> int:
    """Draw actions in game 0 from stream 1, count them, and return how many are out of range."""
    outside = 0
    for _ in range(draws):
        action = verbs.random_action(games[0], streams, 1)
        if 0 <= action < len(counts):
            counts[action] += 1
        else:
            outside += 1
    return outside


def check_playout(case: Case) -> None:
    """Check that a playout ends the game and depends only on its random stream."""
    for game in case.positions():
        if game.is_over:
            continue
        ends = []
        for _ in range(2):
            root = game.copy()
            verbs.prepare_root(root.records[0])
            verbs.playout(root.records[0], make_streams(case.seed), 0)
            if not root.is_over:
                case.fail("the game is not over after a playout")
            ends.append(root)
        case.check_same_states(ends[1].records, ends[0].records, "two playouts from the same stream end differently")
        _check_trace(case, game)


def _check_trace(case: Case, game: Game) -> None:
    """Check that the actions in the trace of a traced playout are legal and lead to the same winner."""
    first, second = game.copy(), game.copy()
    trace = np.zeros(1 + case.variant.sizes.max_plies, np.int32)
    for root in (first, second):
        verbs.prepare_root(root.records[0])
    verbs.traced_playout(first.records[0], make_streams(case.seed), 0, trace)
    for turn in range(trace[0]):
        seat, action = trace_seat(trace, turn), trace_action(trace, turn)
        if seat != second.to_move or not second.legal_mask()[action]:
            case.fail(f"a traced playout records action {action} of seat {seat} at index {turn}, which is illegal")
        verbs.play(second.records[0], action)
    if not (first.is_over and second.is_over) or first.winner() != second.winner():
        case.fail("the recorded actions of a traced playout lead to another result than the playout")
