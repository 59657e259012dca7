"""What expressions give here and in Spark, row by row: values, types, and the conditions of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from support.exact_values import plain

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions import compile_expression
from weirflow.spark.errors import translate
from weirflow.sql.expr import Call
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from support.expression_catalogue import Case

PER_QUERY = 40


def mismatches(spark: SparkSession, cases: list[Case], table: pa.Table, *, errors: bool) -> list[str]:
    """How our results differ from Spark's: at rows for which we have a value, and, for some, those for which we raise.

    One query evaluates many expressions; each is guarded, row by row, so that rows that raise do not spoil it.
    """
    ours = [_evaluated(case, table) for case in cases]
    guarded = table.append_column(
        "ok", pa.array([[row not in result.errors for result in ours] for row in range(table.num_rows)])
    )
    # Arrow's timestamps without zone arrive as ones with; in UTC they are the same.
    without_zone = {name: f"cast({name} as timestamp_ntz)" for name in ("ntz", "ntz2")}
    columns = [f"{without_zone[name]} as {name}" if name in without_zone else name for name in guarded.column_names]
    frame = spark.createDataFrame(guarded).selectExpr(*columns).cache()
    try:
        found = []
        for start in range(0, len(cases), PER_QUERY):
            chunk = range(start, min(start + PER_QUERY, len(cases)))
            found += _compared(frame, cases, ours, chunk)
        return found + (_other_errors(frame, cases, ours) if errors else [])
    finally:
        frame.unpersist()


class Ours:
    """An expression's values, and the condition of the error at each row that has one."""

    def __init__(self) -> None:
        self.values: pa.Array | None = None
        self.errors: dict[int, str | None] = {}


def _evaluated(case: Case, table: pa.Table) -> Ours:
    evaluate = compile_expression(case.expr)
    columns = [column.combine_chunks() for column in table.columns]
    result = Ours()
    try:
        result.values = evaluate(columns, table.num_rows)
    except DataError:
        pieces = []
        for row in range(table.num_rows):
            try:
                pieces.append(evaluate([column.slice(row, 1) for column in columns], 1))
            except DataError as error:
                result.errors[row] = error.condition
                pieces.append(pa.nulls(1, case.expr.type))
        result.values = pa.concat_arrays(pieces)
        # What raised for some rows must not for the others, evaluated together.
        good = pa.array([row for row in range(table.num_rows) if row not in result.errors], pa.int64())
        together = evaluate([column.take(good) for column in columns], len(good))
        assert plain(together) == plain(result.values.take(good)), case.sql
    result.values.validate(full=True)
    assert result.values.type == case.expr.type, case.sql
    return result


def _compared(frame: DataFrame, cases: list[Case], ours: list[Ours], chunk: range) -> list[str]:
    selected = [f"case when ok[{index}] then {cases[index].sql} end as c{index}" for index in chunk]
    theirs = frame.selectExpr("id", *selected).toArrow().sort_by("id")
    found = []
    for index in chunk:
        expected = theirs[f"c{index}"].combine_chunks()
        actual = ours[index].values
        if nullable(expected.type) != nullable(cases[index].expr.type):
            found.append(f"{cases[index].sql}: Spark's type is {expected.type}, ours {cases[index].expr.type}")
            continue
        pairs = list(zip(plain(actual), plain(expected), strict=True))
        wrong = [row for row, (mine, sparks) in enumerate(pairs) if mine != sparks]
        if wrong:
            mine, sparks = pairs[wrong[0]]
            found.append(f"{cases[index].sql}: {len(wrong)} rows, at {wrong[0]} ours {mine}, Spark's {sparks}")
    return found


def _other_errors(frame: DataFrame, cases: list[Case], ours: list[Ours]) -> list[str]:
    """One row for each condition that a function raises for types of a kind: a query each, so not for every case."""
    found, seen = [], set()
    for case, result in zip(cases, ours, strict=True):
        arguments = tuple(each.type.id for each in case.expr.arguments) if isinstance(case.expr, Call) else ()
        for row, condition in result.errors.items():
            kind = (getattr(case.expr, "function", ""), arguments, case.expr.type.id, condition)
            if kind in seen:
                continue
            seen.add(kind)
            theirs = _condition(frame, case.sql, row)
            if theirs != condition and (condition is not None or "nothing" in theirs[:7]):
                found.append(f"{case.sql} at {row}: we raise {condition}, Spark {theirs}")
    return found


def _condition(frame: DataFrame, sql: str, row: int) -> str:
    try:
        value = frame.where(f"id = {row}").selectExpr(f"{sql} as x").collect()
    except Exception as error:  # noqa: BLE001 - whatever Spark raises is the answer
        known = translate(error)
        # What Java itself raises ("long overflow") has no condition in Spark.
        return getattr(known, "condition", None) or ("ARITHMETIC_OVERFLOW" if "overflow" in str(error) else str(error))
    return f"nothing, but gives {value}"
