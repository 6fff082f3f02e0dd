"""Test that each task is done once, even if workers are lost or slow."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_train.cluster.queue import MAX_LOST_WORKERS, ClusterError, TaskQueue


def test_tasks_come_in_order_and_each_once():
    queue = TaskQueue(3)
    assert [queue.take(0.0) for _ in range(4)] == [0, 1, 2, None]
    assert [queue.mark_done(task, 1.0) for task in (2, 0, 1)] == [True] * 3
    assert len(queue) == 0
    assert queue.take(1e9) is None


def test_the_task_of_a_lost_worker_comes_next():
    queue = TaskQueue(3)
    queue.take(0.0)
    queue.mark_lost(0)
    assert [queue.take(0.0), queue.take(0.0)] == [0, 1]
    assert queue.num_repeats == 1


def test_an_overdue_task_is_assigned_again_after_all_new_tasks_and_its_first_result_counts():
    queue = TaskQueue(2, timeout_s=10)
    queue.take(0.0)
    assert queue.take(50.0) == 1
    assert queue.take(9.0) is None
    assert queue.take(11.0) == 0
    assert queue.take(12.0) is None
    assert queue.mark_done(0, 11.0)
    assert not queue.mark_done(0, 1.0)
    assert len(queue) == 1
    queue.mark_lost(0)  # by the second worker that was assigned the task
    assert queue.take(50.0) is None


def test_the_slowest_task_extends_the_timeout():
    queue = TaskQueue(2, timeout_s=10)
    queue.take(0.0)
    queue.take(0.0)
    queue.mark_done(0, 100.0)
    assert queue.take(400.0) is None
    assert queue.take(501.0) == 1


def test_a_task_that_another_worker_runs_is_not_queued_again():
    queue = TaskQueue(1, timeout_s=10)
    queue.take(0.0)
    queue.take(11.0)
    queue.mark_lost(0, running_tasks=[0])
    assert queue.take(12.0) is None
    queue.mark_lost(0, running_tasks=[None])
    assert queue.take(12.0) == 0


def test_a_result_of_a_task_that_waits_again_counts():
    queue = TaskQueue(2)
    queue.take(0.0)
    queue.mark_lost(0)
    assert queue.mark_done(0, 1.0)
    assert [queue.take(0.0), queue.take(0.0)] == [1, None]


def test_a_task_that_kills_every_worker_ends_the_run():
    queue = TaskQueue(1)
    for _ in range(MAX_LOST_WORKERS - 1):
        assert queue.take(0.0) == 0
        queue.mark_lost(0, why="out of memory")
    with pytest.raises(ClusterError, match=r"task 0 was started 10 times, .*: out of memory"):
        queue.mark_lost(0, why="out of memory")


def test_every_task_is_done_once_despite_random_losses():
    rng = np.random.default_rng(0)
    for _ in range(200):
        queue, now, at_work, finished = TaskQueue(8, timeout_s=3), 0.0, [], []
        while len(queue):
            now += 1
            if len(at_work) < 4 and (task := queue.take(now)) is not None:
                at_work.append(task)
            if at_work and rng.random() < 0.5:
                task = at_work.pop(rng.integers(len(at_work)))
                if rng.random() < 0.3:
                    queue.mark_lost(task, at_work)
                elif queue.mark_done(task, 1.0):
                    finished.append(task)
        assert sorted(finished) == list(range(8))
