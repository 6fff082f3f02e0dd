"""Analyses of a position by an engine, as JSON: candidate moves, expected play, win probabilities, perfect play.

These functions are slow. `analysts.py` runs them on threads, in steps between which they can be cancelled. The
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
from ninetka_agents.search.mcts import MctsAgent, Tree
from ninetka_agents.search.tree import empty_result, find_candidates
from ninetka_agents.switch import Switch, by_stage
from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records, forced_action
from ninetka_web.games.adapter import adapter_of, final_shares, told_winner
from ninetka_web.games.offer import SOLVER, Json
from ninetka_web.games.study import Exact, Stopped, never

if TYPE_CHECKING:  # torch may be missing
    from ninetka_agents.net_agent import Search

Shares = npt.NDArray[np.float64]
"""(n,) or (N, n) win probabilities by seat; they sum to 1."""
CHUNK = 1_000
"""Simulations between two calls of `stopped`."""
SURE_ERROR = 0.25
"""The standard error at which a win probability is meaningless: about that of a single simulation."""
MOST_TREES = 144
"""Maximal number of positions after a move that are searched with playouts; more would take minutes."""


class Found(NamedTuple):
    """The results of an engine for a position so far."""

    visits: npt.NDArray[np.int64]
    """(A,) int64: simulations per action."""
    chances: npt.NDArray[np.float64]
    """(A,) float64: the mover's win probability after each action, 0 where it is unknown."""
    trials: npt.NDArray[np.float64]
    """(A,) float64: the number of simulations behind each of the `chances`."""
    shares: Shares
    """(n,) win probabilities of the position itself."""
    line: list[int]
    """The expected variation, as actions."""


def analyse(game: Game, engine: str, budgets: Sequence[int], stopped: Stopped = never) -> Iterator[Json]:
    """Yield the analysis of a position after each budget of simulations; see `_told` for its content."""
    if game.is_over:
        nothing: Json = {"simulations": 0, "more": False, "candidates": [], "expected": []}
        yield nothing | {"shares": _rounded(final_shares(game))}
        return
    search = _tree_search(game, budgets, stopped) if engine == "mcts" else _network_search(game, budgets)
    for number, found in enumerate(search, 1):
        yield _told(game, found, more=number < len(budgets))


def _told(game: Game, found: Found, *, more: bool) -> Json:
    """Return an analysis as JSON.

    The candidates are sorted, best first. Each has its win probability `chance`, the difference `lost` to the best
    move, and `sure`, how sure these are, 0 to 1.
    """
    adapter, visits, chances, sure = adapter_of(game.name), found.visits, found.chances, _sureness(found)
    actions = sorted(game.legal_actions().tolist(), key=lambda a: (visits[a], chances[a]), reverse=True)
    lost = np.maximum(chances[actions[0]] - chances, 0.0)
    candidates = [
        adapter.board.told_action(game, a)
        | {"chance": round(float(chances[a]), 4), "lost": round(float(lost[a]), 4), "sure": round(float(sure[a]), 2)}
        for a in actions
    ]
    expected = adapter.board.told_line(game, found.line)
    return {"simulations": int(visits.sum()), "more": more, "candidates": candidates, "expected": expected,
            "shares": _rounded(found.shares)}  # fmt: skip


def _sureness(found: Found) -> npt.NDArray[np.float64]:
    """Return (A,) float64 1 - error / `SURE_ERROR`, at least 0: the standard error of the rule of succession."""
    chance = (found.chances * found.trials + 1) / (found.trials + 2)
    error = np.sqrt(chance * (1 - chance) / (found.trials + 3))
    return np.where(found.trials > 0, np.maximum(1 - error / SURE_ERROR, 0), 0.0)


def _tree_search(game: Game, budgets: Sequence[int], stopped: Stopped = never) -> Iterator[Found]:
    """Yield results of the game's tree search, with its options in the web app, from one growing tree."""
    agent = make_agent(adapter_of(game.name).offer.spec("mcts"), game.name)
    assert isinstance(agent, MctsAgent)
    tree = agent.make_tree(game.records, budgets[-1])
    tree.begin(game.records)
    streams, grown = game_streams(game.records, np.random.default_rng(0)), 0
    for simulations in budgets:
        while grown < simulations:
            if stopped():
                return
            more = min(CHUNK, simulations - grown)
            tree.grow(streams, 0, more)
            grown += more
        yield _in_tree(game, tree)


def _in_tree(game: Game, tree: Tree) -> Found:
    report, candidates = empty_result(1, limits_of(game.records.dtype)), find_candidates(tree)
    tree.report(report, 0)
    visits, chances = report.visits[0], np.zeros(report.visits.shape[1])
    for one in candidates:
        chances[one.action] = one.share
    shares, line = report.values[0, : game.num_players].astype(np.float64), candidates[0].line if candidates else []
    if (forced := forced_action(game.records[0])) >= 0:  # the candidates are moves after the forced action
        chances[:], line = 0.0, [forced, *line]
        chances[forced] = shares[game.to_move]
    return Found(visits, chances, visits.astype(np.float64), shares, line)


def _network_search(game: Game, budgets: Sequence[int]) -> Iterator[Found]:
    """Yield results of network searches: of the position for the visits, of all next positions for the chances."""
    for simulations in budgets:
        yield _by_network(game, simulations)


def _by_network(game: Game, simulations: int) -> Found:
    from ninetka_agents.net_agent import SearchSettings, make_searches, network_evaluate

    evaluate, rng, n = network_evaluate(_network(game.name)), np.random.default_rng(0), game.num_players
    search = make_searches(evaluate, game.name, SearchSettings(simulations)).agent_for(game.records)
    found = search.run(game.records, rng)
    chances, mover, after = np.zeros(found.visits.shape[1]), game.to_move, max(4, simulations // 8)
    children = {action: _after(game, action) for action in game.legal_actions().tolist()}
    alive = [action for action, child in children.items() if not child.is_over]
    if alive:
        records = np.concatenate([children[action].records for action in alive])
        playouts = None if len(alive) <= MOST_TREES else 0
        search = same_search(make_searches(evaluate, game.name, SearchSettings(after, playouts=playouts)), records)
        chances[alive] = search.run(records, rng).values[:, mover]
    for action in children.keys() - set(alive):
        chances[action] = final_shares(children[action])[mover]
    trials = found.visits[0] + float(after)
    return Found(found.visits[0], chances, trials, found.values[0, :n].astype(np.float64), [])


def same_search(searches: Switch[Search], records: Records) -> Search:
    """Return one search for positions of all stages on one board, so that their win probabilities are comparable."""
    return searches.agents[0] if searches.choose is by_stage else searches.agent_for(records)


def _after(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def win_shares(games: list[Game], engine: str) -> list[list[float]]:
    """Return the win probabilities by seat of each position of a game."""
    value = _tree_values if engine == "mcts" else _network_values
    alive = [game for game in games if not game.is_over]
    values = iter(value(alive)) if alive else iter(())
    return [_rounded(final_shares(g) if g.is_over else next(values)) for g in games]


def _tree_values(games: list[Game]) -> list[Shares]:
    simulations = adapter_of(games[0].name).study.share_simulations
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


def solve(game: Game, seconds: float, stopped: Stopped = never, *, moves: bool = True) -> Exact:
    """Return the values of any position under perfect play that are found in `seconds`."""
    study = adapter_of(game.name).study
    if game.is_over:
        return Exact(game.winner(), {})
    return study.solve(game, seconds, stopped, moves=moves) if study.solvable(game) else Exact(UNFINISHED, {})


def told_exact(game: Game, exact: Exact) -> Json:
    """Return as JSON the winner under perfect play, and the winner after each move."""
    told = adapter_of(game.name).board.told_action
    moves = [told(game, action) | {"winner": told_winner(exact.after[action])} for action in exact.after]
    return {"winner": told_winner(exact.winner), "moves": moves}


def warm_up(game: Game, engine: str) -> None:
    """Run all functions of an engine's analysis on a game, which compiles or loads their code."""
    adapter = adapter_of(game.name)
    if engine == SOLVER:
        play_until(game, lambda game: adapter.study.solvable(game) and solve(game, 0.005).is_whole)
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
