"""The command `ninetka` from its first moment on: Ctrl-C ends it by one line, also while it still imports."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

STOPPED = (130, 143, 75)
"""Exit statuses of what Ctrl-C, SIGTERM or SIGUSR1 has ended."""


def main() -> None:
    """Run the command."""
    try:
        from ninetka_train.cli import main as run

        run()
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        _leave(130)
    except SystemExit as end:
        if end.code in STOPPED:
            _leave(end.code)
        raise


def _leave(status: int) -> NoReturn:
    """End at once: Python would wait for tasks under way, and report further signals in place of the status."""
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
