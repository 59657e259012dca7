"""Durable flows whose views Spark read are opened where there is no Java, go on there, and are Spark's views still."""

import datetime as dt
import json
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from support.maintained import Maintained
from support.view_corpus import SOURCES, RandomTables

from weirflow.flows.recompute import view_schema
from weirflow.spark.frames.frame import unwrap

ZONE = "spark.sql.session.timeZone"
EVENTS = "at TIMESTAMP, v BIGINT"
TEXTS = {
    "pipes": "FROM t |> WHERE v > 0 |> AGGREGATE SUM(v) AS s GROUP BY k",
    "unpivoted": "SELECT * FROM t UNPIVOT (x FOR n IN (k, v))",
    "sets": "SELECT k, s, COUNT(*) AS n FROM t GROUP BY k, s GROUPING SETS ((k), (s), ())",
    "natural": "SELECT * FROM u NATURAL JOIN t",
    "nulls": "SELECT k, NULLIF(v, 2) AS a, TRY_CAST(s AS INT) AS b, v / NULLIF(k, 0) AS c FROM t",
    "subqueries": "SELECT k, (SELECT MAX(w) FROM u WHERE u.k = t.k) AS m FROM t WHERE v IN (SELECT w FROM u)",
    "ranked": "SELECT k, v, s, rank() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, s) AS r FROM t",
    "top": "SELECT k, s FROM t ORDER BY v DESC NULLS LAST, k, s LIMIT 3",
    "days": "SELECT to_date(at) AS day, hour(at) AS h, SUM(v) AS s FROM e GROUP BY ALL",
    "constants": "SELECT k, TIMESTAMP'2024-11-03 01:30:00' AS at, X'00FF' AS b, 1.10BD AS n FROM u",
    "on_a_view": "SELECT s, COUNT(*) AS n FROM pipes GROUP BY s",
}
MOMENTS = pa.Table.from_pylist(
    [{"at": dt.datetime(2024, 11, 3, hour, 30, tzinfo=dt.UTC), "v": hour} for hour in (3, 4, 5, 6)],
    schema=pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.int64())]),
)
"""Around the hour that New York's clocks show twice."""
CHILD = """
import json, shutil, sys
from weirflow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

path, shards = sys.argv[1], int(sys.argv[2])
assert shutil.which("java") is None
flow = PartitionedFlow(path, shards, InThisProcess(), name="kept") if shards else IncrementalFlow("kept", path=path)
with flow:
    for tick in json.load(sys.stdin):
        flow.tick(tick)
    found = {name: [list(map(str, row.values())) for row in flow.snapshot(name).to_pylist()] for name in flow.views}
assert not {"pyspark", "py4j"} & sys.modules.keys()
print(json.dumps(found))
"""
"""Ticks a flow where there is no Java, and says what is in its views then."""


@pytest.fixture
def in_new_york(session):
    session.spark.conf.set(ZONE, "America/New_York")
    yield
    session.spark.conf.set(ZONE, "UTC")


def named(tick):
    """A tick as dicts of rows with their weights."""
    return {
        name: [{**dict(zip(SOURCES[name].names, row, strict=True)), "_weight": weight} for row, weight in rows]
        for name, rows in tick.items()
        if rows
    }


def without_java(path, shards, ticks, empty):
    """The views after these ticks in a process that has no Java."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(shards)],
        input=json.dumps(ticks),
        env={"PATH": str(empty), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: Counter(map(tuple, rows)) for name, rows in json.loads(done.stdout).items()}


def totals(table):
    return table.where(F.col("v").isNotNull()).groupBy("k").agg(F.sum(F.col("v") * 2).alias("s"))


def by_spark(frame):
    table = unwrap(frame).toArrow()
    return Counter(tuple(map(str, row.values())) for row in table.cast(view_schema(table.schema)).to_pylist())


@pytest.mark.usefixtures("in_new_york")
@pytest.mark.parametrize(
    "shards",
    [pytest.param(0, id="in one process"), pytest.param(2, id="in shards", marks=pytest.mark.campaign)],
)
def test_a_flow_is_opened_and_goes_on_without_java(session, tmp_path, shards):
    tables, data = RandomTables(seed=6), Maintained(SOURCES, {})
    ticks = [tables.changes(most=30) for _ in range(4)]
    with session.flow("kept", path=tmp_path / "kept", **({"partitions": shards} if shards else {})) as flow:
        for name, schema in SOURCES.items():
            flow.register_source(name, schema)
        flow.register_source("e", EVENTS)
        for name, sql in TEXTS.items():
            flow.register_view(name, sql, mode="incremental")
        flow.register_view("frame", totals(flow.table("t")))
        flow.tick("e", MOMENTS)
        for tick in ticks[:2]:
            flow.tick(named(tick))
    found = without_java(tmp_path / "kept", shards, [named(tick) for tick in ticks[2:]], tmp_path / "nothing")
    for tick in ticks:
        data.tick(tick)
    for name in SOURCES:
        session.register(name, data.table(name))
    session.register("e", MOMENTS)
    session.register("pipes", session.sql(TEXTS["pipes"]))
    assert found.keys() == {*TEXTS, "frame"}
    for name, sql in TEXTS.items():
        assert found[name] == by_spark(session.sql(sql)), name
    assert found["frame"] == by_spark(totals(session.sql("SELECT * FROM t")))
    assert all(found.values())
