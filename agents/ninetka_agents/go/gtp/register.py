"""The registry of GTP commands. Modules with commands register them on import; `engine` imports these modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.go.gtp.session import Session

Words: TypeAlias = tuple[str, ...]
"""The arguments of a command."""
Reply: TypeAlias = "str | Iterator[str]"
"""The text of a response, or an iterator that generates its lines."""
Handler: TypeAlias = Callable[[Session, Words], Reply]

_HANDLERS: dict[str, Handler] = {}
_NEEDED: dict[str, int] = {}
_ANALYSES: set[str] = set()


def command(*names: str, needs: int = 0, analyses: bool = False) -> Callable[[Handler], Handler]:
    """Register a function as the handler of commands.

    Args:
        names: the names of the commands, which all have the same handler.
        needs: the minimum number of arguments.
        analyses: whether the command reports a tree search; only agents with a tree search have such commands.
    """

    def enter(handler: Handler) -> Handler:
        for name in names:
            _HANDLERS[name], _NEEDED[name] = handler, needs
            if analyses:
                _ANALYSES.add(name)
        return handler

    return enter


def known_commands(session: Session) -> list[str]:
    """Return the names of the commands that the session's agent supports, sorted."""
    return sorted(name for name in _HANDLERS if name not in _ANALYSES or session.thinker.can_analyse)


def carry_out(session: Session, name: str, arguments: Words) -> Reply:
    """Run a command and return its response.

    Raises:
        GtpError: if the command fails; then nothing has changed.
    """
    if name not in known_commands(session):
        raise GtpError("unknown command")
    if len(arguments) < _NEEDED[name]:
        raise GtpError(f"syntax error: {name} needs {_NEEDED[name]} arguments")
    return _HANDLERS[name](session, arguments)
