"""The register of the commands that an engine knows; modules with commands enter them when they are imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.go.gtp.session import Session

Words: TypeAlias = tuple[str, ...]
"""The arguments of a command."""
Reply: TypeAlias = "str | Iterator[str]"
"""An answer; or its lines one by one, as they come."""
Handler: TypeAlias = Callable[[Session, Words], Reply]

_HANDLERS: dict[str, Handler] = {}
_NEEDED: dict[str, int] = {}
_ANALYSES: set[str] = set()


def command(*names: str, needs: int = 0, analyses: bool = False) -> Callable[[Handler], Handler]:
    """Enter a function as commands.

    Args:
        names: of the commands, which all do the same.
        needs: how many arguments it must have; what comes after those that it knows is ignored.
        analyses: whether it shows what a tree search thinks; engines without one do not have it.
    """

    def enter(handler: Handler) -> Handler:
        for name in names:
            _HANDLERS[name], _NEEDED[name] = handler, needs
            if analyses:
                _ANALYSES.add(name)
        return handler

    return enter


def known_commands(session: Session) -> list[str]:
    """Return the names of all commands, sorted."""
    return sorted(name for name in _HANDLERS if name not in _ANALYSES or session.thinker.can_analyse)


def carry_out(session: Session, name: str, arguments: Words) -> Reply:
    """Do what a command says; `GtpError` if it fails, after which nothing has changed."""
    if name not in known_commands(session):
        raise GtpError("unknown command")
    if len(arguments) < _NEEDED[name]:
        raise GtpError(f"syntax error: {name} needs {_NEEDED[name]} arguments")
    return _HANDLERS[name](session, arguments)
