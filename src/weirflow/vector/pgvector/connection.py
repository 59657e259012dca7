"""One connection to PostgreSQL, for transactions that can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import psycopg
from typing_extensions import override

from weirflow.errors import VectorStoreError, WeirflowError
from weirflow.failpoints import failpoint
from weirflow.forks import ProcessResource, keep_to_this_process, never_finalize
from weirflow.metadata.postgresql_address import PostgresAddress

Result = TypeVar("Result")
Connection = psycopg.Connection[tuple[Any, ...]]


class PgConnection(ProcessResource):
    """Made when it is needed, and again after it was dropped or interrupted; a forked child is refused.

    Args:
        uri: ``postgresql://...``.

    Attributes:
        shown: the URI without credentials.
    """

    def __init__(self, uri: str) -> None:
        self._address = PostgresAddress.of(uri)
        self.shown = self._address.shown
        self._turn = Lock()
        self._connection: Connection | None = None
        self._is_foreign = False
        keep_to_this_process(self)

    def transact(self, what: str, work: Callable[[Connection], Result]) -> Result:
        """What ``work`` returns, once all it did is committed.

        It is done again from the start if the connection is lost, also if that is while it is committed: then it has
        to find out by itself that it was done.

        Args:
            what: what it does, for people: ``write to the table t``.
            work: is given the connection, in a transaction.

        Raises:
            VectorStoreError: PostgreSQL cannot be reached or refused a statement; nothing was committed, unless the
                message says that it is not known.
        """
        if self._is_foreign:  # nor may its lock be waited for, which nobody here will ever let go
            raise self._failure(
                what,
                "the connection belongs to the process that this one was forked from",
                "start processes by 'spawn', or open the flow in the child alone",
            )
        with self._turn:
            try:
                return self._once(work)
            except psycopg.Error as error:
                if self._connection is not None:  # it works: what was refused will be refused again
                    raise self._failure(what, _said(error)) from None
            try:
                return self._once(work)
            except psycopg.Error as error:
                raise self._failure(what, _said(error)) from None

    def close(self) -> None:
        """Let go of the connection; the next transaction makes another."""
        if self._is_foreign:
            return
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @override
    def left_behind(self) -> None:
        self._is_foreign = True
        never_finalize(self._connection)

    def _once(self, work: Callable[[Connection], Result]) -> Result:
        """Whatever comes between, no connection is used again whose state is not known."""
        connection = self._connected()
        self._connection = None
        usable = False
        try:
            with connection.transaction():
                result = work(connection)
                failpoint("vector.before_commit")
            failpoint("vector.after_commit")
            usable = True
        except (psycopg.Error, WeirflowError):
            usable = not connection.closed
            raise
        finally:
            if usable:
                self._connection = connection
            else:
                connection.close()
        return result

    def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            # Statements are not prepared, so that a pooler may stand between.
            return psycopg.connect(
                self._address.conninfo, autocommit=True, prepare_threshold=None, client_encoding="UTF8"
            )
        except psycopg.Error as error:
            raise self._failure(
                "be reached", str(error), "check that it runs there, and check the user and the password"
            ) from None

    def _failure(self, what: str, why: str, hint: str | None = None) -> VectorStoreError:
        # Psycopg's errors hold the connection, and with it the password: they are never chained.
        why = self._address.hidden(why).rstrip(".")
        return VectorStoreError(f"PostgreSQL at {self.shown} could not {what}: {why}.", uri=self.shown, hint=hint)


def _said(error: psycopg.Error) -> str:
    """What PostgreSQL said, without the statement that it was about."""
    return error.diag.message_primary or str(error)
