"""Imports run one way, and heavy packages stay in the rooms that need them: read from the sources, nothing is run.

In each package what serves every game stands apart from the rooms of single games, which bear the games' names.
"""

from __future__ import annotations

import ast
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACES = {"ninetka_env": ROOT, "ninetka_agents": ROOT / "agents", "ninetka_train": ROOT / "train", "ninetka_web": ROOT}
"""The packages, and where they lie."""
GAMES = sorted(path.parent.name for path in (ROOT / "ninetka_env" / "games").glob("*/definition.py"))

STATIONS = [
    {"geometry", "scratch"},
    {"regions", "repetition"},
    {"rules"},
    {"start", "scoring", "choices", "observation", "text", "position"},
    {"game"},
    {"replay"},
    {"definition", "describe", "diagram", "picture", "render", "sgf"},
]
"""The modules of each game's room, in order: none imports a later one. Not every game has all of them."""
OUTER_FACE = {
    "ninetka_env.__init__",
    "ninetka_env.api.aec",
    "ninetka_env.api.conformance.environments",
    "ninetka_env.api.one_seat",
    "ninetka_env.api.vector",
}
"""The modules of `ninetka_env`, beside each game's NAME_v0, that may know gymnasium and pettingzoo."""
NETWORKS = {
    "ninetka_agents.averaging",
    "ninetka_agents.board_network",
    "ninetka_agents.checkpoint",
    "ninetka_agents.export",
    "ninetka_agents.go.network",
    "ninetka_agents.kropki.network",
    "ninetka_agents.layers",
    "ninetka_agents.net_agent",
    "ninetka_agents.ninetka.network",
    "ninetka_agents.outputs",
}
"""The modules of `ninetka_agents` that may know torch."""
TRAINING = {
    f"ninetka_train.learning.{name}"
    for name in ("alphazero", "logger", "losses", "ppo", "processes", "resume", "setup")
}
TRAINING |= {"ninetka_train.cluster.packing"}
"""The modules of `ninetka_train` that may know torch."""


# Reading the sources


def modules_of(*packages: str) -> dict[str, ast.Module]:
    """Parse all modules of the packages: `{"ninetka_env.core.jit": tree, ..}`."""
    found = {}
    for package in packages:
        for path in sorted((PLACES[package] / package).rglob("*.py")):
            name = ".".join(path.relative_to(PLACES[package]).with_suffix("").parts)
            found[name] = ast.parse(path.read_text("utf-8"))
    return found


MODULES = modules_of(*PLACES)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports_of(tree: ast.AST, *, also_in_functions: bool) -> set[str]:
    """Return the dotted names that a module imports, `from a import b` as `a` and `a.b`; not those for types only."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif is_for_types(node):
            continue
        elif also_in_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found |= imports_of(node, also_in_functions=also_in_functions)
    return found


def everywhere(name: str) -> set[str]:
    """Return what a module imports at its top and inside functions."""
    return imports_of(MODULES[name], also_in_functions=True)


def reached_from(module: str) -> set[str]:
    """Return the modules of the project that importing `module` runs, itself and the packages around it included."""
    reached, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        parts = name.split(".")
        packages = [f"{'.'.join(parts[:end])}.__init__" for end in range(1, len(parts) + 1)]
        for one in {name, *packages} & MODULES.keys() - reached:
            reached.add(one)
            waiting += imports_of(MODULES[one], also_in_functions=False)
    return reached


def run_by(module: str) -> set[str]:
    """Return all names that are imported when `module` is."""
    return set().union(*(imports_of(MODULES[other], also_in_functions=False) for other in reached_from(module)))


def top_names(names: Iterable[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def inside(names: Iterable[str], *rooms: str) -> set[str]:
    """Return the names that are in one of the rooms, such as `"ninetka_env.core"`."""
    return {name for name in names if any(f"{name}.".startswith(f"{room}.") for room in rooms)}


def names_in(*rooms: str) -> list[str]:
    """Return the modules in the rooms."""
    return sorted(inside(MODULES, *rooms))


def generic(package: str) -> list[str]:
    """Return the modules of a package that belong to no game's room."""
    return sorted(set(names_in(package)) - {name for game in GAMES for name in names_in(f"{package}.{game}")})


def test_the_parser_sees_every_kind_of_import() -> None:
    source = "import a.b\nfrom c import d\nif X:\n    import e\ndef f():\n    import g\nclass C:\n    import h\n"
    source += "if TYPE_CHECKING:\n    import i\nasync def j():\n    from k.l import m\n"
    at_module_level = {"a.b", "c", "c.d", "e", "h"}
    assert imports_of(ast.parse(source), also_in_functions=False) == at_module_level
    assert imports_of(ast.parse(source), also_in_functions=True) == at_module_level | {"g", "k.l", "k.l.m"}


def test_the_sources_are_found() -> None:
    room = "ninetka_env.games.ninetka"
    assert "ninetka" in GAMES
    for game in GAMES:
        found = {name.rpartition(".")[2] for name in names_in(f"ninetka_env.games.{game}")}
        assert {"__init__", "geometry", "rules", "game"} <= found <= {"__init__"}.union(*STATIONS), game
    assert reached_from(f"{room}.game") >= {f"{room}.{name}" for name in ("game", "rules", "geometry", "__init__")}
    assert reached_from(f"{room}.game") >= {"ninetka_env.core.registry", "ninetka_env.__init__"}
    assert MODULES.keys() >= OUTER_FACE | NETWORKS | TRAINING
    assert "ninetka_agents.search.uct" in generic("ninetka_agents")
    assert not inside(generic("ninetka_agents"), "ninetka_agents.ninetka")


# The environment: core <- each game, core <- api


@pytest.mark.parametrize("name", names_in("ninetka_env.core"))
def test_the_core_knows_nobody(name: str) -> None:
    known = top_names(everywhere(name)) & PLACES.keys()
    assert known <= {"ninetka_env"}
    assert inside(everywhere(name), "ninetka_env") <= inside(everywhere(name), "ninetka_env.core") | {"ninetka_env"}


@pytest.mark.parametrize("name", names_in("ninetka_env.api"))
def test_what_is_offered_to_others_knows_no_game(name: str) -> None:
    assert not inside(everywhere(name), "ninetka_env.games")


@pytest.mark.parametrize("game", GAMES)
def test_a_game_knows_the_core_and_itself(game: str) -> None:
    for name in names_in(f"ninetka_env.games.{game}"):
        known = inside(everywhere(name), "ninetka_env")
        others = known - inside(known, "ninetka_env.core", f"ninetka_env.games.{game}") - {"ninetka_env.games"}
        assert not others, name


@pytest.mark.parametrize("name", names_in("ninetka_env"))
def test_the_environment_stands_alone(name: str) -> None:
    assert not top_names(everywhere(name)) & (PLACES.keys() - {"ninetka_env"})
    assert not top_names(everywhere(name)) & {"torch", "scipy", "matplotlib"}
    is_face = name in OUTER_FACE or name in {f"ninetka_env.{game}_v0" for game in GAMES}
    assert is_face or not top_names(everywhere(name)) & {"gymnasium", "pettingzoo"}


@pytest.mark.parametrize("name", names_in("ninetka_env"))
def test_only_who_draws_loads_pygame(name: str) -> None:
    assert "pygame" not in top_names(imports_of(MODULES[name], also_in_functions=False))
    assert name == "ninetka_env.core.drawing" or "pygame" not in top_names(everywhere(name))


@pytest.mark.parametrize("number", range(len(STATIONS)))
@pytest.mark.parametrize("game", GAMES)
def test_in_the_room_of_a_game_no_station_imports_a_later_one(game: str, number: int) -> None:
    room = f"ninetka_env.games.{game}"
    later = {f"{room}.{name}" for name in set().union(*STATIONS[number + 1 :])}
    for name in MODULES.keys() & {f"{room}.{name}" for name in STATIONS[number]}:
        assert not reached_from(name) & later
        assert not everywhere(name) & later


# Agents


@pytest.mark.parametrize("name", names_in("ninetka_agents"))
def test_agents_do_not_train_and_only_networks_need_torch(name: str) -> None:
    assert not top_names(everywhere(name)) & {"ninetka_train", "ninetka_web"}
    if name not in NETWORKS:
        assert "torch" not in top_names(everywhere(name))
        assert "torch" not in top_names(run_by(name))


@pytest.mark.parametrize("name", generic("ninetka_agents"))
def test_agents_of_every_game_know_none(name: str) -> None:
    rooms = [f"{package}.{game}" for game in GAMES for package in ("ninetka_env.games", "ninetka_agents")]
    assert not inside(everywhere(name), *rooms)


@pytest.mark.parametrize("package", ["ninetka_agents", "ninetka_train", "ninetka_web"])
@pytest.mark.parametrize("game", GAMES)
def test_the_room_of_a_game_knows_no_other_game(package: str, game: str) -> None:
    others = [one for one in GAMES if one != game]
    rooms = [f"{part}.{one}" for one in others for part in ("ninetka_env.games", "ninetka_agents", "ninetka_train")]
    for name in names_in(f"{package}.{game}"):
        assert not inside(everywhere(name), *rooms), name


# Training: judging <- learning <- showing, cluster


@pytest.mark.parametrize("name", names_in("ninetka_train.judging"))
def test_who_judges_neither_learns_nor_shows(name: str) -> None:
    assert not inside(everywhere(name), "ninetka_train.learning", "ninetka_train.showing")


@pytest.mark.parametrize("name", names_in("ninetka_train"))
def test_only_the_cluster_s_room_knows_ray_and_only_commands_know_the_room(name: str) -> None:
    inside_room = bool(inside({name}, "ninetka_train.cluster"))
    assert inside_room or "ray" not in top_names(everywhere(name))
    known = inside(everywhere(name), "ninetka_train.cluster")
    assert inside_room or not known or name in ("ninetka_train.cli", "ninetka_train.matches")
    assert not inside_room or not inside(everywhere(name), "ninetka_train.showing", "ninetka_train.run")


@pytest.mark.parametrize("name", names_in("ninetka_train.learning"))
def test_who_learns_does_not_show(name: str) -> None:
    assert not inside(everywhere(name), "ninetka_train.showing")


@pytest.mark.parametrize("name", [*names_in("ninetka_train.learning"), "ninetka_train.run"])
def test_who_learns_knows_no_game(name: str) -> None:
    packages = ("ninetka_env.games", "ninetka_agents", "ninetka_train")
    assert not inside(everywhere(name), *[f"{package}.{game}" for game in GAMES for package in packages])


@pytest.mark.parametrize("name", names_in("ninetka_train"))
def test_only_the_command_knows_the_table_and_only_learning_needs_torch(name: str) -> None:
    known = inside(everywhere(name), "ninetka_web")
    assert known <= ({"ninetka_web", "ninetka_web.commands"} if name == "ninetka_train.cli" else set())
    assert name in TRAINING or "torch" not in top_names(everywhere(name))
    assert name == "ninetka_train.__main__" or "ninetka_train.cli" not in everywhere(name)


def test_the_command_starts_without_a_web_server() -> None:
    assert not top_names(run_by("ninetka_train.cli")) & {"fastapi", "uvicorn", "pydantic", "numba", "torch", "ray"}


# The table


@pytest.mark.parametrize("name", names_in("ninetka_web"))
def test_the_table_does_not_train_and_starts_without_torch(name: str) -> None:
    assert "ninetka_train" not in top_names(everywhere(name))
    assert "torch" not in top_names(run_by(name))


@pytest.mark.parametrize("name", names_in("ninetka_web"))
def test_the_table_knows_games_by_their_adapters_and_these_one_each(name: str) -> None:
    rooms = {game: [f"ninetka_env.games.{game}", f"ninetka_agents.{game}"] for game in GAMES}
    own = name.rpartition(".")[2] if name.startswith("ninetka_web.games.") else ""
    for game in GAMES:
        known = inside(everywhere(name), *rooms[game], f"ninetka_web.games.{game}")
        assert game == own or not known, name
    serving = {
        "hub",
        "agents",
        "analysts",
        "clocks",
        "guest",
        "journal",
        "people",
        "players",
        "protocol",
        "quotas",
        "records",
    }
    serving |= {"server", "setup", "store", "tables", "uploads", "views", "warm", "wishes"}
    assert not own or not inside(everywhere(name), *(f"ninetka_web.{one}" for one in serving))


# No circles


def circles(*, also_in_functions: bool) -> list[set[str]]:
    """Return the sets of modules that import each other."""
    graph = {
        name: imports_of(tree, also_in_functions=also_in_functions) & MODULES.keys() for name, tree in MODULES.items()
    }
    reached = {name: closure(graph, name) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        circle = {other for other in reached[name] if name in reached[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def closure(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return what can be reached from a node by at least one step."""
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += graph[name]
    return reached


def test_no_imports_run_in_a_circle() -> None:
    assert circles(also_in_functions=False) == []
    assert circles(also_in_functions=True) == []


def annotations_in(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                yield from ast.walk(part)


def bound_by_imports(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names that imports among the nodes give."""
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    return [alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names]


@pytest.mark.parametrize("name", MODULES)
def test_what_is_imported_for_types_stands_in_annotations_only(name: str) -> None:
    nodes = list(ast.walk(MODULES[name]))
    for_types = bound_by_imports(node for block in nodes if is_for_types(block) for node in ast.walk(block))
    again = bound_by_imports(nodes)  # a function may import another thing by that name
    only_for_types = {one for one in for_types if again.count(one) == for_types.count(one)}
    annotations = set(map(id, annotations_in(MODULES[name])))
    used = [node for node in nodes if isinstance(node, ast.Name) and node.id in only_for_types]
    assert [node.id for node in used if id(node) not in annotations] == []


# What an import loads


PROGRAM = "import sys, {}; print(*sorted(set(sys.modules) & {{'torch', 'scipy', 'pygame', 'matplotlib', 'numba'}}))"


@pytest.mark.parametrize(
    ("module", "loaded"),
    [("ninetka_env", ""), *((f"ninetka_env.{game}_v0", "numba scipy") for game in GAMES)],  # numba loads scipy
)
def test_the_environment_loads_no_heavy_package(module: str, loaded: str) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", PROGRAM.format(module)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, loaded), done.stderr


# Short functions, short files


def lengths(package: str) -> list[int]:
    """Return the lines of each function, its decorators apart."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    trees = [MODULES[name] for name in names_in(package)]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, functions)]
    return [int(node.end_lineno or 0) - node.lineno + 1 for node in nodes]


@pytest.mark.parametrize("package", PLACES)
def test_functions_are_short(package: str) -> None:
    assert len(lengths(package)) > 50
    assert statistics.median(lengths(package)) <= 10


def test_files_are_short() -> None:
    long = set()
    for name in MODULES:
        path = (PLACES[name.split(".")[0]] / name.replace(".", "/")).with_suffix(".py")
        if len(path.read_text("utf-8").splitlines()) >= 500:
            long.add(name)
    assert long == set()
