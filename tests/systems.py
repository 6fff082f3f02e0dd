"""What tests need: of the system, and of packages that not every machine has."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="needs signals, /bin/sh, links and devices as POSIX has them")
any_names = pytest.mark.skipif(sys.platform != "linux", reason="needs names of files of any bytes, as Linux has them")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def of_network(*values: object, marks: Sequence[pytest.MarkDecorator] = ()) -> Any:
    """Return values of parameters, among them an agent with a network."""
    return pytest.param(*values, marks=[needs_torch, *marks])
