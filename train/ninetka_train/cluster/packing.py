"""What workers are sent: functions and agents as bytes, networks in them on the CPU wherever they were before."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from ray import cloudpickle


def pack(what: Any) -> npt.NDArray[np.uint8]:
    """Turn something into (bytes,) uint8, which Ray's object store shares among the processes of a node."""
    buffer = io.BytesIO()
    torch.save(what, buffer, pickle_module=cloudpickle)
    return np.frombuffer(buffer.getbuffer(), np.uint8)


def unpack(blob: npt.NDArray[np.uint8]) -> Any:
    """Return what was packed."""
    return torch.load(io.BytesIO(blob.tobytes()), map_location="cpu", weights_only=False)
