"""Tests of the line that says that code is being compiled."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from ninetka_env.core import compile_notice
from ninetka_env.core.compile_notice import NOTICE, VARIABLE, CompileTimer

STARTED, ENDED = (SimpleNamespace(is_start=start, is_end=not start) for start in (True, False))
"""The events of numba."""


@pytest.fixture
def said(monkeypatch):
    monkeypatch.setattr(compile_notice, "NOTICE_AFTER_S", 0.2)
    return []


def compile_for(timer, *seconds):
    for each in seconds:
        timer.notify(STARTED)
        time.sleep(each)
        timer.notify(ENDED)
        time.sleep(0.05)


def test_short_compilations_say_nothing(said):
    timer = CompileTimer(lambda: said.append(1))
    compile_for(timer, 0.02, 0.02)
    time.sleep(0.3)
    assert said == []


def test_one_long_and_many_short_compilations_say_it_once(said):
    for seconds in ([0.5, 0.3], [0.07] * 8):
        said.clear()
        compile_for(CompileTimer(lambda: said.append(1)), *seconds)
        assert said == [1]


def test_the_notice_comes_while_nested_compilations_run(said):
    timer = CompileTimer(lambda: said.append(1))
    timer.notify(STARTED)
    threads = [threading.Thread(target=compile_for, args=(timer, 0.01, 0.01)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == []
    time.sleep(0.3)
    assert said == [1]
    timer.notify(ENDED)


@pytest.mark.parametrize(("value", "expected"), [("1", [NOTICE]), ("0", []), (None, [])])
def test_numba_reports_to_the_timer_if_the_variable_is_set(value, expected, monkeypatch):
    code = """
from ninetka_env.core import compile_notice
compile_notice.NOTICE_AFTER_S = 0.0
import ninetka_env.core.jit, numba
numba.njit(lambda x: x + 1)(1)
"""
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == expected
