"""Test matches: schedules, games, agents, figures, draws, ratings and reports."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from itertools import permutations

import choix
import numba
import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binomtest, t

from ninetka_agents import make_agent
from ninetka_agents.agent import PerGameGenerator, game_streams
from ninetka_env.api.records import GameRecord
from ninetka_env.core.files import check_writable, replace_file
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.games.ninetka.definition import MAX_PLIES
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import STATE_DTYPE, Phase
from ninetka_train.judging import evaluate as ev
from ninetka_train.judging import ratings
from ninetka_train.judging.arena import AgentError, make_match, play_games
from ninetka_train.judging.ratings import clustered_interval, wilson_interval
from ninetka_train.judging.report import evaluation_dict, heading_lines, json_text, print_report
from ninetka_train.judging.results import NO_ACTION, MatchSettings, MoveTimes, Results, unique_names
from ninetka_train.judging.saved_games import game_records
from ninetka_train.judging.schedule import make_lineups, make_schedule

RANDOM = make_agent("random")


class Lowest:
    """Plays the lowest legal action, and stores the number of games of each call."""

    def __init__(self, name="lowest"):
        self.name = name
        self.calls = []

    def act(self, games, rng):
        self.calls.append(len(games))
        return np.array([Game(games[i : i + 1]).legal_actions()[0] for i in range(len(games))])


class Returns:
    """Returns `answer(games)` as its actions."""

    name = "odd"

    def __init__(self, answer):
        self.answer = answer

    def act(self, games, rng):
        return self.answer(games)


def same_games(one, two):
    return (
        (one.actions == two.actions).all() and (one.winners == two.winners).all() and (one.scores == two.scores).all()
    )


# Schedule


@pytest.mark.parametrize(
    ("agents", "players", "lineups"),
    [
        (1, 3, [(0, 0, 0)]),
        (2, 2, [(0, 1)]),
        (2, 4, [(0, 1, 1, 1)]),
        (3, 4, [(0, 1, 2, 2)]),
        (3, 2, [(0, 1), (0, 2), (1, 2)]),
        (4, 3, [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]),
    ],
)
def test_lineups(agents, players, lineups):
    assert make_lineups(agents, players) == lineups


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("agents", [1, 2, 3, 4, 5])
def test_every_seating_of_a_lineup_is_played_equally_often(agents, players):
    schedule = make_schedule(agents, players, 50)
    games = schedule.games_per_lineup
    assert games >= 50 > games - schedule.rotation
    for number, lineup in enumerate(schedule.lineups):
        seatings = Counter(map(tuple, schedule.seatings[number * games : (number + 1) * games].tolist()))
        assert set(seatings) == set(permutations(lineup))
        assert set(seatings.values()) == {games // schedule.rotation} == set(schedule.groups_by_lineup)
    for agent in range(agents):
        assert len(set((schedule.seatings == agent).sum(axis=0))) == 1


def test_agents_can_be_given_as_specs():
    specs = ["maxn:depth=1", "random"]
    named, made = (play_games(agents, 2, 4) for agents in (specs, [make_agent(spec) for spec in specs]))
    assert named.settings.agents == tuple(specs)
    assert named.winners.tolist() == made.winners.tolist()


def test_names_are_made_unique():
    assert unique_names(["a", "b", "a", "a", "a (2)"]) == ("a", "b", "a (2)", "a (3)", "a (2) (2)")


# Games


def test_results_are_those_of_the_games_played():
    results = play_games([RANDOM, Lowest()], 3, 20, seed=5, neutral_placement="random", turn_order="continue", batch=8)
    assert results.schedule.games_per_lineup == 21
    for game, record in enumerate(game_records(results)):
        options = {"num_players": 3, "neutral_placement": "random", "turn_order": "continue"}
        played = GameRecord.of(record.actions, drawn=record.drawn, **options)
        assert played.scores == record.scores == tuple(results.scores[game])
        assert played.winner == record.winner == results.winners[game]
        assert [record.tags[colour] for colour in ("yellow", "blue", "orange")] == [
            results.settings.agents[agent] for agent in results.schedule.seatings[game]
        ]
    assert results.times.moves.sum() == (results.actions != NO_ACTION).sum()


def test_games_of_a_group_share_their_random_start():
    results = play_games([RANDOM, Lowest()], 2, 20, seed=1, neutral_placement="random")
    starts = [record.drawn for record in game_records(results)]
    assert starts[::2] == starts[1::2]
    assert len(set(starts)) == 10


def test_results_do_not_depend_on_batch_and_threads():
    agents = [RANDOM, make_agent("maxn:depth=2"), Lowest()]
    reference = play_games(agents, 2, 12, seed=7)
    assert same_games(reference, play_games(agents, 2, 12, seed=7, batch=1))
    assert same_games(reference, play_games(agents, 2, 12, seed=7, batch=5))
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert same_games(reference, play_games(agents, 2, 12, seed=7))
    finally:
        numba.set_num_threads(threads)


def test_seed_decides_results_and_longer_match_extends_shorter_one():
    short = play_games([RANDOM, Lowest()], 2, 10, seed=3)
    long = play_games([RANDOM, Lowest()], 2, 30, seed=3)
    assert (long.actions[:10] == short.actions).all()
    assert not (play_games([RANDOM, Lowest()], 2, 10, seed=4).actions == short.actions).all()
    groups = {tuple(actions) for actions in long.actions.tolist()}
    assert len(groups) == 30


@pytest.mark.parametrize("players", [2, 3, 4])
def test_identical_agents_win_their_expected_share(players):
    evaluation = ev.evaluate([RANDOM] * players, players, 24, seed=2)
    assert [agent.share for agent in evaluation.agents] == [1 / players] * players
    assert [round(agent.elo, 6) for agent in evaluation.agents] == [0] * players


def test_agents_cannot_change_the_games_they_are_shown():
    def scribble(games):
        actions = RANDOM.act(games, np.random.default_rng(0))
        games["board"] = 1
        games["movable"] = 0
        return actions

    results = play_games([Returns(scribble)], 2, 4)
    assert all(GameRecord.of(record.actions).winner == record.winner for record in game_records(results))


def test_calls_are_never_larger_than_the_batch():
    agent = Lowest()
    play_games([agent, RANDOM], 2, 20, batch=6)
    assert max(agent.calls) <= 6


def test_progress_rises_to_the_number_of_games():
    reported = []
    play_games([RANDOM], 2, 10, batch=4, progress=reported.append)
    assert reported == sorted(reported)
    assert reported[-1] == 10
    assert len(reported) > 100


def test_batch_is_smaller_for_agents_with_seat_agents():
    kept = make_agent("mcts:simulations=2,rave,reuse")
    assert (make_match([RANDOM]).settings.batch, make_match([RANDOM, kept]).settings.batch) == (256, 16)
    assert make_match([RANDOM, kept], batch=300).settings.batch == 300


def test_callback_is_called_after_each_batch():
    batches = []

    def finished(results, games):
        assert (results.winners[: games.stop] >= 0).all()
        assert (results.winners[games.stop :] == UNFINISHED).all()
        batches.append((games, list(game_records(results, games))))

    results = play_games([RANDOM, Lowest()], 2, 10, batch=4, on_batch_end=finished)
    assert [games for games, _ in batches] == [range(4), range(4, 8), range(8, 10)]
    assert [record for _, records in batches for record in records] == list(game_records(results))


def test_per_game_generator_draws_from_the_streams_of_the_games():
    streams = np.array([3, 4, 5], np.uint64)
    games = np.zeros(3)
    first = game_streams(games, PerGameGenerator(streams))
    assert (streams != [3, 4, 5]).all()
    again = PerGameGenerator(np.array([5, 3], np.uint64))
    assert game_streams(games[:2], again).tolist() == [first[2], first[0]]
    assert game_streams(games[:2], again).tolist() != [first[2], first[0]]
    other = PerGameGenerator(np.array([5, 3], np.uint64))
    assert other.integers(6, size=4).tolist() == np.random.Generator(np.random.PCG64(5)).integers(6, size=4).tolist()


def test_agent_can_call_another_agent_with_more_games():
    class Thorough:
        """Calls another agent with three copies of each game."""

        name = "thorough"

        def act(self, games, rng):
            tree_search = make_agent("mcts:simulations=2")
            return tree_search.act(np.repeat(games, 3), rng)[::3]

    streams = np.array([3, 4], np.uint64)
    drawn = game_streams(np.zeros(100), PerGameGenerator(streams))
    assert len(set(drawn.tolist())) == 100
    assert streams.tolist() == [3, 4]
    assert len(play_games([Thorough(), RANDOM], 2, 10).winners) == 10


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda games: np.zeros(len(games), np.int64),
            r"agent 'odd': action 0 \(A11\) is illegal for seat 1 in phase NEUT",
        ),
        (lambda games: np.full(len(games), -5), "agent 'odd': action -5 is illegal"),
        (lambda games: np.zeros(len(games) + 1, np.int64), "agent 'odd': .*shape"),
        (lambda games: np.zeros(len(games)), "agent 'odd': .*integers"),
        (lambda games: None, "agent 'odd': .*integers"),
    ],
)
def test_a_wrong_answer_names_agent_action_and_position(answer, message):
    lineup = [RANDOM, Returns(answer)]
    with pytest.raises(AgentError, match=message) as error:
        play_games(lineup, 2, 2, batch=1)
    if "illegal" in message:
        position = Game.from_text(str(error.value).split("\n", 1)[1])
        assert position.ply == 1


# Agents that start seat agents: one object per game, which acts and observes all actions of the game


class Remembering:
    """Starts a seat agent per game. It plays one of the two lowest actions and stores all actions that it observes."""

    name = "remembering"

    def __init__(self, answer=lambda legal, drawn: legal[drawn % 2 % len(legal)]):
        self.answer = answer
        self.alive, self.most_alive, self.closed, self.stages = set(), 0, [], []

    def act(self, games, rng):
        raise AssertionError("its seat agents act instead")

    def start(self, game):
        return RememberingPlayer(self, game)


class RememberingPlayer:
    def __init__(self, agent, game):
        assert game.ply == 0
        self.agent, self.game, self.observed = agent, game, []
        agent.alive.add(self)
        agent.most_alive = max(agent.most_alive, len(agent.alive))

    def act(self, rng):
        self.agent.stages.append(self.game.stage)
        drawn = int(game_streams(self.game.records, rng)[0])
        return self.agent.answer(self.game.legal_actions().tolist(), drawn)

    def observe(self, action):
        self.game.play(action)
        self.observed.append(action)

    def close(self):
        self.agent.alive.remove(self)
        self.agent.closed.append(self.observed)


def test_seat_agents_observe_every_action_and_are_closed():
    agent = Remembering()
    results = play_games([agent, RANDOM], 3, 20, seed=2, batch=4)
    assert not agent.alive
    assert agent.most_alive == 4
    warm_up, *observed = agent.closed
    assert len(warm_up) == 9 + 36 + 1  # the warm-up ends when every phase has been reached
    assert agent.stages[:3] == [Phase.NEUTRAL, Phase.PLACEMENT, Phase.MOVEMENT]  # the agent acts once in each
    played = [list(record.actions) for record in game_records(results)]
    assert sorted(observed) == sorted(played)
    assert results.times.moves.sum() == (results.actions != NO_ACTION).sum()
    for other in (1, 256):
        assert same_games(results, play_games([Remembering(), RANDOM], 3, 20, seed=2, batch=other))
    assert not same_games(results, play_games([Remembering(), RANDOM], 3, 20, seed=3, batch=4))


def test_one_seat_agent_per_agent_and_game():
    agent, other = Remembering(), Remembering()
    results = play_games([agent, other], 4, 8, batch=8)
    assert agent.most_alive == other.most_alive == 8
    played = sorted(list(record.actions) for record in game_records(results))
    assert sorted(agent.closed[1:]) == sorted(other.closed[1:]) == played
    alone = Remembering()
    play_games([alone], 2, 3)
    assert len(alone.closed) == 1 + 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda legal, drawn: -1, "agent 'remembering': action -1 is illegal for seat"),
        (lambda legal, drawn: 0.5, "agent 'remembering': .*integers"),
        (lambda legal, drawn: None, "agent 'remembering': .*integers"),
        (lambda legal, drawn: legal[:2], "agent 'remembering': .*shape"),
        (lambda legal, drawn: legal[: 1 + drawn % 2], "agent 'remembering': "),
    ],
)
def test_illegal_answer_of_seat_agent_names_agent_and_closes_all(answer, message):
    agent = Remembering(answer)
    with pytest.raises(AgentError, match=message):
        play_games([agent, RANDOM], 2, 6)
    assert len(agent.closed) == 7
    assert not agent.alive


def test_seat_agents_are_closed_if_one_cannot_start():
    agent = Remembering()

    def start(game):
        if len(agent.closed) == 1 and len(agent.alive) == 2:
            raise RuntimeError("no engine left")
        return RememberingPlayer(agent, game)

    agent.start = start
    with pytest.raises(RuntimeError, match="no engine left"):
        play_games([agent, RANDOM], 2, 6)
    assert len(agent.closed) == 3
    assert not agent.alive


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"agents": []}, "no agents: expected at least one"),
        ({"num_players": 5}, "num_players=5: expected one of 2, 3, 4"),
        ({"num_games": 0}, "num_games=0: expected an integer of at least 1"),
        ({"batch": 0}, "batch=0: expected an integer of at least 1"),
        ({"seed": -1}, "seed=-1: expected an integer of at least 0"),
        ({"seed": 1.5}, "seed=1.5: expected"),
        ({"opening_plies": -1}, "opening_plies=-1: expected an integer of at least 0"),
        ({"opening_plies": 10**4}, "opening_plies=10000: expected an integer of at least 0 and at most"),
        ({"turn_order": "x"}, "turn_order='x': expected one of 'restart', 'continue'"),
        ({"neutral_placement": "x"}, "neutral_placement='x': expected one of 'players', 'random'"),
        ({"agents": ["maxm"]}, "unknown agent 'maxm': .*did you mean 'maxn'"),
        ({"agents": [make_agent("maxn")], "game": "go"}, "agent 'maxn' was made for ninetka, not go"),
    ],
)
def test_invalid_settings_are_reported(wrong, message):
    with pytest.raises(ValueError, match=message):
        play_games(**({"agents": [RANDOM]} | wrong))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compiled_for_one_signature_only():
    play_games([RANDOM], 2, 2)
    from ninetka_train.judging import lockstep

    for kernel in (lockstep.play_all, lockstep.write_outcomes, lockstep.write_stages):
        assert len(kernel.signatures) == len({types[0].dtype for types in kernel.signatures})  # one per game


# Figures


def make_results(names, players, seatings, winners, scores, num_lineups=1):
    """Return results with the given winners and scores; the games are whole rotation groups, ordered by lineup."""
    settings = MatchSettings(tuple(names), f"ninetka:num_players={players}", players, len(winners), 0, 1)
    schedule = make_schedule(len(names), players, len(winners) // num_lineups)
    assert schedule.seatings.tolist() == [list(seating) for seating in seatings]
    times = MoveTimes.zeros(len(names), 3)
    times.add(0, 1, 2.0, 4)
    times.add(0, 1, 3.0, 4)
    starts = np.zeros(len(seatings) // schedule.rotation, STATE_DTYPE)
    actions = np.full((len(seatings), MAX_PLIES), NO_ACTION, np.int16)
    return Results(settings, schedule, np.array(winners), np.array(scores), starts, actions, times)


@pytest.mark.parametrize(("wins", "games"), [(8, 10), (0, 10), (10, 10), (500, 1000), (1, 1)])
def test_wilson_interval_is_scipys(wins, games):
    interval = binomtest(wins, games).proportion_ci(0.95, method="wilson")
    assert wilson_interval(wins, games) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_cases_that_repeat_each_other_count_once():
    hits, clusters = np.repeat([True, False, False, True, False], 6), np.repeat(np.arange(5), 6)
    assert clustered_interval(hits, clusters) == pytest.approx(wilson_interval(2 / 5 * 4, 4), abs=1e-9)
    assert clustered_interval(hits, np.arange(30)) == pytest.approx(wilson_interval(2 / 5 * 29, 29), abs=1e-9)
    assert clustered_interval(hits, clusters % 1) == wilson_interval(12, 30)
    assert clustered_interval(hits & False, clusters) == wilson_interval(0, 30)


def test_clustered_intervals_have_nominal_coverage():
    """Each game has its own blunder rate, 10 % on average. Wilson intervals treat all decisions as independent.

    They are therefore too narrow; clustered intervals cover the average rate in about 95 % of samples.
    """
    rng, covered, covered_by_wilson = np.random.default_rng(0), 0, 0
    for _ in range(400):
        sizes = rng.integers(5, 15, 240)
        clusters = np.repeat(np.arange(240), sizes)
        hits = rng.random(len(clusters)) < np.repeat(rng.beta(1, 9, 240), sizes)
        low, high = clustered_interval(hits, clusters)
        covered += low <= 0.1 <= high
        low, high = wilson_interval(int(hits.sum()), len(hits))
        covered_by_wilson += low <= 0.1 <= high
    assert 0.93 < covered / 400 < 0.97
    assert covered_by_wilson / 400 < 0.88


def test_figures_by_hand():
    seatings = [(0, 1, 1), (1, 0, 1), (1, 1, 0)] * 2
    scores = [(4, 1, 1), (2, 3, 0), (1, 2, 2), (0, 0, 0), (1, 0, 0), (3, 1, 2)]
    evaluation = ev.summarise(make_results(["a", "b"], 3, seatings, [0, 1, 2, 2, 0, 0], scores))
    a, b = evaluation.agents
    assert (a.games, a.wins, b.games, b.wins) == (6, 3, 6, 3)
    assert (a.share, a.even, b.even) == (0.5, 1 / 3, 2 / 3)
    assert a.score == pytest.approx((4 + 3 + 2 + 0 + 0 + 2) / 6)
    assert b.score == pytest.approx((2 + 2 + 3 + 0 + 1 + 4) / 12)
    assert [(seat.games, seat.wins) for seat in a.seats] == [(2, 1), (2, 1), (2, 1)]
    assert [(seat.games, seat.wins) for seat in b.seats] == [(4, 2), (4, 0), (4, 1)]
    assert a.times == [ev.TimeFigures("placement", 8, 625.0, 750.0)]
    assert b.times == []
    intervals = {name: pytest.approx(wilson_interval(3, 6)) for name in "ab"}
    assert evaluation.lineups == [
        ev.LineupFigures(["a", "b", "b"], 6, {"a": 3, "b": 3}, 0, {"a": 0.5, "b": 0.5}, intervals)
    ]
    assert (a.seats[1].share, a.seats[1].interval) == (0.5, wilson_interval(1, 2))
    assert (a.seconds, b.seconds) == (5.0 / 8, None)
    assert a.elo - b.elo == pytest.approx(400 * math.log10(2), abs=5)  # equal wins with one seat against two
    assert evaluation.matches is None


def test_figures_are_computed_per_lineup():
    seatings = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]
    results = make_results(["a", "b", "c"], 2, seatings, [0, 1, 0, 1, 0, 0], [(1, 0)] * 6, num_lineups=3)
    evaluation = ev.summarise(results)
    assert [lineup.wins for lineup in evaluation.lineups] == [{"a": 2, "b": 0}, {"a": 2, "c": 0}, {"b": 1, "c": 1}]
    assert [agent.games for agent in evaluation.agents] == [4, 4, 4]


def test_tournament_by_hand():
    seatings = [(0, 1), (1, 0)] * 4
    scores = [(5, 3), (4, 4), (3, 5), (4, 4), (6, 1), (6, 1), (2, 3), (5, 1)]
    winners = [0, 1, 1, 1, 0, 0, 1, 0]
    a, b = 5 + 4 + 3 + 4 + 6 + 1 + 2 + 1, 3 + 4 + 5 + 4 + 1 + 6 + 3 + 5
    evaluation = ev.summarise(make_results(["a", "b"], 2, seatings, winners, scores), tournament=True)
    assert evaluation.matches == [
        ev.MatchFigures("a", "b", 4, 1, 1, 2, a, b, 1.5 / 4, wilson_interval(1.5, 4)),
        ev.MatchFigures("b", "a", 4, 2, 1, 1, b, a, 2.5 / 4, wilson_interval(2.5, 4)),
    ]


def test_a_match_with_a_resigned_game_is_decided_by_games_won():
    results = make_results(["a", "b"], 2, [(0, 1), (1, 0)] * 2, [1, 0, 1, 0], [(60, 28), (46, 42), (60, 28), (46, 42)])
    results.events[0] = Event("resigned", 0)
    matches = ev.summarise(results, tournament=True).matches
    assert [(match.won, match.lost) for match in matches] == [(1, 1), (1, 1)]


def test_a_match_ends_after_whole_rotations():
    results = play_games([RANDOM, RANDOM], 2, 8, batch=1, on_batch_end=lambda results, games: True)
    assert len(results.winners) == 2


@pytest.mark.parametrize(("agents", "players"), [(2, 3), (1, 2)])
def test_tournament_needs_two_players_and_two_agents(agents, players):
    with pytest.raises(ValueError, match="tournament with"):
        ev.evaluate([RANDOM] * agents, players, 2, tournament=True)


# Draws


def test_a_drawn_game_is_shared_by_its_seats():
    seatings = [(0, 1, 1), (1, 0, 1), (1, 1, 0)] * 2
    winners = [0, DRAWN, DRAWN, 0, DRAWN, 0]
    results = make_results(["a", "b"], 3, seatings, winners, [(1, 1, 1)] * 6)
    assert results.winning_agents.tolist() == [0, DRAWN, DRAWN, 0, DRAWN, 1]
    assert results.shares == pytest.approx(
        np.array([(1, 0), (1 / 3, 2 / 3), (1 / 3, 2 / 3), (1, 0), (1 / 3, 2 / 3), (0, 1)])
    )
    evaluation = ev.summarise(results)
    a, b = evaluation.agents
    assert (a.wins, a.draws, b.wins, b.draws) == (2, 3, 1, 3)
    assert (a.share, b.share) == (pytest.approx(3 / 6), pytest.approx(3 / 6))
    assert a.interval == pytest.approx(wilson_interval(3, 6))
    assert [(seat.games, seat.wins, seat.draws) for seat in a.seats] == [(2, 2, 0), (2, 0, 2), (2, 0, 1)]
    assert [(seat.games, seat.wins, seat.draws) for seat in b.seats] == [(4, 1, 3), (4, 0, 1), (4, 0, 2)]
    (lineup,) = evaluation.lineups
    assert (lineup.wins, lineup.draws) == ({"a": 2, "b": 1}, 3)
    assert lineup.shares == pytest.approx({"a": 3 / 6, "b": 3 / 6})
    assert lineup.intervals["b"] == pytest.approx(wilson_interval(3, 6))
    assert a.seats[1].share == pytest.approx(2 / 3 / 2)
    assert a.seats[1].interval == pytest.approx(wilson_interval(2 / 3, 2))
    assert a.elo - b.elo == pytest.approx(400 * math.log10(2), abs=5)  # half of the wins with one of three seats


def test_unfinished_games_have_no_winner():
    seatings = [(0, 1), (1, 0)]
    results = make_results(["a", "b"], 2, seatings, [DRAWN, UNFINISHED], [(1, 1)] * 2)
    assert results.winning_agents.tolist() == [DRAWN, UNFINISHED]
    assert results.shares.tolist() == [[0.5, 0.5], [0, 0]]


def test_draws_rate_like_half_a_win_for_each_of_two():
    seatings = [(0, 1), (1, 0)] * 8
    drawn = ev.summarise(make_results(["a", "b"], 2, seatings, [DRAWN] * 16, [(1, 1)] * 16)).agents
    shared = ev.summarise(make_results(["a", "b"], 2, seatings, [0, 0] * 8, [(1, 1)] * 16)).agents
    assert [agent.elo for agent in drawn] == pytest.approx([0, 0], abs=1e-9)
    for one, other in zip(drawn, shared, strict=True):
        assert (one.share, one.interval, one.elo) == (other.share, other.interval, pytest.approx(other.elo, abs=1e-9))
    better = ev.summarise(make_results(["a", "b"], 2, seatings, [0, DRAWN, DRAWN, DRAWN] * 4, [(1, 1)] * 16)).agents
    assert [agent.share for agent in better] == [5 / 8, 3 / 8]
    assert better[0].elo - better[1].elo == pytest.approx(400 * math.log10(5 / 3), rel=0.1)
    assert better[0].elo_interval is not None


def test_an_agent_alone_draws_with_itself():
    (agent,) = ev.summarise(make_results(["a"], 2, [(0, 0)] * 3, [DRAWN, 0, DRAWN], [(1, 1)] * 3)).agents
    assert (agent.share, agent.wins, agent.draws, agent.elo) == (pytest.approx(1), 1, 2, None)


def test_draws_are_shown_where_there_are_any():
    def report_of(winners):
        console = Console(record=True, width=160, file=io.StringIO())
        print_report(ev.summarise(make_results(["a", "b"], 2, [(0, 1), (1, 0)] * 2, winners, [(1, 1)] * 4)), console)
        return " ".join(console.export_text().split())

    assert "draw" not in report_of([0, 1, 1, 0])
    assert "A draw counts as a share of a win for every seat" in report_of([0, 1, DRAWN, 0])
    assert re.search(r" a 4 2 1 62\.5 ", report_of([0, 1, DRAWN, 0]))


# Ratings


def observations(copies, wins):
    """Return a pair for each win, as `choix` expects: the winner, and the agents of all other seats.

    `copies` and `wins` have a row per lineup: the number of seats and of wins of each agent. The other seats may hold
    copies of the winner.
    """
    data = []
    for seats, won in zip(copies, wins, strict=True):
        seated = [agent for agent, count in enumerate(seats) for _ in range(count)]
        for agent, count in ((agent, count) for agent, count in enumerate(won) if count):
            losers = seated.copy()
            losers.remove(agent)
            data += [(agent, losers)] * count
    return data


def test_ratings_agree_with_choix():
    copies, wins = [[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]], [[30, 12, 8, 0], [0, 20, 9, 21], [17, 0, 13, 5]]
    expected = choix.opt_top1(4, observations(copies, wins), alpha=ratings.PRIOR_WEIGHT, tol=1e-9)
    assert ratings.fit_ratings(copies, wins) == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_ratings_agree_with_choix_where_agents_meet_their_copies():
    copies, wins = [[1, 2, 0], [0, 1, 2], [1, 1, 1]], [[30, 70, 0], [0, 60, 40], [50, 30, 20]]
    expected = choix.ilsr_top1(3, observations(copies, wins))
    assert ratings.fit_ratings(copies, wins, prior=1e-9) == pytest.approx(expected, abs=1e-6)


def test_the_expected_share_against_copies_gives_equal_ratings():
    assert ratings.fit_ratings([[1, 3]], [[25, 75]]) == pytest.approx([0, 0], abs=1e-9)


def test_two_agents_get_their_log_odds():
    fitted = ratings.ELO_PER_NAT * ratings.fit_ratings([[1, 1]], [[7600, 2400]])
    assert fitted[0] - fitted[1] == pytest.approx(400 * math.log10(0.76 / 0.24), abs=0.1)


def test_many_results_are_fitted_at_once():
    copies = [[1, 1, 0], [0, 1, 1]]
    wins = np.array([[[3, 4, 0], [0, 5, 2]], [[7, 0, 0], [0, 7, 0]], [[0, 7, 0], [0, 3, 4]]])
    together = ratings.fit_ratings(copies, wins)
    assert together == pytest.approx(np.array([ratings.fit_ratings(copies, each) for each in wins]), abs=1e-8)


def simulated(strengths, copies, groups, rotation, seed):
    """Draw the wins of each agent in each rotation group from known ratings: (lineups, groups, agents)."""
    rng = np.random.default_rng(seed)
    wins = []
    for seats in np.array(copies):
        chance = seats * np.exp(strengths)
        wins.append(rng.multinomial(rotation, chance / chance.sum(), size=groups))
    return np.array(wins)


def test_ratings_recover_a_known_order_within_their_intervals():
    truth = np.array([-1.5, -0.3, 0.2, 1.6])
    copies = [[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]]
    wins = simulated(truth, copies, groups=100, rotation=6, seed=1)
    fitted = ratings.fit_ratings(copies, wins.sum(axis=1))
    assert (np.argsort(fitted) == [0, 1, 2, 3]).all()
    half = ratings.half_widths(copies, wins, np.eye(4) - 1 / 4)
    assert (abs(fitted - truth) < half).all()
    assert (half < 0.25).all()


@pytest.mark.parametrize(
    ("copies", "groups", "elo", "anchor"),
    [([[1, 1]], 10, 400, None), ([[1, 2]], 10, 0, 0), ([[1, 1, 0], [1, 0, 1], [0, 1, 1]], 20, 200, 0)],
    ids=["two", "copies", "pool"],
)
def test_rating_intervals_have_nominal_coverage(copies, groups, elo, anchor):
    """Simulate 400 matches of independent games. About 95 % of the intervals must cover the true rating.

    `benchmarks.elo_intervals` has more cases and more matches.
    """
    agents = len(copies[0])
    truth = np.linspace(elo, 0, agents) / ratings.ELO_PER_NAT
    contrasts = np.eye(agents) - (1 / agents if anchor is None else np.eye(agents)[anchor])
    rotation = math.factorial(sum(copies[0])) // math.factorial(max(copies[0]))
    shown = covered = 0
    for seed in range(400):
        wins = simulated(truth, copies, groups, rotation, seed)
        if ratings._mutually_linked(np.array(copies), wins.sum(axis=1)).all():
            error = contrasts @ (ratings.fit_ratings(copies, wins.sum(axis=1)) - truth)
            shown += 1
            covered += bool(abs(error[1]) <= ratings.half_widths(copies, wins, contrasts)[1])
    assert shown >= 250
    assert 0.92 <= covered / shown <= 0.99


def test_games_that_repeat_each_other_make_an_interval_wider():
    """If all games of a group have the same winner, a group counts as one game."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 200)
    together = np.stack([2 * first, 2 - 2 * first], axis=1)
    robust, independent = ratings.standard_errors([[1, 1]], [together], [[1, -1]])
    assert robust == pytest.approx(np.sqrt(2) * independent, rel=0.01)
    assert ratings.half_widths([[1, 1]], [together], [[1, -1]]) == pytest.approx(1.972 * robust, rel=0.001)


def test_groups_with_the_same_result_leave_an_interval():
    """If all groups end 1:1, the interval is narrower than that of independent games, but not empty."""
    level = np.ones((30, 2))
    robust, independent = ratings.standard_errors([[1, 1]], [level], [[1, -1]])
    assert robust == pytest.approx(0)
    assert independent == pytest.approx(math.sqrt(4 / 60), rel=0.01)
    # of 29 + 10 degrees of freedom, 10 are the weight of the error of independent games
    expected = 2.0227 * independent * math.sqrt(10 / 39)
    assert ratings.half_widths([[1, 1]], [level], [[1, -1]]) == pytest.approx(expected, rel=0.001)


def test_no_interval_below_five_rotation_groups():
    for groups, known in ((2, False), (4, False), (5, True)):
        seatings = [(0, 1), (1, 0)] * groups
        results = make_results(["a", "b"], 2, seatings, [0, 0] * groups, [(1, 1)] * 2 * groups)
        for agent in ev.summarise(results).agents:
            assert (agent.elo_interval is not None) == known
            assert not known or agent.elo_interval[0] < agent.elo < agent.elo_interval[1]


@pytest.mark.parametrize("freedom", [4, 5, 9, 19, 49, 1000])
def test_quantiles_of_student_are_scipys(freedom):
    assert ratings.student_t_quantile(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-3)


def test_no_interval_where_an_agent_won_all_or_none():
    seatings = [(0, 1), (1, 0)] * 3
    a, b = ev.summarise(make_results(["a", "b"], 2, seatings, [0, 1] * 3, [(1, 1)] * 6)).agents
    assert a.elo > 200 > -200 > b.elo
    assert (a.elo_interval, b.elo_interval) == (None, None)


def test_interval_exists_where_games_bound_a_rating():
    """Agents 0 and 1 won games against each other. Agent 2 lost all games against 0 and 1, and won all against 3."""
    copies = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    wins = np.array([[3, 1, 0, 0], [4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 4, 0]], np.float64)
    linked = ratings._mutually_linked(copies, wins)
    assert linked.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    # 0 beat 1, 1 beat 2, 2 beat 0, and 3 drew a game with 2
    circle = np.array([[4, 0, 0, 0], [0, 0, 4, 0], [0, 4, 0, 0], [0, 0, 3.5, 0.5]])
    assert ratings._mutually_linked(copies, circle).all()


def test_no_interval_for_agent_linked_by_wins_in_one_direction():
    agents = ["random", "random", "mcts:simulations=100", "mcts:simulations=100"]
    figures = ev.summarise(play_games(agents, 2, 20), anchor="random").agents
    assert [agent.elo_interval is None for agent in figures] == [True, False, True, True]
    assert figures[2].elo > 200


def test_an_agent_alone_has_no_rating():
    (agent,) = ev.evaluate([RANDOM], 3, 5).agents
    assert (agent.share, agent.even, agent.elo, agent.elo_interval) == (1, 1, None, None)
    assert sum(seat.wins for seat in agent.seats) == 5


def test_repeated_games_are_counted_once_and_reported():
    def distinct_and_heading(agents, **options):
        evaluation = ev.evaluate(agents, 2, 20, **options)
        return evaluation.distinct_games, "\n".join(heading_lines(evaluation))

    count, text = distinct_and_heading([Lowest("a"), Lowest("b")])
    assert count == 2
    assert "2 of them distinct" in text
    assert "(--opening-plies 4, --game ninetka:neutral_placement=random)" in text
    count, text = distinct_and_heading([Lowest("a"), Lowest("b")], neutral_placement="random")
    assert count == 20
    assert "warning" not in text
    assert distinct_and_heading([Lowest("a"), RANDOM])[0] == 20


# Reports


@pytest.fixture(scope="module")
def evaluation():
    return ev.evaluate([RANDOM, RANDOM, Lowest("[red]low")], 2, 9, seed=1, tournament=True)


def test_report_shows_everything(evaluation):
    console = Console(record=True, width=120, file=io.StringIO())
    print_report(evaluation, console)
    text = console.export_text()
    for piece in (
        "2 players",
        "3 lineups of 10 games (asked for: 9)",
        "seed=1",
        "ninetka_v0",
        "turn_order=restart",
        "random (2)",
        "[red]low",
        "Wins by seat",
        "Wins by lineup",
        "Milliseconds per move",
        "Two-player tournament",
        "Elo [95 %]",
        "the highest rating of 3 agents",
    ):
        assert piece in text, piece
    assert max(map(len, text.splitlines())) <= 120


def test_json_holds_everything(evaluation, tmp_path):
    target = tmp_path / "result.json"
    target.write_text("old", encoding="utf-8")
    replace_file(target, [json_text(evaluation).encode()])
    read = json.loads(target.read_text(encoding="utf-8"))
    assert read == json.loads(json.dumps(evaluation_dict(evaluation)))
    assert list(tmp_path.iterdir()) == [target]
    assert set(read) == {
        "environment", "package", "machine", "settings", "games_per_lineup", "rotation", "distinct_games", "anchor",
        "agents", "lineups", "matches", "exact", "gate", "failures",
    }  # fmt: skip
    assert read["settings"] == {
        "agents": ["random", "random (2)", "[red]low"], "game": "ninetka", "num_players": 2, "num_games": 9,
        "seed": 1, "batch": 256, "opening_plies": 0, "forfeit": False,
    }  # fmt: skip
    assert set(read["agents"][0]) == {
        "name", "games", "wins", "draws", "share", "interval", "even", "score", "seconds", "seats", "times", "elo",
        "elo_interval",
    }  # fmt: skip
    assert read["agents"][0]["seats"][1].keys() == {"seat", "games", "wins", "draws", "share", "interval"}
    assert read["agents"][0]["times"][0].keys() == {"stage", "moves", "mean_ms", "slowest_ms"}
    assert read["environment"] == "ninetka_v0"


def test_unwritable_files_are_reported(evaluation, tmp_path):
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    for path in (tmp_path / "none" / "x.json", tmp_path / "file" / "x.json", tmp_path):
        with pytest.raises(OSError, match=f"cannot write: .*{re.escape(str(path))}"):
            check_writable(path)
        with pytest.raises(OSError, match=f"cannot write: .*{re.escape(str(path))}"):
            replace_file(path, [json_text(evaluation).encode()])
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"


def test_a_failed_write_keeps_the_old_file(evaluation, tmp_path, monkeypatch):
    target = tmp_path / "result.json"
    target.write_text("old", encoding="utf-8")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
    with pytest.raises(OSError, match="no space left"):
        replace_file(target, [json_text(evaluation).encode()])
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]


def test_names_with_line_breaks_are_written_in_one_line():
    results = play_games([RANDOM, Lowest("two\nlines ")], 2, 2)
    assert {record.tags["yellow"] for record in game_records(results)} == {"random", "two?lines"}
