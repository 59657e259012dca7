"""Views of a Session are read by Spark's analyzer: what they hold is what Spark says the text means."""

import datetime as dt
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from support import sql_catalogue, tpch
from support.maintained import Maintained, comparable
from support.tpch_data import TpchData
from support.view_corpus import SOURCES, VIEWS, RandomTables

from weirflow import IncrementalFlow
from weirflow.errors import ColumnNotFound, ConfigError, DataError, QueryError, SqlSyntaxError, TableNotFound
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.sql.typing.type_syntax import parse_ddl

ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]


@pytest.fixture
def flow(session):
    with session.flow("front door") as flow:
        yield flow


@pytest.fixture
def in_zone(session):
    """Has the Session's SQL mean times of another zone."""

    def switch(zone):
        session.spark.conf.set("spark.sql.session.timeZone", zone)

    yield switch
    session.spark.conf.set("spark.sql.session.timeZone", "UTC")


def recomputed(flow):
    return {one.name for one in flow.describe().relations if one.kind == "diff"}


def changes(schema, rows):
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row, _ in rows], schema=schema)
    return DeltaBatch.from_weighted(
        table.append_column("_weight", pa.array([weight for _, weight in rows], pa.int64()))
    )


def check_corpus(flow, sources, views, ticks, *, by_spark=()):
    """As the binder reads each text, row by row after each tick; ``by_spark`` has no form that could be imported."""
    for name, schema in sources.items():
        flow.register_source(name, schema)
    for name, sql in views.items():
        flow.register_view(name, sql)
    expected = Maintained(sources, views)
    assert recomputed(flow) == set(by_spark)
    for tick in ticks:
        expected.tick(tick)
        flow.tick({name: changes(sources[name], rows) for name, rows in tick.items() if rows})
    for name in views:
        assert flow.schema(name).names == expected.schemas[name].names, name
        assert flow.schema(name).types == expected.schemas[name].types, name
        rows = Counter(tuple(map(comparable, row.values())) for row in flow.snapshot(name).to_pylist())
        assert rows == expected.views[name], name


def test_views_are_read_as_the_binder_reads_them(flow):
    tables = RandomTables(seed=3)
    check_corpus(flow, SOURCES, VIEWS, [tables.changes(most=8) for _ in range(2)])


def test_constructs_are_read_as_the_binder_reads_them(flow):
    tables = sql_catalogue.CatalogueTables(seed=5)
    views = {f"v{number}": one.sql for number, one in enumerate(sql_catalogue.CONSTRUCTS) if one.is_kept}
    check_corpus(flow, sql_catalogue.SOURCES, views, [tables.changes(most=9) for _ in range(2)])


def test_constructs_that_are_refused_without_spark_are_maintained_with_it_as_the_page_says(flow):
    for name, schema in sql_catalogue.SOURCES.items():
        flow.register_source(name, schema)
    refused = [one for one in sql_catalogue.CONSTRUCTS if one.is_refused]
    for number, one in enumerate(refused):
        flow.register_view(f"v{number}", one.sql)
        shown = flow.explain(f"v{number}")
        found = sql_catalogue.RECOMPUTED if "why: " in shown else sql_catalogue.ON_DELTA
        assert (one.name, one.with_spark) == (one.name, found)
        assert found == sql_catalogue.RECOMPUTED or "evaluated by Spark on the delta" in shown


def test_tpch_is_read_as_the_binder_reads_it(flow):
    world = TpchData(seed=8)
    sources = {name: parse_ddl(ddl) for name, ddl in tpch.SCHEMAS.items()}
    check_corpus(flow, sources, {f"q{number}": sql for number, sql in tpch.QUERIES.items()}, [world.base(orders=40)])


# What is easily read otherwise than by Spark: each is imported, and its rows are Spark's.
EASILY_MISREAD = {
    "pipes": "FROM t |> WHERE v > 1 |> AGGREGATE SUM(v) AS s GROUP BY k |> WHERE s > 2",
    "table": "TABLE t",
    "unpivot": "SELECT * FROM t UNPIVOT (x FOR n IN (k, v))",
    "pivot": "SELECT * FROM t PIVOT (SUM(v) AS s FOR k IN (1, 2, 3))",
    "grouping sets of groups": "SELECT k, s, COUNT(*) AS n FROM t GROUP BY k, s GROUPING SETS ((k), (s), ())",
    "concatenation": "SELECT s || v + 1 AS x FROM t",
    "ordinals": "SELECT k, 1 AS one FROM t ORDER BY one, k, v, s LIMIT 2",
    "columns of using": "SELECT t.*, w FROM t JOIN u USING (k)",
    "natural": "SELECT * FROM u NATURAL JOIN t",
    "range": "SELECT id, v FROM range(3) JOIN t ON v = id",
    "constant limit": "SELECT k, v, s FROM t ORDER BY v NULLS LAST, k, s LIMIT 1 + 1",
    "shifted": "SELECT v << 2 AS a, v >> 1 AS b FROM t",
    "order by what is left out": "SELECT k, s FROM t ORDER BY v DESC NULLS LAST, k, s LIMIT 3",
    "twice": "SELECT k FROM (SELECT k, s FROM t ORDER BY v DESC NULLS LAST, k, s LIMIT 3 OFFSET 1)",
    "order of a common table": "WITH o AS (SELECT * FROM t ORDER BY v DESC NULLS LAST, k, s) SELECT k FROM o LIMIT 2",
    "filtered": "SELECT k FROM (SELECT k, v FROM t ORDER BY v, k, s) WHERE k > 0",
    "hints": "SELECT /*+ BROADCAST(u), REPARTITION(3) */ t.k, w FROM t JOIN u ON t.k = u.k",
    "between columns": "SELECT k FROM t WHERE v BETWEEN SYMMETRIC 5 AND 1",
    "nullif": "SELECT k, nullif(k, 1) AS x, nullif(v, k) AS y FROM t",
    "epoch": "SELECT k, DATE'1970-01-01' + CAST(v AS INT) AS d FROM t",
}


def test_what_is_easily_misread_is_maintained_as_spark_reads_it(session, flow):
    for name, schema in SOURCES.items():
        flow.register_source(name, schema)
    names = {}
    for number, (name, sql) in enumerate(EASILY_MISREAD.items()):
        try:
            flow.register_view(f"v{number}", sql)
        except SqlSyntaxError:  # of a later Spark
            continue
        names[f"v{number}"] = name
    tables = RandomTables(seed=4)
    data = Maintained(SOURCES, {})
    for _ in range(3):
        tick = tables.changes(most=8)
        data.tick(tick)
        flow.tick({name: changes(SOURCES[name], rows) for name, rows in tick.items() if rows})
    for name in SOURCES:
        session.register(name, data.table(name))
    for view, name in names.items():
        expected = session.sql(EASILY_MISREAD[name]).to_arrow()
        found = flow.snapshot(view)
        assert found.schema.names == expected.schema.names, name
        assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.to_pylist())), name
    assert {names[view] for view in recomputed(flow)} == set()


# What Spark's JSON of a plan leaves out or garbles, each beside what it would be taken for.
LOSSY = {
    "a cast that may not fail": ("CAST(s AS INT)", "TRY_CAST(s AS INT)"),
    "overflow": ("k + 9223372036854775800L", "try_add(k, 9223372036854775800L)"),
    "division": ("v / (k + 10)", "try_divide(v, k - k)"),
    "bytes": ("X'00FF41'", "X''"),
    "a time that is there twice": ("TIMESTAMP'2024-11-03 01:30:00-04:00'", "TIMESTAMP'2024-11-03 01:30:00-05:00'"),
    "times without a zone": ("TIMESTAMP_NTZ'2024-11-03 01:30:00.000001'", "DATE'0001-01-01'"),
    "intervals": ("DATE'2024-01-31' + INTERVAL '1' MONTH", "DATE'2024-01-31' - INTERVAL '40' DAY"),
    "decimals": ("1.10BD", "CAST(1.1 AS DECIMAL(38, 18))"),
    "floats": ("CAST('NaN' AS DOUBLE)", "-0.0D"),
    "escapes": ("s LIKE '!%' ESCAPE '!'", "s LIKE '\\\\%'"),
    "arrays and maps": ("array(1, NULL)", "map('a', 1.5)"),
    "text": ("'it''s \\\\ \"x\" \u00e9'", "''"),
    "NULL": ("CAST(NULL AS DATE)", "NULL IS NULL"),
}
LOSSY_RELATIONS = {
    "constants": "SELECT * FROM VALUES (1, 'a', 1.5, DATE'2024-02-29'), (NULL, NULL, NULL, NULL) AS c(a, b, c, d)",
    "constants with times": "SELECT * FROM VALUES (TIMESTAMP'2024-03-10 03:00:00', X'01', 1e300) AS c(x, y, z)",
    "sums that may not overflow": "SELECT k, SUM(v) AS a, try_sum(v) AS b, try_avg(v) AS c FROM t GROUP BY k",
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_what_the_plan_leaves_out_is_read_all_the_same(session, flow, in_zone, zone):
    in_zone(zone)
    schema = SOURCES["t"]
    rows = pa.Table.from_pylist([{"k": 1, "v": 2, "s": "3"}], schema=schema)
    queries = {name: f"SELECT k, {one} AS a, {other} AS b FROM t" for name, (one, other) in LOSSY.items()}
    queries |= LOSSY_RELATIONS
    flow.register_source("t", schema)
    for number, sql in enumerate(queries.values()):
        flow.register_view(f"v{number}", sql)
    flow.tick("t", rows)
    session.register("t", rows)
    for number, (name, sql) in enumerate(queries.items()):
        expected, found = session.sql(sql).to_arrow(), flow.snapshot(f"v{number}")
        assert found.schema.names == expected.schema.names, name
        assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.to_pylist())), name
    kept = {name for number, name in enumerate(queries) if f"v{number}" not in recomputed(flow)}
    assert {"a cast that may not fail", "bytes", "a time that is there twice", "intervals", "constants"} <= kept


TIMES = """
to_date(at), hour(at), minute(at), second(at), year(at), dayofweek(at), weekofyear(at), date_trunc('year', at),
date_trunc('quarter', at), date_trunc('month', at), date_trunc('week', at), date_trunc('day', at),
date_trunc('hour', at), date_trunc('minute', at), date_trunc('second', at), CAST(at AS STRING), CAST(at AS DATE),
CAST(at AS TIMESTAMP_NTZ), CAST(d AS TIMESTAMP), CAST(n AS TIMESTAMP), unix_micros(at), CAST(at AS BIGINT),
at > TIMESTAMP'2024-03-10 02:30:00', at >= DATE'2024-11-03', date_trunc('day', d), hour(d), hour(n),
TIMESTAMP'2024-11-03 01:30:00', extract(HOUR FROM at), datediff(at, d), at = d, at BETWEEN d AND date_add(d, 1),
CAST(CAST(n AS STRING) AS TIMESTAMP), to_timestamp(CAST(d AS STRING)),
CAST('2024-11-03 01:30:00' AS TIMESTAMP), at > '2024-03-10', CAST('2024-11-03 01:30:00+02:00' AS TIMESTAMP),
at + INTERVAL '90' MINUTE, at - INTERVAL '5' SECOND, n + INTERVAL '2' DAY, TRY_CAST(n AS STRING)
"""
_utc = partial(dt.datetime, tzinfo=dt.UTC)
MOMENTS = [
    moment + dt.timedelta(minutes=minutes)
    for moment in (
        _utc(2024, 3, 10, 7),  # New York's clocks are put forward
        _utc(2024, 11, 3, 6),  # and back
        _utc(1883, 11, 18, 17),  # before, noon was when the sun said so
        _utc(1945, 8, 14, 23),
        _utc(2050, 3, 13, 7),  # by the rule
        _utc(2550, 7, 1),  # by the rule of 400 years before
        _utc(1001, 1, 1),
        _utc(2024, 2, 29, 18, 30),
    )
    for minutes in (-90, -31, -1, 0, 29, 90)
]


@pytest.mark.parametrize("zone", ZONES)
def test_times_are_those_of_the_sessions_zone(session, flow, in_zone, zone):
    in_zone(zone)
    flow.register_source("t", "at TIMESTAMP, d DATE, n TIMESTAMP_NTZ")
    sql = f"SELECT at, {TIMES} FROM t"
    flow.register_view("times", sql, mode="incremental")
    rows = pa.table(
        [
            pa.array(MOMENTS, pa.timestamp("us", "UTC")),
            pa.array([moment.date() for moment in MOMENTS]),
            pa.array([moment.replace(tzinfo=None) for moment in MOMENTS], pa.timestamp("us")),
        ],
        names=["at", "d", "n"],
    )
    flow.tick("t", rows)
    session.register(
        "given",
        rows.drop_columns(["n"]).append_column("text", pa.array([str(one.replace(tzinfo=None)) for one in MOMENTS])),
    )
    expected = session.sql(
        f"SELECT at, {TIMES} FROM (SELECT at, d, CAST(text AS TIMESTAMP_NTZ) AS n FROM given)"
    ).to_arrow()
    found = flow.snapshot("times")
    assert found.schema.names == expected.schema.names
    assert Counter(map(str, found.to_pylist())) == Counter(map(str, expected.to_pylist()))


def test_a_view_keeps_the_settings_that_it_was_registered_with(session, flow):
    session.spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        flow.register_source("t", "a INT, b INT")
        flow.register_view("v", "SELECT a / b AS x FROM t")
        flow.register_view("w", "SELECT a + 2147483647 AS x FROM t")
        flow.tick("t", [{"a": 1, "b": 0}, {"a": 6, "b": 3}])
    finally:
        session.spark.conf.set("spark.sql.ansi.enabled", "true")
    with session.flow("usual") as usual:  # is read by its own settings, whatever Spark read before
        usual.register_source("t", "a INT, b INT")
        usual.register_view("v", "SELECT a / b AS x FROM t", mode="incremental")
    with pytest.raises(DataError, match="overflow"):
        flow.register_view("later", "SELECT a + 2147483647 AS x FROM t")
    assert recomputed(flow) == set()
    assert Counter(row["x"] for row in flow.snapshot("v").to_pylist()) == Counter([None, 2.0])
    assert Counter(row["x"] for row in flow.snapshot("w").to_pylist()) == Counter([-2147483648, -2147483643])


def test_what_spark_rejects_is_rejected_with_its_place(flow):
    flow.register_source("t", "a INT")
    for sql, error, place in (
        ("SELECT nope FROM t", ColumnNotFound, (1, 8)),
        ("SELECT a a a FROM t", SqlSyntaxError, (1, 12)),
        ("SELECT a + FROM t", QueryError, None),
    ):
        with pytest.raises(error) as caught:
            flow.register_view("v", sql)
        if place is not None:
            assert (caught.value.position.line, caught.value.position.column) == place, sql
    assert flow.views == ()


@pytest.mark.parametrize(
    "sql",
    [
        "DROP VIEW t",
        "CREATE TABLE made (a INT)",
        "INSERT INTO t VALUES (1)",
        "WITH x AS (SELECT 1) INSERT INTO t TABLE x",
    ],
)
def test_a_statement_is_no_view_and_is_not_run(session, flow, sql):
    flow.register_source("t", "a INT")
    with pytest.raises(QueryError):
        flow.register_view("v", sql)
    assert flow.sources == ("t",)
    assert session.tables() == []


def test_what_is_not_deterministic_says_so(flow):
    flow.register_source("t", "a INT")
    for sql in ("SELECT rand() AS r FROM t", "SELECT now() AS r FROM t", "SELECT uuid() AS r FROM t"):
        with pytest.raises(QueryError) as caught:
            flow.register_view("v", sql, mode="incremental")
        assert caught.value.reason == "EXPRESSION_NOT_DETERMINISTIC"


def test_a_durable_flow_is_opened_without_spark(session, in_zone, tmp_path):
    in_zone("America/New_York")
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.register_source("t", "at TIMESTAMP, v BIGINT")
        flow.register_view("days", "FROM t |> AGGREGATE SUM(v) AS s GROUP BY to_date(at) AS day")
        flow.tick("t", [{"at": dt.datetime(2024, 3, 10, 4, tzinfo=dt.UTC), "v": 1}])
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"at": dt.datetime(2024, 3, 10, 4, 30, tzinfo=dt.UTC), "v": 2}])
        assert flow.snapshot("days").to_pylist() == [{"day": dt.date(2024, 3, 9), "s": 3}]


@pytest.fixture(params=["in one process", pytest.param("in shards", marks=pytest.mark.campaign)])
def shop(session, request):
    with session.flow("shop", **({"partitions": 2} if request.param == "in shards" else {})) as flow:
        flow.register_source("orders", "customer STRING, amount BIGINT")
        flow.register_source("customers", "name STRING, city STRING")
        yield flow


def test_frames_are_views(shop):
    orders, customers = shop.table("orders"), shop.table("customers")
    totals = orders.where(F.col("amount") > 0).groupBy("customer").agg(F.sum("amount").alias("total"))
    shop.register_view("totals", totals)
    joined = shop.table("totals").join(customers, F.col("customer") == F.col("name")).select("city", "total")
    shop.register_view("cities", joined.groupBy("city").agg(F.max("total").alias("best")))
    shop.register_view("totals", totals)  # once more is nothing
    shop.tick("customers", [{"name": "ann", "city": "Rome"}, {"name": "bob", "city": "Rome"}])
    shop.tick("orders", [{"customer": "ann", "amount": 5}, {"customer": "bob", "amount": 7}])
    shop.tick("orders", [{"customer": "ann", "amount": 4}, {"customer": "eve", "amount": -1}])
    assert shop.snapshot("cities").to_pylist() == [{"city": "Rome", "best": 9}]
    assert recomputed(shop) == set()
    assert "groupBy" not in shop.explain("totals")
    shop.replace_view("totals", orders.groupBy("customer").agg(F.min("amount").alias("total")))
    assert shop.snapshot("cities").to_pylist() == [{"city": "Rome", "best": 7}]


def test_threads_may_register_views_at_once(flow):
    for name, schema in SOURCES.items():
        flow.register_source(name, schema)

    def register(number):
        for turn in range(3):
            flow.register_view(f"text_{number}_{turn}", f"SELECT k FROM t WHERE v > {turn}")
            flow.register_view(f"frame_{number}_{turn}", flow.table("t").where(F.col("v") > turn).select("k"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(register, range(4)))
    flow.tick("t", [{"k": 1, "v": 2, "s": None}])
    assert len(flow.views) == 24
    found = {name: flow.snapshot(name).num_rows for name in flow.views}
    assert found == {name: int(not name.endswith("_2")) for name in flow.views}


def test_a_durable_flow_keeps_views_of_frames(session, tmp_path):
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.register_source("t", "a BIGINT")
        flow.register_view("v", flow.table("t").select((F.col("a") * 2).alias("twice")))
        flow.tick("t", [{"a": 1}])
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"a": 2}])
        assert sorted(row["twice"] for row in flow.snapshot("v").to_pylist()) == [2, 4]


def test_what_a_frame_cannot_be_is_said(session, shop):
    orders = shop.table("orders")
    with pytest.raises(QueryError, match="approx"):
        shop.register_view("v", orders.agg(F.percentile_approx("amount", 0.5).alias("x")))
    with pytest.raises(QueryError, match="no incremental form"):
        shop.register_view("v", session.sql("SELECT 1 AS a FROM range(3)").toDF("b").sample(0.5))
    with pytest.raises(ConfigError, match="can only be maintained by deltas"):
        shop.register_view("v", orders.select("amount"), mode="diff")
    with pytest.raises(ConfigError, match="not an int"):
        shop.register_view("v", 3)
    with pytest.raises(TableNotFound, match="nowhere"):
        shop.table("nowhere")
    with pytest.raises(ConfigError, match="one query in SQL") as caught:
        IncrementalFlow().register_view("v", orders)
    assert "flow.table" in caught.value.hint
    assert shop.views == ()
