"""Test the simulation of clusters against results computed by hand."""

from __future__ import annotations

import pytest

from benchmarks.cluster_simulation import Costs, efficiency, max_efficient_cores, play_seconds, round_seconds

FREE = Costs((1.0,) * 10, 10, 0, 0, 0, 0, 0, 0)
"""Costs of ten tasks of one second each; everything else takes no time."""


@pytest.mark.parametrize(("workers", "seconds"), [(1, 10), (2, 5), (3, 4), (10, 1), (99, 1)])
def test_tasks_are_shared_out(workers, seconds):
    assert play_seconds(FREE, workers, 1) == seconds
    assert efficiency(FREE, workers) == pytest.approx(10 / (workers * seconds))


def test_each_cost_counts_where_it_arises():
    driver = Costs((1.0,) * 10, 10, 0, 0, 0.5, 0, 0, 0)
    assert play_seconds(driver, 99, 1) == 6  # ten calls, then the last task
    network = Costs((1.0,) * 10, 10, 1e9, 5e8, 0, 0.25, 0, 0, bandwidth=1e9)
    assert play_seconds(network, 99, 2) == 1 + 0.25 + 1 + 10  # weights to two nodes, unpacked, the tasks, ten results
    learner = Costs((1.0,) * 10, 10, 0, 0, 0, 0, 2, 3)
    assert round_seconds(learner, 10) == 1 + 2 + 3
    overlap = Costs((1.0,) * 10, 10, 0, 0, 0, 0, 2, 7, overlap=True)
    assert round_seconds(overlap, 10) == 7


def test_max_efficient_cores():
    assert max_efficient_cores(FREE) == 2  # three workers are idle for a sixth of the time
    assert max_efficient_cores(Costs((1.0,) * 10, 10, 0, 0, 0, 0, 0, 100)) == 0
