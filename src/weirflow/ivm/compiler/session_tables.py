"""Tables of a Session that views read, as far as a flow knows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from weirflow.ivm.compiler.view import RecomputeEngine
from weirflow.sql.snapshots import snapshots_of

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import TypeIs


@dataclass(frozen=True)
class SessionTable:
    """A table, view or file that is none of the flow's.

    Attributes:
        name: as SQL names it, wherever the Session's current schema is.
        schema: its columns, all of them nullable.
    """

    name: str
    schema: pa.Schema

    def snapshot_in(self, relations: Mapping[str, pa.Schema]) -> str | None:
        """That of the relations which is a snapshot of it, of the columns that it has; None if there is none."""
        for name in snapshots_of(self.name, relations):
            if (relations[name].names, relations[name].types) == (self.schema.names, self.schema.types):
                return name
        return None


@runtime_checkable
class TableEngine(RecomputeEngine, Protocol):
    """An engine whose tables views may read."""

    def tables(self, sql: str, known: Collection[str]) -> Sequence[SessionTable]:
        """The tables that a query reads besides relations of the flow, which have the names that are ``known``.

        What is found nowhere is left out. Reads no rows.

        Raises:
            UnsupportedError: it reads one in a way of which there is no snapshot.
        """

    def table(self, name: str) -> SessionTable:
        """A table as it is now, whatever was changed behind Spark's back; ``TableNotFound`` if it is gone."""

    def rows(self, table: SessionTable) -> pa.Table:
        """All rows of the columns of a table.

        Raises:
            ResultTooLarge: they are more than one process should hold.
        """


def can_read_tables(engine: RecomputeEngine | None) -> TypeIs[TableEngine]:
    """Whether there is an engine whose tables views may read."""
    return isinstance(engine, TableEngine)
