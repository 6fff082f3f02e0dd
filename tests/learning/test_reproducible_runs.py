"""Test that runs give the same bytes regardless of machine load, stopping and resuming.

`NINETKA_TEST_RUNS` sets the number of runs of each kind.
"""

from __future__ import annotations

import itertools
import os
import signal

import numpy as np
import pytest
from learning.reproducible_runs import CONFIGS, busy_cores, checksum, finish, logged, seconds_of, start_run, stop

RUNS = int(os.environ.get("NINETKA_TEST_RUNS", "1"))
pytestmark = pytest.mark.exhaustive
BUSY = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2  # the tests of another xdist worker keep a core busy as well
SIGNALS = itertools.cycle(getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGUSR1"))


@pytest.mark.parametrize("name", CONFIGS)
def test_runs_that_are_stopped_on_a_busy_machine_equal_the_uninterrupted_one(tmp_path, name):
    rng = np.random.default_rng(0)
    lasts = seconds_of(tmp_path / "whole", name, threads=2)
    expected, lines = checksum(tmp_path / "whole", name), logged(tmp_path / "whole", name)
    with busy_cores(BUSY):
        for number in range(RUNS):
            folder = tmp_path / f"broken-{number}"
            # the run may take longer than `lasts`, because the cores are busy
            stop(start_run(folder, name, 2, "--resume"), next(SIGNALS), rng.uniform(0, 1.5 * lasts))
            finish(start_run(folder, name, 2, "--resume"))
            assert checksum(folder, name) == expected
            assert logged(folder, name) == lines
            assert not list((folder / name).glob("resume-*"))


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("name", ["go-alphazero", "kropki-alphazero"])  # rounding of convolutions depends on threads
def test_runs_with_other_numbers_of_threads_have_one_checksum_each(tmp_path, name, threads):
    folders = [tmp_path / str(number) for number in range(1 + RUNS)]
    for folder in folders:
        finish(start_run(folder, name, threads))
    assert len({checksum(folder, name) for folder in folders}) == 1


def test_a_run_whose_games_are_played_on_ray_equals_that_of_one_process(tmp_path):
    pytest.importorskip("ray")
    name = "kropki-alphazero"
    finish(start_run(tmp_path / "one", name, 2))
    finish(start_run(tmp_path / "ray", name, 2, "--cluster"))
    assert checksum(tmp_path / "ray", name) == checksum(tmp_path / "one", name)
