"""Run the conformance checks of all games on Kropki: both rules, both starts, several sizes."""

from __future__ import annotations

import pytest

from ninetka_agents.conformance import check
from ninetka_env.api.conformance import CHECKS

SPECS = [
    "kropki:width=6,height=6",
    "kropki:width=7,height=4,start=cross",
    "kropki:width=5,height=5,territory=immediate",
    "kropki:width=5,height=6,territory=immediate,start=cross",
    "kropki:width=3,height=3,territory=immediate",
    "kropki:width=4,height=3,start=cross",
]


@pytest.mark.parametrize("spec", SPECS)
def test_kropki_passes(spec: str) -> None:
    check(spec, games=1, only=CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", [SPECS[2], *(pytest.param(spec, marks=pytest.mark.exhaustive) for spec in (*SPECS[:2], SPECS[3]))]
)
def test_searches_of_kropki_pass(spec: str) -> None:
    check(spec, games=2, only=["search"])
