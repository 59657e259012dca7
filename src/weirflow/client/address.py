"""Where a server is: ``weirflow://host:port``, or ``weirflow+tls://host:port``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weirflow.errors import ConfigError

DEFAULT_PORT = 8815
"""Where a server listens for Flight unless it is told otherwise."""
ACCEPTED = "write weirflow://HOST[:PORT], or weirflow+tls://HOST[:PORT] for TLS"

_ADDRESS = re.compile(
    r"(weirflow|weirflow\+tls)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)(?::([0-9]{1,5}))?/?"
)
_MAX_PORT = 65535


@dataclass(frozen=True)
class Address:
    """A server's.

    Attributes:
        host: a name, or an IP address, IPv6 in brackets.
        port: where it listens for Flight.
        tls: whether the connection is encrypted.
    """

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return f"weirflow{'+tls' if self.tls else ''}://{self.host}:{self.port}"

    @property
    def location(self) -> str:
        """The address as Flight has it."""
        return f"grpc{'+tls' if self.tls else '+tcp'}://{self.host}:{self.port}"


def is_server(endpoint: str) -> bool:
    """Whether an endpoint is a server of ours, if it can be read.

    >>> is_server("weirflow://localhost"), is_server("sc://localhost")
    (True, False)
    """
    return endpoint.partition("://")[0] in ("weirflow", "weirflow+tls")


def parse_address(endpoint: str) -> Address:
    """Read an address; ``ConfigError`` for one that cannot be used, which repeats no more of it than the scheme.

    >>> parse_address("weirflow+tls://flows.example.com").location
    'grpc+tls://flows.example.com:8815'
    """
    found = _ADDRESS.fullmatch(endpoint)
    if found is None or (found[3] is not None and not 0 < int(found[3]) <= _MAX_PORT):
        scheme = endpoint.partition("://")[0]
        raise ConfigError(f"The address of a server ({scheme[:20]}://…) cannot be read.", hint=ACCEPTED)
    return Address(found[2], int(found[3] or DEFAULT_PORT), found[1].endswith("tls"))
