"""Runs the code of a page as a reader would: block after block in one folder, all Python in one interpreter.

    python page.py README.md    # run in the folder where the reader is

- `python` goes on from the Python blocks before it; in the README every block stands for itself.
- `sh` is run by bash, which stops at the first command that fails.
- A block with a `title` is the file of that name; blocks with the same title follow one another in it.
- `text` right after a block that runs is what that prints, with `...` for anything; elsewhere it is a picture.

Any other block is an error: no code on a page stays unread.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<about>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.S | re.M)
TITLE = re.compile(r'title="([^"]+)"')


class Block(NamedTuple):
    """A fenced block."""

    language: str
    title: str
    """The file that it is, empty for code to be run."""
    text: str
    line: int
    """Of its first line of text, counted from 1."""
    printed: str | None
    """What it must print, None if the page does not say."""


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page that are not what another one prints."""
    found = list(FENCE.finditer(page))
    outputs = {index: dedent(after["text"]) for index, after in enumerate(found[1:]) if _is_output(found[index], after)}
    blocks = []
    for index, match in enumerate(found):
        if index - 1 not in outputs:
            title = TITLE.search(match["about"])
            line = page.count("\n", 0, match.start("text")) + 1
            told = (match["language"], title[1] if title else "", dedent(match["text"]), line, outputs.get(index))
            blocks.append(Block(*told))
    return blocks


def _is_output(block: re.Match[str], after: re.Match[str]) -> bool:
    nothing_between = not block.string[block.end() : after.start()].strip()
    plain = after["language"] == "text" and not after["about"].strip()
    return nothing_between and plain and block["language"] in ("python", "sh")


def run_page(path: Path) -> None:
    """Run all blocks of a page; the first that fails raises."""
    files: dict[str, str] = {}
    names: dict[str, Any] = {}
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if block.title:
            files[block.title] = files.get(block.title, "") + block.text
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(files[block.title], encoding="utf-8")
        elif block.language != "text":
            names = {} if path.name == "README.md" else names
            printed = _run(block, path, names)
            _compare(block, path, printed)


def _run(block: Block, path: Path, names: dict[str, Any]) -> str:
    """Run a block and return what it prints on stdout."""
    if block.language == "sh":
        command = ["bash", "-euo", "pipefail", "-c", block.text]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    if block.language != "python":
        raise ValueError(f"{path}, line {block.line}: a block of {block.language!r} without a title: nobody can run it")
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
    printed = io.StringIO()
    names.setdefault("__name__", "__main__")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def _compare(block: Block, path: Path, printed: str) -> None:
    if block.printed is None:
        return
    wanted, got = (
        "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n")) for text in (block.printed, printed)
    )
    if not doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS):
        raise ValueError(f"{path}, line {block.line}: the page promises\n{wanted}but it prints\n{got}")


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    run_page(Path(sys.argv[1]))
