"""The GPU for which tests compile kernels without having one."""

from __future__ import annotations

CAPABILITY = (9, 0)
"""Its compute capability: that of H100 and H200."""


class Device:
    """Represents the GPU: numba-cuda asks for its compute capability when it compiles what a kernel calls."""

    compute_capability = CAPABILITY
