"""Tests of PPO on a GPU that run in numba's simulator; `test_gpu_games.py` runs pytest on this file.

They replay a rollout with the rules and the network on the CPU.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ninetka_agents.outputs import MASKED, as_tensors
from ninetka_env.core.batch import make_outcomes, step_with_autoreset
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_train.learning import device_play, ppo
from ninetka_train.learning.batch import make_batch
from ninetka_train.learning.config import TrainConfig, check_config
from ninetka_train.learning.device_play import DeviceGames, play_on_device, sample_on_device
from ninetka_train.learning.learner import LEARNER, Learner

GAMES, PLIES = 7, 12


def config_of(**changes: object) -> TrainConfig:
    settings = {
        "games": GAMES, "plies": PLIES, "moves": 3 * GAMES * PLIES, "minibatch": 32, "microbatch": 16,
        "league_share": 0.7, "league_every": 1, "league_size": 2, "league_agents": ["random"],
    }  # fmt: skip
    values = {"players": [2, 3, 4], "device": "cpu", "bf16": False, "threads": 1, "checkpoint_every": 1}
    values |= {"network": {"width": 8, "blocks": 1}, "ppo": settings}
    return check_config(values | changes)


@pytest.fixture(autouse=True)
def games_on_a_device(monkeypatch):
    """Let runs put their games on the simulated device, although their networks are on the CPU."""
    monkeypatch.setattr(ppo, "_can_play_on_device", lambda network: True)
    monkeypatch.setattr(device_play, "DeviceGames", lambda *given: DeviceGames(*given[:3], "cuda"))


def learner_of(config: TrainConfig) -> Learner:
    learner = ppo.new_learner(config)
    ppo.grow_league(learner)
    ppo.draw_opponents(learner)
    return learner


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"game": "go:size=4,max_plies=16,komi=0.5", "players": [2]},
        {"game": ["kropki:width=4,height=4", "kropki:width=4,height=4,territory=immediate"], "players": [2]},
    ],
    ids=["ninetka", "go", "kropki"],
)
def test_a_rollout_is_that_of_the_rules_and_the_network(changes):
    learner = learner_of(config_of(**changes))
    columns = learner.device_games.columns
    games, streams, options = (rows[columns].copy() for rows in (learner.games, learner.streams, learner.options))
    rollout = play_on_device(learner)
    endings, limits = make_outcomes(games.dtype, GAMES), limits_of(games.dtype)
    for ply in range(PLIES):
        movers, players = games["to_move"].astype(np.int64), games["num_players"]
        assert (rollout.movers[ply].numpy() == movers).all()
        arrays = learner.network.encode(games)
        for tensor, array in zip(rollout.arrays, arrays, strict=True):
            assert tensor[ply * GAMES : (ply + 1) * GAMES].numpy().tobytes() == array.tobytes()
        outputs, actions = learner.network(as_tensors(arrays)), rollout.actions[ply].numpy()
        learns = (learner.opponents[columns] == LEARNER) | (learner.seats[columns] == movers)
        assert (rollout.is_learner_ply[ply].numpy() == learns).all()
        rows, chosen = np.arange(GAMES), outputs.logits.detach().log_softmax(1).numpy()
        assert (chosen[rows, actions] > MASKED / 2).all()
        np.testing.assert_allclose(chosen[rows, actions][learns], rollout.log_probs[ply].numpy()[learns], atol=1e-4)
        for seat in range(limits.players):
            expected = np.where(seat < players, outputs.values.detach().numpy()[rows, (seat - movers) % players], 0)
            np.testing.assert_allclose(rollout.values[ply].numpy()[:, seat], expected, atol=1e-5)
        step_with_autoreset(games, actions, options, streams, endings)
        assert (rollout.winners[ply].numpy() == endings.winners).all()
        ended = endings.winners != UNFINISHED
        assert (rollout.owners[ply].numpy()[ended] == endings.targets[ended]).all()
        assert (rollout.scores[ply].numpy()[ended] == endings.scores[ended]).all()
    assert learner.device_games.states().tobytes() == games.tobytes()
    assert 0 < rollout.is_learner_ply.float().mean() < 1
    batch = make_batch(rollout, 0.9)
    assert len(batch.actions) == rollout.is_learner_ply.sum()
    assert np.isfinite(list(ppo.learn(learner, batch).values())).all()


def test_games_keep_their_order():
    learner = ppo.new_learner(config_of())
    games, streams = np.zeros_like(learner.games), np.zeros_like(learner.streams)
    learner.device_games.copy_to(games, streams)
    assert games.tobytes() == learner.games.tobytes()
    assert streams.tobytes() == learner.streams.tobytes()


def test_an_interrupted_run_gives_the_same_network(tmp_path):
    whole = ppo.train_ppo(config_of(), tmp_path / "whole")

    def stop(learner: Learner, log: dict[str, float]) -> None:
        if learner.rollouts == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ppo.train_ppo(config_of(), tmp_path / "cut", stop)
    resumed = ppo.train_ppo(config_of(), tmp_path / "cut", resume=True)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("on_device", [True, False])
def test_a_run_is_resumed_elsewhere(on_device, tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "_can_play_on_device", lambda network: on_device)
    states = []

    def stop(learner: Learner, log: dict[str, float]) -> None:
        games, streams = learner.games.copy(), learner.streams.copy()
        if learner.device_games is not None:
            learner.device_games.copy_to(games, streams)
        states.append((games.tobytes(), streams.tobytes()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ppo.train_ppo(config_of(), tmp_path, stop)
    monkeypatch.setattr(ppo, "_can_play_on_device", lambda network: not on_device)
    with pytest.raises(KeyboardInterrupt):
        ppo.train_ppo(config_of(), tmp_path, stop, resume=True)
    assert states[0] == states[1]


def test_outputs_that_are_not_finite_are_reported():
    learner = learner_of(config_of())
    for weights in learner.network.parameters():
        weights.data.fill_(torch.nan)
    with pytest.raises(ValueError, match="outputs are not finite any more: lower learning_rate"):
        play_on_device(learner)


def test_actions_are_drawn_by_their_probabilities():
    logits = torch.full((20_000, 5), MASKED)
    logits[:, [1, 3]] = torch.tensor([0.0, np.log(3)], dtype=torch.float32)
    actions, log_probs = sample_on_device(logits, torch.Generator().manual_seed(0))
    assert set(actions.tolist()) == {1, 3}
    assert abs((actions == 3).float().mean() - 0.75) < 0.015
    torch.testing.assert_close(log_probs.exp(), torch.where(actions == 3, 0.75, 0.25))
