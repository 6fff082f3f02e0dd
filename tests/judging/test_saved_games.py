"""Test matches that are stopped and resumed, results of saved games, and failing agents."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import io
import json
import random
import re
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.agent import Forfeit, as_agent
from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import UNFINISHED
from ninetka_train.cli import app
from ninetka_train.commands import match_runner
from ninetka_train.exit_handling import StoppedBySignal
from ninetka_train.judging import arena, evaluate, lockstep
from ninetka_train.judging.arena import AgentError, LatestResults, make_match, play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.report import games_csv, heading_lines
from ninetka_train.judging.results import NO_ACTION
from ninetka_train.judging.saved_games import GameSaver, game_records, read_earlier_games, read_results

GO, KROPKI = "go:size=3", "kropki:width=4,height=4"
TIMES = {"seconds", "times"}
"""Figures that cannot be computed from saved games."""


LATE = ZeroDivisionError("late")


class UnreadableError(Exception):
    """An exception whose method `__str__` fails."""

    def __str__(self):
        raise RuntimeError


class Stopping:
    """Plays at random, and raises KeyboardInterrupt at call number `calls`."""

    def __init__(self, calls, name="random"):
        self.calls, self.name = calls, name

    def act(self, games, rng):
        self.calls -= 1
        if self.calls == 0:
            raise KeyboardInterrupt
        return make_agent("random").act(games, rng)


class Failing:
    """Plays at random. If `when(games)` is true, raises the exception `error`, or returns `error(actions)`."""

    def __init__(self, when, error=LATE, name="failing"):
        self.when, self.error, self.name = when, error, name

    def act(self, games, rng):
        actions = make_agent("random").act(games, rng)
        if self.when(games):
            if isinstance(self.error, BaseException):
                raise self.error
            return self.error(actions)
        return actions


def figures(results, **options):
    """Return the figures that can be computed from saved games, which have no times."""
    found = dataclasses.asdict(summarise(results, **options))
    found["settings"] |= {"seed": None, "batch": None, "num_games": None}
    return found | {"agents": [{k: v for k, v in one.items() if k not in TIMES} for one in found["agents"]]}


# Resuming


@pytest.mark.parametrize(
    ("specs", "options"),
    [
        (["random", "random"], {"num_games": 26, "batch": 8, "seed": 3}),
        (["random", "random", "random"], {"num_games": 6, "batch": 5, "neutral_placement": "random"}),
        (["random", "random"], {"num_games": 9, "batch": 4, "num_players": 3, "opening_plies": 3}),
        (["random", "random"], {"num_games": 20, "batch": 7, "game": GO}),
        (["random", "random"], {"num_games": 20, "batch": 7, "game": KROPKI}),
    ],
    ids=["two", "pool", "openings", "go", "kropki"],
)
def test_resumed_match_equals_uninterrupted_match(specs, options, tmp_path):
    """Interrupt a match at random calls and resume it, until it ends. It must save the uninterrupted match's games."""
    whole, file = tmp_path / "whole.txt", tmp_path / "stopped.txt"
    uninterrupted = play_games(specs, **options, on_batch_end=GameSaver(whole))
    names, stops, rng = uninterrupted.settings.agents, 0, random.Random(0)
    longest = uninterrupted.actions.shape[1]  # the maximum number of calls of an agent per batch, without the warm-up
    while True:
        agents = [Stopping(rng.randrange(longest // 4, 3 * longest // 2), name) for name in names]
        settings = make_match(agents, **options).settings
        earlier = read_earlier_games(file, settings)
        try:
            results = play_games(agents, **options, earlier=earlier, on_batch_end=GameSaver(file, earlier))
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops >= 1
    assert file.read_bytes() == whole.read_bytes()
    assert figures(results) == figures(uninterrupted)


def test_finished_batches_are_not_played_again(tmp_path):
    file, options = tmp_path / "games.txt", {"num_games": 12, "batch": 4, "seed": 1}
    play_games(["random", "random"], **options, on_batch_end=GameSaver(file))
    agents = [Stopping(1, name) for name in ("random", "random")]  # would raise at the first move
    earlier = read_earlier_games(file, make_match(agents, **options).settings)
    assert sorted(earlier) == list(range(12))
    results = play_games(agents, **options, earlier=earlier)
    assert list(game_records(results)) == [earlier[game] for game in range(12)]


def test_a_match_may_be_made_longer(tmp_path):
    file = tmp_path / "games.txt"
    options = {"seed": 1, "batch": 6, "game": GO}
    play_games(["random"] * 3, num_games=4, **options, on_batch_end=GameSaver(file))
    settings = make_match(["random"] * 3, num_games=8, **options).settings
    earlier = read_earlier_games(file, settings)
    assert sorted(earlier) == [*range(4), *range(8, 12), *range(16, 20)]  # four games in each of three lineups
    longer = play_games(["random"] * 3, num_games=8, **options, earlier=earlier, on_batch_end=GameSaver(file, earlier))
    assert figures(longer) == figures(play_games(["random"] * 3, num_games=8, **options))
    assert [record.actions for record in read_records(file)] == [
        tuple(actions[actions != NO_ACTION].tolist()) for actions in longer.actions
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 2}, "games.txt, game 1: it was played with seed 1, this match has seed 2"),
        ({"opening_plies": 2}, "game 1: it was played with opening_plies 0, this match has opening_plies 2"),
        ({"num_players": 3}, "game 1: it was played with game ninetka, this match has game ninetka:num_players=3"),
        ({"num_games": 4}, "game 5: it is of rotation group 2, this match has groups 0 to 1"),
        (
            {"agents": ["random", "maxn"]},
            r"game 1: it was played by random, random \(2\), this match is of random, maxn",
        ),
    ],
)
def test_games_of_another_match_are_named(options, message, tmp_path):
    file, original = tmp_path / "games.txt", {"agents": ["random", "random"], "num_games": 6, "seed": 1}
    play_games(**original, on_batch_end=GameSaver(file))
    with pytest.raises(ValueError, match=message):
        read_earlier_games(file, make_match(**(original | options)).settings)


def test_duplicate_games_and_other_starts_are_reported(tmp_path):
    file, original = tmp_path / "games.txt", {"agents": ["random", "random"], "num_games": 2, "opening_plies": 2}
    results = play_games(**original, seed=1, on_batch_end=GameSaver(file))
    file.write_text(file.read_text(encoding="utf-8") + "\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"games.txt, game 3: it is in the file twice"):
        read_earlier_games(file, results.settings)
    others = [dataclasses.replace(record, tags={**record.tags, "seed": "2"}) for record in game_records(results)]
    write_records(file, others)
    earlier = read_earlier_games(file, dataclasses.replace(results.settings, seed=2))
    with pytest.raises(ValueError, match="game 1 was played from another start than this match gives it"):
        play_games(**original, seed=2, earlier=earlier)
    options = ["--games", "2", "--opening-plies", "2", "--seed", "2", "--save-games", file, "--resume"]
    ended = command("evaluate", "random", "random", *options)
    assert ended.exit_code == 2
    assert ended.stderr.splitlines()[-1] == "error: game 1 was played from another start than this match gives it"


def test_other_agent_order_is_reported(tmp_path):
    """In a pool, another order is an error, because games depend on the number of the lineup. Two agents may swap."""
    file, names = tmp_path / "games.txt", ["a", "b", "c"]
    agents = [Failing(never, name=name) for name in names]
    play_games(agents, num_games=2, on_batch_end=GameSaver(file))
    with pytest.raises(ValueError, match="game 1: it is of lineup 0, which is number 2 here: name the agents in the"):
        read_earlier_games(file, make_match(agents[::-1], num_games=2).settings)
    two = agents[:2]
    play_games(two, num_games=6, on_batch_end=GameSaver(file))
    earlier = read_earlier_games(file, make_match(two[::-1], num_games=8).settings)
    play_games(two[::-1], num_games=8, earlier=earlier, on_batch_end=GameSaver(file, earlier))
    uninterrupted = play_games(two[::-1], num_games=8)
    assert list(read_records(file)) == list(game_records(uninterrupted))


def test_names_with_equal_saved_forms_stay_distinct(tmp_path):
    agents = [Failing(never, name=name) for name in ("a\tb", "a?b", "")]
    file = tmp_path / "games.txt"
    results = play_games(agents, num_games=2, on_batch_end=GameSaver(file))
    assert results.settings.agents == ("a\tb", "a?b (2)", "")
    assert len(read_earlier_games(file, results.settings)) == 6
    found = read_results([file])[0]
    assert found.settings.agents == ("a?b", "a?b (2)", "?")
    assert found.winning_agents.tolist() == results.winning_agents.tolist()


def test_truncated_file_is_reported_with_advice(tmp_path):
    file = tmp_path / "games.txt"
    results = play_games(["random"], num_games=3, on_batch_end=GameSaver(file))
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(ValueError, match=r"games.txt, line \d+: .*; remove that game from the file to continue with"):
        read_earlier_games(file, results.settings)


def test_a_file_that_cannot_be_written_does_not_end_the_match(tmp_path):
    saved = GameSaver(tmp_path / "none" / "games.txt")
    assert len(play_games(["random"], num_games=2, on_batch_end=saved).winners) == 2
    assert isinstance(saved.error, OSError)


# Figures of finished games


def test_complete_groups_keep_only_agents_that_played():
    results = play_games(["random", "maxn:depth=1", "random"], num_games=4, seed=2)
    results.winners[2:10] = UNFINISHED  # finished: one group of the first lineup and one of the last
    whole = results.complete_groups()
    assert (whole.settings.agents, whole.schedule.lineups) == (
        ("random", "maxn:depth=1", "random (2)"),
        [(0, 1), (1, 2)],
    )
    assert whole.schedule.group_of.tolist() == [0, 0, 1, 1]
    assert (whole.actions == results.actions[[0, 1, 10, 11]]).all()
    results.winners[0] = UNFINISHED
    whole = results.complete_groups()
    assert (whole.settings.agents, whole.schedule.lineups) == (("maxn:depth=1", "random (2)"), [(0, 1)])
    assert whole.schedule.seatings.tolist() == [[0, 1], [1, 0]]
    assert whole.times.moves.tolist() == results.times.moves[1:].tolist()
    assert len(summarise(whole).agents) == 2
    results.winners[-1] = UNFINISHED
    assert len(results.complete_groups().winners) == 0
    latest = LatestResults()
    latest(results, range(12))
    assert latest.complete_groups() is None


def test_figures_of_lineups_with_unequal_numbers_of_games():
    """In a pool that is stopped half-way, the figures of each lineup count only its finished rotation groups."""
    results = play_games(["random", "maxn:depth=1", "random"], num_games=20, seed=2)
    results.winners[30:] = UNFINISHED
    figures = summarise(results.complete_groups())
    assert [lineup.games for lineup in figures.lineups] == [20, 10]
    assert [agent.games for agent in figures.agents] == [30, 20, 10]
    for lineup, games in zip(figures.lineups, (slice(0, 20), slice(20, 30)), strict=True):
        for name, wins in lineup.wins.items():
            agent = results.settings.agents.index(name)
            assert wins == (results.winning_agents[games] == agent).sum()
    assert all(agent.elo_interval is not None for agent in figures.agents)
    text = "\n".join(heading_lines(figures))
    assert "2 lineups of 10 to 20 games" in text
    assert "30 of them distinct" in text
    assert "repeat" not in text


# Saved games as results


@pytest.mark.parametrize(
    ("specs", "options", "asked", "form"),
    [
        (["random", "maxn:depth=1"], {"num_games": 12, "seed": 4}, {"tournament": True, "exact": True}, "txt"),
        (["random", "maxn:depth=1"], {"num_games": 8, "opening_plies": 3}, {"exact": True}, "txt"),
        (["maxn:depth=1", "random"], {"num_games": 9, "num_players": 3, "neutral_placement": "random"}, {}, "txt"),
        (["random", "maxn:depth=1", "random"], {"num_games": 10, "num_players": 2}, {"tournament": True}, "txt"),
        (["random"], {"num_games": 3}, {}, "txt"),
        (["random", "random"], {"num_games": 60, "game": GO}, {"tournament": True}, "txt"),
        (["random", "random"], {"num_games": 10, "game": "go:size=5"}, {"tournament": True}, "sgf"),
        (["random", "random"], {"num_games": 20, "game": KROPKI}, {"tournament": True}, "txt"),
        (["random", "random"], {"num_games": 20, "game": KROPKI}, {"tournament": True}, "sgf"),
    ],
    ids=["two", "openings", "copies", "pool", "alone", "go", "go-sgf", "kropki", "kropki-sgf"],
)
def test_figures_of_saved_games_are_those_of_the_match(specs, options, asked, form, tmp_path):
    results = play_games(specs, **options)
    file = tmp_path / f"games.{form}"
    write_records(file, game_records(results))
    found, notes = read_results([file])
    assert notes == []
    assert figures(found, **asked) == figures(results, **asked)
    assert found.settings.seed == options.get("seed", 0)
    assert games_csv(found) == games_csv(results)


def test_files_are_combined(tmp_path):
    """The rotation groups of two matches of the same agents stay separate."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    parts = [play_games(["random", "maxn:depth=1"], num_games=6, seed=seed) for seed in (1, 2)]
    for file, part in zip(files, parts, strict=True):
        write_records(file, game_records(part))
    found, notes = read_results(files)
    assert (notes, found.settings.seed, len(found.starts)) == ([], None, 6)
    assert found.winners.tolist() == [*parts[0].winners, *parts[1].winners]
    joined = tmp_path / "c.txt"
    joined.write_text("\n".join(file.read_text(encoding="utf-8") for file in files), encoding="utf-8")
    assert figures(read_results([joined])[0]) == figures(found)
    twice = tmp_path / "twice.txt"
    twice.write_text("\n".join([files[0].read_text(encoding="utf-8")] * 2), encoding="utf-8")
    again = read_results([twice])[0]
    assert (len(again.starts), summarise(again).distinct_games) == (6, 6)


def test_excluded_games_are_reported(tmp_path):
    file = tmp_path / "games.txt"
    results = play_games(["random", "maxn:depth=1"], num_games=6)
    write_records(file, list(game_records(results))[:-1])
    found, notes = read_results([file])
    assert (len(found.winners), notes) == (4, ["left out are games of incomplete rotations: 1"])
    write_records(file, list(game_records(results))[:1])
    with pytest.raises(ValueError, match=r"games.txt: no complete rotation group of finished games"):
        read_results([file])


def test_games_without_group_tag_are_separate_groups(tmp_path):
    file = tmp_path / "games.sgf"
    game = "(;GM[1]SZ[5]KM[0.5]PB[{}]PW[{}]RE[{}];B[cc];W[];B[])"
    games = [("a", "b", "B+3"), ("b", "a", "W+R"), ("a", "b", "W+0.5"), ("a", "b", "Void"), ("", "c", "B+T")]
    file.write_text("\n".join(game.format(*one) for one in games), encoding="utf-8")
    found, notes = read_results([file])
    assert notes == ["left out are games that are not finished: 1"]
    assert found.settings.agents == ("a", "b", "?", "c")
    assert [agent.wins for agent in summarise(found).agents] == [2, 1, 1, 0]
    assert found.schedule.group_of.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="tournament: these games do not come in pairs"):
        summarise(found, tournament=True)


def test_games_of_different_variants_are_rejected(tmp_path):
    files = [tmp_path / f"{number}.txt" for number in range(3)]
    for file, options in zip(files, ({}, {"num_players": 3}, {"opening_plies": 2}), strict=True):
        write_records(file, game_records(play_games(["random"], num_games=1, **options)))
    with pytest.raises(ValueError, match=r"games with game ninetka and ninetka:num_players=3: expected"):
        read_results(files[:2])
    with pytest.raises(ValueError, match="games with opening_plies 0 and 2: expected games of one kind"):
        read_results([files[0], files[2]])
    text = files[2].read_text(encoding="utf-8").replace("opening_plies: 2", "opening_plies: -2")
    files[2].write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="opening_plies '-2': expected an integer of at least 0"):
        read_results([files[2]])
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"empty.txt: no complete rotation group"):
        read_results([tmp_path / "empty.txt"])


def test_csv_has_a_row_for_each_game():
    results = play_games([Failing(always), "random"], num_games=3, num_players=3, seed=1, forfeit=True,
                         batch=1)  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(games_csv(results))))
    assert [(row["game"], row["lineup"], row["group"]) for row in rows] == [
        ("1", "1", "0"),
        ("2", "1", "0"),
        ("3", "1", "0"),
    ]
    assert [row["yellow"] for row in rows] == ["failing", "random", "random"]
    for game, row in enumerate(rows):
        assert row["event"] == f"{['yellow', 'blue', 'orange'][game]} left"
        assert row["failure"].startswith(f"game {game + 1}: agent 'failing': ZeroDivisionError: late")
        assert row["plies"] == str((results.actions[game] != NO_ACTION).sum())
        assert row[f"score_{row['winner_seat']}"]
        assert row["winner"] == "random"


def test_csv_holds_any_text():
    """Line breaks and quotation marks in names and failures do not break rows or cells."""
    agents = [Failing(always, ValueError('a\r\nb, "c"'), name='x\r"y",\ud800'), "random"]
    text = games_csv(play_games(agents, num_games=2, forfeit=True))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["yellow"] for row in rows] == ['x?"y",?', "random"]
    assert rows[0]["failure"].endswith(': ValueError: a b, "c"')
    assert len(rows) == 2


# Agents that fail


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("late"), "ZeroDivisionError: late"),
        (SystemExit(3), "SystemExit: 3"),
        (lambda actions: np.full_like(actions, -1), "action -1 is illegal"),
        (lambda actions: actions[:-1], "actions: expected shape"),
        (lambda actions: actions + 0.5, "actions: expected integers"),
    ],
    ids=["raises", "exits", "illegal", "shape", "type"],
)
def test_failing_agent_ends_the_match_and_finished_games_are_saved(error, message, tmp_path):
    """The agent fails in a game of the third batch (see `rare`); earlier games are saved."""
    file, uninterrupted = tmp_path / "games.txt", play_games(["random", "random"], num_games=20, seed=SEED)
    with pytest.raises(AgentError, match=rf"game {FIRST + 1}: agent 'failing': {message}") as failed:
        play_games([Failing(rare, error), "random"], num_games=20, batch=4, seed=SEED, on_batch_end=GameSaver(file))
    saved = list(read_records(file))
    assert 8 <= len(saved) <= 11
    assert summarise(failed.value.results).agents[0].games == len(saved) // 2 * 2
    assert [record.actions for record in saved[:8]] == [
        record.actions for record in game_records(uninterrupted, range(8))
    ]


SEED, FIRST = 7, 9
"""Seed of a match of two random agents, and index of the first game in which `rare` is true at a move of agent 0."""


def always(games):
    """Return whether any game has 20 to 22 stones. In a game each seat moves at such a time, in the warm-up none."""
    return bool(np.isin((games["board"] != 0).sum(axis=1), (20, 21, 22)).any())


def never(games):
    """Return False."""
    return False


def rare(games):
    """Return whether any position is one of a small pseudo-random set."""
    return bool((games["lines"].astype(np.int64).sum(axis=1) % 211 == 7).any())


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_forfeited_games_are_lost_and_others_unchanged(batch):
    """After a failed batch, the agent acts in each game alone, with the same random numbers."""
    without_failures = play_games(["random", "random"], num_games=60, seed=SEED)
    results = play_games([Failing(rare), "random"], num_games=60, seed=SEED, batch=batch, forfeit=True)
    assert 3 < len(results.failures) < 10
    assert min(results.failures) == FIRST
    for game in range(60):
        played = results.actions[game][results.actions[game] != NO_ACTION]
        assert (without_failures.actions[game][: len(played)] == played).all()
        if game in results.failures:
            seat = results.schedule.seatings[game].tolist().index(0)
            assert results.events[game] == Event("left", seat)
            assert results.winners[game] == 1 - seat
            assert results.failures[game] == f"game {game + 1}: agent 'failing': ZeroDivisionError: late"
        else:
            assert results.winners[game] == without_failures.winners[game]
            assert len(played) == (without_failures.actions[game] != NO_ACTION).sum()


@pytest.mark.parametrize(
    "error",
    [
        SystemExit("no"),
        UnreadableError(),
        asyncio.CancelledError(),
        lambda actions: np.full_like(actions, -1),
        lambda actions: actions[1:],
        lambda actions: "x",
    ],
    ids=["exits", "unreadable", "cancelled", "illegal", "shape", "text"],
)
def test_every_failure_can_be_forfeited(error):
    results = play_games([Failing(always, error), "random"], num_games=6, forfeit=True, batch=6)
    assert (results.winning_agents == 1).all()
    assert len(results.failures) == 6
    assert all("\n" not in failure for failure in results.failures.values())


def test_forfeited_games_stay_forfeited_on_resume(tmp_path):
    file, options = tmp_path / "games.txt", {"num_games": 60, "seed": SEED, "batch": 10, "forfeit": True}
    agents = [Failing(rare), "random"]
    uninterrupted = play_games(agents, **options)
    write_records(file, game_records(uninterrupted, range(33)))
    earlier = read_earlier_games(file, make_match(agents, **options).settings)
    results = play_games(agents, **options, earlier=earlier, on_batch_end=GameSaver(file, earlier))
    assert figures(results) == figures(uninterrupted)
    assert (results.failures, results.events) == (uninterrupted.failures, uninterrupted.events)
    assert list(read_records(file)) == list(game_records(uninterrupted))


def test_an_agent_that_fails_in_a_batch_but_not_alone():
    agents = [Failing(lambda games: len(games) > 2), "random"]
    with pytest.raises(AgentError, match=r"games 1 to 7, together but not one by one: agent 'failing': ZeroDiv"):
        play_games(agents, num_games=8, batch=8, seed=1)
    results = play_games(agents, num_games=8, batch=8, seed=1, forfeit=True)
    assert results.failures == {}
    assert (
        figures(results)["agents"][0]["wins"]
        == figures(play_games(["random"] * 2, num_games=8, seed=1))["agents"][0]["wins"]
    )


def test_an_agent_that_fails_before_the_first_game_is_named():
    agent = Failing(lambda games: True)
    with pytest.raises(AgentError, match="agent 'failing', before the first game: ZeroDivisionError: late"):
        play_games([agent], num_games=2, forfeit=True)


def test_memory_error_is_not_an_agent_failure():
    with pytest.raises(MemoryError):
        play_games([Failing(lambda games: len(games) > 2, MemoryError())], num_games=8)


class FailingSeatAgents(Failing):
    """Starts a seat agent per game; `error` is raised in the games for which `when(index of the game)` is true.

    `place` is the name of the method that raises it: "start", or the seat agent's "act", "observe" or "close". With
    "last", `observe` raises it at the last action of the game; with "observe", at the actions before.
    """

    def __init__(self, place, when, error=LATE):
        super().__init__(when, error)
        self.place, self.started = place, 0

    def start(self, game):
        self.started += 1
        number = self.started - 2  # one seat agent was started in the warm-up
        player = SimpleNamespace(game=game, close=lambda: fail("close"))

        def fail(place):
            if place == self.place and self.when(number):
                raise self.error

        def act(rng):
            fail("act")
            return int(player.game.legal_actions()[0])

        def observe(action):
            player.game.play(action)
            fail("observe" if not player.game.is_over else "last")

        player.act, player.observe = act, observe
        fail("start")
        return player


@pytest.mark.parametrize("place", ["start", "act", "observe", "last", "close"])
@pytest.mark.parametrize("error", [ZeroDivisionError("late"), Forfeit("left", "gone")], ids=["raises", "gives up"])
def test_failing_seat_agents_are_reported_or_forfeit(place, error):
    agents = [FailingSeatAgents(place, lambda number: number == 4, error), "random"]
    text = "gone" if isinstance(error, Forfeit) else "ZeroDivisionError: late"
    if not isinstance(error, Forfeit):
        with pytest.raises(AgentError, match=rf"game 5: agent 'failing': {text}"):
            play_games(agents, num_games=8, batch=4)
        agents[0].started = 0
    results = play_games(agents, num_games=8, batch=4, forfeit=True)
    if place in ("last", "close"):  # the game was finished, so its result counts
        assert results.failures == {}
    else:
        assert results.failures == {4: f"game 5: agent 'failing': {text}"}
        assert results.winning_agents[4] == 1


# The commands


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def stopped_in_batch(monkeypatch):
    """Return a function that makes Ctrl-C or another signal stop a match in the given batch, counted from 0."""

    def prepare(number, reason=KeyboardInterrupt):
        play_ply, begun = lockstep.LockstepGames._play_ply, []

        def interrupted(self, active, ply):
            begun.extend([ply] if ply == 0 else [])
            if len(begun) == number + 1 and ply == 72:
                raise reason
            return play_ply(self, active, ply)

        monkeypatch.setattr(lockstep.LockstepGames, "_play_ply", interrupted)

    return prepare


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), StoppedBySignal(signal.SIGTERM)], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize("name", ["evaluate", "rate"])
def test_stopped_command_prints_and_saves_finished_games(name, reason, stopped_in_batch, tmp_path):
    stopped_in_batch(2, reason)
    asked = [name, "random", "maxn:depth=1", "random", "--games", 4, "--batch", 4, "--seed", 2]
    files = ["--json", tmp_path / "a.json", "--csv", tmp_path / "a.csv", "--save-games", tmp_path / "a.txt"]
    done = command(*asked, *files)
    assert done.exit_code == (130 if type(reason) is KeyboardInterrupt else 143), done.output
    assert re.search(
        r"stopped after \d+ of 12 games: the figures are of (these|the \d+ in whole rotations)", done.stderr
    )
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    saved = len(list(read_records(tmp_path / "a.txt")))
    assert 8 <= saved <= 12
    assert sum(lineup["games"] for lineup in found["lineups"]) == saved // 2 * 2
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").count("\n") == 1 + saved // 2 * 2
    assert "Wins by lineup" in done.stdout
    stopped_in_batch(99)
    rest = command(*asked, *files, "--resume")
    assert rest.exit_code == 0, rest.output
    assert f"note: {saved} games of" in rest.stderr
    whole = [*files[:-1], tmp_path / "b.txt"]
    assert command(*asked, *whole).exit_code == 0
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()


def test_figures_are_printed_from_files(tmp_path):
    played = ["evaluate", "random", "maxn:depth=1", "--games", 20, "--seed", 4]
    options = ["--tournament", "--exact", "--gate", "0.5,0.9"]
    direct = command(*played, *options, "--save-games", tmp_path / "a.txt", "--csv", tmp_path / "a.csv")
    found = command("evaluate", "--from", tmp_path / "a.txt", *options, "--csv", tmp_path / "b.csv")
    assert found.exit_code == direct.exit_code == 3
    # the last lines differ: the games in files were not played in batches
    parts = [one.stdout.split("Two-player tournament")[1].split("9tka, 2 players")[0] for one in (direct, found)]
    assert parts[0] == parts[1]
    assert "random" in parts[0]
    assert "gate: random failed after 20 of at most 20 games" in found.stdout
    assert "Milliseconds" not in found.stdout
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--from", "none.txt"], "none.txt: No such file"),
        (["evaluate", "--from"], "no files: expected at least one"),
        (["evaluate", "--from", "a.txt", "./a.txt"], "a.txt: named twice"),
        (["evaluate", "--from", "a.txt", "--seed", "3"], "--seed: --from plays no games, so this has no meaning"),
        (["evaluate", "--from", "a.txt", "--players", "2"], "--players: --from plays no games"),
        (["evaluate", "random", "--resume"], "--resume continues with the games of --save-games: give both"),
        (["rate", "random", "random", "--resume"], "--resume continues with the games of --save-games"),
    ],
)
def test_bad_input_ends_in_one_line(arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = command(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_fails_late_ends_the_command_with_the_figures_so_far(monkeypatch, tmp_path):
    agents = {"failing": as_agent(Failing(rare))}
    monkeypatch.setattr(arena, "as_agent", lambda spec, game: agents.get(spec) or make_agent(spec, game))
    asked = ["evaluate", "failing", "random", "--games", 20, "--batch", 4, "--seed", SEED]
    done = command(*asked, "--json", tmp_path / "a.json", "--save-games", tmp_path / "a.txt")
    assert done.exit_code == 1
    assert f"error: game {FIRST + 1}: agent 'failing': ZeroDivisionError: late" in done.stderr
    assert "the figures are of" in done.stderr
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["agents"][0]["games"] >= 8
    assert len(list(read_records(tmp_path / "a.txt"))) >= 8
    done = command(*asked, "--forfeit", "--save-games", tmp_path / "b.txt")
    assert done.exit_code == 1
    assert re.search(r"error: (1 game was|\d games were) lost by failures of agents", done.stderr)
    assert command("evaluate", "--from", tmp_path / "b.txt").stderr == done.stderr


@pytest.mark.parametrize("exact", [False, True])
def test_ctrl_c_while_figures_are_computed(exact, monkeypatch, tmp_path):
    summarise, calls = evaluate.summarise, []

    def stopped(*arguments, **options):
        calls.append(options)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return summarise(*arguments, **options)

    monkeypatch.setattr(evaluate, "summarise", stopped)
    asked = ["evaluate", "random", "random", "--games", 4, "--json", tmp_path / "a.json", *(["--exact"] * exact)]
    done = command(*asked)
    assert done.exit_code == 130
    assert ("perfect play is left out" in done.stderr) == exact
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (found["agents"][0]["games"], found["exact"]) == (4, None)


def test_games_are_not_overwritten_by_their_figures(tmp_path):
    file = tmp_path / "a.txt"
    assert command("evaluate", "random", "--games", 2, "--save-games", file).exit_code == 0
    before = file.read_bytes()
    for option in ("--csv", "--json"):
        done = command("evaluate", "--from", file, option, file)
        assert (done.exit_code, file.read_bytes()) == (2, before)
        assert f"{option} {file}: the command reads this file: name another one" in done.stderr


def test_stopped_curve_is_drawn_with_finished_points(stopped_in_batch, tmp_path):
    pytest.importorskip("matplotlib")
    stopped_in_batch(4)
    asked = ["curve", "mcts:threads=1", "--against", "random", "--simulations", "1,2,4", "--games", 8, "--batch", 4]
    done = command(*asked, "--out", tmp_path / "a")
    assert done.exit_code == 130, done.output
    points = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["points"]
    assert [(point["amount"], point["games"]) for point in points[:2]] == [(1, 8), (2, 8)]
    assert f"stopped after {len(points)} of 3 points" in done.stderr
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    stopped_in_batch(0)
    done = command(*asked, "--out", tmp_path / "b")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (130, "error: stopped")
    assert not (tmp_path / "b.json").exists()


def test_progress_is_printed_as_lines_without_a_terminal(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(match_runner.time, "perf_counter", lambda: now[0])
    with match_runner.progress(100) as bar:
        for done in range(50, 101):  # a resumed match
            now[0] += 30 if done > 90 else 0.5
            bar.show(done)
    assert capsys.readouterr().err.splitlines() == [
        "60 of 100 games in 0:00:05, about 0:00:20 left",
        "70 of 100 games in 0:00:10, about 0:00:15 left",
        "80 of 100 games in 0:00:15, about 0:00:10 left",
        "90 of 100 games in 0:00:20, about 0:00:05 left",
        "92 of 100 games in 0:01:20, about 0:00:15 left",
        "94 of 100 games in 0:02:20, about 0:00:19 left",
        "96 of 100 games in 0:03:20, about 0:00:17 left",
        "98 of 100 games in 0:04:20, about 0:00:11 left",
        "100 of 100 games in 0:05:20",
    ]
