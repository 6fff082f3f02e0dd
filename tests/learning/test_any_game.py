"""Test training in every game, with minimal networks for Go and Kropki on small boards."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from learning.small_networks import use_small_networks

from ninetka_agents.checkpoint import load_checkpoint
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.outputs import forward_states
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.registry import load_variant
from ninetka_train.learning.alphazero import TrainState, make_examples, train_alphazero
from ninetka_train.learning.batch import make_batch
from ninetka_train.learning.config import TrainConfig, check_config, load_config
from ninetka_train.learning.learner import Learner
from ninetka_train.learning.logger import Journal, read_json_lines
from ninetka_train.learning.ppo import draw_opponents, grow_league, new_learner, play, train_ppo
from ninetka_train.learning.resume import initial_network
from ninetka_train.learning.samples import Samples, join, relative_scores, relative_values
from ninetka_train.learning.selfplay import play_task, tasks_of
from ninetka_train.reporting.run_data import read_run, report_tables, summary
from ninetka_train.run import run

pytestmark = pytest.mark.slow

GO = "go:size=5,komi=1"
KROPKI = ("kropki:width=6,height=6,territory=immediate,start=cross", "kropki:width=6,height=6")
GAMES = {"ninetka": "ninetka", "go": GO, "kropki": KROPKI}
GAME_SETTINGS = {"ninetka": {"exact_nodes": 200}}
"""Settings that only one game has."""
SMALL = {
    "rounds": 2, "playout_rounds": 1, "games": 3, "task_games": 3, "playouts": 4, "simulations": 3, "leaf_playouts": 0,
    "drawn_plies": 12, "share": 0.3, "value_share": 0.3, "window": 2, "steps": 3,
    "minibatch": 16, "microbatch": 8,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _networks(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_networks(monkeypatch)


def small(game: str, **settings: Any) -> TrainConfig:
    values = {"game": GAMES[game], "algorithm": "alphazero", "threads": 1, "device": "cpu", "bf16": False}
    values |= {
        "checkpoint_every": 1,
        "curve_games": 2,
        "network": {"width": 8},
        "seed": 3,
        "alphazero": SMALL | GAME_SETTINGS.get(game, {}) | settings,
    }
    return check_config(values)


def samples_of(game: str, number: int, **settings: Any) -> Samples:
    config = small(game, **settings)
    network = initial_network(config).eval()
    return join(play_task(config, network, number, task) for task in tasks_of(config))


def same(one: Samples, other: Samples) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("game", GAMES)
def test_samples_have_legal_policies_and_correct_outcomes(game: str, number: int) -> None:
    config = small(game)
    samples = samples_of(game, number)
    assert len(samples.games) > 5
    game_class = config.definition.game_class
    for games, policy in zip(samples.games[:, None], samples.policy, strict=True):
        assert set(np.flatnonzero(policy)) <= set(game_class(games).legal_actions())
    np.testing.assert_allclose(samples.values.sum(1), 1, atol=1e-5)
    searched = samples.policy.sum(1)
    assert (abs(searched - 1) < 4e-3).any()
    inexact = {"exact_nodes": 0} if game == "ninetka" else {}
    ended = samples_of(game, number, value_mix=0.0, **inexact)
    assert set(np.unique(ended.values)) <= {0, 1}
    best = ended.scores.max(1)
    for seat in range(2):  # area and territory scores decide in Go and Kropki
        won = ended.values[:, seat] == 1
        assert (ended.scores[won, seat] == best[won]).all()
    drawn = ended.values[:, -1] == 1
    assert (ended.scores[drawn, 0] == ended.scores[drawn, 1]).all()


def play_to_end(config: TrainConfig, network: Any, samples: Samples, row: int) -> Any:
    """Play on from the sample in row `row` by the network's most probable actions; return the finished game."""
    game = config.definition.game_class(samples.games[row : row + 1].copy())
    while not game.is_over:
        game.play(int(forward_states(network, game.records).logits.argmax()))
    return game


@pytest.mark.parametrize("game", ["go", "kropki"])
def test_a_network_game_ends_by_its_most_probable_moves(game: str) -> None:
    config = small(game, value_mix=0.0)
    network = initial_network(config).eval()
    samples = play_task(config, network, 1, range(3))
    for row in np.linspace(0, len(samples.games) - 1, 5).astype(int):
        end = play_to_end(config, network, samples, row)
        winner = end.winner()
        assert samples.values[row].argmax() == (2 if winner in (None, DRAWN) else winner)
        assert samples.scores[row].tolist() == end.scores().tolist()
        owners = end.owners().ravel() if game == "go" else None
        assert owners is None or samples.owners[row].tolist() == owners.tolist()


def _in_another_process(values: dict[str, Any], number: int, task: range) -> Samples:
    config = check_config(values)
    return play_task(config, initial_network(config).eval(), number, task, threads=2)


@pytest.mark.parametrize("number", [0, 1])
def test_a_task_is_a_function_of_weights_seed_and_game_numbers(number: int) -> None:
    """The result is the same in another process, in parallel threads, and with more torch threads."""
    config = small("ninetka", games=4, task_games=2)
    network = initial_network(config).eval()
    tasks = tasks_of(config)
    assert [list(task) for task in tasks] == [[0, 1], [2, 3]]
    alone = [play_task(config, network, number, task) for task in tasks]
    with ThreadPoolExecutor(2) as pool:
        in_threads = list(pool.map(lambda task: play_task(config, network, number, task, threads=2), tasks))
    assert all(map(same, alone, in_threads))
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        other = processes.apply(_in_another_process, (config.model_dump(mode="json"), number, tasks[1]))
    assert same(alone[1], other)
    assert not same(alone[0], alone[1])


def test_tasks_have_nearly_equal_sizes_and_variants_alternate() -> None:
    config = small("kropki", games=5, task_games=4)
    tasks = tasks_of(config)
    assert [game for task in tasks for game in task] == list(range(10))
    assert [len(task) for task in tasks] == [3, 3, 4]
    samples = play_task(config, initial_network(config).eval(), 0, tasks[0])
    assert sorted(set(samples.games["territory"].tolist())) == [0, 1]


@pytest.mark.parametrize("name", ["quick", "quick-go", "quick-kropki"])
def test_quick_runs_keep_two_cores_busy(name: str) -> None:
    tasks = tasks_of(load_config(name))
    assert len(tasks) % 2 == 0
    assert len({len(task) for task in tasks}) == 1


def test_the_default_teacher_is_the_strongest_and_can_be_set() -> None:
    default = samples_of("kropki", 0)
    assert same(default, samples_of("kropki", 0, teacher="mcts:rave"))
    assert not same(default, samples_of("kropki", 0, teacher="mcts"))


def test_a_network_teaches_its_policy_and_values() -> None:
    samples = samples_of("ninetka", 0, teacher="net:gen-4", teacher_mix=1.0, power=1.0, exact_nodes=0)
    assert len(samples.games) > 100
    log_policy, values = network_evaluate(load_checkpoint("gen-4")[0].eval())(samples.games)
    np.testing.assert_allclose(samples.policy, np.exp(log_policy), atol=2e-3)
    movers = samples.games["to_move"][:, None].astype(np.int64)
    np.testing.assert_allclose(np.take_along_axis(samples.values, movers, 1)[:, 0], values[:, 0], atol=1e-5)
    assert not same(samples, samples_of("ninetka", 0, teacher="net:gen-5", teacher_mix=1.0, power=1.0, exact_nodes=0))


def test_a_teachers_values_mix_in() -> None:
    outcome, mixed = samples_of("go", 0), samples_of("go", 0, teacher_mix=0.5)
    assert (outcome.games == mixed.games).all()
    won = outcome.values[:, :2].max(1) == 1
    assert ((mixed.values[won, :2] * outcome.values[won, :2]).sum(1) >= 0.5).all()
    np.testing.assert_allclose(mixed.values.sum(1), 1, atol=1e-5)
    assert 0 < np.mean((mixed.values > 0.01) & (mixed.values < 0.99)) < 1


@pytest.mark.parametrize("number", [0, 1])
def test_few_positions_of_decided_games_are_kept(number: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("ninetka_train.learning.selfplay.DECIDED_SHARE", 1e-9)
    settings = {"games": 12, "task_games": 12, "share": 1.0, "teacher_mix": 1.0, "value_mix": 1.0, "decided": 1.0}
    all_of_them = samples_of("go", number, **settings)
    limit = 0.8 if number == 0 else float(np.median(all_of_them.values[:, :2].max(1)))
    few = samples_of("go", number, **settings | {"decided": limit})
    assert 0 < len(few.games) < 0.9 * len(all_of_them.games)
    known = {game.tobytes() for game in all_of_them.games}
    assert {game.tobytes() for game in few.games} < known
    monkeypatch.setattr("ninetka_train.learning.selfplay.DECIDED_SHARE", 0.5)
    assert (
        len(few.games) < len(samples_of("go", number, **settings | {"decided": limit}).games) < len(all_of_them.games)
    )


def test_a_decided_game_is_played_to_its_end_and_has_a_winner() -> None:
    samples = samples_of("go", 0, decided=0.8, games=12, task_games=12)
    assert set(np.unique(samples.values)) <= {0, 1}
    assert (samples.scores.sum(1) >= 25).all()  # 24 owned points and komi 1; at most one point has no owner


def test_targets_are_relative_to_the_mover() -> None:
    config = small("go")
    samples = samples_of("go", 0)
    leads = samples.scores[:, 0] - samples.scores[:, 1]
    black = samples.games["to_move"] == 0
    np.testing.assert_allclose(relative_scores(samples), np.where(black, leads, -leads))
    turned = np.where(black[:, None], samples.values, samples.values[:, [1, 0, 2]])
    np.testing.assert_allclose(relative_values(samples), turned)
    network = initial_network(config)
    examples = make_examples(network, samples, np.ones(len(samples.games), np.int64))
    assert type(network).symmetry_calls == 1
    assert examples.owners.max() <= 2


@pytest.mark.parametrize("game", ["go", "kropki"])
def test_an_interrupted_run_gives_the_same_network(tmp_path: Path, game: str) -> None:
    config = small(game)
    logs: list[dict[str, float]] = []
    whole = train_alphazero(config, tmp_path / "whole", lambda state, log: logs.append(log))
    assert all(np.isfinite(list(log.values())).all() and "score_loss" in log for log in logs)

    def stop(state: TrainState, log: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_alphazero(config, tmp_path / "cut", stop)
    resumed = train_alphazero(config, tmp_path / "cut", resume=True)
    assert all(map(torch.equal, whole.parameters(), resumed.parameters()))


@pytest.mark.parametrize("game", ["go", "kropki"])
def test_a_disk_that_is_full_at_any_file_costs_no_more_than_a_round(
    tmp_path: Path, game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, fsync, left = small(game), os.fsync, [100]

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    whole = train_alphazero(config, tmp_path / "whole")
    synced = 100 - left[0]
    assert synced >= 6  # games, weights and metadata in two rounds
    for writes in range(synced):
        folder, left[0] = tmp_path / str(writes), writes
        with pytest.raises(OSError, match="No space left on device") as caught:
            train_alphazero(config, folder)
        assert str(caught.value.filename).startswith(str(folder))
        (folder / "games" / ".round-000002.npz.1.part").write_bytes(b"left by a process that was killed")
        left[0] = 100
        resumed = train_alphazero(config, folder, resume=True)
        assert all(map(torch.equal, whole.parameters(), resumed.parameters()))


def test_a_run_of_two_variants_is_killed_resumed_measured_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, log, folder = small("kropki"), Journal.log, tmp_path / "run"

    def killed(journal: Journal, step: int, total: int, numbers: dict[str, float]) -> None:
        log(journal, step, total, numbers)
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "log", killed)
    with pytest.raises(KeyboardInterrupt):
        run(config, folder, 2)
    with pytest.raises(ValueError, match=r"game=.* \(now kropki:width=6,height=6\)"):
        run(config.model_copy(update={"game": KROPKI[1]}), folder, 2, resume=True)
    monkeypatch.setattr(Journal, "log", log)
    run(config, folder, 2, resume=True)
    assert [line["progress"] for line in read_json_lines(folder / "log.jsonl")] == [0.5, 1.0]
    found = read_run(folder)
    assert set(found.variants) == {variant.spec for variant in config.variants}
    tables = ("wins of the network", "the network compared with other agents")
    titles = [f"{one}: {table}" for one in found.variants for table in tables]
    assert [sheet.title for sheet in report_tables(found)] == titles
    assert summary(found).startswith(
        f"{KROPKI[0]} and {KROPKI[1]}; AlphaZero (1 round of games of mcts:rave with 4 playouts, then 1 round of the "
        "network's own games); trained for "
    )
    assert (folder / "report.html").exists()


PPO = {
    "games": 6, "plies": 30, "moves": 360, "minibatch": 64, "microbatch": 32, "league_share": 0.5, "league_every": 1,
    "league_agents": ["random"],
}  # fmt: skip


@pytest.mark.parametrize("game", ["go", "kropki"])
def test_ppo_learns_every_game_and_resumes(tmp_path: Path, game: str) -> None:
    values = {"game": GAMES[game], "threads": 1, "device": "cpu", "bf16": False, "checkpoint_every": 1, "ppo": PPO}
    config = check_config(values)
    whole = train_ppo(config, tmp_path / "whole")

    def stop(learner: Learner, log: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_ppo(config, tmp_path / "cut", stop)
    resumed = train_ppo(config, tmp_path / "cut", resume=True)
    assert all(map(torch.equal, whole.parameters(), resumed.parameters()))


def test_a_rollout_of_go_fits_its_batch() -> None:
    learner = new_learner(check_config({"game": GO, "threads": 1, "device": "cpu", "bf16": False, "ppo": PPO}))
    grow_league(learner)
    draw_opponents(learner)
    rollout = play(learner)
    mask = rollout.arrays.mask.reshape(30, 6, -1)
    assert np.take_along_axis(mask, rollout.actions[..., None], 2).all()
    batch = make_batch(rollout, 0.95)
    assert len(batch.actions) == rollout.is_learner_ply.sum()
    torch.testing.assert_close(batch.values.sum(-1), torch.ones(len(batch.actions)))
    known = ~batch.scores.isnan()
    assert 0 < known.sum() < len(known)
    assert ((batch.owners == -100).all(1) == ~known).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"game": "go:size=5", "players": [3]}, "Go has 2 players"),
        ({"game": "go:size=99"}, "game='go:size=99': size='99'"),
        ({"game": ["go:size=5", "kropki"]}, "differ in states or planes"),
        ({"game": ["kropki", "kropki:width=20,height=20"]}, "differ in states or planes"),
        ({"game": []}, r"game=\[\]: Input should be a valid string or Tuple should have at least 1 item"),
        ({"game": 3}, "game"),
        ({"game": "ninetka:num_players=3"}, "set the numbers of players with players"),
        (
            {"game": GO, "alphazero": {"slide_playouts": 8}},
            "key 'alphazero.slide_playouts': it is a setting of 9tka$",
        ),
        (
            {"game": GO, "alphazero": {"exact_nodes": 0}},
            "key 'alphazero.exact_nodes': it is a setting of 9tka$",
        ),
        ({"alphazero": {"first_slide_playouts": 10**9}}, "alphazero.first_slide_playouts=1000000000: "),
        ({"alphazero": {"leaf_playouts": 10**9}}, "alphazero.leaf_playouts=1000000000: "),
        ({"game": GO, "alphazero": {"teacher": "greedy"}}, "teacher='greedy': expected mcts"),
        (
            {"game": GO, "alphazero": {"teacher": "net:gen-4,simulations=3"}},
            "teacher='net:gen-4,simulations=3': expected",
        ),
        ({"game": GO, "alphazero": {"teacher": "net"}}, "teacher='net': expected mcts"),
        ({"game": GO, "alphazero": {"teacher": "net:gen-99"}}, "gen-99"),
        ({"game": GO, "alphazero": {"teacher": "mcts:simulations=3"}}, "teacher='mcts:simulations=3': expected mcts"),
        ({"game": GO, "alphazero": {"teacher": "mcts:rav=1"}}, "unknown option 'rav'"),
        ({"game": GO, "network": {"mixing": "pool"}}, "unknown key 'network.mixing': it is a setting of 9tka$"),
        ({"game": GO, "network": {"width": 0}}, "width=0: expected at least 1"),
        ({"game": GO, "network": {"width": "wide"}}, r"network\.width='wide'"),
        ({"game": GO, "network": 3}, "network=3"),
    ],
)
def test_an_unsupported_configuration_is_a_one_line_error(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        check_config(values)
    assert len(str(caught.value).splitlines()) == 1


def test_variants_are_specs_at_each_number_of_players() -> None:
    assert small("kropki").variants == tuple(map(load_variant, KROPKI))
    config = check_config({"game": "ninetka:turn_order=continue", "players": [2, 4]})
    assert [one.num_players for one in config.variants] == [2, 4]
    assert {one.options["turn_order"] for one in config.variants} == {"continue"}


def test_a_run_cannot_start_from_weights_of_another_shape() -> None:
    config = check_config({"start_from": "gen-4", "network": {"width": 128}})
    with pytest.raises(ValueError, match=r"network\.width=128: expected 64, as start_from=gen-4 has"):
        initial_network(config)
    assert initial_network(check_config({"start_from": "gen-4"})).config.width == 64


def test_a_missing_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device=cuda"):
        initial_network(check_config({"device": "cuda"}))


def test_a_run_cannot_start_from_weights_of_another_game() -> None:
    config = check_config({"game": GO, "start_from": "ninetka/gen-4"})
    with pytest.raises(ValueError, match="start_from=ninetka/gen-4: its network plays ninetka, not go"):
        initial_network(config)
