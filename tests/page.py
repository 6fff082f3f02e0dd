"""Run the code blocks of a documentation page in order, in one folder, all Python in one interpreter.

    python page.py README.md    # uses the current folder

- `python` blocks share the names of earlier Python blocks; in the README every block is independent.
- `sh` blocks are run by bash, which stops at the first command that fails.
- A block with a `title` is written to the file of that name; blocks with the same title are appended to it.
- A `text` block directly after a block that runs is the expected output, where `...` matches anything; elsewhere it is
  an illustration.

Any other block is an error, so that no code on a page is left untested.
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

FENCED_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<about>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.S | re.M
)
TITLE = re.compile(r'title="([^"]+)"')


class Block(NamedTuple):
    """A fenced block."""

    language: str
    title: str
    """Name of the file to write; empty for code to run."""
    text: str
    line: int
    """Number of the block's first line on the page, counted from 1."""
    expected_output: str | None
    """Expected output; None if the page does not state it."""


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page. A block with the output of the block before it becomes its `expected_output`."""
    found = list(FENCED_BLOCK.finditer(page))
    outputs = {index: dedent(after["text"]) for index, after in enumerate(found[1:]) if _is_output(found[index], after)}
    blocks = []
    for index, match in enumerate(found):
        if index - 1 not in outputs:
            title = TITLE.search(match["about"])
            line = page.count("\n", 0, match.start("text")) + 1
            fields = (match["language"], title[1] if title else "", dedent(match["text"]), line, outputs.get(index))
            blocks.append(Block(*fields))
    return blocks


def _is_output(block: re.Match[str], after: re.Match[str]) -> bool:
    nothing_between = not block.string[block.end() : after.start()].strip()
    plain = after["language"] == "text" and not after["about"].strip()
    return nothing_between and plain and block["language"] in ("python", "sh")


def run_page(path: Path) -> None:
    """Run all blocks of a page; raise an exception at the first block that fails."""
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
    """Run a block and return its standard output."""
    if block.language == "sh":
        command = ["bash", "-euo", "pipefail", "-c", block.text]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    if block.language != "python":
        raise ValueError(f"{path}, line {block.line}: a block of {block.language!r} without a title cannot be run")
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
    printed = io.StringIO()
    names.setdefault("__name__", "__main__")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def _compare(block: Block, path: Path, printed: str) -> None:
    if block.expected_output is None:
        return
    wanted, got = (
        "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n"))
        for text in (block.expected_output, printed)
    )
    if not doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS):
        raise ValueError(f"{path}, line {block.line}: expected output\n{wanted}but got\n{got}")


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    run_page(Path(sys.argv[1]))
