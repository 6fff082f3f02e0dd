"""Disk cache of compiled kernels, with the folders and the rules of `ninetka_env.core.cache`.

numba-cuda keeps kernels as machine code of one GPU architecture, and adds its own version, CUDA's version and the
architecture to their keys.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

try:
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl
except ImportError:  # undocumented in numba-cuda; without them, no kernel is cached
    CUDACache = CUDACacheImpl = object

from ninetka_env.core.cache import Locator, SourceCache


def version_of(package: str) -> str:
    """Return the version of an installed package, empty if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


COMPILERS = tuple(
    map(version_of, ("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12"))
)
"""Versions of the packages with NVIDIA's compilers, of CUDA 13 and of CUDA 12; numba-cuda can also find the compilers
in an installation of CUDA."""


class _Implementation(CUDACacheImpl):
    _locator_classes = [Locator]  # noqa: RUF012  # numba's interface


class KernelCache(SourceCache, CUDACache):
    """The cache of one kernel."""

    _impl_class = _Implementation
    compiler = f"numba-cuda {version_of('numba-cuda')}"


def form_of(kernel: Any) -> tuple[object, ...]:
    """Return what a kernel's code depends on besides its sources: options and versions of NVIDIA's compilers."""
    return repr(sorted(kernel.targetoptions.items())), *COMPILERS
