"""Fixtures and hooks of all tests. This folder is on the path, so tests can import `go.reference` and so on.

`CONTRIBUTING.md` describes the three tiers of tests. They are defined by two marks and a number:

- `slow`: skipped by `make quick`;
- `exhaustive`: skipped by `make quick` and `make test`;
- the environment variable `NINETKA_TEST_GAMES`: the number of games and examples in the largest tests. Tests whose size
  depends on it get the mark `scaled`, and `make test-all` runs them a second time with a large number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from scale import MANY_GAMES, TEST_GAMES, Scaled

from ninetka_env.core import registry, verbs

# Tests compare what commands print on stderr, and it depends on the cache whether they compile.
os.environ["NINETKA_COMPILE_NOTICE"] = "0"

# There is no deadline, because the first example of a test may wait for the compiler.
settings.register_profile("ninetka", settings(deadline=None, max_examples=max(5, TEST_GAMES // 20)))
settings.load_profile("ninetka")


@pytest.fixture(scope="session")
def scaled() -> Scaled:
    """Return the function that scales a test's size; see `scale.Scaled`."""
    return lambda many, minimum=1: max(minimum, many * TEST_GAMES // MANY_GAMES)


LAST_FOLDERS = ("search", "go", "test_docs.py", "learning", "cluster", "kropki", "judging", "gtp", "web")
"""Folders and files with tests that compile searches. They run in this order, after all other tests.

Each of two workers starts with one half of the tests, and compiling searches takes most of the time. Nearly all
searches are in the second half, so the second worker compiles them, and the first worker later finds them in the cache.
The longest tests, which train, are not at the end: one worker would run them while the other worker has nothing to do.
"""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of `LAST_FOLDERS` last, and mark the tests whose size depends on `NINETKA_TEST_GAMES`."""
    items.sort(key=_sort_key)
    for item in items:
        if isinstance(item, pytest.Function):
            draws = getattr(item.obj, "is_hypothesis_test", False)
            if draws or "scaled" in item.fixturenames:
                item.add_marker(pytest.mark.scaled)


def _sort_key(item: pytest.Item) -> int:
    place = item.path.relative_to(Path(__file__).parent).parts[0]
    return LAST_FOLDERS.index(place) if place in LAST_FOLDERS else -1


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Run networks on one thread, because their results may depend on the number of threads."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def toy_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a test to register games, and restore the registry after the test."""
    registry._load_all()
    known = registry._REGISTRY
    own = replace(known, places={}, definitions=dict(known.definitions), dtypes=dict(known.dtypes))
    monkeypatch.setattr(registry, "_REGISTRY", own)
    monkeypatch.setattr(verbs, "_FUNCTIONS", dict(verbs._FUNCTIONS))
