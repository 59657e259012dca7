"""The contract every state backend keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

Changes: TypeAlias = Mapping[str, Mapping[bytes, bytes | None]]
"""For each operator, keys and the bytes they shall have; None removes a key."""


class StateReader(Protocol):
    """Bytes under keys, for each operator in the order of its keys. An operator that was never written is empty."""

    def get(self, operator: str, key: bytes) -> bytes | None:
        """What is under a key, or None."""

    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """What is under the keys ``[start, end)``, in order.

        It is read as it is asked for: what is written meanwhile may or may not be seen, all else is, once.
        """

    def operators(self) -> list[str]:
        """The operators that were written, in order, without ``layout.NOBODY``."""

    def close(self) -> None:
        """Let go of everything; nothing but ``close`` may be called afterwards."""


class StateSnapshot(StateReader, Protocol):
    """A backend as it was at one moment. Close it before, or with, its backend."""


class StateBackend(StateReader, Protocol):
    """A ``StateReader`` that can be written, by one thread at a time; others may read snapshots meanwhile.

    A failure of what is below is a StateError.
    """

    def multi_get(self, operator: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """What is under each of many keys."""

    def write(self, changes: Changes) -> None:
        """Apply all changes, of all operators, or none."""

    def snapshot(self) -> StateSnapshot:
        """Everything as it is now, of all operators at the same moment."""
