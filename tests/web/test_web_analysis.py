"""The analysis: exact results compared with brute force, candidate moves, variations, and messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from ninetka.brute import brute_force_winner, winners_of_moves
from ninetka.positions import Options, position_after, random_positions
from test_tables import ANN, BOB

from ninetka_agents import make_agent
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import load_variant
from ninetka_env.games.kropki.game import Game as Kropki
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Phase
from ninetka_web.games.adapter import adapter_of
from ninetka_web.server.connections import Connection
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.journal import dump_table
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.views import try_variation
from ninetka_web.thinking import analysis_service
from ninetka_web.thinking.agent_threads import AgentThreads
from ninetka_web.thinking.analysis import analyse, exact_json, solve, stage_independent_search, warm_up, win_shares
from ninetka_web.thinking.analysis_service import AnalysisRequest, AnalysisService

GAMES = ("ninetka", "go:size=5", "kropki:width=6,height=6")


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    warm_up(Game.new(2, neutral_placement="random"), "solver")  # otherwise compilation would use up the time limits


def midgame(spec: str, plies: int = 6) -> AnyGame:
    """Return a position after random plies."""
    variant, rng = load_variant(spec), np.random.default_rng(7)
    game = variant.game_class.start(variant)
    while game.ply < plies:
        game.play(int(rng.choice(game.legal_actions())))
    return game


def test_a_forced_pass_has_the_value_of_the_position() -> None:
    """The search tree contains only actions after the forced pass, so the analysis must add the pass itself."""
    num_winning = 0
    for seed in range(60):
        for game in random_positions(Options(2, auto_pass=False), seed):
            if not game.is_over and game.legal_actions().tolist() == [PASS]:
                (analysis,) = analyse(game, "mcts", [500])
                (candidate,) = analysis["candidates"]
                assert candidate["chance"] == pytest.approx(analysis["shares"][game.to_move], abs=1e-3)
                assert analysis["expected"][0]["action"] == PASS
                num_winning += analysis["shares"][game.to_move] > 0.5
                break
    assert num_winning > 0


def test_an_analysis_that_is_not_needed_any_more_stops_within_a_step() -> None:
    checks: list[bool] = []

    def stopped() -> bool:
        checks.append(len(checks) >= 3)
        return checks[-1]

    assert [result["simulations"] for result in analyse(midgame("ninetka"), "mcts", (500, 9_000), stopped)] == [500]
    assert checks == [False, False, False, True]
    game = position_after(Options(2), 0, Phase.MOVEMENT, 0)
    assert solve(game, 30, lambda: True) == (UNFINISHED, dict.fromkeys(game.legal_actions().tolist(), UNFINISHED))


# Exact results


@pytest.mark.parametrize("seed", range(6))
def test_exact_results_agree_with_brute_force(seed: int) -> None:
    game = position_after(Options(2), seed, Phase.MOVEMENT, 26)
    legal = game.legal_actions()
    exact = solve(game, 5)
    assert exact.is_complete
    assert exact.winner == brute_force_winner(game.records, 0)
    assert exact.winner_after == dict(zip(legal.tolist(), winners_of_moves(game.records, legal), strict=True))
    as_json = exact_json(game, exact)
    assert {move["action"]: move["winner"] for move in as_json["moves"]} == exact.winner_after
    assert as_json["winner"] == exact.winner


def lead_of(game: Kropki) -> int:
    """Return Black's final lead in points under perfect play, by plain search."""
    if game.is_over:
        return int(game.scores()[0] - game.scores()[1])
    leads = []
    for action in game.legal_actions().tolist():
        after = game.copy()
        after.play(action)
        leads.append(lead_of(after))
    return (min if game.to_move else max)(leads)


@pytest.mark.parametrize("seed", range(4))
def test_small_endgames_of_kropki_are_solved_with_draws(seed: int) -> None:
    game, rng = Kropki.new(4, 4, territory="immediate"), np.random.default_rng(seed)
    while game.records["free"][0] > 5:
        game.play(int(rng.choice(game.legal_actions())))
    lead = lead_of(game)
    assert solve(game, 1).winner == (DRAWN if lead == 0 else int(lead < 0))
    for action, winner in solve(game, 1).winner_after.items():
        after = game.copy()
        after.play(action)
        assert winner == (DRAWN if lead_of(after) == 0 else int(lead_of(after) < 0))


@pytest.mark.parametrize(("players", "phase"), [(3, Phase.MOVEMENT), (2, Phase.PLACEMENT)])
def test_positions_that_cannot_be_solved_are_not_searched(players: int, phase: Phase) -> None:
    game = position_after(Options(players), 0, phase, 4)
    assert not adapter_of("ninetka").study.solvable(game)
    assert solve(game, 1) == (UNFINISHED, {})
    assert not adapter_of("kropki").study.solvable(Kropki.new(39, 32))


def test_results_not_found_in_time_are_reported_as_unknown() -> None:
    game = position_after(Options(2), 0, Phase.MOVEMENT, 2)
    exact = solve(game, 1e-9)
    assert not exact.is_complete
    as_json = exact_json(game, exact)
    assert as_json["winner"] is None
    assert {move["winner"] for move in as_json["moves"]} == {None}


# Candidates


@pytest.mark.parametrize("engine", ["mcts", "net"])
def test_shares_of_finished_games_and_draws(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game = position_after(Options(3), 0, Phase.MOVEMENT, 100)
    shares = [float(seat == game.winner()) for seat in range(3)]
    empty = {"simulations": 0, "more": False, "candidates": [], "expected": []}
    assert list(analyse(game, engine, (16,))) == [empty | {"shares": shares}]
    assert win_shares([game], engine) == [shares]
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)
    assert next(analyse(game, engine, (16,)))["shares"] == win_shares([game], engine)[0] == [0.3333] * 3


@pytest.mark.parametrize("spec", GAMES)
def test_candidates_have_a_loss_and_a_certainty(spec: str) -> None:
    game = midgame(spec)
    few, many = analyse(game, "mcts", (20, 600))
    assert few["more"]
    assert not many["more"]
    assert abs(few["simulations"] - 20) <= 1
    assert abs(many["simulations"] - 600) <= 1  # the same tree was continued
    for result in (few, many):
        candidates = result["candidates"]
        assert {candidate["action"] for candidate in candidates} == set(game.legal_actions().tolist())
        best = candidates[0]
        assert best["lost"] == 0
        assert all(
            candidate["lost"] == pytest.approx(max(0, best["chance"] - candidate["chance"]), abs=2e-4)
            for candidate in candidates
        )
        assert sum(result["shares"]) == pytest.approx(1, abs=1e-3)
    assert many["candidates"][0]["sure"] > few["candidates"][0]["sure"]
    assert few["candidates"][-1]["sure"] < 0.4
    assert many["candidates"][0]["sure"] > 0.75
    variation = game.copy()
    assert many["expected"][0]["action"] == many["candidates"][0]["action"]
    for move in many["expected"]:
        assert move["seat"] == variation.to_move
        variation.play(move["action"])  # raises for an illegal move


@pytest.mark.parametrize("phase", [Phase.PLACEMENT, Phase.MOVEMENT])
def test_the_networks_first_candidate_is_what_its_agent_plays(phase: Phase) -> None:
    pytest.importorskip("torch")
    game = position_after(Options(3), 1, phase, 6)
    best = next(analyse(game, "net", (16,)))["candidates"][0]
    played = make_agent("net:simulations=16").act(game.records, np.random.default_rng(0))
    assert best["action"] == played[0]


def test_the_insight_describes_the_play_that_maxn_expects() -> None:
    game = position_after(Options(3), 1, Phase.MOVEMENT, 6)
    insight = adapter_of("ninetka").study.insight(game)
    assert insight["text"].startswith("By its evaluation ")
    end = game.copy()
    for move in insight["variation"]:
        end.play(move["action"])
    for seat, colour in enumerate(("Yellow", "Blue", "Orange")):
        assert f"{colour} {(end.section_owners() == seat).sum()}" in insight["text"]
    assert "expected play" not in adapter_of("ninetka").study.insight(Game.new(2))["text"]


# Variations


@pytest.mark.parametrize("spec", [GAMES[0], "go:ko=positional", GAMES[2]])
def test_trying_a_variation_does_not_change_the_table(spec: str) -> None:
    variant = load_variant(spec)
    defaults = {option.name: option.default for option in variant.definition.options}
    changed = {name: value for name, value in variant.options.items() if value != defaults[name]}
    table = create_table(Create(type="create", game=variant.definition.name, seats=["me", "me"], options=changed), ANN)
    for _ in range(5):
        table.play(ANN, len(table.actions), int(table.game.legal_actions()[0]))
    before = dump_table(table)
    expected = table.history.position(3)
    variation = []
    for _ in range(4):
        variation.append(int(expected.legal_actions()[0]))
        expected.play(variation[-1])
    position, changes = try_variation(table, 3, variation)
    assert position.records.tobytes() == expected.records.tobytes()  # including the history for superko
    assert [move["action"] for move in changes["moves"]] == variation
    assert changes["to_move"] == expected.to_move
    cells = table.adapter.board.cells(table.history.position(3)).tolist()
    for move in changes["moves"]:
        for cell, code in move["cells"]:
            cells[cell] = code
    assert cells == table.adapter.board.cells(expected).tolist()
    assert try_variation(table, 3, [])[0] == table.history.position(3)
    illegal = int(np.flatnonzero(table.history.position(3).legal_mask() == 0)[0])
    for ply, variation_to_refuse in ((3, [illegal]), (3, [5000]), (99, [])):
        with pytest.raises(RefusedError):
            try_variation(table, ply, variation_to_refuse)
    assert dump_table(table) == before


# Messages to connections


class ReadyWarmUp:
    """A warm-up for which every job is done."""

    def is_ready(self, job: object) -> bool:
        return True

    def is_compiling(self, job: object) -> bool:
        return False

    async def wait(self, job: object) -> None:
        return


def analysis_messages(
    position: AnyGame, games: list[AnyGame] | None = None, engine: str = "mcts"
) -> list[dict[str, Any]]:
    """Return the messages that an analysis sends. `games` has all positions of the game; without it, ask for a hint."""

    async def run() -> list[dict[str, Any]]:
        connection, threads = Connection(), AgentThreads()
        request = AnalysisRequest(connection.send, engine, position.name, 0, None, position)
        service = AnalysisService(threads, ReadyWarmUp())  # type: ignore[arg-type]
        work: Coroutine[Any, Any, None] = (
            service.run_hint(request) if games is None else service.run_analysis(request, games)
        )
        await asyncio.wait_for(work, 60)
        threads.close()
        return [json.loads(text) for text in connection._outbox]

    return asyncio.run(run())


def test_the_exact_result_is_sent_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_of("ninetka").study, "budgets", {"mcts": (50, 100)}, raising=False)
    game = position_after(Options(2), 2, Phase.MOVEMENT, 20)
    messages = analysis_messages(game, [game])
    assert messages[0]["type"] == "exact"
    # The first exact result is complete, so no second one is sent.
    assert [message["type"] for message in messages].count("exact") == 1
    assert {"analysis", "insight", "winners", "shares"} < {message["type"] for message in messages}
    assert next(message for message in messages if message["type"] == "winners")["winners"] == [messages[0]["winner"]]
    solver_messages = analysis_messages(game, [game], "solver")
    assert {message["type"] for message in solver_messages} == {"exact", "winners"}


def test_a_failed_analysis_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("the tree has fallen")

    monkeypatch.setattr(analysis_service, "analyse", fail)
    game = Game.new(2)
    for games in ([game], None):
        failed = next(message for message in analysis_messages(game, games) if message["type"] == "failed")
        assert failed["reason"] == "the tree has fallen"
        assert failed["engine"] == "mcts"


def test_a_hint_wins_if_a_win_is_known() -> None:
    for seed in range(8):
        game = position_after(Options(2), seed, Phase.MOVEMENT, 24)
        exact = solve(game, 5)
        (hint,) = analysis_messages(game)
        assert hint["type"] == "hint"
        assert hint["wins"] == (exact.winner == game.to_move)
        if hint["wins"]:
            assert exact.winner_after[hint["action"]] == game.to_move


def test_no_analysis_while_users_play_each_other() -> None:
    table = create_table(Create(type="create", seats=["me", "open"]), ANN)
    table.sit(BOB, 1, "", False)
    with pytest.raises(RefusedError):
        table.check_analysis(ANN)


def test_the_solver_plays_only_at_two_seats() -> None:
    assert adapter_of("ninetka").offer.spec("solver:nodes=100") == "solver:nodes=100,simulations=5000,threads=1"
    with pytest.raises(ValueError, match="plays at 2 seats, not at 3"):
        Create(type="create", seats=["me", "solver", "random"])
    assert Create(type="create", seats=["me", "solver"])
    game = position_after(Options(2), 1, Phase.MOVEMENT, 20)
    exact = solve(game, 5)
    action = int(make_agent(adapter_of("ninetka").offer.spec("solver")).act(game.records, np.random.default_rng(0))[0])
    assert exact.winner_after[action] == exact.winner or exact.winner != game.to_move


def test_the_timeline_uses_one_search_per_board():
    """Go and large boards of Kropki use RAVE. Small boards of Kropki, and 9tka (even its slides), use Gumbel search."""
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    def searched(spec: str, plies: int = 0) -> str:
        variant = load_variant(spec)
        game = variant.game_class.start(variant, 0)
        for _ in range(plies):
            game.play(int(game.legal_actions()[0]))
        searches = make_searches(lambda records: None, game.name, SearchSettings(4))  # type: ignore[arg-type]
        return type(stage_independent_search(searches, game.records)).__name__

    assert searched("kropki:width=14,height=14") == searched("go") == "GuidedRaveSearch"
    assert searched("kropki") == searched("ninetka") == searched("ninetka", plies=50) == "GumbelSearch"
