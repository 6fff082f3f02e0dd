"""Compile all kernels for one GPU, without a GPU; needs the extra `gpu`, and `ptxas` to check registers and stack."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

from numba import cuda, from_dtype, types
from numba.cuda import dispatcher

from ninetka_agents.device_inputs import write_input_rows
from ninetka_agents.ninetka.device_features import write_feature_rows
from ninetka_env.core.registry import Variant, load_variant
from ninetka_env.gpu import kernels
from ninetka_env.gpu.device import IS_SIMULATED

if IS_SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)

CAPABILITY = (9, 0)


class Device:
    """Represents a GPU: numba asks for its compute capability when it compiles the functions that a kernel calls."""

    compute_capability = CAPABILITY


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
    rows, row_bytes, row_numbers = array(types.int8, 2), array(types.uint8, 2), array(types.float32, 2)
    if variant.definition.name == "ninetka":
        tokens = array(types.int8, 3)
        inputs = (write_feature_rows, (games, tokens, tokens, rows, row_bytes, rows))
    else:
        inputs = (write_input_rows, (games, types.int64, rows, row_numbers, rows))
    return {
        "inputs": inputs,
        "start": (kernels.start_games, (games, flags, numbers, streams)),
        "sample": (kernels.sample_actions, (games, streams, numbers)),
        "step": (kernels.step_games, step),
        "outputs": (outputs.kernel, (games, outputs_array, outputs_array, bytes_)),
    }


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
            assert done.returncode == 0, done.stderr
            assert {*re.findall(r"(\d+) bytes spill", done.stdout + done.stderr)} == {"0"}, name
            print(name, *re.findall(r"Used \d+ registers|\d+ bytes stack frame", done.stdout + done.stderr))
