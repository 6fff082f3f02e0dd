"""Checks of a game's definition and rules: options, sizes, start, legal actions, end, symmetries."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.api.conformance.case import GUARD_SIZE, Case
from ninetka_env.core import verbs
from ninetka_env.core.batch import option_codes
from ninetka_env.core.game import EVENTS, Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import Choice, Integer, Option
from ninetka_env.core.outcome import DRAWN, REWARDS
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import get_definition, limits_of, load_variant
from ninetka_env.core.verbs import Mask, StateArray

OUT_OF_RANGE = (-(1 << 62), -1, 1 << 31, 1 << 62)
"""Integers that are not an action of any game."""
NON_INTEGERS: tuple[Any, ...] = (None, True, 1.0, "1")
EVENT_EVERY = 7
"""Events are tested at every ply that is a multiple of this number."""

# The definition


def check_options(case: Case) -> None:
    """Check that options survive encoding, text and pickle, and that unknown options raise `ValueError`."""
    definition = case.variant.definition
    for option in definition.options:
        for value in _values_to_try(option):
            case.check_equal(option.decode(option.encode(value)), value, f"{option.name}, encoded and decoded")
            case.check_equal(option.parse(str(value)), value, f"{option.name}, written and parsed")
            try:
                variant = case.variant.replace_options(**{option.name: value})
            except ValueError:  # not all combinations of values are allowed
                continue
            case.check_equal(load_variant(variant.spec), variant, "load_variant(variant.spec)")
            case.check_equal(pickle.loads(pickle.dumps(variant)), variant, "a pickled variant")
    try:
        definition.variant(no_such_option=1)
    except ValueError:
        return
    case.fail("an unknown option is accepted")


def _values_to_try(option: Option) -> tuple[Any, ...]:
    """Return values of an option to test."""
    if isinstance(option, Choice):
        return option.values
    return (option.minimum, option.default, option.maximum) if isinstance(option, Integer) else (option.default,)


def check_sizes(case: Case) -> None:
    """Check that sizes, limits, definition and states are consistent."""
    sizes, definition = case.variant.sizes, case.variant.definition
    if sizes.dtype not in definition.dtypes:
        case.fail("Sizes.dtype is not one of Definition.dtypes")
    limits = limits_of(sizes.dtype)
    case.check_equal(get_definition(definition.name), definition, "the game registered under this name")
    case.check_equal(definition.game_class.name, definition.name, "the name of the class Game")
    if limits.players < sizes.num_players or limits.actions < sizes.num_actions:
        case.fail(f"{limits} are too small for {sizes.num_players} players and {sizes.num_actions} actions")
    if len(set(definition.seats)) < max(sizes.num_players, len(definition.seats)):
        case.fail(f"{sizes.num_players} players need seats with different names, found {definition.seats}")
    for game in case.positions():
        case.check_equal(
            (game.num_players, game.num_actions), (sizes.num_players, sizes.num_actions), "players and actions"
        )
        if not 0 <= game.stage < len(definition.stages):
            case.fail(f"stage {game.stage}: expected one of 0..{len(definition.stages) - 1}")
        if not game.is_over and not 0 <= game.to_move < game.num_players:
            case.fail(f"seat {game.to_move} is to move, of {game.num_players}")


# Start and play


def check_start(case: Case) -> None:
    """Check that `start` writes every byte of the state."""
    codes = option_codes(case.variant, 1)[0]
    for seed in case.seeds():
        started = case.start()
        if started.is_over:
            case.fail("the game is over before the first action")
        for fill in (0x55, 0xFF):
            games = np.frombuffer(bytearray([fill]) * case.variant.dtype.itemsize, case.variant.dtype)
            verbs.start(games[0], codes, make_streams(seed), 0)
            case.check_same_states(games, started.records, "start keeps old contents of the state")


def check_seeds(case: Case) -> None:
    """Check that the start depends only on the game's random stream, and the rest of the game only on the actions."""
    codes = option_codes(case.variant, 1)[0]
    for seed in case.seeds():
        streams, games = make_streams(seed, 3), np.zeros(1, case.variant.dtype)
        before = streams.copy()
        for index in (2, 0):
            verbs.start(games[0], codes, streams, index)
            alone: Game = case.variant.game_class.start(case.variant, seed + index)
            case.check_same_states(games, alone.records, "two games started from the same seed differ")
        case.check_equal(streams[1:2], before[1:2], "start advances the stream of another game")
    for game in case.positions():
        twin = game.copy()
        if not game.is_over:
            for action in case.legal_actions(game)[:2].tolist():
                one, other = game.copy(), twin.copy()
                one.play(action)
                other.play(action)
                case.check_same_states(other.records, one.records, f"action {action} played twice differs")


def check_length(case: Case) -> None:
    """Check that no game exceeds `Sizes.max_plies`, and that `ply` grows by at most 1 per action."""
    for choose in (lambda legal: int(legal[0]), lambda legal: int(legal[-1])):
        for _ in case.play(choose):
            pass
    before = 0
    for game in case.positions():
        if case.ply and not 0 <= game.ply - before <= 1:
            case.fail(f"ply {game.ply} follows ply {before}")
        before = game.ply


# Legal actions


def check_masks(case: Case) -> None:
    """Check that mask and `is_legal` agree, and that no action is legal out of range or after the end."""
    count = case.variant.num_actions
    for game in case.positions():
        before = game.records.copy()
        for fill in (0, 7):
            buffer = np.full(count + GUARD_SIZE, fill, np.int8)
            verbs.write_legal_mask(game.records[0], buffer[:count])
            case.check_equal(buffer[count:], np.full(GUARD_SIZE, fill, np.int8), "the elements after the mask")
            if (action := int(_first_mask_error(game.records, 0, buffer[:count]))) >= 0:
                name = f"action {action} ({game.action_name(action)})"
                case.fail(f"{name}: the mask has {buffer[action]}, is_legal returns {buffer[action] != 1}")
        for action in (*OUT_OF_RANGE, count):
            if verbs.is_legal(game.records[0], action):
                case.fail(f"is_legal allows action {action}, but there are {count} actions")
        case.check_equal(bool(buffer[:count].any()), not game.is_over, "whether an action is legal")
        case.check_same_states(game.records, before, "computing the legal actions changes the game")


@jit
def _first_mask_error(games: StateArray, index: int, mask: Mask) -> int:
    """Return the first action for which mask and `is_legal` differ, -1 if there is none."""
    for action in range(len(mask)):
        if mask[action] != int(verbs.is_legal(games[index], action)):
            return action
    return -1


def check_illegal(case: Case) -> None:
    """Check that illegal actions raise `ValueError` that names the action, and that errors do not change the game."""
    rng = np.random.default_rng(case.seed)
    for game in case.positions():
        before = game.copy()
        for action in sample_illegal_actions(case, game, rng):
            check_refused(case, game, action, partial(game.play, action))
            case.check_same_states(game.records, before.records, f"illegal action {action} changes the game")
            case.check_equal(game.__getstate__()[1:], before.__getstate__()[1:], f"after illegal action {action}")
        for word in NON_INTEGERS:
            try:
                game.play(word)
            except TypeError:
                continue
            case.fail(f"action {word!r} is not an integer, but does not raise TypeError")


def sample_illegal_actions(case: Case, game: Game, rng: np.random.Generator) -> list[int]:
    """Draw up to 5 illegal actions of a position, and add integers that are not actions of the game."""
    illegal = np.flatnonzero(game.legal_mask() == 0)
    return [*rng.permutation(illegal)[:5].tolist(), case.variant.num_actions, *OUT_OF_RANGE]


def check_refused(case: Case, game: Game, action: int, play: Callable[[], Any]) -> None:
    """Check that `play`, which plays an illegal action, raises `ValueError` that names the action."""
    try:
        play()
    except ValueError as error:
        known = 0 <= action < case.variant.num_actions
        if str(action) not in str(error) and not (known and game.action_name(action) in str(error)):
            case.fail(f"illegal action {action}: the error does not name it: {error}")
        return
    case.fail(f"illegal action {action} is played")


# End of the game


def check_returns(case: Case) -> None:
    """Check that rewards sum to zero, and that winner, scores and rewards are consistent."""
    for game in case.positions():
        winner, scores, players = game.winner(), game.scores(), game.num_players
        if not DRAWN <= winner < players:
            case.fail(f"winner {winner} of {players} players")
        case.check_equal(scores.shape, (players,), "shape of the scores")
        for reward in REWARDS:
            returns = game.returns(reward)
            case.check_equal(
                (returns.shape, returns.dtype), ((players,), np.dtype(np.float32)), "shape and dtype of returns"
            )
            if abs(float(returns.sum())) > 1e-5:
                case.fail(f"returns({reward!r}) = {returns.tolist()} do not sum to zero")
            if game.is_over:
                _check_best(case, returns, winner, f"returns({reward!r})")
        if game.is_over and game.decided_by_scores:
            _check_best(case, scores, winner, "scores()")


def _check_best(case: Case, values: npt.NDArray[Any], winner: int, what: str) -> None:
    """Check that the winner has the maximum; if the game is drawn, that at least two seats have it."""
    best = np.flatnonzero(values >= values.max() - 1e-6)
    if winner == DRAWN and len(best) == 1:
        case.fail(f"the game is drawn, but {what} = {values.tolist()} have a single best seat")
    if winner != DRAWN and winner not in best:
        case.fail(f"seat {winner} wins, but {what} = {values.tolist()}")


def check_targets(case: Case) -> None:
    """Check that auxiliary training targets are seats or -1, and that every element of their array is written."""
    count = limits_of(case.variant.dtype).targets
    for game in case.positions():
        one, other = (np.full(count + GUARD_SIZE, fill, np.int8) for fill in (77, 99))
        for buffer in (one, other):
            verbs.write_targets(game.records[0], buffer[:count])
        case.check_equal(one[:count], other[:count], "targets written to an array with other contents")
        case.check_equal(one[count:], np.full(GUARD_SIZE, 77, np.int8), "the elements after the targets")
        if count and not -1 <= one[:count].min() <= one[:count].max() < game.num_players:
            case.fail(f"targets {sorted(set(one[:count].tolist()))}: expected seats or -1")


def check_events(case: Case) -> None:
    """Check that resignation and the other events end the game with a loss of the given seat."""
    for game in case.positions():
        if case.ply % EVENT_EVERY or game.is_over:
            continue
        for seat in range(game.num_players):
            for kind in EVENTS:
                _check_event(case, game, seat, kind)
        ended = game.copy()
        ended.resign()
        case.check_equal(ended.event, ("resigned", game.to_move), "event of a resignation")


def _check_event(case: Case, game: Game, seat: int, kind: str) -> None:
    ended, action = game.copy(), int(case.legal_actions(game)[0])
    ended.forfeit(seat, kind)
    case.check_equal(ended.event, (kind, seat), "event")
    case.check_equal(
        (ended.is_over, len(ended.legal_actions())), (True, 0), f"{kind!r}: is_over, number of legal actions"
    )
    if ended.winner() in (seat, DRAWN):
        case.fail(f"seat {seat} loses by {kind!r}, but the winner is {ended.winner()}")
    for reward in REWARDS:
        paid = ended.returns(reward)
        if abs(float(paid.sum())) > 1e-5 or paid.argmax() != ended.winner():
            case.fail(f"seat {seat} loses by {kind!r}: returns({reward!r}) = {paid.tolist()}")
    for continue_game in (partial(ended.forfeit, seat, kind), partial(ended.play, action)):
        try:
            continue_game()
        except ValueError:
            continue
        case.fail(f"the game continues after {kind!r}")


# Symmetries


def check_symmetries(case: Case) -> None:
    """Check that symmetries are permutations of actions and preserve legal actions, the seat to move and results."""
    if case.variant.definition.symmetries is None:
        return
    table = np.asarray(case.variant.definition.symmetries(case.variant.options), np.int64)
    count = case.variant.num_actions
    case.check_equal(table.shape[1:], (count,), "number of actions of the symmetries")
    case.check_equal(table[0].tolist(), list(range(count)), "the first symmetry, which must be the identity")
    case.check_equal(
        np.sort(table, axis=1).tolist(), [list(range(count))] * len(table), "sorted actions of each symmetry"
    )
    for seed in case.seeds():
        for symmetry in table:
            _check_symmetry(case, symmetry, np.random.default_rng(seed))


def _check_symmetry(case: Case, symmetry: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
    """Play a random game and its image under a symmetry, and compare them at each ply."""
    game = case.start()
    image = game.start_from(case.variant, tuple(int(symmetry[action]) for action in game.drawn_actions()))
    while not game.is_over:
        case.check_equal(np.sort(symmetry[game.legal_actions()]), image.legal_actions(), "legal actions of the image")
        case.check_equal(image.to_move, game.to_move, "the seat to move in the image")
        action = int(rng.choice(case.legal_actions(game)))
        game.play(action)
        image.play(int(symmetry[action]))
        case.ply += 1
        case.check_equal((image.is_over, image.passed), (game.is_over, game.passed), "is_over and passed of the image")
        case.check_equal(
            (image.winner(), image.scores().tolist()), (game.winner(), game.scores().tolist()), "result of the image"
        )
