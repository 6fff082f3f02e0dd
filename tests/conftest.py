"""What all tests share; this folder is on the path, so tests import from each other's folders (`go.reference`).

`CONTRIBUTING.md` describes the three tiers. Two marks and one number make them:

- `slow`: left out by `make quick`;
- `exhaustive`: left out by `make quick` and `make test`;
- the environment variable `NINETKA_TEST_GAMES` sets how many games and examples the largest tests try. Tests whose
  size follows it get the mark `scaled`, and `make test-all` runs them once more with many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from scale import MANY_GAMES, TEST_GAMES, Scaled

from ninetka_env.core import registry, verbs

# No deadline: the first example of a test may wait for the compiler.
settings.register_profile("ninetka", settings(deadline=None, max_examples=max(5, TEST_GAMES // 20)))
settings.load_profile("ninetka")


@pytest.fixture(scope="session")
def scaled() -> Scaled:
    """Return what gives a test its size."""
    return lambda many, least=1: max(least, many * TEST_GAMES // MANY_GAMES)


LAST = ("search", "go", "test_docs.py", "learning", "cluster", "kropki", "judging", "gtp", "web")
"""Folders and files whose tests compile and use searches, in the order of their turns.

Each of two workers begins with one half of the tests. Most of the compiling is that of searches. With nearly all of
them in the second half, few functions are compiled by both workers: the first finds the searches in the cache later.
The longest tests, which train, do not come at the end, where one worker would wait for the other.
"""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put searches last, and mark the tests whose size follows `NINETKA_TEST_GAMES`."""
    items.sort(key=_turn)
    for item in items:
        if isinstance(item, pytest.Function):
            draws = getattr(item.obj, "is_hypothesis_test", False)
            if draws or "scaled" in item.fixturenames:
                item.add_marker(pytest.mark.scaled)


def _turn(item: pytest.Item) -> int:
    place = item.path.relative_to(Path(__file__).parent).parts[0]
    return LAST.index(place) if place in LAST else -1


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Let a test's networks run on one thread: their results may depend on how many there are."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test register games, and forget them afterwards."""
    registry._load_all()
    known = registry._REGISTER
    own = replace(known, definitions=dict(known.definitions), dtypes=dict(known.dtypes))
    monkeypatch.setattr(registry, "_REGISTER", own)
    monkeypatch.setattr(verbs, "_FUNCTIONS", dict(verbs._FUNCTIONS))
