"""Metadata in PostgreSQL, for the processes of many machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from typing_extensions import override

from weirflow.errors import MetadataError
from weirflow.forks import never_finalize
from weirflow.metadata.database import Database
from weirflow.metadata.postgresql_address import PostgresAddress

_CLOCK = "extract(epoch FROM clock_timestamp())::double precision"
_CREATION_LOCK = "SELECT pg_advisory_xact_lock(7812361902)"


class PostgresDatabase(Database):
    """One connection, made when it is needed and again after it was dropped."""

    def __init__(self, uri: str) -> None:
        self._address = PostgresAddress.of(uri)
        self._connection: psycopg.Connection | None = None
        super().__init__(self._address.shown)

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
                self._connection = psycopg.connect(self._address.conninfo, autocommit=True, prepare_threshold=None)
            except psycopg.Error as error:
                raise self._failure(
                    f"cannot be reached: {error}", hint="check the address, the user and the password"
                ) from None
        return self._connection

    def _failure(self, what: str, hint: str | None = None) -> MetadataError:
        # Psycopg's errors hold the connection, and with it the password: they are never chained.
        return MetadataError(f"The metadata at {self.uri} {self._address.hidden(what)}.", uri=self.uri, hint=hint)
