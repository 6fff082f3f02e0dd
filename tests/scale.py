"""Number of games and examples in tests; see CONTRIBUTING.md."""

from __future__ import annotations

import os
from typing import Protocol

MANY_GAMES = 2000
"""The value of `NINETKA_TEST_GAMES` in `make test-all`."""
TEST_GAMES = int(os.environ.get("NINETKA_TEST_GAMES", "200"))


class Scaled(Protocol):
    """Type of the fixture `scaled`, a function that returns the size of a test.

    `scaled(500, 20)` is 500 in `make test-all`; otherwise it is proportional to `NINETKA_TEST_GAMES`, but at least 20.
    """

    def __call__(self, many: int, minimum: int = 1) -> int: ...
