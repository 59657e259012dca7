"""What a server would do with its settings, found out without starting it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import WeirflowError
from weirflow.server.access.gate import is_loopback
from weirflow.server.access.tokens import Tokens
from weirflow.server.server import audit_file, issuer_of, spool_place
from weirflow.server.settings import parse_address
from weirflow.server.store import is_kept, open_store
from weirflow.session.profiles import resolve_stores
from weirflow.types import Profile

if TYPE_CHECKING:
    from weirflow.server.settings import ServerConfig


@dataclass(frozen=True)
class Plan:
    """What would be started, line by line, and what stands in the way."""

    lines: dict[str, str]
    problems: list[str]


def plan_of(config: ServerConfig) -> Plan:
    """The plan of a server; opens no port for longer than a moment, and starts neither Spark nor flows."""
    settings, session = config.server, config.session
    stores = resolve_stores(session)
    problems: list[str] = []
    lines = {
        "settings": str(config.file or "options and variables"),
        "placement": session.placement.value,
        "profile": stores.profile.value,
        "path": str(session.path or "none: nothing is kept"),
        "http": _door(settings.http, problems),
        "flight": _door(settings.flight, problems),
        "tls": "on" if settings.tls_certificate else "off",
        "callers": _callers(config, problems),
        "audit log": str(audit_file(config) or "the logger weirflow.audit"),
        "spool": spool_place(config) or "a temporary folder",
        "flows": ", ".join(_flows(config)) or "none yet",
        "startup": ", ".join(settings.startup) or "none",
    }
    if settings.tls_certificate is None:
        for door, address in (("HTTP", settings.http), ("Flight", settings.flight)):
            if address is not None and not is_loopback(parse_address(address)[0]):
                lines["warning"] = (
                    f"{door} at {address} is not encrypted; set up TLS, or a proxy with TLS in front of it"
                )
    return Plan(lines, problems)


def _door(address: str | None, problems: list[str]) -> str:
    if address is None:
        return "off"
    host, port = parse_address(address)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(place)
    except OSError as error:
        problems.append(f"the server cannot listen at {address}: {error.strerror or error}")
    return address


def _callers(config: ServerConfig, problems: list[str]) -> str:
    found = ["everybody on this machine, without a token"] if config.server.insecure else []
    try:
        if issuer_of(config.server) is not None:
            found.append(f"JWTs of {config.server.issuer}")
        if is_kept(config.session) and not _is_new(config):
            with open_store(config.session) as store:
                tokens = Tokens(store).all()
            if tokens:
                found.append(f"{len(tokens)} tokens")
    except WeirflowError as error:
        problems.append(error.message)
        return "not known"
    if not found:
        problems.append("there are no tokens, so nobody could use it: weirflow tokens create NAME --role admin")
    return ", ".join(found) or "nobody"


def _is_new(config: ServerConfig) -> bool:
    """Whether looking would make the folder of a Session that is not there yet."""
    is_local = resolve_stores(config.session).profile is Profile.SINGLE_NODE_DURABLE
    return is_local and config.session.path is not None and not (config.session.path / "metadata.db").exists()


def _flows(config: ServerConfig) -> list[str]:
    path = config.session.path
    if path is None:
        return []
    folders = [path / "flows", path / "partitioned"]
    return sorted(one.name for folder in folders if folder.is_dir() for one in folder.iterdir() if one.is_dir())
