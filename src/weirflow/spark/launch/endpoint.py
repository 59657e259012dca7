"""Which remote Spark a session was told to use, read from ``sc://...`` or ``spark://...``."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import unquote

from weirflow.errors import ConfigError

DEFAULT_CONNECT_PORT = 15002
MAX_PORT = 65535
MAX_USER_AGENT = 2048
ACCEPTED = "accepted are sc://HOST[:PORT] (Spark Connect) and spark://HOST:PORT[,HOST:PORT...] (a standalone master)"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
# Names PySpark does not know travel as gRPC headers.
_PARAM_NAME = re.compile(r"[a-z0-9_.-]+")
# What a client must name explicitly, never inside an address that is logged and passed around.
_SECRET_PARAMS = frozenset({"token", "authorization", "password", "secret"})


class HostPort(NamedTuple):
    """One host, a name or an IP address without brackets, and its port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine, by name or by address."""
        if self.host.rstrip(".").lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class Endpoint:
    """A remote Spark: a Spark Connect server, or one or more standalone masters.

    Attributes:
        scheme: ``sc`` for Spark Connect, ``spark`` for standalone masters.
        hosts: where it listens; several only for standalone masters that stand in for each other.
        params: parameters of a Spark Connect address, decoded; kept out of ``str`` and ``repr``.
    """

    scheme: Literal["sc", "spark"]
    hosts: tuple[HostPort, ...]
    params: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def __str__(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        """The address without parameters; for ``spark`` this is the master URL."""
        return f"{self.scheme}://{','.join(map(str, self.hosts))}"

    @property
    def use_ssl(self) -> bool | None:
        """Whether TLS was asked for; None when the address does not say."""
        value = self.params.get("use_ssl")
        return None if value is None else value.lower() == "true"


def parse_endpoint(endpoint: str) -> Endpoint:
    """Read an endpoint, or raise ``ConfigError``; nothing is looked up or opened.

    Messages never repeat what follows the host, where a secret could be.

    >>> parse_endpoint("sc://spark.example.com/;use_ssl=true").url
    'sc://spark.example.com:15002'
    """
    if not isinstance(endpoint, str):
        raise ConfigError(f"The endpoint is a {type(endpoint).__name__}, not a string.", hint=ACCEPTED)
    match = _SCHEME.fullmatch(endpoint)
    if match is None or match[1] not in {"sc", "spark"}:
        raise ConfigError(f"The endpoint {_shown(endpoint)!r} is not one Weirflow can use.", hint=ACCEPTED)
    if match[1] == "sc":
        return _parse_connect(endpoint, match[2])
    return _parse_standalone(endpoint, match[2])


def _parse_connect(endpoint: str, rest: str) -> Endpoint:
    address, _, tail = rest.partition(";")
    authority, slash, path = address.partition("/")
    if path:
        raise _malformed(endpoint, "a Spark Connect address has no path: parameters follow '/;'")
    if tail and not slash:
        raise _malformed(endpoint, "parameters follow '/;', as in sc://HOST:PORT/;user_id=ann")
    params: dict[str, str] = {}
    for part in filter(None, tail.split(";")):
        # PySpark takes no second '='; a base64 value must be percent-encoded.
        if part.count("=") != 1:
            raise _malformed(endpoint, "each parameter is NAME=VALUE, special characters percent-encoded")
        name, value = (unquote(piece) for piece in part.split("="))
        _check_param(endpoint, name, value)
        params[name] = value
    return Endpoint("sc", (_host_port(endpoint, authority, default_port=DEFAULT_CONNECT_PORT),), params)


def _parse_standalone(endpoint: str, rest: str) -> Endpoint:
    if re.search(r"[;/?#]", rest):
        raise _malformed(endpoint, "a standalone master is HOST:PORT without path or parameters")
    hosts = tuple(_host_port(endpoint, authority, default_port=None) for authority in rest.split(","))
    if any("_" in host for host, _ in hosts):
        raise _malformed(endpoint, "Java refuses host names with an underscore")
    return Endpoint("spark", hosts)


def _check_param(endpoint: str, name: str, value: str) -> None:
    if name.lower() in _SECRET_PARAMS:
        raise ConfigError(
            f"The endpoint {_shown(endpoint)!r} carries a secret ({name.lower()}) in its address.",
            hint="pass it as token=..., where it is kept out of logs and errors",
        )
    sendable = value.isprintable() and (name == "user_id" or value.isascii())
    if not _PARAM_NAME.fullmatch(name) or not sendable:
        raise _malformed(endpoint, "parameter names are lower case, and values printable ASCII")
    if name == "use_ssl" and value.lower() not in {"true", "false"}:
        raise _malformed(endpoint, "use_ssl is true or false")
    if name == "session_id" and not _is_uuid(value):
        raise _malformed(endpoint, "session_id is a UUID")
    if name == "user_agent" and len(value) > MAX_USER_AGENT:
        raise _malformed(endpoint, f"user_agent has at most {MAX_USER_AGENT} characters")


def _host_port(endpoint: str, authority: str, *, default_port: int | None) -> HostPort:
    if "@" in authority:
        raise _malformed(endpoint, "a user or password in front of the host is not supported")
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", authority)
    host, port = bracketed.groups() if bracketed else (authority.partition(":")[0], _after_colon(authority))
    if not host:
        raise _malformed(endpoint, "the host is missing")
    if not (_is_ipv6(host) if bracketed else _HOST_NAME.fullmatch(host)):
        raise _malformed(endpoint, "the host is neither a name nor an IP address (IPv6 goes into brackets)")
    if port is None:
        if default_port is None:
            raise _malformed(endpoint, "the port is missing; a standalone master usually has 7077")
        return HostPort(host, default_port)
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
        raise _malformed(endpoint, f"the port is not a number from 1 to {MAX_PORT}")
    return HostPort(host, int(port))


def _after_colon(authority: str) -> str | None:
    _, colon, port = authority.partition(":")
    return port if colon else None


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6  # noqa: PLR2004  a protocol's name, not a quantity
    except ValueError:
        return False


def _is_uuid(value: str) -> bool:
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return True


def _malformed(endpoint: str, problem: str) -> ConfigError:
    return ConfigError(f"The endpoint {_shown(endpoint)!r} cannot be read: {problem}.", hint=ACCEPTED)


def _shown(endpoint: str) -> str:
    """The part of an address that cannot hold a secret: scheme and host."""
    scheme, separator, rest = endpoint.partition("://")
    if not separator:
        scheme, rest = "", endpoint
    authority = re.split(r"[;/?#=\s]", rest, maxsplit=1)[0].rpartition("@")[2]
    cut = "..." if len(authority) < len(rest) else ""
    return f"{scheme}{separator}{authority}{cut}"
