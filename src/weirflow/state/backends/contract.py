"""The contract every state backend keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

Changes: TypeAlias = Mapping[str, Mapping[bytes, bytes | None]]
"""For each operator, keys and the bytes they shall have; None removes a key."""


class StateReader(Protocol):
    """Bytes under keys, for each operator in the order of its keys. An operator that was never written is empty."""

    def get(self, operator: str, key: bytes) -> bytes | None:
        """The value of a key, or None."""

    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """The keys in ``[start, end)`` with their values, in order.

        It is read while you iterate: what is written meanwhile may or may not be seen, and everything else is seen
        once.
        """

    def operators(self) -> list[str]:
        """The operators that have written something, in order, without ``layout.NOBODY``."""

    def close(self) -> None:
        """Free everything; after this, only ``close`` may be called."""


class StateSnapshot(StateReader, Protocol):
    """A backend as it was at one moment. Close it before, or with, its backend."""


class StateBackend(StateReader, Protocol):
    """A ``StateReader`` that one thread at a time may write; others may read snapshots meanwhile.

    A failure of the underlying store is a StateError.
    """

    def multi_get(self, operator: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of many keys."""

    def write(self, changes: Changes) -> None:
        """Apply all changes, of all operators, or none."""

    def snapshot(self) -> StateSnapshot:
        """Everything as it is now, of all operators at the same moment."""
