"""Test that a run on a cluster writes the same files as one process, even if nodes fail.

Three tests start a cluster, which takes most of their time. `cluster.fault_injection` is a longer test.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest
import yaml

pytest.importorskip("torch")
pytest.importorskip("ray")

import torch
from cluster.nodes import files_of, new_player, signal_one, small, some_nodes, train

from ninetka_agents import make_agent
from ninetka_train.cluster import workers
from ninetka_train.cluster.queue import ClusterError
from ninetka_train.cluster.workers import pack, unpack
from ninetka_train.judging.arena import play_games
from ninetka_train.learning.alphazero import train_alphazero
from ninetka_train.run import run


@pytest.mark.slow
def test_a_node_gives_the_results_of_one_process(tmp_path, one_torch_thread):
    config = small(rounds=2, playout_rounds=1, games=4)
    agents, match = [make_agent(spec) for spec in ("random", "maxn:depth=1")], {"num_games": 4, "batch": 2, "seed": 5}
    alone = train(config, tmp_path / "alone")  # run first, so that the node finds compiled code in the cache
    games = play_games(agents, **match)
    with some_nodes(1):
        player = new_player()
        assert train(config, tmp_path / "cluster", player) == alone
        again = play_games(agents, play_batches=player.batch_player(agents), **match)
    assert (again.actions == games.actions).all()


@pytest.mark.exhaustive
def test_three_nodes_give_the_results_of_one_process(tmp_path, monkeypatch, one_torch_thread):
    config, logs, warnings = small(), [], []
    alone = train(config, tmp_path / "alone")
    agents = [make_agent(spec) for spec in ("net", "mcts:simulations=20", "random")]
    match = {"num_players": 2, "num_games": 8, "batch": 8, "seed": 5}
    games = play_games(agents, **match)
    with some_nodes(3) as nodes:
        player = new_player(timeout_s=2.0, warn=warnings.append)
        kill = threading.Timer(0.1, nodes.lose_one)

        def report(state, log):
            logs.append(log)
            if state.rounds == 1:
                signal_one(player, signal.SIGSTOP, np.random.default_rng(0))
            elif state.rounds == 2:
                kill.start()
            elif state.rounds == 3:
                kill.join()
                nodes.add()

        train_alphazero(config, tmp_path / "cluster", report, play=player.play_round)
        assert files_of(tmp_path / "cluster") == alone
        assert all({"workers", "idle", "again", "games_per_second", "staleness"} <= log.keys() for log in logs)
        player.publish({"staleness": 0.0})  # a resumed run may publish a round that was played without a cluster
        same = play_games(agents, play_batches=player.batch_player(agents), **match)
        assert (same.actions == games.actions).all()
        assert (same.winners == games.winners).all()
        assert (same.scores == games.scores).all()
        assert (same.times.moves == games.times.moves).all()
        overlapping = small(overlap=True)
        ahead = train(overlapping, tmp_path / "ahead")
        assert ahead.keys() == alone.keys()
        assert ahead != alone
        assert train(overlapping, tmp_path / "ahead on nodes", player) == ahead
        threads_of = counter_of_threads()
        assert list(player.workers.map((threads_of, ()), range(2))) == [(1, 1)] * 2
        with pytest.raises(ZeroDivisionError):
            list(player.workers.map((threads_of, ()), [0, "fails"]))
        own = workers.identity()
        monkeypatch.setattr(workers, "identity", lambda: own | {"source of ninetka_env": "other", "torch": "1.0"})
        player.workers._recheck_idle()
        with pytest.raises(ValueError, match=r"worker \d+ on .* cannot take part: it has torch .*, here 1\.0; source"):
            list(player.workers.map((threads_of, ()), [0]))
        monkeypatch.setattr(workers, "identity", lambda: own)
        monkeypatch.setattr(workers, "HEAD_LOST_AFTER_S", 1.0)
        nodes.lose_head()
        with pytest.raises(ClusterError, match=r"the cluster is lost: its head at .* does not answer"):
            list(player.workers.map((threads_of, ()), ["sleeps"] * 100))
    assert not [text for text in warnings if "processor" in text]


def counter_of_threads():
    """Return a recipe's function, which makes the function that does tasks; see `Recipe`.

    A task returns the numbers of threads of numba and torch. The functions are nested so that they are pickled by
    value, because nodes cannot import this module.
    """

    def make():
        def count(task):
            if task == "fails":
                raise ZeroDivisionError
            if task == "sleeps":
                time.sleep(1.0)
            return numba.config.NUMBA_NUM_THREADS, torch.get_num_threads()

        return count

    return make


@pytest.mark.exhaustive
def test_ctrl_c_ends_the_command_with_one_line_and_one_process_resumes(tmp_path, one_torch_thread):
    config = small(rounds=6)
    alone = train(config, tmp_path / "alone")
    path, runs = tmp_path / "small.yaml", tmp_path / "runs"
    path.write_text(yaml.safe_dump(config.model_dump(mode="json")), encoding="utf-8")
    command = [sys.executable, "-m", "ninetka_train", "train", "--config", str(path), "--runs", str(runs)]
    interrupt = [sys.executable, str(Path(__file__).parents[1] / "interrupt.py"), "games/s"]
    done = subprocess.run([*interrupt, *command, "--games", "0", "--cluster"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "continue with --resume" in done.stdout
    folder = runs / config.name
    run(config, folder, games=0, resume=True)
    assert {name: text for name, text in files_of(folder).items() if name in alone} == alone


def test_networks_are_unpacked_with_the_same_weights():
    network = make_agent("net").network
    again = unpack(pack(network))
    assert not again.training
    assert all(torch.equal(one, other) for one, other in zip(network.parameters(), again.parameters(), strict=True))


def test_other_processors_are_worth_a_warning_and_other_versions_an_error():
    own = workers.identity()
    assert workers.check_identity(own, own, "it") is None
    assert "may differ by rounding" in workers.check_identity(own, own | {"processor": "6502"}, "it")
    with pytest.raises(ValueError, match=r"^it cannot take part: it has numpy 0\.9, here .*: install the same"):
        workers.check_identity(own, own | {"numpy": "0.9"}, "it")
