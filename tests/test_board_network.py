"""Test the network of Go and Kropki: inputs and outputs, symmetries, board sizes, learning, play."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from ninetka_agents import board_network, net_agent
from ninetka_agents.agent import make_agent
from ninetka_agents.board_features import MIN_POSITIONS_PER_THREAD, make_inputs, symmetries
from ninetka_agents.board_network import NetworkConfig
from ninetka_agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.outputs import MASKED, Outputs, as_tensors, forward_states
from ninetka_agents.plugins import network_of
from ninetka_agents.search import gumbel
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_env.core import verbs
from ninetka_env.core.registry import limits_of, load_variant

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SMALL = NetworkConfig(width=8, blocks=3)  # the third block pools
GO, RESIGN, DECLARED, IMMEDIATE, LONG = (
    "go:size=5,komi=2.5",
    "go:size=5,scoring=territory,planes=alphazero,allow_resign=True",
    "kropki:width=6,height=6",
    "kropki:width=6,height=5,territory=immediate",
    "kropki:width=13,height=5",
)
BOARDS = [GO, RESIGN, DECLARED, IMMEDIATE, pytest.param(LONG, marks=pytest.mark.exhaustive)]


@functools.cache
def network_for(spec):
    torch.manual_seed(0)
    return network_of(load_variant(spec).definition.name).Network(SMALL).eval()


@functools.cache
def games_of(spec, count=6):
    """Return up to `count` random games, each stopped before half of the maximum number of plies and not over."""
    variant, rng, found = load_variant(spec), np.random.default_rng(1), []
    for number in range(count):
        game = variant.game_class.start(variant)
        for _ in range(7 * number % (variant.sizes.max_plies // 2)):
            if not game.is_over:
                game.play(int(rng.choice(no_resigning(game))))
        if not game.is_over:
            found.append(game)
    return found


def no_resigning(game):
    """Return the legal actions except resigning."""
    legal = game.legal_actions()
    return legal[legal < limits_of(game.records.dtype).actions - (game.name == "go")]


def records_of(games):
    return np.concatenate([game.records for game in games])


@pytest.mark.parametrize("spec", BOARDS)
def test_illegal_actions_are_masked_and_values_sum_to_1(spec):
    games, network = games_of(spec), network_for(spec)
    outputs, limits, count = forward_states(network, records_of(games)), limits_of(load_variant(spec).dtype), len(games)
    assert [tuple(each.shape) for each in outputs] == [
        (count, limits.actions), (count, 3), (count, limits.targets, 3), (count,),
    ]  # fmt: skip
    assert all(each.dtype == torch.float32 and each.isfinite().all() for each in outputs)
    for game, logits in zip(games, outputs.logits, strict=True):
        open_ = (logits > MASKED / 2).nonzero()[:, 0].tolist()
        assert open_ == no_resigning(game).tolist()
        assert (logits[[action for action in range(limits.actions) if action not in open_]] == MASKED).all()
    assert (outputs.value_logits > MASKED / 2).all()
    torch.testing.assert_close(outputs.values.sum(-1), torch.ones(count))
    nodes = np.prod(load_variant(spec).sizes.planes[1:])
    beyond = outputs.owner_logits[:, nodes:].softmax(-1)
    assert (beyond[..., 2] == 1).all()  # has no owner
    assert (outputs.owner_logits[:, :nodes] > MASKED / 2).all()


@pytest.mark.parametrize("spec", BOARDS)
def test_inputs_are_the_environments_planes_for_any_batch(spec):
    games, network = games_of(spec), network_for(spec)
    together, shape = network.encode(records_of(games)), load_variant(spec).sizes.planes[1:]
    for index, game in enumerate(games):
        planes = np.full((network.num_planes, *shape), 7, np.int8)
        records = game.records.copy()
        if game.name == "go":
            records["planes"] = 0
        verbs.write_observation(records[0], game.to_move, planes.reshape(-1))
        np.testing.assert_array_equal(together.planes[index], planes)
        own, other = game.scores()[[game.to_move, 1 - game.to_move]]
        assert together.globals[index, 0] * np.sqrt(np.prod(shape)) == pytest.approx(own - other, abs=1e-4)
        for alone, many in zip(network.encode(game.records), together, strict=True):
            np.testing.assert_array_equal(alone[0], many[index])
    outputs, alone = forward_states(network, records_of(games)), forward_states(network, games[-1].records)
    for one, many in zip(alone, outputs, strict=True):
        torch.testing.assert_close(one[0], many[-1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("spec", [GO, DECLARED])
def test_inputs_do_not_depend_on_the_number_of_threads(spec):
    games, shape = games_of(spec), load_variant(spec).sizes.planes
    records = records_of(games * (4 * MIN_POSITIONS_PER_THREAD // len(games) + 1))
    one, shared = (make_inputs(records, shape, threads) for threads in (1, 3))
    for alone, many in zip(one, shared, strict=True):
        np.testing.assert_array_equal(alone, many)


def test_globals_hold_what_the_planes_do_not_show():
    assert {game.to_move for game in games_of(GO)} == {0, 1}
    for spec, komi, counting in ((GO, 2.5, [1, 0, 0]), (RESIGN, 7, [0, 0, 1])):
        for game in games_of(spec):
            numbers = network_for(spec).encode(game.records).globals[0]
            np.testing.assert_allclose(numbers[1:], [(komi if game.to_move else -komi) / 5, *counting], rtol=1e-6)
    for spec, declared in ((DECLARED, 1), (IMMEDIATE, 0)):
        assert network_for(spec).encode(games_of(spec)[0].records).globals[0, 1:].tolist() == [declared]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 11])
def test_many_positions_are_evaluated_in_batches(count, monkeypatch):
    monkeypatch.setattr(net_agent, "BATCH_SIZE", 4)
    records = np.repeat(records_of(games_of(DECLARED)), 2)[:count]
    evaluate = network_evaluate(network_for(DECLARED))
    parts = [evaluate(records[first : first + 4]) for first in range(0, count, 4)]
    for found, expected in zip(evaluate(records), zip(*parts, strict=True), strict=False):
        np.testing.assert_array_equal(found, np.concatenate(expected))
    assert [len(array) for array in evaluate(records)] == [count, count]


def test_boards_of_several_sizes_do_not_share_a_batch():
    records = records_of([*games_of(DECLARED), *games_of(IMMEDIATE)])
    with pytest.raises(ValueError, match="several sizes, 6 x 5, 6 x 6: expected one size"):
        network_for(DECLARED).encode(records)


# Symmetries


def transformed_action(game, other, places, action):
    """Return the action of `other` that corresponds to `action` of `game`; `other` is `game` on the transformed board.

    For an action that draws a region, try all legal actions of `other` and return the one that draws the transformed
    region.

    Args:
        places: for each point, its image on the transformed board.
    """
    nodes = len(places)
    if action < nodes:
        return int(places[action])
    if game.name == "go" or action == 2 * nodes:
        return action

    def region_after(one, drawn):
        one = one.copy()
        one.play(drawn)
        return one.region.ravel()

    wanted = np.zeros(nodes, np.int8)
    wanted[places] = region_after(game, action)
    fitting = [each for each in other.legal_actions() if (region_after(other, each) == wanted).all()]
    assert len(fitting) == 1
    return int(fitting[0])


def played_twice(spec, places, seeds):
    """Play random games and yield (game, transformed game, action, transformed action) at each ply."""
    variant = load_variant(spec)
    for seed in seeds:
        game, other, rng = (*(variant.game_class.start(variant) for _ in range(2)), np.random.default_rng(seed))
        while not game.is_over:
            action = int(rng.choice(no_resigning(game)))
            there = transformed_action(game, other, places, action)
            yield game.copy(), other.copy(), action, there
            game.play(action)
            other.play(there)


@pytest.mark.parametrize(
    ("spec", "count"),
    [("go:size=5", 8), (DECLARED, 8), ("kropki:width=7,height=6", 4), (IMMEDIATE, 4)],
)
def test_symmetries_commute_with_play(spec, count):
    height, width = load_variant(spec).sizes.planes[1:]
    ways, network = symmetries(height, width), network_for(spec)
    assert len({tuple(way) for way in ways.tolist()}) == len(ways) == count
    renamed = 0
    for number, way in enumerate(ways):
        games, others, actions, there = zip(*played_twice(spec, way.argsort(), range(4)), strict=True)
        inputs, expected = network.encode(records_of(games)), network.encode(records_of(others))
        policies, owners = np.zeros((2, *inputs.mask.shape), np.float32), owners_of(games)
        rows = np.arange(len(games))
        policies[0, rows, actions] = policies[1, rows, there] = 0.75
        found, policy, turned = network.apply_symmetries(
            inputs, policies[0], owners, np.full(len(games), number * 8 // count)
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(policy, policies[1])
        np.testing.assert_array_equal(turned, owners_of(others))
        nodes, places = len(way), way.argsort()
        draws = [(a - nodes, b - nodes) for a, b in zip(actions, there, strict=True) if nodes <= a < 2 * nodes]
        renamed += sum(int(places[a]) != b for a, b in draws)
    # At least one region is drawn by a point that is not the image of the original point.
    assert renamed > 0 or spec in ("go:size=5", IMMEDIATE)


def owners_of(games):
    """Return the current owner of each point, (N, T), as a seat relative to the seat to move, or 2 for no owner."""
    found = []
    for game in games:
        targets = np.empty(limits_of(game.records.dtype).targets, np.int8)
        verbs.write_targets(game.records[0], targets)
        found.append(np.where(targets < 0, 2, (targets - game.to_move) % 2))
    return np.array(found)


def test_each_example_gets_its_own_symmetry():
    game = games_of("go:size=5")[-1]
    inputs = network_for("go:size=5").encode(np.repeat(game.records, 64))
    nothing = np.zeros_like(inputs.mask), np.zeros((64, 25), np.int8)
    turned = network_for("go:size=5").apply_symmetries(inputs, *nothing, np.arange(64) // 8)[0]
    assert len({planes.tobytes() for planes in turned.planes}) == 8


# Sizes, learning


def test_the_same_weights_evaluate_boards_of_all_sizes():
    for specs in (
        ("go:size=3,ko=positional", "go:size=5", "go:size=9"),
        (DECLARED, IMMEDIATE, "kropki:width=12,height=3"),
    ):
        network = network_for(specs[0])
        for spec in specs:
            assert forward_states(network, records_of(games_of(spec))).values.isfinite().all()


@pytest.mark.parametrize("spec", [GO, DECLARED])
def test_every_output_teaches_its_head_and_the_trunk(spec):
    network = network_of(load_variant(spec).definition.name).Network(SMALL)
    for block in network.blocks:  # initial zeros would block the gradient
        torch.nn.init.normal_(block.second.weight, std=0.1)
    heads = {"logits": network.policy, "value_logits": network.value, "owner_logits": network.owner}
    for name, head in {**heads, "score": network.score}.items():
        network.zero_grad()
        output = getattr(forward_states(network, records_of(games_of(spec))), name)
        torch.where(output > MASKED / 2, output, 0).square().sum().backward()
        for layer in (head, network.stem, network.blocks[2].spread):
            assert layer.weight.grad.abs().sum() > 0, name


@pytest.mark.slow
def test_it_can_overfit_a_few_positions():
    torch.manual_seed(0)
    rng, network = np.random.default_rng(0), network_of("go").Network(NetworkConfig(width=32, blocks=3))
    games = [game for game in games_of("go:size=5", 130) if game.ply > 2][:64]
    assert len({game.records.tobytes() for game in games}) == 64
    inputs = as_tensors(network.encode(records_of(games)))
    actions = torch.tensor([int(rng.choice(game.legal_actions())) for game in games])
    outcomes, leads = torch.tensor(rng.integers(0, 3, 64)), inputs.globals[:, 0] * 5
    owners = torch.tensor(owners_of(games)).long()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(150):
        outputs: Outputs = network(inputs)
        policy = functional.cross_entropy(outputs.logits, actions)
        value = functional.cross_entropy(outputs.value_logits, outcomes)
        owner = functional.cross_entropy(outputs.owner_logits.flatten(0, 1), owners.flatten())
        score = functional.mse_loss(outputs.score / 10, leads / 10)
        optimizer.zero_grad()
        (policy + value + owner + score).backward()
        optimizer.step()
    assert policy < 0.1
    assert value < 0.1
    assert owner < 0.1
    assert score < 0.1


@pytest.mark.parametrize("spec", [GO, DECLARED, "ninetka:num_players=3"])
def test_evaluations_are_numpy_arrays(spec):
    network = network_of(load_variant(spec).definition.name).Network()
    games = load_variant(spec).game_class.start(load_variant(spec), seed=0).records
    found, outputs = network.evaluate(games), forward_states(network, games)
    expected = outputs.logits, outputs.values, outputs.owner_logits.softmax(-1), outputs.score
    for array, tensor in zip(found, expected, strict=True):
        if tensor is None:
            assert array is None
        else:
            assert tensor.requires_grad
            assert type(array) is np.ndarray
            assert array.dtype == np.float32
            np.testing.assert_array_equal(array, tensor.detach().numpy())


def test_bfloat16_changes_little():
    network, records = network_for(GO), records_of(games_of(GO))
    plain = forward_states(network, records)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = forward_states(network, records)
    assert rounded.logits.dtype == rounded.values.dtype == rounded.score.dtype == torch.float32
    torch.testing.assert_close(rounded.values, plain.values, atol=0.01, rtol=0.01)


# Checkpoints and play


@pytest.mark.parametrize("spec", [GO, DECLARED])
def test_checkpoints_survive_a_round_trip(spec, tmp_path):
    network, name = network_for(spec), load_variant(spec).definition.name
    path = save_checkpoint(tmp_path / "net", network, Checkpoint(SMALL, 3))
    loaded, about, _ = load_checkpoint(path, game=name)
    assert (loaded.game, about.network, about.step) == (name, SMALL, 3)
    assert json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["environment"] == f"{name}_v0"
    games = games_of(spec)[0].records
    assert all(map(torch.equal, forward_states(network, games), forward_states(loaded, games)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"width": 16}, "is torch.float32 of shape .*, not torch.float32 of shape"),
        ({"width": 10**12}, "do not fit"),
        ({"blocks": 2}, "tensors are missing or too many"),
        ({"blocks": 10**12}, "has more than the .* tensors that are there"),
        ({"blocks": 0}, "blocks must be at least 1 and width at least 4"),
        ({"width": 3}, "blocks must be at least 1 and width at least 4"),
        ({"width": "8"}, "network.width='8': expected int"),
    ],
)
def test_shapes_that_do_not_fit_the_weights_are_refused(shape, message, tmp_path):
    path = save_checkpoint(tmp_path / "net", network_for(GO)).with_suffix(".json")
    about = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(about | {"network": about["network"] | shape}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path)


def test_networks_of_another_game_are_refused(tmp_path):
    path = save_checkpoint(tmp_path / "net", network_for(GO))
    with pytest.raises(ValueError, match="its network plays go, not kropki"):
        make_agent(f"net:{path}", "kropki")


@pytest.mark.parametrize("spec", BOARDS)
def test_agents_play_legal_games(spec, tmp_path):
    variant, rng = load_variant(spec), np.random.default_rng(0)
    path = save_checkpoint(tmp_path / "net", network_for(spec))
    search = "temperature=0" if spec == LONG else "simulations=4,playouts=0"  # compiling it takes long
    agents = [make_agent(f"net:{path},{rest}", spec) for rest in ("temperature=1", search)]
    game = variant.game_class.start(variant)
    while not game.is_over and game.ply < 20:
        action = int(agents[game.ply % 2].act(game.records, rng)[0])
        assert action in no_resigning(game)
        game.play(action)
    assert game.ply > 1


def test_a_batch_whose_trees_need_too_much_memory_is_searched_in_parts(monkeypatch):
    records = records_of(games_of(DECLARED))
    search = GumbelSearch(network_evaluate(network_for(DECLARED)), GumbelOptions(8, playouts=4))
    whole = search.run(records, np.random.default_rng(0))
    monkeypatch.setattr(gumbel, "MAX_TREE_BYTES", 2 * 9 * gumbel.node_dtype(records.dtype).itemsize)
    search, sizes = GumbelSearch(network_evaluate(network_for(DECLARED)), search.options), []
    make_trees = search._make_trees
    monkeypatch.setattr(search, "_make_trees", lambda *a: sizes.append(len(a[0])) or make_trees(*a))
    parts = search.run(records, np.random.default_rng(0))
    assert sizes == [2] * (len(records) // 2) + [1] * (len(records) % 2)
    np.testing.assert_array_equal(parts.actions, whole.actions)
    np.testing.assert_array_equal(parts.visits, whole.visits)
    np.testing.assert_allclose(parts.policy, whole.policy, atol=1e-4)


def test_blocks_pool_every_third_time():
    network = network_of("go").Network(NetworkConfig(width=8, blocks=board_network.POOLING_INTERVAL * 2))
    assert [block.pooled_channels for block in network.blocks] == [0, 0, 2, 0, 0, 2]


def test_bfloat16_is_rounded_and_repeatable():
    network, games = network_for(GO), records_of(games_of(GO))
    exact, rounded, again = (network_evaluate(network, bf16=bf16)(games) for bf16 in (False, True, True))
    for one, other, repeated in zip(exact, rounded, again, strict=True):
        assert one.dtype == other.dtype == np.float32
        assert (other == repeated).all()
        assert not (one == other).all()
        np.testing.assert_allclose(np.where(one < MASKED / 2, 0, one), np.where(one < MASKED / 2, 0, other), atol=0.05)
