"""Test PPO (targets computed by hand, losses, resumed runs) and configurations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from ninetka_agents import plugins
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_train.learning.batch import ending_plies, make_batch, own_decision_targets, take
from ninetka_train.learning.config import TrainConfig, check_config, load_config
from ninetka_train.learning.learner import Learner
from ninetka_train.learning.losses import UNKNOWN_OWNER
from ninetka_train.learning.ppo import draw_opponents, grow_league, learn, losses, new_learner, play, train_ppo
from ninetka_train.learning.rollout import roll_seats, sample_actions

ROOT = Path(__file__).parents[2]
CONFIGS = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("networks/*/*.yaml")])


def small(**changes: object) -> TrainConfig:
    """Return a configuration of four rollouts with few games, all numbers of players, and a league."""
    ppo = {
        "games": 12, "plies": 16, "moves": 4 * 12 * 16, "minibatch": 64, "microbatch": 32, "epochs": 2,
        "league_share": 0.5, "league_every": 1, "league_size": 2,
    }  # fmt: skip
    network = {"width": 8, "blocks": 1}
    values = {
        "players": [2, 3, 4],
        "device": "cpu",
        "bf16": False,
        "checkpoint_every": 1,
        "network": network,
        "ppo": ppo,
    }
    return check_config(values | changes)


def targets_of(movers, players, values, winners, decay):
    """Return the advantages, (T,), and value targets, (T, 4), of T plies of one environment."""
    plies = len(movers)
    padded = np.zeros((plies + 1, 1, 4), np.float32)
    padded[:, 0, :players] = values
    moved, won = (torch.tensor(seats, dtype=torch.int8)[:, None] for seats in (movers, winners))
    count = torch.tensor([players], dtype=torch.int8)
    found = own_decision_targets(moved, count, torch.from_numpy(padded), won, decay)
    return found.advantages[:, 0].numpy(), found.returns[:, 0].numpy()


def test_targets_where_a_seat_moves_twice():
    values = [(0.5, 0.5), (0.6, 0.4), (0.7, 0.3), (0.8, 0.2), (9, 9)]
    advantages, targets = targets_of([0, 0, 1, 0], 2, values, [UNFINISHED] * 3 + [0], 0.5)
    # Seat 0 decides at plies 0, 1, 3: 1 - 0.8; 0.8 - 0.6 + 0.5 * 0.2; 0.6 - 0.5 + 0.5 * 0.3. Seat 1: 0 - 0.3.
    np.testing.assert_allclose(advantages, [0.25, 0.3, -0.3, 0.2], atol=1e-6)
    np.testing.assert_allclose(targets[:, :2], [(0.75, 0), (0.9, 0), (1, 0), (1, 0)], atol=1e-6)
    assert (targets[:, 2:] == 0).all()


def test_targets_where_a_seat_is_passed_over():
    values = [(0.3, 0.3, 0.4), (0.4, 0.2, 0.4), (0.3, 0.3, 0.4), (0.5, 0.1, 0.4), (0.2, 0.2, 0.6), (0.6, 0.1, 0.3)]
    after = (0.2, 0.3, 0.5)
    advantages, targets = targets_of([0, 1, 2, 0, 2, 0], 3, [*values, after], [UNFINISHED] * 6, 0.5)
    # Seat 0 at plies 0, 3, 5: 0.2 - 0.6; 0.6 - 0.5 - 0.5 * 0.4; 0.5 - 0.3 - 0.5 * 0.1. Seat 1, passed over after
    # ply 3, at ply 1 only: 0.3 - 0.2. Seat 2 at plies 2, 4: 0.5 - 0.6; 0.6 - 0.4 - 0.5 * 0.1.
    np.testing.assert_allclose(advantages, [0.15, 0.1, 0.15, -0.1, -0.1, -0.4], atol=1e-6)
    np.testing.assert_allclose(targets[0, :3], (0.45, 0.3, 0.55), atol=1e-6)
    np.testing.assert_allclose(targets[4, :3], (0.2, 0.3, 0.5), atol=1e-6)


def test_targets_do_not_cross_the_end_of_a_game():
    values = [(0.5, 0.5), (0.4, 0.6), (0.7, 0.3), (0.5, 0.5)]
    advantages, targets = targets_of([0, 1, 0], 2, values, [UNFINISHED, 1, UNFINISHED], 1.0)
    np.testing.assert_allclose(advantages, [-0.5, 0.4, -0.2], atol=1e-6)
    np.testing.assert_allclose(targets[:2, :2], [(0, 1), (0, 1)], atol=1e-6)


def test_a_drawn_game_is_worth_its_share_to_every_seat():
    values = [(0.5, 0.3, 0.2), (0.4, 0.4, 0.2), (0.1, 0.2, 0.7), (0.5, 0.2, 0.3)]
    advantages, targets = targets_of([0, 1, 2], 3, values, [UNFINISHED, DRAWN, UNFINISHED], 1.0)
    np.testing.assert_allclose(advantages, [1 / 3 - 0.5, 1 / 3 - 0.4, 0.3 - 0.7], atol=1e-6)
    np.testing.assert_allclose(targets[:2, :3], np.full((2, 3), 1 / 3), atol=1e-6)
    assert (targets[:, 3] == 0).all()


def test_each_position_has_the_ending_of_its_game():
    winners = torch.tensor([[UNFINISHED, 0], [0, UNFINISHED], [UNFINISHED, 1]], dtype=torch.int8)
    assert ending_plies(winners).tolist() == [[1, 0], [1, 2], [-1, 2]]


def test_roll_seats_is_inverted_by_negation():
    rows = np.array([[1, 2, 3, 0], [1, 2, 0, 0]], np.float32)
    first, players = np.array([1, 1], np.int8), np.array([3, 2], np.int8)
    roll_seats(rows, first, players)
    assert rows.tolist() == [[2, 3, 1, 0], [2, 1, 0, 0]]
    roll_seats(rows, -first, players)
    assert rows.tolist() == [[1, 2, 3, 0], [1, 2, 0, 0]]


def test_sampling_never_draws_masked_actions():
    logits = np.full((2000, 5), -1e9, np.float32)
    logits[:, [1, 3]] = (0.0, np.log(3))
    actions, log_probs = sample_actions(logits, np.random.default_rng(0).random(len(logits), np.float32))
    assert set(actions.tolist()) == {1, 3}
    assert abs((actions == 3).mean() - 0.75) < 0.04
    np.testing.assert_allclose(np.exp(log_probs), np.where(actions == 3, 0.75, 0.25), rtol=1e-5)


@pytest.fixture(scope="module")
def learner() -> Learner:
    made = new_learner(small())
    grow_league(made)
    draw_opponents(made)
    return made


def test_a_rollout_holds_legal_moves_and_fits_its_batch(learner):
    rollout = play(learner)
    mask = rollout.arrays.mask.reshape(16, 12, 122)
    assert np.take_along_axis(mask, rollout.actions[..., None], 2).all()
    assert 0 < rollout.is_learner_ply.mean() < 1
    assert (rollout.is_learner_ply | (learner.opponents >= 0)).all()
    np.testing.assert_allclose(rollout.values.sum(-1), 1, atol=1e-4)
    batch = make_batch(rollout, 0.95)
    assert len(batch.actions) == rollout.is_learner_ply.sum()
    assert batch.values.shape == (len(batch.actions), 5)
    assert not batch.values[:, 4].any()  # no game is drawn
    torch.testing.assert_close(batch.values.sum(-1), torch.ones(len(batch.actions)))
    logits = learner.network(batch.inputs).logits
    chosen = logits.log_softmax(-1).gather(1, batch.actions[:, None])[:, 0]
    torch.testing.assert_close(chosen, batch.log_probs, atol=1e-3, rtol=1e-3)


def test_the_loss_falls_on_a_fixed_batch():
    learner = new_learner(small())
    for group in learner.optimizer.param_groups:
        group["lr"] = 1e-2
    batch = make_batch(play(learner), 0.95)
    known = (~batch.scores.isnan()).float().mean()

    def total() -> float:
        with torch.inference_mode():
            return float(losses(learner.network(batch.inputs), batch, learner.config.ppo, 0.0, known)[0])

    before = total()
    for _ in range(5):
        learn(learner, batch)
    assert total() < before - 0.05


def test_microbatches_do_not_change_gradients():
    """A third of the moves have unknown final owners and scores. Microbatches have different numbers of such moves."""

    def learned(microbatch: int) -> torch.Tensor:
        settings = {"games": 12, "plies": 16, "minibatch": 48, "microbatch": microbatch, "gradient_norm": 1e9}
        learner = new_learner(small(ppo=settings))
        batch = make_batch(play(learner), 0.95)
        batch = take(batch, torch.arange(48))
        batch.owners[::3], batch.scores[::3] = UNKNOWN_OWNER, torch.nan
        learn(learner, batch)
        return torch.cat([p.grad.flatten() for p in learner.network.parameters()])

    torch.testing.assert_close(learned(4), learned(48), rtol=1e-3, atol=1e-5)


def test_an_interrupted_run_gives_the_same_network(tmp_path):
    whole = train_ppo(small(), tmp_path / "whole")

    def stop(learner: Learner, log: dict[str, float]) -> None:
        if learner.rollouts == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_ppo(small(), tmp_path / "cut", stop)
    resumed = train_ppo(small(), tmp_path / "cut", resume=True)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_resuming_skips_a_damaged_checkpoint(tmp_path):
    whole = train_ppo(small(), tmp_path)
    newest = sorted(tmp_path.glob("*.safetensors"))
    assert len(newest) == 2
    newest[1].write_bytes(b"")
    with pytest.warns(UserWarning, match=f"{newest[1].name}.*resuming from the one before it, {newest[0].name}"):
        resumed = train_ppo(small(), tmp_path, resume=True)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="cut short"):
        train_ppo(small(), tmp_path, resume=True)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_is_valid(path):
    assert load_config(path).name == path.stem


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sed=1", "unknown key 'sed' .did you mean 'seed'"),
        ("ppo.epoch=1", "unknown key 'ppo.epoch' .did you mean 'ppo.epochs'"),
        ("epochs=1", "unknown key 'epochs' .did you mean 'ppo.epochs'"),
        ("ppo.foo=1", r"unknown key 'ppo.foo', there are ppo.moves, ppo.games, .*, ppo.league_agents$"),
        ("players=2", r"players=2: Input should be a list, such as \[2, 3\]"),
        ("ppo.clip=-1", r"ppo\.clip=-1: Input should be greater than 0"),
        ("players=[5]", r"players\.0=5"),
        ("ppo.league_agents=[maxn]", "league_agents: expected league_share above 0"),
        ("ppo.microbatch=500", "minibatch=2048: expected a multiple of microbatch=500"),
        ("game=chess", "game='chess': .*unknown game 'chess': known are .*ninetka"),
        ("seed", r"override 'seed': expected key=value, such as seed=\.\.\.$"),
        ("=3", r"expected key=value, such as ppo\.epochs=2$"),
        ("ppo.epochs 2", r"expected key=value, such as ppo\.epochs=2$"),
        ("ppo.moves: 9", r"expected key=value, such as ppo\.moves=9$"),
        ("rounds=3", r"unknown key 'rounds' \(did you mean 'alphazero\.rounds'\?\)$"),
        ("games=3", r"unknown key 'games' \(did you mean 'ppo\.games' or 'alphazero\.games'\?\)$"),
        ("alphazero:games=3", r"unknown key 'alphazero:games' \(did you mean 'alphazero\.games'\?\)$"),
        ("alphazero.round=3", r"unknown key 'alphazero\.round' \(did you mean 'alphazero\.rounds'\?\)$"),
        ("Alphazero.rounds=3", r"unknown key 'Alphazero' \(did you mean 'alphazero'\?\)$"),
        ("alphazero=3", r"alphazero=3: it is a section, expected its keys, such as alphazero\.rounds$"),
        ("seed=abc", "seed='abc': Input should be a valid integer$"),
        ("ppo.moves=15e-1", r"ppo\.moves='15e-1': Input should be a valid integer$"),
        ("seed.a.b=1", "seed"),
    ],
)
def test_wrong_settings_are_named(override, message):
    with pytest.raises(ValueError, match=message):
        load_config(None, [override])


def test_a_game_without_networks_is_refused(monkeypatch):
    assert load_config().game == "ninetka"
    monkeypatch.setattr(plugins, "_PLUGINS", {})
    with pytest.raises(ValueError, match=r"game='ninetka': .*it has no networks"):
        load_config(None, ["game=ninetka"])


def test_exact_slides_need_the_solver():
    with pytest.raises(ValueError, match=r"exact_share=0\.5: needs exact_nodes above 0"):
        load_config(None, ["alphazero.exact_share=0.5", "alphazero.exact_nodes=0"])


def test_overrides_reach_nested_keys(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("seed: 3\nppo: {epochs: 4}\n", encoding="utf-8")
    config = load_config(file, ["ppo.clip=0.1", "players=[2, 3]"])
    assert (config.seed, config.ppo.epochs, config.ppo.clip, config.players) == (3, 4, 0.1, (2, 3))
    file.write_text("- 1", encoding="utf-8")
    with pytest.raises(ValueError, match="expected keys and values"):
        load_config(file)
    with pytest.raises(ValueError, match="cannot be read"):
        load_config(tmp_path / "none.yaml")


def test_a_rollout_in_which_only_opponents_move_teaches_nothing():
    config = load_config(
        None,
        ["ppo.games=1", "ppo.plies=1", "ppo.moves=12", "ppo.league_share=1", "ppo.league_agents=[random]",
         "ppo.minibatch=4", "ppo.microbatch=4", "network.width=8", "network.blocks=1", "threads=1"],
    )  # fmt: skip
    logs = []
    train_ppo(config, report=lambda learner, log: logs.append(log))
    assert len(logs) == 12
    assert 0 < sum("policy_loss" in log for log in logs) < 12


def test_every_variant_needs_a_game():
    with pytest.raises(ValueError, match=r"ppo\.games=2: too few for each of 3 variants"):
        load_config(None, ["players=[2,3,4]", "ppo.games=2"])
