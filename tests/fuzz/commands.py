"""Fuzz the command line: run every command with valid and invalid arguments."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import typer.main
from fuzz.inputs import random_variant
from fuzz.trials import Findings, Hang, describe_error, time_limit
from fuzz.values import damaged, random_word

from ninetka_agents.agent import make_agent
from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.core.registry import load_variant
from ninetka_train import cli
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.saved_games import game_records

LONG_CALLS = {
    "train": "ninetka_train.run._train",
    "study": "ninetka_train.ninetka.study.study",
    "rate": "ninetka_train.judging.ratings.default_pool",
    "curve": "ninetka_train.judging.curve.play_points",
    "benchmark": "ninetka_train.ninetka.benchmark.runner.run_benchmark",
    "play": "ninetka_web.server.server.serve",
    "speed": "benchmarks.run.measure",
}
"""Functions that run for minutes; the fuzzer replaces them by functions that raise `KeyboardInterrupt`."""
MATCHES = ("evaluate", "rate", "curve")
MAX_LINES, MAX_CHARACTERS = 8, 2000
"""Limits of the error output of a command, including its usage."""


def fuzz_commands(findings: Findings, count: int, seed: int, games: list[str], folder: Path) -> None:
    """Run `count` random command lines and add problems to `findings`."""
    rng = random.Random(seed)
    work = folder / "work"
    with _stop_long_calls(), contextlib.chdir(_fill_folder(work, games, rng)):
        for _ in range(count):
            command = rng.choice(list(_commands()))
            arguments = _arguments(command, rng, games)
            findings.tried[f"ninetka {command}"] += 1
            for why in _problems(arguments, work):
                findings.add(f"ninetka {command}", why, arguments)


def _commands() -> dict[str, Any]:
    return dict(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]


@contextlib.contextmanager
def _stop_long_calls() -> Iterator[None]:
    """Make the functions of `LONG_CALLS` raise `KeyboardInterrupt`."""

    def stopped(*arguments: Any, **options: Any) -> NoReturn:
        raise KeyboardInterrupt

    with contextlib.ExitStack() as stack:
        for place in LONG_CALLS.values():
            importlib.import_module(place.rpartition(".")[0])
            stack.enter_context(mock.patch(place, stopped))
        yield


def _fill_folder(work: Path, games: list[str], rng: random.Random) -> Path:
    """Fill a folder with files for arguments: valid, damaged, empty, of other formats, a folder, a broken link."""
    (work / "folder").mkdir(parents=True)
    texts = []
    for name in games:
        variant = random_variant(name, rng)
        path = work / f"{name}.txt"
        write_records(path, game_records(play_games([make_agent("random", name)], num_games=2, game=variant)))
        texts.append(path.read_text(encoding="utf-8"))
    for number in range(5):
        (work / f"damaged-{number}.txt").write_text(
            damaged(rng.choice(texts), rng, texts), errors="replace", encoding="utf-8"
        )
    (work / "empty").write_text("", encoding="utf-8")
    (work / "bytes").write_bytes(rng.randbytes(100))
    (work / "good.yaml").write_text(
        "name: run\nthreads: 1\nalphazero: {rounds: 1, games: 2, playouts: 8}\n", encoding="utf-8"
    )
    (work / "bad.yaml").write_text("seed: !!timestamp x", encoding="utf-8")
    (work / "nowhere").symlink_to(work / "missing" / "file")
    (work / os.fsdecode(b"odd \xff\n name")).write_text(texts[0], encoding="utf-8")
    return work


def _arguments(command: str, rng: random.Random, games: list[str]) -> list[str]:
    """Return the words of a random command line."""
    words = [command]
    for parameter in _commands()[command].params:
        is_argument = not parameter.opts[0].startswith("-")
        if rng.random() < (0.9 if is_argument else 0.3):
            values = [] if getattr(parameter, "is_flag", False) else [_value(parameter, command, rng, games)]
            values *= rng.choice((1, 1, 2)) if is_argument else 1
            words += values if is_argument else [rng.choice(parameter.opts), *values]
    if rng.random() < 0.1:
        words.insert(rng.randrange(len(words) + 1), random_word(rng))
    if len(words) > 1 and rng.random() < 0.05:
        words.remove(rng.choice(words))
    if command in MATCHES and not {"--games", "-g"} & {*words}:
        words += ["--games", "2"]
    return words


def _value(parameter: Any, command: str, rng: random.Random, games: list[str]) -> str:
    """Return a value for a parameter, often a valid one, so that the command gets past its checks."""
    good = {
        "agents": [
            "random",
            "mcts:simulations=2",
            "random",
            random_word(rng),
            "net:bytes",
            "net:nowhere",
            *_files(rng),
        ],
        "settings": [
            "name=run",
            "seed=3",
            f"{rng.choice(['name', 'seed', 'ppo.games', 'players'])}={random_word(rng)}",
        ],
        "agent": ["random", "maxn", "net:bytes", "mcts:seconds=1"],
        "tier": ["quick", "full"],
        "page": ["folder", ".", "nowhere", "bytes"],
        "config": ["quick", "good.yaml", "bad.yaml", "bytes"],
        "games": ["1", "2", "0", "-1", "99999999999999", str(10**18), "1e18"],
        "number": ["1", "2", "3", "0"],
        "network": ["gen-1", "net:go", "bytes", "folder"],
        "nodes": ["100", "1", "0", str(10**30)],
        "gate": ["0.5,0.6", "0.1,0.2", "0.6,0.5", "0.5"],
        "opening_plies": ["0", "1", "4", "-1", "200"],
        "seconds": ["0.001", "0.001,1", "0", "1,x"],
        "simulations": ["1,2", "4", "0", "1.5"],
        "anchor": ["random", "unknown"],
        "batch": ["1", "2", "0", str(10**30)],
        "port": ["0", "9009", "99999"],
        "checkpoint": ["gen-1", "bytes", "folder"],
        "checkpoints": ["gen-1", "gen-6", "go/gen-1", "bytes", "folder"],
        "policy_temperature": ["2", "0.5", "0", "nan"],
        "out": ["new", "folder", "folder/new", "bytes", "nowhere"],
        "json_file": ["out.json", "out.json", "folder", "nowhere"],
        "games_file": ["out.txt", "out.txt", "games.txt", "folder"],
        "players": ["2", "3", "4", "5"],
        "png": ["out.png", "folder", "nowhere"],
        "csv_file": ["out.csv", "folder", "nowhere"],
        "cluster": ["127.0.0.1:1", "head:99999", "ray://head:1", f"{random_word(rng)}:"],
    }.get(parameter.name, [])
    if parameter.name == "game":
        good = [*games, str(random_variant(rng.choice(games), rng)), str(load_variant())]
    if parameter.name in ("file", "path", "folder", "runs", "data") or parameter.name.endswith("_file"):
        good = [*good, *(path.name for path in Path().iterdir()), "missing/file", "new"]
    # `--cluster` would take a number as an address, and connecting to it may hang.
    if parameter.name != "cluster" and (not good or rng.random() < 0.2):
        good = [random_word(rng), str(rng.randrange(100)), "-1", str(10**18)]
    return rng.choice(good)


def _files(rng: random.Random) -> list[str]:
    """Return two file names for `evaluate --from`."""
    return rng.sample([path.name for path in Path().iterdir()], 2)


def _problems(arguments: list[str], work: Path) -> Iterator[str]:
    """Run a command line in this process, and yield the problems of its exit status, its output and its files."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict") for _ in range(2))
    code: Any = None
    with mock.patch.multiple(sys, argv=["ninetka", *arguments], stdout=out, stderr=err):
        try:
            with time_limit():
                cli.main()
        except SystemExit as end:
            code = end.code
        except (Exception, KeyboardInterrupt, Hang) as error:
            yield f"{type(error).__name__}: {describe_error(error)}"
            code = "?"
    err.flush()
    errors = err.buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]
    if code not in (None, 0, 1, 2, 130, "?") and not (code in (3, 4) and arguments[0] == "evaluate"):
        yield f"ended with status {code}"
    if (code == 2 and "rror" not in errors) or (code == 130 and "stopped" not in errors):
        yield f"ended with status {code} without a message: {ascii(errors)[:200]}"
    if code in (1, 2) and (len(errors.splitlines()) > MAX_LINES or len(errors) > MAX_CHARACTERS):
        yield f"prints {len(errors.splitlines())} lines, {len(errors)} characters: {errors[-120:]!a}"
    if "Traceback" in errors:
        yield f"prints a traceback: {errors[-200:]!a}"
    yield from _half_written(work)


def _half_written(work: Path) -> Iterator[str]:
    """Yield a problem for each incomplete file, and delete the files that the command wrote."""
    for path in work.rglob(".*.part"):
        yield "left a partly written file"
        path.unlink()
    for path, read in (
        (work / "out.json", lambda path: json.loads(path.read_text(encoding="utf-8"))),
        (work / "out.txt", _read),
    ):
        if path.is_file():
            try:
                read(path)
            except ValueError as error:
                yield f"wrote an incomplete file: {describe_error(error)}"
            path.unlink()


def _read(path: Path) -> None:
    for _ in read_records(path):
        pass
