"""Aggregates over groups and frames hold what Spark says after every tick, read by its analyzer or by the binder."""

import math

import pytest
from support.aggregate_catalogue import QUERIES, SOURCES, ticks
from support.maintained import Maintained, comparable
from support.spark_engine import plan_reader

from weirflow.spark.frames.arrow import relation_frame
from weirflow.sql.settings import SqlSettings
from weirflow.sql.types import nullable

_ANSI = "spark.sql.ansi.enabled"


@pytest.fixture(params=[True, False], ids=["ANSI", "not ANSI"])
def settings(session, request):
    session.spark.conf.set(_ANSI, str(request.param).lower())
    yield SqlSettings(ansi=request.param)
    session.spark.conf.set(_ANSI, "true")


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
    names = [part.strip() for part in query.text.split(" AS ")]
    return [
        (names[at - query.keys], key, mine[key][at], expected[key][at])
        for key in expected
        for at in range(query.keys, len(expected[key]))
        if not same(mine[key][at], expected[key][at], exact=at < query.keys + query.exact)
    ]


def same(ours, theirs, *, exact):
    if exact or not isinstance(ours, float) or not isinstance(theirs, float):
        return ours == theirs and type(ours) is type(theirs)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


def test_aggregates_hold_what_spark_says(session, settings):
    check(session, settings, QUERIES, ticks(seed=5, count=3, size=60))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_many_aggregates_hold_what_spark_says(session, settings, seed):
    check(session, settings, QUERIES, ticks(seed, count=5, size=150), each=True)
