"""Runs a case without Spark: after every tick each view equals DuckDB's recompute, or our own from scratch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from support.generator.deltas import Tables
from support.generator.scratch import Scratch
from support.maintained import Maintained, duckdb_rows

from weirflow.errors import DataError
from weirflow.sql.refusal import NotIncremental

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.generator.case import Case, View
    from support.generator.values import Row

    Multisets = Mapping[str, Counter[Row]]

_NARROW = (pa.int8(), pa.int16(), pa.int32())


@dataclass(frozen=True)
class Mismatch:
    """Where a view is not what it should be."""

    tick: int
    view: str
    against: str
    detail: str

    def __str__(self) -> str:
        return f"after tick {self.tick} {self.view} differs from {self.against}: {self.detail}"


@dataclass
class Tally:
    """What a run of cases went through, so that it can be seen to have looked at something."""

    cases: int = 0
    ticks: int = 0
    failed_ticks: int = 0
    by_duckdb: int = 0
    unanswered: int = 0
    by_scratch: int = 0
    filled: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.cases} cases ({self.refusals.total()} refused), "
            f"{self.ticks} ticks ({self.failed_ticks} with data errors), "
            f"{self.by_duckdb} comparisons with DuckDB, {self.unanswered} that the other engine could not answer, "
            f"{self.by_scratch} with a circuit from scratch, {self.filled} views that were not empty"
        )


class Model:
    """Checks cases, one after the other, on one DuckDB connection."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")
        self.tally = Tally()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def check(self, case: Case) -> Mismatch | None:
        """The first mismatch of a case; None if it has none or is no incremental view at all.

        A tick that fails with a data error must fail from scratch too; it is discarded and the case goes on.
        """
        self.tally.cases += 1
        try:
            maintained = Maintained(case.sources, {view.name: view.text.spark for view in case.views})
        except NotIncremental as error:
            self.tally.refusals[error.message] += 1
            return None
        scratch, tables = Scratch(case), Tables(list(case.sources))
        for number, tick in enumerate(case.ticks):
            self.tally.ticks += 1
            possible, after = tables.after(tick)
            try:
                maintained.tick(possible)
            except DataError as error:
                maintained.circuit.discard()
                self.tally.failed_ticks += 1
                if not isinstance(_attempt(scratch, after), DataError):
                    return Mismatch(number, "the tick", "a circuit from scratch", f"which does not raise {error}")
                continue
            tables = after
            self.tally.filled += sum(bool(rows) for rows in maintained.views.values())
            expected = self._duckdb(case, tables)
            found = _difference(number, "DuckDB", maintained.views, expected)
            if found is None and (len(expected) < len(case.views) or number == len(case.ticks) - 1):
                again = _attempt(scratch, tables)
                if isinstance(again, DataError):
                    return Mismatch(number, "the tick", "a circuit from scratch", f"which raises {again}")
                self.tally.by_scratch += len(again)
                found = _difference(number, "a circuit from scratch", maintained.views, again)
            if found is not None:
                return found
        return None

    def _duckdb(self, case: Case, tables: Tables) -> Multisets:
        """The views that DuckDB can compute: those with a text, unless it raises where Spark need not."""
        known = [view for view in case.views if isinstance(view.text.duck, str)]
        if known:
            self._load(case, tables)
        result = {}
        for place, view in enumerate(known):
            try:
                result[view.name] = duckdb_rows(self._connection, _with_views(known[:place], view))
            except (duckdb.OutOfRangeException, duckdb.ConversionException):
                # It computes what Spark skips: the left side of a division by NULL, for one.
                self.tally.unanswered += 1
        self.tally.by_duckdb += len(result)
        return result

    def _load(self, case: Case, tables: Tables) -> None:
        """The tables in DuckDB; narrow integers as wide ones, for there a literal takes the narrow type."""
        for name, schema in case.sources.items():
            wide = pa.schema([(each.name, pa.int64() if each.type in _NARROW else each.type) for each in schema])
            self._connection.register(name, arrow_table(wide, tables.rows[name]))


def arrow_table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table."""
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(schema.types)]
    return pa.table(columns, schema=schema)


def _attempt(scratch: Scratch, tables: Tables) -> Multisets | DataError:
    try:
        return scratch.views(tables)
    except DataError as error:
        return error


def _difference(tick: int, against: str, ours: Multisets, theirs: Multisets) -> Mismatch | None:
    """The first of some views whose rows are not the expected ones."""
    for name, rows in theirs.items():
        if ours[name] != rows:
            detail = f"only ours {dict(ours[name] - rows)}, only theirs {dict(rows - ours[name])}"
            return Mismatch(tick, name, against, detail)
    return None


def _with_views(before: Sequence[View], view: View) -> str:
    """A view's query for DuckDB, with those it may read in front."""
    ctes = [f"{each.name} AS ({each.text.duck})" for each in before]
    return f"WITH {', '.join(ctes)} SELECT * FROM ({view.text.duck}) AS result" if ctes else str(view.text.duck)
