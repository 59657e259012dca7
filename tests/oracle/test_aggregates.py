"""Aggregates over groups and frames hold what Spark says after every tick, read by its analyzer or by the binder."""

import decimal
import math
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from support.aggregate_catalogue import CALLS, QUERIES, SOURCES, ticks
from support.maintained import Maintained, comparable
from support.shared_session import INTERPRETED
from support.spark_engine import plan_reader

from weirflow import IncrementalFlow
from weirflow.errors import DataError
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.spark.frames.arrow import relation_frame
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.settings import SqlSettings
from weirflow.sql.types import nullable

PAIRS = {"t": pa.schema([("x", pa.float64()), ("z", pa.float64())])}
_ANSI, _ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"


@pytest.fixture(params=[True, False], ids=["ANSI", "not ANSI"])
def settings(session, request):
    session.spark.conf.set(_ANSI, str(request.param).lower())
    if not request.param:  # the code that Spark generates is looked at with ANSI
        for name, value in INTERPRETED.items():
            session.spark.conf.set(name, value)
    yield SqlSettings(ansi=request.param)
    session.spark.conf.set(_ANSI, "true")
    session.spark.conf.set(_ZONE, "UTC")


def check(session, settings, queries, changes, *, each=False):
    """Maintain the queries read either way, and compare both with Spark's after the last tick, or after each."""
    reader = plan_reader(session.spark.newSession)
    texts = {name: query.text for name, query in queries.items()}
    plans = {name: reader.read(text, SOURCES, settings) for name, text in texts.items()}
    readings = {
        "the binder": Maintained(SOURCES, texts, None, settings),
        "Spark's analyzer": Maintained(SOURCES, texts, plans, settings),
    }
    for number, tick in enumerate(changes, 1):
        for views in readings.values():
            views.tick({"t": tick})
        if not each and number < len(changes):
            continue
        relation_frame(session.spark, readings["the binder"].table("t")).createOrReplaceTempView("t")
        for name, query in queries.items():
            expected = session.spark.sql(query.text).toArrow()
            for reader_name, views in readings.items():
                assert views.schemas[name].types == [nullable(kind) for kind in expected.schema.types]
                found = differences(query, list(views.views[name].elements()), rows_of(expected))
                assert found == [], f"{name}, read by {reader_name}"
    session.spark.catalog.dropTempView("t")


def rows_of(table):
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def differences(query, ours, theirs):
    """Where rows of the same key differ: the call, ours, Spark's."""
    mine, expected = ({row[: query.keys]: row for row in rows} for rows in (ours, theirs))
    assert len(mine) == len(ours)
    assert mine.keys() == expected.keys()
    return [
        (query.calls[at - query.keys], key, mine[key][at], expected[key][at])
        for key in expected
        for at in range(query.keys, len(expected[key]))
        if not same(mine[key][at], expected[key][at], exact=at < query.keys + query.exact)
    ]


def same(ours, theirs, *, exact):
    if exact or not isinstance(ours, float) or not isinstance(theirs, float):
        return ours == theirs and type(ours) is type(theirs)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


def test_aggregates_hold_what_spark_says(session, settings):
    some = ("groups", "different texts of groups", "frames") if settings.ansi else ("groups",)
    queries = {name: QUERIES[name] for name in some}
    check(session, settings, queries, ticks(seed=5, count=3, size=60))


def test_columns_have_the_names_that_spark_gives_them(session):
    empty = relation_frame(session.spark, Maintained(SOURCES, {}).table("t"))
    empty.createOrReplaceTempView("t")
    fields = {"t": tuple(Field(one.name, one.type) for one in SOURCES["t"])}
    texts = [f"SELECT {call} FROM t" for call in {**dict.fromkeys(CALLS)}]
    ours = {text: bind_query(text, fields).fields[0].name for text in texts}
    theirs = {text: session.spark.sql(text).columns[0] for text in texts}
    session.spark.catalog.dropTempView("t")
    assert {text: (name, theirs[text]) for text, name in ours.items() if name != theirs[text]} == {}


def test_distinct_values_are_estimated_as_spark_does(session):
    """From a few, which are counted, to many, beyond what is corrected; half of them are taken back."""
    sizes = [0, 3, 250, 390, 420, 700, 1500, 2400, 2700, 6000]
    ids = [number * 7_919 + at for number, size in enumerate(sizes) for at in range(2 * size)]
    groups = [number for number, size in enumerate(sizes) for _ in range(2 * size)]
    rows = pa.table({"k": pa.array(groups, pa.int32()), "id": pa.array(ids, pa.int64())})
    kept = rows.filter(pc.equal(pc.bit_wise_and(rows["id"], 1), 0))
    errors = (0.39, 0.2, 0.1, 0.05, 0.02)
    calls = ", ".join(f"approx_count_distinct(id, {error}D) AS c{at}" for at, error in enumerate(errors))
    text = f"SELECT k, approx_count_distinct(CAST(id AS STRING)) AS n, {calls} FROM t GROUP BY k"
    relation_frame(session.spark, kept).createOrReplaceTempView("t")
    expected = session.spark.sql(text).toArrow()
    session.spark.catalog.dropTempView("t")
    with IncrementalFlow() as flow:
        flow.register_source("t", rows.schema)
        flow.register_view("estimates", text)
        flow.tick("t", rows)
        odd = rows.filter(pc.equal(pc.bit_wise_and(rows["id"], 1), 1))
        flow.tick("t", DeltaBatch.from_deletes(odd))
        assert Counter(rows_of(flow.snapshot("estimates"))) == Counter(rows_of(expected))


def test_what_divides_by_zero_fails_in_both(session, settings):
    """Of constants there is no correlation: an error, or NULL without ANSI."""
    text = "SELECT corr(x, z) AS c FROM t"
    views = Maintained(PAIRS, {"v": text}, None, settings)
    views.tick({"t": [((0.1, 1.0), 1)]})
    assert list(views.views["v"]) == [(None,)]
    rows = [((0.1, 2.0), 1)]
    spark = session.spark.sql("SELECT corr(x, z) AS c FROM VALUES (0.1D, 1D), (0.1D, 2D) AS t(x, z)")
    if settings.ansi:
        with pytest.raises(DataError) as ours:
            views.tick({"t": rows})
        with pytest.raises(PySparkException) as theirs:
            spark.collect()
        assert ours.value.condition == theirs.value.getCondition() == "DIVIDE_BY_ZERO"
    else:
        views.tick({"t": rows})
        assert list(views.views["v"]) == [(None,)] == [tuple(row) for row in spark.collect()]


@pytest.mark.parametrize("call", ["sum(m)", "avg(m)"])
def test_totals_that_do_not_fit_fail_in_both(session, settings, call):
    """Of decimals: an error, or NULL without ANSI."""
    kind = pa.decimal128(38, 0)
    largest = decimal.Decimal("9" * 38)
    views = Maintained({"t": pa.schema([("m", kind)])}, {"v": f"SELECT {call} AS c FROM t"}, None, settings)
    spark = session.spark.sql(f"SELECT {call} AS c FROM VALUES ({largest}BD), ({largest}BD) AS t(m)")
    rows = [((largest,), 2)]
    if settings.ansi:
        with pytest.raises(DataError) as ours:
            views.tick({"t": rows})
        with pytest.raises(PySparkException) as theirs:
            spark.collect()
        assert ours.value.condition == theirs.value.getCondition()
    else:
        views.tick({"t": rows})
        assert list(views.views["v"]) == [(None,)] == [tuple(row) for row in spark.collect()]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_many_aggregates_hold_what_spark_says(session, settings, seed):
    """In two zones: one of them for every other seed."""
    zone = ("UTC", "America/New_York")[seed % 2]
    session.spark.conf.set(_ZONE, zone)
    check(session, replace(settings, time_zone=zone), QUERIES, ticks(seed, count=5, size=150), each=True)
