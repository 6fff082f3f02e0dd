"""Entry point of the command `ninetka`; see `cli.py`. Ctrl-C prints one line, not a traceback, even during imports."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

SIGNAL_STATUSES = (130, 143, 75)
"""Exit statuses after Ctrl-C, SIGTERM and SIGUSR1."""


def main() -> None:
    """Run the command."""
    try:
        from ninetka_train.cli import main as run

        run()
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        _exit_now(130)
    except SystemExit as end:
        if end.code in SIGNAL_STATUSES:
            _exit_now(end.code)
        raise


def _exit_now(status: int) -> NoReturn:
    """Exit at once. A normal exit would wait for running tasks, and another signal could change the exit status."""
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
