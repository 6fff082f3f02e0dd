"""Whether the head of a cluster still answers: Ray itself would wait for it in silence, and then end the process."""

from __future__ import annotations

import socket
import time

import ray

from ninetka_train.cluster.queue import ClusterError

SECONDS = 5.0
"""How long to wait for an answer."""
PATIENCE = 20.0
"""Seconds without an answer after which the head is given up; Ray would end the process after a minute."""


def check_answers(address: str) -> None:
    """Raise `OSError` if nobody listens at HOST:PORT, which Ray would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon:
        with socket.create_connection((host.strip("[]"), int(port)), SECONDS):
            pass


class Head:
    """The head of the cluster that this process is connected to."""

    def __init__(self) -> None:
        """Take it to be well."""
        self.address = ray.get_runtime_context().gcs_address
        self._silent_since: float | None = None

    def answers(self) -> bool:
        """Tell whether it answers, so that what Ray asks it for comes back.

        Raises:
            ClusterError: if it has been silent for long.
        """
        try:
            check_answers(self.address)
        except OSError:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > PATIENCE:
                raise ClusterError(f"the cluster is lost: its head at {self.address} does not answer") from None
            return False
        self._silent_since = None
        return True
