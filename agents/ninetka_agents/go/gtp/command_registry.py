"""The registry of GTP commands. Modules with commands register them on import; `engine` imports these modules.

The commands are in `commands.py`, `extensions.py` and `analysis.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.go.gtp.session import Session

CommandArguments: TypeAlias = tuple[str, ...]
"""The arguments of a command."""
GtpResponse: TypeAlias = "str | Iterator[str]"
"""The text of a response, or an iterator that generates its lines."""
Handler: TypeAlias = Callable[[Session, CommandArguments], GtpResponse]

_HANDLERS: dict[str, Handler] = {}
_MIN_ARGUMENTS: dict[str, int] = {}
_SEARCH_COMMANDS: set[str] = set()


def command(*names: str, min_arguments: int = 0, needs_search: bool = False) -> Callable[[Handler], Handler]:
    """Register a function as the handler of commands.

    Args:
        names: the names of the commands, which all have the same handler.
        min_arguments: the minimum number of arguments.
        needs_search: whether only agents with a tree search support the command, because it reports the search.
    """

    def enter(handler: Handler) -> Handler:
        for name in names:
            _HANDLERS[name], _MIN_ARGUMENTS[name] = handler, min_arguments
            if needs_search:
                _SEARCH_COMMANDS.add(name)
        return handler

    return enter


def known_commands(session: Session) -> list[str]:
    """Return the names of the commands that the session's agent supports, sorted."""
    return sorted(name for name in _HANDLERS if name not in _SEARCH_COMMANDS or session.move_chooser.can_analyse)


def run_command(session: Session, name: str, arguments: CommandArguments) -> GtpResponse:
    """Run a command and return its response.

    Raises:
        GtpError: if the command fails; the session is then unchanged.
    """
    if name not in known_commands(session):
        raise GtpError("unknown command")
    if len(arguments) < _MIN_ARGUMENTS[name]:
        raise GtpError(f"syntax error: {name} needs {_MIN_ARGUMENTS[name]} arguments")
    return _HANDLERS[name](session, arguments)
