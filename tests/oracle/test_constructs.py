"""Laterals, subqueries, pivots and pipes are maintained by deltas, read with Spark and without, and equal Spark."""

from collections import Counter

import pytest
from support.construct_catalogue import EDGES, QUERIES, SOURCES, table, ticks
from support.maintained import Maintained, comparable
from support.spark_engine import plan_reader

from weirflow.sql.settings import USUAL
from weirflow.sql.types import nullable

BATCH = 40
SAMPLE = 16
PLAIN = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture
def spark(session):
    before = {key: session.spark.conf.get(key) for key in PLAIN}
    for key, value in PLAIN.items():
        session.spark.conf.set(key, value)
    yield session.spark
    for key, value in before.items():
        session.spark.conf.set(key, value)


def columns(schema):
    return [(field.name, nullable(field.type)) for field in schema]


def rows(found):
    return Counter(zip(*([comparable(value) for value in column.to_pylist()] for column in found.columns), strict=True))


def lives(queries, plans):
    """The columns of each query, and its rows after each tick."""
    names = {f"v{number}": query for number, query in enumerate(queries)}
    views = Maintained(SOURCES, names, plans and {name: plans[query] for name, query in names.items()}, USUAL)
    after = []
    for tick in ticks():
        views.tick(tick)
        after.append({query: Counter(views.views[name]) for name, query in names.items()})
    return {query: columns(views.schemas[name]) for name, query in names.items()}, after


def check(session, spark, queries, *, states):
    reader = plan_reader(spark.newSession)
    plans = {query: reader.read(query, SOURCES, USUAL) for query in queries}
    assert None not in plans.values()
    for batch in [queries[at : at + BATCH] for at in range(0, len(queries), BATCH)]:
        bound, imported = lives(batch, None), lives(batch, plans)
        for state in states:
            register(session, state)
            for query in batch:
                wanted = spark.sql(query).toArrow()
                for schemas, after in (bound, imported):
                    assert schemas[query] == columns(wanted.schema), query
                    assert after[state][query] == rows(wanted), query


def register(session, state):
    """The rows that the sources have after a tick."""
    for name in SOURCES:
        held = Counter()
        for tick in ticks()[: state + 1]:
            for row, weight in tick[name]:
                held[row] += weight
        session.register(name, table(name, list(held.elements())))


def test_a_construct_equals_spark_however_it_is_read(session, spark):
    check(session, spark, [*EDGES, *QUERIES[::SAMPLE]], states=[2])


@pytest.mark.campaign
def test_every_construct_equals_spark_however_it_is_read(session, spark):
    check(session, spark, [*EDGES, *QUERIES], states=[0, 1, 2])
