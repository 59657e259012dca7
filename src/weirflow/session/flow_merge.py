"""MERGE into a source: which rows match, which clause each is for, and what that does, as a delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError, SqlTypeError
from weirflow.session.flow_changes import ROW, TARGET, Edit, assigned_columns, listed, numbers, quoted, with_numbers
from weirflow.session.stored_values import column_named, columns_named, stored
from weirflow.sql.change_statements import MergeClause, MergeDelete, MergeInsert, MergeUpdate, When
from weirflow.sql.composed import ComposedSql, Fragment
from weirflow.sql.parse import parse_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weirflow.session.flow_changes import SourceRows
    from weirflow.sql.change_statements import Merge

_SOURCE = "_weirflow_source"
_SOURCE_ROW = "_weirflow_source_row"
_PAIRS = "_weirflow_pairs"
_PAIR_ROW, _PAIR_SOURCE_ROW = "_weirflow_pair_row", "_weirflow_pair_source_row"


def merge(statement: Merge, rows: SourceRows) -> Edit:
    """MERGE: each clause does its part to the rows that are for it and for none before it.

    Raises:
        DataError: several rows of the source match one of the target.
    """
    return _Merging(statement, rows).edit()


class _Merging:
    def __init__(self, statement: Merge, rows: SourceRows) -> None:
        self._statement = statement
        self._rows = rows
        self._target = quoted(statement.target.alias)
        self._source = quoted(_alias(statement.source))
        self._incoming = with_numbers(_distinct(rows.query(["SELECT * FROM ", statement.source], {})), _SOURCE_ROW)
        self._removed: list[NDArray[np.int64]] = []
        self._added: list[pa.Table] = []
        self._moves_keys = False

    def edit(self) -> Edit:
        both = f" FROM {TARGET} AS {self._target} JOIN {_SOURCE} AS {self._source} ON ("
        tables = {TARGET: self._rows.numbered, _SOURCE: self._incoming}
        pairs = self._rows.query(
            [f"SELECT {ROW}, {_SOURCE_ROW}", both, self._statement.on, "\n)"], tables
        ).rename_columns([_PAIR_ROW, _PAIR_SOURCE_ROW])
        matched = numbers(pairs.column(0))
        self._require_one_match(matched)
        joined = (
            f" FROM {_PAIRS} JOIN {TARGET} AS {self._target} ON {ROW} = {_PAIR_ROW}"
            f" JOIN {_SOURCE} AS {self._source} ON {_SOURCE_ROW} = {_PAIR_SOURCE_ROW}"
        )
        self._run(When.MATCHED, joined, {_PAIRS: pairs, **tables})
        rest = _without(self._incoming, numbers(pairs.column(1)))
        self._run(When.NOT_MATCHED, f" FROM {_SOURCE} AS {self._source}", {_SOURCE: rest})
        left = _without(self._rows.numbered, matched)
        self._run(When.NOT_MATCHED_BY_SOURCE, f" FROM {TARGET} AS {self._target}", {TARGET: left})
        removed = np.unique(np.concatenate([np.zeros(0, np.int64), *self._removed]))
        added = pa.concat_tables([self._rows.schema.empty_table(), *self._added])
        return Edit(removed, added, self._moves_keys)

    def _clauses(self, when: When) -> list[MergeClause]:
        return [clause for clause in self._statement.clauses if clause.when is when]

    def _require_one_match(self, matched: NDArray[np.int64]) -> None:
        """As Spark: unless nothing is done to matching rows, or all of them are deleted."""
        clauses = self._clauses(When.MATCHED)
        if not clauses or clauses == [MergeClause(When.MATCHED, None, MergeDelete())]:
            return
        if len(np.unique(matched)) < len(matched):
            raise DataError(
                f"Several rows of the MERGE's source match one row of {self._rows.source.name!r}.",
                hint="make the source's rows unique, by GROUP BY for instance",
                condition="MERGE_CARDINALITY_VIOLATION",
            )

    def _run(self, when: When, tables_text: str, tables: Mapping[str, pa.Table]) -> None:
        clauses = self._clauses(when)
        for number, clause in enumerate(clauses):
            chosen = [tables_text, *_choice(clauses, number)]
            match clause.action:
                case MergeDelete():
                    self._removed.append(numbers(self._rows.query([f"SELECT {ROW}", *chosen], tables).column(0)))
                case MergeUpdate() as action:
                    self._update(action, chosen, tables)
                case MergeInsert() as action:
                    self._insert(action, chosen, tables)

    def _update(self, action: MergeUpdate, chosen: list[str | Fragment], tables: Mapping[str, pa.Table]) -> None:
        values: Sequence[Fragment | str | None]
        if action.assignments is None:
            columns, values = self._rows.schema.names, self._of_source()
        else:
            columns = assigned_columns(action.assignments, self._statement.target, self._rows.schema)
            values = [assignment.value for assignment in action.assignments]
        found = self._rows.query([f"SELECT {ROW}, ", *listed(values), *chosen], tables)
        self._removed.append(numbers(found.column(0)))
        self._added.append(self._rows.updated(found, columns))
        # SET * leaves keys as they are where rows are matched by them, but nothing says that they are.
        self._moves_keys |= bool({*columns} & {*self._rows.source.key})

    def _insert(self, action: MergeInsert, chosen: list[str | Fragment], tables: Mapping[str, pa.Table]) -> None:
        schema = self._rows.schema
        values: Sequence[Fragment | str | None] = self._of_source() if action.values is None else action.values
        columns = schema.names if action.columns is None else columns_named(schema, action.columns)
        if len(values) != len(columns):
            raise SqlTypeError(f"{len(values)} values for the {len(columns)} columns {', '.join(columns)}.")
        found = self._rows.query(["SELECT ", *listed(values), *chosen], tables)
        self._added.append(stored(schema, dict(zip(columns, found.columns, strict=True)), found.num_rows))

    def _of_source(self) -> list[str]:
        """For each column of the target, that of the source."""
        known = self._incoming.schema
        return [f"{self._source}.{quoted(column_named(known, name))}" for name in self._rows.schema.names]


def _choice(clauses: Sequence[MergeClause], number: int) -> list[str | Fragment]:
    """The condition that a row is for this clause: the first whose condition is true."""
    if number == 0 and clauses[0].condition is None:
        return []
    pieces: list[str | Fragment] = [" WHERE CASE"]
    for at, clause in enumerate(clauses[: number + 1]):
        condition: list[str | Fragment] = ["TRUE"] if clause.condition is None else ["(", clause.condition, "\n)"]
        pieces += [" WHEN ", *condition, f" THEN {at}"]
    return [*pieces, f" END = {number}"]


def _alias(source: Fragment) -> str:
    """What a MERGE calls its source."""
    query = ComposedSql(["SELECT * FROM ", source])
    return str(parse_query(query.text).args["from_"].this.alias_or_name)


def _distinct(table: pa.Table) -> pa.Table:
    for name in table.schema.names:
        if table.schema.names.count(name) > 1:
            raise SqlTypeError(f"The MERGE's source has several columns {name!r}.", hint="rename them with AS")
    return table


def _without(table: pa.Table, taken: NDArray[np.int64]) -> pa.Table:
    """The rows whose numbers are not taken."""
    stays = np.ones(table.num_rows, np.bool_)
    stays[taken] = False
    return table.filter(pa.array(stays))
