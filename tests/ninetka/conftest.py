"""Fixtures for the tests of 9tka."""

from __future__ import annotations

import pytest
from ninetka.positions import ALL_OPTIONS, Options


@pytest.fixture(params=ALL_OPTIONS, ids=str)
def options(request: pytest.FixtureRequest) -> Options:
    """Return each combination of options in turn."""
    chosen: Options = request.param
    return chosen
