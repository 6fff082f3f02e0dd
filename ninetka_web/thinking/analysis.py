"""What agents think of a position: candidate moves, a line of play, chances to win, perfect play. JSON comes out.

Nothing here is quick, so all of it runs on threads, in steps between which it can be given up. What only one game knows
of a position is asked of its adapter.
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
"""(n,) or (N, n) chances to win by seat; they sum to 1."""
CHUNK = 1_000
"""Simulations between two looks at whether anybody still waits for them."""
SURE_ERROR = 0.25
"""The standard error of a chance to win from which on it says nothing: about that of a single simulation."""
MOST_TREES = 144
"""Positions at most that are searched with playouts, beside the one that is analysed; more would take minutes."""


class Found(NamedTuple):
    """What an engine has found out about a position so far."""

    visits: npt.NDArray[np.int64]
    """(A,) int64: simulations per action."""
    chances: npt.NDArray[np.float64]
    """(A,) float64: the mover's chance to win after each action, 0 where nothing is known."""
    trials: npt.NDArray[np.float64]
    """(A,) float64: on how many simulations these rest."""
    shares: Shares
    """(n,) chances to win of the position itself."""
    line: list[int]
    """The play that it expects."""


def analyse(game: Game, engine: str, budgets: Sequence[int], stopped: Stopped = never) -> Iterator[Json]:
    """Yield what is found out about a position with more and more simulations; see `_told` for what is in it."""
    if game.is_over:
        nothing: Json = {"simulations": 0, "more": False, "candidates": [], "expected": []}
        yield nothing | {"shares": _rounded(final_shares(game))}
        return
    search = _tree_search(game, budgets, stopped) if engine == "mcts" else _network_search(game, budgets)
    for number, found in enumerate(search, 1):
        yield _told(game, found, more=number < len(budgets))


def _told(game: Game, found: Found, *, more: bool) -> Json:
    """Return the candidates, best first, each with the chance lost against the best and how sure that is, 0 to 1."""
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
    """Return (A,) float64 how sure each chance is: 1 less its standard error (of the rule of succession), scaled."""
    chance = (found.chances * found.trials + 1) / (found.trials + 2)
    error = np.sqrt(chance * (1 - chance) / (found.trials + 3))
    return np.where(found.trials > 0, np.maximum(1 - error / SURE_ERROR, 0), 0.0)


def _tree_search(game: Game, budgets: Sequence[int], stopped: Stopped = never) -> Iterator[Found]:
    """Grow one tree, that of the game's own tree search as it plays at tables, until it is stopped."""
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
    if (forced := forced_action(game.records[0])) >= 0:  # the candidates are those of whoever moves after it
        chances[:], line = 0.0, [forced, *line]
        chances[forced] = shares[game.to_move]
    return Found(visits, chances, visits.astype(np.float64), shares, line)


def _network_search(game: Game, budgets: Sequence[int]) -> Iterator[Found]:
    """Search the position for visits, and each position after it, all in one batch, for its chances."""
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
    """Return one search for positions on one board, whatever their stages, so that their chances can be compared."""
    return searches.agents[0] if searches.choose is by_stage else searches.agent_for(records)


def _after(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def win_shares(games: list[Game], engine: str) -> list[list[float]]:
    """Return the chances to win by seat of each position of a game."""
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
    """Return what is known of any position under perfect play after that many seconds."""
    study = adapter_of(game.name).study
    if game.is_over:
        return Exact(game.winner(), {})
    return study.solve(game, seconds, stopped, moves=moves) if study.solvable(game) else Exact(UNFINISHED, {})


def told_exact(game: Game, exact: Exact) -> Json:
    """Return, as browsers are told, who wins under perfect play, and who after each move."""
    told = adapter_of(game.name).board.told_action
    moves = [told(game, action) | {"winner": told_winner(exact.after[action])} for action in exact.after]
    return {"winner": told_winner(exact.winner), "moves": moves}


def warm_up(game: Game, engine: str) -> None:
    """Do with a game all that the engine is asked for, which compiles and loads what it needs."""
    adapter = adapter_of(game.name)
    if engine == SOLVER:
        play_until(game, lambda game: adapter.study.solvable(game) and solve(game, 0.005).is_whole)
        return
    for _ in analyse(game, engine, (2, 3)):
        pass
    adapter.study.insight(play_until(game, lambda game: game.stage == len(game.definition().stages) - 1))


def play_until(game: Game, done: Callable[[Game], bool]) -> Game:
    """Play the first legal actions until something holds, or the game is over; return the same game."""
    while not (game.is_over or done(game)):
        game.play(int(game.legal_actions()[0]))
    return game


def _rounded(shares: Shares) -> list[float]:
    return [round(float(share), 4) for share in shares]
