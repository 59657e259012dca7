"""The little that leases, nodes and documents need from a database. They write the same SQL for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Any

from weirflow.errors import MetadataError
from weirflow.forks import ProcessResource, keep_to_this_process


class Database(ProcessResource, ABC):
    """A database for metadata: a connection that threads may share, but a forked child may not use.

    Each statement is a transaction of its own.

    In its SQL, ``?`` stands for values, and ``clock()`` is the database's clock in seconds since 1970. Every failure is
    a ``MetadataError``.

    Attributes:
        uri: where it is, without credentials.
    """

    def __init__(self, uri: str, turn: Lock | None = None) -> None:
        self.uri = uri
        self._turn = turn or Lock()
        self._closed = False
        self._is_foreign = False
        keep_to_this_process(self)

    @abstractmethod
    def run(self, sql: str, values: Sequence[object] = (), *, repeatable: bool = True) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, once it is committed.

        A repeatable statement does no harm if it is done twice, so it is sent again if the connection was dropped. If
        another statement fails, it may be unknown whether it was done.
        """

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether a table of this name is there."""

    @abstractmethod
    def create(self, statements: Sequence[str]) -> None:
        """Run statements without values as one transaction; only one process at a time runs such a transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; every later call fails. Connections of a parent process, and shared ones, stay open."""

    def _require_own(self) -> None:
        if self._is_foreign:  # nor may its lock be waited for, which nobody here will ever let go
            raise opened_by_parent(self.uri)

    def _require_open(self) -> None:
        if self._closed:
            raise MetadataError(f"The metadata at {self.uri} was closed before this call.", uri=self.uri)


def opened_by_parent(uri: str) -> MetadataError:
    """The error for a connection that a forked child must leave to its parent."""
    return MetadataError(
        f"The metadata at {uri} was opened by the process that this one was forked from.",
        uri=uri,
        hint="start processes by 'spawn', not by 'fork', or open it in the child alone; leases stay with their process",
    )
