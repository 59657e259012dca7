"""Where a PostgreSQL database is, without ever showing the password."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from weirflow.errors import ConfigError

# A host that is gone without a word is noticed within seconds, unless the URI says otherwise.
_DEFAULTS: Mapping[str, object] = {
    "application_name": "weirflow",
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True)
class PostgresAddress:
    """What a ``postgresql://`` URI says.

    Attributes:
        shown: the URI without credentials, for people.
        conninfo: all of it, for libpq.
    """

    shown: str
    conninfo: str = field(repr=False)
    _secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, uri: str) -> PostgresAddress:
        """Read a URI; ``ConfigError`` if it is none, without repeating it."""
        given = _parse(uri)
        secrets = tuple(str(given[name]) for name in _SECRETS if given.get(name))
        return cls(_shown(given), make_conninfo("", **{**_DEFAULTS, **given}), secrets)

    def hidden(self, text: str) -> str:
        """A message of libpq's on one line, with stars for what is secret."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())


def _parse(uri: str) -> dict[str, Any]:
    # libpq ends a password at the first "@" or "/" and would repeat the rest of it as a host or database.
    authority, _, path = uri.removeprefix("postgresql://").partition("/")
    readable = authority.count("@") <= 1 and "@" not in path
    try:
        given = conninfo_to_dict(uri) if readable else None
    except psycopg.Error:
        given = None
    if given is None:
        raise ConfigError(
            "This postgresql:// URI cannot be read; it is not repeated here because it may hold a password.",
            hint="write postgresql://user:password@host:port/database, with @, / and other marks percent-encoded",
        )
    return dict(given)


def _shown(given: Mapping[str, Any]) -> str:
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{given.get('host') or 'localhost'}{port}/{given.get('dbname') or ''}"
