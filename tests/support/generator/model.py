"""Runs a case without Spark: after every tick each view equals DuckDB's recompute, or our own from scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
from support.generator.replay import Mismatch, Tally, Ticked, replay
from support.generator.scratch import Scratch
from support.maintained import duckdb_rows

from weirflow.errors import DataError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from support.generator.case import Case, View
    from support.generator.deltas import Tables
    from support.generator.values import Row

    Multisets = Mapping[str, Counter[Row]]

_NARROW = (pa.int8(), pa.int16(), pa.int32())


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
        scratch = Scratch(case)
        for ticked in replay(case, self.tally):
            failed = ticked.error is not None
            found = _not_raised(ticked, scratch) if failed else self._compared(case, ticked, scratch)
            if found is not None:
                return found
        return None

    def _compared(self, case: Case, ticked: Ticked, scratch: Scratch) -> Mismatch | None:
        """Against DuckDB what it can compute, and against a circuit from scratch the rest, and all at the end."""
        assert ticked.maintained is not None
        views = ticked.maintained.views
        self.tally.filled += sum(bool(rows) for rows in views.values())
        expected = self._duckdb(case, ticked.tables)
        found = _difference(ticked.number, "DuckDB", views, expected)
        if found is None and (len(expected) < len(case.views) or ticked.number == len(case.ticks) - 1):
            again = _attempt(scratch, ticked.tables)
            if isinstance(again, DataError):
                return Mismatch(ticked.number, "the tick", "a circuit from scratch", f"which raises {again}")
            self.tally.by_scratch += len(again)
            found = _difference(ticked.number, "a circuit from scratch", views, again)
        return found

    def _duckdb(self, case: Case, tables: Tables) -> Multisets:
        """The views that DuckDB can compute: those with a text, unless it raises where Spark need not."""
        known = [view for view in case.views if isinstance(view.text.duck, str)]
        if known:
            self._load(case, tables)
        result = {}
        for place, view in enumerate(known):
            try:
                result[view.name] = duckdb_rows(self._connection, _with_views(known[:place], view))
            except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.BinderException):
                # It computes what Spark skips, the left side of a division by NULL, for one; to it the month of NULL
                # is a double, which has no bits.
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


def _not_raised(ticked: Ticked, scratch: Scratch) -> Mismatch | None:
    """A tick that failed, if it does not fail from scratch."""
    assert ticked.attempted is not None
    if isinstance(_attempt(scratch, ticked.attempted), DataError):
        return None
    return Mismatch(ticked.number, "the tick", "a circuit from scratch", f"which does not raise {ticked.error}")


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
