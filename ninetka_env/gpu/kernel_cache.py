"""Disk cache of compiled kernels, with the folders and the rules of `ninetka_env.core.cache`.

numba-cuda keeps kernels as machine code of one GPU architecture, and adds its own version, the CUDA version and the
architecture to their keys.
"""

from __future__ import annotations

try:
    from numba.cuda.dispatcher import CUDACache, CUDACacheImpl
except ImportError:  # undocumented in numba-cuda; without them, no kernel is cached
    CUDACache = CUDACacheImpl = object

from ninetka_env.core.cache import Locator, SourceCache


class _Implementation(CUDACacheImpl):
    _locator_classes = [Locator]  # noqa: RUF012  # numba's interface


class KernelCache(SourceCache, CUDACache):
    """The cache of one kernel."""

    _impl_class = _Implementation
