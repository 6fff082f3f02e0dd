"""Run the guides to trainers: install and run the code blocks of each page in a separate virtual environment.

`python docs/trainers/run.py [PAGE ...]` (by default all pages; also `make docs-trainers`) creates `.venvs/PAGE`, runs
the page's `sh` block in it from the root of the repository, then every `python` block in an empty folder. The programs
are for 9tka; they run a second and a third time with the names of Go and Kropki in place of 9tka's. If all blocks
succeed, it writes the date and the installed versions to the page and to the table in `index.md`. At the end it prints
a table of the results.
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OTHER_PACKAGES = ("torch", "gymnasium", "pettingzoo", "numpy")
"""Packages whose versions are written in addition to the trainer's, if they are installed."""
SHOW_VERSIONS = """
import sys
from importlib.metadata import PackageNotFoundError, version

print(sys.version.split()[0])
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""
OTHER_GAMES = {"go": "Go", "kropki": "Kropki"}
"""Name in modules, and name in environment ids, of the games whose names replace those of 9tka."""


def for_each_game(block: str) -> list[str]:
    """Return the program of a page for 9tka, Go and Kropki."""
    programs = [block]
    for name, title in OTHER_GAMES.items():
        renamed = block.replace("ninetka_v0", f"{name}_v0").replace("Ninetka-v0", f"{title}-v0")
        programs.append(renamed.replace('"ninetka"', f'"{name}"'))
    return programs


class Guide:
    """A page of `docs/trainers` and the virtual environment that runs its blocks."""

    def __init__(self, name: str) -> None:
        """Read the page `name`."""
        self.name = name
        self.page = HERE / f"{name}.md"
        self.text = self.page.read_text("utf-8")
        self.folder = ROOT / ".venvs" / name
        self.trainers = re.findall(r"([\w-]+)(?:\[\w+\])?==", "".join(self.blocks("sh")).replace("torch==", ""))

    def blocks(self, language: str) -> list[str]:
        """Return the page's code blocks in a language."""
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.S | re.M)

    def run(self) -> None:
        """Install the trainer and run the page's blocks; raise `subprocess.CalledProcessError` if one fails."""
        if not (self.folder / "bin" / "python").exists():
            venv.create(self.folder, with_pip=True)
        for block in self.blocks("sh"):
            self._call(["bash", "-euc", block], ROOT)
        with tempfile.TemporaryDirectory() as empty:
            for program in [one for block in self.blocks("python") for one in for_each_game(block)]:
                self._call([str(self.folder / "bin" / "python"), "-c", program], Path(empty))

    def installed_versions(self) -> dict[str, str]:
        """Return the installed versions of Python, the trainer and the packages in `OTHER_PACKAGES`."""
        names = [*self.trainers, *OTHER_PACKAGES]
        output = self._call([str(self.folder / "bin" / "python"), "-c", SHOW_VERSIONS, *names], ROOT)
        return {"Python": output.split()[0], **dict(line.split() for line in output.splitlines()[1:])}

    def write(self, versions: dict[str, str], day: str) -> None:
        """Write the date and the versions to the page and to the table in `index.md`."""
        versions_text = ", ".join(f"{name} {version.split('+')[0]}" for name, version in versions.items())
        self.page.write_text(
            re.sub(r"^Tried .*$", f"Tried {day} on 9tka, Go and Kropki with {versions_text}.", self.text, flags=re.M),
            "utf-8",
        )
        index, trainer = HERE / "index.md", self.trainers[0] if self.trainers else "torch"
        cells = f" {trainer} {versions[trainer].split('+')[0]} | {versions['Python']} | {day} |"
        row = rf"^(\| \[[^]]*\]\({self.name}\.md\) \|)[^|]*\|[^|]*\|[^|]*\|"
        index.write_text(re.sub(row, rf"\g<1>{cells}", index.read_text("utf-8"), flags=re.M), "utf-8")

    def _call(self, command: list[str], folder: Path) -> str:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "VIRTUAL_ENV": str(self.folder), "PIP_QUIET": "1"}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(command, cwd=folder, env=environment, text=True, check=False, stdout=-1, stderr=-2)
        print(done.stdout, end="")
        done.check_returncode()
        return done.stdout


def main(names: list[str]) -> int:
    """Run the named guides, or all if `names` is empty; return the exit status, 1 if a guide failed."""
    pages = sorted(page.stem for page in HERE.glob("*.md") if page.stem != "index")
    if unknown := set(names) - set(pages):
        print(f"unknown guide {', '.join(sorted(unknown))}: known are {', '.join(pages)}", file=sys.stderr)
        return 2
    day, rows = datetime.datetime.now(datetime.UTC).date().isoformat(), []
    for name in names or pages:
        print(f"== {name}", flush=True)
        guide, start = Guide(name), time.perf_counter()
        try:
            guide.run()
            versions = guide.installed_versions()
            guide.write(versions, day)
            outcome = "ok"
        except subprocess.CalledProcessError as error:
            versions, outcome = {}, f"FAILED ({error.returncode})"
        rows.append((name, outcome, f"{time.perf_counter() - start:.0f} s", ", ".join(map(" ".join, versions.items()))))
    print()
    for row in rows:
        print("{:<12} {:<11} {:>6}  {}".format(*row))
    return int(any(outcome != "ok" for _, outcome, *_ in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
