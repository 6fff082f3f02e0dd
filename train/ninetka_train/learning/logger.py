"""Logs of a run: JSON lines in files, and the same numbers for TensorBoard.

Start reading at `Journal`. `ninetka_train.reporting.run_data` reads the files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from ninetka_env.core.files import path_in_errors, replace_file
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import DEFAULT_GAME

LOG_FILE, CURVE_FILE, TENSORBOARD_FOLDER = "log.jsonl", "curve.jsonl", "tensorboard"
LogEntry = dict[str, Any]
TEXT_KEYS = ("game", "opponent")
"""Keys whose values are texts; all other values are numbers."""


class Journal:
    """Writes `log.jsonl`, `curve.jsonl` and `tensorboard/` of one run.

    A resumed run continues from its last checkpoint. The lines after that checkpoint are removed, and the clock
    continues from the last remaining line.
    """

    def __init__(self, folder: Path) -> None:
        """Start the clock. Files are not touched before the first line."""
        self.folder = folder
        self.curve: list[LogEntry] = []
        self._start = time.perf_counter()
        self._paused_at: float | None = None
        self._entry_index = -1
        self._latest_step: LogEntry = {}
        """Step, progress and seconds of the newest line."""
        self._writer: SummaryWriter | None = None

    @property
    def seconds(self) -> float:
        """Seconds of training, including the time before the run was resumed, excluding evaluations."""
        return round((self._paused_at or time.perf_counter()) - self._start, 3)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Return a context manager that stops the clock."""
        self._paused_at = time.perf_counter()
        try:
            yield
        finally:
            self._start += time.perf_counter() - self._paused_at
            self._paused_at = None

    def log(self, step: int, total: int, numbers: Mapping[str, float]) -> LogEntry:
        """Add a line to `log.jsonl`; return it.

        Args:
            step: finished rounds or moves.
            total: rounds or moves of the whole run.
            numbers: the metrics; step, progress and seconds are added.

        Raises:
            OSError: if a file cannot be written; the message names the file.
        """
        if self._entry_index < 0:
            self._continue_from(step, total)
        self._entry_index += 1
        self._latest_step = {"step": step, "progress": _progress(step, total), "seconds": self.seconds}
        line = {**numbers, **self._latest_step}
        self._append(LOG_FILE, line)
        self._write_scalars({f"training/{name}": value for name, value in numbers.items()})
        return line

    def log_measurement(self, numbers: LogEntry) -> None:
        """Add a line to `curve.jsonl`: `game`, `players`, `opponent`, `games`, `wins` and `evaluation_seconds`.

        Step, progress and seconds of the newest line of `log.jsonl` are added.
        """
        line = {**self._latest_step, **numbers}
        self.curve.append(line)
        self._append(CURVE_FILE, line)
        where = variant_label(line["game"], line["players"])
        self._write_scalars({f"wins/{where}, {line['opponent']}": line["wins"] / line["games"]})

    def close(self) -> None:
        """Flush and close TensorBoard's writer."""
        if self._writer:
            with path_in_errors(self.folder / TENSORBOARD_FOLDER):
                self._writer.close()

    def _continue_from(self, step: int, total: int) -> None:
        """Remove the lines that will be written again, and set the clock to the time of the last remaining line."""
        kept = _drop_entries_from(self.folder / LOG_FILE, step, total)
        self.curve = _drop_entries_from(self.folder / CURVE_FILE, step, total)
        self._entry_index = len(kept)
        self._start -= kept[-1]["seconds"] if kept else 0.0

    def _append(self, name: str, line: LogEntry) -> None:
        with path_in_errors(self.folder / name), (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _write_scalars(self, values: Mapping[str, float]) -> None:
        with path_in_errors(self.folder / TENSORBOARD_FOLDER):
            if self._writer is None:
                self._writer = SummaryWriter(str(self.folder / TENSORBOARD_FOLDER), purge_step=self._entry_index)
            for name, value in values.items():
                self._writer.add_scalar(name, value, self._entry_index)


def variant_label(spec: str, players: int) -> str:
    """Return a label for a variant: `2 players` for the default game without other options, else the spec."""
    return f"{players} players" if spec in (DEFAULT_GAME, f"{DEFAULT_GAME}:num_players={players}") else spec


def read_json_lines(path: Path, required: Iterable[str] = ()) -> list[LogEntry]:
    """Read a log or a learning curve. A missing file has no lines.

    A last line that is incomplete is ignored, because a run may be writing it or was killed while writing.

    Args:
        path: the file.
        required: keys that each line needs.

    Raises:
        OSError: if it cannot be read.
        ValueError: if a line is not a JSON object with these keys and with numbers (texts for `TEXT_KEYS`); the message
            names the file and the line.
    """
    if not path.exists():
        return []
    lines: list[LogEntry] = []
    texts = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            if number == len(texts) and text.strip("\0")[:1] in ("", "{"):
                break
            raise ValueError(f"{path}, line {number}: expected a JSON object, found {text[:40]!r}")
        if problem := _entry_problem(line, required):
            raise ValueError(f"{path}, line {number}: {problem}")
        lines.append(line)
    return lines


def _entry_problem(line: LogEntry, required: Iterable[str]) -> str:
    """Return what is wrong with an entry of a log, or an empty text."""
    for key in required:
        if key not in line:
            return f"{key} is missing"
    for key, value in line.items():
        if not isinstance(value, str if key in TEXT_KEYS else (int, float)):
            return f"{key[:80]}={short_repr(value)}: expected a {'text' if key in TEXT_KEYS else 'number'}"
    return ""


def _progress(step: int, total: int) -> float:
    return round(min(1.0, step / total), 6)


def _drop_entries_from(path: Path, step: int, total: int) -> list[LogEntry]:
    """Remove the lines of `step` and of later steps from a file; return the remaining lines.

    The progress of the remaining lines is recomputed, because the length of the run may have changed.
    """
    if not path.exists():
        return []
    lines = read_json_lines(path, ("step", "seconds"))
    kept = [line | {"progress": _progress(line["step"], total)} for line in lines if line["step"] < step]
    replace_file(path, [(json.dumps(line) + "\n").encode() for line in kept])
    return kept
