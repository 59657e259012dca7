"""Metadata in PostgreSQL, for the processes of many machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typing_extensions import override

from weirflow.errors import ConfigError, MetadataError
from weirflow.forks import never_finalize
from weirflow.metadata.database import Database

_CLOCK = "extract(epoch FROM clock_timestamp())::double precision"
_CREATION_LOCK = "SELECT pg_advisory_xact_lock(7812361902)"
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


class PostgresDatabase(Database):
    """One connection, made when it is needed and again after it was dropped."""

    def __init__(self, uri: str) -> None:
        given = _parse(uri)
        self._secrets = [str(given[name]) for name in _SECRETS if given.get(name)]
        self._conninfo = make_conninfo("", **{**_DEFAULTS, **given})
        self._connection: psycopg.Connection | None = None
        super().__init__(_shown(given))

    @override
    def run(self, sql: str, values: Sequence[object] = (), *, repeatable: bool = True) -> list[tuple[Any, ...]]:
        sql = sql.replace("clock()", _CLOCK).replace("?", "%s")
        self._require_own()
        with self._turn:
            if not repeatable:
                # A connection that was dropped while idle is found and made again before it matters.
                self._send("SELECT 1", None, again=True)
            return self._send(sql, values or None, again=repeatable)

    @override
    def has_table(self, name: str) -> bool:
        return self.run("SELECT to_regclass(?) IS NOT NULL", (name,)) == [(True,)]

    def create(self, statements: Sequence[str]) -> None:
        """Run statements as one transaction, in one message: a client that stops half-way holds up nobody."""
        self._require_own()
        with self._turn:
            self._send("; ".join([_CREATION_LOCK, *statements]), None, again=True)

    @override
    def close(self) -> None:
        if self._is_foreign:
            return
        with self._turn:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    @override
    def left_behind(self) -> None:
        self._is_foreign = True
        never_finalize(self._connection)

    def _send(self, sql: str, values: Sequence[object] | None, *, again: bool) -> list[tuple[Any, ...]]:
        connection = self._connected()
        try:
            return self._rows(connection, sql, values)
        except psycopg.Error as error:
            if not connection.closed:
                raise self._failure(f"refused a statement: {error}") from None
            self._connection = None
            if not again:
                raise self._failure(
                    "dropped the connection, and it is not known whether the last change was made",
                    hint="read what is there before you try again",
                ) from None
        connection = self._connected()
        try:
            return self._rows(connection, sql, values)
        except psycopg.Error as error:
            raise self._failure(f"failed twice: {error}") from None

    def _rows(self, connection: psycopg.Connection, sql: str, values: Sequence[object] | None) -> list[tuple[Any, ...]]:
        """What a statement returns. Whatever comes between, no connection is used again that still has an answer."""
        self._connection = None
        done = False
        try:
            cursor = connection.execute(sql.encode(), values)
            rows = cursor.fetchall() if cursor.description else []
            done = True
        except psycopg.Error:
            done = not connection.closed
            raise
        finally:
            if done:
                self._connection = connection
            else:
                connection.close()
        return rows

    def _connected(self) -> psycopg.Connection:
        self._require_open()
        if self._connection is None or self._connection.closed:
            try:
                # Statements are not prepared, so that a pooler may stand between.
                self._connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
            except psycopg.Error as error:
                raise self._failure(
                    f"cannot be reached: {error}", hint="check the address, the user and the password"
                ) from None
        return self._connection

    def _failure(self, what: str, hint: str | None = None) -> MetadataError:
        # Psycopg's errors hold the connection, and with it the password: they are never chained.
        for secret in self._secrets:
            what = what.replace(secret, "***")
        return MetadataError(f"The metadata at {self.uri} {' '.join(what.split())}.", uri=self.uri, hint=hint)


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
