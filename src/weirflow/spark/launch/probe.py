"""Whether anything listens at an address, asked before a slow client does."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from weirflow.errors import EndpointUnreachable
from weirflow.spark.launch.endpoint import HostPort

CHECK = "check the host and port, that the server runs, and that no firewall is in between"


def probe_tcp(host: str, port: int, timeout: float) -> None:
    """Open and close one TCP connection, or raise ``EndpointUnreachable`` within ``timeout`` seconds.

    The name lookup counts too. A server that accepts and then says nothing passes.
    """
    end = time.monotonic() + timeout
    where = HostPort(host, port)
    reason: OSError | None = None
    for family, kind, protocol, _, address in _resolve(where, timeout):
        try:
            with socket.socket(family, kind, protocol) as client:
                client.settimeout(max(end - time.monotonic(), 0.001))
                client.connect(address)
                return
        except OSError as error:
            reason = error
    raise EndpointUnreachable(f"{where} cannot be reached: {_said(reason, timeout)}.", hint=CHECK) from None


def _resolve(where: HostPort, timeout: float) -> list[Any]:
    found: list[Any] = []
    failed: list[OSError] = []

    def look_up() -> None:
        try:
            found.extend(socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failed.append(error if isinstance(error, OSError) else OSError(str(error)))

    # The resolver has no deadline of its own; the thread ends when the resolver does.
    thread = threading.Thread(target=look_up, name="weirflow-name-lookup", daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        raise EndpointUnreachable(
            f"{where} cannot be reached: the name was not resolved within {timeout:g} s.", hint=CHECK
        )
    if failed:
        raise EndpointUnreachable(
            f"{where} cannot be reached: the host name is not known ({failed[0].strerror or failed[0]}).",
            hint=CHECK,
        )
    return found


def _said(reason: OSError | None, timeout: float) -> str:
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there (connection refused)"
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s"
    return (reason.strerror if reason is not None else None) or "it has no address"
