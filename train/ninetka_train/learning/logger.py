"""Logs of a run: JSON lines in files, and the same numbers for TensorBoard."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from ninetka_env.core.files import naming, replace_file
from ninetka_env.core.registry import DEFAULT

LOG, CURVE, TENSORBOARD = "log.jsonl", "curve.jsonl", "tensorboard"
Line = dict[str, Any]


class Journal:
    """Writes `log.jsonl`, `curve.jsonl` and `tensorboard/` of one run.

    A resumed run continues from its last checkpoint, so later lines are dropped, and the clock continues from the last
    line that remains.
    """

    def __init__(self, folder: Path) -> None:
        """Start the clock. Files are not touched before the first line."""
        self.folder = folder
        self.curve: list[Line] = []
        self._begin = time.perf_counter()
        self._stopped: float | None = None
        self._steps = -1
        self._place: Line = {}
        """Step and progress of the newest line."""
        self._writer: SummaryWriter | None = None

    @property
    def seconds(self) -> float:
        """Seconds of training, including those before the run was resumed, without those of evaluations."""
        return round((self._stopped or time.perf_counter()) - self._begin, 3)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Return a context manager that stops the clock."""
        self._stopped = time.perf_counter()
        try:
            yield
        finally:
            self._begin += time.perf_counter() - self._stopped
            self._stopped = None

    def log(self, step: int, total: int, numbers: Mapping[str, float]) -> Line:
        """Add a line to `log.jsonl`; return it.

        Args:
            step: finished rounds or moves.
            total: rounds or moves of the whole run.
            numbers: the metrics; step, progress and seconds are added.

        Raises:
            OSError: if a file cannot be written; the message names the file.
        """
        if self._steps < 0:
            self._go_on_from(step, total)
        self._steps += 1
        self._place = {"step": step, "progress": _progress(step, total)}
        line = {**numbers, **self._place, "seconds": self.seconds}
        self._add(LOG, line)
        self._scalars({f"training/{name}": value for name, value in numbers.items()})
        return line

    def point(self, numbers: Line) -> None:
        """Add a measurement to `curve.jsonl`: `game`, `players`, `opponent`, `games`, `wins`, seconds of playing.

        Step and progress of the newest line of `log.jsonl` are added.
        """
        line = {**self._place, "seconds": self.seconds, **numbers}
        self.curve.append(line)
        self._add(CURVE, line)
        where = variant_label(line["game"], line["players"])
        self._scalars({f"wins/{where}, {line['opponent']}": line["wins"] / line["games"]})

    def close(self) -> None:
        """Flush and close TensorBoard's writer."""
        if self._writer:
            with naming(self.folder / TENSORBOARD):
                self._writer.close()

    def _go_on_from(self, step: int, total: int) -> None:
        """Drop lines that will be written again, and set the clock to the last remaining line."""
        kept = _keep_before(self.folder / LOG, step, total)
        self.curve = _keep_before(self.folder / CURVE, step, total)
        self._steps = len(kept)
        self._begin -= kept[-1]["seconds"] if kept else 0.0

    def _add(self, name: str, line: Line) -> None:
        with naming(self.folder / name), (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _scalars(self, values: Mapping[str, float]) -> None:
        with naming(self.folder / TENSORBOARD):
            if self._writer is None:
                self._writer = SummaryWriter(str(self.folder / TENSORBOARD), purge_step=self._steps)
            for name, value in values.items():
                self._writer.add_scalar(name, value, self._steps)


def variant_label(spec: str, players: int) -> str:
    """Return a label for a variant: the number of players if the default game has no other option, else the spec."""
    return f"{players} players" if spec in (DEFAULT, f"{DEFAULT}:num_players={players}") else spec


def read_lines(path: Path) -> list[Line]:
    """Read a file of JSON lines. An incomplete last line is ignored; a missing file has no lines.

    Raises:
        OSError: if it cannot be read.
        ValueError: if a line is not a JSON object; the message names the file and the line.
    """
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1], 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise ValueError(f"{path}, line {number}: expected a JSON object, found {text[:40]!r}")
        lines.append(line)
    return lines


def _progress(step: int, total: int) -> float:
    return round(min(1.0, step / total), 6)


def _keep_before(path: Path, step: int, total: int) -> list[Line]:
    """Remove the lines from a step on; return the remaining lines.

    Their progress is recomputed, because the length of the run may have been changed.
    """
    if not path.exists():
        return []
    lines = read_lines(path)
    for number, line in enumerate(lines, 1):
        if not all(isinstance(line.get(key), (int, float)) for key in ("step", "seconds")):
            raise ValueError(f"{path}, line {number}: expected the numbers step and seconds in it")
    kept = [line | {"progress": _progress(line["step"], total)} for line in lines if line["step"] < step]
    replace_file(path, [(json.dumps(line) + "\n").encode() for line in kept])
    return kept
