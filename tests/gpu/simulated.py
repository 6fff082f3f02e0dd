"""Tests of `DeviceVectorEnv` that run in numba's simulator; `test_gpu_games.py` runs pytest on this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import toy_game as toy
from page import blocks_of

from ninetka_agents.outputs import MASKED
from ninetka_agents.plugins import network_of
from ninetka_env import go_v0, kropki_v0, ninetka_v0
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.registry import load_variant, register
from ninetka_env.gpu.vector import DeviceVectorEnv

SPEC = "ninetka:neutral_placement=random"
ARRAYS = ("observations", "action_mask", "to_move", "rewards", "terminated", "final_scores", "final_winner")


@pytest.fixture
def env() -> DeviceVectorEnv:
    env = DeviceVectorEnv(4, load_variant(SPEC))
    env.reset(seed=1)
    return env


@pytest.fixture
def twin() -> GameVectorEnv:
    twin = GameVectorEnv(4, load_variant(SPEC))
    twin.reset(seed=1)
    return twin


def assert_equal(env: DeviceVectorEnv, twin: GameVectorEnv) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(env, name).numpy(), getattr(twin, name), name)
    assert env.states().tobytes() == twin.games.tobytes()


def play(env: DeviceVectorEnv, twin: GameVectorEnv, steps: int) -> None:
    for _ in range(steps):
        actions = env.sample_legal()
        np.testing.assert_array_equal(actions.numpy(), twin.sample_legal())
        env.step(actions)
        twin.step(actions.numpy())


def test_tensors_are_those_of_the_documentation(env, twin):
    for name in ARRAYS:
        tensor, array = getattr(env, name), getattr(twin, name)
        assert (tensor.numpy().dtype, tensor.shape) == (array.dtype, array.shape)
        assert tensor.is_contiguous()
    assert (env.num_envs, env.num_players, env.metadata) == (4, 2, twin.metadata)
    assert env.single_observation_space == twin.single_observation_space
    assert env.single_action_space == twin.single_action_space
    returned = env.step(env.sample_legal())
    assert all(
        one is other for one, other in zip(returned, (env.observations, env.rewards, env.terminated), strict=True)
    )


def test_the_modules_of_the_games_make_it():
    for module, options in (
        (ninetka_v0, {"num_players": 3}),
        (go_v0, {"size": 5}),
        (kropki_v0, {"width": 6, "height": 5}),
    ):
        env = module.vector_env(2, device="cuda", reward="score", validate=True, **options)
        assert isinstance(env, DeviceVectorEnv)
        assert (env.num_envs, env.variant) == (2, module.vector_env(1, **options).variant)


def test_a_game_that_writes_no_bits():
    variant = register(toy.definition()).variant(num_players=3)
    env, twin = DeviceVectorEnv(20, variant), GameVectorEnv(20, variant)
    for one in (env, twin):
        one.reset(seed=5)
    for _ in range(12):
        assert_equal(env, twin)
        play(env, twin, 1)
    assert (env.final_winner >= 0).all()


@pytest.mark.parametrize("as_mask", [np.array, torch.tensor])
def test_some_games_restart(env, twin, as_mask):
    play(env, twin, 2)
    for seed, mask in ((9, [True, False, True, False]), (None, [False, False, True, True]), (3, [False] * 4)):
        env.reset(seed=seed, options={"reset_mask": as_mask(mask)})
        twin.reset(seed=seed, options={"reset_mask": np.array(mask)})
        assert_equal(env, twin)
    play(env, twin, 2)
    env.reset()
    twin.reset()
    assert_equal(env, twin)


def test_games_start_from_positions(env, twin):
    play(env, twin, 3)
    states = env.states()
    for position, mask in ((states[2], [True] * 4), (states, [True] * 4), (states, [False, True, True, False])):
        play(env, twin, 1)
        for one in (env, twin):
            one.reset(options={"position": position, "reset_mask": np.array(mask)})
        assert_equal(env, twin)
    play(env, twin, 1)
    assert_equal(env, twin)


def test_an_illegal_action_is_noted_and_reported_later(env, twin):
    before, actions = env.states(), env.sample_legal()
    actions[1], actions[3] = 60, 2**40
    env.step(actions)
    after = env.states()
    assert [after[i].tobytes() == before[i].tobytes() for i in range(4)] == [False, True, False, True]
    env.step(env.sample_legal())  # the noted games stay as they are
    assert [env.states()[i].tobytes() == before[i].tobytes() for i in range(4)] == [False, True, False, True]
    with pytest.raises(ValueError, match=r"^game 1: action 60\b"):
        env.check()
    env.check()
    env.step(env.sample_legal())
    assert all(env.states()[i].tobytes() != before[i].tobytes() for i in range(4))


def test_rewards_are_not_paid_again_after_an_illegal_action():
    env = DeviceVectorEnv(2, load_variant("go:size=5,max_plies=4"))
    env.reset(seed=0)
    while not env.terminated.any():
        env.step(env.sample_legal())
    assert env.rewards.abs().sum() > 0
    env.step([99, 99])
    assert not env.terminated.any()
    assert env.rewards.abs().sum() == 0
    with pytest.raises(ValueError, match=r"^game 0: action 99\b"):
        env.check()


@pytest.mark.parametrize("action", [-1, 122, -(2**63), 2**63 - 1])
def test_reset_reports_an_illegal_action_before_it_restarts(env, action):
    env.step(torch.tensor([action, *env.sample_legal().tolist()[1:]]))
    before = env.states().tobytes()
    with pytest.raises(ValueError, match=r"^game 0: action"):
        env.reset(seed=1)
    assert env.states().tobytes() == before
    env.reset(seed=1)


def test_steps_that_validate_report_at_once(twin):
    env = DeviceVectorEnv(4, load_variant(SPEC), validate=True)
    env.reset(seed=1)
    play(env, twin, 1)
    with pytest.raises(ValueError, match=r"^game 2: action 121\b"):
        env.step(torch.tensor([*env.sample_legal().tolist()[:2], 121, 121]))


@pytest.mark.parametrize("convert", [list, np.array, lambda actions: torch.tensor(actions, dtype=torch.int16)])
def test_actions_may_be_any_integers(env, twin, convert):
    actions = env.sample_legal().tolist()
    env.step(convert(actions))
    twin.step(actions)
    assert_equal(env, twin)


@pytest.mark.parametrize("convert", [list, np.array, torch.tensor])
@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([24] * 3, ValueError, r"expected shape \(4,\), got \(3,\)"),
        ([[24] * 4], ValueError, r"expected shape \(4,\), got \(1, 4\)"),
        ([24.0] * 4, TypeError, "expected integers"),
        ([True] * 4, TypeError, "expected integers"),
    ],
)
def test_wrong_actions_change_nothing(env, actions, error, message, convert):
    before = env.states().tobytes()
    with pytest.raises(error, match=message):
        env.step(convert(actions))
    assert env.states().tobytes() == before


def test_numbers_that_do_not_fit_are_refused(env):
    with pytest.raises(TypeError, match="expected integers"):
        env.step([24, 24, 24, 2**70])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"reward": "points"}, "reward='points': .*'win', 'score'"),
        ({"device": "cpu"}, "device='cpu': expected 'cuda'"),
        ({"device": "gpu9"}, "device='gpu9': expected 'cuda'"),
        ({"device": None}, "device=None: expected 'cuda'"),
        ({"validate": 2}, "validate=2"),
    ],
)
def test_a_wrong_option_is_named_with_the_allowed_values(options, message):
    with pytest.raises(ValueError, match=message):
        DeviceVectorEnv(**{"num_envs": 2, "variant": load_variant(SPEC)} | options)


@pytest.mark.parametrize("spec", [SPEC, "go:size=5", "kropki:width=6,height=5"])
def test_a_network_evaluates_games_on_the_device(spec):
    env = DeviceVectorEnv(3, load_variant(spec))
    network = network_of(env.variant.definition.name).Network()
    for _ in range(3):
        env.step(env.sample_legal())
    outputs = network(network.encode_on_device(env))
    assert outputs.logits.shape[0] == outputs.values.shape[0] == 3
    legal = outputs.logits[:, : env.action_mask.shape[1]] > MASKED / 2
    assert torch.equal(legal, env.action_mask == 1)


def test_a_network_of_another_game_is_refused(env):
    with pytest.raises(ValueError, match="the network plays go, the games are ninetka"):
        network_of("go").Network().encode_on_device(env)


PAGE = Path(__file__).parents[2] / "docs/guides/gpu.md"
PROGRAMS = {block.title: block.text for block in blocks_of(PAGE.read_text(encoding="utf-8")) if block.title != "once"}
SMALLER = {"16384, 32, 300, 16": "2, 6, 2, 2", "(16384": "(2", "range(200)": "range(2)", "range(100)": "range(3)"}
"""Numbers of the programs on the page, and smaller ones."""


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.endswith(".py")])
def test_programs_of_the_documentation(name, capsys):
    text = PROGRAMS[name]
    for numbers, smaller in SMALLER.items():
        text = text.replace(numbers, smaller)
    assert "16384" not in text
    exec(text, {})
    printed = capsys.readouterr().out
    assert printed
    assert "nan" not in printed
