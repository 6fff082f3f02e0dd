"""Start a command, wait until it prints a text, and interrupt it as Ctrl-C does.

    python interrupt.py TEXT COMMAND ARGUMENT...

The status is 0 if the command prints a line with TEXT and, after the interrupt, exits without a traceback and with
status 0 or 130.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any


def restore_sigint() -> None:
    """Restore the default handler of SIGINT in a child process before it runs its program.

    A command that runs under `nohup` or `&` ignores SIGINT, and so do the processes that it starts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def sigint_options() -> dict[str, Any]:
    """Return options of `subprocess.Popen` that let SIGINT end the child process; none on Windows."""
    return {"preexec_fn": restore_sigint} if os.name == "posix" else {}


def interrupt(text: str, command: list[str]) -> int:
    """Run a command and interrupt it after a line with `text`.

    Return 0 if it prints such a line and then exits without a traceback and with status 0 or 130, otherwise 1.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **sigint_options()
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if text in line:
                process.send_signal(signal.SIGINT)
                break
        lines += process.stdout.read()
        status = process.wait()
    output = "".join(lines)
    print(output, end="")
    return int(text not in output or "Traceback" in output or status not in (0, 130))


if __name__ == "__main__":
    sys.exit(interrupt(sys.argv[1], sys.argv[2:]))
