"""The command `ninetka` from its first moment on: Ctrl-C ends it by one line, also while it still imports."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

STOPPED = 130
"""Exit status of what Ctrl-C has ended."""


def main() -> None:
    """Run the command."""
    try:
        from ninetka_train.cli import main as run

        run()
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        _leave()
    except SystemExit as end:
        if end.code == STOPPED:
            _leave()
        raise


def _leave() -> NoReturn:
    """End at once: Python's own end would report every further Ctrl-C, and that signal instead of the status."""
    sys.stderr.flush()
    os._exit(STOPPED)


if __name__ == "__main__":
    main()
