"""Marks that skip tests where the system or an optional package does not allow them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs signals, /bin/sh, links and devices of POSIX")
needs_byte_filenames = pytest.mark.skipif(
    sys.platform != "linux", reason="needs file names with arbitrary bytes, as on Linux"
)
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def network_param(*values: object, marks: Sequence[pytest.MarkDecorator] = ()) -> Any:
    """Return a `pytest.param` for values that include an agent with a network; skipped without torch."""
    return pytest.param(*values, marks=[needs_torch, *marks])
