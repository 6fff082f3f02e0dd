"""Tests of the disk cache of compiled code: edited sources and damaged cache files are compiled again."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import pytest
from requirements import needs_posix

import ninetka_env
from ninetka_env.core import cache, sources
from ninetka_env.core.batch import first_unplayable

pytestmark = [pytest.mark.slow, needs_posix]

HERE = Path(ninetka_env.__file__).resolve().parent.parent
CALL = """
import importlib, json, sys
results = {}
for place, arguments in json.loads(sys.argv[1]):
    module, name = place.split(":")
    function = getattr(importlib.import_module(module), name)
    answer = function(*arguments)
    hits = sum(function.stats.cache_hits.values()) if hasattr(function, "stats") else None
    results[place] = [answer, hits, hits is not None and function.stats.cache_path]
"""
PRINT_RESULTS = "\nprint(json.dumps(results))\n"


class World:
    """A temporary folder with sources and a cache, in which tests start Python processes."""

    def __init__(self, folder: Path, packages: Path = HERE) -> None:
        """Create the folders; the processes import this project from `packages`."""
        self.folder = folder
        self.packages = packages
        self.home = folder / "cache"
        self.path = [folder / "one", folder / "two"]
        for each in self.path:
            each.mkdir(parents=True, exist_ok=True)

    def write(self, sources: dict[str, str]) -> None:
        """Write source files by path; all folders below `one` and `two` become packages."""
        for name, text in sources.items():
            path = self.folder / name
            for parent in Path(name).parents[:-2]:
                (self.folder / parent).mkdir(parents=True, exist_ok=True)
                (self.folder / parent / "__init__.py").touch()
            path.write_text(text, encoding="utf-8")

    def start(self, code: str, *arguments: str, cwd: Path | None = None, **env: str | None) -> subprocess.Popen[str]:
        ours = ("NUMBA", "XDG", "PYTHON", "COV")
        whole: dict[str, Any] = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        whole["PYTHONPATH"] = os.pathsep.join(map(str, [*self.path, self.packages]))
        # With bytecode, Python itself misses an edit of the same length in the same second.
        whole |= {"XDG_CACHE_HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"} | env
        whole = {name: value for name, value in whole.items() if value is not None}
        words = [sys.executable, "-P", "-c", code, *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(words, cwd=cwd or self.folder, env=whole, **pipes)

    def call(
        self, *places: str | tuple[str, Any], before: str = "", after: str = "", warning: str = "", **options: Any
    ) -> dict[str, list[Any]]:
        """Call functions in a new process, which must succeed; return [answer, cache hits, cache path] by place.

        Args:
            places: the functions, as `"module:function"`, called with 0, or as (`"module:function"`, arguments).
            before: code that runs before the calls.
            after: code that runs after the calls.
            warning: a part of the only line that the process prints to stderr; empty if it prints nothing there.
            options: options of `start`.
        """
        calls = json.dumps([(place, [0]) if isinstance(place, str) else place for place in places])
        return json_output(self.start(before + CALL + after + PRINT_RESULTS, calls, **options), warning)

    def files(self, name: str = "") -> list[Path]:
        return sorted(path for path in self.home.rglob("*.code") if name in path.name)


def json_output(process: subprocess.Popen[str], warning: str = "") -> Any:
    """Wait for a process, check that it succeeded, and return the JSON in the last line that it printed."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert (warning in errors and errors.count("\n") == 1) if warning else not errors
    return json.loads(out.splitlines()[-1])


def answers(results: dict[str, list[Any]]) -> list[Any]:
    return [answer for answer, _, _ in results.values()]


def hits(results: dict[str, list[Any]]) -> list[int]:
    return [count for _, count, _ in results.values()]


def source(name: str, value: str, above: str = "") -> str:
    return f"from ninetka_env.core.jit import jit\n{above}\n\n@jit\ndef {name}(x):\n    return {value}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


SIZES = """
import json, sys
from ninetka_env import go_v0

def first_turn(size):
    game = go_v0.Game.new(komi=0.5, size=size)
    return [game.is_over, len(game.legal_actions())]

print(json.dumps([first_turn(size) for size in json.loads(sys.argv[1])]))
"""


def test_code_for_two_dtypes_from_two_processes_is_not_confused(world: World) -> None:
    """Each process numbers its types from the start, so the first dtypes of two processes once had the same symbols."""
    for size in (7, 9):
        assert json_output(world.start(SIZES, json.dumps([size]))) == [[False, size * size + 1]]
    for sizes in ([7, 9], [9, 7]):
        assert json_output(world.start(SIZES, json.dumps(sizes))) == [[False, size * size + 1] for size in sizes]


# Edits of sources

CALLER = """
'''A docstring with lines that begin like imports:
import ... and so on
from, import ., import , from
'''
import app.plugged
import middle, \\
    numpy
from app.tools.own import own
from sibling.inner.part import part
from ninetka_env.core.jit import jit
try: import plain; thousand = plain.plain
except ImportError: thousand = None
try:
    from app.extra import extra
except ImportError:
    from app.nothing import extra

def late():
    from far.away import away
    from space.open import wide

    return away, wide

hundred, wide = late()
chosen = app.plugged.chosen

@jit
def answer(x):
    return own(x) + part(x) + hundred(x) + wide(x) + thousand(x) + middle.through(x) + extra(x) + chosen(x)
"""
CHOOSE = """
import importlib, pathlib
first = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("[a-z]*.py"))[0]
chosen = getattr(importlib.import_module("app.plugged." + first), "chosen")
"""
LITERAL = "import importlib\nlast = importlib.import_module('last.of').them"
PLACES = (
    "app.deep.deeper.caller:answer",
    "app.tools.own:own",
    "sibling.inner.part:part",
    "far.away:away",
    "plain:plain",
    "middle:through",
    "last.of:them",
    "space.open:wide",
)


@pytest.mark.exhaustive
def test_an_edit_of_any_imported_source_is_seen(world: World) -> None:
    world.write(
        {
            "one/app/deep/deeper/caller.py": CALLER,
            "one/app/tools/own.py": source("own", "x + 1"),
            "one/app/nothing.py": source("extra", "x"),
            "one/app/plugged/b.py": source("chosen", "x + 1_000_000"),
            "one/app/plugged/c.py": source("chosen", "x + 2_000_000"),
            "one/app/plugged/__init__.py": CHOOSE,
            "one/sibling/inner/part.py": source("part", "x + 10"),
            "two/far/away.py": source("away", "x + 100"),
            "two/plain.py": source("plain", "x + 1_000"),
            "two/middle/__init__.py": source("through", "last(x)", LITERAL),
            "one/last/of.py": source("them", "x + 10_000"),
            "two/space/open.py": source("wide", "x + 100_000"),
        }
    )
    (world.folder / "two/space/__init__.py").unlink()
    (world.folder / "one/app/.#editing.py").symlink_to("nowhere")
    caller = PLACES[0]

    def answer_now() -> int:
        answer, found, _ = world.call(caller)[caller]
        assert found == 0
        return answer

    results = world.call(*PLACES)
    assert results[caller][0] == 1_111_111
    # Imported from another folder in another order, all code is loaded from the disk.
    again = world.call(*reversed(PLACES), cwd=Path("/"))
    assert hits(again) == len(PLACES) * [1]
    assert {place: path for place, (_, _, path) in again.items()} == {p: path for p, (_, _, path) in results.items()}
    edits = {
        "one/app/tools/own.py": 1_111_112,
        "one/sibling/inner/part.py": 1_111_122,
        "two/far/away.py": 1_111_222,
        "two/plain.py": 1_112_222,
        "one/last/of.py": 1_122_222,
        "two/space/open.py": 1_222_222,
    }
    for name, expected in edits.items():
        path = world.folder / name
        path.write_text(path.read_text(encoding="utf-8").replace("x + 1", "x + 2"), encoding="utf-8")
        assert answer_now() == expected
    plugged = world.folder / "one/app/plugged"
    (plugged / "c.py").rename(plugged / "a.py")
    assert answer_now() == 2_222_222
    world.write({"one/app/extra.py": source("extra", "x + 10_000_000")})
    assert answer_now() == 12_222_222
    (world.folder / "one/app/extra.py").unlink()
    again = world.call(*PLACES)  # the same sources as two steps before
    assert again[caller][:2] == [2_222_222, 1]
    shutil.move(world.folder / "two/far", world.folder / "one/far")
    assert world.call(caller)[caller][0] == 2_222_222


@pytest.mark.exhaustive
def test_code_edited_while_a_process_runs_is_not_cached_under_the_wrong_key(world: World) -> None:
    world.write(
        {
            "one/callee.py": source("callee", "x + 1"),
            "one/early/caller.py": source("caller", "callee(x)", "from callee import callee"),
            "one/late/caller.py": source("caller", "callee(x)", "from callee import callee"),
        }
    )
    path = world.folder / "one/callee.py"
    edit = "import pathlib; path = pathlib.Path({!r})\npath.write_text(path.read_text().replace('x + {}', 'x + {}'))\n"
    # The loaded module is older than the source that the late package finds.
    before = "import callee\n" + edit.format(str(path), 1, 2)
    results = world.call("early.caller:caller", "late.caller:caller", before=before)
    assert answers(results) == [1, 1]
    assert not world.files()
    results = world.call("early.caller:caller", "late.caller:caller")
    assert answers(results) == [2, 2]
    # `callee` is loaded after its source was hashed and edited. Then the hashed source is restored.
    world.write({"one/lazy/caller.py": source("caller", "callee(x)", "def load():\n    import callee")})
    before = (
        "import lazy.caller\n" + edit.format(str(path), 2, 3) + "import callee; lazy.caller.callee = callee.callee\n"
    )
    assert answers(world.call("lazy.caller:caller", before=before, after=edit.format(str(path), 3, 2))) == [3]
    before = "import lazy.caller, callee; lazy.caller.callee = callee.callee\n"
    assert answers(world.call("lazy.caller:caller", before=before)) == [2]
    assert hits(world.call("lazy.caller:caller", before=before)) == [1]


GENERIC = """
import numpy as np
from numba import types
from numba.extending import overload
from ninetka_env.core.cache import found_by_type
from ninetka_env.core.jit import jit

FOUND = {}

def define(dtype, function):
    FOUND[dtype] = function
    found_by_type([dtype], [function])

def value(record):
    pass

@overload(value, strict=False)
def _value(record):
    function = FOUND[record.dtype]
    return lambda record: function(record)

@jit
def total(records):
    return value(records[0])

def run(x):
    return total(np.zeros(1, list(FOUND)[x]))

run.stats = total.stats
"""
PLUGIN = """
import generic, helper
import numpy as np
from ninetka_env.core.jit import jit
mine, other = np.dtype([("mine", "i8"), ("more", "i4")]), np.dtype([("other", "i8")])

@jit
def rule(record):
    return helper.helper(record.mine)

@jit
def rest(record):
    return 7

generic.define(mine, rule)
"""


def test_an_edit_of_a_function_found_by_type_is_seen(world: World) -> None:
    world.write({"one/generic.py": GENERIC, "two/plugin.py": PLUGIN, "two/helper.py": source("helper", "x + 1")})
    call = ("generic:run", [0])
    assert world.call(call, before="import plugin\n")["generic:run"][:2] == [1, 0]
    assert world.call(call, before="import plugin\n")["generic:run"][:2] == [1, 1]
    world.write({"two/helper.py": source("helper", "x + 2")})
    assert world.call(call, before="import plugin\n")["generic:run"][:2] == [2, 0]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a, b.c as d,e", {"a", "b", "e"}),
        ("from a.b import c", {"a"}),
        ("from . import a\nfrom .b import c", set()),
        ("def f():\n\timport\ta\n", {"a"}),
        ("import a, \\\n    b", {"a", "b"}),
        ("try: import a\nexcept ImportError: pass; import b", {"a", "b"}),
        ("x = importlib.import_module('a.b'); y = __import__(\"c\")", {"a", "c"}),
        ("x = import_module(\n    'a.b',\n)\ny = __import__(\n    'c')", {"a", "c"}),
        ("import ... and\nimport .\nfrom\nimport ,\nimport 3", set()),
        ("important = 1\nx.import_a\n# import a", set()),
    ],
)
def test_imports_are_found(text: str, names: set[str]) -> None:
    assert sources._imported_names(text) == names


def test_the_standard_library_is_not_read() -> None:
    assert "test" not in sys.stdlib_module_names
    assert [sources._on_path(name) for name in ("os", "test", "antigravity")] == [[], [], []]


def test_loops_of_links_end(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").touch()
    (tmp_path / "pack/again").symlink_to(tmp_path / "pack")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file.py").touch()
    (tmp_path / "pack/linked").symlink_to(elsewhere)
    found = sources._sources(tmp_path / "pack")
    assert {tmp_path / "pack/__init__.py", tmp_path / "pack/linked/file.py"} <= set(found)


def test_the_key_reads_each_source_once_and_no_large_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise every start of a program would take longer."""
    read: list[Path] = []
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), original(path))[1])
    sources._read.cache_clear()
    sources.dependencies.cache_clear()
    for package in ("ninetka_env", "agents/ninetka_agents", "train/ninetka_train"):
        if (HERE / package).is_dir():
            sources.dependencies(HERE / package)
    assert HERE / "ninetka_env/core/sources.py" in read
    assert len(read) == len(set(read))
    large = {"numpy", "numba", "llvmlite", "torch", "scipy"}
    assert not [path for path in read if large.intersection(path.parts)]


# Damage to files


def flip(place: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[int(place * (len(content) - 1))] ^= 4
        path.write_bytes(content)

    return damage


def other_version(path: Path) -> None:
    import hashlib

    blob = path.read_bytes()[32:]
    path.write_bytes(hashlib.sha256(b"0.0" + blob).digest() + blob)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, 1000),
    "short": lambda path: os.truncate(path, 10),
    "empty": lambda path: os.truncate(path, 0),
    "random": lambda path: path.write_bytes(os.urandom(5000)),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "digest": flip(0.0),
    "code": flip(0.5),
    "end": flip(1.0),
    "folder": make_folder,
    "gone": Path.unlink,
    "loop": link_to_itself,
    "version": other_version,
    "nonsense": lambda path: path.write_bytes(cache._sealed(pickle.dumps([1, 2]))),
    "no_code": lambda path: path.write_bytes(cache._sealed(b"no pickle")),
    "unreadable": lambda path: path.chmod(0),
}


def many(names: list[str]) -> str:
    lines = [f"@jit\ndef {name}(x):\n    return x + {number}\n" for number, name in enumerate(names)]
    return "from ninetka_env.core.jit import jit\n" + "\n".join(lines)


def test_damage_costs_time_only(world: World) -> None:
    names = [*DAMAGES, "untouched"]
    world.write({"one/app/many.py": many(names)})
    places = [f"app.many:{name}" for name in names]
    assert hits(world.call(*places)) == len(names) * [0]
    for name, damage in DAMAGES.items():
        (path,) = world.files(f".{name}-")
        damage(path)
    results = world.call(*places)
    assert answers(results) == list(range(len(names)))
    found = dict(zip(names, hits(results), strict=True))
    if os.geteuid() == 0:  # root reads everything
        del found["unreadable"]
    assert [name for name, count in found.items() if count] == ["untouched"]
    results = world.call(*places)
    assert answers(results) == list(range(len(names)))
    assert hits(results) == len(names) * [1]


@pytest.mark.exhaustive
def test_damaged_content_costs_time_only(world: World) -> None:
    """The digest is correct, but numba cannot read the content."""
    world.write({"one/app/many.py": many(["f"])})
    world.call("app.many:f")
    (path,) = world.files()
    key, _ = cache._unsealed(path.read_bytes())
    path.write_bytes(cache._sealed(cache.dumps((key, pickle.dumps((1, 2))))))
    assert world.call("app.many:f")["app.many:f"][:2] == [0, 0]
    assert world.call("app.many:f")["app.many:f"][:2] == [0, 1]


@pytest.mark.exhaustive
def test_the_cache_may_be_deleted_while_a_process_runs(world: World) -> None:
    world.write({"one/app/many.py": many(["f", "g"])})
    world.call("app.many:f")
    remove = f"import shutil; shutil.rmtree({str(world.home)!r})\n"
    after = remove + "from app import many; results = [many.f(1), many.f(1.5), many.g(1)]\n"
    assert world.call("app.many:f", after=after) == [1, 1.5, 2]
    results = world.call("app.many:f", ("app.many:g", [1]))
    assert hits(results) == [0, 1]


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))\n"


@pytest.mark.exhaustive
def test_nothing_can_be_written(world: World) -> None:
    world.write({"one/app/many.py": many(["f", "g"])})
    world.home.touch()
    nowhere = "import tempfile; tempfile.tempdir = '/dev/null/x'\n"
    for before in (nowhere, "import tempfile, os; tempfile.tempdir = os.environ['XDG_CACHE_HOME']\n"):
        results = world.call(
            "app.many:f", "app.many:g", before=before, warning="NUMBA_CACHE_DIR", NUMBA_CACHE_DIR="/dev/null/y"
        )
        assert [(answer, path) for answer, _, path in results.values()] == [(0, None), (1, None)]
    world.home.unlink()
    results = world.call("app.many:f", "app.many:g", before=FULL.format(3000), warning="File too large")
    assert answers(results) == [0, 1]
    assert not [path for path in world.home.rglob("*") if path.is_file() and path.stat().st_size]
    assert hits(world.call("app.many:f", "app.many:g")) == [0, 0]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.exhaustive
def test_a_full_disk(world: World, tiny_disk: Path) -> None:
    names = list("abcdefghij")
    world.write({"one/app/many.py": many(names)})
    world.home = tiny_disk
    spare = f"import tempfile; tempfile.tempdir = {str(world.folder / 'spare')!r}\n"
    (world.folder / "spare").mkdir()
    for _ in range(3):
        results = world.call(*(f"app.many:{name}" for name in names), before=spare, warning="No space left")
        assert answers(results) == list(range(10))
    places = {path.startswith(str(tiny_disk)) for _, _, path in results.values()}
    assert places == {False} if shutil.disk_usage(tiny_disk).free == 0 else {True}
    assert sum(hits(results)) >= 2  # the entries that fitted


CONCURRENT_PROCESSES = """
import json, os, sys, time
import ninetka_env.core.jit
begin = time.perf_counter() + 0.3
for process in range(8):
    if not os.fork():
        from app.many import f, g
        time.sleep(max(0, begin - time.perf_counter()))
        values = [0, 0.0, False, 0j, (0, 0), (0, 0.0), (0.0, 0)]
        values = values[process % 7:] + values[:process % 7]
        assert all(h(x) == (x, n) for n, h in enumerate((f, g)) for x in values)
        os._exit(0)
ends = [os.wait()[1] for _ in range(8)]
print(json.dumps(ends))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_many_processes_at_once(world: World) -> None:
    lines = [f"@jit\ndef {name}(x):\n    return x, {number}\n" for number, name in enumerate("fg")]
    world.write({"one/app/many.py": "from ninetka_env.core.jit import jit\n" + "\n".join(lines)})
    for _ in range(2):
        shutil.rmtree(world.home, ignore_errors=True)
        assert json_output(world.start(CONCURRENT_PROCESSES)) == 8 * [0]
        assert not list(world.home.rglob("new-*"))
        after = "from app.many import f, g\nfor x in (0.0, False, 0j, (0, 0), (0, 0.0), (0.0, 0)): f(x), g(x)\n"
        after += "results = [sum(h.stats.cache_hits.values()) for h in (f, g)]\n"
        assert world.call("app.many:f", "app.many:g", after=after) == [7, 7]


# Location of the cache


@pytest.mark.exhaustive
def test_functions_of_other_packages_keep_numbas_cache(world: World) -> None:
    """Functions of other packages still use numba's cache; functions without a source file are not cached."""
    other = "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x\n"
    world.write({"one/app/many.py": many(["f"]), "one/other.py": other})
    mine = str(world.folder / "mine")
    check = "import numba; results['folder'] = [0, 0, numba.config.CACHE_DIR]\n"
    check += "from ninetka_env.core.jit import jit\nscope = {'jit': jit}\n"
    check += "exec('@jit\\ndef f(x): return x + 5', scope)\nf = scope['f']; results['typed'] = [f(1), 0, f.stats[0]]\n"
    results = world.call("app.many:f", "other:f", after=check)
    assert results["folder"][2] == ""
    assert results["typed"] == [6, 0, None]
    assert results["app.many:f"][2].startswith(str(world.home / "ninetka"))
    assert results["other:f"][2] == str(world.folder / "one/__pycache__")
    locators = {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    results = world.call("app.many:f", after=check, NUMBA_CACHE_DIR=mine, **locators)
    assert results["folder"][2] == mine
    assert results["app.many:f"][2].startswith(str(Path(mine) / "ninetka"))
    results = world.call("other:f", before="import app.many\n", NUMBA_CACHE_DIR=mine)
    assert results["other:f"][2].startswith(mine)
    assert "ninetka" not in results["other:f"][2].removeprefix(mine)


def test_without_the_compiler_functions_are_plain(world: World) -> None:
    world.write({"one/app/many.py": many(["f", "g"])})
    results = world.call("app.many:f", "app.many:g", NUMBA_DISABLE_JIT="1")
    assert list(results.values()) == [[0, None, False], [1, None, False]]
    assert not world.home.exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "missing",
    [
        "import numba.core.ccallback, numba.core.caching as c; del c.FunctionCache\n",
        "import numba.core.ccallback, numba.core.caching as c; c.FunctionCache = type('FunctionCache', (), {})\n",
    ],
)
def test_with_another_numba_nothing_is_cached(world: World, missing: str) -> None:
    """A new version of numba may lack undocumented names that the cache uses."""
    world.write({"one/app/many.py": many(["f"])})
    for _ in range(2):
        results = world.call("app.many:f", before=missing, warning="does not support numba")
        assert results["app.many:f"] == [0, 0, None]


@pytest.mark.parametrize("setting", [{"NUMBA_OPT": "0"}, {"NUMBA_BOUNDSCHECK": "1"}])
def test_code_with_other_settings_of_the_compiler_is_kept_separately(world: World, setting: dict[str, str]) -> None:
    world.write({"one/app/many.py": many(["f"])})
    assert [hits(world.call("app.many:f", **env)) for env in ({}, setting, {}, setting)] == [[0], [0], [1], [1]]


# Copies and read-only folders


def test_a_copy_is_valid_at_another_place_with_other_times(world: World) -> None:
    """An archive, an image layer or a second virtual environment has the same sources, but other times and paths."""
    world.write({"one/app/many.py": many(["f"])})
    assert hits(world.call("app.many:f")) == [0]
    copy = World(world.folder / "copy", world.folder / "packages")
    shutil.copytree(HERE / "ninetka_env", copy.packages / "ninetka_env")
    shutil.copytree(world.path[0], copy.path[0], dirs_exist_ok=True)
    shutil.copytree(world.home, copy.home)
    for path in [*copy.folder.rglob("*"), *copy.packages.rglob("*")]:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (found,) = copy.call("app.many:f").values()
    assert found[:2] == [0, 1]
    assert found[2].startswith(str(copy.home))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only, also for root."""
    mount = ["mount", "--bind", str(folder), str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no folder can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_read_only_cache_is_read(world: World) -> None:
    """Code that is not in the read-only cache is kept in the temporary folder."""
    world.write({"one/app/many.py": many(["f", "g"])})
    world.call("app.many:f")
    elsewhere = f"import tempfile; tempfile.tempdir = {str(world.folder)!r}\n"
    nowhere = "import tempfile; tempfile.tempdir = '/dev/null/x'\n"
    with read_only(world.home):
        assert hits(world.call("app.many:f", before=nowhere)) == [1]
        results = world.call("app.many:f", "app.many:g", before=nowhere, warning="NUMBA_CACHE_DIR")
        assert hits(results) == [1, 0]
        assert hits(world.call("app.many:f", "app.many:g", before=elsewhere)) == [1, 0]
        assert hits(world.call("app.many:f", "app.many:g", before=elsewhere)) == [1, 1]
    assert len(world.files()) == 1


def test_installed_packages_count_by_version(tmp_path: Path) -> None:
    """A package from an index has one content per version; one from a folder or a repository may have several."""
    packages = tmp_path / "site-packages"
    for name, version in (("indexed", "1.0"), ("Some.Name", "2.0"), ("local", "3.0")):
        folder, module = packages / f"{name}-{version}.dist-info", name.replace(".", "_").lower()
        folder.mkdir(parents=True)
        (packages / f"{module}.py").write_text("x = 1\n", encoding="utf-8")
        (folder / "RECORD").write_text(f"{module}.py,sha256=abc,6\n{name}/RECORD,,\n", encoding="utf-8")
    (packages / "local-3.0.dist-info/direct_url.json").touch()
    with (packages / "local-3.0.dist-info/RECORD").open("a", encoding="utf-8") as record_file:
        record_file.writelines(f"local/{number}.py,sha256=abc,6\n" for number in range(sources._MANY_SOURCES))
    (packages / "bare.py").write_text("x = 1\n", encoding="utf-8")

    def versions() -> dict[str, str]:
        sources._read.cache_clear()
        sources._metadata_folders.cache_clear()
        names = ("indexed", "some_name", "local", "bare")
        return {name: sources._installed_version(packages / f"{name}.py") for name in names}

    before = versions()
    assert (before["indexed"], before["some_name"]) == ("indexed-1.0.dist-info", "Some.Name-2.0.dist-info")
    for name in before:
        (packages / f"{name}.py").write_text("x = 2\n", encoding="utf-8")
    record = packages / "local-3.0.dist-info/RECORD"
    record.write_text(record.read_text("utf-8").replace("abc", "abd"), encoding="utf-8")
    after = versions()
    assert {name for name in before if before[name] != after[name]} == {"local", "bare"}
    (packages / "indexed-1.0.dist-info").rename(packages / "indexed-1.1.dist-info")
    assert versions()["indexed"] != after["indexed"]


@pytest.mark.exhaustive
def test_edits_of_packages_installed_from_folders_are_seen(world: World) -> None:
    """Neither version nor metadata of `middle` change when the package below it is installed again."""
    packages = world.folder / "site-packages"
    world.write({"one/game.py": source("f", "middle.g(x)", "import middle")})
    for name, text in (("middle", source("g", "below.h(x)", "import below")), ("below", source("h", "x + 1"))):
        folder = packages / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "direct_url.json").touch()
        (folder / "RECORD").write_text(f"{name}.py,sha256=abc,6\n", encoding="utf-8")
        (packages / f"{name}.py").write_text(text, encoding="utf-8")
    world.path.append(packages)
    assert [world.call("game:f")["game:f"][:2] for _ in range(2)] == [[1, 0], [1, 1]]
    (packages / "below.py").write_text(source("h", "x + 2"), encoding="utf-8")
    assert world.call("game:f")["game:f"][:2] == [2, 0]
    (packages / "middle-1.0.dist-info/RECORD").unlink()
    assert world.call("game:f")["game:f"][:2] == [2, 1]


def test_code_with_unknown_symbols_is_loaded_after_numbas_initialization(world: World) -> None:
    """The hash of text uses symbols that numba defines only when it is completely initialized."""
    world.write({"one/app/text.py": source("f", "len(str(x)) + (hash(str(x)) - hash(str(x)))")})
    assert world.call("app.text:f")["app.text:f"][:2] == [1, 0]
    assert world.call("app.text:f")["app.text:f"][:2] == [1, 1]
    loaded = "results['linalg'] = [0, int('numba.np.linalg' in sys.modules), '']\n"
    world.write({"one/app/plain.py": source("f", "x + 1")})
    world.call("app.plain:f")
    assert hits(world.call("app.plain:f", after=loaded)) == [1, 0]
    another_type = "import app.plain; results['compiled'] = [app.plain.f(1.5), 0, '']\n"
    assert answers(world.call("app.plain:f", after=another_type)) == [1, 2.5]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a source file; no cache folder is set, and the home and temporary folders are in `tmp_path`."""
    (tmp_path / "file.py").touch()
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "file.py"


def folder_of(top: Path) -> Path:
    folder = cache.cache_folders.__wrapped__(top).writable
    assert folder is not None
    return folder


def test_location_of_the_cache_folder(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_of(top).parent == tmp_path / "home/.cache/ninetka"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder_of(top).parent == tmp_path / "xdg/ninetka"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert folder_of(top).parent == tmp_path / "numba/ninetka"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "here")
    assert folder_of(top).parent == tmp_path / "here/ninetka"


@pytest.mark.parametrize("cache_folder", ["/dev/null", "/dev/null/x", "/proc/x", 5000 * "x", "file.py"])
def test_unusable_cache_folders_are_replaced_by_a_temporary_one(
    cache_folder: str, top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", cache_folder)
    assert folder_of(top).parent.parent == tmp_path
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    assert cache.cache_folders.__wrapped__(top).writable is None


def test_a_user_without_a_home(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(Path, "home", fail)
    folder = folder_of(top)
    assert folder.parent.parent == tmp_path
    assert folder.parent.stat().st_mode & 0o077 == 0


def test_temporary_folders_of_others_are_not_trusted(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert cache.cache_folders.__wrapped__(top).writable is not None
    user = os.getuid()
    shared = Path(tempfile.gettempdir()) / f"ninetka-{user + 1}"
    shared.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert cache.cache_folders.__wrapped__(top).writable is None


def test_unused_folders_of_earlier_versions_are_dropped(top: Path, tmp_path: Path) -> None:
    """Other packages keep their folders: they may come from a container image, with an old date."""
    home = tmp_path / "home/.cache/ninetka"
    old, new, other = "file-0123456789abcdef", "file-1123456789abcdef", "other-0123456789abcdef"
    for name in (old, new, other, "notes"):
        (home / name / "inside").mkdir(parents=True)
        if name != new:
            os.utime(home / name, (0, 0))
    folder = folder_of(top)
    assert {path.name for path in home.iterdir()} == {new, other, "notes", folder.name}


def test_the_setting_of_numba_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "InTreeCacheLocator")
    assert cache._Cache(first_unplayable.py_func, "").cache_path == first_unplayable.stats.cache_path
    assert numba.config.CACHE_LOCATOR_CLASSES == "InTreeCacheLocator"
