"""What agents think of a position: candidate moves, and chances to win. JSON comes out.

Nothing here is quick, so all of it runs on threads, in steps between which it can be given up. What only one game knows
of a position is asked of its adapter.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Game
from ninetka_web.adapter import Json, adapter_of, final_shares

Shares = npt.NDArray[np.float64]
"""(n,) or (N, n) chances to win by seat; they sum to 1."""


def analyse(game: Game, engine: str, simulations: int) -> Json:
    """Return the candidates of a position, best first, and the chances to win by seat."""
    if game.is_over:
        return {"simulations": 0, "candidates": [], "shares": _rounded(final_shares(game))}
    search = _tree_search if engine == "mcts" else _network_search
    visits, shares, position = search(game, simulations)
    adapter = adapter_of(game.name)
    actions = sorted(game.legal_actions().tolist(), key=lambda a: (visits[a], shares[a][game.to_move]), reverse=True)
    candidates = [
        {"action": a, "name": game.action_name(a), "cell": adapter.cell_of(game, a), "to": adapter.landing(game, a),
         "visits": int(visits[a]), "shares": _rounded(shares[a])} for a in actions
    ]  # fmt: skip
    return {"simulations": int(visits.sum()), "candidates": candidates, "shares": _rounded(position)}


def _tree_search(game: Game, simulations: int) -> tuple[npt.NDArray[np.int64], Shares, Shares]:
    found = adapter_of(game.name).search(game, simulations)
    shares = np.nan_to_num(found.wins, nan=0.0)
    return found.visits, shares, found.visits @ shares / found.visits.sum()


def _network_search(game: Game, simulations: int) -> tuple[npt.NDArray[np.int64], Shares, Shares]:
    """Search the position for visits, and each position after it, all in one batch, for its chances."""
    from ninetka_agents.net_agent import make_searches, network_evaluate

    evaluate, rng, n = network_evaluate(_network(game.name)), np.random.default_rng(0), game.num_players
    found = make_searches(evaluate, game.name, simulations)[game.stage].run(game.records, rng)
    shares = np.zeros((found.visits.shape[1], n))
    children = {action: _after(game, action) for action in game.legal_actions().tolist()}
    alive = [action for action, child in children.items() if not child.is_over]
    if alive:
        records = np.concatenate([children[action].records for action in alive])
        shares[alive] = make_searches(evaluate, game.name, max(4, simulations // 8))[0].run(records, rng).values[:, :n]
    for action in children.keys() - set(alive):
        shares[action] = final_shares(children[action])
    return found.visits[0], shares, found.values[0, :n].astype(np.float64)


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
    simulations = adapter_of(games[0].name).share_simulations
    return [_tree_search(game, simulations)[2] for game in games]


def _network_values(games: list[Game]) -> list[Shares]:
    from ninetka_agents.net_agent import network_evaluate

    records = np.concatenate([game.records for game in games])
    relative = network_evaluate(_network(games[0].name))(records)[1]
    return [np.roll(row[: g.num_players], g.to_move).astype(np.float64) for g, row in zip(games, relative, strict=True)]


@functools.cache
def _network(game: str) -> Any:
    from ninetka_agents.net_agent import NetAgent

    return NetAgent(threads=1, game=game).network


def exact_moves(game: Game) -> Json:
    """Return, as browsers are told, who wins under perfect play, and which cells win and lose, each with its name."""
    adapter = adapter_of(game.name)
    found = adapter.exact_moves(game)
    named = {key: [[adapter.cell_of(game, a), game.action_name(a)] for a in found[key]] for key in ("won", "lost")}
    return {"winner": found["winner"], **named}


def warm_up(game: Game, engine: str) -> None:
    """Analyse the start of a game, which compiles and loads what the engine needs."""
    adapter_of(game.name).warm_up_analysis(game)
    analyse(game, engine, 2)


def _rounded(shares: Shares) -> list[float]:
    return [round(float(share), 4) for share in shares]
