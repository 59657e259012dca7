"""INSERT, DELETE and UPDATE of a source: what they ask for, as a delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError, SqlTypeError, UnsupportedError
from weirflow.ivm.zset.batch import Batch, one_array
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import consolidate, group_rows
from weirflow.session.stored_values import column_named, columns_named, stored
from weirflow.sql.composed import ComposedSql, Fragment
from weirflow.sql.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weirflow.ivm.flow.source import Source
    from weirflow.session.flow_queries import FlowQueries
    from weirflow.session.flows import SessionFlow
    from weirflow.sql.change_statements import Assignment, Delete, Insert, Target, Update

TARGET = "_weirflow_target"
ROW = "_weirflow_row"


@dataclass(frozen=True)
class Edit:
    """What a statement does to a source.

    Attributes:
        removed: which of its rows go, by their numbers; none twice.
        added: rows that come, of its schema.
        moves_keys: whether an update may have given a row another key.
    """

    removed: NDArray[np.int64]
    added: pa.Table
    moves_keys: bool = False


class SourceRows:
    """The rows of a source with numbers, as the statements of one change see them.

    Equal rows have different numbers: each is a row of its own.
    """

    def __init__(self, flow: SessionFlow, name: str, queries: FlowQueries) -> None:
        self.source: Source = flow.source(name)
        self.schema = self.source.schema
        self._flow = flow
        self._queries = queries
        self._rows: pa.Table | None = None

    @property
    def rows(self) -> pa.Table:
        """All rows, read when first asked for."""
        if self._rows is None:
            self._rows = self._flow.snapshot(self.source.name)
        return self._rows

    @property
    def numbered(self) -> pa.Table:
        """All rows with their numbers in the column ``ROW``."""
        return with_numbers(self.rows, ROW)

    def query(self, pieces: Sequence[str | Fragment], tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a query over the tables and all that the statement may read."""
        return self._queries.run(ComposedSql(pieces), tables)

    def updated(self, found: pa.Table, columns: Sequence[str]) -> pa.Table:
        """The rows whose numbers are in the first column of ``found``, with its others in place of ``columns``."""
        rows = self.rows.take(found.column(0))
        old = dict(zip(rows.schema.names, rows.columns, strict=True))
        new = dict(zip(columns, found.columns[1:], strict=True))
        return stored(self.schema, {**old, **new}, found.num_rows)

    def delta(self, edit: Edit) -> DeltaBatch:
        """The edit as a delta.

        Raises:
            DataError: rows that are too old to be changed would be, or two rows would have one key.
        """
        removed = self.rows.take(pa.array(edit.removed)) if len(edit.removed) else self.schema.empty_table()
        late = self._flow.too_late(self.source.name, removed)
        if late:
            raise DataError(
                f"{late} of the rows to be changed are older than the lateness of {self.source.name!r} allows.",
                hint="leave out rows before the newest event time minus the lateness",
            )
        if self.source.key:
            self._require_one_row_for_a_key(edit)
        retracted, inserted = Batch.of_arrow(removed, -1), Batch.of_arrow(edit.added)
        return DeltaBatch.of_batch(self.schema, Batch.concat([retracted, inserted]))

    def _require_one_row_for_a_key(self, edit: Edit) -> None:
        rows = consolidate(Batch.of_arrow(edit.added))
        if edit.moves_keys:
            stays = np.ones(self.rows.num_rows, np.bool_)
            stays[edit.removed] = False
            rows = Batch.concat([rows, Batch.of_arrow(self.rows.filter(pa.array(stays)))])
        places = [self.schema.names.index(column) for column in self.source.key]
        keys = [rows.columns[place] for place in places]
        order, starts, _ = group_rows(keys, len(rows))
        if len(starts) < len(rows):
            ends = np.append(starts[1:], len(rows))
            at = int(order[starts[int(np.argmax(ends - starts))]])
            key = {column: values[at].as_py() for column, values in zip(self.source.key, keys, strict=True)}
            raise DataError(
                f"The statement leaves several rows for one key of {self.source.name!r}: {key}.",
                hint="give each key one row",
            )


def insert(statement: Insert, rows: SourceRows) -> Edit:
    """INSERT: the rows of its query."""
    schema = rows.schema
    columns = schema.names if statement.columns is None else columns_named(schema, statement.columns)
    found = rows.query([statement.query], {})
    if found.num_columns != len(columns):
        raise SqlTypeError(
            f"{found.num_columns} values for the {len(columns)} columns {', '.join(columns)}.",
            condition="INSERT_COLUMN_ARITY_MISMATCH",
        )
    added = stored(schema, dict(zip(columns, found.columns, strict=True)), found.num_rows)
    return Edit(np.zeros(0, np.int64), added)


def delete(statement: Delete, rows: SourceRows) -> Edit:
    """DELETE: the rows for which the condition is true, or all."""
    nothing = rows.schema.empty_table()
    if statement.where is None:
        return Edit(np.arange(rows.rows.num_rows), nothing)
    found = rows.query([f"SELECT {ROW}", *_from(statement.target, statement.where)], {TARGET: rows.numbered})
    return Edit(numbers(found.column(0)), nothing)


def update(statement: Update, rows: SourceRows) -> Edit:
    """UPDATE: the rows for which the condition is true, with new values that are computed from the old ones."""
    columns = assigned_columns(statement.assignments, statement.target, rows.schema)
    values = listed([assignment.value for assignment in statement.assignments])
    pieces = [f"SELECT {ROW}, ", *values, *_from(statement.target, statement.where)]
    found = rows.query(pieces, {TARGET: rows.numbered})
    return Edit(
        numbers(found.column(0)), rows.updated(found, columns), moves_keys=bool({*columns} & {*rows.source.key})
    )


def assigned_columns(assignments: Sequence[Assignment], target: Target, schema: pa.Schema) -> list[str]:
    """The columns that SET names, with or without the target's name."""
    known = [(target.alias,), (target.name.name,), (target.name.flow, target.name.name)]
    prefixes = [tuple(part.casefold() for part in prefix if part) for prefix in known]
    names = []
    for assignment in assignments:
        parts = Cursor(assignment.column.text).names()
        behind = [len(prefix) for prefix in prefixes if tuple(part.casefold() for part in parts[:-1]) == prefix]
        left = parts[max(behind, default=0) :]
        if len(left) > 1:
            column_named(schema, left[0])
            raise UnsupportedError(
                f"{assignment.column.text} is a part of a column; only whole columns are set.",
                hint=f"set {left[0]} to a new struct",
            )
        names.append(left[0])
    return columns_named(schema, names)


def listed(values: Sequence[Fragment | str | None]) -> list[str | Fragment]:
    """Expressions as the columns of a SELECT, each with a name of its own; None is NULL."""
    pieces: list[str | Fragment] = []
    for number, value in enumerate(values):
        expression: list[str | Fragment] = ["NULL"] if value is None else ["(", value, "\n)"]
        pieces += [*([", "] if number else []), *expression, f" AS _weirflow_value{number}"]
    return pieces


def numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A column of row numbers."""
    found: NDArray[np.int64] = one_array(column).to_numpy(zero_copy_only=False)
    return found


def with_numbers(table: pa.Table, column: str) -> pa.Table:
    """The table with a last column that numbers its rows."""
    return table.append_column(column, pa.array(np.arange(table.num_rows)))


def quoted(name: str) -> str:
    """A name as SQL reads it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _from(target: Target, where: Fragment | None) -> list[str | Fragment]:
    source = f" FROM {TARGET} AS {quoted(target.alias)}"
    return [source] if where is None else [f"{source} WHERE (", where, "\n)"]
