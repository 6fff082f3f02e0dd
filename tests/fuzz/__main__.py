"""Try what nobody should do, many times: `make fuzz`.

`python -m fuzz [--inputs N] [--commands N] [--seed N]`, with `tests` on the path, gives inputs to the package and
arguments to the command, and tells every outcome that is neither success nor one clear sentence: a traceback, a message
of many lines or from elsewhere, a hang, a game that changed, a file half written.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import sys
import tempfile
from itertools import chain
from pathlib import Path

from fuzz.arrays import array_shares
from fuzz.commands import fuzz_commands
from fuzz.inputs import shares
from fuzz.trials import Findings

from ninetka_env.core.registry import known_games

MEMORY = 8 << 30
"""Bytes that the process may take: what asks for more must be refused, not kill the machine."""


def fuzz_inputs(findings: Findings, count: int, seed: int, games: list[str], folder: Path) -> None:
    """Try about so many inputs of all kinds, in turn."""
    rng = random.Random(seed)
    for share, tries in chain(shares(findings, games, folder, rng), array_shares(findings, games, rng)):
        before = findings.tried.total()
        while tries and findings.tried.total() - before < share * count:
            rng.choice(tries)(rng)
        print(f"{findings.tried.total()} inputs, {findings.counts.total()} findings so far", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """Run the fuzzer; returns 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=300_000, help="of programs (default: %(default)s)")
    parser.add_argument("--commands", type=int, default=1000, help="command lines (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides all of them")
    chosen = parser.parse_args(arguments)
    findings = Findings()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        fuzz_inputs(findings, chosen.inputs, chosen.seed, known_games(), Path(folder))
        fuzz_commands(findings, chosen.commands, chosen.seed, known_games(), Path(folder))
    print(*findings.lines(), sep="\n")
    return 1 if findings.counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
