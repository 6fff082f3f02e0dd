"""Imports run one way, and heavy packages stay in the rooms that need them: read from the sources, nothing is run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("ninetka_env", "agents", "train", "ninetka_web")

ROAD = [{"geometry"}, {"rules"}, {"game", "observation"}, {"aec", "vector", "one_seat"}]
"""Stations of `ninetka_env`, in order: none imports a later one."""
OUTER_FACE = {"aec", "vector", "one_seat", "ninetka_v0", "__init__"}
"""The modules of `ninetka_env` that may know gymnasium and pettingzoo."""
NETWORK = {"network", "policy", "gumbel", "guided", "checkpoint", "export"}
"""The modules of `agents` that may know torch."""


def modules_of(*packages: str) -> dict[str, ast.Module]:
    """Parse all modules of the packages: `{"ninetka_env.games.ninetka.rules": tree, ..}`."""
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return {name: ast.parse(path.read_text("utf-8")) for name, path in zip(names, paths, strict=True)}


MODULES = modules_of(*PACKAGES)


def imports_of(tree: ast.AST, *, also_in_functions: bool) -> set[str]:
    """Return the dotted names that a module imports, `from a import b` as `a` and `a.b`; not those for types only."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif also_in_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found |= imports_of(node, also_in_functions=also_in_functions)
    return found


def reached_from(module: str) -> set[str]:
    """Return the modules of the project that importing `module` runs, itself included (`__init__` files apart)."""
    reached, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in MODULES and name not in reached:
            reached.add(name)
            waiting += imports_of(MODULES[name], also_in_functions=False)
    return reached


def top_names(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_the_parser_sees_every_kind_of_import() -> None:
    source = "import a.b\nfrom c import d\nif X:\n    import e\ndef f():\n    import g\nclass C:\n    import h\n"
    source += "if TYPE_CHECKING:\n    import i\nasync def j():\n    from k.l import m\n"
    at_module_level = {"a.b", "c", "c.d", "e", "h"}
    assert imports_of(ast.parse(source), also_in_functions=False) == at_module_level
    assert imports_of(ast.parse(source), also_in_functions=True) == at_module_level | {"g", "k.l", "k.l.m"}


def test_the_sources_are_found() -> None:
    assert {f"ninetka_env.{name}" for name in set().union(*ROAD)} <= MODULES.keys()
    assert reached_from("ninetka_env.games.ninetka.game") >= {"ninetka_env.games.ninetka.game", "ninetka_env.games.ninetka.rules", "ninetka_env.games.ninetka.geometry"}


@pytest.mark.parametrize("number", range(len(ROAD)))
def test_no_station_imports_a_later_one(number: int) -> None:
    later = {f"ninetka_env.{name}" for name in set().union(*ROAD[number + 1 :])}
    for name in ROAD[number]:
        assert not reached_from(f"ninetka_env.{name}") & later


def test_no_imports_run_in_a_circle() -> None:
    for name, tree in MODULES.items():
        for imported in imports_of(tree, also_in_functions=False) & MODULES.keys():
            assert name not in reached_from(imported), f"{name} and {imported} import each other"


@pytest.mark.parametrize("name", modules_of("ninetka_env"))
def test_the_environment_stands_alone(name: str) -> None:
    assert not top_names(imports_of(MODULES[name], also_in_functions=False)) & {"agents", "train", "ninetka_web"}
    everywhere = top_names(imports_of(MODULES[name], also_in_functions=True))
    assert "torch" not in everywhere
    if name.split(".")[1] not in OUTER_FACE:
        assert not everywhere & {"gymnasium", "pettingzoo"}


@pytest.mark.parametrize("name", modules_of("agents"))
def test_agents_do_not_train_and_only_networks_need_torch(name: str) -> None:
    assert not top_names(imports_of(MODULES[name], also_in_functions=True)) & {"train", "ninetka_web"}
    if name.split(".")[-1] not in NETWORK:
        assert "torch" not in top_names(imports_of(MODULES[name], also_in_functions=True))
        reached = set().union(*(imports_of(MODULES[other], also_in_functions=False) for other in reached_from(name)))
        assert "torch" not in top_names(reached)


@pytest.mark.parametrize("name", modules_of("train"))
def test_only_the_command_knows_the_table(name: str) -> None:
    known = {imported for imported in imports_of(MODULES[name], also_in_functions=True) if "ninetka_web" in imported}
    assert known <= ({"ninetka_web", "ninetka_web.commands"} if name == "ninetka_train.cli" else set())


@pytest.mark.parametrize("name", modules_of("ninetka_web"))
def test_the_table_does_not_train_and_starts_without_torch(name: str) -> None:
    assert "train" not in top_names(imports_of(MODULES[name], also_in_functions=True))
    reached = set().union(*(imports_of(MODULES[other], also_in_functions=False) for other in reached_from(name)))
    assert "torch" not in top_names(reached)


def test_the_command_starts_without_a_web_server() -> None:
    reached = set().union(*(imports_of(MODULES[other], also_in_functions=False) for other in reached_from("ninetka_train.cli")))
    assert not top_names(reached) & {"fastapi", "uvicorn", "pydantic", "numba", "torch"}
