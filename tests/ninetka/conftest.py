"""Fixtures of the tests of 9tka."""

from __future__ import annotations

import pytest
from ninetka.positions import ALL_OPTIONS, Options


@pytest.fixture(params=ALL_OPTIONS, ids=str)
def options(request: pytest.FixtureRequest) -> Options:
    """Every combination of options, one after the other."""
    chosen: Options = request.param
    return chosen
