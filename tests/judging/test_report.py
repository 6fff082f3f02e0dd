"""Tests of what a match prints: the answer in a sentence, tables in narrow terminals, and the running score."""

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from rich.console import Console

from ninetka_agents import make_agent
from ninetka_train.commands.match_runner import running_score
from ninetka_train.judging.answer import answer
from ninetka_train.judging.arena import make_match, play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.gate import Gate
from ninetka_train.judging.ratings_page import RATINGS, read_ratings
from ninetka_train.judging.report import print_report
from ninetka_train.judging.results import Results

LONG = "mcts:simulations=2000,exact=200,exploration=0.7"


def named(name):
    agent = make_agent("random")
    agent.name = name
    return agent


def play(names, **options) -> Results:
    return play_games([named(name) for name in names], **{"num_games": 20, "seed": 1} | options)


def printed(evaluation, width, **options) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    print_report(evaluation, console, **options)
    return console.export_text()


def with_winners(results: Results, agents) -> Results:
    """Return the results of a two-player match with other winners: the agent with the given number wins each game."""
    seatings = results.schedule.seatings
    winners = [seating.tolist().index(agent) for seating, agent in zip(seatings, agents, strict=True)]
    return dataclasses.replace(results, winners=results.winners * 0 + winners)


def one_wins(share, num_games=40) -> Results:
    """Return a match in which agent `one` wins a share of its games in each seat."""
    results = play(["one", "two"], num_games=num_games)
    first = round(share * num_games / 2)
    seats = [[0] * first + [1] * (num_games // 2 - first), [1] * (num_games // 2 - first) + [0] * first]
    return with_winners(results, [agent for pair in zip(*seats, strict=True) for agent in pair])


def test_the_answer_says_who_wins():
    for winner, loser, share in (("one", "two", 0.75), ("two", "one", 0.25)):
        found = answer(summarise(one_wins(share)))
        assert found.startswith(f"{winner} beats {loser}: 75.0 % [59.8, 85.8], +190 Elo [")
    even = "no difference is shown between one and two: one wins 50.0 % [35.2, 64.8], +0 Elo ["
    assert answer(summarise(one_wins(0.5))).startswith(even)


def test_games_of_a_rotation_group_are_not_independent():
    """Here both games of each group have the same winner, so 40 games show as much as 20."""
    pairs = with_winners(play(["one", "two"], num_games=40), [0] * 30 + [1] * 10)
    assert answer(summarise(pairs)).startswith("no difference is shown between one and two: one wins 75.0 % ")


@pytest.mark.parametrize("anchor", ["one", "two"])
def test_the_answer_does_not_depend_on_the_anchor(anchor):
    results = one_wins(0.75)
    assert answer(summarise(results, anchor=anchor)) == answer(summarise(results))


def test_the_answer_names_the_seats_of_more_players():
    evaluation = summarise(play(["one", "two"], num_players=3, num_games=30))
    assert "one one against two two; " in answer(evaluation)
    assert "% is expected" in answer(evaluation)


def test_the_answer_of_one_and_of_many_agents():
    assert answer(summarise(play(["one"]))).startswith("one plays itself: seat 0 wins ")
    assert "has the highest rating of 3 agents: " in answer(summarise(play(["one", "two", "three"])))
    assert answer(summarise(play(["one", "two", "three"]), anchor="two")).endswith(" (two 0)")


def with_wide_figures(evaluation):
    """Return an evaluation with the widest figures of long matches with draws."""

    def widen(one):
        return dataclasses.replace(one, share=1.0, interval=(0.9996, 1.0), games=9999)

    wide = {"wins": 9999, "draws": 9999, "score": -100.25, "elo": -1999.0, "elo_interval": (-2222.0, -1888.0)}
    agents = [
        dataclasses.replace(widen(agent), **wide, seats=[widen(seat) for seat in agent.seats])
        for agent in evaluation.agents
    ]
    return dataclasses.replace(evaluation, agents=agents)


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_tables_fit_into_80_columns_and_names_are_whole(num_players, count):
    names = [f"{LONG},threads={number}" for number in range(count)]
    options = {"tournament": True} if num_players == 2 and count > 1 else {}
    evaluation = with_wide_figures(summarise(play(names, num_players=num_players, num_games=12), **options))
    text = printed(evaluation, 80)
    lines = text.splitlines()
    for name in names:
        assert any(line.endswith(f"  {name}") for line in lines), text
    tables = text[text.index("\nResults") : text.index("\n9tka, ")]
    assert max(map(len, tables.splitlines())) <= 80
    assert "…" not in text
    wide = printed(evaluation, 400)
    assert f"A  {names[0]}" not in wide
    assert f"{names[0]} " in wide[wide.index("\nResults") :]


@pytest.mark.parametrize(("num_games", "words"), [(2, "1 game in"), (4, "2 games in")])
def test_one_game_is_in_the_singular(num_games, words):
    text = printed(summarise(play(["one", "two"], num_games=num_games)), 120)
    assert f"wins % [95 %] of {words} each seat" in " ".join(text.split())


def test_a_ranked_report_lists_the_strongest_agent_first():
    evaluation = summarise(with_winners(play(["weak", "strong"]), [1] * 20))
    for ranked, first in ((False, "weak"), (True, "strong")):
        lines = printed(evaluation, 120, ranked=ranked).splitlines()
        rows = lines[lines.index(next(line for line in lines if line.startswith("Results"))) + 3 :]
        assert rows[0].split()[0] == first


def test_the_score_is_known_while_a_batch_is_played():
    found, gate = [], Gate(0.4, 0.6)
    results = None

    def start(started):
        nonlocal results
        results = started

    def show(done):
        found.append((int(results.is_over.sum()), running_score(results), running_score(results, gate)))

    match = make_match(["random", "maxn:depth=1"], num_games=20, batch=20)
    match.play(progress=show, on_start=start)
    assert found[0] == (0, "", "")
    assert {over for over, *_ in found} > {0, 20}  # games of 9tka differ in length
    shares = results.shares[:, 0]
    assert found[-1][1] == f"first agent {100 * shares.mean():.1f} %"
    assert found[-1][2].startswith(f"{found[-1][1]}, LLR ")
    three = play(["one", "two", "three"])
    assert running_score(three) == ""


def test_ratings_are_read_from_the_pages_of_the_documentation():
    for game in ("ninetka", "go", "kropki"):
        found = read_ratings(game)
        assert re.fullmatch(r"[+-]\d+( \[[+-]\d+, [+-]\d+\])?", found["random"])
        assert "simulations=64" in found
        assert len(found) == (RATINGS / f"{game}.md").read_text(encoding="utf-8").count("\n| `")
    assert read_ratings("other") == {}
