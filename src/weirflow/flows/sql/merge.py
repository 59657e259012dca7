"""MERGE into a source: one query that finds, for each row, the clause it is for and the values it is to have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.errors import SqlTypeError
from weirflow.flows.sql.change_plan import CLAUSE, ROW, ChangePlan, Clause
from weirflow.flows.sql.changes import TARGET, MergeSource, RowChange, assigned_columns, expression, listed, old_row
from weirflow.flows.sql.stored_values import column_named, columns_named
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.changes import Merge, MergeClause, MergeDelete, MergeInsert, MergeUpdate, Target, When
from weirflow.sql.statements.composed import ComposedSql, Fragment
from weirflow.sql.syntax.parse import parse_query

if TYPE_CHECKING:
    from weirflow.flows.sql.queries import Rows

_GIVEN = "_weirflow_given"
_Value = Fragment | str | None


def merge(statement: Merge, changed: RowChange) -> tuple[ChangePlan, Rows]:
    """MERGE: each clause does its part to the rows that are for it and for none before it."""
    incoming = changed.incoming(statement.source)
    source_alias = quoted(source_name(statement.source))
    schema = changed.source.schema
    clauses, values = [], []
    for number, clause in enumerate(statement.clauses):
        action, given = _action(clause, statement.target, changed, incoming, source_alias)
        clauses.append(action)
        # Values are computed only for the rows of their clause: what others have may not fit them.
        values += [[f"CASE WHEN {CLAUSE} = {number} THEN ", *expression(one), " END"] for one in given]
    matching = [clause for clause in statement.clauses if clause.when is When.MATCHED]
    plan = ChangePlan(
        changed.source,
        tuple(clauses),
        is_merge=True,
        matches=bool(matching),
        # As Spark: several rows may match if nothing is done to matching rows, or all of them are deleted.
        one_match=bool(matching) and matching != [MergeClause(When.MATCHED, None, MergeDelete())],
    )
    wanted = f"{CLAUSE} IS NOT NULL" + (f" OR ({ROW} IS NOT NULL AND {_GIVEN} IS NOT NULL)" if plan.one_match else "")
    columns = [old_row(statement.target, schema), *([", "] if values else []), *listed(values)]
    joined = f" FROM {TARGET} AS {quoted(statement.target.alias)} {_join(statement.clauses)} "
    pieces = [
        "SELECT * FROM (SELECT ",
        f"{ROW}, ",
        *_chosen(statement.clauses),
        f" AS {CLAUSE}, ",
        *columns,
        f", {_GIVEN}{joined}",
        *("(SELECT *, TRUE AS ", _GIVEN, " FROM "),
        *incoming.pieces,
        f"\n) AS {source_alias} ON (",
        statement.on,
        f"\n)) WHERE {wanted}",
    ]
    return plan, changed.query(pieces, {TARGET: changed.target(numbered=True), **incoming.tables})


def source_name(source: Fragment) -> str:
    """What a MERGE calls its source."""
    query = ComposedSql(["SELECT * FROM ", source])
    return str(parse_query(query.text).args["from_"].this.alias_or_name)


def require_distinct(columns: Sequence[str]) -> None:
    """``SqlTypeError`` if the source of a MERGE has a column twice."""
    for name in columns:
        if columns.count(name) > 1:
            raise SqlTypeError(f"The MERGE's source has several columns {name!r}.", hint="rename them with AS")


def _action(
    clause: MergeClause, target: Target, changed: RowChange, incoming: MergeSource, source_alias: str
) -> tuple[Clause, Sequence[_Value]]:
    """What a clause does, and the values that it gives."""
    schema = changed.source.schema

    def of_source() -> list[str]:
        """For each column of the target, that of the source."""
        return [f"{source_alias}.{quoted(column_named(incoming.columns, name))}" for name in schema.names]

    match clause.action:
        case MergeDelete():
            return Clause(removes=True), ()
        case MergeUpdate(assignments=None):
            return Clause(removes=True, columns=tuple(schema.names)), of_source()
        case MergeUpdate(assignments=assignments):
            columns = assigned_columns(assignments or (), target, schema)
            return Clause(removes=True, columns=tuple(columns)), [one.value for one in assignments or ()]
        case MergeInsert() as action:
            values: Sequence[_Value] = of_source() if action.values is None else action.values
            columns = schema.names if action.columns is None else columns_named(schema.names, action.columns)
            if len(values) != len(columns):
                raise SqlTypeError(
                    f"There are {len(values)} values for the {len(columns)} columns {', '.join(columns)}."
                )
            return Clause(removes=False, columns=tuple(columns)), values


def _join(clauses: Sequence[MergeClause]) -> str:
    """The join that keeps the rows that clauses are for."""
    kinds = {clause.when for clause in clauses}
    if When.NOT_MATCHED in kinds:
        return "FULL JOIN" if When.NOT_MATCHED_BY_SOURCE in kinds else "RIGHT JOIN"
    return "LEFT JOIN" if When.NOT_MATCHED_BY_SOURCE in kinds else "JOIN"


def _chosen(clauses: Sequence[MergeClause]) -> list[str | Fragment]:
    """The number of the clause that a row is for: of those of its kind the first whose condition is true."""
    return [
        f"CASE WHEN {ROW} IS NULL THEN ",
        *_first(clauses, When.NOT_MATCHED),
        f" WHEN {_GIVEN} IS NULL THEN ",
        *_first(clauses, When.NOT_MATCHED_BY_SOURCE),
        " ELSE ",
        *_first(clauses, When.MATCHED),
        " END",
    ]


def _first(clauses: Sequence[MergeClause], when: When) -> list[str | Fragment]:
    pieces: list[str | Fragment] = []
    for number, clause in enumerate(clauses):
        if clause.when is when:
            condition = ["TRUE"] if clause.condition is None else expression(clause.condition)
            pieces += [" WHEN ", *condition, f" THEN {number}"]
    return ["CASE", *pieces, " END"] if pieces else ["CAST(NULL AS INT)"]
