"""Test the search heuristics of Kropki: the nodes near points, and playouts on these nodes."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_agents.agent import make_agent
from ninetka_agents.kropki.heuristics import PLAYOUT_RADIUS, RADIUS
from ninetka_agents.search.heuristics import heavy_playout, keep_local
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import get_definition
from ninetka_env.core.verbs import BITS_PER_WORD, trace_action, trace_seat, write_choices
from ninetka_env.games.kropki.game import Game


def random_game(width: int, height: int, plies: int, territory: str, seed: int) -> Game:
    rng, game = np.random.default_rng(seed), Game.new(width, height, territory=territory)
    while game.ply < plies:
        game.play(int(rng.choice(game.legal_actions())))
    return game


def near(game: Game, radius: int) -> np.ndarray:
    """Return a mask of the nodes that have a point at most `radius` rows and columns away; all if there is no point."""
    rows, columns = np.nonzero(game.board)
    if len(rows) == 0:
        return np.ones(game.width * game.height, bool)
    y, x = np.mgrid[: game.height, : game.width]
    away = np.maximum(abs(y[..., None] - rows), abs(x[..., None] - columns)).min(axis=-1)
    return (away <= radius).ravel()


def kept(game: Game) -> list[int]:
    """Return the numbers of the choices that a local search considers: nodes, drawable cores, the end of the turn."""
    words = np.zeros(3, np.int64)
    _keep_local(game.records, words)
    return [
        choice
        for choice in range(3 * BITS_PER_WORD)
        if int(words[choice // BITS_PER_WORD]) >> choice % BITS_PER_WORD & 1
    ]


@pytest.mark.parametrize("size", [(3, 3), (10, 10), (12, 5), (4, 12)], ids=str)
def test_local_searches_consider_only_nodes_near_points(size: tuple[int, int]) -> None:
    for plies in range(0, 9, 2):
        game = random_game(*size, plies, "immediate", plies)
        assert kept(game) == [node for node in game.legal_actions() if near(game, RADIUS)[node]]


def test_local_searches_consider_all_regions_that_may_be_drawn() -> None:
    game = Game.from_board(np.array([[0, 1, 0, 1, 0], [1, 2, 1, 2, 1], [0, 1, 0, 1, 0]]), drawing=True)
    assert kept(game) == [6, 8, 15]  # two cores, and the end of the turn


@jit
def _keep_local(games, words) -> None:
    write_choices(games[0], words)
    keep_local(games[0], words)


@pytest.mark.parametrize("territory", ["declared", "immediate"])
@pytest.mark.parametrize("size", [(10, 10), (12, 5)], ids=str)
def test_playouts_stay_near_points_and_the_leader_wins(size: tuple[int, int], territory: str) -> None:
    streams, limits = make_streams(3), get_definition("kropki").dtypes[Game.new(*size).records.dtype]
    winners = set()
    for seed in range(40):
        game = random_game(*size, seed % 5, territory, seed)
        trace, rest = np.zeros(8 * limits.actions, np.int32), near(game, PLAYOUT_RADIUS)
        winner = int(_heavy_playout(game.copy().records, streams, trace))
        for turn in range(trace[0]):
            seat, action = trace_seat(trace, turn), trace_action(trace, turn)
            assert seat == game.to_move
            assert action >= len(rest) or rest[action]
            game.play(action)
        free = (game.board == 0) & (game.region == 0)
        assert not (free.ravel() & rest).any()
        if territory == "immediate":
            lead = int(np.diff(game.scores())[0])
            assert winner == (DRAWN if lead == 0 else int(lead > 0))
        winners.add(winner)
    assert len(winners) == 3


@jit
def _heavy_playout(games, streams, trace) -> int:
    return heavy_playout(games[0], streams, 0, trace, 0)


def test_a_local_search_captures() -> None:
    game = Game.from_board([[0, 1, 1, 0, 0], [1, 2, 2, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]])
    (action,) = make_agent("mcts:simulations=300,rave,local,playouts=heavy", "kropki").act(
        game.records, np.random.default_rng(0)
    )
    assert game.action_name(int(action)) == "D3"
