"""Test RAVE guided by a network: strength, use of the network, batches, time limits and kept trees."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_rave import compiled, undecided
from test_timed_search import start_game

from ninetka_agents.agent import PerGameGenerator, game_streams
from ninetka_agents.conformance import evaluate_uniformly
from ninetka_agents.search import guided_rave
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch
from ninetka_agents.search.gumbel import GumbelSearch
from ninetka_agents.search.rave_tree import RaveOptions
from ninetka_agents.search.timed_gumbel import TimedGumbelSearch
from ninetka_env.core.registry import load_variant

PLAIN = RaveOptions(1000.0, 0.0, heavy=False, local=False)
EXPLORING = RaveOptions(1000.0, 0.3, heavy=False, local=False)
BOARDS = ["go:size=5", "kropki:width=5,height=4,territory=declared", "ninetka:num_players=3,auto_pass=False"]


def sample_states(spec, plies=(2, 5, 9)):
    return np.concatenate([start_game(spec, count).records for count in plies])


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
    search, found = GuidedRaveSearch(evaluate_uniformly, 200, 16, options=EXPLORING), 0
    for game, best in undecided(spec, plies, 30):
        found += 1
        assert search.act(game.records, np.random.default_rng(0))[0] in best, str(game)
    assert found >= 5


# The network's policy and values


@pytest.mark.parametrize("spec", BOARDS)
def test_the_policy_is_followed_where_nothing_else_is_known(spec):
    game = start_game(spec, 4)
    legal = game.legal_actions()
    chosen = int(legal[len(legal) // 2])

    def evaluate(games):
        logits, values = evaluate_uniformly(games)
        logits[:] = np.log(0.1 / len(legal))
        logits[:, chosen] = np.log(0.9)
        return logits, values

    search = GuidedRaveSearch(evaluate, 1, 12, options=PLAIN._replace(prior_weight=2.0))
    assert search.act(game.records, np.random.default_rng(0)) == [chosen]


@pytest.mark.parametrize(("spec", "plies"), [(BOARDS[0], 4), (BOARDS[1], 4), ("ninetka:num_players=3", 50)])
def test_values_count_for_the_right_seat(spec, plies):
    """The network predicts a win after one action, a loss after the others, and equal values elsewhere."""
    game = start_game(spec, plies)
    legal, seat = game.legal_actions().tolist(), game.to_move
    wanted, predicted_winner = legal[-2], {}
    for action in legal:
        child = game.copy()
        child.play(action)
        predicted_winner[child.records.tobytes()] = seat if action == wanted else (seat + 1) % game.num_players

    def evaluate(games):
        logits, values = evaluate_uniformly(games)
        for row, record in enumerate(games):
            if (winner := predicted_winner.get(record.tobytes())) is not None:
                values[row] = np.arange(values.shape[1]) == (winner - record["to_move"]) % game.num_players
        return logits, values

    search = GuidedRaveSearch(evaluate, 8 * len(legal), 6, options=EXPLORING._replace(value_weight=20.0))
    assert search.act(game.records, np.random.default_rng(0)) == [wanted]


@pytest.mark.parametrize(("spec", "winner"), [("go:size=5", 1), (BOARDS[1], 0), (BOARDS[2], 2)])
def test_values_are_reported_by_absolute_seat(spec, winner):
    def certain(games):
        logits, values = evaluate_uniformly(games)
        relative = (winner - games["to_move"].astype(int)[:, None]) % games["num_players"][:, None]
        return logits, (np.arange(values.shape[1]) == relative).astype(np.float32)

    games = start_game(spec, 3).records
    searches = (
        GuidedRaveSearch(one, 64, 16, options=PLAIN._replace(value_weight=4.0)) for one in (evaluate_uniformly, certain)
    )
    uncertain, sure = (search.run(games, np.random.default_rng(0)).values[0] for search in searches)
    assert sure.sum() == pytest.approx(1)
    assert sure[winner] > uncertain[winner] + 0.2
    searches = (
        GuidedRaveSearch(one, 64, 16, options=PLAIN._replace(value_weight=0.0)) for one in (evaluate_uniformly, certain)
    )
    assert same(*(search.run(games, np.random.default_rng(0)) for search in searches))


@pytest.mark.parametrize("spec", BOARDS[:2])
def test_each_position_is_evaluated_once_and_all_playouts_count(spec):
    games, asked = sample_states(spec), []

    def evaluate(positions):
        asked.append([record.tobytes() for record in positions])
        return evaluate_uniformly(positions)

    before, counted = games.tobytes(), []
    for game in np.split(games, len(games)):
        asked.clear()
        result = GuidedRaveSearch(evaluate, 60, 10, options=PLAIN).run(game, np.random.default_rng(0))
        counted.append(sum(map(len, asked)))
        assert max(map(len, asked)) <= guided_rave.BATCH_SIZE
        assert asked[0] == [game.tobytes()]
        assert result.visits.sum() == 600 + PLAIN.value_weight * 10 * (counted[-1] - 1)
    assert max(counted) == 60
    assert games.tobytes() == before


# Randomness and batches


@pytest.mark.parametrize("spec", BOARDS)
def test_a_batch_is_searched_like_each_game_alone(spec):
    games, search = sample_states(spec), GuidedRaveSearch(evaluate_uniformly, 20, 8, gumbel_scale=1.0, options=PLAIN)
    streams = game_streams(games, np.random.default_rng(5))
    together = search.run(games, PerGameGenerator(streams.copy()))
    assert same(together, search.run(games, PerGameGenerator(streams.copy())))
    for index in range(len(games)):
        part = slice(index, index + 1)
        alone = search.run(games[part], PerGameGenerator(streams[part].copy()))
        assert same(alone, [array[part] for array in together])
    assert len(search.act(games[:0], np.random.default_rng(0))) == 0


def test_noise_draws_by_visits():
    games, rng = np.repeat(start_game("go:size=5").records, 500), np.random.default_rng(0)
    result = GuidedRaveSearch(evaluate_uniformly, 3, 10, gumbel_scale=1.0, options=PLAIN).run(games, rng)
    drawn = np.bincount(result.actions, minlength=result.visits.shape[1]) / len(games)
    expected = (result.visits / result.visits.sum(1, keepdims=True)).mean(0)
    np.testing.assert_allclose(drawn, expected, atol=0.08)
    assert (result.actions != result.visits.argmax(1)).any()


# Time limits and kept trees


@pytest.mark.parametrize("spec", BOARDS)
def test_it_respects_the_time_limit(spec, monkeypatch):
    """Each evaluation takes 0.1 seconds."""
    clock = SimpleNamespace(now=100.0, asked=[])
    monkeypatch.setattr(guided_rave, "time", SimpleNamespace(perf_counter=lambda: clock.now))

    def evaluate(games):
        clock.now += 0.1
        clock.asked.append(len(games))
        return evaluate_uniformly(games)

    games = sample_states(spec, (2, 3))
    result = GuidedRaveSearch(evaluate, 1, 8, options=PLAIN, seconds=1.05).run(games, np.random.default_rng(0))
    assert 2.1 <= clock.now - 100 <= 2.3
    assert result.visits.sum() > 0


@pytest.mark.parametrize("spec", BOARDS)
def test_no_evaluation_begins_after_the_time_is_up(spec, monkeypatch):
    """A time check takes 0.01 seconds and an evaluation 0.1, so the time is often up between two time checks."""
    clock = SimpleNamespace(now=100.0, asked=[])

    def look():
        clock.now += 0.01
        return clock.now

    monkeypatch.setattr(guided_rave, "time", SimpleNamespace(perf_counter=look))

    def evaluate(games):
        clock.asked.append(clock.now)
        clock.now += 0.1
        return evaluate_uniformly(games)

    for seconds in (0.05, 0.2, 0.5, 0.95):
        clock.asked, begun = [], clock.now
        search = GuidedRaveSearch(evaluate, 1, 8, options=PLAIN, seconds=seconds)
        search.run(start_game(spec, 3).records, np.random.default_rng(0))
        assert all(asked - begun <= seconds + 0.01 for asked in clock.asked[1:])
        assert clock.now - begun <= max(seconds, 0.1) + 0.1 + 0.03


def tree_contents(tree):
    """Return each node's statistics and policy probability, by the path of actions from the root of a tree."""
    found, waiting = {}, [(0, ())]
    while waiting:
        index, path = waiting.pop()
        node = tree.nodes[index]
        policy = tree._nodes.policy[index].item() if path else 1.0
        found[path] = ([node[name].item() for name in node.dtype.names[3:]], policy)
        children = range(node["first"], node["first"] + node["count"])
        waiting += [(child, (*path, int(tree.nodes[child]["action"]))) for child in children]
    return found


@pytest.mark.parametrize("spec", BOARDS)
def test_the_tree_is_kept_from_move_to_move(spec):
    game, rng, kept, with_policy = start_game(spec), np.random.default_rng(0), 0, 0
    player = GuidedRaveSearch(evaluate_uniformly, 16, 12, options=PLAIN, reuse=True).start(game)
    while not game.is_over and kept < 12:
        action = player.act(rng)
        assert game.legal_mask()[action]
        below = {path[1:]: one for path, one in tree_contents(player.tree).items() if path[:1] == (action,)}
        forced = len(game.legal_actions()) == 1
        game.play(action)
        player.observe(action)
        if len(below) > 1 and not game.is_over and not forced:
            below[()] = (below[()][0], 1.0)
            assert tree_contents(player.tree) == below
            kept, with_policy = kept + 1, with_policy + (max(policy for path, (_, policy) in below.items() if path) > 0)
    player.close()
    assert kept > 5
    assert with_policy > 3


def test_kept_nodes_are_not_evaluated_again():
    asked = []

    def evaluate(positions):
        asked.extend(record.tobytes() for record in positions)
        return evaluate_uniformly(positions)

    game, rng = start_game("kropki:width=5,height=4"), np.random.default_rng(0)
    player = GuidedRaveSearch(evaluate, 64, 8, options=PLAIN, reuse=True).start(game)
    for _ in range(4):
        player.observe(player.act(rng))
    assert len(asked) == len(set(asked)) > 128


# Options and agents


@pytest.mark.parametrize(
    "options",
    [{"simulations": 0}, {"playouts": 0}, {"playouts": 1 << 23}, {"seconds": -1}, {"gumbel_scale": -1}, {"reuse": 2}],
)
def test_error_names_the_wrong_option(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        GuidedRaveSearch(evaluate_uniformly, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [("value_weight", 1e308), ("value_weight", float("nan")), ("prior_weight", -1.0), ("exploration", float("inf"))],
)
def test_error_names_the_wrong_rave_option(name, value):
    with pytest.raises(ValueError, match=f"{re.escape(f'{name}={value}')}: expected a"):
        GuidedRaveSearch(evaluate_uniformly, options=PLAIN._replace(**{name: value}))


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        ("go:size=5", (True, False)),
        ("kropki", (False, False)),
        pytest.param("kropki:width=20,height=20", (True, True), marks=pytest.mark.exhaustive),
    ],
)
def test_networks_use_guided_rave_in_go_and_kropki(spec, rules):
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    game, name = start_game(spec, 2), load_variant(spec).definition.name
    search = make_searches(evaluate_uniformly, name, SearchSettings(4, playouts=8)).agent_for(game.records)
    assert isinstance(search, GuidedRaveSearch)
    used = search.make_tree(game.records).options
    assert (used.heavy, used.local) == rules
    assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]
    for other, settings in ((name, SearchSettings(4, playouts=0)), ("ninetka", SearchSettings(4))):
        assert not any(
            isinstance(one, GuidedRaveSearch) for one in make_searches(evaluate_uniformly, other, settings).agents
        )


def test_the_game_decides_the_default_search():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    made = {game: make_searches(evaluate_uniformly, game, SearchSettings(4)) for game in ("ninetka", "go")}
    kinds = {game: {type(one) for one in searches.agents} for game, searches in made.items()}
    assert kinds == {"ninetka": {GumbelSearch, GuidedSearch}, "go": {GuidedRaveSearch}}


def test_kropkis_search_depends_on_the_board_size():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    small, large = (start_game(spec) for spec in ("kropki:width=12,height=12", "kropki:width=13,height=5"))
    search = make_searches(evaluate_uniformly, "kropki", SearchSettings(4))
    assert isinstance(search.agent_for(small.records), GumbelSearch)
    assert search.agent_for(small.records).options.playouts == 0
    assert isinstance(search.agent_for(large.records), GuidedRaveSearch)
    search = make_searches(evaluate_uniformly, "kropki", SearchSettings(seconds=0.01, reuse=True))
    assert isinstance(search.agent_for(small.records), TimedGumbelSearch)


@pytest.mark.parametrize(
    "spec", ["kropki:width=12,height=12", pytest.param("kropki:width=13,height=5", marks=pytest.mark.exhaustive)]
)
def test_networks_play_kropki_on_boards_of_both_kinds(spec):
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    game = start_game(spec, 2)
    search = make_searches(evaluate_uniformly, "kropki", SearchSettings(4))
    assert game.legal_mask()[search.act(game.records, np.random.default_rng(0))[0]]
    assert search.agent_for(game.records).run(game.records, np.random.default_rng(0)).visits[0].sum() > 0
    search = make_searches(evaluate_uniformly, "kropki", SearchSettings(seconds=0.01, reuse=True))
    player = search.start(game)
    for _ in range(3):
        action = player.act(np.random.default_rng(0))
        game.play(action)
        player.observe(action)
    player.close()


def test_kropkis_values_are_ignored_on_large_boards():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import SearchSettings, make_searches

    def certain(games):
        logits, values = evaluate_uniformly(games)
        return logits, np.eye(values.shape[1], dtype=np.float32)[np.zeros(len(games), int)]

    for width, is_used in ((5, True), (20, False)):
        games = start_game(f"kropki:width={width},height={width},territory=immediate,start=cross", 3).records
        found = [
            searches.agent_for(games).run(games, np.random.default_rng(0))
            for searches in (
                make_searches(one, "kropki", SearchSettings(3, playouts=16)) for one in (evaluate_uniformly, certain)
            )
        ]
        assert same(*found) is not is_used
