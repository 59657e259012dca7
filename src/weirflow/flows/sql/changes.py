"""INSERT, DELETE and UPDATE of a source: a query that finds rows, and what is done with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from weirflow.errors import SqlTypeError, UnsupportedError
from weirflow.flows.sql.change_plan import ChangePlan, Clause
from weirflow.flows.sql.stored_values import column_named, columns_named
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.cursor import Cursor

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.flows.sql.queries import Rows
    from weirflow.ivm.flow.source import Source
    from weirflow.sql.statements.changes import Assignment, Delete, Insert, Target, Update
    from weirflow.sql.statements.composed import Fragment

TARGET = "_weirflow_target"


@dataclass(frozen=True)
class MergeSource:
    """The source of a MERGE as its query reads it.

    Attributes:
        columns: its columns.
        pieces: SQL that stands for it behind FROM.
        tables: what that reads beside what is there anyway.
    """

    columns: Sequence[str]
    pieces: Sequence[str | Fragment]
    tables: Mapping[str, Rows] = field(default_factory=dict)


class RowChange(Protocol):
    """A source of a flow whose rows a statement reads and changes, wherever they are."""

    source: Source

    def target(self, *, numbered: bool = False) -> Rows:
        """All rows of the source; each with a number in a last column ``ROW``, if they shall be ``numbered``."""

    def incoming(self, source: Fragment) -> MergeSource:
        """The source of a MERGE."""

    def query(self, pieces: Sequence[str | Fragment], tables: Mapping[str, Rows]) -> Rows:
        """The rows of a query over the tables and all that the statement may read."""

    def width(self, rows: Rows) -> int:
        """How many columns they have."""


def insert(statement: Insert, changed: RowChange) -> tuple[ChangePlan, Rows]:
    """INSERT: the rows of its query come."""
    schema = changed.source.schema
    columns = schema.names if statement.columns is None else columns_named(schema.names, statement.columns)
    found = changed.query([statement.query], {})
    if changed.width(found) != len(columns):
        raise SqlTypeError(
            f"There are {changed.width(found)} values for the {len(columns)} columns {', '.join(columns)}.",
            condition="INSERT_COLUMN_ARITY_MISMATCH",
        )
    return ChangePlan(changed.source, (Clause(removes=False, columns=tuple(columns)),)), found


def delete(statement: Delete, changed: RowChange) -> tuple[ChangePlan, Rows]:
    """DELETE: the rows for which the condition is true go, or all."""
    plan = ChangePlan(changed.source, (Clause(removes=True),))
    if statement.where is None:
        return plan, changed.target()
    pieces = [f"SELECT {old_row(statement.target, plan.source.schema)}", *_from(statement.target, statement.where)]
    return plan, changed.query(pieces, {TARGET: changed.target()})


def update(statement: Update, changed: RowChange) -> tuple[ChangePlan, Rows]:
    """UPDATE: the rows for which the condition is true get new values, which are computed from the old ones."""
    schema = changed.source.schema
    columns = assigned_columns(statement.assignments, statement.target, schema)
    values = [expression(one.value) for one in statement.assignments]
    pieces = [f"SELECT {old_row(statement.target, schema)}, ", *listed(values)]
    plan = ChangePlan(changed.source, (Clause(removes=True, columns=tuple(columns)),))
    found = changed.query([*pieces, *_from(statement.target, statement.where)], {TARGET: changed.target()})
    return plan, found


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
            column_named(schema.names, left[0])
            raise UnsupportedError(
                f"{assignment.column.text} is a part of a column; only whole columns can be set.",
                hint=f"set {left[0]} to a new struct",
            )
        names.append(left[0])
    return columns_named(schema.names, names)


def old_row(target: Target, schema: pa.Schema) -> str:
    """The columns of a source's row in a SELECT, each with a name of its own."""
    alias = quoted(target.alias)
    return ", ".join(f"{alias}.{quoted(name)} AS _weirflow_old{at}" for at, name in enumerate(schema.names))


def expression(value: Fragment | str | None) -> list[str | Fragment]:
    """A value as it can stand anywhere in SQL; None is NULL."""
    return ["NULL"] if value is None else ["(", value, "\n)"]


def listed(values: Sequence[Sequence[str | Fragment]]) -> list[str | Fragment]:
    """Values as the columns of a SELECT, each with a name of its own."""
    pieces: list[str | Fragment] = []
    for number, value in enumerate(values):
        pieces += [*([", "] if number else []), *value, f" AS _weirflow_value{number}"]
    return pieces


def _from(target: Target, where: Fragment | None) -> list[str | Fragment]:
    source = f" FROM {TARGET} AS {quoted(target.alias)}"
    return [source] if where is None else [f"{source} WHERE (", where, "\n)"]
