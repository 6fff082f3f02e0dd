"""Test agents' specs, properties of all agents, and the random agent."""

from __future__ import annotations

import copy
import pickle

import numba
import numpy as np
import pytest
from ninetka.positions import ALL_OPTIONS, Options, position_after, random_position
from requirements import needs_posix, network_param
from scipy.stats import chisquare

from ninetka_agents import agent as agents_module
from ninetka_agents import make_agent
from ninetka_agents.agent import PerGameGenerator, game_streams
from ninetka_agents.ninetka import alpha_beta, maxn
from ninetka_agents.ninetka.by_phase import ByPhase
from ninetka_agents.ninetka.solver import solver
from ninetka_agents.search import uct
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import STATE_DTYPE, Phase

SPECS = [
    "random",
    "maxn:depth=2",
    "maxn:depth=2,random_ties=true",
    "paranoid:nodes=50",
    "brs:nodes=50",
    "mcts:simulations=30",
    "mcts:simulations=30,rave",
    "solver:nodes=50,simulations=30",
]
PHASES = "phases:placement=random,movement=[mcts:30,exploration=0.5]"

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="needs compiled code")


def sample_states(count=200):
    """Return `count` states of random unfinished positions of all options and phases."""
    found = []
    while len(found) < count:
        seed = len(found)
        game = random_position(ALL_OPTIONS[seed % len(ALL_OPTIONS)], seed, plies=seed * 7 % 82)
        if game.is_over:
            game = random_position(ALL_OPTIONS[seed % len(ALL_OPTIONS)], seed, plies=50)
        found.append(game)
    return np.concatenate([game.records for game in found])


def find_forced_pass():
    """Return a position in which a pass is the only legal action."""
    options = Options(3, auto_pass=False)
    for seed in range(100):
        for plies in range(50, 80):
            game = random_position(options, seed, plies)
            if game.legal_actions().tolist() == [PASS]:
                return game
    raise AssertionError("no forced pass found")


# Specs


@pytest.mark.parametrize(
    "spec",
    [
        "random",
        "maxn",
        "maxn:",
        "maxn:depth=3",
        "maxn:3",
        "maxn:depth=3,random_ties=true,threads=1",
        "maxn:random_ties=false",
        "mcts",
        "mcts:simulations=20",
        "mcts:20",
        "mcts:20,exploration=0.5",
        "mcts:exploration=1,threads=2",
        PHASES,
    ],
)
def test_a_spec_names_the_agent_and_its_options(spec):
    agent = make_agent(spec)
    assert agent.name == spec
    games = random_position(Options(2), 0, 60).records
    assert Game(games).legal_mask()[agent.act(games, np.random.default_rng(0))[0]]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("maxn:2", "maxn:depth=2"),
        ("maxn:0", "maxn"),
        ("maxn", "maxn:depth=5"),  # two players
        ("mcts:20", "mcts:simulations=20,exploration=0.7"),
    ],
)
def test_specs_that_mean_the_same(short, long):
    games = np.concatenate([position_after(Options(2), seed, Phase.MOVEMENT, 15).records for seed in range(20)])
    one, two = (make_agent(spec).act(games, np.random.default_rng(0)) for spec in (short, long))
    assert one.tolist() == two.tolist()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", r"unknown agent '': known are .*maxn, mcts, .*random"),
        ("chess", r"unknown agent 'chess': known are .*maxn, mcts, .*random"),
        ("MaxN", r"unknown agent 'MaxN': known are .*maxn"),
        ("phases:movement=max", r"unknown agent 'max'.*did you mean 'maxn'"),
        (" maxn", r"unknown agent ' maxn'.*did you mean 'maxn'"),
        ("max", r"unknown agent 'max'.*did you mean 'maxn'"),
        ("random:3", r"'random:3'.*allowed are none"),
        ("random:seed=3", r"'random:seed=3'.*'seed'.*allowed are none"),
        ("maxn:deep=3", r"'deep', allowed are depth, random_ties, threads.*did you mean 'depth'"),
        ("maxn:name=x", r"'name', allowed are depth, random_ties, threads"),
        ("maxn:=3", r"'', allowed are depth, random_ties, threads"),
        ("maxn:depth=2,depth=3", r"'depth' is given twice"),
        ("maxn:2,3", r"'depth' is given twice"),
        ("maxn:depth=", r"depth='' must be a number"),
        ("maxn:depth=two", r"depth='two' must be a number"),
        ("maxn:depth=2.5", r"depth='2.5' must be a number"),
        ("maxn:depth=-1", r"depth=-1"),
        ("maxn:threads=-1", r"threads=-1"),
        ("maxn:random_ties=1", r"random_ties='1' must be true or false"),
        ("maxn:random_ties=True", r"random_ties='True' must be true or false"),
        ("mcts:simulation=9", r"'simulation', allowed are .*did you mean 'simulations'"),
        ("mcts:simulations=0", r"simulations=0"),
        ("mcts:simulations=many", r"simulations='many' must be a number"),
        ("mcts:exploration=-1", r"exploration=-1"),
        ("mcts:exploration=nan", r"exploration=nan"),
        ("mcts:exploration=inf", r"exploration=inf"),
        ("phases:placement=[phases:placement=[mcts:5,reuse=1],movement=maxn]", r"reuse='1' must be true or false"),
    ],
)
def test_error_names_the_wrong_spec_and_the_known_values(spec, message):
    with pytest.raises(ValueError, match=message):
        make_agent(spec)


@pytest.mark.parametrize("game", ["ninetka", "ninetka:num_players=3", "ninetka:auto_pass=false,turn_order=continue"])
def test_an_agent_is_made_for_a_game(game):
    games = random_position(Options(2), 0, 60).records
    for spec in [*SPECS, PHASES]:
        agent = make_agent(spec, game=game)
        assert agent.name == spec
        expected = make_agent(spec).act(games, np.random.default_rng(0)).tolist()
        assert agent.act(games, np.random.default_rng(0)).tolist() == expected


TOO_LONG = "cannot be read: File name too long"


@pytest.mark.parametrize(
    ("spec", "game", "message"),
    [
        ("random", "chess", r"unknown game 'chess': known are .*ninetka"),
        ("random", "ninetka:komi=6.5", r"unknown option 'komi', there are num_players"),
        ("random", "ninetka:num_players=5", r"num_players='5': expected one of 2, 3, 4"),
        ("mcts:simulations=9,exact=9", "go", r"option exact: nothing can be proven in go"),
        network_param("net:simulations=9,exact=9", "kropki", r"option exact: nothing can be proven in kropki"),
        ("mcts:game=ninetka", "ninetka", r"unknown option 'game', allowed are simulations"),
        network_param("net:game=ninetka", "ninetka", r"unknown option 'game', allowed are path"),
        (None, "ninetka", r"agent None: expected text"),
        ("random" + "x" * 2000, "ninetka", r"expected text of at most 2000 characters"),
        ("x" * 5000, "ninetka", r"expected text of at most 2000 characters"),
        network_param("net:" + "x" * 1990, "ninetka", rf"checkpoint xxx.* \.\.\.: {TOO_LONG}", marks=[needs_posix]),
        network_param("net:a\0b\n", "ninetka", r"checkpoint a\\x00b\\n.json: cannot be read: "),
        network_param("phases:placement=[net:" + "x" * 1900 + "]", "ninetka", TOO_LONG, marks=[needs_posix]),
        ("mcts:exact=" + "9" * 30, "ninetka", r"exact=9{30}: expected an integer of at least 0 and at most 9007"),
        ("maxn:depth=" + "9" * 30, "ninetka", r"depth=9{30}: expected an integer of at least 1 and at most 9007"),
        ("maxn:threads=" + "9" * 30, "ninetka", r"threads=9{30}: expected"),
        ("maxn:depth=" + "9" * 1900, "ninetka", r"agent 'maxn:depth=9.*: option depth='9.*must be a number|depth=9.*"),
        ("solver:" + "9" * 30, "ninetka", r"nodes=9{30}: expected"),
        network_param("net:simulations=99999999999", "ninetka", r"simulations=9{11}: expected .* and at most 1048576"),
        network_param(
            "net:simulations=8,playouts=99999999999", "ninetka", r"playouts=9{11}: expected .* at most 16777216"
        ),
        network_param("net:simulations=1000000", "ninetka", r"=1000000: with 256 playouts each in one tree, expected"),
        network_param("net:threads=" + "9" * 30, "ninetka", r"threads=9{30}: expected"),
    ],
)
def test_error_names_the_wrong_game_or_option(spec, game, message):
    with pytest.raises(ValueError, match=message) as caught:
        make_agent(spec, game)
    assert len(str(caught.value)) < 500


# Properties of all agents


@pytest.mark.parametrize("spec", [*SPECS, PHASES])
def test_actions_are_legal_and_games_are_unchanged(spec):
    games = np.concatenate([sample_states(), find_forced_pass().records])
    before = games.tobytes()
    actions = make_agent(spec).act(games, np.random.default_rng(0))
    assert (actions.shape, actions.dtype) == (games.shape, np.int64)
    assert all(Game(games[i : i + 1]).legal_mask()[action] for i, action in enumerate(actions))
    assert actions[-1] == PASS
    assert games.tobytes() == before


@pytest.mark.parametrize("spec", [*SPECS, PHASES])
def test_the_same_generator_gives_the_same_actions(spec):
    games, agent = sample_states(100), make_agent(spec)
    first, again, other = (agent.act(games, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    rng = np.random.default_rng(1)
    assert agent.act(games, rng).tolist() == first
    assert agent.act(games, rng).tolist() != first  # the state of the generator has advanced


@compiled
@pytest.mark.parametrize("spec", SPECS[1:])
def test_the_number_of_threads_changes_nothing(spec):
    games = sample_states()
    one, *more = (make_agent(f"{spec},threads={threads}") for threads in (1, 2, 2, 0))
    for seed in range(5):
        expected = one.act(games, np.random.default_rng(seed)).tolist()
        for agent in more:
            assert agent.act(games, np.random.default_rng(seed)).tolist() == expected


@pytest.mark.parametrize("spec", [*SPECS, PHASES])
def test_with_streams_per_game_other_games_change_nothing(spec):
    games, agent = sample_states(40), make_agent(spec)
    streams = game_streams(games, np.random.default_rng(0))
    together = agent.act(games, PerGameGenerator(streams.copy())).tolist()
    alone = [int(agent.act(games[i : i + 1], PerGameGenerator(streams[i : i + 1].copy()))[0]) for i in range(40)]
    assert together == alone


def test_each_phase_is_played_by_its_agent():
    class Counts:
        name = "counts"
        phases = ()

        def act(self, games, rng):
            self.phases = {*self.phases, *games["phase"].tolist()}
            return make_agent("random").act(games, rng)

    places, moves = Counts(), Counts()
    ByPhase(places, moves).act(sample_states(), np.random.default_rng(0))
    assert (places.phases, moves.phases) == ({Phase.NEUTRAL, Phase.PLACEMENT}, {Phase.MOVEMENT})


@pytest.mark.parametrize("spec", [*SPECS, PHASES])
def test_zero_games_give_zero_actions(spec):
    assert make_agent(spec).act(np.zeros(0, STATE_DTYPE), np.random.default_rng(0)).shape == (0,)


@pytest.mark.parametrize("spec", SPECS)
def test_memory_layout_of_states_does_not_matter(spec):
    games, agent = sample_states(20), make_agent(spec)
    expected = agent.act(games, np.random.default_rng(0)).tolist()
    locked = games.copy()
    locked.flags.writeable = False
    for same in (np.repeat(games, 2)[::2], games[::-1].copy()[::-1], locked):
        assert agent.act(same, np.random.default_rng(0)).tolist() == expected


def test_game_streams_are_distinct():
    games = np.zeros(1000, STATE_DTYPE)
    rng = np.random.default_rng(0)
    streams = np.concatenate([game_streams(games, rng), game_streams(games, rng)])
    assert streams.dtype == np.uint64
    assert len(set(streams.tolist())) == 2000


KERNELS = [
    agents_module._act_at_random,
    alpha_beta._act,
    maxn._act,
    maxn._search_first,
    maxn._evaluate_first,
    uct._search_all,
    uct._search_first,
    solver._solve_all,
]


@compiled
def test_every_kernel_is_compiled_once():
    def use_all(games):
        for spec in [*SPECS, "maxn", "mcts:simulations=3,exploration=1"]:
            make_agent(spec).act(games, np.random.default_rng(0))
        game = Game(games[:1])
        for one in (game, game.copy(), pickle.loads(pickle.dumps(game))):
            maxn.evaluate(one)
            maxn.search(one, 2)
            uct.search(one, 5, np.random.default_rng(0), exploration=1)

    batch = np.concatenate([random_position(Options(n), n, 50).records for n in (2, 3, 4)])
    use_all(batch[:1])
    before = [kernel.signatures for kernel in KERNELS]
    for games in (batch, batch[1:], batch[[2, 0]], copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        use_all(games)
    assert [kernel.signatures for kernel in KERNELS] == before


# The random agent


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("phase", list(Phase))
def test_the_random_agent_is_uniform(num_players, phase):
    game = position_after(Options(num_players), 0, phase, plies=4)
    games = np.repeat(game.records, 200 * len(game.legal_actions()))
    for rng in (np.random.default_rng(0), PerGameGenerator(game_streams(games, np.random.default_rng(1)))):
        actions = make_agent("random").act(games, rng)
        tried, counts = np.unique(actions, return_counts=True)
        assert tried.tolist() == game.legal_actions().tolist()
        assert chisquare(counts).pvalue > 0.01


def test_the_random_agent_draws_games_independently():
    game = position_after(Options(2), 0, Phase.MOVEMENT, plies=4)
    actions = make_agent("random").act(np.repeat(game.records, 20_000), np.random.default_rng(0))
    legal = game.legal_actions()
    pairs = np.searchsorted(legal, actions[0::2]) * len(legal) + np.searchsorted(legal, actions[1::2])
    assert chisquare(np.bincount(pairs, minlength=len(legal) ** 2)).pvalue > 0.01


def test_default_playouts_of_a_network_fit_in_one_tree():
    pytest.importorskip("torch")
    for game in ("go", "kropki"):
        make_agent("net:simulations=200000,threads=1", game)
        with pytest.raises(ValueError, match=r"simulations=200000: with 2048 playouts each in one tree, expected"):
            make_agent("net:simulations=200000,playouts=2048,threads=1", game)
