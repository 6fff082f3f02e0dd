"""Test time limits of searches with a network, and trees that are kept from move to move, in all games."""

from __future__ import annotations

import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from ninetka_agents.agent import make_agent
from ninetka_agents.conformance import uniform
from ninetka_agents.search import guided, gumbel_by_clock, selection
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import GumbelSearch, SearchOptions
from ninetka_agents.search.gumbel_by_clock import GumbelByClock
from ninetka_agents.search.gumbel_tree import node_dtype
from ninetka_agents.search.mcts import next_chunk
from ninetka_agents.search.selection import halving_by_clock, halving_schedule
from ninetka_agents.switch import Switch, by_stage
from ninetka_env.core.registry import limits_of, load_variant
from ninetka_env.core.verbs import choice_action
from ninetka_train.judging.arena import play_games

GAMES = ["ninetka:num_players=3,auto_pass=False", "go:size=5", "kropki:width=5,height=4"]


class Clock:
    """A fake clock that tests advance."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in (guided, gumbel_by_clock, selection):
            monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def evaluate(self, games):
        """Evaluate a position uniformly and advance the clock by 0.1 seconds."""
        assert len(games) == 1
        self.now += 0.1
        return uniform(games)


def start(spec, plies=0):
    variant = load_variant(spec)
    game, rng = variant.game_class.start(variant, seed=3), np.random.default_rng(3)
    for _ in range(plies):
        game.play(int(rng.choice(game.legal_actions())))
    return game


# Time limits


@pytest.mark.parametrize(("considered", "simulations"), [(16, 64), (16, 128), (8, 240), (4, 32), (2, 6), (1, 5)])
def test_halving_by_the_clock_is_that_by_simulations(considered, simulations, monkeypatch):
    """If each simulation takes one second, seconds and simulations give the same entries."""
    clock = Clock(monkeypatch)
    entries = []
    for visits in halving_by_clock(considered, clock.now, simulations):
        entries.append(visits)
        clock.now += 1
    assert entries == halving_schedule(considered, simulations)[considered].tolist()


def test_however_late_it_is_one_action_is_tried():
    assert list(halving_by_clock(16, -1e9, 1.0)) == [0]


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("playouts", [0, 4])
def test_gumbel_search_ends_by_the_clock(spec, playouts, monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(gumbel_by_clock, "BATCH", 1)
    search = GumbelByClock(clock.evaluate, SearchOptions(playouts=playouts, gumbel_scale=0.0), 2.05)
    games = np.concatenate([start(spec, 2).records, start(spec, 3).records])
    result = search.run(games, np.random.default_rng(0))
    assert 2 * 2.05 <= clock.now - 100 <= 2 * (2.05 + 0.1 + 1e-9)  # per game, at most one evaluation longer
    assert result.visits.sum(axis=1).tolist() == [20, 20]
    for game, action in zip((start(spec, 2), start(spec, 3)), result.actions, strict=True):
        assert game.legal_mask()[action]


def uneven(games):
    """Evaluate positions at random, seeded by their bytes, so that different positions differ."""
    limits = limits_of(games.dtype)
    logits, values = (np.zeros((len(games), size), np.float32) for size in (limits.actions, limits.players))
    for row, game in enumerate(games):
        rng = np.random.default_rng(zlib.crc32(game.tobytes()))
        players = int(game["num_players"])
        logits[row], values[row, :players] = rng.normal(size=limits.actions), rng.dirichlet(np.ones(players))
    return logits, values


def by_schedule(monkeypatch, simulations):
    """Make searches with a time limit stop after a number of simulations instead."""

    def row(considered, start, seconds):
        return halving_schedule(considered, simulations)[considered].tolist()

    monkeypatch.setattr(gumbel_by_clock, "halving_by_clock", row)


@pytest.mark.parametrize("spec", GAMES)
def test_with_one_leaf_at_a_time_it_is_the_search_by_simulations(spec, monkeypatch):
    by_schedule(monkeypatch, 100)
    monkeypatch.setattr(gumbel_by_clock, "BATCH", 1)
    games, options = start(spec, 2).records, SearchOptions(100, playouts=0, gumbel_scale=0.0)
    found = GumbelByClock(uneven, options, 1e6).run(games, np.random.default_rng(0))
    expected = GumbelSearch(uneven, options).run(games, np.random.default_rng(0))
    np.testing.assert_array_equal(found.visits, expected.visits)
    np.testing.assert_allclose(found.policy, expected.policy, atol=1e-5)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("playouts", [0, 4])
def test_leaves_are_evaluated_together_and_each_counts_once(spec, playouts, monkeypatch):
    """In the end, each node's sum is its value plus its children's sums: no estimate of a waiting leaf remains."""
    by_schedule(monkeypatch, 400)
    batches = []

    def evaluate(games):
        batches.append(len(games))
        return uneven(games)

    game = start(spec, 2)
    search = GumbelByClock(evaluate, SearchOptions(playouts=playouts), 1e6)
    search._nodes = np.zeros((1, 401), node_dtype(game.records.dtype))
    result = search.run(game.records, np.random.default_rng(0))
    assert result.visits.sum() == 400
    assert max(batches) == gumbel_by_clock.BATCH
    assert np.mean(batches) > 4
    nodes = search._nodes[0, : np.count_nonzero(search._nodes["visits"])]
    ends = nodes["visits"].copy()
    np.subtract.at(ends, nodes["parent"][1:], nodes["visits"][1:])
    assert (ends[nodes["decided"] == 0] == 1).all()
    sums = nodes["values"] * ends[:, None].astype(float)
    for index in range(len(nodes) - 1, 0, -1):
        sums[nodes["parent"][index]] += sums[index]
    np.testing.assert_allclose(nodes["sums"], sums, atol=1e-3)


def timed_search(monkeypatch, seconds, spec=GAMES[0]):
    """Search with evaluations that take 1 second plus 0.1 per position; also return their times and sizes."""
    clock, asked = Clock(monkeypatch), []

    def evaluate(games):
        asked.append((clock.now - 100, len(games)))
        clock.now += 1 + 0.1 * len(games)
        return uneven(games)

    search = GumbelByClock(evaluate, SearchOptions(playouts=0, gumbel_scale=0.0), seconds)
    result = search.run(start(spec, 2).records, np.random.default_rng(0))
    return result, asked, clock.now - 100


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("seconds", [0.5, 1.15, 3.0, 9.9, 30.0])
def test_no_evaluation_begins_after_the_time_is_up(seconds, spec, monkeypatch):
    result, asked, end = timed_search(monkeypatch, seconds, spec)
    assert all(begun < seconds for begun, _ in asked[1:])
    assert end <= max(seconds, 1.1) + 1 + 0.1 * gumbel_by_clock.BATCH
    assert 1 <= result.visits.sum() <= sum(size for _, size in asked[1:]) + gumbel_by_clock.BATCH
    np.testing.assert_allclose((result.policy.sum(), result.values.sum()), 1, atol=1e-5)
    assert start(spec, 2).legal_mask()[result.actions[0]]


def test_batches_are_smaller_when_little_time_is_left(monkeypatch):
    _, asked, end = timed_search(monkeypatch, 30.0)
    assert max(size for _, size in asked) == gumbel_by_clock.BATCH
    assert asked[-1][1] < gumbel_by_clock.BATCH
    assert 30 <= end <= 30 + 1.2  # at most one evaluation of two positions longer


def test_playouts_of_an_evaluated_batch_stop_when_the_time_is_up(monkeypatch):
    """Each time check takes 0.01 seconds, so all playouts of a batch would exceed the limit."""
    looks, batches = [], []

    def look():
        looks.append(None)
        return len(looks) / 100

    for module in (gumbel_by_clock, selection):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=look))

    def evaluate(games):
        batches.append((len(looks), len(games)))
        return uneven(games)

    search = GumbelByClock(evaluate, SearchOptions(playouts=2), 3.0)
    game = start(GAMES[0], 2)
    assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]
    assert all(begun <= 301 for begun, _ in batches)
    assert len(looks) <= 305


@pytest.mark.parametrize("spec", GAMES)
def test_guided_search_ends_by_the_clock(spec, monkeypatch):
    clock = Clock(monkeypatch)
    games = np.concatenate([start(spec, 2).records, start(spec, 3).records])
    search = GuidedSearch(clock.evaluate, 1, 8, seconds=1.05)
    visits = search.run(games, np.random.default_rng(0)).visits
    assert 2 * 1.05 <= clock.now - 100 <= 2 * (1.05 + 0.1 + 1e-9)
    fixed = GuidedSearch(clock.evaluate, 11, 8).run(games[:1], np.random.default_rng(0))
    assert fixed.visits[0].sum() == visits[0].sum()  # the same search as with a number of simulations


def test_playouts_look_at_the_clock_too(monkeypatch):
    """Each time check takes one second, so a long series of playouts must be stopped."""
    looks = []
    monkeypatch.setattr(guided, "time", SimpleNamespace(perf_counter=lambda: looks.append(None) or float(len(looks))))
    search = GuidedSearch(uniform, 1, 10 * guided.CHUNK, seconds=3)
    visits = search.run(start("go:size=5").records, np.random.default_rng(0)).visits
    assert 0 <= 3 * guided.CHUNK + guided.VIRTUAL_VISITS - visits.sum() <= guided.VIRTUAL_VISITS


def test_proofs_are_timed_and_quick_ones_come_many_at_a_time():
    chunks = [1]
    for seconds in [0.0] * 8 + [1.0] * 2 + [0.0]:
        chunks.append(next_chunk(chunks[-1], seconds))
    assert chunks == [1, 2, 4, 8, 16, 32, 64, 64, 64, 32, 16, 32]
    assert next_chunk(1, 1.0) == 1


def test_the_first_search_compiles_all_that_later_ones_need():
    """So no later move waits for the compiler, even if the first search has no time to evaluate a leaf."""
    game, compiled = start("kropki:width=5,height=5"), gumbel_by_clock._expand_waiting
    GumbelByClock(uniform, SearchOptions(), 1e-9).act(game.records, np.random.default_rng(0))
    signatures = len(compiled.signatures)
    GumbelByClock(uniform, SearchOptions(), 0.05).act(game.records, np.random.default_rng(0))
    assert len(compiled.signatures) == signatures


def test_a_search_by_the_clock_stops_where_its_memory_ends(monkeypatch):
    monkeypatch.setattr(guided, "MEMORY", 1 << 15)
    monkeypatch.setattr(gumbel_by_clock, "MEMORY", 1 << 15)
    game = start("go:size=5")
    for search in (GuidedSearch(uniform, 1, 8, seconds=60), GumbelByClock(uniform, SearchOptions(), 60.0)):
        assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]


# Kept trees


def held(player):
    """Return visits, wins, untried choices and policy (None if not evaluated) of a player's nodes by path."""
    (nodes,), (evaluation,), (priors,) = player._trees.nodes, player._trees.evaluation, player._trees.priors
    found, waiting = {}, [(0, ())]
    while waiting:
        index, path = waiting.pop()
        node, number = nodes[index], evaluation[index]
        policy = priors[number].tolist() if number else None
        found[path] = (int(node.visits), node.wins.tolist(), node.untried.tolist(), policy)
        child = int(node.child)
        while child:
            assert nodes[child].parent == index
            waiting.append((child, (*path, int(nodes[child].choice))))
            child = int(nodes[child].sibling)
    return found


@pytest.mark.parametrize("spec", GAMES)
def test_the_tree_is_kept_from_move_to_move(spec):
    game, rng = start(spec), np.random.default_rng(0)
    player, kept = GuidedSearch(uniform, 8, 24, reuse=True).start(game), 0
    while not game.is_over:
        action = player.act(rng)
        assert game.legal_mask()[action]
        if rng.random() < 0.3:
            action = int(rng.choice(game.legal_actions()))
        before, record = held(player), game.records[0].copy()
        game.play(action)
        player.observe(action)
        if game.is_over:
            continue
        if len(game.legal_actions()) > 1 and player._trees is not None and player.visits:
            below = {path[1:]: one for path, one in before.items() if path and choice_action(record, path[0]) == action}
            if below:
                assert held(player) == below
                kept += 1
    player.close()
    assert kept > 5


def test_what_is_kept_counts():
    game = start("kropki:width=5,height=4", 3)
    player, rng = GuidedSearch(uniform, 8, 32, reuse=True).start(game), np.random.default_rng(0)
    action = player.act(rng)
    fresh = player.visits
    player.observe(action)
    carried = player.visits
    assert 0 < carried < fresh
    player.act(rng)
    assert fresh + carried - 8 * guided.VIRTUAL_VISITS <= player.visits <= fresh + carried


def test_one_agent_per_stage_keeps_what_each_of_them_keeps():
    search = GuidedSearch(uniform, 4, 16, reuse=True)
    agent = Switch(by_stage, [make_agent("random"), make_agent("random"), search])
    results = play_games([agent, make_agent("random")], 3, 3, seed=1)
    assert (results.winners >= 0).all()
    assert agent.remembers
    assert not Switch(by_stage, [make_agent("random")] * 3).remembers


# The agent `net`


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("seconds=-1", "seconds=-1.0: expected a finite number of at least 0"),
        ("seconds=inf", "seconds=inf: expected"),
        ("seconds=x", "option seconds='x' must be a number"),
        ("simulations=8,seconds=1", "simulations=8, seconds=1: expected one of them"),
        ("reuse", "reuse=True: it is for the tree of a search, which needs simulations or seconds"),
        ("exact=9", "exact=9: proofs are for the leaves of a search, which needs simulations or seconds"),
        (
            "seconds=1,playouts=0,reuse",
            "reuse=True: the Gumbel search, which is the only one here, starts a new tree for each move",
        ),
        ("seconds=1,playouts=2.5", "option playouts=.2.5. must be a number"),
    ],
)
def test_wrong_options_are_named(options, message):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=message):
        make_agent(f"net:{options}")


def test_the_agent_plays_by_the_clock_and_keeps_its_tree():
    pytest.importorskip("torch")
    agents = [make_agent("net:seconds=0.001,playouts=8,reuse,threads=1"), make_agent("random")]
    results = play_games(agents, 2, 2, seed=1)
    assert (results.winners >= 0).all()
