"""``VectorStore``: what a store has to do to hold the rows of a view, each once, whatever fails on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class VectorLayout:
    """The layout of the rows that a store receives.

    Attributes:
        schema: their columns. The column of the vectors is a list of ``dimension`` floats of 4 bytes.
        key: the columns that identify a row; never NULL.
        vector: the column of the vectors, which may be NULL.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    vector: str


@dataclass(frozen=True)
class VectorChanges:
    """Changes to the rows of a store. Each key occurs only once.

    Attributes:
        new: rows with keys that were not there.
        changed: rows with keys that were there already.
        gone: the keys of rows that are removed.
    """

    new: pa.Table
    changed: pa.Table
    gone: pa.Table


class VectorStore(Protocol):
    """Holds the rows of one view with their vectors, and the epoch of these rows.

    Calls come one at a time. Each call either writes everything together with the epoch, in one transaction, or it
    raises and has written nothing. If it is not known which of the two happened, the call can be repeated.
    """

    @property
    def dimension(self) -> int:
        """The length of the vectors that it holds."""

    def describe(self) -> str:
        """What is written and where, for people; without credentials."""

    def open(self, owner: str, layout: VectorLayout) -> None:
        """Called first, with what identifies this view of this flow, and its rows' layout.

        Creates what is missing to hold such rows. Raises if the existing table cannot hold them, or if another sink
        uses the store; its connections are then closed.
        """

    def position(self) -> int | None:
        """The epoch of the stored rows; None if nothing was written yet.

        Raises:
            SinkConflict: somebody other than the owner has written.
        """

    def apply(self, after: int, upto: int, changes: VectorChanges) -> None:
        """Bring the rows from one epoch to another. Even if there are no changes, the epoch is recorded.

        Does nothing if the rows are already of the later epoch.

        Raises:
            SinkConflict: the rows are of neither epoch, or no longer the owner's.
            DataError: a key that should be new exists already.
        """

    def backfill(self, epoch: int, rows: pa.Table) -> None:
        """Remove what is there, whoever has written it, and store these rows as those of an epoch."""

    def close(self) -> None:
        """Close connections. Written rows stay; ``open`` may be called again."""
