"""``ChangePlan``: what a statement does to a source with the rows that its query finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from weirflow.flows.sql.stored_values import stored

if TYPE_CHECKING:
    from weirflow.ivm.flow.source import Source

ROW = "_weirflow_row"
CLAUSE = "_weirflow_clause"


@dataclass(frozen=True)
class Clause:
    """What is done with the rows that are found for one clause of a statement.

    Attributes:
        removes: whether the source's row goes.
        columns: those of the row that comes that values are found for; None if none comes. Its other columns are as in
            the row that goes, or NULL.
    """

    removes: bool
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ChangePlan:
    """What is done with the rows that a query finds. It is plain data, for whoever has the rows.

    What the query finds has these columns, one behind the other: for a MERGE the number of the source's row, ``ROW``,
    and that of the clause, ``CLAUSE``; the columns of the source's row, if rows may go; the values for each clause.

    Attributes:
        source: what is changed.
        clauses: those of a MERGE; other statements have one.
        is_merge: whether rows say which clause they are for.
        matches: whether there are clauses of a MERGE for rows that match.
        one_match: whether no row may match several.
        time_zone: by whose clocks a time is stored as another type.
    """

    source: Source
    clauses: tuple[Clause, ...]
    is_merge: bool = False
    matches: bool = False
    one_match: bool = False
    time_zone: str = "UTC"

    @property
    def removes(self) -> bool:
        """Whether rows may go."""
        return any(clause.removes for clause in self.clauses)

    @property
    def moves_keys(self) -> bool:
        """Whether a row may get another key."""
        keys = set(self.source.key)
        return any(clause.removes and keys.intersection(clause.columns or ()) for clause in self.clauses)

    def apply(self, found: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The rows that go and the rows that come, of the source's schema.

        Raises:
            SqlTypeError: values of such a type are not stored in such a column without an explicit cast.
            DataError: a value does not fit its column, or is NULL where none may be.
        """
        schema = self.source.schema
        removed, added = [schema.empty_table()], [schema.empty_table()]
        begin = 2 if self.is_merge else 0
        end = begin + (len(schema) if self.is_merge or self.removes else 0)
        values = end
        for number, clause in enumerate(self.clauses):
            rows = found.filter(pc.equal(found.column(1), number)) if self.is_merge else found
            old = dict(zip(schema.names, rows.columns[begin:end], strict=True)) if clause.removes else {}
            if clause.removes:
                removed.append(stored(schema, old, rows.num_rows, self.time_zone))
            if clause.columns is not None:
                behind = values + len(clause.columns)
                new = dict(zip(clause.columns, rows.columns[values:behind], strict=True))
                added.append(stored(schema, {**old, **new}, rows.num_rows, self.time_zone))
                values = behind
        return pa.concat_tables(removed), pa.concat_tables(added)
