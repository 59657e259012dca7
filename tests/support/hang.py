"""Endpoints that are of no use: one that never answers, and one that is not there."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

from support.processes import free_port


class HangingEndpoint:
    """A TCP server on 127.0.0.1 that accepts every connection and never says a word."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, name="hanging-endpoint", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def connections(self) -> int:
        """How many connections were accepted so far."""
        return len(self._accepted)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread; close() alone does not
        self._listener.close()
        self._thread.join()
        for connection in self._accepted:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._accepted.append(connection)


def dead_port() -> int:
    """A port on 127.0.0.1 at which nothing listens."""
    return free_port()
