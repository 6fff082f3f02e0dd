"""A short run of the fuzzer (`make fuzz` runs a long one), and tests that the fuzzer finds errors."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from fuzz.__main__ import fuzz_inputs
from fuzz.commands import fuzz_commands
from fuzz.trials import Findings, Hang, message_problem, run_trial, time_limit

from ninetka_env.core import registry

pytestmark = pytest.mark.slow

GAMES = sorted(registry._REGISTRY.modules)
"""The games of the package; tests may have registered others."""


def test_inputs_end_in_success_or_a_clear_message(tmp_path):
    findings = Findings()
    fuzz_inputs(findings, 1500, 0, GAMES, tmp_path)
    assert findings.tried.total() >= 1500
    assert not findings.counts, "\n".join(findings.lines())


def test_commands_end_in_success_or_a_clear_message(tmp_path):
    findings = Findings()
    fuzz_commands(findings, 25, 0, GAMES, tmp_path)
    assert not findings.counts, "\n".join(findings.lines())


def test_unclear_messages_are_found():
    def error_of_python():
        int("x")

    def wordy():
        raise ValueError("\n".join("abcdef"))

    def silent():
        raise ValueError

    findings = Findings()
    for call in (error_of_python, wordy, silent, dict.fromkeys, lambda: {}["x"]):
        assert not run_trial(findings, call.__name__, call, (ValueError,), None)
    assert run_trial(findings, "good", lambda: None, (), None)
    assert findings.counts.total() == 5
    assert not message_problem("one clear sentence")
    assert message_problem("x" * 2000)


def test_a_hang_is_found():
    with pytest.raises(Hang), time_limit(0.05):
        time.sleep(60)
