"""Whether the head of a cluster still answers: Ray itself would wait for it in silence, and then end the process."""

from __future__ import annotations

import os
import socket
import time

import ray

from ninetka_train.cluster.queue import ClusterError

SECONDS = 5.0
"""How long to wait for an answer."""
PATIENCE = 20.0
"""Seconds without an answer after which the head is given up; Ray would end the process after a minute."""


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How an HTTP/2 client begins (RFC 9113, section 3.4): the preface, then an empty SETTINGS frame."""
SETTINGS = 4
"""The type of the frame that a server answers with, in the fourth byte."""


def check_answers(address: str) -> None:
    """Raise `OSError` if no Ray head answers at HOST:PORT within seconds; Ray itself would try for minutes.

    A head is a gRPC server, and so an HTTP/2 server. One that accepts connections but hangs does not answer.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        return
    with socket.create_connection((host.strip("[]"), int(port)), SECONDS) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):  # such a head answers encrypted clients only
            return
        try:
            connection.sendall(HELLO)
            answer = connection.recv(9)
        except TimeoutError:
            raise TimeoutError(f"it accepts connections, but has sent no answer for {SECONDS:g} seconds") from None
    if answer[3:4] != bytes([SETTINGS]):
        raise ConnectionError("another program listens at this port" if answer else "it closes connections at once")


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
            now = time.perf_counter()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > PATIENCE:
                raise ClusterError(f"the cluster is lost: its head at {self.address} does not answer") from None
            return False
        self._silent_since = None
        return True
