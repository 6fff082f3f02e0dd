"""Check the wheel: it is complete, works outside the repository, and does not clash with other packages."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import ninetka_env

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ninetka_env", "ninetka_agents", "ninetka_train", "ninetka_web")
SOURCES = (ROOT / "ninetka_env", ROOT / "agents" / "ninetka_agents", ROOT / "train" / "ninetka_train")
TINY_SETTINGS = [
    f"alphazero.{key}" for key in ("rounds=1", "games=2", "playouts=8", "steps=2", "minibatch=32", "microbatch=32")
]


class Installation:
    """A virtual environment with the wheel installed; dependencies come from the Python that runs the tests.

    A `.pth` file adds the folder of the dependencies. Python does not read `.pth` files in that folder, so an editable
    install in it has no effect.
    """

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", symlinks=os.name != "nt")
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        ours = ("PYTHON", "COV", "NINETKA")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.env["NUMBA_CACHE_DIR"] = str(folder / "cache")
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.site = Path(output(self.run("python", "-c", where, cwd=folder)))
        others = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
        (self.site / "dependencies.pth").write_text("\n".join(others), encoding="utf-8")

    def run(self, command: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in a folder."""
        words = [str(self.bin / command), *arguments]
        return subprocess.run(words, cwd=cwd, env=self.env, capture_output=True, text=True, timeout=600, check=False)

    def install(self, wheel: Path) -> None:
        """Install a wheel, even if the dependencies contain its package; do not change the dependencies."""
        pip(
            "--python", str(self.bin / "python"), "install", "--no-deps", "--no-index", "--ignore-installed", str(wheel)
        )


def pip(*arguments: str) -> None:
    words = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    output(subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False))


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a command after checking that it succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    isolation = (
        ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    )  # otherwise pip downloads hatchling
    pip("wheel", "--no-deps", *isolation, "--wheel-dir", str(folder), str(ROOT))
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


@pytest.fixture(scope="module")
def installation(wheel, tmp_path_factory):
    made = Installation(tmp_path_factory.mktemp("installation"))
    made.install(wheel)
    return made


def relative_files(folder: Path, *patterns: str) -> set[str]:
    return {str(path.relative_to(folder.parent)) for pattern in patterns for path in folder.rglob(pattern)}


def test_wheel_contains_every_source_file(names):
    for folder in (*SOURCES, ROOT / "ninetka_web"):
        assert relative_files(folder, "*.py", "py.typed") <= names
        assert f"{folder.name}/py.typed" in names


def test_wheel_contains_data_files(names):
    assert {f"ninetka_train/configs/{path.name}" for path in (ROOT / "configs").glob("*.yaml")} <= names
    assert "ninetka_train/configs/quick.yaml" in names
    static = relative_files(ROOT / "ninetka_web", "static/*.*")
    assert {"ninetka_web/static/index.html", "ninetka_web/static/main.js"} <= static <= names


def test_wheel_contains_only_the_default_networks(names):
    folder, weights = "ninetka_agents/checkpoints", ["go/gen-6", "kropki/gen-2", "ninetka/gen-7"]
    network_files = {name for name in names if name.startswith(folder)}
    assert network_files == relative_files(SOURCES[1], "checkpoints/*/*.*")
    assert {name.split(".")[0] for name in network_files} == {f"{folder}/{name}" for name in weights}
    assert sorted(name for name in names if name.endswith(".safetensors")) == [
        f"{folder}/{name}.safetensors" for name in weights
    ]


def test_every_pinned_version_runs_on_the_oldest_python():
    """Debian 12 has Python 3.11.2; a pin that needs 3.11.5 makes pip refuse the whole installation."""
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "requires-python"
    ].removeprefix(">=")
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    refused = {}
    for name, version in pins:
        with suppress(metadata.PackageNotFoundError):
            about = metadata.metadata(name)
            needed = about.get("Requires-Python") or ""
            if about["Version"].partition("+")[0] == version and f"{oldest}.0" not in SpecifierSet(needed):
                refused[name] = needed
    assert len(pins) > 100
    assert not refused


def test_wheel_installs_only_its_own_packages(names):
    tops = {name.partition("/")[0] for name in names}
    version = ninetka_env.__version__
    assert tops == {*PACKAGES, f"ninetka_env-{version}.dist-info"}


def test_the_citation_names_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {ninetka_env.__version__}\n" in citation


def test_the_packages_come_from_the_wheel(installation, tmp_path):
    code = f"import {', '.join(PACKAGES)}; print(*({', '.join(f'{name}.__file__' for name in PACKAGES)}), sep='\\n')"
    files = output(installation.run("python", "-c", code, cwd=tmp_path)).splitlines()
    assert [Path(file) for file in files] == [installation.site / name / "__init__.py" for name in PACKAGES]


@pytest.mark.exhaustive
def test_users_agents_package_does_not_clash(installation, tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text("MINE = True\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(
        "import agents, gymnasium\n"
        "env = gymnasium.make('ninetka_env:ninetka_env/Ninetka-v0')\n"
        "env.reset(seed=0)\n"
        "print(agents.MINE, type(env.unwrapped).__name__)\n",
        encoding="utf-8",
    )
    assert output(installation.run("python", "main.py", cwd=tmp_path)) == "True OneSeatEnv"


@pytest.mark.exhaustive
def test_users_train_script_does_not_clash(installation, tmp_path):
    (tmp_path / "train.py").write_text("raise RuntimeError('not to be imported')\n", encoding="utf-8")
    code = "from ninetka_train.judging.evaluate import evaluate; print(evaluate.__module__)"
    assert output(installation.run("python", "-c", code, cwd=tmp_path)) == "ninetka_train.judging.evaluate"


@pytest.mark.exhaustive
def test_another_distribution_may_provide_agents(wheel, tmp_path):
    """For example, openai-agents installs a package `agents`."""
    installation = Installation(tmp_path)
    installation.install(wheel)
    before = contents(installation)
    installation.install(
        write_wheel(tmp_path, "others", {"agents/__init__.py": "OTHERS = 1\n", "train.py": "OTHERS = 2\n"})
    )
    after = contents(installation)
    assert {path: after[path] for path in before} == before
    assert {
        installation.site / "agents" / "__init__.py",
        installation.site / "train.py",
    } <= after.keys() - before.keys()
    code = "import agents, train, ninetka_agents, ninetka_train.judging.evaluate; print(agents.OTHERS, train.OTHERS)"
    assert output(installation.run("python", "-c", code, cwd=tmp_path)) == "1 2"


def contents(installation: Installation) -> dict[Path, bytes]:
    """Return the contents of all installed files."""
    return {
        path: path.read_bytes() for path in installation.site.rglob("*") if path.is_file() and path.suffix != ".pyc"
    }


def write_wheel(folder: Path, name: str, sources: dict[str, str]) -> Path:
    """Write a wheel with the given files."""
    path, about = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    files = sources | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return path


@pytest.mark.exhaustive
def test_a_run_in_an_empty_folder(installation, tmp_path):
    settings = [word for setting in ("threads=1", *TINY_SETTINGS) for word in ("--set", setting)]
    output(installation.run("ninetka", "train", "--config", "quick", "--games", "0", *settings, cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert {"config.yaml", "log.jsonl"} <= {path.name for path in (tmp_path / "runs" / "quick").iterdir()}


@pytest.mark.exhaustive
def test_shipped_configurations_are_found_by_every_name(installation, tmp_path):
    names = ["quick", "quick.yaml", "configs/quick.yaml", "gen-6", "configs/gen-6.yaml", "gen-2-kropki"]
    code = (
        "from ninetka_train.learning.config import load_config\n"
        "from ninetka_train.learning.config_files import shipped_configs\n"
        f"print(*(load_config(name).name for name in {names}))\n"
        "print(*{path.parent for path in shipped_configs().values()})"
    )
    found, folder = output(installation.run("python", "-c", code, cwd=tmp_path)).splitlines()
    assert found == "quick quick quick gen-6 gen-6 gen-2-kropki"
    assert Path(folder) == installation.site / "ninetka_train" / "configs"


@pytest.mark.exhaustive
def test_an_unknown_configuration_starts_nothing(installation, tmp_path):
    for name in ("quik", "gen-1"):
        done = installation.run("ninetka", "train", "--config", name, cwd=tmp_path)
        assert done.returncode == 2
        shipped = "gen-2-kropki, gen-6, gen-6-go, ppo, quick, quick-go, quick-kropki"
        elsewhere = "those of other networks are in the repository's folder networks/"
        hint = " (did you mean 'quick'?)" if name == "quik" else ""
        assert f"the shipped configurations are {shipped}{hint}, {elsewhere}" in done.stderr
    assert not any(tmp_path.iterdir())


def test_configurations_of_the_checkout(tmp_path, monkeypatch):
    config = pytest.importorskip("ninetka_train.learning.config")
    files = pytest.importorskip("ninetka_train.learning.config_files")
    assert {path.parent for path in files.shipped_configs().values()} == {ROOT / "configs"}
    monkeypatch.chdir(tmp_path)
    assert config.find_config("configs/quick.yaml") == config.find_config("quick") == ROOT / "configs" / "quick.yaml"
    for name in ("gen-3", "gen-3.yaml", ROOT / "networks" / "ninetka" / "gen-3.yaml"):
        assert config.load_config(name).start_from == "gen-2"
    assert config.find_config("gen-1-go") == ROOT / "networks" / "go" / "gen-1-go.yaml"
    (tmp_path / "quick").mkdir()  # a folder of that name does not hide the configuration
    assert config.load_config("quick").name == "quick"
    (tmp_path / "quick.yaml").write_text("name: mine", encoding="utf-8")  # an existing file takes precedence
    assert config.load_config("quick.yaml").name == "mine"
    for wrong in ("quik", "other/quick.yaml", "configs/quik.yaml", "configs/gen-3.yaml", tmp_path / "ppo.yaml"):
        with pytest.raises(ValueError, match=r"cannot be read: .*shipped configurations are gen-2-kropki, .*quick"):
            config.load_config(wrong)


def test_shipped_networks_are_found_by_every_name(installation, tmp_path):
    code = (
        "from ninetka_agents import make_agent\n"
        "from ninetka_agents.checkpoint import shipped_network, find_checkpoint\n"
        "print(shipped_network(), *{*map(find_checkpoint, ['gen-7', 'ninetka/gen-7'])}, sep='\\n')\n"
        "make_agent('net'), make_agent('net:gen-7'), make_agent('net', 'go'), make_agent('net:gen-2', 'kropki')"
    )
    found = output(installation.run("python", "-c", code, cwd=tmp_path)).splitlines()
    assert [Path(one) for one in found] == 2 * [
        installation.site / "ninetka_agents/checkpoints/ninetka/gen-7.safetensors"
    ]


def test_other_networks_are_found_in_a_clone_or_by_path(installation, tmp_path):
    done = installation.run("ninetka", "evaluate", "net:gen-1", "random", "--games", "2", cwd=tmp_path)
    assert done.returncode == 2
    known = "gen-7 comes with the package"
    assert f"{known}, others are in the repository's folder networks/: give the path of one" in done.stderr
    path = ROOT / "networks" / "ninetka" / "gen-1"
    code = f"from ninetka_agents import make_agent; make_agent('net:{path.as_posix()}')"
    output(installation.run("python", "-c", code, cwd=tmp_path))
    checkpoint = pytest.importorskip("ninetka_agents.checkpoint")
    assert checkpoint.find_checkpoint("gen-1") == path.with_suffix(".safetensors")


def test_networks_are_listed_with_their_ratings(installation, tmp_path):
    pytest.importorskip("torch")
    listed = output(installation.run("ninetka", "agents", "--game", "go", cwd=tmp_path))
    assert re.search(r"^net +gen-6 +83 k +0\.3 MB +\+\d+ \[", listed, re.MULTILINE)


def test_the_pool_away_from_the_repository_has_the_shipped_network(installation, tmp_path):
    code = "from ninetka_train.judging.ratings import default_pool; print(*(default_pool('go')[-2:]))"
    assert output(installation.run("python", "-c", code, cwd=tmp_path)) == "net:gen-6 net:simulations=64"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], "evaluate"),
        (["--version"], "ninetka 0."),
        (["speed", "--help"], "Usage: ninetka speed [BENCHMARK]..."),
        (["speed", "-h"], "Usage: ninetka speed [BENCHMARK]..."),
    ],
)
def test_command_prints_help_and_version(installation, tmp_path, arguments, expected):
    assert expected in output(installation.run("ninetka", *arguments, cwd=tmp_path))


def test_benchmarks_need_the_repository(installation, tmp_path):
    done = installation.run("ninetka", "speed", cwd=tmp_path)
    assert done.returncode == 2
    assert "the benchmarks are in the repository" in done.stderr
