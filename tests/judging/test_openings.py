"""Random openings: the same for all seatings of a group, and when they are the default."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_agents import Agent, make_agent
from ninetka_agents.switch import Switch, by_stage
from ninetka_env.core.registry import load_variant
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.report import headings
from ninetka_train.judging.results import NO_ACTION
from ninetka_train.judging.saved_games import game_records
from ninetka_train.judging.schedule import USUAL_PLIES, draw_openings, usual_opening_plies

GAME = "kropki:width=4,height=3"


class Lowest(Agent):
    """Plays the lowest legal action, so every game is the same."""

    def __init__(self, name="lowest", opens_alike=False):
        self.name, self.opens_alike = name, opens_alike

    def act(self, games, rng):
        variant = load_variant(GAME)
        return np.array([variant.game_class(games[i : i + 1]).legal_actions()[0] for i in range(len(games))])


def match(plies, **options):
    return play_games([Lowest("a"), Lowest("b")], None, 20, game=GAME, opening_plies=plies, **options)


def test_the_games_of_a_group_open_alike_and_the_groups_do_not():
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


def test_the_seed_decides_whatever_the_batch_is():
    one, other, third = (match(4, seed=seed, batch=batch) for seed, batch in ((1, 256), (1, 3), (2, 256)))
    assert (one.actions == other.actions).all()
    assert (one.actions != third.actions).any()


def test_without_openings_nothing_is_drawn():
    agents = [make_agent("random"), make_agent("random")]
    told, untold = (play_games(agents, 2, 4, seed=3, **options) for options in ({"opening_plies": 0}, {}))
    assert (told.actions == untold.actions).all()


def test_players_are_told_of_the_opening():
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


def test_an_opening_ends_no_game():
    """On 2 x 2 points random games end early by passes."""
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


# Default openings


def test_matches_of_those_who_open_alike_begin_at_random():
    net, other = Lowest("net", opens_alike=True), Lowest("other")
    fixed, drawn = load_variant("ninetka"), load_variant("ninetka:neutral_placement=random")
    assert usual_opening_plies([net], fixed) == usual_opening_plies([net, net], fixed) == USUAL_PLIES
    assert usual_opening_plies([net, other], fixed) == usual_opening_plies([other, other], fixed) == 0
    assert usual_opening_plies([net, net, other], fixed) == USUAL_PLIES  # the lineup of two networks repeats games
    assert usual_opening_plies([net, net, other], fixed.replaced(num_players=3)) == 0
    assert usual_opening_plies([net, net], drawn) == 0
    assert Switch(by_stage, [net, other, other]).opens_alike
    assert not Switch(by_stage, [other, net, net]).opens_alike


def test_networks_say_that_they_open_alike():
    pytest.importorskip("torch")
    specs = ("net", "net:simulations=4", "net:temperature=1", "phases:placement=net,movement=random")
    assert [make_agent(spec).opens_alike for spec in specs] == [True, True, False, True]


# Report


def test_the_report_counts_games_that_repeat_others():
    def told(plies):
        evaluation = summarise(match(plies))
        return evaluation.distinct_games, "\n".join(headings(evaluation))

    count, text = told(0)
    assert count == 2
    assert "warning: 18 games repeat others move by move" in text
    assert "--opening-plies 4" in text
    count, text = told(3)
    assert count >= 18
    assert "opening_plies=3: random plies at the start of each rotation" in text
    assert "warning" not in text
    assert ("repeat others" in text) == (count < 20)
