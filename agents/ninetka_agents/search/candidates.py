"""What a tree search under way thinks of the actions at its root, for those who watch it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

LONGEST_LINE = 12
"""Actions of a candidate's line."""


class Child(NamedTuple):
    """An action of a node that was tried."""

    node: int
    """Where in the tree it leads."""
    action: int
    visits: int
    share: float
    """Of the simulations through it, those that the seat which plays it won, draws shared."""


class Watched(Protocol):
    """A tree that tells what it holds."""

    def children(self, node: int) -> list[Child]:
        """Return the actions of a node that were tried; the root is node 0."""
        ...

    def best(self) -> int:
        """Return the action to play."""
        ...


class Candidate(NamedTuple):
    """What a search found out about an action."""

    action: int
    visits: int
    share: float
    """As of `Child`."""
    line: list[int]
    """The action, and what was visited most after it."""


def find_candidates(tree: Watched) -> list[Candidate]:
    """Return the actions that were tried: the one to play first, then the most visited ones."""
    best = tree.best()
    found = [Candidate(one.action, one.visits, one.share, _line(tree, one)) for one in tree.children(0)]
    return sorted(found, key=lambda one: (one.action != best, -one.visits, one.action))


def _line(tree: Watched, child: Child) -> list[int]:
    line = [child.action]
    while len(line) < LONGEST_LINE and (children := tree.children(child.node)):
        child = max(children, key=lambda one: (one.visits, -one.action))
        line.append(child.action)
    return line
