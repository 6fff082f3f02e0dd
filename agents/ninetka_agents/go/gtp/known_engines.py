"""The options that well-known engines need to play games that the arena counts; `ENGINES` lists them by program.

The arena counts the board by area and removes no stones, so an engine has to capture dead stones before it passes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

FIRST_TIMEOUT_S = 10.0
"""The maximum time in seconds for the first response of an engine that is not in `ENGINES`."""


class KnownEngine(NamedTuple):
    """What is added to the command line of a well-known engine."""

    mode: tuple[str, ...] = ()
    """The words that select GTP, which come first. They are added if the first of them is not given."""
    defaults: tuple[str, ...] = ()
    """Words before the options that are given, for programs in which the last of several equal options counts."""
    flags: tuple[str, ...] = ()
    """Options that follow unless they are given, for programs that have no opposite of them."""
    other_engine: tuple[str, ...] = ()
    """Options that select another engine of the program, which does not know these words: then nothing is added."""
    first_timeout: float = FIRST_TIMEOUT_S
    """The maximum time for the first response, in seconds."""


ENGINES = {
    "gnugo": KnownEngine(mode=("--mode", "gtp"), flags=("--chinese-rules", "--capture-all-dead")),
    # `pachi --help` and `uct_setoption` in its uct/uct.c. With `pass_all_alive`, it captures dead stones before it
    # passes (seldom not all of them, if it leads by far). Without `allow_losing_pass`, it fills its own territory in
    # lost games, up to the turn limit. By default, it takes 10 s per move on all cores; its README suggests 5,000
    # playouts for a fixed strength. These would include playouts of earlier moves, and version 12.90 fails an assertion
    # after too few new ones, so the tree is reset. Some builds load a network at the start.
    "pachi": KnownEngine(
        defaults=(
            *("-d", "0", "-r", "chinese", "-t", "=5000"),
            "threads=1,reset_tree,pass_all_alive,allow_losing_pass,resign_threshold=0",
        ),
        other_engine=("-e", "--engine"),
        first_timeout=60.0,
    ),
    # The keys are described in KataGo's cpp/configs/gtp_example.cfg, under "Rules" and "Resignation". The rules are
    # `chinese` without bonus points for handicaps and with `friendlyPassOk=false`; KataGo refuses that key in addition
    # to `rules=chinese`. No position is below a threshold of -1; `allowResignation=false` would require that the
    # configuration contains a threshold. The first start on a GPU tunes OpenCL, which takes minutes.
    "katago": KnownEngine(
        mode=("gtp",),
        defaults=(
            "-override-config",
            "koRule=SIMPLE,scoringRule=AREA,taxRule=NONE,multiStoneSuicideLegal=false,hasButton=false,"
            "friendlyPassOk=false,whiteHandicapBonus=0,resignThreshold=-1",
        ),
        first_timeout=600.0,
    ),
}
"""Well-known engines by the name of their program, without folders and `.exe`."""

_TERRITORY = re.compile(r"--japanese-rules|(-r ?|rules[ =])(japanese|korean)|scoringRule=TERRITORY")
"""Options for territory scoring of all `ENGINES`, in a command line with single spaces."""


def _name(program: str) -> str:
    """Return the name of a program, without folders and `.exe`, in lower case."""
    return re.split(r"[/\\]", program.lower())[-1].removesuffix(".exe")


def first_timeout(program: str) -> float:
    """Return the maximum time in seconds for the first response of an engine, if the user has not set a time."""
    engine = ENGINES.get(_name(program))
    return engine.first_timeout if engine else FIRST_TIMEOUT_S


def complete_options(program: str, options: Sequence[str]) -> list[str]:
    """Return the options of a program with those that `ENGINES` adds to them.

    A warning is issued if the options were a whole command line, which selects GTP, to which something is added, or if
    they contradict the arena's way of counting.
    """
    name, given = _name(program), {option.partition("=")[0] for option in options}
    engine = ENGINES.get(name)
    if engine is None or not given.isdisjoint(engine.other_engine):
        return [*options]
    flags = [flag for flag in engine.flags if flag not in given]
    if _TERRITORY.search(" ".join(options)):
        _warn(f"{name}: games are counted by area, so an engine that counts territory may misjudge them")
        flags = [flag for flag in flags if flag != "--chinese-rules"]
    if not (engine.mode and engine.mode[0] in given):
        return [*engine.mode, *engine.defaults, *options, *flags]
    if added := [*engine.defaults, *flags]:
        _warn(f"{name}: added {' '.join(added)}, without which it may leave dead stones, which count as alive")
    start = len(engine.mode) if tuple(options[: len(engine.mode)]) == engine.mode else 0
    return [*options[:start], *engine.defaults, *options[start:], *flags]


def _warn(message: str) -> None:
    """Issue a warning at the line that calls `find_engine`."""
    warnings.warn(message, stacklevel=4)
