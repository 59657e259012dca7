"""Views of a Session without ANSI, and ``try_*`` in any Session, are maintained by deltas and hold what Spark says."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.exact_values import plain
from support.expression_data import edge_table
from support.mode_catalogue import LEGACY, attempts

from weirflow import IncrementalFlow
from weirflow.errors import DataError, QueryError
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from weirflow import Session

PER_VIEW = 40
IN_SHORT = 80
"""How many expressions of each family the short version tries."""
_MODE = "spark.sql.ansi.enabled"
_ZONE = "spark.sql.session.timeZone"
_RULES = "spark.sql.optimizer.excludedRules"


@pytest.fixture
def spark(session: Session) -> Iterator[SparkSession]:
    """Spark without its interpreter for constant tables, so that it runs the code it generates; settings are undone."""
    session.spark.conf.set(_RULES, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
    yield session.spark
    session.spark.conf.unset(_RULES)
    session.spark.conf.set(_MODE, "true")
    session.spark.conf.set(_ZONE, "UTC")


@pytest.mark.parametrize("family", LEGACY)
def test_a_part_of_what_means_something_else_without_ansi(session: Session, spark: SparkSession, family: str) -> None:
    check(session, spark, spread(LEGACY[family]()), edge_table(60, seed=4), ansi=False)


@pytest.mark.parametrize("ansi", [True, False])
def test_a_part_of_what_never_raises(session: Session, spark: SparkSession, ansi: bool) -> None:
    check(session, spark, spread(attempts()), edge_table(60, seed=5), ansi=ansi)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("family", LEGACY)
def test_what_means_something_else_without_ansi(session: Session, spark: SparkSession, family: str, seed: int) -> None:
    check(session, spark, LEGACY[family](), edge_table(200, seed), ansi=False)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("ansi", [True, False])
def test_what_never_raises(session: Session, spark: SparkSession, ansi: bool, seed: int) -> None:
    check(session, spark, attempts(), edge_table(200, seed), ansi=ansi)


def spread(expressions: list[str]) -> list[str]:
    return expressions[:: max(len(expressions) // IN_SHORT, 1)]


def check(session: Session, spark: SparkSession, expressions: list[str], table: pa.Table, *, ansi: bool) -> None:
    """Views of the expressions are incremental, and have the columns that Spark has."""
    spark.conf.set(_MODE, str(ansi).lower())
    table = table.drop_columns(["dur"])
    show(spark, table)
    batches = [expressions[start : start + PER_VIEW] for start in range(0, len(expressions), PER_VIEW)]
    queries = [
        "SELECT id, " + ", ".join(f"{one} AS c{number}" for number, one in enumerate(batch)) + " FROM edges"
        for batch in batches
    ]
    with session.flow("modes") as flow:
        flow.register_source("edges", table.schema)
        for number, sql in enumerate(queries):
            flow.register_view(f"v{number}", sql, mode="incremental")
        flow.tick("edges", table)
        found = []
        for number, (sql, batch) in enumerate(zip(queries, batches, strict=True)):
            theirs, ours = (one.sort_by("id") for one in (spark.sql(sql).toArrow(), flow.snapshot(f"v{number}")))
            found += [
                each for at, one in enumerate(batch) if (each := difference(one, ours[f"c{at}"], theirs[f"c{at}"]))
            ]
    assert found == []


def show(spark: SparkSession, table: pa.Table) -> None:
    """Have Spark read the table as ``edges``."""
    # Arrow's timestamps without zone arrive as ones with; in UTC they are the same.
    columns = [f"CAST({name} AS TIMESTAMP_NTZ) AS {name}" if name[:3] == "ntz" else name for name in table.column_names]
    spark.createDataFrame(table).selectExpr(*columns).createOrReplaceTempView("edges")


def difference(what: str, ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> str | None:
    if nullable(ours.type) != nullable(theirs.type):
        return f"{what}: our type is {ours.type}, Spark's {theirs.type}"
    pairs = list(zip(plain(ours.combine_chunks()), plain(theirs.combine_chunks()), strict=True))
    wrong = [row for row, (mine, sparks) in enumerate(pairs) if mine != sparks]
    return f"{what}: {len(wrong)} rows, at {wrong[0]} (ours, Spark's) {pairs[wrong[0]]}" if wrong else None


STILL_RAISE = {
    "element_at(array(1), 0)": "INVALID_INDEX_OF_ZERO",
    "try_element_at(array(1), a - a)": "INVALID_INDEX_OF_ZERO",
    "round(CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)), -2)": "NUMERIC_VALUE_OUT_OF_RANGE",
    "-CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))": "NUMERIC_VALUE_OUT_OF_RANGE",
    "abs(CAST('-99999999999999999999999999999999999999' AS DECIMAL(38, 0)))": "NUMERIC_VALUE_OUT_OF_RANGE",
    "make_date(500000000, 1, a)": None,  # Java's own error
}


@pytest.mark.parametrize("expression", STILL_RAISE)
def test_some_things_raise_in_any_mode(session: Session, spark: SparkSession, expression: str) -> None:
    spark.conf.set(_MODE, "false")
    sql, condition = f"SELECT {expression} AS x FROM t", STILL_RAISE[expression]
    session.register("t", pa.table({"a": pa.array([1], pa.int32())}))
    with pytest.raises(Exception, match=condition or "overflow"):
        spark.sql(sql).collect()
    with session.flow("raising") as flow:
        flow.register_source("t", "a INT")
        flow.register_view("v", sql, mode="incremental")
        with pytest.raises(DataError) as caught:
            flow.tick("t", [{"a": 1}])
        assert (caught.value.condition or "").startswith(condition or "ARITHMETIC_OVERFLOW")


NUMBERS = pa.schema([("k", pa.int32()), ("v", pa.int64()), ("i", pa.int32()), ("d", pa.decimal128(38, 2))])
LARGEST = 2**63 - 1
DIGITS = Decimal("9" * 36 + ".99")
SUMS = """
SUM(v) AS a, SUM(i) AS b, SUM(d) AS c, AVG(d) AS e, AVG(i) AS f, SUM(v) FILTER (WHERE i > 0) AS h,
SUM(d) FILTER (WHERE v IS NOT NULL) AS l, COUNT(*) AS n, try_sum(i) AS o, try_sum(d) AS p, try_avg(d) AS q,
try_sum(v) FILTER (WHERE v > 0) AS r, try_avg(i) AS s, SUM(CAST(i AS TINYINT)) AS t
"""
"""Each the same in whichever order Spark adds rows up: those of one sign only, or those that wrap around."""
SUM_TICKS: list[list[tuple[tuple[Any, ...], int]]] = [
    [((1, LARGEST, 7, DIGITS), 1), ((1, 5, -3, None), 1), ((2, None, None, None), 1), ((3, LARGEST, 1, DIGITS), 3)],
    [((1, LARGEST, 2**31 - 1, DIGITS), 2), ((2, -(2**63), 4, Decimal("0.01")), 2), ((3, LARGEST, 1, DIGITS), -1)],
    [((1, LARGEST, 7, DIGITS), -1), ((1, LARGEST, 2**31 - 1, DIGITS), -1), ((3, LARGEST, 1, DIGITS), -1)],
    [((1, LARGEST, 2**31 - 1, DIGITS), -1), ((2, -(2**63), 4, Decimal("0.01")), -2), ((3, LARGEST, 1, DIGITS), -1)],
]


SUM_VIEWS = {
    "by_key": f"SELECT k, {SUMS} FROM t GROUP BY k",
    "of_all": f"SELECT {SUMS} FROM t",
    "with_extremes": "SELECT k, SUM(v) AS a, try_sum(v) FILTER (WHERE v > 0) AS b, MAX(i) AS m FROM t GROUP BY k",
    "chosen": "SELECT k, SUM(DISTINCT v) AS a FROM t GROUP BY k HAVING SUM(v) < 0 OR SUM(d) IS NULL",
}


def test_sums_that_do_not_fit_come_back(session: Session, spark: SparkSession) -> None:
    spark.conf.set(_MODE, "false")
    rows: Counter[tuple[Any, ...]] = Counter()
    with session.flow("sums") as flow:
        flow.register_source("t", NUMBERS)
        for name, sql in SUM_VIEWS.items():
            flow.register_view(name, sql, mode="incremental")
        for changes in SUM_TICKS:
            for row, weight in changes:
                rows[row] += weight
            flow.tick("t", weighted(NUMBERS, changes))
            session.register("t", table_of(NUMBERS, rows))
            for name, sql in SUM_VIEWS.items():
                assert_same(flow.snapshot(name), spark.sql(sql).toArrow(), name)


def test_sums_of_shards_wrap_around_as_one(session: Session, spark: SparkSession) -> None:
    spark.conf.set(_MODE, "false")
    sql = SUM_VIEWS["with_extremes"]
    rows: Counter[tuple[Any, ...]] = Counter()
    with session.flow("sums in shards", partitions=2) as flow:
        flow.register_source("t", NUMBERS)
        flow.register_view("v", sql, mode="incremental")
        for changes in SUM_TICKS[:2]:
            for row, weight in changes:
                rows[row] += weight
            flow.tick("t", weighted(NUMBERS, changes))
        session.register("t", table_of(NUMBERS, rows))
        assert_same(flow.snapshot("v"), spark.sql(sql).toArrow(), sql)


OVER_ROWS = """
SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v, i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a,
  SUM(d) OVER (PARTITION BY k) AS b, AVG(d) OVER (PARTITION BY k) AS c,
  try_sum(i) OVER (ORDER BY k) AS e,
  SUM(v) OVER (PARTITION BY k ORDER BY v, i ROWS BETWEEN 2 PRECEDING AND -(-1) FOLLOWING) AS f,
  COUNT(*) OVER (ORDER BY CAST(k AS TIMESTAMP) RANGE BETWEEN INTERVAL '1' SECOND PRECEDING AND CURRENT ROW) AS g
FROM t
"""
ALL_OVER = {
    "windows": OVER_ROWS,
    "filtered": "SELECT k, v / (k - 1) AS x FROM t WHERE v / (k - 1) > 0 OR i % (k - 1) IS NULL",
    "guarded": "SELECT a.k, a.i / b.i AS x FROM t a LEFT JOIN t b ON a.k = b.k + 1 AND 1 / b.i > 0 WHERE 1 % 0 IS NULL",
    "keys": "SELECT CAST(v AS TINYINT) AS k, COUNT(*) AS n, SUM(v * 2) AS s FROM t GROUP BY CAST(v AS TINYINT)",
    "subqueries": "SELECT k, v + 1 AS x FROM t WHERE v + 1 < (SELECT MAX(v) FROM t) AND i / 0 IS NULL",
    "exists": "SELECT k FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE CAST(b.v AS INT) = a.i - a.i - 1)",
    "unions": "SELECT i FROM t UNION ALL SELECT CAST(d AS BIGINT) FROM t UNION ALL SELECT k * 2147483647 FROM t",
    "ordered": "SELECT k, v, i FROM t ORDER BY v + 1, i, k LIMIT 3",
    "constants": "SELECT k, 2147483647 + 1 AS a, CAST('x' AS INT) AS b, 1 / 0 AS c, -(-2147483648) AS e FROM t",
}


def test_operators_of_plans_without_ansi(session: Session, spark: SparkSession) -> None:
    spark.conf.set(_MODE, "false")
    rows: Counter[tuple[Any, ...]] = Counter()
    with session.flow("plans") as flow:
        flow.register_source("t", NUMBERS)
        for name, sql in ALL_OVER.items():
            flow.register_view(name, sql, mode="incremental")
        for changes in SUM_TICKS:
            for row, weight in changes:
                rows[row] += weight
            flow.tick("t", weighted(NUMBERS, changes))
        session.register("t", table_of(NUMBERS, rows))
        for name, sql in ALL_OVER.items():
            assert_same(flow.snapshot(name), spark.sql(sql).toArrow(), name)


def test_what_is_not_proven_without_ansi_is_recomputed(session: Session, spark: SparkSession) -> None:
    """A bound of the frame may wrap around."""
    spark.conf.set(_MODE, "false")
    sql = "SELECT i, COUNT(*) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t"
    rows = Counter({(1, 1, number, None): 1 for number in (-(2**31), 0, 1, 2**31 - 2, 2**31 - 1)})
    with session.flow("near the ends") as flow:
        flow.register_source("t", NUMBERS)
        flow.register_view("v", sql)
        assert [one.kind for one in flow.describe().relations if one.name == "v"] == ["diff"]
        flow.tick("t", weighted(NUMBERS, list(rows.items())))
        session.register("t", table_of(NUMBERS, rows))
        assert_same(flow.snapshot("v"), spark.sql(sql).toArrow(), sql)


NUMERALS = """
0 -0 +0 00 1. .1 . +. -. 1.5 -1.5 1.5.5 1..5 1.x .x x. +1 -1 ++1 1+ 127.9 -128.9 128.0 32767.99
2147483647.5 2147483648.5 9223372036854775807.9 9223372036854775808.1 -9223372036854775808.9
-9223372036854775809 1e2 1.e2 .1e1 1d 1f 1L 0x1 1_0
00000000000000000000000000000000000001 1.00000000000000000000000000000000000000000001
99999999999999999999 \u0661 \uff11
"""


@pytest.mark.parametrize("ansi", [True, False])
def test_texts_that_look_like_numbers(session: Session, spark: SparkSession, ansi: bool) -> None:
    spark.conf.set(_MODE, str(ansi).lower())
    words = NUMERALS.strip().encode().decode("unicode_escape").split()
    rows = pa.table({"s": [*words, "", " ", "\t1.5\n", " - 1", "1 .5", *(f" {word}\x00" for word in words[:9])]})
    kinds = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(5, 1)", "DECIMAL(38, 0)", "DOUBLE", "FLOAT", "BOOLEAN")
    chosen = [f"TRY_CAST(s AS {kind})" for kind in kinds] + ([] if ansi else [f"CAST(s AS {kind})" for kind in kinds])
    sql = f"SELECT s, {', '.join(f'{one} AS c{number}' for number, one in enumerate(chosen))} FROM t"
    with session.flow("numerals") as flow:
        flow.register_source("t", rows.schema)
        flow.register_view("v", sql, mode="incremental")
        flow.tick("t", rows)
        session.register("t", rows)
        assert_same(flow.snapshot("v"), spark.sql(sql).toArrow(), sql)


IN_A_ZONE = """
CAST(s AS TIMESTAMP), TRY_CAST(s AS TIMESTAMP), to_timestamp(s), to_date(s), CAST(s AS DATE), TRY_CAST(at AS STRING),
TRY_CAST(at AS DATE), CAST(at AS BOOLEAN), CAST(length(s) > 5 AS TIMESTAMP), CAST(at AS INT), CAST(at AS TINYINT),
CAST(d AS TIMESTAMP), hour(s), at > s, TRY_CAST(d AS TIMESTAMP), try_to_timestamp(s), CAST(1.5D AS TIMESTAMP)
"""
TEXTS = ["2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-11-03 01:30:00+02:00", "2024-13-01", "", "x", "1500", None]


@pytest.mark.parametrize("ansi", [True, False])
def test_texts_are_read_by_the_clock_of_the_zone(session: Session, spark: SparkSession, ansi: bool) -> None:
    spark.conf.set(_MODE, str(ansi).lower())
    spark.conf.set(_ZONE, "America/New_York")
    chosen = [one.strip() for one in IN_A_ZONE.split(", ")]
    if ansi:
        chosen = [one for one in chosen if one.upper().startswith("TRY")]
    sql = f"SELECT s, {', '.join(f'{one} AS c{number}' for number, one in enumerate(chosen))} FROM t"
    moments = [dt.datetime(2024, 3, 10, 6, minute, tzinfo=dt.UTC) for minute in range(len(TEXTS))]
    rows = pa.table(
        [pa.array(TEXTS), pa.array(moments, pa.timestamp("us", "UTC")), pa.array([one.date() for one in moments])],
        names=["s", "at", "d"],
    )
    with session.flow("zone") as flow:
        flow.register_source("t", rows.schema)
        flow.register_view("v", sql, mode="incremental")
        flow.tick("t", rows)
        session.register("t", rows)
        assert_same(flow.snapshot("v"), spark.sql(sql).toArrow(), sql)


def test_a_durable_flow_keeps_what_its_views_mean(session: Session, spark: SparkSession, tmp_path: Any) -> None:
    spark.conf.set(_MODE, "false")
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.register_source("t", "a INT, b INT, s STRING")
        flow.register_view("v", "SELECT a + b AS x, a / b AS y, CAST(s AS INT) AS z, try_add(a, b) AS w FROM t")
        flow.register_view("sums", "SELECT SUM(CAST(a AS BIGINT) * 4294967296) AS s FROM t")
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"a": 2**31 - 1, "b": 1, "s": "7.5"}, {"a": 2**31 - 1, "b": 0, "s": "x"}])
        found = sorted(flow.snapshot("v").to_pylist(), key=lambda row: row["x"])
        assert found == [
            {"x": -(2**31), "y": 2.0**31 - 1, "z": 7, "w": None},
            {"x": 2**31 - 1, "y": None, "z": None, "w": 2**31 - 1},
        ]
        assert flow.snapshot("sums").to_pylist() == [{"s": -(2**33)}]


def test_a_flow_without_spark_reads_what_never_raises_as_spark_does(spark: SparkSession) -> None:
    table = edge_table(60, seed=6).drop_columns(["dur"])
    show(spark, table)
    of_times = ("try_add(d", "try_add(ts", "try_subtract(ts", "try_subtract(d,", "try_subtract(d2", "try_add(INTERVAL")
    items = [one for one in spread(attempts()) if one.startswith("try_") and not one.startswith(of_times)]
    sums = "try_sum(i8), try_sum(f64), try_avg(i32), try_avg(d15_2), try_sum(small), try_sum(d38_10)"
    queries = {
        "items": f"SELECT id, {', '.join(items)} FROM edges",
        "sums": f"SELECT {sums} FROM edges WHERE d38_10 > 0",
    }
    with IncrementalFlow() as flow:
        flow.register_source("edges", table.schema)
        for name, sql in queries.items():
            flow.register_view(name, sql)
        flow.tick("edges", table)
        for name, sql in queries.items():
            assert_same(flow.snapshot(name), spark.sql(sql).toArrow(), name)


def test_a_flow_without_spark_refuses_what_it_cannot_try() -> None:
    with IncrementalFlow() as flow:
        flow.register_source("t", "s STRING, d DATE")
        for one in ("try_add(s, 1)", "try_add(d, 1)", "try_to_date(s, 'yyyy z')", "try_to_timestamp(1)", "try_sum(d)"):
            with pytest.raises(QueryError):
                flow.register_view("v", f"SELECT {one} AS x FROM t")


def weighted(schema: pa.Schema, changes: list[tuple[tuple[Any, ...], int]]) -> DeltaBatch:
    rows = table_of(schema, {row: 1 for row, _ in changes})
    return DeltaBatch.from_weighted(
        rows.append_column("_weight", pa.array([weight for _, weight in changes], pa.int64()))
    )


def table_of(schema: pa.Schema, rows: Mapping[tuple[Any, ...], int]) -> pa.Table:
    listed = list(Counter(rows).elements())
    return pa.table([pa.array([row[at] for row in listed], one.type) for at, one in enumerate(schema)], schema=schema)


def assert_same(ours: pa.Table, theirs: pa.Table, what: str) -> None:
    assert ours.schema.names == theirs.schema.names, what
    assert [nullable(one) for one in ours.schema.types] == [nullable(one) for one in theirs.schema.types], what
    found, expected = (
        Counter(zip(*(plain(column.combine_chunks()) for column in one.columns), strict=True)) for one in (ours, theirs)
    )
    assert found == expected, what
