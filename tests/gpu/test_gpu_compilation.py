"""Compile all kernels for one GPU, without a GPU; needs the extra `gpu`, and `ptxas` to check registers and stack."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

from numba import cuda, from_dtype, types
from numba.cuda import dispatcher
from one_gpu import CAPABILITY, Device

from ninetka_agents.device_inputs import write_input_rows
from ninetka_agents.ninetka.device_features import write_feature_rows
from ninetka_env.core.registry import Variant, load_variant
from ninetka_env.gpu import kernels
from ninetka_env.gpu.device import IS_SIMULATED

if IS_SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

HERE = Path(__file__).parent


def kernels_of(variant: Variant) -> dict[str, tuple[object, tuple[types.Type, ...]]]:
    """Return the kernels of a variant with the types of their arguments."""

    def array(kind: types.Type, dimensions: int = 1) -> types.Array:
        return types.Array(kind, dimensions, "C")

    size = int(np.prod(variant.sizes.planes))
    games, score = array(from_dtype(variant.dtype)), from_dtype(np.dtype(variant.definition.score_dtype))
    numbers, streams, flags, bytes_ = (array(kind) for kind in (types.int64, types.uint64, types.boolean, types.int8))
    tables = [array(score, 2), array(types.float32, 2), array(types.int8, 2)]
    step = (games, numbers, numbers, numbers, streams, types.int64, flags, bytes_, *tables)
    outputs = kernels.output_kernel(variant.dtype, size, variant.num_actions)
    outputs_array = array(from_dtype(np.dtype(outputs.dtype)))
    kernels_of_games = {
        "start": (kernels.start_games, (games, flags, numbers, streams)),
        "sample": (kernels.sample_actions, (games, streams, numbers)),
        "step": (kernels.step_games, step),
        "outputs": (outputs.kernel, (games, outputs_array, outputs_array, bytes_)),
    }
    rows, row_bytes, row_numbers = array(types.int8, 2), array(types.uint8, 2), array(types.float32, 2)
    if variant.definition.name == "ninetka":
        tokens = array(types.int8, 3)
        inputs = write_feature_rows, (games, tokens, tokens, rows, row_bytes, rows)
    elif variant.definition.name in ("go", "kropki"):
        inputs = write_input_rows, (games, types.int64, rows, row_numbers, rows)
    else:
        return kernels_of_games
    return {"inputs": inputs, **kernels_of_games}


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["ninetka", "go", "go:size=19,ko=positional", "kropki", "kropki:width=39,height=32"])
def test_kernels_compile_without_spills(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: Device)
    for name, (kernel, arguments) in kernels_of(load_variant(spec)).items():
        path = tmp_path / f"{name}.ptx"
        path.write_text(cuda.compile_ptx(kernel.py_func, arguments, cc=CAPABILITY)[0], encoding="ascii")
        if ptxas := shutil.which("ptxas"):
            command = [ptxas, "-v", "-arch=sm_90", "-o", str(path.with_suffix(".cubin")), str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if "Unsupported .version" in done.stderr:
                pytest.skip("ptxas is older than numba-cuda's compiler")
            assert done.returncode == 0, done.stderr
            assert {*re.findall(r"(\d+) bytes spill", done.stdout + done.stderr)} == {"0"}, name
            print(name, *re.findall(r"Used \d+ registers|\d+ bytes stack frame", done.stdout + done.stderr))


needs_c = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


def run_python(*arguments: str, folder: Path = HERE, **variables: str) -> str:
    """Run Python in a separate process that can import this folder's modules and `folder`'s; return what it prints."""
    environment = os.environ | variables | {"PYTHONPATH": os.pathsep.join([str(folder), str(HERE), *sys.path])}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def run_compiled(name: str, marks: str) -> None:
    """Run the tests of a file that have some marks, with compiled kernels on the CPU."""
    run_python("-m", "pytest", "-q", "-p", "no:xdist", "-p", "compiled_kernels", "-m", marks, str(HERE / name))


@needs_c
@pytest.mark.slow
@pytest.mark.parametrize("name", ["compiled.py", "simulated.py", "simulated_ppo.py"])
def test_compiled_kernels_on_the_cpu(name: str) -> None:
    run_compiled(name, "not exhaustive")


@needs_c
@pytest.mark.exhaustive
def test_compiled_kernels_on_the_cpu_in_many_games() -> None:
    run_compiled("compiled.py", "exhaustive")


def loaded_from_the_cache(game: str, folder: Path, capability: str = "9.0", **variables: str) -> list[bool]:
    """Compile the kernels of a game in a new process, and return whether each came from the cache."""
    variables |= {"NUMBA_CACHE_DIR": str(folder / "cache")}
    return json.loads(run_python(str(HERE / "cached_kernels.py"), game, capability, folder=folder, **variables))


@pytest.mark.slow
def test_kernels_are_kept_on_disk(tmp_path: Path) -> None:
    assert loaded_from_the_cache("ninetka", tmp_path) == [False] * 5
    assert loaded_from_the_cache("ninetka", tmp_path) == [True] * 5
    for path in tmp_path.rglob("*.code"):
        path.write_bytes(path.read_bytes()[:-1])
    assert loaded_from_the_cache("ninetka", tmp_path) == [False] * 5


@pytest.mark.slow
def test_kernels_for_other_gpus_and_with_other_options_are_kept_separately(tmp_path: Path) -> None:
    assert not any(loaded_from_the_cache("toy_game", tmp_path))
    assert not any(loaded_from_the_cache("toy_game", tmp_path, capability="8.0"))
    assert not any(loaded_from_the_cache("toy_game", tmp_path, NUMBA_CUDA_DEBUGINFO="1"))
    assert all(loaded_from_the_cache("toy_game", tmp_path))


@pytest.mark.slow
def test_with_another_numba_cuda_nothing_is_cached(tmp_path: Path) -> None:
    path = tmp_path / "other_game.py"
    lines = [
        "import numba.cuda.dispatcher",
        "del numba.cuda.dispatcher.CUDACacheImpl",
        "from toy_game import definition",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    for _ in range(2):
        assert not any(loaded_from_the_cache("other_game", tmp_path))


@pytest.mark.slow
def test_an_edit_of_a_game_of_ones_own_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "own_game.py"
    text = (HERE.parent / "toy_game.py").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    assert loaded_from_the_cache("own_game", tmp_path) == [False] * 4
    assert loaded_from_the_cache("own_game", tmp_path) == [True] * 4
    path.write_text(text.replace("heap_of_toy -= action", "heap_of_toy -= 2 * action"), encoding="utf-8")
    assert loaded_from_the_cache("own_game", tmp_path) == [False] * 4
