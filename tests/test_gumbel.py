"""Gumbel search: it proves what exact solving proves, and batches, noise and legality do as they promise."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conftest import Options, position_after, random_position, random_positions  # noqa: E402

from agents.agent import GameRandom, game_streams  # noqa: E402
from agents.gumbel import GumbelSearch, SearchOptions, halving_schedule, network_evaluate  # noqa: E402
from agents.network import Network, NetworkConfig  # noqa: E402
from agents.policy import NetAgent  # noqa: E402
from ninetka_env.game import Game  # noqa: E402
from ninetka_env.geometry import PASS  # noqa: E402
from ninetka_env.rules import GAME, Phase, Records  # noqa: E402

SIMULATIONS = 24


@pytest.fixture(autouse=True)
def one_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@functools.cache
def untrained() -> Network:
    torch.manual_seed(0)
    return Network(NetworkConfig(width=16, blocks=1)).eval()


def make_search(simulations=SIMULATIONS, threads=1, **options) -> GumbelSearch:
    return GumbelSearch(network_evaluate(untrained()), SearchOptions(simulations, **options), threads)


def records_of(games: list[Game]) -> Records:
    return np.concatenate([game.records for game in games])


@functools.cache
def mixed_games() -> Records:
    """Positions of all phases and numbers of players, with and without automatic passes, none of them over."""
    plies = [0, 3, 8, 9, 20, 44, 45, 55, 60]
    games = [
        random_position(Options(players, auto_pass=auto_pass), 7 * ply + players, ply)
        for players in (2, 3, 4)
        for auto_pass in (True, False)
        for ply in plies
    ]
    return records_of([game for game in games if not game.is_over])


@functools.cache
def forced_pass() -> Game:
    for seed in range(100):
        for plies in range(50, 80):
            game = random_position(Options(3, auto_pass=False), seed, plies)
            if game.legal_actions().tolist() == [PASS]:
                return game
    raise AssertionError("none found")


# Exact solving, by outcome


def after(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def winners(game: Game) -> frozenset[int]:
    """Return the seats that may win if everyone plays for themselves, whatever those do who cannot win any more."""
    if game.is_over:
        return frozenset([game.winner()])
    children = [winners(after(game, int(action))) for action in game.legal_actions()]
    sure = frozenset([game.to_move])
    return sure if sure in children else frozenset().union(*children)


def flipped(game: Game) -> int:
    """Return what a search would believe that negates one value from ply to ply: 1 if the seat to move wins."""
    if game.is_over:
        return 1 if game.winner() == game.to_move else -1
    return max(-flipped(after(game, int(action))) for action in game.legal_actions())


class Ending(NamedTuple):
    """A position where some actions surely win and all others surely lose."""

    game: Game
    best: list[int]
    moves_twice: bool  # after each of the best, the same seat moves again
    fools_flipping: bool  # negating one value from ply to ply prefers a losing action


def solve(game: Game) -> Ending | None:
    actions, seat = game.legal_actions().tolist(), game.to_move
    outcomes = [winners(after(game, action)) for action in actions]
    best = [action for action, outcome in zip(actions, outcomes, strict=True) if outcome == {seat}]
    if not best or sum(seat in outcome for outcome in outcomes) != len(best) or len(best) == len(actions):
        return None
    nexts = [after(game, action) for action in best]
    beliefs = {action: -flipped(after(game, action)) for action in actions}
    fooled = max(beliefs.values()) > max(beliefs[action] for action in best)
    return Ending(game, best, all(not one.is_over and one.to_move == seat for one in nexts), fooled)


@functools.cache
def ending_of(players: int, seed: int, stones: int) -> Ending | None:
    """Solve a random game as soon as at most so many stones are left that can slide."""
    for game in random_positions(Options(players), seed):
        if game.phase == Phase.MOVEMENT and game.movable().sum() <= stones:
            return None if game.is_over else solve(game.copy())
    raise AssertionError("every game gets there")
