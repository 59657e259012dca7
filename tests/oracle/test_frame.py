"""A frame is PySpark's own in everything PySpark documents, and more."""

import copy
import datetime as dt
import time
from collections import Counter
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame as NativeFrame
from pyspark.sql import Observation, Row
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import LongType, StructField, StructType
from support.processes import wait_until
from support.shared_session import SETTINGS

import weirflow
from weirflow.errors import AlreadyExists, ColumnNotFound, ConfigError, QueryError, SessionClosed, UnsupportedError
from weirflow.spark.frames.arrow import frame_schema

ORDERS = """
SELECT * FROM VALUES (1, 'ann', 10.5D, DATE'2024-01-01'), (2, 'bob', 20.0D, NULL), (3, 'ann', NULL, DATE'2024-01-03'),
                     (4, NULL, 7.25D, DATE'2024-01-04') AS t(id, name, amount, day)
"""
PEOPLE = "SELECT * FROM VALUES ('ann', 'Oslo'), ('bob', 'Rome'), ('cid', NULL) AS t(name, city)"


@pytest.fixture
def orders(session):
    return session.sql(ORDERS)


@pytest.fixture
def people(session):
    return session.sql(PEOPLE)


def is_ours(value):
    return type(value) is weirflow.DataFrame


def kind_of(frame, name):
    try:
        return "callable" if callable(getattr(frame, name)) else "value"
    except Exception:  # noqa: BLE001 - whatever it is
        return "refused"


def rows(frame):
    """All rows with the schema: what a frame is worth, whatever it is made of."""
    native = frame.spark if is_ours(frame) else frame
    return native.schema, Counter(map(repr, native.collect()))


# Parity


def test_everything_public_in_pyspark_is_there(orders):
    native = orders.spark
    public = {name for name in {*dir(native), *vars(native)} if not name.startswith("_")}
    assert len(public) > 100
    assert set(dir(native)) <= set(dir(orders))
    # Some of PySpark's own (plot, executionInfo) refuse here; ours then does too.
    missing = {name for name in public if kind_of(native, name) != kind_of(orders, name)}
    assert missing == set()


def test_it_passes_as_a_pyspark_frame(session, orders):
    assert isinstance(orders, NativeFrame)
    assert isinstance(orders, type(orders.spark))
    assert isinstance(session.sql_with_timeout(ORDERS, 60_000), NativeFrame)


FRAME_CALLS = {
    "select": lambda df, _: df.select("id", df.amount * 2, F.upper(df["name"]).alias("n")),
    "select star": lambda df, _: df.select("*", "id"),
    "filter": lambda df, _: df.filter(df.id > 1),
    "where": lambda df, _: df.where("name = 'ann'"),
    "groupBy.agg": lambda df, _: df.groupBy("name").agg(F.sum("amount").alias("s"), F.count("*")),
    "groupBy.agg dict": lambda df, _: df.groupBy("name").agg({"amount": "max"}),
    "groupby.count": lambda df, _: df.groupby("name").count(),
    "pivot": lambda df, _: df.groupBy("name").pivot("id", [1, 2]).sum("amount"),
    "rollup": lambda df, _: df.rollup("name").count(),
    "cube": lambda df, _: df.cube("name", "id").agg(F.sum("amount")),
    "agg": lambda df, _: df.agg(F.max("id"), F.min("day")),
    "join": lambda df, o: df.join(o, "name", "left"),
    "join on column": lambda df, o: df.join(o, df.name == o.name, "full"),
    "crossJoin": lambda df, o: df.crossJoin(o),
    "self join": lambda df, _: (
        df.alias("a").join(df.alias("b"), F.col("a.name") == F.col("b.name")).select("a.id", "b.amount")
    ),
    "broadcast": lambda df, o: df.join(F.broadcast(o), "name"),
    "hint": lambda df, o: df.join(o.hint("broadcast"), "name"),
    "hint frame": lambda df, o: df.hint("merge").join(o, "name"),
    "union": lambda df, _: df.union(df),
    "unionByName": lambda df, o: df.unionByName(o, allowMissingColumns=True),
    "exceptAll": lambda df, _: df.exceptAll(df.limit(0)),
    "intersect": lambda df, o: df.select("name").intersect(o.select("name")),
    "subtract": lambda df, o: o.select("name").subtract(df.select("name")),
    "withColumn": lambda df, _: df.withColumn("twice", df.id * 2),
    "withColumns": lambda df, _: df.withColumns({"a": F.lit(1), "b": df.id + 1}),
    "withColumnRenamed": lambda df, _: df.withColumnRenamed("id", "key"),
    "drop": lambda df, _: df.drop("day", df.amount),
    "toDF": lambda df, _: df.toDF("a", "b", "c", "d"),
    "na.fill": lambda df, _: df.na.fill({"name": "?", "amount": 0.0}),
    "na.drop": lambda df, _: df.na.drop(subset=["amount"]),
    "na.replace": lambda df, _: df.na.replace("ann", "eve"),
    "fillna": lambda df, _: df.fillna(0),
    "stat.crosstab": lambda df, _: df.stat.crosstab("name", "id"),
    "stat.freqItems": lambda df, _: df.stat.freqItems(["name"]),
    "describe": lambda df, _: df.describe("amount"),
    "summary": lambda df, _: df.summary("count", "max"),
    "distinct": lambda df, _: df.select("name").distinct(),
    "dropDuplicates": lambda df, _: df.dropDuplicates(["name"]).select("name"),
    "orderBy": lambda df, _: df.orderBy(F.desc("id")).limit(2),
    "sort": lambda df, _: df.sort("name", "id"),
    "sample": lambda df, _: df.sample(fraction=0.5, seed=1),
    "repartition": lambda df, _: df.repartition(3, "name"),
    "coalesce": lambda df, _: df.coalesce(1),
    "selectExpr": lambda df, _: df.selectExpr("id + 1 AS n"),
    "colRegex": lambda df, _: df.select(df.colRegex("`(id|name)`")),
    "df[list]": lambda df, _: df[["id", "name"]],
    "df[condition]": lambda df, _: df[df.id > 2],
    "df[number]": lambda df, _: df.select(df[0]),
    "to": lambda df, _: df.to(StructType([StructField("id", LongType())])),
    "transform": lambda df, _: df.transform(lambda d, n: d.limit(n), 1).select(F.lit(1)),
    "unpivot": lambda df, _: df.unpivot("id", ["amount"], "what", "value"),
    "offset": lambda df, _: df.orderBy("id").offset(2),
    "mapInArrow": lambda df, _: df.mapInArrow(lambda batches: batches, df.schema),
    "mapInPandas": lambda df, _: df.select("id").mapInPandas(lambda frames: (f + 1 for f in frames), "id int"),
    "applyInPandas": lambda df, _: df.groupBy("name").applyInPandas(lambda f: f[["id"]].head(1) * 0, "id int"),
    "applyInArrow": lambda df, _: df.groupBy("name").applyInArrow(lambda t: t.select(["id"]), "id int"),
    "cogroup": lambda df, o: (
        df.groupBy("name")
        .cogroup(o.groupBy("name"))
        .applyInPandas(lambda a, b: pd.DataFrame({"n": [len(a) + len(b)]}), "n long")
    ),
    "lateral": lambda df, o: df.alias("a").lateralJoin(
        o.alias("b").where(F.col("b.name") == F.col("a.name").outer()), how="left"
    ),
    "checkpoint": lambda df, _: df.localCheckpoint(),
    "observe": lambda df, _: df.observe(Observation(), F.count("*").alias("n")),
    "transpose": lambda df, _: df.select("id", "amount").limit(2).transpose(),
}


@pytest.mark.parametrize("name", FRAME_CALLS)
def test_frames_made_both_ways_are_equal(orders, people, name):
    call = FRAME_CALLS[name]
    ours = call(orders, people)
    assert is_ours(ours)
    theirs = call(orders.spark, people.spark)
    assert ours.schema == theirs.schema
    # Equal plans have equal rows; Spark need not be asked twice for both.
    assert ours.spark.sameSemantics(theirs) or rows(ours) == rows(theirs)


def text_of(capsys, call):
    capsys.readouterr()
    call()
    return capsys.readouterr().out


VALUES = {
    "collect": lambda df: df.orderBy("id").collect(),
    "first": lambda df: df.orderBy("id").first(),
    "head": lambda df: df.orderBy("id").head(2),
    "take": lambda df: df.orderBy("id").take(2),
    "tail": lambda df: df.orderBy("id").tail(2),
    "count": lambda df: df.count(),
    "isEmpty": lambda df: (df.isEmpty(), df.limit(0).isEmpty()),
    "schema": lambda df: df.schema,
    "dtypes": lambda df: df.dtypes,
    "columns": lambda df: df.columns,
    "isStreaming": lambda df: df.isStreaming,
    "isLocal": lambda df: df.isLocal(),
    "storageLevel": lambda df: df.storageLevel,
    "corr": lambda df: df.where("amount IS NOT NULL").stat.corr("id", "amount"),
    "approxQuantile": lambda df: df.approxQuantile("id", [0.5], 0.0),
    "toLocalIterator": lambda df: list(df.orderBy("id").toLocalIterator()),
    "toJSON": lambda df: df.orderBy("id").toJSON().collect(),
    "semanticHash": lambda df: type(df.semanticHash()),
    "toPandas": lambda df: df.orderBy("id").toPandas().to_json(),
    "toArrow": lambda df: df.orderBy("id").toArrow(),
    "rdd": lambda df: sorted(df.rdd.map(lambda row: row.id).collect()),
    "inputFiles": lambda df: df.inputFiles(),
    "column": lambda df: str(df.amount),
    "iteration": lambda df: [str(column) for column in df],
    "scalar": lambda df: df.sparkSession.range(1).select(df.agg(F.max("id")).scalar().alias("m")).collect(),
}


@pytest.mark.filterwarnings("ignore:The return type of DataFrame.toJSON will be changed")  # PySpark 4.3 says so
@pytest.mark.parametrize("name", VALUES)
def test_values_read_both_ways_are_equal(orders, name):
    assert VALUES[name](orders) == VALUES[name](orders.spark)


@pytest.mark.parametrize(
    "print_it",
    [
        lambda df: df.show(),
        lambda df: df.show(2, truncate=3, vertical=True),
        lambda df: df.printSchema(),
        lambda df: print(df.count()),  # noqa: T201 - printing is the test
    ],
)
def test_what_is_printed_both_ways_is_equal(orders, capsys, print_it):
    printed = text_of(capsys, lambda: print_it(orders))
    assert printed
    assert printed == text_of(capsys, lambda: print_it(orders.spark))


def test_it_becomes_dicts_and_frames_of_other_libraries(orders):
    expected = [
        {"id": 1, "name": "ann", "amount": 10.5, "day": dt.date(2024, 1, 1)},
        {"id": 2, "name": "bob", "amount": 20.0, "day": None},
        {"id": 3, "name": "ann", "amount": None, "day": dt.date(2024, 1, 3)},
        {"id": 4, "name": None, "amount": 7.25, "day": dt.date(2024, 1, 4)},
    ]
    assert orders.to_pylist() == expected
    assert orders.to_polars().to_dicts() == expected
    frame = orders.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["id"].tolist() == [1, 2, 3, 4]
    assert frame["amount"].isna().tolist() == [False, False, True, False]


def test_explain_prints_the_plan(orders, capsys):
    assert "== Physical Plan ==" in text_of(capsys, orders.explain)
    assert "== Parsed Logical Plan ==" in text_of(capsys, lambda: orders.explain(extended=True))


def test_frames_are_taken_as_arguments_everywhere(orders, people):
    assert orders.sameSemantics(orders)
    assert orders.sameSemantics(orders.spark)
    assert not orders.sameSemantics(people)
    assert orders.exceptAll(orders).isEmpty()
    assert orders.spark.union(orders).count() == 8
    assert orders.spark.join(people, "name").count() == 3


def test_a_random_split_gives_frames(orders):
    parts = orders.randomSplit([0.5, 0.5], seed=7)
    assert [is_ours(part) for part in parts] == [True, True]
    total = rows(parts[0])[1] + rows(parts[1])[1]
    assert total == rows(orders)[1]


def test_cache_and_unpersist(orders):
    cached = orders.cache()
    assert is_ours(cached)
    assert cached.is_cached
    assert cached.storageLevel.useMemory
    assert cached.count() == 4
    assert not cached.unpersist(blocking=True).storageLevel.useMemory


def test_observe_reports_its_metric(orders):
    observation = Observation("seen")
    orders.observe(observation, F.count("*").alias("n")).collect()
    assert observation.get == {"n": 4}


def test_foreach_runs_on_workers(orders, session):
    seen = session.spark.sparkContext.accumulator(0)
    orders.foreach(lambda row: seen.add(row.id))
    orders.foreachPartition(lambda part: seen.add(sum(100 for _ in part)))
    assert seen.value == 10 + 400


def test_a_temporary_view_of_a_frame(orders, session):
    orders.where("id < 3").createOrReplaceTempView("few")
    assert session.table("few").count() == 2


def test_pyspark_functions_take_a_frame(orders, people):
    native = orders.spark.sparkSession
    assert native.createDataFrame(people.toPandas()).count() == 3
    assert orders.withColumn("n", F.lit(1)).join(people, on=["name"], how="semi").count() == 3


def test_copying_a_frame(orders):
    assert copy.copy(orders).count() == 4


def test_an_unknown_attribute_names_the_nearest(orders):
    with pytest.raises(AttributeError, match="no column or method 'amuont'; did you mean 'amount'"):
        _ = orders.amuont
    with pytest.raises(AttributeError, match=r"(?i)did you mean 'groupBy'"):
        _ = orders.gruopBy
    assert not hasattr(orders, "__no_such_protocol__")


def test_a_wrong_call_in_python_is_pythons_own_error(orders):
    with pytest.raises(TypeError):
        orders.limit()
    with pytest.raises(TypeError):
        orders.withColumn("x", 1)


def test_dir_lists_both_apis(orders):
    assert {"to_arrow", "to_batches", "write_parquet", "groupBy", "toPandas", "id", "amount"} <= set(dir(orders))


def test_repr_is_pysparks(orders):
    assert repr(orders) == repr(orders.spark) == "DataFrame[id: int, name: string, amount: double, day: date]"


# Arrow


ALL_TYPES = """
SELECT CAST(1 AS TINYINT) tiny, CAST(2 AS SMALLINT) small, 3 AS int, 4L AS long, 1.5F AS float, 2.5D AS double,
  CAST('12.345' AS DECIMAL(10, 3)) AS dec, 'text' AS str, X'00FF' AS bin, true AS bool, DATE'2024-02-29' AS day,
  TIMESTAMP'2024-02-29 12:00:00.123456' AS ts, TIMESTAMP_NTZ'2024-02-29 12:00:00.123456' AS ntz,
  INTERVAL '1 02:03:04.000005' DAY TO SECOND AS span, array(1, NULL) AS list, map('k', 1) AS map,
  named_struct('a', 1, 'b', array('x')) AS struct, NULL AS void, CAST(NULL AS INT) AS missing
"""
ALL_ARROW = pa.schema(
    [
        pa.field("tiny", pa.int8(), nullable=False),
        pa.field("small", pa.int16(), nullable=False),
        pa.field("int", pa.int32(), nullable=False),
        pa.field("long", pa.int64(), nullable=False),
        pa.field("float", pa.float32(), nullable=False),
        pa.field("double", pa.float64(), nullable=False),
        pa.field("dec", pa.decimal128(10, 3)),
        pa.field("str", pa.string(), nullable=False),
        pa.field("bin", pa.binary(), nullable=False),
        pa.field("bool", pa.bool_(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("ts", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("ntz", pa.timestamp("us"), nullable=False),
        pa.field("span", pa.duration("us"), nullable=False),
        pa.field("list", pa.list_(pa.field("element", pa.int32())), nullable=False),
        pa.field("map", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)), nullable=False),
        pa.field(
            "struct",
            pa.struct(
                [
                    pa.field("a", pa.int32(), nullable=False),
                    pa.field("b", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
                ]
            ),
            nullable=False,
        ),
        pa.field("void", pa.null()),
        pa.field("missing", pa.int32()),
    ]
)
ALL_VALUES = {
    "tiny": 1,
    "small": 2,
    "int": 3,
    "long": 4,
    "float": 1.5,
    "double": 2.5,
    "dec": Decimal("12.345"),
    "str": "text",
    "bin": b"\x00\xff",
    "bool": True,
    "day": dt.date(2024, 2, 29),
    "ts": dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=dt.UTC),
    "ntz": dt.datetime(2024, 2, 29, 12, 0, 0, 123456),  # noqa: DTZ001 - a time without zone is the point
    "span": dt.timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5),
    "list": [1, None],
    "map": [("k", 1)],
    "struct": {"a": 1, "b": ["x"]},
    "void": None,
    "missing": None,
}


def test_every_type_comes_out_exactly(session):
    table = session.sql(ALL_TYPES).to_arrow()
    assert table.schema == ALL_ARROW
    assert table.to_pylist() == [ALL_VALUES]


def test_every_way_out_gives_the_same(session):
    frame = session.sql(ALL_TYPES)
    table = frame.to_arrow()
    assert pa.Table.from_batches(frame.to_batches(), frame_schema(frame.spark)) == table
    assert pa.table(frame) == table
    assert frame.spark.toArrow() == table
    assert session.sql_with_timeout(ALL_TYPES, 60_000).to_arrow() == table
    assert session.submit(ALL_TYPES).result(60) == table


def test_a_result_within_a_deadline_keeps_its_spark_types(session):
    frame = session.sql_with_timeout(ALL_TYPES, 60_000)
    assert frame.schema == session.sql(ALL_TYPES).schema
    assert frame.select("ntz", "ts").collect() == session.sql(ALL_TYPES).select("ntz", "ts").collect()


def test_large_types_are_the_same_in_a_stream(session):
    session.spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        frame = session.sql("SELECT 'abc' AS s, X'01' AS b")
        table = frame.to_arrow()
        assert table.schema.types == [pa.large_string(), pa.large_binary()]
        assert pa.Table.from_batches(frame.to_batches()) == table
        assert pa.table(frame) == table
    finally:
        session.spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_types_arrow_does_not_have_are_a_typed_error(session):
    frame = session.sql("SELECT INTERVAL 1 MONTH AS m")
    with pytest.raises(UnsupportedError, match="YearMonthInterval"):
        frame.to_arrow()
    with pytest.raises(UnsupportedError, match="YearMonthInterval"):
        list(frame.to_batches())


def test_an_empty_result_keeps_its_schema(session):
    frame = session.sql(ALL_TYPES).limit(0)
    assert frame.to_arrow() == ALL_ARROW.empty_table()
    assert list(frame.to_batches()) == []
    assert pa.table(frame) == ALL_ARROW.empty_table()
    assert pl.DataFrame(session.sql("SELECT 1 AS a WHERE false")).schema == {"a": pl.Int32}


def test_columns_of_one_name_are_all_there(session):
    frame = session.sql("SELECT 1 AS a, 'x' AS a")
    for table in (
        frame.to_arrow(),
        pa.table(frame),
        session.sql_with_timeout("SELECT 1 AS a, 'x' AS a", 60_000).to_arrow(),
    ):
        assert table.column_names == ["a", "a"]
        assert [column.to_pylist() for column in table.columns] == [[1], ["x"]]


def test_polars_reads_a_frame(session, orders):
    frame = pl.DataFrame(orders)
    assert frame.schema == {"id": pl.Int32, "name": pl.String, "amount": pl.Float64, "day": pl.Date}
    assert sorted(frame.rows(), key=str) == sorted((tuple(row) for row in orders.collect()), key=str)


@pytest.mark.parametrize("sizes", [(0, 0, 2), (2, 0, 2), (2, 0), (0,)], ids=str)
def test_batches_without_rows_hide_none_behind_them(session, sizes):
    starts = enumerate(sizes)
    parts = [pa.table({"n": pa.array(range(at * 10, at * 10 + size), pa.int64())}) for at, size in starts]
    rows = pa.concat_tables(parts)
    assert sorted(session.from_arrow(rows).to_arrow()["n"].to_pylist()) == rows["n"].to_pylist()
    with session.flow("with empty batches") as flow:
        flow.register_source("numbers", "n BIGINT")
        flow.tick("numbers", rows)
        assert flow.frame("numbers").count() == flow.snapshot("numbers").num_rows == rows.num_rows


def test_batches_come_in_order_from_every_partition(session):
    frame = session.spark.range(0, 1000, 1, 7)
    ours = session.from_arrow(frame)
    assert [value for batch in ours.to_batches() for value in batch.column(0).to_pylist()] == list(range(1000))


def test_a_stream_never_holds_everything(session):
    # 5 million longs are 40 MB, read in 200 partitions of 0.2 MB.
    frame = session.from_arrow(session.spark.range(0, 5_000_000, 1, 200))
    session.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5000")
    try:
        before = pa.total_allocated_bytes()
        total = count = peak = 0
        for batch in frame.to_batches():
            count += batch.num_rows
            total += batch.column(0)[0].as_py()
            peak = max(peak, pa.total_allocated_bytes() - before + batch.nbytes)
        assert count == 5_000_000
        assert total == sum(range(0, 5_000_000, 5000))
        assert peak < 4_000_000
    finally:
        session.spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def active_jobs(session):
    return list(session.spark.sparkContext.statusTracker().getActiveJobsIds())


STREAMS = {
    "to_batches": lambda df: df.to_batches(),
    "toLocalIterator": lambda df: df.toLocalIterator(prefetchPartitions=True),
}


@pytest.mark.parametrize("method", STREAMS)
@pytest.mark.parametrize("leave", ["close", "drop"])
def test_leaving_a_stream_early_stops_spark(session, method, leave):
    # Each partition after the first sleeps, so a stream that goes on keeps jobs active for a minute.
    def sleepy(batches):
        for batch in batches:
            if batch.column(0)[0].as_py() > 0:
                time.sleep(20)
            yield batch

    slow = session.spark.range(0, 60, 1, 60).mapInArrow(sleepy, "id long")
    stream = STREAMS[method](session.from_arrow(slow))
    next(stream)
    [operation] = session.operations
    assert operation.description == method
    wait_until(lambda: active_jobs(session), 20.0, "busy with the next partition")
    if leave == "close":
        stream.close()
    else:
        del stream
    assert list(session.operations) == []
    wait_until(lambda: not active_jobs(session), 20.0, "idle")


def test_a_failing_stream_raises_a_typed_error(session):
    frame = session.sql("SELECT 1 / (id - 5) AS x FROM range(0, 10, 1, 2)")
    with pytest.raises(QueryError, match="Division by zero"):
        list(frame.to_batches())
    assert list(session.operations) == []


def test_html_shows_the_first_rows_and_is_safe(session):
    html = session.sql("SELECT '<script>' AS `a<b` FROM range(30)")._repr_html_()
    assert "<script>" not in html
    assert html.count("<tr><td>&lt;script&gt;</td></tr>") == 20
    assert "<th>a&lt;b</th>" in html
    assert "only the first 20 rows" in html
    assert "only the first" not in session.sql_with_timeout("SELECT 1 AS a", 60_000)._repr_html_()


# Writing


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_what_is_written_reads_back(session, orders, tmp_path, form):
    getattr(orders, f"write_{form}")(tmp_path / "t")
    schema = "id int, name string, amount double, day date"
    back = getattr(session, f"read_{form}")(tmp_path / "t", schema=schema)
    assert rows(back) == rows(nullable(orders))


def test_save_modes_are_honest(session, tmp_path):
    path = tmp_path / "t"
    one, two = session.sql("SELECT 1 AS a"), session.sql("SELECT 2 AS a")
    one.write_parquet(path)
    with pytest.raises(AlreadyExists, match="already exists"):
        two.write_parquet(path)
    assert read(session, path) == [1]
    two.write_parquet(path, mode="ignore")
    assert read(session, path) == [1]
    two.write_parquet(path, mode="append")
    assert read(session, path) == [1, 2]
    two.write_parquet(path, mode=weirflow.SaveMode.OVERWRITE)
    assert read(session, path) == [2]
    with pytest.raises(ConfigError, match="No write mode is called 'overwite'") as caught:
        two.write_parquet(path, mode="overwite")
    assert caught.value.hint == "did you mean 'overwrite'?"


def nullable(frame):
    """The same rows with every column nullable, which files cannot promise otherwise."""
    native = frame.spark
    fields = [StructField(field.name, field.dataType) for field in native.schema]
    return native.sparkSession.createDataFrame(native.collect(), StructType(fields))


def read(session, path):
    return sorted(row.a for row in session.read_parquet(path).collect())


def test_partitions_are_folders(session, orders, tmp_path):
    orders.write_parquet(tmp_path / "t", partition_by=["name"])
    assert {folder.name for folder in (tmp_path / "t").glob("name=*")} == {
        "name=ann",
        "name=bob",
        "name=__HIVE_DEFAULT_PARTITION__",
    }
    assert session.read_parquet(tmp_path / "t" / "name=bob").select("id").collect() == [Row(id=2)]


def test_a_csv_without_header(session, tmp_path):
    session.sql("SELECT 1 AS a, 'x' AS b").coalesce(1).write_csv(tmp_path / "t", header=False)
    [file] = (tmp_path / "t").glob("*.csv")
    assert file.read_text() == "1,x\n"
    assert session.read_csv(tmp_path / "t", header=False).columns == ["_c0", "_c1"]


def test_tables_are_written_and_read(session, orders):
    orders.write_table("kept")
    assert rows(session.read_table("kept")) == rows(nullable(orders))
    with pytest.raises(AlreadyExists, match="kept"):
        orders.write_table("kept")
    orders.write_table("kept", mode="append")
    assert session.table("kept").count() == 8
    session.drop("kept")
    assert "kept" not in session.tables()


def test_pysparks_own_writers_work(session, orders, tmp_path):
    orders.write.mode("overwrite").option("compression", "gzip").parquet(str(tmp_path / "a"))
    orders.write.format("json").save(str(tmp_path / "b"))
    assert session.read_parquet(tmp_path / "a").count() == session.read_json(tmp_path / "b").count() == 4
    with pytest.raises(AlreadyExists):
        orders.write.parquet(str(tmp_path / "a"))
    with pytest.raises(AlreadyExists):
        orders.write.saveAsTable("twice") or orders.write.saveAsTable("twice")


def test_the_second_writer_api_raises_typed_errors(orders):
    with pytest.raises(QueryError):
        orders.writeTo("no_such_catalog.db.t").append()


def test_a_failed_write_says_why(session, tmp_path):
    with pytest.raises(QueryError, match="Division by zero"):
        session.sql("SELECT 1 / (id - 3) AS x FROM range(5)").write_parquet(tmp_path / "t")
    with pytest.raises(ColumnNotFound):
        session.sql("SELECT 1 AS a").write_parquet(tmp_path / "u", partition_by=["b"])


def test_a_frame_outlives_nothing(session):
    with weirflow.Session.embedded(**SETTINGS) as closing:
        frame = closing.sql("SELECT 1 AS a")
        computed = closing.sql_with_timeout("SELECT 2 AS a", 60_000)
    for use in (frame.count, frame.to_arrow, lambda: frame.schema, lambda: next(frame.to_batches()), lambda: frame.a):
        with pytest.raises(SessionClosed):
            use()
    assert (
        pa.table(computed)
        == computed.to_arrow()
        == pa.table({"a": pa.array([2], pa.int32())}).cast(pa.schema([pa.field("a", pa.int32(), nullable=False)]))
    )
    assert isinstance(computed, NativeFrame)
