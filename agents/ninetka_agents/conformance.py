"""Conformance checks for games: the checks of `ninetka_env.api.conformance`, and a check of the searches.

    check("tictactoe")  # returns, or raises ConformanceError
    check("tictactoe", only=["search"])

Near the end of a game, each search must find one of the actions that are best according to an exhaustive search. If
the exhaustive search needs more than `MAX_POSITIONS` positions, as in long games of Go, the searches must only return
legal actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.search import rave
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.rave_tree import RaveOptions
from ninetka_agents.search.uct import search
from ninetka_env.api.conformance import CHECKS as RULES
from ninetka_env.api.conformance import Case, Check, ConformanceError, run_checks
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.registry import Variant, limits_of, load_variant
from ninetka_env.core.verbs import StateArray, num_actions, write_legal_mask

__all__ = ["CHECKS", "Case", "Check", "ConformanceError", "check"]

PLIES_BEFORE_END = 6
"""Positions are searched at most this many plies before the end of a random game."""
MAX_POSITIONS = 2000
"""Positions that the exhaustive search may visit; if it needs more, a position nearer to the end is tried."""
MAX_TRIES = 10
"""Maximum number of random games played per position that is searched."""
SIMULATIONS, EVALUATIONS = 20_000, 8192
"""`SIMULATIONS`: simulations of the tree search and of RAVE. `EVALUATIONS`: positions that the Gumbel search evaluates,
and playouts of the two searches that combine evaluations with playouts."""
RAVE_EXPLORATION = 0.3
"""Exploration constant of RAVE. Without exploration, RAVE can settle on a wrong action and takes long to correct it."""

Floats: TypeAlias = npt.NDArray[np.float32]
Outcomes: TypeAlias = set[int]
"""The possible winners if every seat plays a best action: seats, or `DRAWN`. There are several winners if a seat may
choose between equally good actions."""


def check(
    game: str | Variant, *, games: int = 2, seed: int = 0, only: Iterable[str] | None = None, **options: Any
) -> None:
    """Check that a game follows the contract; see `ninetka_env.api.conformance.check` for the arguments.

    Raises:
        ConformanceError: at the first failure; the message names the check, the game, the seed and the ply.
        ValueError: if the game, an option or a check is unknown.
    """
    run_checks(CHECKS, load_variant(game, **options), games, seed, only)


def check_search(case: Case) -> None:
    """Check that searches find a best action near the end of games, and that their values sum to 1."""
    guided = (
        GumbelSearch(evaluate_uniformly, GumbelOptions(EVALUATIONS, gumbel_scale=0.0, playouts=0)),
        GuidedSearch(evaluate_uniformly, simulations=EVALUATIONS // 64, playouts=64),
        GuidedRaveSearch(
            evaluate_uniformly, EVALUATIONS // 16, 16, options=RaveOptions(1000.0, RAVE_EXPLORATION, False, False)
        ),
    )
    for game, best in _endgame_positions(case):
        rng = np.random.default_rng(case.seed)
        for name, found in (
            ("the tree search", search(game, SIMULATIONS, rng)),
            ("RAVE", rave.search(game, SIMULATIONS, rng, exploration=RAVE_EXPLORATION)),
        ):
            _check_shares(case, found.wins[found.visits > 0], name)
            _check_action(case, game, int(found.visits.argmax()), best, name)
        for one in guided:
            result = one.run(game.records, rng)
            _check_shares(case, result.values[:, : game.num_players], f"search {one.name!r}")
            _check_action(case, game, int(result.actions[0]), best, f"search {one.name!r}")


CHECKS: Mapping[str, Check] = MappingProxyType({**RULES, "search": check_search})
"""All checks by name, in the order in which `check` runs them."""


def evaluate_uniformly(games: StateArray) -> tuple[Floats, Floats]:
    """Return the log of a uniform policy over the legal actions, and equal values for all seats that are in play."""
    limits, masks = limits_of(games.dtype), np.zeros((len(games), limits_of(games.dtype).actions), np.int8)
    for game, mask in zip(games, masks, strict=True):
        write_legal_mask(game, mask[: num_actions(game)])
    players = games["num_players"][:, None]
    values = (np.arange(limits.players) < players) / players
    logits = np.log(np.where(masks, 1 / masks.sum(axis=1, keepdims=True), 1))
    return logits.astype(np.float32), values.astype(np.float32)


def _check_action(case: Case, game: Game, action: int, best: set[int] | None, searcher: str) -> None:
    if best is None and not game.legal_mask()[action]:
        case.fail(f"{searcher} plays {game.action_name(action)}, which is illegal")
    if best is not None and action not in best:
        names = ", ".join(sorted(map(game.action_name, best)))
        case.fail(f"{searcher} plays {game.action_name(action)} for seat {game.to_move}; best are {names}")


def _check_shares(case: Case, values: npt.NDArray[np.floating], searcher: str) -> None:
    if (values < -1e-4).any() or (values > 1 + 1e-4).any() or (abs(values.sum(axis=1) - 1) > 1e-3).any():
        case.fail(f"values of {searcher} must be from 0 to 1 and sum to 1: got {values[0].tolist()}")


# Exhaustive search


def _endgame_positions(case: Case) -> Iterator[tuple[Game, set[int] | None]]:
    """Yield positions near the ends of random games, each with the set of its best actions.

    Positions in which all actions are best are skipped. If even the position before the last action cannot be searched
    exhaustively, it is yielded with None.
    """
    found, first = 0, case.seed
    for seed in range(first, first + MAX_TRIES * case.games):
        case.seed, rng = seed, np.random.default_rng(seed)
        passed = [game.copy() for game in case.play(lambda legal, rng=rng: int(rng.choice(legal)))]  # type: ignore[misc]
        last = len(passed) - 1
        for ply in range(max(0, last - PLIES_BEFORE_END), last):
            case.ply, game = ply, passed[ply]
            best = _ExhaustiveSearch().best_actions(game)
            if (best is None and ply == last - 1) or (best is not None and len(best) < len(game.legal_actions())):
                yield game, best
                found += 1
                break
        if found == case.games:
            return


class _ExhaustiveSearch:
    """Max^n search to the end of the game (Luckhardt and Irani, 1986), by playing out all continuations."""

    def __init__(self) -> None:
        self._known: dict[bytes, Outcomes] = {}

    def best_actions(self, game: Game) -> set[int] | None:
        """Return the actions that no other action certainly beats; None if the search needs too many positions."""
        try:
            after = self._outcomes_by_action(game)
        except _TooManyError:
            return None
        guaranteed = max(_value_bounds(winners, game)[0] for winners in after.values())
        return {action for action, winners in after.items() if _value_bounds(winners, game)[1] >= guaranteed}

    def _outcomes_by_action(self, game: Game) -> dict[int, Outcomes]:
        """Return the possible winners after each action."""
        after = {}
        for action in game.legal_actions().tolist():
            follower = game.copy()
            follower.play(action)
            after[action] = self._outcomes(follower)
        return after

    def _outcomes(self, game: Game) -> Outcomes:
        if game.is_over:
            return {game.winner()}
        key = game.records.tobytes()
        if key not in self._known:
            if len(self._known) >= MAX_POSITIONS:
                raise _TooManyError
            self._known[key] = set()  # a continuation that returns here adds no outcome
            after = self._outcomes_by_action(game)
            guaranteed = max(_value_bounds(winners, game)[0] for winners in after.values())
            good = [
                {one for one in winners if _value_bounds({one}, game)[1] >= guaranteed} for winners in after.values()
            ]
            self._known[key] = set().union(*good)
        return self._known[key]


class _TooManyError(Exception):
    pass


def _value_bounds(winners: Outcomes, game: Game) -> tuple[float, float]:
    """Return the minimum and maximum share of a win that the seat to move may get."""
    shares = [1 / game.num_players if winner == DRAWN else float(winner == game.to_move) for winner in winners]
    return min(shares, default=0.0), max(shares, default=0.0)
