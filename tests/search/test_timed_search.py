"""Test time limits of searches with a network, and trees that are kept from move to move, in all games."""

from __future__ import annotations

import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from ninetka_agents.agent import make_agent
from ninetka_agents.conformance import evaluate_uniformly
from ninetka_agents.search import guided, selection, timed_gumbel
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.gumbel_tree import node_dtype
from ninetka_agents.search.mcts import next_chunk
from ninetka_agents.search.selection import halving_schedule, timed_halving
from ninetka_agents.search.timed_gumbel import TimedGumbelSearch
from ninetka_agents.switch import Switch, by_stage
from ninetka_env.core.registry import limits_of, load_variant
from ninetka_env.core.verbs import choice_action
from ninetka_train.judging.arena import play_games

GAMES = ["ninetka:num_players=3,auto_pass=False", "go:size=5", "kropki:width=5,height=4"]


class FakeClock:
    """Replaces the clock of searches. Tests set `now`, and `evaluate` advances it."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in (guided, timed_gumbel, selection):
            monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def evaluate(self, games):
        """Evaluate a position uniformly and advance the clock by 0.1 seconds."""
        assert len(games) == 1
        self.now += 0.1
        return evaluate_uniformly(games)


def start_game(spec, plies=0):
    variant = load_variant(spec)
    game, rng = variant.game_class.start(variant, seed=3), np.random.default_rng(3)
    for _ in range(plies):
        game.play(int(rng.choice(game.legal_actions())))
    return game


# Time limits


@pytest.mark.parametrize(("considered", "simulations"), [(16, 64), (16, 128), (8, 240), (4, 32), (2, 6), (1, 5)])
def test_timed_halving_matches_halving_by_simulations(considered, simulations, monkeypatch):
    """If each simulation takes one second, N seconds give the same schedule as N simulations."""
    clock = FakeClock(monkeypatch)
    entries = []
    for visits in timed_halving(considered, clock.now, simulations):
        entries.append(visits)
        clock.now += 1
    assert entries == halving_schedule(considered, simulations)[considered].tolist()


def test_one_action_is_tried_even_after_the_time_is_up():
    assert list(timed_halving(16, -1e9, 1.0)) == [0]


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("playouts", [0, 4])
def test_gumbel_search_respects_the_time_limit(spec, playouts, monkeypatch):
    clock = FakeClock(monkeypatch)
    monkeypatch.setattr(timed_gumbel, "BATCH_SIZE", 1)
    search = TimedGumbelSearch(clock.evaluate, GumbelOptions(playouts=playouts, gumbel_scale=0.0), 2.05)
    games = np.concatenate([start_game(spec, 2).records, start_game(spec, 3).records])
    result = search.run(games, np.random.default_rng(0))
    assert 2 * 2.05 <= clock.now - 100 <= 2 * (2.05 + 0.1 + 1e-9)  # per game, at most one evaluation longer
    assert result.visits.sum(axis=1).tolist() == [20, 20]
    for game, action in zip((start_game(spec, 2), start_game(spec, 3)), result.actions, strict=True):
        assert game.legal_mask()[action]


def evaluate_by_hash(games):
    """Evaluate positions at random, seeded by their bytes, so that different positions differ."""
    limits = limits_of(games.dtype)
    logits, values = (np.zeros((len(games), size), np.float32) for size in (limits.actions, limits.players))
    for row, game in enumerate(games):
        rng = np.random.default_rng(zlib.crc32(game.tobytes()))
        players = int(game["num_players"])
        logits[row], values[row, :players] = rng.normal(size=limits.actions), rng.dirichlet(np.ones(players))
    return logits, values


def limit_simulations(monkeypatch, simulations):
    """Make searches with a time limit stop after a number of simulations instead."""

    def row(considered, start, seconds):
        return halving_schedule(considered, simulations)[considered].tolist()

    monkeypatch.setattr(timed_gumbel, "timed_halving", row)


@pytest.mark.parametrize("spec", GAMES)
def test_batches_of_one_leaf_equal_the_search_by_simulations(spec, monkeypatch):
    limit_simulations(monkeypatch, 100)
    monkeypatch.setattr(timed_gumbel, "BATCH_SIZE", 1)
    games, options = start_game(spec, 2).records, GumbelOptions(100, playouts=0, gumbel_scale=0.0)
    found = TimedGumbelSearch(evaluate_by_hash, options, 1e6).run(games, np.random.default_rng(0))
    expected = GumbelSearch(evaluate_by_hash, options).run(games, np.random.default_rng(0))
    np.testing.assert_array_equal(found.visits, expected.visits)
    np.testing.assert_allclose(found.policy, expected.policy, atol=1e-5)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("playouts", [0, 4])
def test_leaves_are_evaluated_together_and_each_counts_once(spec, playouts, monkeypatch):
    """After the search, each node's sum is its own value plus its children's sums.

    While a leaf waits for its evaluation, its value is only an estimate. No estimate may remain.
    """
    limit_simulations(monkeypatch, 400)
    batches = []

    def evaluate(games):
        batches.append(len(games))
        return evaluate_by_hash(games)

    game = start_game(spec, 2)
    search = TimedGumbelSearch(evaluate, GumbelOptions(playouts=playouts), 1e6)
    search._nodes = np.zeros((1, 401), node_dtype(game.records.dtype))
    result = search.run(game.records, np.random.default_rng(0))
    assert result.visits.sum() == 400
    assert max(batches) == timed_gumbel.BATCH_SIZE
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
    """Search with evaluations that take 1 second plus 0.1 per position.

    Return the result, a list of (start time, number of positions) of the evaluations, and the end time.
    """
    clock, asked = FakeClock(monkeypatch), []

    def evaluate(games):
        asked.append((clock.now - 100, len(games)))
        clock.now += 1 + 0.1 * len(games)
        return evaluate_by_hash(games)

    search = TimedGumbelSearch(evaluate, GumbelOptions(playouts=0, gumbel_scale=0.0), seconds)
    result = search.run(start_game(spec, 2).records, np.random.default_rng(0))
    return result, asked, clock.now - 100


@pytest.mark.parametrize("spec", GAMES)
@pytest.mark.parametrize("seconds", [0.5, 1.15, 3.0, 9.9, 30.0])
def test_no_evaluation_begins_after_the_time_is_up(seconds, spec, monkeypatch):
    result, asked, end = timed_search(monkeypatch, seconds, spec)
    assert all(begun < seconds for begun, _ in asked[1:])
    assert end <= max(seconds, 1.1) + 1 + 0.1 * timed_gumbel.BATCH_SIZE
    assert 1 <= result.visits.sum() <= sum(size for _, size in asked[1:]) + timed_gumbel.BATCH_SIZE
    np.testing.assert_allclose((result.policy.sum(), result.values.sum()), 1, atol=1e-5)
    assert start_game(spec, 2).legal_mask()[result.actions[0]]


def test_batches_are_smaller_when_little_time_is_left(monkeypatch):
    _, asked, end = timed_search(monkeypatch, 30.0)
    assert max(size for _, size in asked) == timed_gumbel.BATCH_SIZE
    assert asked[-1][1] < timed_gumbel.BATCH_SIZE
    assert 30 <= end <= 30 + 1.2  # at most one evaluation of two positions longer


def test_playouts_of_an_evaluated_batch_stop_when_the_time_is_up(monkeypatch):
    """Each time check takes 0.01 seconds, so all playouts of a batch would exceed the limit."""
    looks, batches = [], []

    def look():
        looks.append(None)
        return len(looks) / 100

    for module in (timed_gumbel, selection):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=look))

    def evaluate(games):
        batches.append((len(looks), len(games)))
        return evaluate_by_hash(games)

    search = TimedGumbelSearch(evaluate, GumbelOptions(playouts=2), 3.0)
    game = start_game(GAMES[0], 2)
    assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]
    assert all(begun <= 301 for begun, _ in batches)
    assert len(looks) <= 305


@pytest.mark.parametrize("spec", GAMES)
def test_guided_search_respects_the_time_limit(spec, monkeypatch):
    clock = FakeClock(monkeypatch)
    games = np.concatenate([start_game(spec, 2).records, start_game(spec, 3).records])
    search = GuidedSearch(clock.evaluate, 1, 8, seconds=1.05)
    visits = search.run(games, np.random.default_rng(0)).visits
    assert 2 * 1.05 <= clock.now - 100 <= 2 * (1.05 + 0.1 + 1e-9)
    fixed = GuidedSearch(clock.evaluate, 11, 8).run(games[:1], np.random.default_rng(0))
    assert fixed.visits[0].sum() == visits[0].sum()  # the same search as with 11 simulations


def test_playouts_respect_the_time_limit(monkeypatch):
    """Every look at the clock takes one second here, so a long series of playouts must be stopped."""
    looks = []
    monkeypatch.setattr(guided, "time", SimpleNamespace(perf_counter=lambda: looks.append(None) or float(len(looks))))
    search = GuidedSearch(evaluate_uniformly, 1, 10 * guided.MAX_CHUNK, seconds=3)
    visits = search.run(start_game("go:size=5").records, np.random.default_rng(0)).visits
    assert 0 <= 3 * guided.MAX_CHUNK + guided.VIRTUAL_VISITS - visits.sum() <= guided.VIRTUAL_VISITS


def test_chunks_grow_while_proofs_are_fast():
    chunks = [1]
    for seconds in [0.0] * 8 + [1.0] * 2 + [0.0]:
        chunks.append(next_chunk(chunks[-1], seconds))
    assert chunks == [1, 2, 4, 8, 16, 32, 64, 64, 64, 32, 16, 32]
    assert next_chunk(1, 1.0) == 1


def test_the_first_search_compiles_all_that_later_ones_need():
    """No later move waits for the compiler, even if the first search has no time to evaluate a leaf."""
    game, compiled = start_game("kropki:width=5,height=5"), timed_gumbel._expand_pending
    TimedGumbelSearch(evaluate_uniformly, GumbelOptions(), 1e-9).act(game.records, np.random.default_rng(0))
    signatures = len(compiled.signatures)
    TimedGumbelSearch(evaluate_uniformly, GumbelOptions(), 0.05).act(game.records, np.random.default_rng(0))
    assert len(compiled.signatures) == signatures


def test_a_timed_search_stops_at_its_memory_limit(monkeypatch):
    monkeypatch.setattr(guided, "MAX_TREE_BYTES", 1 << 15)
    monkeypatch.setattr(timed_gumbel, "MAX_TREE_BYTES", 1 << 15)
    game = start_game("go:size=5")
    for search in (
        GuidedSearch(evaluate_uniformly, 1, 8, seconds=60),
        TimedGumbelSearch(evaluate_uniformly, GumbelOptions(), 60.0),
    ):
        assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]


# Kept trees


def tree_contents(player):
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
    game, rng = start_game(spec), np.random.default_rng(0)
    player, kept = GuidedSearch(evaluate_uniformly, 8, 24, reuse=True).start(game), 0
    while not game.is_over:
        action = player.act(rng)
        assert game.legal_mask()[action]
        if rng.random() < 0.3:
            action = int(rng.choice(game.legal_actions()))
        before, record = tree_contents(player), game.records[0].copy()
        game.play(action)
        player.observe(action)
        if game.is_over:
            continue
        if len(game.legal_actions()) > 1 and player._trees is not None and player.visits:
            below = {path[1:]: one for path, one in before.items() if path and choice_action(record, path[0]) == action}
            if below:
                assert tree_contents(player) == below
                kept += 1
    player.close()
    assert kept > 5


def test_kept_visits_count():
    game = start_game("kropki:width=5,height=4", 3)
    player, rng = GuidedSearch(evaluate_uniformly, 8, 32, reuse=True).start(game), np.random.default_rng(0)
    action = player.act(rng)
    fresh = player.visits
    player.observe(action)
    carried = player.visits
    assert 0 < carried < fresh
    player.act(rng)
    assert fresh + carried - 8 * guided.VIRTUAL_VISITS <= player.visits <= fresh + carried


def test_switch_keeps_the_trees_of_its_agents():
    search = GuidedSearch(evaluate_uniformly, 4, 16, reuse=True)
    agent = Switch(by_stage, [make_agent("random"), make_agent("random"), search])
    results = play_games([agent, make_agent("random")], 3, 3, seed=1)
    assert (results.winners >= 0).all()
    assert agent.has_seat_agents
    assert not Switch(by_stage, [make_agent("random")] * 3).has_seat_agents


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
def test_error_names_the_wrong_option(options, message):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=message):
        make_agent(f"net:{options}")


def test_net_agent_plays_with_a_time_limit_and_keeps_its_tree():
    pytest.importorskip("torch")
    agents = [make_agent("net:seconds=0.001,playouts=8,reuse,threads=1"), make_agent("random")]
    results = play_games(agents, 2, 2, seed=1)
    assert (results.winners >= 0).all()
