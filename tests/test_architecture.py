"""Rules for imports and sizes, checked on the source code.

Imports run in one direction, and heavy packages stay in the modules that need them. In each package, the code for all
games is separate from the folders of single games, which have the games' names. Each rule is one test that checks all
modules and reports all violations.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, TypeGuard

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "ninetka_env": ROOT,
    "ninetka_agents": ROOT / "agents",
    "ninetka_train": ROOT / "train",
    "ninetka_web": ROOT,
}
"""The packages and the folders that hold them."""
GAMES = sorted(path.parent.name for path in (ROOT / "ninetka_env" / "games").glob("*/definition.py"))

MODULE_ORDER = [
    {"geometry", "scratch"},
    {"regions", "repetition"},
    {"rules"},
    {"scoring", "choices", "observation", "text", "position"},
    {"definition"},
    {"game"},
    {"replay"},
    {"describe", "diagram", "picture", "render", "sgf"},
]
"""The modules in `ninetka_env.games.<game>`: no module imports from a later set. Not every game has all modules."""
GYMNASIUM_MODULES = {
    "ninetka_env.__init__",
    "ninetka_env.api.aec",
    "ninetka_env.api.conformance.environments",
    "ninetka_env.api.one_seat",
    "ninetka_env.api.one_seat_games",
    "ninetka_env.api.vector",
    "ninetka_env.gpu.vector",
} | {f"ninetka_env.{game}_v0" for game in GAMES}
"""The modules of `ninetka_env` that may import gymnasium and pettingzoo."""
AGENT_TORCH_MODULES = {
    "ninetka_agents.averaging",
    "ninetka_agents.board_network",
    "ninetka_agents.checkpoint",
    "ninetka_agents.device_inputs",
    "ninetka_agents.export",
    "ninetka_agents.go.network",
    "ninetka_agents.kropki.network",
    "ninetka_agents.net_agent",
    "ninetka_agents.ninetka.device_features",
    "ninetka_agents.ninetka.network",
    "ninetka_agents.outputs",
}
"""The modules of `ninetka_agents` that may import torch."""
TRAIN_TORCH_MODULES = {
    "ninetka_train.cluster.workers",
    "ninetka_train.learning.alphazero",
    "ninetka_train.learning.batch",
    "ninetka_train.learning.device_play",
    "ninetka_train.learning.learner",
    "ninetka_train.learning.logger",
    "ninetka_train.learning.losses",
    "ninetka_train.learning.ppo",
    "ninetka_train.learning.processes",
    "ninetka_train.learning.resume",
}
"""The modules of `ninetka_train` that may import torch."""
WEB_ORDER = ["games", "tables", "thinking", "server"]
"""The packages in `ninetka_web`: no module imports one of a later package, not even for type checking."""

NUMBA_PUBLIC = {
    "__version__",
    "config",
    "extending",
    "from_dtype",
    "get_num_threads",
    "njit",
    "prange",
    "set_num_threads",
    "typed",
    "types",
}
"""The documented names in `numba` that every module may use."""
NUMBA_PRIVATE_NAMES = {
    "_cache",
    "_can_compile",
    "_compile_for_args",
    "_compiler",
    "_nrt",
    "mangling_args",
    "no_cfunc_wrapper",
    "no_cpython_wrapper",
    "overloads",
    "targetctx",
    "targetdescr",
    "targetoptions",
    "typingctx",
}
"""Undocumented attributes and options of numba's compiled functions."""
NUMBA_INTERNALS = {
    "ninetka_env.core.cache": {
        "_cache",
        "llvmlite.binding",
        "numba.core.caching.CompileResultCacheImpl",
        "numba.core.caching.FunctionCache",
        "numba.core.caching._CacheLocator",
        "numba.core.runtime.rtsys",
        "numba.core.serialize.dumps",
    },
    "ninetka_env.core.compile_notice": {"numba.core.event"},  # documented for extensions
    "ninetka_env.core.jit": {
        "_nrt",
        "llvmlite.ir",
        "mangling_args",
        "no_cfunc_wrapper",
        "no_cpython_wrapper",
        "numba.core.cgutils",
        "numba.core.registry.CPUDispatcher",
    },
    "ninetka_env.gpu.device": {"llvmlite.ir", "numba.cuda.target.CUDATargetContext"},
    "ninetka_env.gpu.kernel_cache": {
        "numba.cuda.dispatcher.CUDACache",
        "numba.cuda.dispatcher.CUDACacheImpl",
        "targetoptions",
    },
    "ninetka_env.gpu.kernels": {"numba.cuda"},
    "ninetka_agents.device_inputs": {"numba.cuda"},
    "ninetka_agents.ninetka.device_features": {"numba.cuda"},
    "tests.gpu.cached_kernels": {"numba.cuda.codegen", "numba.cuda.dispatcher"},
    "tests.gpu.compiled": {"numba.cuda"},
    "tests.gpu.compiled_kernels": {"llvmlite.binding", "numba.cuda.cudadrv.nvvm", "numba.cuda.dispatcher"},
    "tests.gpu.test_gpu_compilation": {"numba.cuda.dispatcher.CUDACacheImpl"},
    "ninetka_agents.ninetka.solver.simd": {
        "llvmlite.ir",
        "numba.core.cgutils",
        "numba.core.typing.templates.ConcreteTemplate",
        "numba.core.typing.templates.infer_global",
        "numba.core.typing.templates.signature",
    },
    "ninetka_env.core.threads": {
        "llvmlite.ir",
        "numba.core.cgutils.get_or_insert_function",
        "numba.np.arrayobj.make_array",
    },
    "ninetka_env.core.verbs": {
        "numba.core.typing.templates.AbstractTemplate",
        "numba.core.typing.templates.infer_global",
    },
    "ninetka_env.games.go.scratch": {
        "llvmlite.ir",
        "numba.core.cgutils",
        "numba.core.typing.templates.ConcreteTemplate",
        "numba.core.typing.templates.infer_global",
        "numba.core.typing.templates.signature",
    },
    "tests.test_machines": {"llvmlite.binding", "llvmlite.ir"},
    "tests.test_cache": {"numba.core.caching", "numba.core.ccallback", "numba.np.linalg"},
    "tests.web.test_warm": {"numba.core.dispatcher"},
}
"""For each module, the undocumented parts of numba and the parts of llvmlite, numba's compiler library, that it uses.

A new version of numba may change these parts. Code in strings, which some tests run, counts as well.
"""
UNDOCUMENTED_MODULES = ("uvicorn.protocols",)
"""Undocumented modules of packages other than numba."""
PUBLIC_UNDERSCORES = {"_asdict", "_exit", "_fields", "_make", "_replace"} | {
    f"_{name}" for name in ("action_mask", "final_info", "final_obs")
}
"""Documented names with a leading underscore: of named tuples, `os`, and Gymnasium's vector environments."""
PRIVATE_INTERFACES = {
    "ninetka_agents.net_agent": {"_is_avx512_bf16_supported"},  # torch; if missing, CPUs do not use bfloat16
    # PettingZoo; environments must set and call them
    "ninetka_env.api.aec": {"_accumulate_rewards", "_cumulative_rewards", "_was_dead_step"},
    "ninetka_env.api.conformance.environments": {"_cumulative_rewards"},
    # numba
    "ninetka_env.core.cache": {"_cache_path", "_impl", "_load_overload", "numba.core.caching._CacheLocator"},
    "ninetka_env.games.go.scratch": {"_getvalue"},
    "ninetka_env.gpu.device": {"_getvalue"},
    "ninetka_web.server.connections": {  # uvicorn; if missing, `ninetka play` fails at start
        "uvicorn.protocols.http.auto.AutoHTTPProtocol",
        "uvicorn.protocols.websockets.websockets_sansio_impl.WebSocketsSansIOProtocol",
    },
}
"""For each module, the private parts of other packages that it uses, except those in `NUMBA_INTERNALS`.

Use public parts instead wherever possible. All tests have passed with two versions of each such package: the lowest, in
`pyproject.toml`, and the newest, in `constraints.txt`. Update both files when you extend the list.
"""
PRIVATE_PACKAGES = ("numba", "numba-cuda", "pettingzoo", "torch", "uvicorn")
MODES = {mode + kind for mode in ("r", "w", "a", "x", "r+", "w+", "a+") for kind in ("", "b", "t")}
"""All modes of `open`."""

MAX_BODY_LINES = 50
MAX_MEDIAN_LINES = 10
MAX_FILE_LINES = 500


# Reading the source code


def sources(folder: Path, root: Path) -> dict[str, Path]:
    """Return the Python files in a folder by module name: `{"ninetka_env.core.jit": path, ..}`."""
    return {".".join(path.relative_to(root).with_suffix("").parts): path for path in sorted(folder.rglob("*.py"))}


MODULES = {name: path for package, root in PACKAGES.items() for name, path in sources(root / package, root).items()}
TESTS = sources(ROOT / "tests", ROOT)
SOURCES = MODULES | TESTS

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Literal["module", "function", "types"]


@functools.cache
def text_of(name: str) -> str:
    return SOURCES[name].read_text("utf-8")


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(text_of(name), name)


def dotted_name(node: ast.expr) -> str:
    """Return the text of an expression like `a.b.c`, or an empty string for other expressions."""
    if isinstance(node, ast.Attribute):
        start = dotted_name(node.value)
        return start and f"{start}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_type_block(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and dotted_name(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imported_names(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Return the dotted names in an import statement; `from a import b` gives `a` and `a.b`."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    assert node.level == 0, "relative import"
    return {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}


def scoped_imports(node: ast.AST, scope: Scope = "module") -> Iterator[tuple[Scope, str]]:
    """Yield (scope, name) for each import in a syntax tree; the scope "types" is for type checking only."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((scope, name) for name in imported_names(node))
    inner: Scope = "function" if scope == "module" and isinstance(node, Function) else scope
    type_block = node.body if is_type_block(node) else []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # expressions contain no imports
            yield from scoped_imports(child, "types" if child in type_block else inner)


class Imports(NamedTuple):
    """The names that a module imports."""

    at_load: frozenset[str]
    at_run_time: frozenset[str]
    """The imports at load and in functions."""
    for_types: frozenset[str]
    """The imports under `if TYPE_CHECKING:`."""


def imports_in(tree: ast.AST) -> Imports:
    found: dict[Scope, set[str]] = {"module": set(), "function": set(), "types": set()}
    for scope, name in scoped_imports(tree):
        found[scope].add(name)
    at_run_time = found["module"] | found["function"]
    return Imports(frozenset(found["module"]), frozenset(at_run_time), frozenset(found["types"]))


@functools.cache
def imports_of(name: str) -> Imports:
    return imports_in(tree_of(name))


def runtime_imports(name: str) -> frozenset[str]:
    return imports_of(name).at_run_time


def with_parents(name: str) -> set[str]:
    """Return the project's modules that importing a dotted name runs: the module itself and its parent packages."""
    parts = name.split(".")
    packages = {".".join([*parts[:end], "__init__"]) for end in range(1, len(parts) + 1)}
    return (packages | {name}) & MODULES.keys()


@functools.cache
def loaded_modules(name: str) -> frozenset[str]:
    """Return the project's modules that importing a module loads, including the module itself."""
    found, waiting = set[str](), [name]
    while waiting:
        new = with_parents(waiting.pop()) - found
        found |= new
        waiting += {imported for module in new for imported in imports_of(module).at_load}
    return frozenset(found)


def loaded_imports(name: str, *packages: str) -> set[str]:
    """Return the imports of `packages` that loading a module runs: `{"torch in ninetka_agents.outputs", ..}`."""
    loaded = {module: inside(imports_of(module).at_load, *packages) for module in loaded_modules(name)}
    return {f"{imported} in {module}" for module, names in loaded.items() for imported in names}


def inside(names: Iterable[str], *packages: str) -> set[str]:
    """Return the dotted names that are one of the packages, such as `"ninetka_env.core"`, or are in one of them."""
    prefixes = tuple(f"{package}." for package in packages)
    return {name for name in names if f"{name}.".startswith(prefixes)}


def outside(names: Iterable[str], *packages: str) -> set[str]:
    """Return the dotted names that are neither one of the packages nor in one of them."""
    return set(names) - inside(names, *packages)


def modules_in(*packages: str) -> list[str]:
    return sorted(inside(MODULES, *packages))


def game_packages(games: Iterable[str]) -> list[str]:
    """Return the packages and modules of these games."""
    parents = ("ninetka_env.games", "ninetka_agents", "ninetka_train", "ninetka_web.games")
    return [f"{parent}.{game}" for game in games for parent in parents]


def shared_modules(package: str) -> list[str]:
    """Return the modules of a package that belong to no single game."""
    return sorted(set(modules_in(package)) - set(modules_in(*game_packages(GAMES))))


def assert_none(violations: Mapping[str, Iterable[str]]) -> None:
    """Fail if a module violates a rule, and name all violations.

    Args:
        violations: for each module that was checked, what violates the rule.
    """
    __tracebackhide__ = True
    assert violations, "no module was checked"
    found = {name: ", ".join(sorted(each)) for name, each in sorted(violations.items())}
    lines = [f"  {name}: {text}" for name, text in found.items() if text]
    if lines:
        pytest.fail("\n".join(["violations:", *lines]))


def differences(found: Mapping[str, set[str]], listed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return, for each module, names that were found but not listed, and names that were listed but not found."""
    changes = {}
    for name in found.keys() | listed.keys():
        old, new = listed.get(name, set()), found.get(name, set())
        changes[name] = (new - old) | {f"{each} (not any more, so remove it from the list)" for each in old - new}
    return changes


def test_the_parser_finds_every_kind_of_import() -> None:
    source = "import a.b\nfrom c import d\nif X:\n    import e\ndef f():\n    import g\nclass C:\n    import h\n"
    source += "if TYPE_CHECKING:\n    import i\nelse:\n    import n\nasync def j():\n    from k.l import m\n"
    source += "try:\n    import o\nexcept ImportError:\n    import p\n"
    at_load = {"a.b", "c", "c.d", "e", "h", "n", "o", "p"}
    found = imports_in(ast.parse(source))
    assert found.at_load == at_load
    assert found.at_run_time == at_load | {"g", "k.l", "k.l.m"}
    assert found.for_types == {"i"}


def test_the_sources_are_found() -> None:
    example = "ninetka_env.games.ninetka"
    assert "ninetka" in GAMES
    for game in GAMES:
        found = {name.rpartition(".")[2] for name in modules_in(f"ninetka_env.games.{game}")}
        assert {"__init__", "geometry", "rules", "game"} <= found <= {"__init__"}.union(*MODULE_ORDER), game
    loaded = loaded_modules(f"{example}.game")
    assert loaded >= {f"{example}.{name}" for name in ("game", "rules", "geometry", "__init__")}
    assert loaded >= {"ninetka_env.core.registry", "ninetka_env.__init__"}
    assert "ninetka_agents.search.uct" in shared_modules("ninetka_agents")
    assert not inside(shared_modules("ninetka_agents"), "ninetka_agents.ninetka")


def test_the_modules_that_the_rules_name_exist() -> None:
    named = GYMNASIUM_MODULES | AGENT_TORCH_MODULES | TRAIN_TORCH_MODULES
    named |= {"ninetka_env.core.drawing", "ninetka_web.commands"}
    named |= {f"ninetka_train.{name}" for name in ("__main__", "cli", "run")}
    named |= {f"ninetka_train.{name}.__init__" for name in ("cluster", "judging", "learning", "reporting")}
    named |= {f"ninetka_env.{name}.__init__" for name in ("api", "core", "games")}
    assert sorted(named - MODULES.keys()) == []


# The environment: `core` is imported by the games and by `api`


def test_core_imports_only_core() -> None:
    imported = {name: inside(runtime_imports(name), *PACKAGES) for name in modules_in("ninetka_env.core")}
    assert_none({name: outside(names, "ninetka_env.core") - {"ninetka_env"} for name, names in imported.items()})


def test_the_api_imports_no_game() -> None:
    assert_none({name: inside(runtime_imports(name), "ninetka_env.games") for name in modules_in("ninetka_env.api")})


def test_a_game_imports_only_core_and_itself() -> None:
    violations = {}
    for game in GAMES:
        allowed = ["ninetka_env.core", f"ninetka_env.games.{game}"]
        for name in modules_in(f"ninetka_env.games.{game}"):
            imported = inside(runtime_imports(name), "ninetka_env")
            violations[name] = outside(imported, *allowed) - {"ninetka_env.games"}
    assert_none(violations)


def test_the_environment_imports_no_other_package_of_the_project() -> None:
    others = PACKAGES.keys() - {"ninetka_env"}
    assert_none({name: inside(runtime_imports(name), *others) for name in modules_in("ninetka_env")})


def test_the_environment_imports_no_heavy_package() -> None:
    heavy = ("torch", "scipy", "matplotlib", "numba.cuda")
    modules = set(modules_in("ninetka_env")) - set(modules_in("ninetka_env.gpu"))
    assert_none({name: inside(runtime_imports(name), *heavy) for name in modules})
    assert_none({name: inside(imports_of(name).at_load, "ninetka_env.gpu") for name in modules})


def test_games_on_a_gpu_import_no_game() -> None:
    assert_none({name: inside(runtime_imports(name), "ninetka_env.games") for name in modules_in("ninetka_env.gpu")})


def test_only_the_interfaces_of_the_environment_import_gymnasium_and_pettingzoo() -> None:
    modules = set(modules_in("ninetka_env")) - GYMNASIUM_MODULES
    assert_none({name: inside(runtime_imports(name), "gymnasium", "pettingzoo") for name in modules})


def test_only_the_drawing_module_imports_pygame_and_only_in_functions() -> None:
    violations = {name: inside(runtime_imports(name), "pygame") for name in modules_in("ninetka_env")}
    violations["ninetka_env.core.drawing"] = inside(imports_of("ninetka_env.core.drawing").at_load, "pygame")
    assert_none(violations)


def test_the_modules_of_a_game_import_in_order() -> None:
    violations = {}
    for game in GAMES:
        ranks = {f"ninetka_env.games.{game}.{n}": rank for rank, names in enumerate(MODULE_ORDER) for n in names}
        for name in ranks.keys() & MODULES.keys():
            later = {other for other in ranks if ranks[other] > ranks[name]}
            violations[name] = later & (loaded_modules(name) | runtime_imports(name))
    assert_none(violations)


# Agents


def test_agents_import_neither_training_nor_the_web_app() -> None:
    others = ("ninetka_train", "ninetka_web")
    assert_none({name: inside(runtime_imports(name), *others) for name in modules_in("ninetka_agents")})


def test_only_networks_among_the_agents_import_torch() -> None:
    modules = set(modules_in("ninetka_agents")) - AGENT_TORCH_MODULES
    assert_none({name: inside(runtime_imports(name), "torch") for name in modules})


def test_only_networks_among_the_agents_load_torch() -> None:
    modules = set(modules_in("ninetka_agents")) - AGENT_TORCH_MODULES
    assert_none({name: loaded_imports(name, "torch") for name in modules})


def test_only_the_adapter_imports_stable_baselines3_and_no_module_imports_the_adapter() -> None:
    adapter = "ninetka_agents.sb3"
    assert_none({name: inside(runtime_imports(name), "stable_baselines3") for name in MODULES.keys() - {adapter}})
    assert_none({name: inside(runtime_imports(name), adapter) for name in MODULES})


def test_agents_for_all_games_import_no_game() -> None:
    games = game_packages(GAMES)
    assert_none({name: inside(runtime_imports(name), *games) for name in shared_modules("ninetka_agents")})


def test_the_modules_of_a_game_import_no_other_game() -> None:
    violations = {}
    for game in GAMES:
        others = game_packages(set(GAMES) - {game})
        for name in modules_in(*game_packages([game])):
            violations[name] = inside(runtime_imports(name), *others)
    assert_none(violations)


# Training: `reporting` and `cluster` may import `learning`, and all of them may import `judging`


def test_judging_imports_neither_learning_nor_reporting() -> None:
    others = ("ninetka_train.learning", "ninetka_train.reporting")
    assert_none({name: inside(runtime_imports(name), *others) for name in modules_in("ninetka_train.judging")})


def test_learning_does_not_import_reporting() -> None:
    modules = modules_in("ninetka_train.learning")
    assert_none({name: inside(runtime_imports(name), "ninetka_train.reporting") for name in modules})


def test_learning_imports_no_game() -> None:
    modules = [*modules_in("ninetka_train.learning"), "ninetka_train.run"]
    assert_none({name: inside(runtime_imports(name), *game_packages(GAMES)) for name in modules})


def test_only_the_cluster_package_imports_ray() -> None:
    modules = outside(modules_in("ninetka_train"), "ninetka_train.cluster")
    assert_none({name: inside(runtime_imports(name), "ray") for name in modules})


def test_only_commands_import_the_cluster_package() -> None:
    commands = ("ninetka_train.cli", "ninetka_train.commands.matches", "ninetka_train.commands.training")
    modules = outside(modules_in("ninetka_train"), "ninetka_train.cluster", *commands)
    assert_none({name: inside(runtime_imports(name), "ninetka_train.cluster") for name in modules})


def test_the_cluster_package_imports_neither_reporting_nor_the_training_run() -> None:
    others = ("ninetka_train.reporting", "ninetka_train.run")
    assert_none({name: inside(runtime_imports(name), *others) for name in modules_in("ninetka_train.cluster")})


def test_only_the_cli_imports_the_web_app_and_only_its_commands() -> None:
    violations = {name: inside(runtime_imports(name), "ninetka_web") for name in modules_in("ninetka_train")}
    violations["ninetka_train.cli"] -= {"ninetka_web", "ninetka_web.commands"}
    assert_none(violations)


def test_only_learning_and_workers_import_torch() -> None:
    modules = set(modules_in("ninetka_train")) - TRAIN_TORCH_MODULES
    assert_none({name: inside(runtime_imports(name), "torch") for name in modules})


def test_workers_load_without_numba() -> None:
    """Workers must set the number of threads before they load numba."""
    assert_none({"ninetka_train.cluster.workers": loaded_imports("ninetka_train.cluster.workers", "numba", "torch")})


def test_advantages_load_without_heavy_packages() -> None:
    """Learners that use other libraries than torch need them, too."""
    name = "ninetka_train.learning.advantages"
    assert_none({name: loaded_imports(name, "numba", "torch")})


def test_nothing_but_main_imports_the_cli() -> None:
    modules = set(modules_in("ninetka_train")) - {"ninetka_train.__main__"}
    assert_none({name: inside(runtime_imports(name), "ninetka_train.cli") for name in modules})


def test_the_cli_starts_without_heavy_packages() -> None:
    heavy = ("fastapi", "uvicorn", "pydantic", "numba", "torch", "ray")
    assert_none({"ninetka_train.cli": loaded_imports("ninetka_train.cli", *heavy)})


# The web app


def test_the_web_app_does_not_import_training() -> None:
    assert_none({name: inside(runtime_imports(name), "ninetka_train") for name in modules_in("ninetka_web")})


def test_the_web_app_starts_without_torch() -> None:
    assert_none({name: loaded_imports(name, "torch") for name in modules_in("ninetka_web")})


def test_the_web_app_imports_games_only_in_their_adapters() -> None:
    modules = shared_modules("ninetka_web")
    assert_none({name: inside(runtime_imports(name), *game_packages(GAMES)) for name in modules})


def test_the_packages_of_the_web_app_import_in_order() -> None:
    for place, package in enumerate(WEB_ORDER, 1):
        later = [f"ninetka_web.{other}" for other in WEB_ORDER[place:]]
        modules = modules_in(f"ninetka_web.{package}")
        imports = {name: imports_of(name).at_run_time | imports_of(name).for_types for name in modules}
        assert_none({name: inside(imported, *later) for name, imported in imports.items()})


# No import cycles


Graph = Mapping[str, set[str]]


def dependencies(name: str, imports: Iterable[str]) -> set[str]:
    """Return the project's modules that run when the module `name` executes `imports`.

    Parent packages of `name` start to run earlier. They are left out, except a package that is imported itself:
    `from a import b` imports `a` itself only if `b` is not a module.
    """
    modules = {imported: module_called(imported) for imported in imports if module_called(imported)}
    with_submodule = {imported.rpartition(".")[0] for imported in modules}
    with_attribute = {imported.rpartition(".")[0] for imported in set(imports) - modules.keys()}
    found = {modules[each] for each in modules.keys() - (with_submodule - with_attribute)}
    return found.union(*(with_parents(imported) - with_parents(name) for imported in modules))


def module_called(name: str) -> str:
    """Return the module with a dotted name; for a package, its `__init__`; an empty string if there is none."""
    return next((module for module in (name, f"{name}.__init__") if module in MODULES), "")


def import_cycles(graph: Graph) -> set[frozenset[str]]:
    """Return the strongly connected components of a graph that have a cycle."""
    reached = {node: reachable(graph, node) for node in graph}
    members = {node: frozenset(other for other in reached[node] if node in reached[other]) for node in graph}
    return {component for component in members.values() if component}


def reachable(graph: Graph, start: str) -> set[str]:
    """Return the nodes that can be reached from a node by at least one step."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += graph[node]
    return found


def test_cycles_are_strongly_connected_components() -> None:
    # a cycle of three with a chord, a cycle of two reachable from it, a loop, and nodes that are in no cycle
    edges = {"a": "bc", "b": "c", "c": "ad", "d": "e", "e": "f", "f": "e", "g": "g", "h": "ag"}
    graph = {node: set(others) for node, others in edges.items()}
    assert import_cycles(graph) == {frozenset("abc"), frozenset("ef"), frozenset("g")}


def test_a_module_depends_on_the_parent_packages_of_its_imports() -> None:
    package = "ninetka_env.api.conformance"
    assert dependencies(f"{package}.rules", {package, f"{package}.case"}) == {f"{package}.case"}
    assert dependencies(f"{package}.rules", {package, f"{package}.check"}) == {f"{package}.__init__"}
    assert dependencies(f"{package}.rules", {package}) == {f"{package}.__init__"}
    outside = {f"{package}.case", f"{package}.__init__", "ninetka_env.api.__init__"}
    assert dependencies("ninetka_env.core.jit", {f"{package}.case"}) == outside


def test_imports_have_no_cycle() -> None:
    every = {name: imports_of(name).at_run_time | imports_of(name).for_types for name in MODULES}
    found = import_cycles({name: dependencies(name, imports) for name, imports in every.items()})
    assert_none({"import cycles, including imports for type checking": map(cycle_name, found)})


def cycle_name(cycle: Iterable[str]) -> str:
    return " <-> ".join(sorted(cycle))


def annotation_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                yield from ast.walk(part)


def bound_by_imports(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the variables that the import statements among the nodes assign."""
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    return [alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names]


def misused_type_imports(tree: ast.AST) -> set[str]:
    """Return the names that are imported only for type checking, but used outside annotations."""
    nodes = list(ast.walk(tree))
    statements = [statement for block in nodes if is_type_block(block) for statement in block.body]
    for_types = bound_by_imports(node for statement in statements for node in ast.walk(statement))
    every = bound_by_imports(nodes)  # a function may import the same name at run time
    only_for_types = {name for name in for_types if every.count(name) == for_types.count(name)}
    annotations = set(map(id, annotation_nodes(tree)))
    used = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in annotations]
    return {node.id for node in used if node.id in only_for_types}


def test_names_imported_for_type_checking_are_used_only_in_annotations() -> None:
    modules = [name for name in MODULES if imports_of(name).for_types]
    assert_none({name: misused_type_imports(tree_of(name)) for name in modules})


# What an import loads


LIST_HEAVY_PACKAGES = "import sys, {}; print(*sorted(set(sys.modules) & {}))"


def heavy_packages_after_import(module: str) -> str:
    """Import a module in a new process and return the heavy packages that it loads, or the error."""
    heavy = {"torch", "scipy", "pygame", "matplotlib", "numba"}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", LIST_HEAVY_PACKAGES.format(module, heavy)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return f"status {done.returncode}: {done.stderr}" if done.returncode else done.stdout.strip()


def test_importing_the_environment_loads_no_heavy_package() -> None:
    expected = {"ninetka_env": "", **{f"ninetka_env.{game}_v0": "numba scipy" for game in GAMES}}  # numba loads scipy
    with ThreadPoolExecutor() as pool:
        loaded = dict(zip(expected, pool.map(heavy_packages_after_import, expected), strict=True))
    assert_none({module: {loaded[module] or "nothing"} - {expected[module] or "nothing"} for module in expected})


# numba's internals


def dotted_names_used(node: ast.AST) -> set[str]:
    """Return the dotted names that a node imports, uses, or has in a string."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return imported_names(node)
    if isinstance(node, ast.Attribute):
        return {dotted_name(node)}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return set(re.findall(r"\b(?:numba|llvmlite)(?:\.\w+)+", node.value))
    return set()


def numba_aliases(node: ast.AST) -> set[str]:
    """Return the alias under which a node imports numba; an alias would hide uses of numba."""
    aliases = node.names if isinstance(node, ast.Import) else []
    return {alias.asname for alias in aliases if alias.name == "numba" and alias.asname}


def private_names_used(node: ast.AST) -> set[str]:
    """Return the `NUMBA_PRIVATE_NAMES` that a node uses as an attribute (not of `self`), a keyword or a string."""
    name: object = None
    if isinstance(node, ast.Attribute) and dotted_name(node.value) != "self":
        name = node.attr
    elif isinstance(node, ast.keyword):
        name = node.arg
    elif isinstance(node, ast.Constant):
        name = node.value
    return {name} & NUMBA_PRIVATE_NAMES if isinstance(name, str) else set()


def numba_internals(tree: ast.AST) -> set[str]:
    """Return the undocumented parts of numba, and the parts of llvmlite, that a module uses."""
    nodes = list(ast.walk(tree))
    names = {name for node in nodes for name in dotted_names_used(node)}
    internal = {name for name in inside(names, "numba") if "." in name and name.split(".")[1] not in NUMBA_PUBLIC}
    internal |= {name for name in inside(names, "llvmlite") if "." in name}
    internal |= {f"numba as {name}" for node in nodes for name in numba_aliases(node)}
    longest = {name for name in internal if inside(internal, name) == {name}}
    return longest | {name for node in nodes for name in private_names_used(node)}


def test_numba_internals_are_found() -> None:
    source = "import numba\nimport numba.np.ufunc\nfrom numba.core import cgutils\nfrom numba.extending import models\n"
    source += "numba.njit(_nrt=False)\nnumba.config.THREADS\nnumba.core.caching.dump()\nnumba.types.int64\n"
    source += "f._cache = 1\nself._cache = 1\nself.targetctx\nhasattr(f, 'overloads')\n"
    source += "run('import numba.misc.x; numba.njit')\n"
    found = {"numba.core.cgutils", "numba.np.ufunc", "numba.core.caching.dump", "numba.misc.x"}
    assert numba_internals(ast.parse(source)) == found | {"_nrt", "_cache", "overloads"}
    assert numba_internals(ast.parse("import numba as nb")) == {"numba as nb"}


def test_only_the_listed_modules_use_numba_internals() -> None:
    own_name = ".".join(Path(__file__).relative_to(ROOT).with_suffix("").parts)  # this file contains the names
    words = re.compile("|".join(["numba", "llvmlite", *NUMBA_PRIVATE_NAMES]))
    names = {name for name in SOURCES if name != own_name and words.search(text_of(name))}  # the others need no parsing
    found = {name: numba_internals(tree_of(name)) for name in names}
    assert_none(differences(found, NUMBA_INTERNALS))


# Private interfaces of other packages


def defined_names(tree: ast.AST) -> set[str]:
    """Return all names that a module defines or assigns, attributes included."""
    nodes = list(ast.walk(tree))
    names = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return names | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


ATTRIBUTE_FUNCTIONS = ("attrgetter", "delattr", "getattr", "hasattr", "setattr")
"""Functions that take the name of an attribute."""


def private_names_of_other_packages(tree: ast.AST, own: set[str]) -> set[str]:
    """Return the private names of other packages that a module uses.

    Args:
        tree: syntax tree of the module.
        own: names that modules of the project define.
    """
    imported = {name for _, name in scoped_imports(tree)}
    modules = {name for name in imported if name not in SOURCES and re.search(r"\._(?!_)", name)}
    modules |= inside(imported, *UNDOCUMENTED_MODULES)
    texts = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    attribute_calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and dotted_name(node.func) in ATTRIBUTE_FUNCTIONS
    ]
    constants = [argument for node in attribute_calls for argument in node.args if isinstance(argument, ast.Constant)]
    texts |= {node.value for node in constants if isinstance(node.value, str)}
    private = {text.rpartition(".")[2] for text in texts if re.fullmatch(r"(\w+\.)*_[a-z]\w*", text)}
    longest = {name for name in modules if inside(modules, name) == {name}}
    return longest | (private - own - PUBLIC_UNDERSCORES - NUMBA_PRIVATE_NAMES)


def test_private_names_of_other_packages_are_found() -> None:
    source = "from torch._inductor import config\nimport uvicorn.protocols.http\nfrom uvicorn import Config\n"
    source += "env._hidden\nself._own = 1\nself._own\nrow._replace(x=1)\nattrgetter('env._paid')\nos._exit(1)\n"
    tree = ast.parse(source)
    found = {"torch._inductor.config", "uvicorn.protocols.http", "_hidden", "_paid"}
    assert private_names_of_other_packages(tree, defined_names(tree)) == found


def test_only_the_listed_modules_use_private_interfaces() -> None:
    own = {name for module in MODULES for name in defined_names(tree_of(module))}
    own -= {name for names in PRIVATE_INTERFACES.values() for name in names}
    found = {module: private_names_of_other_packages(tree_of(module), own) for module in MODULES}
    assert_none(differences(found, PRIVATE_INTERFACES))


def test_packages_whose_private_parts_are_used_have_a_minimum_and_a_pinned_version() -> None:
    ranges, pins = ((ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "constraints.txt"))
    for package in PRIVATE_PACKAGES:
        assert re.search(rf'"{package}(\[\w+\])?>=[\d.]+"', ranges), package
        assert re.search(rf"^{package}==[\d.]+$", pins, re.M), package


# Differences between systems


def unportable_calls(tree: ast.AST) -> set[str]:
    """Return calls that depend on the system: opening text files without an encoding, and `time.monotonic`."""
    found = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = dotted_name(call.func).rpartition(".")[2]
        given = {keyword.arg for keyword in call.keywords}
        mode = next((one.value for one in call.args if isinstance(one, ast.Constant) and one.value in MODES), "")
        is_opening = name in ("open", "fdopen") and (mode or isinstance(call.func, ast.Name))
        is_text = (name == "read_text" and not call.args) or (name == "write_text" and len(call.args) == 1)
        if "encoding" not in given and (is_text or (is_opening and "b" not in mode)):
            found.add(f"line {call.lineno}: {name} without an encoding")
    clocks = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "monotonic"]
    found |= {f"line {node.lineno}: time.monotonic ticks every 16 ms on Windows: time.perf_counter" for node in clocks}
    found |= {name for _, name in scoped_imports(tree) if name == "time.monotonic"}
    return found


def test_unportable_calls_are_found() -> None:
    source = "a.read_text()\nb.write_text(x)\nopen(c, 'w')\nd.open('r')\nopen(e)\nnow = time.monotonic\n"
    fine = "a.read_text('ascii')\nb.write_text(x, encoding='utf-8')\nopen(c, 'rb')\nhub.open()\ntime.perf_counter()\n"
    assert len(unportable_calls(ast.parse(source))) == 6
    assert unportable_calls(ast.parse(fine)) == set()


def test_text_files_have_an_encoding_and_clocks_are_precise() -> None:
    assert_none({name: unportable_calls(tree_of(name)) for name in SOURCES if "tests.test_architecture" not in name})


# Short functions, short files, imports at the top


def functions_in(name: str) -> list[Function]:
    """Return all functions of a module, including those in classes and in other functions."""
    return [node for node in ast.walk(tree_of(name)) if isinstance(node, Function)]


def function_lines(function: Function) -> int:
    """Count the lines of a function without its decorators."""
    return int(function.end_lineno or 0) - function.lineno + 1


def body_lines(function: Function) -> int:
    """Count the lines of a function from its first statement after the docstring to its end."""
    body = function.body[ast.get_docstring(function, clean=False) is not None :]
    if not body:
        return 0
    decorators: list[ast.expr] = getattr(body[0], "decorator_list", [])
    start = min([body[0].lineno, *(decorator.lineno for decorator in decorators)])
    return int(function.end_lineno or 0) - start + 1


def test_the_body_of_a_function_is_measured() -> None:
    source = '@decorator\ndef f(\n    a,\n):\n    """Say.\n\n    More.\n    """\n\n    @other\n    def g():\n'
    source += "        # Comment.\n\n        return [\n            1\n        ]\n\n    return g\n"
    outer, inner = (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))
    assert (body_lines(outer), body_lines(inner), function_lines(outer), function_lines(inner)) == (9, 3, 17, 6)
    (empty,) = ast.parse('def f():\n    """Say."""\n').body
    assert isinstance(empty, ast.FunctionDef)
    assert body_lines(empty) == 0


def test_the_bodies_of_functions_are_short() -> None:
    long = {}
    for name in MODULES:
        lengths = [(function.name, body_lines(function)) for function in functions_in(name)]
        long[name] = {f"{function}() has {lines} lines" for function, lines in lengths if lines > MAX_BODY_LINES}
    assert_none(long)


def test_most_functions_are_very_short() -> None:
    violations = {}
    for package in PACKAGES:
        lengths = [function_lines(function) for name in modules_in(package) for function in functions_in(name)]
        assert len(lengths) > 50, f"{package} has only {len(lengths)} functions"
        median = statistics.median(lengths)
        violations[package] = {f"the median is {median} lines"} if median > MAX_MEDIAN_LINES else set()
    assert_none(violations)


def test_files_are_short() -> None:
    lengths = {name: len(text_of(name).splitlines()) for name in MODULES}
    assert_none({name: {f"{lines} lines"} if lines >= MAX_FILE_LINES else set() for name, lines in lengths.items()})


def test_tests_import_at_the_top_of_the_file() -> None:
    comment = re.compile(r"#\s*(?:(?:ruff|flake8)\s*:\s*)?noqa\b.*\bE402\b", re.IGNORECASE)
    lines = {name: enumerate(text_of(name).splitlines(), start=1) for name in TESTS}
    assert_none({name: {f"line {n}" for n, line in lines[name] if comment.search(line)} for name in TESTS})
