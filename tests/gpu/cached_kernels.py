"""Compile the kernels of a variant, or load them from the disk cache, for one GPU but without a GPU.

Prints for each kernel whether it came from the cache. `test_gpu_compilation.py` runs this program.
"""

from __future__ import annotations

import importlib
import json
import sys

from numba.cuda import codegen, dispatcher
from one_gpu import Device

from ninetka_env.core.registry import load_variant, register


def compile_without_a_gpu(capability: tuple[int, ...]) -> None:
    """Let numba-cuda compile kernels for a GPU with this compute capability, and not load them into it."""
    Device.compute_capability = capability
    dispatcher.get_current_device = lambda: Device
    dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin(cc=capability)
    codegen.CUDACodeLibrary._ensure_cc = lambda library, given: capability
    codegen.JITCUDACodegen.magic_tuple = lambda compiler: ("CUDA", capability)


def main(place: str, capability: str) -> None:
    """Compile the kernels of a game: 9tka, or the game of a module like `toy_game`."""
    compile_without_a_gpu(tuple(map(int, capability.split("."))))
    is_own = place != "ninetka"
    variant = register(importlib.import_module(place).definition()).variant() if is_own else load_variant(place)
    from test_gpu_compilation import kernels_of  # after the module, which may change numba-cuda

    from_cache = []
    for kernel, arguments in kernels_of(variant).values():
        kernel.compile(arguments)
        from_cache.append(bool(kernel.stats.cache_hits))
    print(json.dumps(from_cache))


if __name__ == "__main__":
    main(*sys.argv[1:])
