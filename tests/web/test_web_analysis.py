"""The analysis: exact results compared with plain search, candidates, variations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from ninetka.brute import winner_by_force, winners_of_moves
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
from ninetka_web.server.connections import Guest
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.journal import text_of
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.views import try_line
from ninetka_web.thinking import analysts
from ninetka_web.thinking.analysis import analyse, same_search, solve, told_exact, warm_up, win_shares
from ninetka_web.thinking.analysts import Analysts, Question
from ninetka_web.thinking.players import Players

GAMES = ("ninetka", "go:size=5", "kropki:width=6,height=6")


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    warm_up(Game.new(2, neutral_placement="random"), "solver")  # so that time limits exclude compilation


def midgame(spec: str, plies: int = 6) -> AnyGame:
    """Return a position after random plies."""
    variant, rng = load_variant(spec), np.random.default_rng(7)
    game = variant.game_class.start(variant)
    while game.ply < plies:
        game.play(int(rng.choice(game.legal_actions())))
    return game


def test_a_forced_pass_is_worth_what_the_position_is() -> None:
    """The tree contains the actions of the player who moves after the pass."""
    found = 0
    for seed in range(60):
        for game in random_positions(Options(2, auto_pass=False), seed):
            if not game.is_over and game.legal_actions().tolist() == [PASS]:
                (told,) = analyse(game, "mcts", [500])
                (candidate,) = told["candidates"]
                assert candidate["chance"] == pytest.approx(told["shares"][game.to_move], abs=1e-3)
                assert told["expected"][0]["action"] == PASS
                found += told["shares"][game.to_move] > 0.5
                break
    assert found > 0


def test_what_nobody_waits_for_any_more_stops_in_the_middle_of_a_step() -> None:
    looks: list[bool] = []

    def stopped() -> bool:
        looks.append(len(looks) >= 3)
        return looks[-1]

    assert [found["simulations"] for found in analyse(midgame("ninetka"), "mcts", (500, 9_000), stopped)] == [500]
    assert looks == [False, False, False, True]
    game = position_after(Options(2), 0, Phase.MOVEMENT, 0)
    assert solve(game, 30, lambda: True) == (UNFINISHED, dict.fromkeys(game.legal_actions().tolist(), UNFINISHED))


# Exact results


@pytest.mark.parametrize("seed", range(6))
def test_exact_moves_are_those_of_plain_search(seed: int) -> None:
    game = position_after(Options(2), seed, Phase.MOVEMENT, 26)
    legal = game.legal_actions()
    exact = solve(game, 5)
    assert exact.is_whole
    assert exact.winner == winner_by_force(game.records, 0)
    assert exact.after == dict(zip(legal.tolist(), winners_of_moves(game.records, legal), strict=True))
    told = told_exact(game, exact)
    assert {move["action"]: move["winner"] for move in told["moves"]} == exact.after
    assert told["winner"] == exact.winner


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
def test_small_ends_of_kropki_are_solved_with_their_draws(seed: int) -> None:
    game, rng = Kropki.new(4, 4, territory="immediate"), np.random.default_rng(seed)
    while game.records["free"][0] > 5:
        game.play(int(rng.choice(game.legal_actions())))
    lead = lead_of(game)
    assert solve(game, 1).winner == (DRAWN if lead == 0 else int(lead < 0))
    for action, winner in solve(game, 1).after.items():
        after = game.copy()
        after.play(action)
        assert winner == (DRAWN if lead_of(after) == 0 else int(lead_of(after) < 0))


@pytest.mark.parametrize(("players", "phase"), [(3, Phase.MOVEMENT), (2, Phase.PLACEMENT)])
def test_what_cannot_be_solved_is_left_alone(players: int, phase: Phase) -> None:
    game = position_after(Options(players), 0, phase, 4)
    assert not adapter_of("ninetka").study.solvable(game)
    assert solve(game, 1) == (UNFINISHED, {})
    assert not adapter_of("kropki").study.solvable(Kropki.new(39, 32))


def test_what_is_not_found_out_in_time_is_told_as_unknown() -> None:
    game = position_after(Options(2), 0, Phase.MOVEMENT, 2)
    exact = solve(game, 1e-9)
    assert not exact.is_whole
    told = told_exact(game, exact)
    assert told["winner"] is None
    assert {move["winner"] for move in told["moves"]} == {None}


# Candidates


@pytest.mark.parametrize("engine", ["mcts", "net"])
def test_a_finished_game_is_its_winners_and_a_draw_is_shared(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game = position_after(Options(3), 0, Phase.MOVEMENT, 100)
    shares = [float(seat == game.winner()) for seat in range(3)]
    nothing = {"simulations": 0, "more": False, "candidates": [], "expected": []}
    assert list(analyse(game, engine, (16,))) == [nothing | {"shares": shares}]
    assert win_shares([game], engine) == [shares]
    monkeypatch.setattr(Game, "winner", lambda game: DRAWN)
    assert next(analyse(game, engine, (16,)))["shares"] == win_shares([game], engine)[0] == [0.3333] * 3


@pytest.mark.parametrize("spec", GAMES)
def test_moves_are_told_with_what_they_lose_and_how_sure_that_is(spec: str) -> None:
    game = midgame(spec)
    few, many = analyse(game, "mcts", (20, 600))
    assert few["more"]
    assert not many["more"]
    assert abs(few["simulations"] - 20) <= 1
    assert abs(many["simulations"] - 600) <= 1  # the same tree was continued
    for found in (few, many):
        candidates = found["candidates"]
        assert {one["action"] for one in candidates} == set(game.legal_actions().tolist())
        best = candidates[0]
        assert best["lost"] == 0
        assert all(one["lost"] == pytest.approx(max(0, best["chance"] - one["chance"]), abs=2e-4) for one in candidates)
        assert sum(found["shares"]) == pytest.approx(1, abs=1e-3)
    assert many["candidates"][0]["sure"] > few["candidates"][0]["sure"]
    assert few["candidates"][-1]["sure"] < 0.4
    assert many["candidates"][0]["sure"] > 0.75
    line = game.copy()
    assert many["expected"][0]["action"] == many["candidates"][0]["action"]
    for move in many["expected"]:
        assert move["seat"] == line.to_move
        line.play(move["action"])  # raises for an illegal move


@pytest.mark.parametrize("phase", [Phase.PLACEMENT, Phase.MOVEMENT])
def test_the_networks_first_candidate_is_what_its_agent_plays(phase: Phase) -> None:
    pytest.importorskip("torch")
    game = position_after(Options(3), 1, phase, 6)
    best = next(analyse(game, "net", (16,)))["candidates"][0]
    played = make_agent("net:simulations=16").act(game.records, np.random.default_rng(0))
    assert best["action"] == played[0]


def test_maxn_is_told_in_words() -> None:
    game = position_after(Options(3), 1, Phase.MOVEMENT, 6)
    told = adapter_of("ninetka").study.insight(game)
    assert told["words"].startswith("By its evaluation ")
    end = game.copy()
    for move in told["line"]:
        end.play(move["action"])
    for seat, colour in enumerate(("Yellow", "Blue", "Orange")):
        assert f"{colour} {(end.section_owners() == seat).sum()}" in told["words"]
    assert "expected play" not in adapter_of("ninetka").study.insight(Game.new(2))["words"]


# Variations


@pytest.mark.parametrize("spec", [GAMES[0], "go:ko=positional", GAMES[2]])
def test_a_line_that_is_tried_leaves_the_table_alone(spec: str) -> None:
    variant = load_variant(spec)
    usual = {one.name: one.default for one in variant.definition.options}
    changed = {name: value for name, value in variant.options.items() if value != usual[name]}
    table = create_table(Create(type="create", game=variant.definition.name, seats=["me", "me"], options=changed), ANN)
    for _ in range(5):
        table.play(ANN, len(table.actions), int(table.game.legal_actions()[0]))
    before = text_of(table)
    expected = table.course.position(3)
    line = []
    for _ in range(4):
        line.append(int(expected.legal_actions()[0]))
        expected.play(line[-1])
    position, told = try_line(table, 3, line)
    assert position.records.tobytes() == expected.records.tobytes()  # including the history for superko
    assert [move["action"] for move in told["moves"]] == line
    assert told["to_move"] == expected.to_move
    cells = table.adapter.board.cells(table.course.position(3)).tolist()
    for move in told["moves"]:
        for cell, code in move["cells"]:
            cells[cell] = code
    assert cells == table.adapter.board.cells(expected).tolist()
    assert try_line(table, 3, [])[0] == table.course.position(3)
    illegal = int(np.flatnonzero(table.course.position(3).legal_mask() == 0)[0])
    for ply, bad in ((3, [illegal]), (3, [5000]), (99, [])):
        with pytest.raises(RefusedError):
            try_line(table, ply, bad)
    assert text_of(table) == before


# Messages to connections


class NoWait:
    """A warm-up for which every job is done."""

    def is_ready(self, job: object) -> bool:
        return True

    def is_compiling(self, job: object) -> bool:
        return False

    async def wait(self, job: object) -> None:
        return


def heard(position: AnyGame, games: list[AnyGame] | None = None, engine: str = "mcts") -> list[dict[str, Any]]:
    """Return the messages of an analysis of a position; without `games`, those of a hint."""

    async def ask() -> list[dict[str, Any]]:
        guest, players = Guest(), Players()
        asked = Question(guest.tell, engine, position.name, 0, None, position)
        thinking = Analysts(players, NoWait())  # type: ignore[arg-type]
        work: Coroutine[Any, Any, None] = thinking.hint(asked) if games is None else thinking.explain(asked, games)
        await asyncio.wait_for(work, 60)
        players.close()
        return [json.loads(text) for text in guest._waiting]

    return asyncio.run(ask())


def test_perfect_play_is_told_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_of("ninetka").study, "budgets", {"mcts": (50, 100)}, raising=False)
    game = position_after(Options(2), 2, Phase.MOVEMENT, 20)
    told = heard(game, [game])
    assert told[0]["type"] == "exact"
    assert [one["type"] for one in told].count("exact") == 1  # the first message was complete
    assert {"analysis", "insight", "winners", "shares"} < {one["type"] for one in told}
    assert next(one for one in told if one["type"] == "winners")["winners"] == [told[0]["winner"]]
    alone = heard(game, [game], "solver")
    assert {one["type"] for one in alone} == {"exact", "winners"}


def test_an_analysis_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("the tree has fallen")

    monkeypatch.setattr(analysts, "analyse", fail)
    game = Game.new(2)
    for games in ([game], None):
        failed = next(one for one in heard(game, games) if one["type"] == "failed")
        assert failed["reason"] == "the tree has fallen"
        assert failed["engine"] == "mcts"


def test_a_hint_wins_where_that_is_known() -> None:
    for seed in range(8):
        game = position_after(Options(2), seed, Phase.MOVEMENT, 24)
        exact = solve(game, 5)
        (hint,) = heard(game)
        assert hint["type"] == "hint"
        assert hint["wins"] == (exact.winner == game.to_move)
        if hint["wins"]:
            assert exact.after[hint["action"]] == game.to_move


def test_people_get_no_analysis_against_one_another() -> None:
    table = create_table(Create(type="create", seats=["me", "open"]), ANN)
    table.sit(BOB, 1, "", False)
    with pytest.raises(RefusedError):
        table.check_analysis(ANN)


def test_the_solver_sits_at_tables_of_two_alone() -> None:
    assert adapter_of("ninetka").offer.spec("solver:nodes=100") == "solver:nodes=100,simulations=5000,threads=1"
    with pytest.raises(ValueError, match="plays at 2 seats, not at 3"):
        Create(type="create", seats=["me", "solver", "random"])
    assert Create(type="create", seats=["me", "solver"])
    game = position_after(Options(2), 1, Phase.MOVEMENT, 20)
    exact = solve(game, 5)
    action = int(make_agent(adapter_of("ninetka").offer.spec("solver")).act(game.records, np.random.default_rng(0))[0])
    assert exact.after[action] == exact.winner or exact.winner != game.to_move


def test_positions_after_each_move_are_searched_in_one_way():
    """The search depends on the board; in 9tka it is the Gumbel search, although slides have a separate search."""
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    def searched(spec: str, plies: int = 0) -> str:
        variant = load_variant(spec)
        game = variant.game_class.start(variant, 0)
        for _ in range(plies):
            game.play(int(game.legal_actions()[0]))
        searches = make_searches(lambda records: None, game.name, SearchSettings(4))  # type: ignore[arg-type]
        return type(same_search(searches, game.records)).__name__

    assert searched("kropki:width=14,height=14") == searched("go") == "GuidedRaveSearch"
    assert searched("kropki") == searched("ninetka") == searched("ninetka", plies=50) == "GumbelSearch"
