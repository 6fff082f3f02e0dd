"""Tests that all public functions that take states take them in every form: loaded, strided, frozen, byte-swapped."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from fuzz.inputs import random_game

from ninetka_agents import make_agent
from ninetka_agents.board_features import make_inputs
from ninetka_agents.ninetka.features import make_features
from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.observing import observe
from ninetka_env.core.registry import load_variant

MODULES = {"ninetka": ninetka_v0, "go": go_v0, "kropki": kropki_v0}
AGENTS = {"ninetka": ("maxn:depth=1", "phases:placement=random,movement=random"), "go": (), "kropki": ("greedy",)}


def loaded(games):
    file = io.BytesIO()
    np.save(file, games)
    file.seek(0)
    return np.load(file)


def strided(games):
    wide = np.zeros((len(games), 2), games.dtype)
    wide[:, 1] = games
    return wide[:, 1]


def frozen(games):
    copied = games.copy()
    copied.flags.writeable = False
    return copied


FORMS = {
    "loaded": loaded,
    "strided": strided,
    "frozen": frozen,
    "misaligned": lambda games: np.frombuffer(b"x" + games.tobytes(), games.dtype, offset=1),
    "byte-swapped": lambda games: games.astype(games.dtype.newbyteorder()),
    "byte-swapped and loaded": lambda games: loaded(games.astype(games.dtype.newbyteorder())),
    "reversed": lambda games: games[::-1].copy()[::-1],
    "recarray": lambda games: games.view(np.recarray),
}


def functions(name):
    """Return functions that convert (N,) states to bytes or text, by name."""
    variant, module = load_variant(name), MODULES[name]

    def first_actions(spec):
        return lambda games: make_agent(spec, game=name).act(games, np.random.default_rng(0)).tobytes()

    def positions(games):
        return [str(module.Game(games[index : index + 1])) for index in range(len(games))]

    def masks(games):
        return [module.Game(games[index : index + 1]).legal_mask().tobytes() for index in range(len(games))]

    def batch(games):
        envs = module.vector_env(len(games))
        envs.reset(options={"position": games})
        return envs.games.tobytes(), envs.observations.tobytes()

    def single(games):
        env, seen = module.raw_env(), []
        for state in games:
            env.reset(options={"position": state})
            seen.append(env.state().tobytes())
        return seen

    def features(games):
        if name == "ninetka":
            return [array.tobytes() for array in make_features(games)]
        return [array.tobytes() for array in make_inputs(games, variant.sizes.planes)]

    agents = {spec: first_actions(spec) for spec in ("random", "mcts:simulations=4", *AGENTS[name])}
    observed = {"observe": lambda games: [array.tobytes() for array in observe(games, variant)]}
    given = {"Game": positions, "legal_mask": masks, "vector_env": batch, "raw_env": single, "features": features}
    return {**agents, **observed, **given}


@pytest.mark.parametrize("name", MODULES)
def test_states_are_taken_in_every_form(name):
    rng = random.Random(0)
    games = np.concatenate([random_game(load_variant(name), rng, plies).records for plies in (0, 3, 12, 30)])
    for function_name, function in functions(name).items():
        expected = function(games)
        for form, convert in FORMS.items():
            given = convert(games)
            before = given.tobytes()
            assert function(given) == expected, (function_name, form)
            assert given.tobytes() == before, (function_name, form)
