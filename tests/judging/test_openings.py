"""Test random openings: the same for all seatings of a group, and used by default for some agents."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_agents import Agent, make_agent
from ninetka_agents.switch import Switch, by_stage
from ninetka_env.core.registry import load_variant
from ninetka_train.judging.arena import make_match, play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.lockstep import StartMismatchError
from ninetka_train.judging.report import heading_lines
from ninetka_train.judging.results import NO_ACTION
from ninetka_train.judging.saved_games import game_records
from ninetka_train.judging.schedule import DEFAULT_OPENING_PLIES, default_opening_plies, draw_openings

GAME = "kropki:width=4,height=3"


class Lowest(Agent):
    """Plays the lowest legal action, so every game is the same."""

    def __init__(self, name="lowest", repeats_openings=False):
        self.name, self.repeats_openings = name, repeats_openings

    def act(self, games, rng):
        variant = load_variant(GAME)
        return np.array([variant.game_class(games[i : i + 1]).legal_actions()[0] for i in range(len(games))])


def match(plies, **options):
    return play_games([Lowest("a"), Lowest("b")], None, 20, game=GAME, opening_plies=plies, **options)


def test_openings_are_shared_within_a_group_and_differ_between_groups():
    results = match(3, seed=5)
    opened = results.actions[:, :3]
    assert (opened[::2] == opened[1::2]).all()
    assert len(np.unique(opened[::2], axis=0)) >= 9
    assert results.settings.opening_plies == 3
    for record in game_records(results):  # saved games include the opening
        game = record.variant.game_class.start(record.variant)
        for action in record.actions:
            game.play(action)
        assert game.is_over
        assert game.winner() == record.winner
    assert results.times.moves.sum() == (results.actions[:, 3:] != NO_ACTION).sum()  # the opening has no thinking time


def test_openings_depend_on_seed_but_not_on_batch():
    one, other, third = (match(4, seed=seed, batch=batch) for seed, batch in ((1, 256), (1, 3), (2, 256)))
    assert (one.actions == other.actions).all()
    assert (one.actions != third.actions).any()


def test_without_openings_nothing_is_drawn():
    agents = [make_agent("random"), make_agent("random")]
    explicit, by_default = (play_games(agents, 2, 4, seed=3, **options) for options in ({"opening_plies": 0}, {}))
    assert (explicit.actions == by_default.actions).all()


def test_seat_agents_observe_the_opening():
    class Listening:
        name = "listening"

        def start(self, game):
            return _Player(game)

        def act(self, games, rng):
            raise AssertionError

    class _Player:
        def __init__(self, game):
            self.game = game.copy()

        def act(self, rng):
            return int(self.game.legal_actions()[-1])

        def observe(self, action):
            self.game.play(action)

        def close(self):
            pass

    results = play_games([Listening(), make_agent("random")], None, 6, game=GAME, opening_plies=5)
    assert (results.winners >= -1).all()


def test_opening_stops_before_the_game_ends():
    """On a 2 x 2 Go board, random games often end early by passes, so some openings are shorter than asked."""
    variant = load_variant("go:size=2,komi=1")
    starts = np.concatenate([variant.game_class.start(variant).records] * 200)
    openings = draw_openings(variant, starts, np.arange(1, 201, dtype=np.uint64), 6)
    lengths = (openings >= 0).sum(axis=1)
    assert lengths.min() < 6 <= lengths.max()
    for opening, length in zip(openings, lengths, strict=True):
        game = variant.game_class.start(variant)
        assert (opening[length:] == -1).all()
        for action in opening[:length]:
            game.play(int(action))
            assert not game.is_over
    results = play_games([make_agent("random", "go")], game=variant, num_games=50, opening_plies=6)
    assert (results.winners >= -1).all()


# Given openings


def test_given_openings_are_played_in_every_seating():
    openings = np.array([[0, 5], [7, 2], [3, -1]])
    results = play_games([Lowest("a"), Lowest("b")], None, 6, game=GAME, openings=openings)
    assert results.settings.opening_plies == 2
    expected = np.repeat(openings, 2, axis=0)
    assert (results.actions[:4, :2] == expected[:4]).all()
    assert (results.actions[4:, 0] == 3).all()
    assert (results.actions[4:, 1] == 0).all()  # the agents play after a shorter opening
    again = play_games([Lowest("a"), Lowest("b")], None, 6, game=GAME, openings=openings.tolist(), seed=9, batch=1)
    assert (again.actions == results.actions).all()


def test_a_match_with_given_openings_can_be_continued():
    openings = np.array([[0, 5], [7, 2]])
    match = make_match(["random", "random"], None, 4, game=GAME, openings=openings, seed=4)
    results = match.play()
    earlier = dict(zip((0, 1), game_records(results, [0, 1]), strict=True))
    assert (match.play(earlier=earlier).actions == results.actions).all()
    other = make_match(["random", "random"], None, 4, game=GAME, openings=openings[::-1], seed=4)
    with pytest.raises(StartMismatchError, match="game 1 was played from another start"):
        other.play(earlier=earlier)


@pytest.mark.parametrize(
    ("openings", "message"),
    [
        ([[0, 5]], r"openings: int64 \(1, 2\): expected integers \(2, plies\)"),
        ([[0.0, 5.0], [1.0, 2.0]], "openings: float64"),
        ([0, 5], r"int64 \(2,\): expected integers"),
        ([[0, 5], [1]], r"rows of different lengths: expected integers \(2, plies\)"),
        ([[0, 5], [1, 900]], "expected actions below 25, or -1"),
        ([[0, 5], [1, -2]], "expected actions below 25, or -1"),
        ([[-1, 5], [1, 2]], "-1 only after the last action"),
    ],
)
def test_openings_of_another_form_are_refused(openings, message):
    with pytest.raises(ValueError, match=message):
        make_match(["random", "random"], None, 4, game=GAME, openings=openings)


def test_openings_that_cannot_be_played_are_refused():
    def play(openings, game=GAME, **options):
        make_match(["random", "random"], None, 4, game=game, openings=openings).play(**options)

    with pytest.raises(ValueError, match=r"openings, row 1: action 3 .* is illegal .* in ply 2"):
        play([[0, 5], [3, 3]])
    with pytest.raises(ValueError, match="openings, row 0: ply 2 ends the game"):
        play([[4, 4], [0, 1]], "go:size=2,komi=1")
    with pytest.raises(ValueError, match="opening_plies=2 with openings: expected one of them"):
        make_match(["random", "random"], None, 4, game=GAME, openings=[[0, 5], [7, 2]], opening_plies=2)
    with pytest.raises(ValueError, match="other processes draw their own"):
        play([[0, 5], [7, 2]], play_batches=lambda settings, batches: iter(()))


# Default openings


def test_default_openings_of_agents_that_repeat_openings():
    net, other = Lowest("net", repeats_openings=True), Lowest("other")
    fixed, drawn = load_variant("ninetka"), load_variant("ninetka:neutral_placement=random")
    assert default_opening_plies([net], fixed) == default_opening_plies([net, net], fixed) == DEFAULT_OPENING_PLIES
    assert default_opening_plies([net, other], fixed) == default_opening_plies([other, other], fixed) == 0
    # the lineup of two networks repeats games
    assert default_opening_plies([net, net, other], fixed) == DEFAULT_OPENING_PLIES
    assert default_opening_plies([net, net, other], fixed.replace_options(num_players=3)) == 0
    assert default_opening_plies([net, net], drawn) == 0
    assert Switch(by_stage, [net, other, other]).repeats_openings
    assert not Switch(by_stage, [other, net, net]).repeats_openings


def test_networks_at_temperature_0_repeat_openings():
    pytest.importorskip("torch")
    specs = ("net", "net:simulations=4", "net:temperature=1", "phases:placement=net,movement=random")
    assert [make_agent(spec).repeats_openings for spec in specs] == [True, True, False, True]


# Report


def test_the_report_counts_games_that_repeat_others():
    def distinct_and_heading(plies):
        evaluation = summarise(match(plies))
        return evaluation.distinct_games, "\n".join(heading_lines(evaluation))

    count, text = distinct_and_heading(0)
    assert count == 2
    assert "warning: 18 games repeat others move by move" in text
    assert "--opening-plies 4" in text
    count, text = distinct_and_heading(3)
    assert count >= 18
    assert "opening_plies=3: random plies at the start of each rotation" in text
    assert "warning" not in text
    assert ("repeat others" in text) == (count < 20)
