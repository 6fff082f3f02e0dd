"""Which source files can be compiled into a function, and a hash of them; `cache.py` uses it to find stale code.

Start reading at `dependencies`. The sources of a package are its own files and those of all packages that it imports,
directly or indirectly. They count by their content, so copies with other modification times have the same hash.
Packages of other projects that were installed from a package index count by their version.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import numba

_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))|\b(?:import_module|__import__)\(\s*['\"](\w+)",
    re.MULTILINE,
)
_IN_LIST = re.compile(r"(?:^|,)\s*(\w+)")
_MANY_SOURCES = 300
"""Number of source files above which an installed package is not read. Reading 300 files takes some 20 ms."""
_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_OWN_PREFIX = __name__.partition("_")[0]
"""Prefix of the names of this project's packages."""

Stamp = tuple[int, int] | None
"""Modification time and size of a file, None if there is no file. Stamps are compared only within a process."""


class _Root(NamedTuple):
    """The sources of a package or a single file; read only once per process, as modules are imported only once."""

    hash: bytes
    names: frozenset[str]
    """The top-level names that its sources import, inside functions too."""
    files: dict[Path, Stamp]


class Dependencies(NamedTuple):
    """All sources that can be compiled into a function."""

    hash: str
    """Hexadecimal; it depends on names, contents and versions, but not on locations and modification times."""
    roots: frozenset[Path]
    """The packages and files that are read completely."""


def top_of(source: Path) -> Path:
    """Return the folder of the outermost package of a source file, or the file itself if it is in no package."""
    top = source
    while (top.parent / "__init__.py").exists() and top.parent != top:
        top = top.parent
    return top


@functools.cache
def dependencies(top: Path) -> Dependencies:
    """Return `top`, `ninetka_env`, and the packages and files that they import, directly or indirectly.

    A package of another project that was installed from an index counts by its version; see `_installed_version`.
    """
    read: dict[Path, _Root] = {}
    installed: dict[Path, str] = {}
    waiting = [top, top_of(Path(__file__).absolute())]
    while waiting:
        root = waiting.pop()
        if root in read or root in installed:
            continue
        is_foreign = root != top and not root.name.startswith(_OWN_PREFIX)
        if is_foreign and _is_installed(root.parent) and (version := _installed_version(root)):
            installed[root] = version
            continue
        read[root] = _read(root)
        for name in read[root].names:
            waiting += _find(name, root.parent)
    settings = int(numba.config.OPT), numba.config.DEBUGINFO_DEFAULT, numba.config.BOUNDSCHECK or 0
    parts: list[object] = [numba.__version__, settings]
    parts += sorted((root.name, found.hash) for root, found in read.items())
    parts += sorted((root.name, version) for root, version in installed.items())
    return Dependencies(hashlib.sha256(repr(parts).encode()).hexdigest(), frozenset(read))


def source_digest(package: str) -> str:
    """Return a hexadecimal digest of all sources of an installed package; it does not depend on their location."""
    return _read(_on_path(package)[0]).hash.hex()


def is_edited(root: Path) -> bool:
    """Return whether a file of a package, or a single file, has changed since this process read it."""
    return any(_stamp(path) != stamp for path, stamp in _read(root).files.items())


def is_edited_file(source: Path, top: Path) -> bool:
    """Return whether a source file of `top` has changed since this process read `top`."""
    return _read(top).files.get(source) != _stamp(source)


# Reading sources


@functools.cache
def _read(root: Path) -> _Root:
    """Read all sources of a package or of a single file."""
    digest, names, files = hashlib.sha256(), set[str](), {}
    for source in _sources(root):
        files[source] = _stamp(source)
        try:
            content = source.read_bytes()
        except OSError:  # an editor's dangling link
            continue
        digest.update(repr((source.relative_to(root.parent).as_posix(), len(content))).encode() + content)
        names |= _imported_names(content.decode(errors="replace"))
    return _Root(digest.digest(), frozenset(names), files)


def _sources(root: Path) -> list[Path]:
    """Return all source files of a package, following links, or a single file."""
    if not root.is_dir():
        return [root]
    found, seen = [], set()
    for folder, inner, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        inner[:] = [name for name in inner if not name.startswith(("__pycache__", ".")) and real not in seen]
        seen.add(real)
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


def _imported_names(text: str) -> set[str]:
    names: set[str] = set()
    for broken in ("\\\n", "import_module(\n", "__import__(\n"):  # join the lines of one import
        text = text.replace(broken, broken.strip("\\\n") + " ")
    lines = (line for line in text.splitlines() if "import" in line)
    for one, several, called in _IMPORT.findall("\n".join(lines)):
        names |= {one, called, *_IN_LIST.findall(several)}
    return {name for name in names if name.isidentifier()}


def _find(name: str, folder: Path) -> list[Path]:
    """Return the packages and files that `import name` can load in a package or file that lies in `folder`."""
    neighbours = (folder / name, folder / f"{name}.py")
    found = [path for path in neighbours if (path if path.suffix else path / "__init__.py").exists()]
    return found + _on_path(name)


@functools.cache
def _on_path(name: str) -> list[Path]:
    """Return the sources that Python finds for a top-level name; a package can have several folders."""
    if name in sys.stdlib_module_names:
        return []
    try:
        found = importlib.util.find_spec(name)
    except Exception:  # import finders of other packages can raise anything
        return []
    if found is None:
        return []
    places = found.submodule_search_locations
    if places is None:
        places = [found.origin] if found.origin and found.origin.endswith(".py") else []
    # A few packages of the standard library, such as `test`, are not in `sys.stdlib_module_names`.
    return [path for path in (Path(place).absolute() for place in places) if path.parent != _STANDARD_LIBRARY]


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


# Installed packages


@functools.cache
def _is_installed(folder: Path) -> bool:
    """Return whether packages are installed in a folder."""
    known = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return folder in known or folder.name in ("site-packages", "dist-packages") or any(folder.glob("*.dist-info"))


def _installed_version(root: Path) -> str:
    """Return what identifies the sources of an installed package: its version if it came from a package index.

    A package that was installed from a folder, a file or a repository can change without a new version, and so can what
    it imports. The result is empty: it is read like a package that is not installed. Of large ones, which take long to
    read, the hashes count that the installer has recorded. A package without metadata counts by its content.
    """
    metadata = _metadata_folders(root.parent).get(root.stem.lower())
    if metadata is None:
        return _read(root).hash.hex()
    folder = root.parent / metadata
    if not (folder / "direct_url.json").exists():
        return metadata
    try:
        sources = [line for line in (folder / "RECORD").read_bytes().splitlines() if b".py,sha256=" in line]
    except OSError:  # some packagers leave the file out
        sources = []
    return hashlib.sha256(b"\n".join(sorted(sources))).hexdigest() if len(sources) > _MANY_SOURCES else ""


@functools.cache
def _metadata_folders(folder: Path) -> dict[str, str]:
    """Return the names of the metadata folders of installed packages, such as `numpy-2.4.6.dist-info`, by package."""
    names = (path.name for path in folder.iterdir() if path.suffix in (".dist-info", ".egg-info"))
    return {re.sub(r"[.-]", "_", name.partition("-")[0]).lower(): name for name in names}
