"""The command `ninetka` from its first moment on: Ctrl-C ends it by one line, also while it still imports."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command."""
    try:
        from ninetka_train.cli import main as run

        run()
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
