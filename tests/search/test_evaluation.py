"""Test that searches play legal actions with any valid outputs of an evaluation function, and reject invalid ones."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_timed_search import start_game

from ninetka_agents.conformance import evaluate_uniformly
from ninetka_agents.search.evaluation import MIN_RELATIVE_LOGIT, checked, observation_evaluate
from ninetka_agents.search.guided import VIRTUAL_VISITS, GuidedSearch
from ninetka_agents.search.guided_rave import GuidedRaveSearch, GuidedRaveTree
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.rave_tree import RaveOptions
from ninetka_agents.search.selection import MAX_SCALE
from ninetka_agents.search.timed_gumbel import TimedGumbelSearch
from ninetka_env.api.observing import observe
from ninetka_env.core.registry import limits_of, load_variant
from ninetka_env.core.verbs import is_legal, num_actions, write_legal_mask

SIMULATIONS, PLAYOUTS = 12, 6
RULES = RaveOptions(1000.0, 0.0, heavy=False, local=False)
POSITIONS = {
    "ninetka": [("ninetka:num_players=2", 3), ("ninetka:num_players=3", 7), ("ninetka:num_players=4", 8)],
    "slides": [("ninetka:num_players=2", 50), ("ninetka:num_players=3,auto_pass=False", 60)],
    "go": [("go:size=5", 3), ("go:size=5", 9), ("go:size=5,allow_resign=True", 5)],
    "declared": [("kropki:width=5,height=4,territory=declared", 9)],
    "immediate": [("kropki:width=5,height=4,territory=immediate", 4)],
}


@functools.cache
def positions_of(name):
    return np.concatenate([start_game(spec, plies).records for spec, plies in POSITIONS[name]])


@functools.cache
def forced_pass():
    """Return a position of 9tka in which a pass is the only legal action."""
    for plies in range(50, 90):
        game = start_game("ninetka:num_players=3,auto_pass=False", plies)
        if not game.is_over and len(game.legal_actions()) == 1:
            return game.records
    raise AssertionError("no forced pass found")


SEARCHES = {
    "gumbel": lambda evaluate: GumbelSearch(evaluate, GumbelOptions(SIMULATIONS, playouts=0, exact=5)),
    "gumbel with playouts": lambda evaluate: GumbelSearch(
        evaluate, GumbelOptions(SIMULATIONS, playouts=2, gumbel_scale=0.0), threads=2
    ),
    "gumbel by clock": lambda evaluate: TimedGumbelSearch(evaluate, GumbelOptions(playouts=0), 0.004),
    "guided": lambda evaluate: GuidedSearch(evaluate, SIMULATIONS, PLAYOUTS, threads=2),
    "guided with noise": lambda evaluate: GuidedSearch(evaluate, SIMULATIONS, PLAYOUTS, gumbel_scale=1.0, exact=5),
    "guided by clock": lambda evaluate: GuidedSearch(evaluate, 1, PLAYOUTS, seconds=0.004),
    "rave": lambda evaluate: GuidedRaveSearch(evaluate, SIMULATIONS, PLAYOUTS, options=RULES),
    "rave with noise": lambda evaluate: GuidedRaveSearch(evaluate, SIMULATIONS, PLAYOUTS, 1.0, RULES),
    "rave by clock": lambda evaluate: GuidedRaveSearch(evaluate, 1, PLAYOUTS, options=RULES, seconds=0.004),
}


# Accepted outputs


def masks_of(games):
    masks = np.zeros((len(games), limits_of(games.dtype).actions), np.int8)
    for game, mask in zip(games, masks, strict=True):
        write_legal_mask(game, mask[: num_actions(game)])
    return masks == 1


def log_zero(count):
    """Return an evaluation function: uniform on the `count` lowest legal actions, with logits -inf for all others."""

    def evaluate(games):
        masks, (_, values) = masks_of(games), evaluate_uniformly(games)
        ranks = np.where(masks, masks.cumsum(axis=1), masks.shape[1])
        chosen = ranks <= np.minimum(count, masks.sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            return np.log(chosen / np.maximum(1, chosen.sum(axis=1, keepdims=True))).astype(np.float32), values

    return evaluate


def all_but_one(games):
    """Evaluate uniformly, but give the first legal action the logit -inf."""
    masks, (logits, values) = masks_of(games), evaluate_uniformly(games)
    logits[np.arange(len(games)), masks.argmax(axis=1)] = -np.inf
    return logits, values


def filled(value):
    def evaluate(games):
        logits, values = evaluate_uniformly(games)
        return np.full_like(logits, value), values

    return evaluate


def raw(scale):
    def evaluate(games):
        logits, values = evaluate_uniformly(games)
        return np.float32(scale) * np.random.default_rng(0).uniform(-1, 1, logits.shape).astype(np.float32), values

    return evaluate


def converted(convert):
    return lambda games: tuple(convert(array) for array in evaluate_uniformly(games))


def tensors(games):
    torch = pytest.importorskip("torch")
    logits, values = map(torch.from_numpy, evaluate_uniformly(games))
    return logits, values.to(torch.float64)


def garbage_where_it_does_not_matter(garbage):
    def evaluate(games):
        logits, values = evaluate_uniformly(games)
        logits[~masks_of(games)] = garbage
        values[np.arange(values.shape[1]) >= games["num_players"][:, None]] = garbage
        return logits, values

    return evaluate


def certain(games):
    """Return integer arrays: equal logits, and the value 1 for the seat to move."""
    logits, values = evaluate_uniformly(games)
    return np.zeros_like(logits, int), np.eye(values.shape[1], dtype=int)[np.zeros(len(games), int)]


def careless(games):
    """Evaluate uniformly, then overwrite the positions with zeros."""
    answer = evaluate_uniformly(games)
    games[:] = np.zeros(1, games.dtype)
    return answer


ACCEPTED = {
    "one of probability above 0": log_zero(1),
    "three of probability above 0": log_zero(3),
    "one of probability 0": all_but_one,
    "-inf everywhere": filled(-np.inf),
    "0 everywhere": filled(0.0),
    "1e30 everywhere": filled(1e30),
    "the lowest float32 everywhere": filled(np.finfo(np.float32).min),
    "raw logits of 100": raw(100),
    "raw logits of 1e30": raw(1e30),
    "float64": converted(np.float64),
    "float16": converted(np.float16),
    "big endian": converted(lambda array: array.astype(">f4")),
    "read-only": converted(lambda array: np.broadcast_to(array, (2, *array.shape))[0]),
    "columns first": converted(np.asfortranarray),
    "lists": converted(np.ndarray.tolist),
    "a list of two": lambda games: list(evaluate_uniformly(games)),
    "tensors": tensors,
    "nan where illegal": garbage_where_it_does_not_matter(np.nan),
    "inf where illegal": garbage_where_it_does_not_matter(np.inf),
    "whole numbers": certain,
    "positions overwritten": careless,
}


@pytest.mark.parametrize("answer", ACCEPTED)
@pytest.mark.parametrize("search", SEARCHES)
def test_search_accepts_valid_outputs(search, answer):
    for name in POSITIONS:
        games = positions_of(name)
        before, asked = games.tobytes(), []

        def evaluate(positions, asked=asked):
            asked.append(len(positions))
            return ACCEPTED[answer](positions)

        result = SEARCHES[search](evaluate).run(games, np.random.default_rng(0))
        assert games.tobytes() == before
        assert all(is_legal(game, action) for game, action in zip(games, result.actions, strict=True))
        assert not result.visits[~masks_of(games)].any()
        _check_visits(search, result.visits.sum(axis=1), sum(asked))
        np.testing.assert_allclose(result.values.sum(axis=1), 1, atol=1e-4)
        assert -1e-4 <= result.values.min() <= result.values.max() <= 1 + 1e-4
        if hasattr(result, "policy"):
            for policy in (result.policy, result.prior):
                assert policy.min() >= 0
                np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-2)


def _check_visits(search, visits, asked):
    """Check each game's sum of visits, (N,), after a search evaluated `asked` positions. Virtual visits count, too."""
    if "clock" in search:
        assert (visits > 0).all()
    elif "gumbel" in search:
        assert (visits == SIMULATIONS).all()
    elif "rave" in search:
        virtual = visits.sum() - len(visits) * SIMULATIONS * PLAYOUTS
        assert virtual == PLAYOUTS // 2 * (asked - len(visits))
    elif "noise" not in search:  # "guided with noise" also uses proofs
        assert ((visits - SIMULATIONS * PLAYOUTS) % VIRTUAL_VISITS == 0).all()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", POSITIONS)
def test_actions_of_probability_0_are_not_played(name, count):
    games = positions_of(name)
    options = GumbelOptions(64, gumbel_scale=0.0, playouts=0)
    for search in (GumbelSearch(log_zero(count), options), TimedGumbelSearch(log_zero(count), options, 0.004)):
        result = search.run(games, np.random.default_rng(0))
        for mask, action in zip(masks_of(games), result.actions, strict=True):
            assert action in np.flatnonzero(mask)[:count]


@pytest.mark.parametrize("search", SEARCHES)
def test_search_handles_a_forced_pass(search):
    games = forced_pass()
    for evaluate in (log_zero(1), filled(-np.inf), raw(1e30)):
        assert is_legal(games[0], SEARCHES[search](evaluate).run(games, np.random.default_rng(0)).actions[0])
        logits, values = checked(evaluate)(games)
        assert logits[masks_of(games)] == pytest.approx(0)
        assert values.sum() == pytest.approx(1)


# Repair of outputs


@pytest.mark.parametrize("name", POSITIONS)
def test_valid_outputs_are_returned_unchanged(name):
    games = positions_of(name)
    logits, values = evaluate_uniformly(games)
    searched = masks_of(games)
    if name == "go":
        searched[:, 26] = False  # searches never resign
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True, where=searched)) - 0.001  # within the tolerance
    logits[~masks_of(games)] = np.nan
    found = checked(lambda positions: (logits, values))(games)
    assert found[0] is logits
    assert found[1] is values


def test_repair_copies_arrays_and_changes_only_bad_rows():
    games = positions_of("ninetka")
    logits, values = evaluate_uniformly(games)
    logits[1], values[2] = -np.inf, values[2] * 1.005
    before = logits.copy(), values.copy()
    found = checked(lambda positions: (logits, values))(games)
    assert (logits == before[0]).all()
    assert (values == before[1]).all()
    assert (found[0][[0, 2]] == logits[[0, 2]]).all()
    assert (found[1][:2] == values[:2]).all()
    legal = masks_of(games)[1]
    np.testing.assert_allclose(found[0][1, legal], -np.log(legal.sum()), rtol=1e-6)
    assert found[1][2].sum() == pytest.approx(1, abs=1e-6)


def test_repaired_logits_keep_their_order_and_are_finite():
    games, mask = positions_of("declared"), masks_of(positions_of("declared"))[0]
    logits, values = evaluate_uniformly(games)
    legal = np.flatnonzero(mask)[:4]
    logits[:], logits[0, legal] = -np.inf, [-np.inf, 1e38, 3e38, 3e38]
    found = checked(lambda positions: (logits, values))(games)[0][0]
    np.testing.assert_allclose(
        found[legal], [MIN_RELATIVE_LOGIT, MIN_RELATIVE_LOGIT, -np.log(2), -np.log(2)], rtol=1e-6
    )
    again = checked(lambda positions: (found[None], values))(games)[0][0]
    assert (again == found).all()


# Rejected outputs


def corrupted(array, value, row=-1):
    """Return an evaluation function that sets one number of position `row` to `value`.

    The number is the logit of the first legal action if `array` is "policy", otherwise the value of relative seat 1.
    """

    def evaluate(games):
        logits, values = evaluate_uniformly(games)
        if array == "policy":
            logits[row, masks_of(games)[row].argmax()] = value
        else:
            values[row, 1] = value
        return logits, values

    return evaluate


def answer(make):
    """Return an evaluation function that returns `make(logits, values)` for uniform logits and values."""
    return lambda games: make(*evaluate_uniformly(games))


ENTRY = r"evaluate: log policy of position \d+ is {} at action \d+ \(.+\), which is legal: expected the logarithm"
VALUE = r"evaluate: values of position \d+ are \[.*{0}.*\], {0} for relative seat 1: expected win probabilities of"
REFUSED = {
    "nan logit": (corrupted("policy", np.nan), ENTRY.format("nan")),
    "inf logit": (corrupted("policy", np.inf), ENTRY.format("inf")),
    "1e300": (answer(lambda logits, values: (np.full(logits.shape, 1e300), values)), ENTRY.format("inf")),
    "nan value": (corrupted("values", np.nan), VALUE.format("nan")),
    "inf value": (corrupted("values", np.inf), VALUE.format("inf")),
    "-inf value": (corrupted("values", -np.inf), VALUE.format("-inf")),
    "negative value": (corrupted("values", -0.5), VALUE.format("-0.5")),
    "large value": (corrupted("values", 1.5), VALUE.format("1.5")),
    "sum": (corrupted("values", 0.9), r"values of position \d+ are \[.*0\.9.*\]: expected .* which sum to 1"),
    "zeros": (answer(lambda logits, values: (logits, 0 * values)), r"position 0 are \[0, 0.*\]: .* sum to 1"),
    "None": (lambda games: None, r"evaluate: returned None: expected a pair of arrays, logits \(\d+, \d+\)"),
    "one array": (answer(lambda logits, values: logits), "expected a pair of arrays"),
    "three arrays": (answer(lambda logits, values: (logits, values, values)), "expected a pair of arrays"),
    "exchanged": (answer(lambda logits, values: (values, logits)), r"logits are of shape \(\d+, \d\): expected"),
    "one row too many": (
        answer(lambda logits, values: (np.vstack([logits, logits]), values)),
        r"the logits are of shape \(\d+, \d+\): expected",
    ),
    "no rows": (answer(lambda logits, values: (logits[:0], values)), r"the logits are of shape \(0, \d+\)"),
    "one value": (answer(lambda logits, values: (logits, values[:, 0])), r"the values are of shape \(\d+,\): expected"),
    "a seat too few": (answer(lambda logits, values: (logits, values[:, 1:])), r"the values are of shape"),
    "numbers": (lambda games: (0.0, 1.0), r"the logits are of shape \(\): expected"),
    "ragged": (
        answer(lambda logits, values: ([[0.0], [0.0, 1.0]], values)),
        "cannot be read as an array",
    ),
    "text": (answer(lambda logits, values: (logits.astype(str), values)), "logits are of type .*: expected real"),
    "complex": (answer(lambda logits, values: (logits, values + 0j)), "values are of type dtype.*complex"),
    "objects": (answer(lambda logits, values: (logits.astype(object), values)), "of type dtype.*O.*: expected real"),
    "nothing": (answer(lambda logits, values: (None, values)), "of type dtype.*O.*: expected real"),
}


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("search", SEARCHES)
def test_search_rejects_invalid_outputs(search, refused):
    evaluate, message = REFUSED[refused]
    for name in POSITIONS:
        with pytest.raises(ValueError, match=message) as error:
            SEARCHES[search](evaluate).run(positions_of(name), np.random.default_rng(0))
        assert "\n" not in str(error.value)


def test_position_and_action_are_named():
    games = positions_of("ninetka")
    first = int(np.flatnonzero(masks_of(games)[1])[0])
    with pytest.raises(ValueError, match=rf"position 1 is nan at action {first} \("):
        checked(corrupted("policy", np.nan, row=1))(games)
    with pytest.raises(ValueError, match=r"values of position 2 are \[0.25, 0.5, 0.25, 0.25\]: .* 4 seats"):
        checked(corrupted("values", 0.5, row=2))(games)


def test_a_bad_logit_of_a_legal_action_that_is_not_searched_is_refused():
    """Resigning is legal, but searches never play it."""
    games = start_game("go:size=5,allow_resign=True", 3).records
    assert is_legal(games[0], 26)
    logits, values = evaluate_uniformly(games)
    logits[0, 26] = np.nan
    with pytest.raises(ValueError, match=r"position 0 is nan at action 26 \(resign\)"):
        checked(lambda positions: (logits, values))(games)


def test_a_tensor_that_numpy_cannot_read_is_refused():
    torch = pytest.importorskip("torch")

    def evaluate(games):
        logits, values = map(torch.from_numpy, evaluate_uniformly(games))
        return logits.requires_grad_(), values

    with pytest.raises(ValueError, match=r"logits cannot be read as an array: .*requires grad"):
        checked(evaluate)(positions_of("go"))


def test_a_tree_used_directly_checks_outputs():
    games = positions_of("go")[:1]
    tree = GuidedRaveTree(games, 64, RULES, filled(np.nan), 8)
    tree.reset(games)
    with pytest.raises(ValueError, match="position 0 is nan"):
        tree.grow(np.zeros(1, np.uint64), 0, 8)


# Extreme options


@pytest.mark.parametrize("value", [1e308, 0.0, MAX_SCALE, 5e-324])
def test_searches_accept_extreme_scales(value):
    searches = [
        GumbelSearch(evaluate_uniformly, GumbelOptions(8, 4, value, value, value, playouts=2)),
        GumbelSearch(log_zero(1), GumbelOptions(8, 4, value, 50.0, value, playouts=0)),
        TimedGumbelSearch(evaluate_uniformly, GumbelOptions(8, 4, value, value, value, playouts=0), 0.004),
        GuidedSearch(evaluate_uniformly, 4, PLAYOUTS, gumbel_scale=value),
        GuidedRaveSearch(evaluate_uniformly, 4, PLAYOUTS, value, RULES._replace(exploration=value, prior_weight=value)),
        GuidedRaveSearch(evaluate_uniformly, 4, PLAYOUTS, value, RULES._replace(equivalence=value, value_weight=0.0)),
        MctsAgent(20, exploration=value),
        MctsAgent(20, exploration=value, rave=True, equivalence=max(1.0, value)),
    ]
    for name in POSITIONS:
        games = positions_of(name)
        for search in searches:
            result = search.run(games, np.random.default_rng(0))
            assert all(is_legal(game, action) for game, action in zip(games, result.actions, strict=True))
            assert all(np.isfinite(array).all() for array in result)


# A network that overflows


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}, {"simulations": 4}, {"seconds": 0.004}])
def test_a_network_that_overflows_is_refused(settings):
    torch = pytest.importorskip("torch")
    from ninetka_agents.net_agent import NetAgent, SearchSettings
    from ninetka_agents.ninetka.network import Network, NetworkConfig

    network = Network(NetworkConfig(width=16, blocks=1)).eval()
    games = positions_of("ninetka")
    assert len(NetAgent(network, SearchSettings(**settings)).act(games, np.random.default_rng(0))) == len(games)
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(1e30)
    with pytest.raises(
        ValueError, match=r"network's (logits|values) for position 0 of \d are not finite.*lower learning_rate"
    ):
        NetAgent(network, SearchSettings(**settings)).act(games, np.random.default_rng(0))


def test_the_position_that_overflows_is_named():
    pytest.importorskip("torch")
    from ninetka_agents.net_agent import policy_logits

    class Arrays(NamedTuple):
        logits: Any
        values: Any

    class Network:
        device = "cpu"

        def encode(self, games):
            return Arrays(*evaluate_uniformly(games))

        def __call__(self, inputs):
            inputs.values[1, 0] = float("nan")
            return inputs

    with pytest.raises(ValueError, match="the network's values for position 1 of 3"):
        policy_logits(Network(), positions_of("ninetka"))


# Networks that read observations


@pytest.mark.parametrize(
    "spec", ["ninetka", "ninetka:num_players=3", "go:size=5", "go:size=5,allow_resign=True", "kropki:width=5,height=4"]
)
def test_a_network_that_reads_observations_is_searched_like_any_other(spec):
    variant, games = load_variant(spec), np.concatenate([start_game(spec, plies).records for plies in (0, 3, 6)])
    weights = np.random.default_rng(0).normal(size=(int(np.prod(variant.sizes.planes)), variant.num_actions))

    def network(planes, mask):
        assert planes.dtype == mask.dtype == np.int8
        logits = planes.reshape(len(planes), -1) @ weights
        return logits, np.full((len(planes), variant.num_players), 1 / variant.num_players)

    def by_hand(states):
        limits = limits_of(states.dtype)
        logits, values = np.zeros((len(states), limits.actions)), np.zeros((len(states), limits.players))
        logits[:, : variant.num_actions], values[:, : variant.num_players] = network(*observe(states, variant))
        return logits, values

    options = GumbelOptions(SIMULATIONS, playouts=0)
    found = GumbelSearch(observation_evaluate(network, variant), options).run(games, np.random.default_rng(1))
    expected = GumbelSearch(by_hand, options).run(games, np.random.default_rng(1))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not found.policy[:, variant.num_actions :].any()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda planes, mask: np.zeros(mask.shape), r"returned array.* expected a pair of logits and values"),
        (
            lambda planes, mask: (np.zeros((1, 9)), np.ones((1, 2)) / 2),
            r"logits are of shape \(1, 9\): expected \(1, 122\)",
        ),
        (lambda planes, mask: (mask, np.ones((1, 4)) / 4), r"values are of shape \(1, 4\): expected \(1, 2\)"),
        (lambda planes, mask: (mask, [["a", "b"]]), "values are of type"),
        (lambda planes, mask: (mask, [[0.9, 0.9]]), "values of position 0"),
    ],
)
def test_wrong_results_of_a_network_are_refused(answer, message):
    search = GumbelSearch(observation_evaluate(answer, load_variant("ninetka")), GumbelOptions(2, playouts=0))
    with pytest.raises(ValueError, match=message):
        search.run(start_game("ninetka", 3).records, np.random.default_rng(0))


def test_a_network_evaluates_only_states_of_its_variant():
    evaluate = observation_evaluate(lambda planes, mask: (mask, mask), load_variant("ninetka:num_players=3"))
    with pytest.raises(ValueError, match="another num_players"):
        evaluate(start_game("ninetka", 3).records)
