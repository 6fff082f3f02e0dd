"""Fuzz the package and the command line with random invalid inputs: `make fuzz`.

`python -m fuzz [--inputs N] [--commands N] [--seed N]`, with `tests` on the path, passes inputs to the package and
arguments to the command. It reports every outcome that is neither success nor one clear error message: a traceback, a
message of many lines or from another package, a hang, a changed game, a partly written file.
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
from fuzz.inputs import input_shares
from fuzz.trials import Findings

from ninetka_env.core.registry import known_games

MAX_MEMORY = 8 << 30
"""Memory limit of the process, in bytes. Inputs that need more must be refused, not exhaust the machine."""


def fuzz_inputs(findings: Findings, count: int, seed: int, games: list[str], folder: Path) -> None:
    """Try about `count` inputs, one kind after another, and add problems to `findings`."""
    rng = random.Random(seed)
    for share, tries in chain(input_shares(findings, games, folder, rng), array_shares(findings, games, rng)):
        before = findings.tried.total()
        while tries and findings.tried.total() - before < share * count:
            rng.choice(tries)(rng)
        print(f"{findings.tried.total()} inputs, {findings.counts.total()} findings so far", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """Run the fuzzer; return 1 if there are findings, else 0."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--inputs", type=int, default=300_000, help="number of inputs to the package (default: %(default)s)"
    )
    parser.add_argument("--commands", type=int, default=1000, help="number of command lines (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers")
    chosen = parser.parse_args(arguments)
    findings = Findings()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        fuzz_inputs(findings, chosen.inputs, chosen.seed, known_games(), Path(folder))
        fuzz_commands(findings, chosen.commands, chosen.seed, known_games(), Path(folder))
    print(*findings.lines(), sep="\n")
    return 1 if findings.counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
