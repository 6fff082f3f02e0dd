"""Tests of `ninetka_train.ninetka.blunders` against plain search to the end."""

from __future__ import annotations

import numpy as np
import pytest
from ninetka.brute import brute_force_winner, winners_of_moves
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.ninetka.solver.solver import LOST, WON
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.cli import app
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.lockstep import NO_AGENT
from ninetka_train.judging.results import NO_ACTION, Results
from ninetka_train.ninetka.blunders import exact_figures, find_decisions


@pytest.fixture(scope="module")
def results() -> Results:
    agents = [make_agent("random"), make_agent("maxn:depth=2")]
    return play_games(agents, 2, 8, seed=5, neutral_placement="random", turn_order="continue")


@pytest.mark.slow
def test_decisions_match_the_game_and_brute_force(results):
    decisions = find_decisions(results, moves=True)
    assert (decisions.played == find_decisions(results).played).all()
    place, checked = 0, 0
    for index in range(len(results.winners)):
        game = Game(results.starts[index // results.schedule.rotation][None].copy())
        slides = 0
        for action in results.actions[index]:
            if action == NO_ACTION:
                break
            if game.phase == Phase.MOVEMENT:
                legal = game.legal_actions()
                assert (decisions.games[place], decisions.slides[place]) == (index, slides)
                assert decisions.movers[place] == game.to_move
                assert decisions.agents[place] == results.schedule.seatings[index, game.to_move]
                assert decisions.legal[place] == len(legal)
                if slides >= 27:
                    winners = np.array(winners_of_moves(game.records, legal))
                    assert decisions.winners[place] == brute_force_winner(game.records, 0)
                    assert decisions.winning[place] == (winners == game.to_move).sum()
                    kept = winners[legal == action] == game.to_move
                    assert decisions.played[place] == (WON if kept else LOST)
                    checked += 1
                place, slides = place + 1, slides + 1
            game.play(int(action))
    assert place == len(decisions.games)
    assert checked > 20


@pytest.mark.slow
def test_figures_count_decisions_of_each_agent(results):
    decisions, (first, second) = find_decisions(results), exact_figures(results)
    assert (first.agent, second.agent) == ("random", "maxn:depth=2")
    assert first.decisions + second.decisions == len(decisions.games)
    assert first.won + second.won == decisions.won.sum()
    mine = (decisions.agents == 0) & (decisions.winners == decisions.movers)
    assert first.blunders == (mine & (decisions.played == LOST)).sum() > 0
    assert first.share == first.blunders / first.won
    assert first.interval is not None
    assert first.interval[0] < first.share < first.interval[1]


def test_a_spent_budget_counts_as_unsolved(results):
    decisions = find_decisions(results, nodes=1)
    assert decisions.unknown[decisions.slides == 0].all()
    assert not decisions.won[decisions.unknown].any()
    assert not decisions.blunders[decisions.unknown].any()


def test_more_players_are_refused_before_a_game_is_played(monkeypatch):
    done = CliRunner().invoke(app, ["evaluate", "random", "--players", "3", "--exact"])
    assert done.exit_code == 2
    assert "perfect play is known for 2 players only" in done.output
    with pytest.raises(ValueError, match="num_players=3"):
        summarise(play_games([make_agent("random")], 3, 2), exact=True)


def test_the_command_prints_the_blunder_table():
    done = CliRunner().invoke(app, ["evaluate", "random", "--games", "2", "--exact"])
    assert done.exit_code == 0, done.output
    assert "blunders % of won" in done.output


def test_opening_moves_are_counted_for_no_agent():
    """Random opening slides are solved but counted for no agent."""
    results = play_games([make_agent("random")], 2, 2, seed=5, opening_plies=50)
    decisions = find_decisions(results, nodes=10)
    plies = [(actions != NO_ACTION).sum() for actions in results.actions]
    own = sum(int(count) - 50 for count in plies)
    assert (decisions.agents == NO_AGENT).sum() > 0
    assert (decisions.agents == 0).sum() == own == exact_figures(results)[0].decisions
