"""The little that leases, nodes and documents need from a database. They write the same SQL for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from weirflow.errors import MetadataError


class Database(Protocol):
    """A connection that threads may share. Each statement is a transaction of its own.

    SQL marks values with ``?`` and asks for the database's clock, in seconds since 1970, with ``clock()``.
    Whatever fails is a ``MetadataError``.
    """

    @property
    def uri(self) -> str:
        """Where it is, without credentials."""
        ...

    def run(self, sql: str, values: Sequence[object] = (), *, repeatable: bool = True) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, once it is committed.

        A repeatable statement, which does no harm when it is done twice, is sent again if the connection was
        dropped; of another one that fails it may be unknown whether it was done.
        """
        ...

    def has_table(self, name: str) -> bool:
        """Whether a table of this name is there."""
        ...

    def create(self, statements: Sequence[str]) -> None:
        """Run statements without values as one transaction, of which one runs at a time, in whichever process."""
        ...

    def close(self) -> None:
        """End the connection; every later call fails."""
        ...


def opened_by_parent(uri: str) -> MetadataError:
    """The error for a connection that a forked child must leave to its parent."""
    return MetadataError(
        f"The metadata at {uri} was opened by the process that this one was forked from.",
        uri=uri,
        hint="start processes by 'spawn', not by 'fork', or open it in the child alone; leases stay with their process",
    )
