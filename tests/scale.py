"""How many games and examples the tests try; see CONTRIBUTING.md."""

from __future__ import annotations

import os
from typing import Protocol

MANY_GAMES = 2000
"""`NINETKA_TEST_GAMES` of `make test-all`."""
TEST_GAMES = int(os.environ.get("NINETKA_TEST_GAMES", "200"))


class Scaled(Protocol):
    """The fixture `scaled`: returns the size of a test.

    `scaled(500, 20)` is 500 in `make test-all`, fewer elsewhere in proportion to `NINETKA_TEST_GAMES`, at least 20.
    """

    def __call__(self, many: int, least: int = 1) -> int: ...
