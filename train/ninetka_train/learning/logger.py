"""What a run tells while it learns: lines of plain numbers in files, and the same numbers for TensorBoard."""

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

    A run that is resumed goes back to its last checkpoint, so lines from after it are dropped and the clock goes on
    from the line before.
    """

    def __init__(self, folder: Path) -> None:
        """Start the clock; nothing is touched before the first line."""
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
        """Seconds of training, those of the run before it was resumed included, those of evaluations not."""
        return round((self._stopped or time.perf_counter()) - self._begin, 3)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the clock for what is no training."""
        self._stopped = time.perf_counter()
        try:
            yield
        finally:
            self._begin += time.perf_counter() - self._stopped
            self._stopped = None

    def log(self, step: int, total: int, numbers: Mapping[str, float]) -> Line:
        """Add a line to `log.jsonl`; return it.

        Args:
            step: rounds or moves that are done.
            total: those of the whole run.
            numbers: plain ones; the seconds are added.

        Raises:
            OSError: naming the file, if it cannot be written.
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
        """Add a line to `curve.jsonl`: `game`, `players`, `opponent`, `games`, `wins`, seconds of playing.

        It belongs to the newest line of `log.jsonl`.
        """
        line = {**self._place, "seconds": self.seconds, **numbers}
        self.curve.append(line)
        self._add(CURVE, line)
        where = variant_label(line["game"], line["players"])
        self._scalars({f"wins/{where}, {line['opponent']}": line["wins"] / line["games"]})

    def close(self) -> None:
        """Write what TensorBoard's writer still holds."""
        if self._writer:
            with naming(self.folder / TENSORBOARD):
                self._writer.close()

    def _go_on_from(self, step: int, total: int) -> None:
        """Drop lines that are to be written again."""
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
    """Say which variant of a game: by its number of players alone, where that is all there is to say."""
    return f"{players} players" if spec in (DEFAULT, f"{DEFAULT}:num_players={players}") else spec


def read_lines(path: Path) -> list[Line]:
    """Read a file of JSON lines; a last one that was cut short is left out, and a missing file has none.

    Raises:
        OSError: if it cannot be read.
        ValueError: naming file and line that is no JSON object.
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
    """Keep the lines from before a step; return them.

    The progress in them is computed anew, since the run may have been made longer.
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
