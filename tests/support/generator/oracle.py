"""Runs a case beside Spark: each view equals what Spark SQL returns on the same tables, types included."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlglot
from pyspark.sql import Window, functions
from sqlglot import exp
from support.generator.kinds import Kind
from support.generator.model import arrow_table
from support.generator.replay import MaintainedViews, Mismatch, Tally, Ticked, replay
from support.maintained import comparable

from weirflow.errors import DataError
from weirflow.flows.recompute import view_schema
from weirflow.spark.errors import translate
from weirflow.spark.frames.arrow import relation_frame
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from support.generator.case import Case, View
    from support.generator.deltas import Tables
    from support.generator.values import Row

_DIGITS = 9
"""How many digits of a double that depends on the order of rows are compared."""

_RULES = "org.apache.spark.sql.catalyst.optimizer"
_SKIPPING = (
    "BooleanSimplification", "ConstantFolding", "EliminateOffsets", "PropagateEmptyRelation", "PruneFilters",
    "PushDownPredicates", "PushDownLeftSemiAntiJoin", "ReplaceNullWithFalseInPredicate",
)  # fmt: skip
_HASTY = ("EliminateOuterJoin", "InferFiltersFromConstraints")
_SPARK_BREAKS = (
    # LIMIT with OFFSET over a sort where constants are not folded.
    "No plan for LocalLimit",
    # Frames of windows whose bounds are not folded.
    "Unhandled bound in windows expressions",
    # The optimizer on a correlated subquery whose condition is FALSE, and on scalar subqueries under EXCEPT ALL.
    "java.util.NoSuchElementException",
    # MAX of a struct that is never NULL, over no rows: Spark says the fields are never NULL, and then they are.
    "nulls in input cannot be viewed as non-nullable",
    # listagg in order, beside an aggregate of DISTINCT values with FILTER.
    "cannot be cast to class org.apache.spark.sql.catalyst.expressions.SortOrder",
    # A fixed point: the model compares it with DuckDB's.
    "UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE",
)
"""What Spark itself fails with or refuses: these cases have no answer."""


class Oracle:
    """Checks cases, one after the other, on one Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.tally = Tally()

    def check(self, case: Case) -> Mismatch | None:
        """The first mismatch after the last tick, or at a tick that fails in one of both only."""
        ticked = None
        for ticked in replay(case, self.tally):
            if (found := self._not_raised(case, ticked)) is not None:
                return found
        return None if ticked is None else self._difference(case, ticked)

    def _not_raised(self, case: Case, ticked: Ticked) -> Mismatch | None:
        """A tick that failed, if Spark has an answer all the same."""
        if ticked.error is None or not self._runs(case, ticked.attempted):
            return None
        return Mismatch(ticked.number, "the tick", "Spark", f"which does not raise {ticked.error}")

    def _difference(self, case: Case, ticked: Ticked) -> Mismatch | None:
        """The first view that is not what Spark returns."""
        if ticked.maintained is None:
            return None
        theirs = self._spark_views(case, ticked.tables)
        if isinstance(theirs, DataError):
            # Where a join says that columns are equal, or a condition makes an outer join an inner one, Spark tries
            # conditions on rows that the join would drop.
            with self._without(_HASTY):
                theirs = self._spark_views(case, ticked.tables)
        if isinstance(theirs, DataError) and any(_is_eager(view.text.spark) for view in case.views):
            theirs = self._spark_views(_without_filters(case), ticked.tables)
        if isinstance(theirs, DataError) and _overflows_on_its_way(theirs, case):
            self.tally.unanswered += 1
            return None
        if theirs is None:
            return None
        if isinstance(theirs, DataError):
            return Mismatch(ticked.number, "the tick", "Spark", f"which raises {theirs}")
        for view, result in zip(case.views, theirs, strict=True):
            found = self._compared(view, ticked.maintained, result)
            if found is not None:
                return Mismatch(ticked.number, view.name, "Spark", found)
        return None

    def _runs(self, case: Case, tables: Tables | None) -> bool:
        """Whether Spark has an answer for these tables although nothing that could raise is skipped."""
        assert tables is not None
        with self._without(_SKIPPING):
            return isinstance(self._spark_views(case, tables), list)

    @contextmanager
    def _without(self, rules: Sequence[str]) -> Iterator[None]:
        """Spark without some rules of its optimizer, such as those that skip what could raise before HAVING FALSE."""
        self._spark.conf.set("spark.sql.optimizer.excludedRules", ",".join(f"{_RULES}.{rule}" for rule in rules))
        try:
            yield
        finally:
            self._spark.conf.unset("spark.sql.optimizer.excludedRules")

    def _compared(self, view: View, maintained: MaintainedViews, theirs: pa.Table) -> str | None:
        types = [nullable(kind) for kind in theirs.schema.types]
        if maintained.schemas[view.name].types != types:
            return f"our types {maintained.schemas[view.name].types}, Spark's {types}"
        rows = zip(*([comparable(value) for value in column.to_pylist()] for column in theirs.columns), strict=True)
        ours, expected = _rounded(maintained.views[view.name], view), _rounded(Counter(rows), view)
        self.tally.filled += bool(expected)
        return None if ours == expected else f"only ours {dict(ours - expected)}, only theirs {dict(expected - ours)}"

    def _spark_views(self, case: Case, tables: Tables) -> list[pa.Table] | DataError | None:
        """What Spark returns for each view, or the data error that one of them raises; None if Spark breaks."""
        for name, schema in case.sources.items():
            self._register(name, schema, tables.rows[name])
        results = []
        try:
            for view in case.views:
                frame = self._frame(view)
                frame.createOrReplaceTempView(view.name)
                results.append(_in_utc(frame.toArrow()))
        except Exception as error:
            known = translate(error)
            if isinstance(known, DataError):
                return known
            if "overflow" in str(error):  # what Java itself raises has no condition in Spark
                return DataError("overflow")
            if any(words in str(error) for words in _SPARK_BREAKS):
                self.tally.unanswered += 1
                return None
            raise
        return results

    def _frame(self, view: View) -> DataFrame:
        return frame_of(view, self._spark.table) if view.calls else self._spark.sql(view.text.spark)

    def _register(self, name: str, schema: pa.Schema, rows: list[Row]) -> None:
        relation_frame(self._spark, arrow_table(schema, rows)).createOrReplaceTempView(name)


def frame_of(view: View, table: Callable[[str], Any]) -> Any:
    """The frame that a view is made of, over the frames that ``table`` gives."""
    return eval(view.text.spark, {"F": functions, "Window": Window, "table": table})


def _in_utc(table: pa.Table) -> pa.Table:
    """With times of one zone, whatever zone the session shows them in."""
    return table.cast(view_schema(table.schema))


def _overflows_on_its_way(error: DataError, case: Case) -> bool:
    """Whether it may be a sum of BIGINT, which Spark has overflow by the order of its rows, though the total fits."""
    return "long overflow" in str(error) and any("sum(" in view.text.spark.casefold() for view in case.views)


def _is_eager(text: str) -> bool:
    """Whether Spark computes what is aggregated also for rows that a FILTER drops: beside DISTINCT it does."""
    return "FILTER" in text and "DISTINCT" in text


def _without_filters(case: Case) -> Case:
    """The same views of SQL with CASE inside of aggregates, which Spark computes for the chosen rows alone."""
    views = [
        view if view.calls else replace(view, text=replace(view.text, spark=_with_cases(view.text.spark)))
        for view in case.views
    ]
    return replace(case, views=tuple(views))


def _with_cases(text: str) -> str:
    """The text without FILTER.

    >>> _with_cases("SELECT SUM(DISTINCT a) FILTER (WHERE b), COUNT(*) FILTER (WHERE c) FROM t")
    'SELECT SUM(DISTINCT CASE WHEN b THEN a END), COUNT(CASE WHEN c THEN 1 END) FROM t'
    """
    return sqlglot.parse_one(text, read="spark").transform(_chosen).sql("spark")


def _chosen(node: exp.Expression) -> exp.Expression:
    if not isinstance(node, exp.Filter):
        return node
    call, condition = node.this.copy(), node.expression.this
    inside = call.this if isinstance(call.this, exp.Distinct) else call
    taken = inside.expressions if isinstance(inside, exp.Distinct) else [inside.this]
    if isinstance(inside, exp.ArgMax | exp.ArgMin):
        taken = [inside.this, inside.expression]
    for value in taken:
        given = exp.Literal.number(1) if isinstance(value, exp.Star) else value.copy()
        value.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=given)]))
    return call


def _rounded(rows: Counter[Row], view: View) -> Counter[Row]:
    """Rows with inexact doubles rounded."""
    places = [place for place, kind in enumerate(view.kinds) if kind is Kind.INEXACT]
    if not places:
        return rows
    result: Counter[Row] = Counter()
    for row, weight in rows.items():
        result[tuple(_few_digits(value) if place in places else value for place, value in enumerate(row))] += weight
    return result


def _few_digits(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return 0.0 if abs(value) < 10**-_DIGITS else float(f"{value:.{_DIGITS}g}")
