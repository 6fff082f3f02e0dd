"""Analyses of a position by an engine, as JSON: candidate moves, expected play, win probabilities, perfect play.

These functions are slow. `analysis_service.py` runs them on threads, in steps between which they can be cancelled. The
game-specific parts are in `Study`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_agents.agent import game_streams
from ninetka_agents.search.mcts import MctsAgent, SearchTree
from ninetka_agents.search.tree import empty_result, find_candidates
from ninetka_agents.switch import Switch, by_stage
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import StateArray, forced_action
from ninetka_web.games.adapter import adapter_of, final_shares, winner_json
from ninetka_web.games.offer import SOLVER, Json
from ninetka_web.games.study import ExactValue, StopCheck, never_stop

if TYPE_CHECKING:  # torch may be missing
    from ninetka_agents.net_agent import Search

Shares = npt.NDArray[np.float64]
"""(n,) or (N, n) win probabilities by seat; they sum to 1."""
SIMULATIONS_PER_CHUNK = 1_000
"""Simulations between two calls of `stopped`."""
MAX_STANDARD_ERROR = 0.25
"""The standard error from which a win probability is meaningless; a single simulation has about this error."""
MAX_TREES = 144
"""Next positions are searched with playouts only if there are at most this many: more would take minutes."""


class EngineResult(NamedTuple):
    """The results so far of an engine's search of a position."""

    visits: npt.NDArray[np.int64]
    """(A,) int64: simulations per action."""
    chances: npt.NDArray[np.float64]
    """(A,) float64: the mover's win probability after each action, 0 where it is unknown."""
    num_simulations: npt.NDArray[np.float64]
    """(A,) float64: the number of simulations behind each of the `chances`."""
    shares: Shares
    """(n,) win probabilities of the position itself."""
    variation: list[int]
    """The expected variation, as actions."""


def analyse(game: Game, engine: str, budgets: Sequence[int], stopped: StopCheck = never_stop) -> Iterator[Json]:
    """Yield the analysis of a position after each budget of simulations; see `_result_json` for its content."""
    if game.is_over:
        empty: Json = {"simulations": 0, "more": False, "candidates": [], "expected": []}
        yield empty | {"shares": _rounded(final_shares(game))}
        return
    search = _tree_search(game, budgets, stopped) if engine == "mcts" else _network_search(game, budgets)
    for number, result in enumerate(search, 1):
        yield _result_json(game, result, more=number < len(budgets))


def _result_json(game: Game, result: EngineResult, *, more: bool) -> Json:
    """Return an analysis as JSON.

    The candidates are sorted, best first. Each has its win probability `chance`, the difference `lost` to the best
    move, and `sure`, the certainty of `chance` from 0 to 1. `more` says whether more results follow.
    """
    adapter, visits, chances, certainty = adapter_of(game.name), result.visits, result.chances, _certainty(result)
    actions = sorted(game.legal_actions().tolist(), key=lambda a: (visits[a], chances[a]), reverse=True)
    lost = np.maximum(chances[actions[0]] - chances, 0.0)
    candidates = [
        adapter.board.action_json(game, a)
        | {
            "chance": round(float(chances[a]), 4),
            "lost": round(float(lost[a]), 4),
            "sure": round(float(certainty[a]), 2),
        }
        for a in actions
    ]
    expected = adapter.board.variation_json(game, result.variation)
    return {"simulations": int(visits.sum()), "more": more, "candidates": candidates, "expected": expected,
            "shares": _rounded(result.shares)}  # fmt: skip


def _certainty(result: EngineResult) -> npt.NDArray[np.float64]:
    """Return the certainty of each action's win probability: (A,) float64 1 - error / `MAX_STANDARD_ERROR`, at least 0.

    The error is the standard deviation of the beta distribution of the rule of succession.
    """
    chance = (result.chances * result.num_simulations + 1) / (result.num_simulations + 2)
    error = np.sqrt(chance * (1 - chance) / (result.num_simulations + 3))
    return np.where(result.num_simulations > 0, np.maximum(1 - error / MAX_STANDARD_ERROR, 0), 0.0)


def _tree_search(game: Game, budgets: Sequence[int], stopped: StopCheck = never_stop) -> Iterator[EngineResult]:
    """Yield the result of the web app's tree search after each budget of simulations, from one growing tree."""
    agent = make_agent(adapter_of(game.name).offer.spec("mcts"), game.name)
    assert isinstance(agent, MctsAgent)
    tree = agent.make_tree(game.records, budgets[-1])
    tree.reset(game.records)
    streams, num_grown = game_streams(game.records, np.random.default_rng(0)), 0
    for simulations in budgets:
        while num_grown < simulations:
            if stopped():
                return
            chunk = min(SIMULATIONS_PER_CHUNK, simulations - num_grown)
            tree.grow(streams, 0, chunk)
            num_grown += chunk
        yield _read_tree(game, tree)


def _read_tree(game: Game, tree: SearchTree) -> EngineResult:
    report, candidates = empty_result(1, limits_of(game.records.dtype)), find_candidates(tree)
    tree.report(report, 0)
    visits, chances = report.visits[0], np.zeros(report.visits.shape[1])
    for candidate in candidates:
        chances[candidate.action] = candidate.share
    shares, variation = (
        report.values[0, : game.num_players].astype(np.float64),
        candidates[0].variation if candidates else [],
    )
    if (forced := forced_action(game.records[0])) >= 0:  # then the candidates are the moves after this action
        chances[:], variation = 0.0, [forced, *variation]
        chances[forced] = shares[game.to_move]
    return EngineResult(visits, chances, visits.astype(np.float64), shares, variation)


def _network_search(game: Game, budgets: Sequence[int]) -> Iterator[EngineResult]:
    """Yield the result of a network search for each number of simulations.

    The visits come from a search of the position, the chances from searches of all next positions.
    """
    for simulations in budgets:
        yield _search_with_network(game, simulations)


def _search_with_network(game: Game, simulations: int) -> EngineResult:
    from ninetka_agents.net_agent import SearchSettings, make_searches, network_evaluate

    evaluate, rng, n = network_evaluate(_network(game.name)), np.random.default_rng(0), game.num_players
    search = make_searches(evaluate, game.name, SearchSettings(simulations)).agent_for(game.records)
    result = search.run(game.records, rng)
    chances, seat, child_simulations = np.zeros(result.visits.shape[1]), game.to_move, max(4, simulations // 8)
    children = {action: _child(game, action) for action in game.legal_actions().tolist()}
    unfinished = [action for action, child in children.items() if not child.is_over]
    if unfinished:
        records = np.concatenate([children[action].records for action in unfinished])
        playouts = None if len(unfinished) <= MAX_TREES else 0
        search = stage_independent_search(
            make_searches(evaluate, game.name, SearchSettings(child_simulations, playouts=playouts)), records
        )
        chances[unfinished] = search.run(records, rng).values[:, seat]
    for action in children.keys() - set(unfinished):
        chances[action] = final_shares(children[action])[seat]
    trials = result.visits[0] + float(child_simulations)
    return EngineResult(result.visits[0], chances, trials, result.values[0, :n].astype(np.float64), [])


def stage_independent_search(searches: Switch[Search], records: StateArray) -> Search:
    """Return one search for all `records`, which are positions on the same board.

    Win probabilities of positions of several stages are comparable only if the same search finds them. If `searches`
    has a search per stage, return the search of the first stage.
    """
    return searches.agents[0] if searches.choose is by_stage else searches.agent_for(records)


def _child(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def win_shares(games: list[Game], engine: str) -> list[list[float]]:
    """Return the win probabilities by seat in each position of a game, by a tree search or the network alone."""
    evaluate = _tree_values if engine == "mcts" else _network_values
    unfinished = [game for game in games if not game.is_over]
    values = iter(evaluate(unfinished)) if unfinished else iter(())
    return [_rounded(final_shares(g) if g.is_over else next(values)) for g in games]


def _tree_values(games: list[Game]) -> list[Shares]:
    simulations = adapter_of(games[0].name).study.timeline_simulations
    return [next(_tree_search(game, (simulations,))).shares for game in games]


def _network_values(games: list[Game]) -> list[Shares]:
    from ninetka_agents.net_agent import network_evaluate

    records = np.concatenate([game.records for game in games])
    relative = network_evaluate(_network(games[0].name))(records)[1]
    return [np.roll(row[: g.num_players], g.to_move).astype(np.float64) for g, row in zip(games, relative, strict=True)]


@functools.cache
def _network(game: str) -> Any:
    from ninetka_agents.net_agent import load_net

    return load_net(threads=1, game=game).network


# Perfect play


def solve(game: Game, seconds: float, stopped: StopCheck = never_stop, *, moves: bool = True) -> ExactValue:
    """Return the values of a position under perfect play, `UNFINISHED` if not found in `seconds` or not solvable."""
    study = adapter_of(game.name).study
    if game.is_over:
        return ExactValue(game.winner(), {})
    return study.solve(game, seconds, stopped, moves=moves) if study.solvable(game) else ExactValue(UNFINISHED, {})


def exact_json(game: Game, exact: ExactValue) -> Json:
    """Return the winner under perfect play, and the winner after each move, as JSON."""
    action_json = adapter_of(game.name).board.action_json
    moves = [
        action_json(game, action) | {"winner": winner_json(exact.winner_after[action])} for action in exact.winner_after
    ]
    return {"winner": winner_json(exact.winner), "moves": moves}


def warm_up(game: Game, engine: str) -> None:
    """Run all functions of an engine's analysis, which compiles or loads their code. This plays moves of `game`."""
    adapter = adapter_of(game.name)
    if engine == SOLVER:
        play_until(game, lambda game: adapter.study.solvable(game) and solve(game, 0.005).is_complete)
        return
    for _ in analyse(game, engine, (2, 3)):
        pass
    adapter.study.insight(play_until(game, lambda game: game.stage == len(game.definition().stages) - 1))


def play_until(game: Game, done: Callable[[Game], bool]) -> Game:
    """Play first legal actions until `done(game)` or the game is over; return the same game."""
    while not (game.is_over or done(game)):
        game.play(int(game.legal_actions()[0]))
    return game


def _rounded(shares: Shares) -> list[float]:
    return [round(float(share), 4) for share in shares]
