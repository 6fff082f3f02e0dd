"""Devices, arrays, launches and tables of kernels, with or without a GPU.

With the environment variables `NUMBA_ENABLE_CUDASIM=1` and `NUMBA_DISABLE_JIT=1`, kernels run in Python on tensors of
the CPU, in numba's simulator. It is slow, but needs neither a GPU nor the package numba-cuda.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import cuda, types
from torch import Tensor

from ninetka_env.core.cache import keep_on_disk

IS_SIMULATED = bool(numba.config.ENABLE_CUDASIM)
MIN_CAPABILITY = (7, 5)
"""The oldest compute capability that CUDA 13 supports: Turing (2018)."""

GAME_THREADS = 128
"""Threads per block of kernels with one thread per game."""


def find_device(device: Any) -> torch.device:
    """Return the device for tensors; the CPU in the simulator.

    Raises:
        ValueError: if `device` is not the name of a CUDA device, or the GPU is too old.
        RuntimeError: if there is no such GPU, or numba-cuda is not installed.
    """
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type != "cuda":
        raise ValueError(f"device={device!r}: expected 'cuda' or a CUDA device such as 'cuda:0'")
    if IS_SIMULATED:
        return torch.device("cpu")
    if not torch.cuda.is_available() or (found.index or 0) >= torch.cuda.device_count():
        raise RuntimeError(f"device={str(found)!r}: PyTorch finds {torch.cuda.device_count()} GPUs on this machine")
    if importlib.util.find_spec("numba_cuda") is None:
        package = f"numba-cuda[cu{(torch.version.cuda or '13').partition('.')[0]}]"
        raise RuntimeError(f'device={str(found)!r}: games on a GPU need numba-cuda: pip install "{package}"')
    if (capability := torch.cuda.get_device_capability(found)) < MIN_CAPABILITY:
        raise ValueError(
            f"device={str(found)!r}: its compute capability is {'.'.join(map(str, capability))}: expected at least "
            + ".".join(map(str, MIN_CAPABILITY))
        )
    return torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)


def jit_kernel(function: Callable[..., None]) -> Any:
    """Compile a function as a kernel when it is launched, and keep the code on disk."""
    compiled = cuda.jit(function)
    if not IS_SIMULATED:
        from ninetka_env.gpu.kernel_cache import KernelCache, form_of  # the simulator has no compiler

        keep_on_disk(compiled, form_of(compiled), KernelCache)
    return compiled


def as_array(tensor: Tensor, dtype: Any = None) -> Any:
    """Return the array that kernels take for a contiguous tensor, which must live as long as the array.

    Args:
        tensor: a tensor on the device.
        dtype: the dtype of states, for a tensor of their bytes; the array then has one dimension.
    """
    array = tensor.numpy() if IS_SIMULATED else cuda.as_cuda_array(tensor)
    return array if dtype is None else array.reshape(-1).view(dtype)


def launch(kernel: Any, device: torch.device, blocks: int, threads: int, *arguments: Any) -> None:
    """Launch a kernel on the current stream of PyTorch; on a GPU, do not wait for its end."""
    if IS_SIMULATED:
        kernel[blocks, threads](*arguments)
        return
    with cuda.gpus[device.index]:
        stream = _stream(torch.cuda.current_stream(device).cuda_stream)
        kernel[blocks, threads, stream](*arguments)


def launch_per_game(kernel: Any, device: torch.device, count: int, *arguments: Any) -> None:
    """Launch a kernel with one thread for each of `count` games; see `launch`."""
    threads = min(GAME_THREADS, count)
    launch(kernel, device, -(-count // threads), threads, *arguments)


@functools.lru_cache(maxsize=64)
def _stream(handle: int) -> Any:
    """Return numba's object for a stream; numba recognises the configuration of a launch by this object."""
    return cuda.external_stream(handle) if handle else cuda.default_stream()


def _share_tables() -> None:
    """Let numba put the tables of compiled rules into global memory, once each, in all kernels of this process.

    By default it copies a table, at each use, into constant memory, which holds 64 KB in all, and is slow if the
    threads of a warp read different places. The tables of Go and Kropki exceed it.
    """
    from numba.cuda.target import CUDATargetContext

    def make_constant_array(self: Any, builder: Any, kind: Any, array: Any) -> Any:
        array = np.ascontiguousarray(array)
        data, globals_ = array.tobytes(), builder.module.globals
        name = f"ninetka_table_{hashlib.sha256(data).hexdigest()[:24]}"
        if name not in globals_:
            content = ir.Constant(ir.ArrayType(ir.IntType(8), len(data)), bytearray(data))
            table = ir.GlobalVariable(builder.module, content.type, name, addrspace=_GLOBAL_MEMORY)
            table.linkage, table.global_constant, table.initializer, table.align = "linkonce_odr", True, content, 8
        pointer = builder.addrspacecast(globals_[name], ir.PointerType(ir.IntType(8)), "generic")
        view = self.make_array(kind)(self, builder)
        shape, strides, itemsize = (
            [self.get_constant(types.intp, number) for number in numbers]
            for numbers in (array.shape, array.strides, [array.itemsize])
        )
        data_pointer = builder.bitcast(pointer, view.data.type)
        self.populate_array(view, data=data_pointer, shape=shape, strides=strides, itemsize=itemsize[0], meminfo=None)
        return view._getvalue()

    CUDATargetContext.make_constant_array = make_constant_array


_GLOBAL_MEMORY = 1
"""The number of the address space in NVVM IR (https://docs.nvidia.com/cuda/nvvm-ir-spec/)."""

if not IS_SIMULATED:
    _share_tables()
