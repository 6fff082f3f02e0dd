"""A short run of the fuzzer (`make fuzz` runs a long one), and tests that the fuzzer finds errors."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from fuzz.__main__ import fuzz_inputs
from fuzz.commands import fuzz_commands
from fuzz.trials import Findings, Hang, not_a_sentence, patience, tried

from ninetka_env.core import registry

pytestmark = pytest.mark.slow

GAMES = sorted(registry._REGISTER.modules)
"""The games of the package; tests may have registered others."""


def test_inputs_end_in_success_or_a_sentence(tmp_path):
    findings = Findings()
    fuzz_inputs(findings, 1500, 0, GAMES, tmp_path)
    assert findings.tried.total() >= 1500
    assert not findings.counts, "\n".join(findings.lines())


def test_commands_end_in_success_or_a_sentence(tmp_path):
    findings = Findings()
    fuzz_commands(findings, 25, 0, GAMES, tmp_path)
    assert not findings.counts, "\n".join(findings.lines())


def test_what_is_no_clear_sentence_is_found():
    def by_chance():
        int("x")

    def wordy():
        raise ValueError("\n".join("abcdef"))

    def silent():
        raise ValueError

    findings = Findings()
    for call in (by_chance, wordy, silent, dict.fromkeys, lambda: {}["x"]):
        assert not tried(findings, call.__name__, call, (ValueError,), None)
    assert tried(findings, "good", lambda: None, (), None)
    assert findings.counts.total() == 5
    assert not not_a_sentence("one clear sentence")
    assert not_a_sentence("x" * 2000)


def test_a_hang_is_found():
    with pytest.raises(Hang), patience(0.05):
        time.sleep(60)
