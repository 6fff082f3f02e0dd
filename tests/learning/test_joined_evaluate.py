"""Test that positions of several threads are evaluated together, and that no thread waits forever."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from ninetka_agents.net_agent import network_evaluate
from ninetka_train.learning import alphazero, selfplay
from ninetka_train.learning.config import check_config
from ninetka_train.learning.joined_evaluate import JoinedEvaluate

SECONDS = 60
"""After this time a test fails instead of waiting forever."""


class Doubled:
    """Evaluates numbers instead of positions, and notes the sizes of batches."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.sizes: list[int] = []
        self.seconds = seconds

    def __call__(self, numbers: Any) -> Any:
        self.sizes.append(len(numbers))
        time.sleep(self.seconds)
        if (numbers < 0).any():
            raise ValueError("negative")
        return numbers[:, None] * np.ones((1, 3)), 2 * numbers


def test_every_user_gets_its_own_results():
    evaluate = Doubled(0.002)
    joined = JoinedEvaluate(evaluate, 1)

    def use(user: int) -> int:
        rng, asked = np.random.default_rng(user), 0
        with joined.user():
            for _ in range(50):
                numbers = rng.integers(0, 1000, rng.integers(1, 9))
                rows, doubled = joined(numbers)
                assert (rows == numbers[:, None]).all()
                assert (doubled == 2 * numbers).all()
                asked += len(numbers)
        return asked

    with ThreadPoolExecutor(8) as pool:
        asked = sum(pool.map(use, range(8), timeout=SECONDS))
    assert sum(evaluate.sizes) == asked
    assert len(evaluate.sizes) < 8 * 50 / 2, "positions were not joined"


def test_a_batch_waits_for_half_of_the_users():
    evaluate = Doubled()
    joined = JoinedEvaluate(evaluate, 1)
    with ThreadPoolExecutor(1) as pool, joined.user():
        with joined.user(), joined.user():
            asked = pool.submit(joined, np.arange(2))
            time.sleep(0.1)
            assert not asked.done()
        # one user is left
        assert asked.result(SECONDS)[1].tolist() == [0, 2]


def test_an_error_reaches_its_users_and_no_others():
    joined = JoinedEvaluate(Doubled(), 1)
    with joined.user():
        with pytest.raises(ValueError, match="negative"):
            joined(np.array([1, -1]))
        assert joined(np.array([3]))[1].tolist() == [6]


def test_tasks_that_still_run_do_not_keep_the_process_alive():
    code = """if True:
        import time
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np
        from ninetka_train.learning.joined_evaluate import JoinedEvaluate

        joined = JoinedEvaluate(lambda numbers: (numbers, numbers), 1)

        def use():
            with joined.user():
                while True:
                    joined(np.arange(2))

        pool = ThreadPoolExecutor(3)
        for _ in range(3):
            pool.submit(use)
        time.sleep(0.2)
        raise SystemExit(3)
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=SECONDS, check=False).returncode == 3


@pytest.mark.parametrize(("games", "number", "users", "threads"), [(2, 1, 1, 2), (40, 1, 4, 1), (40, 0, 2, 1)])
def test_threads_of_joined_tasks(games, number, users, threads, monkeypatch):
    """Rounds of the network have twice as many tasks as threads; a single task uses all threads for its search."""
    monkeypatch.setattr(alphazero, "_joins_positions", lambda network: True)
    running, most, lock = [], [], threading.Lock()

    def play_task(config: Any, network: Any, round_number: int, task: range, threads: int, evaluate: Any = None) -> Any:
        with lock:
            running.append(task)
            most.append((len(running), threads, evaluate is not None))
        time.sleep(0.05)
        running.remove(task)

    monkeypatch.setattr(alphazero, "play_task", play_task)
    settings = {"games": games, "task_games": 2, "playout_rounds": 1}
    config = check_config({"algorithm": "alphazero", "threads": 2, "device": "cpu", "alphazero": settings})
    state = alphazero.new_state(config)
    state.rounds = number
    assert len(alphazero._play_tasks(state)) == games / 2
    assert max(most)[0] == users
    assert {each[1:] for each in most} == {(threads, number == 1)}


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_joined_tasks_have_the_same_samples(number, monkeypatch):
    """With an exact evaluation, that of one position at a time, the samples are those of separate tasks."""
    batches = []

    def evaluate_singly(network: Any, bf16: bool) -> Any:
        one = network_evaluate(network, bf16)

        def evaluate(games: Any) -> Any:
            batches.append((threading.current_thread().name, len(games)))
            parts = [one(games[row : row + 1]) for row in range(len(games))]
            return tuple(map(np.concatenate, zip(*parts, strict=True)))

        return evaluate

    for module in (alphazero, selfplay):
        monkeypatch.setattr(module, "network_evaluate", evaluate_singly)
    settings = {"games": 6, "task_games": 2, "playout_rounds": 1, "playouts": 8, "simulations": 4, "leaf_playouts": 2}
    values = {"game": "go:size=4,komi=1.5,max_plies=20", "algorithm": "alphazero", "threads": 1, "device": "cpu"}
    config = check_config(values | {"network": {"width": 8}, "alphazero": settings | {"drawn_plies": 5}})
    state = alphazero.new_state(config)
    state.rounds = number
    separate, _ = alphazero.play_round(state)
    assert len(separate.games)
    assert not any(name.startswith("ninetka-evaluate") for name, _ in batches)
    monkeypatch.setattr(alphazero, "_joins_positions", lambda network: True)
    before = len(batches)
    joined, _ = alphazero.play_round(state)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(joined, separate, strict=True))
    if number:
        assert all(name.startswith("ninetka-evaluate") for name, _ in batches[before:])
        assert max(size for _, size in batches[before:]) > 2, "positions of several tasks were not joined"
