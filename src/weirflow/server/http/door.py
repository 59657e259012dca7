"""``HttpDoor``: HTTP on a socket, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from typing import TYPE_CHECKING

import uvicorn

from weirflow.errors import ConfigError
from weirflow.server.http.app import HttpApp
from weirflow.server.settings import parse_address

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.server.http.calls import Parts

_log = logging.getLogger(__name__)

_START_SECONDS = 10.0
_END_SECONDS = 5.0
_BACKLOG = 2_048


class HttpDoor:
    """Listens for HTTP. It is open when it has been made, and closed by ``close``.

    Args:
        parts: what the server has.
        address: ``host:port``; port 0 is any that is free.
        certificate: the certificate chain and the key for TLS; None for plain HTTP.

    Raises:
        ConfigError: nobody can listen there.
    """

    def __init__(self, parts: Parts, address: str, *, certificate: tuple[Path, Path] | None = None) -> None:
        self._socket = _listening(address)
        self._app = HttpApp(parts)
        self._loop: asyncio.AbstractEventLoop | None = None
        config = uvicorn.Config(
            self._app.asgi,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=int(_END_SECONDS),
            ssl_certfile=None if certificate is None else str(certificate[0]),
            ssl_keyfile=None if certificate is None else str(certificate[1]),
        )
        self._scheme = "http" if certificate is None else "https"
        self._server = uvicorn.Server(config)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="weirflow-http", daemon=True)
        self._thread.start()
        self._await_start(address)

    def _await_start(self, address: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.close()
                raise ConfigError(f"HTTP could not be opened at {address}: {self._failure or 'it took too long'}.")
            time.sleep(0.002)

    @property
    def address(self) -> str:
        """Where it listens, with the port that it has got."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def url(self) -> str:
        """Where it listens, as a URL."""
        return f"{self._scheme}://{self.address}"

    def end_streams(self) -> None:
        """End all streams of events; their readers are told that the server ends."""
        if self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._app.close(), self._loop).result(_END_SECONDS)

    def close(self) -> None:
        """Take no more connections, and wait for the answers that are under way."""
        self._server.should_exit = True
        self._thread.join(2 * _END_SECONDS)
        self._socket.close()

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._socket])

        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - told to who opens the door, and written to the log
            self._failure = error
            _log.warning("HTTP has ended", exc_info=error)


def _listening(address: str) -> socket.socket:
    host, port = parse_address(address)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"HTTP cannot listen at {address}: {error.strerror or error}.") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"HTTP cannot listen at {address}: {error.strerror or error}.",
            hint="another process may listen there; choose another port",
        ) from None
    return listening
