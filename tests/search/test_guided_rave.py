"""Test RAVE guided by a network: strength, its use of the network, batches, time limits and kept trees."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_by_clock import start
from test_rave import compiled, undecided

from ninetka_agents.agent import GameRandom, game_streams
from ninetka_agents.conformance import uniform
from ninetka_agents.search import guided_rave
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelSearch
from ninetka_agents.search.gumbel_by_clock import GumbelByClock
from ninetka_agents.search.rave_tree import Rules
from ninetka_env.core.registry import load_variant

PLAIN = Rules(1000.0, 0.0, heavy=False, local=False)
EXPLORING = Rules(1000.0, 0.3, heavy=False, local=False)
BOARDS = ["go:size=5", "kropki:width=5,height=4,territory=declared", "ninetka:num_players=3,auto_pass=False"]


def some_games(spec, plies=(2, 5, 9)):
    return np.concatenate([start(spec, count).records for count in plies])


def same(first, second):
    return all((one == other).all() for one, other in zip(first, second, strict=True))


# Strength


@compiled
@pytest.mark.parametrize(
    ("spec", "plies"),
    [
        pytest.param("go:size=3,komi=0,ko=positional,max_plies=9", 5, marks=pytest.mark.exhaustive),
        ("kropki:width=5,height=4,territory=declared", 14),
    ],
)
def test_it_finds_a_best_action_on_tiny_boards(spec, plies):
    search, found = GuidedRaveSearch(uniform, 200, 16, rules=EXPLORING), 0
    for game, best in undecided(spec, plies, 30):
        found += 1
        assert search.act(game.records, np.random.default_rng(0))[0] in best, str(game)
    assert found >= 5


# The network's policy and values


@pytest.mark.parametrize("spec", BOARDS)
def test_the_policy_is_followed_where_nothing_else_is_known(spec):
    game = start(spec, 4)
    legal = game.legal_actions()
    chosen = int(legal[len(legal) // 2])

    def evaluate(games):
        logits, values = uniform(games)
        logits[:] = np.log(0.1 / len(legal))
        logits[:, chosen] = np.log(0.9)
        return logits, values

    search = GuidedRaveSearch(evaluate, 1, 12, rules=PLAIN._replace(advice=2.0))
    assert search.act(game.records, np.random.default_rng(0)) == [chosen]


@pytest.mark.parametrize(("spec", "plies"), [(BOARDS[0], 4), (BOARDS[1], 4), ("ninetka:num_players=3", 50)])
def test_values_count_for_the_seat_that_they_mean(spec, plies):
    """The network predicts a win after one action, a loss after the others, and equal values elsewhere."""
    game = start(spec, plies)
    legal, seat = game.legal_actions().tolist(), game.to_move
    wanted, sees = legal[-2], {}
    for action in legal:
        child = game.copy()
        child.play(action)
        sees[child.records.tobytes()] = seat if action == wanted else (seat + 1) % game.num_players

    def evaluate(games):
        logits, values = uniform(games)
        for row, record in enumerate(games):
            if record.tobytes() in sees:
                values[row] = (
                    np.arange(values.shape[1]) == (sees[record.tobytes()] - record["to_move"]) % game.num_players
                )
        return logits, values

    search = GuidedRaveSearch(evaluate, 8 * len(legal), 6, rules=EXPLORING._replace(trust=20.0))
    assert search.act(game.records, np.random.default_rng(0)) == [wanted]


@pytest.mark.parametrize(("spec", "winner"), [("go:size=5", 1), (BOARDS[1], 0), (BOARDS[2], 2)])
def test_values_are_reported_by_absolute_seat(spec, winner):
    def certain(games):
        logits, values = uniform(games)
        relative = (winner - games["to_move"].astype(int)[:, None]) % games["num_players"][:, None]
        return logits, (np.arange(values.shape[1]) == relative).astype(np.float32)

    games = start(spec, 3).records
    searches = (GuidedRaveSearch(one, 64, 16, rules=PLAIN._replace(trust=4.0)) for one in (uniform, certain))
    uncertain, sure = (search.run(games, np.random.default_rng(0)).values[0] for search in searches)
    assert sure.sum() == pytest.approx(1)
    assert sure[winner] > uncertain[winner] + 0.2
    searches = (GuidedRaveSearch(one, 64, 16, rules=PLAIN._replace(trust=0.0)) for one in (uniform, certain))
    assert same(*(search.run(games, np.random.default_rng(0)) for search in searches))


@pytest.mark.parametrize("spec", BOARDS[:2])
def test_each_position_is_asked_about_once_and_all_playouts_count(spec):
    games, asked = some_games(spec), []

    def listen(positions):
        asked.append([record.tobytes() for record in positions])
        return uniform(positions)

    before, counted = games.tobytes(), []
    for game in np.split(games, len(games)):
        asked.clear()
        result = GuidedRaveSearch(listen, 60, 10, rules=PLAIN).run(game, np.random.default_rng(0))
        counted.append(sum(map(len, asked)))
        assert max(map(len, asked)) <= guided_rave.BATCH
        assert asked[0] == [game.tobytes()]
        assert result.visits.sum() == 600 + PLAIN.trust * 10 * (counted[-1] - 1)
    assert max(counted) == 60
    assert games.tobytes() == before


# Randomness and batches


@pytest.mark.parametrize("spec", BOARDS)
def test_a_batch_is_searched_like_each_game_alone(spec):
    games, search = some_games(spec), GuidedRaveSearch(uniform, 20, 8, gumbel_scale=1.0, rules=PLAIN)
    streams = game_streams(games, np.random.default_rng(5))
    together = search.run(games, GameRandom(streams.copy()))
    assert same(together, search.run(games, GameRandom(streams.copy())))
    for index in range(len(games)):
        part = slice(index, index + 1)
        alone = search.run(games[part], GameRandom(streams[part].copy()))
        assert same(alone, [array[part] for array in together])
    assert len(search.act(games[:0], np.random.default_rng(0))) == 0


def test_noise_draws_by_visits():
    games, rng = np.repeat(start("go:size=5").records, 500), np.random.default_rng(0)
    result = GuidedRaveSearch(uniform, 3, 10, gumbel_scale=1.0, rules=PLAIN).run(games, rng)
    drawn = np.bincount(result.actions, minlength=result.visits.shape[1]) / len(games)
    expected = (result.visits / result.visits.sum(1, keepdims=True)).mean(0)
    np.testing.assert_allclose(drawn, expected, atol=0.08)
    assert (result.actions != result.visits.argmax(1)).any()


# Time limits and kept trees


@pytest.mark.parametrize("spec", BOARDS)
def test_it_ends_by_the_clock(spec, monkeypatch):
    """Each evaluation takes 0.1 seconds."""
    clock = SimpleNamespace(now=100.0, asked=[])
    monkeypatch.setattr(guided_rave, "time", SimpleNamespace(perf_counter=lambda: clock.now))

    def evaluate(games):
        clock.now += 0.1
        clock.asked.append(len(games))
        return uniform(games)

    games = some_games(spec, (2, 3))
    result = GuidedRaveSearch(evaluate, 1, 8, rules=PLAIN, seconds=1.05).run(games, np.random.default_rng(0))
    assert 2.1 <= clock.now - 100 <= 2.3
    assert result.visits.sum() > 0


@pytest.mark.parametrize("spec", BOARDS)
def test_no_evaluation_begins_after_the_time_is_up(spec, monkeypatch):
    """Evaluations and time checks take time, so the time is often up between two of them."""
    clock = SimpleNamespace(now=100.0, asked=[])

    def look():
        clock.now += 0.01
        return clock.now

    monkeypatch.setattr(guided_rave, "time", SimpleNamespace(perf_counter=look))

    def evaluate(games):
        clock.asked.append(clock.now)
        clock.now += 0.1
        return uniform(games)

    for seconds in (0.05, 0.2, 0.5, 0.95):
        clock.asked, begun = [], clock.now
        search = GuidedRaveSearch(evaluate, 1, 8, rules=PLAIN, seconds=seconds)
        search.run(start(spec, 3).records, np.random.default_rng(0))
        assert all(asked - begun <= seconds + 0.01 for asked in clock.asked[1:])
        assert clock.now - begun <= max(seconds, 0.1) + 0.1 + 0.03


def held(tree):
    """Return the numbers and the policy entry of a tree's nodes by their paths."""
    found, waiting = {}, [(0, ())]
    while waiting:
        index, path = waiting.pop()
        node = tree.nodes[index]
        policy = tree._tree.policy[index].item() if path else 1.0
        found[path] = ([node[name].item() for name in node.dtype.names[3:]], policy)
        children = range(node["first"], node["first"] + node["count"])
        waiting += [(child, (*path, int(tree.nodes[child]["action"]))) for child in children]
    return found


@pytest.mark.parametrize("spec", BOARDS)
def test_the_tree_is_kept_from_move_to_move(spec):
    game, rng, kept, advised = start(spec), np.random.default_rng(0), 0, 0
    player = GuidedRaveSearch(uniform, 16, 12, rules=PLAIN, reuse=True).start(game)
    while not game.is_over and kept < 12:
        action = player.act(rng)
        assert game.legal_mask()[action]
        below = {path[1:]: one for path, one in held(player.tree).items() if path[:1] == (action,)}
        forced = len(game.legal_actions()) == 1
        game.play(action)
        player.observe(action)
        if len(below) > 1 and not game.is_over and not forced:
            below[()] = (below[()][0], 1.0)
            assert held(player.tree) == below
            kept, advised = kept + 1, advised + (max(policy for path, (_, policy) in below.items() if path) > 0)
    player.close()
    assert kept > 5
    assert advised > 3


def test_what_is_kept_is_not_asked_about_again():
    asked = []

    def listen(positions):
        asked.extend(record.tobytes() for record in positions)
        return uniform(positions)

    game, rng = start("kropki:width=5,height=4"), np.random.default_rng(0)
    player = GuidedRaveSearch(listen, 64, 8, rules=PLAIN, reuse=True).start(game)
    for _ in range(4):
        player.observe(player.act(rng))
    assert len(asked) == len(set(asked)) > 128


# Options and agents


@pytest.mark.parametrize(
    "options",
    [{"simulations": 0}, {"playouts": 0}, {"playouts": 1 << 23}, {"seconds": -1}, {"gumbel_scale": -1}, {"reuse": 2}],
)
def test_wrong_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        GuidedRaveSearch(uniform, **options)


@pytest.mark.parametrize(
    ("name", "value"), [("trust", 1e308), ("trust", float("nan")), ("advice", -1.0), ("exploration", float("inf"))]
)
def test_wrong_numbers_of_the_rules_are_named(name, value):
    with pytest.raises(ValueError, match=f"{re.escape(f'{name}={value}')}: expected a"):
        GuidedRaveSearch(uniform, rules=PLAIN._replace(**{name: value}))


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        ("go:size=5", (True, False)),
        ("kropki", (False, False)),
        pytest.param("kropki:width=20,height=20", (True, True), marks=pytest.mark.exhaustive),
    ],
)
def test_networks_search_go_and_kropki_by_it(spec, rules):
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    game, name = start(spec, 2), load_variant(spec).definition.name
    search = make_searches(uniform, name, SearchSettings(4, playouts=8)).agent_for(game.records)
    assert isinstance(search, GuidedRaveSearch)
    used = search.make_tree(game.records).rules
    assert (used.heavy, used.local) == rules
    assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]
    for other, settings in ((name, SearchSettings(4, playouts=0)), ("ninetka", SearchSettings(4))):
        assert not any(isinstance(one, GuidedRaveSearch) for one in make_searches(uniform, other, settings).agents)


def test_a_game_says_how_its_networks_search_unless_told():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    made = {game: make_searches(uniform, game, SearchSettings(4)) for game in ("ninetka", "go")}
    kinds = {game: {type(one) for one in searches.agents} for game, searches in made.items()}
    assert kinds == {"ninetka": {GumbelSearch, GuidedSearch}, "go": {GuidedRaveSearch}}


def test_kropki_is_searched_by_what_suits_the_board():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    small, large = (start(spec) for spec in ("kropki:width=12,height=12", "kropki:width=13,height=5"))
    search = make_searches(uniform, "kropki", SearchSettings(4))
    assert isinstance(search.agent_for(small.records), GumbelSearch)
    assert search.agent_for(small.records).options.playouts == 0
    assert isinstance(search.agent_for(large.records), GuidedRaveSearch)
    search = make_searches(uniform, "kropki", SearchSettings(seconds=0.01, reuse=True))
    assert isinstance(search.agent_for(small.records), GumbelByClock)


@pytest.mark.parametrize(
    "spec", ["kropki:width=12,height=12", pytest.param("kropki:width=13,height=5", marks=pytest.mark.exhaustive)]
)
def test_networks_play_kropki_on_boards_of_both_kinds(spec):
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    game = start(spec, 2)
    search = make_searches(uniform, "kropki", SearchSettings(4))
    assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]
    assert search.agent_for(game.records).run(game.records, np.random.default_rng(0)).visits[0].sum() > 0
    search = make_searches(uniform, "kropki", SearchSettings(seconds=0.01, reuse=True))
    player = search.start(game)
    for _ in range(3):
        action = player.act(np.random.default_rng(0))
        game.play(action)
        player.observe(action)
    player.close()


def test_on_boards_much_larger_than_it_learned_on_kropkis_network_is_asked_for_moves_alone():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    def certain(games):
        logits, values = uniform(games)
        return logits, np.eye(values.shape[1], dtype=np.float32)[np.zeros(len(games), int)]

    for width, heeded in ((5, True), (20, False)):
        games = start(f"kropki:width={width},height={width},territory=immediate,start=cross", 3).records
        found = [
            searches.agent_for(games).run(games, np.random.default_rng(0))
            for searches in (make_searches(one, "kropki", SearchSettings(3, playouts=16)) for one in (uniform, certain))
        ]
        assert same(*found) is not heeded
