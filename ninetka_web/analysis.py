"""What agents think of a position: candidate moves, chances to win, MaxN's evaluation and line. JSON comes out.

Nothing here is quick, so all of it runs on threads, in steps between which it can be given up.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka import maxn
from ninetka_agents.ninetka.solver.solver import Budget, Solution, solve
from ninetka_agents.ninetka.solver.solver import is_solvable as is_solvable  # for whoever asks here
from ninetka_agents.search import uct as mcts
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Phase
from ninetka_web.protocol import told_winner

if TYPE_CHECKING:  # torch, which the tree search does without
    from ninetka_agents.ninetka.network import Network

Shares = npt.NDArray[np.float64]
"""(n,) or (N, n) chances to win by seat; they sum to 1."""

BUDGETS = {"mcts": (2_000, 20_000, 100_000), "net": (16, 64, 256)}
"""Simulations of the steps in which an analysis grows; for slides, the network's each come with 256 playouts."""
SHARE_SIMULATIONS = 4_000
"""Of the tree search for one point of the band over the game: half a per cent of the game's time, two of chance."""


def analyse(game: Game, engine: str, simulations: int) -> dict[str, Any]:
    """Return the candidates of a position, best first, and the chances to win by seat."""
    if game.is_over:
        return {"simulations": 0, "candidates": [], "shares": _rounded(_final_shares(game))}
    search = _tree_search if engine == "mcts" else _network_search
    visits, shares, position = search(game, simulations)
    actions = sorted(game.legal_actions().tolist(), key=lambda a: (visits[a], shares[a][game.to_move]), reverse=True)
    candidates = [{"action": a, "visits": int(visits[a]), "shares": _rounded(shares[a])} for a in actions]
    return {"simulations": int(visits.sum()), "candidates": candidates, "shares": _rounded(position)}


def _tree_search(game: Game, simulations: int) -> tuple[npt.NDArray[np.int64], Shares, Shares]:
    found = mcts.search(game, simulations, np.random.default_rng(0))
    shares = np.nan_to_num(found.wins, nan=0.0)
    return found.visits, shares, found.visits @ shares / found.visits.sum()


def _network_search(game: Game, simulations: int) -> tuple[npt.NDArray[np.int64], Shares, Shares]:
    """Search the position for visits, and each position after it, all in one batch, for its chances."""
    from ninetka_agents.net_agent import make_searches, network_evaluate

    evaluate, rng, n = network_evaluate(_network()), np.random.default_rng(0), game.num_players
    found = make_searches(evaluate, game.name, simulations)[game.stage].run(game.records, rng)
    shares = np.zeros((found.visits.shape[1], n))
    children = {action: _after(game, action) for action in game.legal_actions().tolist()}
    alive = [action for action, child in children.items() if not child.is_over]
    if alive:
        records = np.concatenate([children[action].records for action in alive])
        shares[alive] = make_searches(evaluate, game.name, max(4, simulations // 8))[0].run(records, rng).values[:, :n]
    for action in children.keys() - set(alive):
        shares[action] = _final_shares(children[action])
    return found.visits[0], shares, found.values[0, :n].astype(np.float64)


def _after(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def _final_shares(game: Game) -> Shares:
    """Return who has won a finished game as chances; a draw is shared."""
    n, winner = game.num_players, game.winner()
    return np.full(n, 1 / n) if winner == DRAWN else np.eye(n)[winner]


def win_shares(games: list[Game], engine: str) -> list[list[float]]:
    """Return the chances to win by seat of each position."""
    value = _tree_values if engine == "mcts" else _network_values
    alive = [game for game in games if not game.is_over]
    values = iter(value(alive)) if alive else iter(())
    return [_rounded(_final_shares(g) if g.is_over else next(values)) for g in games]


def _tree_values(games: list[Game]) -> list[Shares]:
    return [_tree_search(game, SHARE_SIMULATIONS)[2] for game in games]


def _network_values(games: list[Game]) -> list[Shares]:
    from ninetka_agents.net_agent import network_evaluate

    relative = network_evaluate(_network())(np.concatenate([game.records for game in games]))[1]
    return [np.roll(row[: g.num_players], g.to_move).astype(np.float64) for g, row in zip(games, relative, strict=True)]


@functools.cache
def _network() -> Network:
    from ninetka_agents.net_agent import NetAgent

    return NetAgent(threads=1).network


def maxn_view(game: Game, depth: int | None = None) -> dict[str, Any]:
    """Return MaxN's evaluation of a position by seat and, in the movement phase, its line with the values there.

    The line is what the search of n + 3 plies expects: after each slide the rest of the depth is searched again, which
    finds the same values.
    """
    view: dict[str, Any] = {"now": maxn.evaluate(game).tolist(), "line": [], "values": []}
    if game.phase != Phase.MOVEMENT or game.is_over:
        return view
    game, left = game.copy(), depth or game.num_players + maxn.EXTRA_DEPTH
    while left and not game.is_over:
        action, values = maxn.search(game, left)
        view["values"] = view["values"] or values.tolist()
        view["line"].append({"seat": game.to_move, "action": action})
        game.play(action)
        left -= game.auto_pass or action != PASS
    return view


def warm_up(engines: list[str]) -> None:
    """Analyse a position in its movement phase, which compiles and loads what the engines need."""
    game, rng = Game.new(2, neutral_placement="random", seed=0), np.random.default_rng(0)
    while game.ply < 70 and not game.is_over:
        game.play(int(rng.choice(game.legal_actions())))
    maxn_view(game)
    for engine in engines:
        analyse(game, engine, 2)
    exact_winner(game)


EXACT_SECONDS = 2.0
"""Of the exact solver for one position; what it does not know by then stays unknown."""


def exact_moves(game: Game) -> dict[str, Any]:
    """Return, as browsers are told, the winner under perfect play and which actions win and lose."""
    found = _solve(game, moves=True)
    values = {action: int(found.moves[action]) for action in game.legal_actions().tolist()}
    return {
        "winner": told_winner(_known(found)),
        "won": [action for action, value in values.items() if value > 0],
        "lost": [action for action, value in values.items() if value < 0],
    }


def exact_winner(game: Game) -> int:
    """Return the winner under perfect play, `UNFINISHED` if it is not known."""
    return _known(_solve(game, moves=False)) if is_solvable(game) else UNFINISHED


def _solve(game: Game, *, moves: bool) -> Solution:
    return solve(game, Budget(seconds=EXACT_SECONDS, memory_mb=128), moves=moves)


def _known(found: Solution) -> int:
    """Return the winner that was found; the solver's games have no draws."""
    return found.winner if found.winner >= 0 else UNFINISHED


def _rounded(shares: Shares) -> list[float]:
    return [round(float(share), 4) for share in shares]
