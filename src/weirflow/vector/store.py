"""``VectorStore``: what a store has to do to hold the rows of a view, each once, whatever fails on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class VectorLayout:
    """The rows that a store is given.

    Attributes:
        schema: their columns. That of the vectors is a list of ``dimension`` floats of 4 bytes.
        key: the columns that identify a row; never NULL.
        vector: the column of the vectors, which may be NULL.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    vector: str


@dataclass(frozen=True)
class VectorChanges:
    """What becomes of the rows of a store; no key is in it twice.

    Attributes:
        new: rows whose keys were not there.
        changed: rows whose keys were there.
        gone: the keys of rows that are not there any more.
    """

    new: pa.Table
    changed: pa.Table
    gone: pa.Table


class VectorStore(Protocol):
    """Holds the rows of one view with their vectors, and the epoch that they are of.

    Calls come one at a time. Each writes all that it is given together with the epoch, in one transaction, or raises
    and has written nothing; where that is not known, it can be repeated.
    """

    @property
    def dimension(self) -> int:
        """The length of the vectors that it holds."""

    def describe(self) -> str:
        """What is written and where, for people; without credentials."""

    def open(self, owner: str, layout: VectorLayout) -> None:
        """Called first, with what tells this view of this flow from all others, and its rows' layout.

        Makes what is missing to hold such rows, and raises if what is there cannot, or if another sink uses the store.
        What raises has let go of its connections.
        """

    def position(self) -> int | None:
        """The epoch of the rows that are there; None if nobody has written yet.

        Raises:
            SinkConflict: somebody else than the owner has written.
        """

    def apply(self, after: int, upto: int, changes: VectorChanges) -> None:
        """Bring the rows from one epoch to another. There may be no changes; the epoch is recorded all the same.

        Does nothing if the rows are of the later epoch already.

        Raises:
            SinkConflict: the rows are of neither epoch, or not the owner's any more.
            DataError: a key that should be new is there.
        """

    def backfill(self, epoch: int, rows: pa.Table) -> None:
        """Forget what is there, whoever has written it, and hold these rows as those of an epoch."""

    def close(self) -> None:
        """Let go of connections. What is written stays; ``open`` may be called again."""
