"""Entry point of the command `ninetka`: Ctrl-C ends it with one line, even during imports. See `cli.py`."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

STOPPED = (130, 143, 75)
"""Exit statuses after Ctrl-C, SIGTERM and SIGUSR1."""


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
    """Exit at once. A normal exit would wait for running tasks, and another signal could change the exit status."""
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
