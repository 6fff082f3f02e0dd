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


def started_anew() -> dict[str, Any]:
    """Return options of `subprocess.Popen` that let SIGINT end the child process; none on Windows."""
    return {"preexec_fn": restore_sigint} if os.name == "posix" else {}


def interrupt(text: str, command: list[str]) -> int:
    """Run the command and return the status of this program."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **started_anew()
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
    said = "".join(lines)
    print(said, end="")
    return int(text not in said or "Traceback" in said or status not in (0, 130))


if __name__ == "__main__":
    sys.exit(interrupt(sys.argv[1], sys.argv[2:]))
