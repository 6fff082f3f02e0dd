"""What the table tells of a position under perfect play, against plain search to the end."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("fastapi")

from conftest import Options, position_after
from ninetka.brute import winner_by_force, winners_of_moves

from ninetka_agents import make_agent
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_web.analysis import analyse, exact_moves, win_shares
from ninetka_web.games.ninetka import ADAPTER


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    ADAPTER.warm_up_analysis(Game.new(2))  # so that no search's time is spent by the compiler


@pytest.mark.parametrize("seed", range(6))
def test_exact_moves_are_those_of_plain_search(seed: int) -> None:
    game = position_after(Options(2), seed, Phase.MOVEMENT, 26)
    assert ADAPTER.solvable(game)
    legal = game.legal_actions()
    winners = dict(zip(legal.tolist(), winners_of_moves(game.records, legal), strict=True))
    told = exact_moves(game)
    assert told["winner"] == ADAPTER.exact_winner(game) == winner_by_force(game.records, 0)
    named = [[action, game.action_name(action)] for action in winners]
    assert told["won"] == [each for each in named if winners[each[0]] == game.to_move]
    assert told["lost"] == [each for each in named if winners[each[0]] != game.to_move]


@pytest.mark.parametrize(("players", "phase"), [(3, Phase.MOVEMENT), (2, Phase.PLACEMENT)])
def test_what_cannot_be_solved_is_left_alone(players: int, phase: Phase) -> None:
    game = position_after(Options(players), 0, phase, 4)
    assert not ADAPTER.solvable(game)
    assert ADAPTER.exact_winner(game) == UNFINISHED


def test_what_is_not_found_out_in_time_is_told_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ninetka_web.games.ninetka.EXACT_SECONDS", 1e-9)
    game = position_after(Options(2), 0, Phase.MOVEMENT, 2)
    assert ADAPTER.exact_winner(game) == UNFINISHED
    assert exact_moves(game) == {"winner": None, "won": [], "lost": []}


@pytest.mark.parametrize("engine", ["mcts", "net"])
def test_a_finished_game_is_its_winners_and_a_draw_is_shared(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game = position_after(Options(3), 0, Phase.MOVEMENT, 100)
    shares = [float(seat == game.winner()) for seat in range(3)]
    assert analyse(game, engine, 16) == {"simulations": 0, "candidates": [], "shares": shares}
    assert win_shares([game], engine) == [shares]
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)
    assert analyse(game, engine, 16)["shares"] == win_shares([game], engine)[0] == [0.3333] * 3


@pytest.mark.parametrize("phase", [Phase.PLACEMENT, Phase.MOVEMENT])
def test_the_networks_first_candidate_is_what_its_agent_plays(phase: Phase) -> None:
    pytest.importorskip("torch")
    game = position_after(Options(3), 1, phase, 6)
    best = analyse(game, "net", 16)["candidates"][0]
    played = make_agent("net:simulations=16").act(game.records, np.random.default_rng(0))
    assert best["action"] == played[0]
