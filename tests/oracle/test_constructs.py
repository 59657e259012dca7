"""Laterals, subqueries, pivots and pipes are maintained by deltas, read with Spark and without, and equal Spark."""

from collections import Counter
from contextlib import suppress

import pytest
from support.construct_catalogue import EDGES, QUERIES, SOURCES, table, ticks
from support.maintained import Maintained, comparable
from support.spark_engine import plan_reader

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.settings import USUAL, SqlSettings
from weirflow.sql.types import nullable

BATCH = 40
SAMPLE = 24
PLAIN = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
FIELDS = {name: tuple(Field(one.name, one.type) for one in schema) for name, schema in SOURCES.items()}
OTHERS = [SqlSettings(ansi=False), *(SqlSettings(time_zone="America/New_York", ansi=ansi) for ansi in (True, False))]


@pytest.fixture(params=[USUAL, *(pytest.param(other, marks=pytest.mark.campaign) for other in OTHERS)], ids=str)
def settings(request):
    return request.param


@pytest.fixture
def spark(session, settings):
    wanted = {
        **PLAIN,
        "spark.sql.session.timeZone": settings.time_zone,
        "spark.sql.ansi.enabled": str(settings.ansi).lower(),
    }
    before = {key: session.spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        session.spark.conf.set(key, value)
    yield session.spark
    for key, value in before.items():
        session.spark.conf.set(key, value)


def columns(schema):
    return [(field.name, nullable(field.type)) for field in schema]


def rows(found):
    return Counter(zip(*([comparable(value) for value in column.to_pylist()] for column in found.columns), strict=True))


def lives(queries, plans, settings):
    """The columns of each query, and its rows after each tick."""
    names = {f"v{number}": query for number, query in enumerate(queries)}
    views = Maintained(SOURCES, names, plans and {name: plans[query] for name, query in names.items()}, settings)
    after = []
    for tick in ticks():
        views.tick(tick)
        after.append({query: Counter(views.views[name]) for name, query in names.items()})
    return {query: columns(views.schemas[name]) for name, query in names.items()}, after


def check(session, spark, settings, queries, *, states):
    reader = plan_reader(spark.newSession)
    plans = {query: reader.read(query, SOURCES, settings) for query in queries}
    assert None not in plans.values()
    for batch in [queries[at : at + BATCH] for at in range(0, len(queries), BATCH)]:
        imported = lives(batch, plans, settings)
        bound = lives([query for query in batch if is_bound(query, settings)], None, settings)
        for state in states:
            register(session, state)
            for query in batch:
                wanted = spark.sql(query).toArrow()
                for schemas, after in (one for one in (bound, imported) if query in one[0]):
                    assert schemas[query] == columns(wanted.schema), query
                    assert after[state][query] == rows(wanted), query


def is_bound(query, settings):
    """Whether the binder takes it: it refuses casts that nobody wrote where ANSI is off, and nothing else."""
    with suppress(NotIncremental):
        bind_query(query, FIELDS, settings=settings)
        return True
    assert not settings.ansi
    with pytest.raises(NotIncremental) as refusal:
        bind_query(query, FIELDS, settings=settings)
    assert refusal.value.reason is Reason.SETTING_NOT_SUPPORTED
    return False


def register(session, state):
    """The rows that the sources have after a tick."""
    for name in SOURCES:
        held = Counter()
        for tick in ticks()[: state + 1]:
            for row, weight in tick[name]:
                held[row] += weight
        session.register(name, table(name, list(held.elements())))


def test_a_construct_equals_spark_however_it_is_read(session, spark, settings):
    check(session, spark, settings, [*EDGES, *QUERIES[::SAMPLE]], states=[2])


@pytest.mark.campaign
def test_every_construct_equals_spark_however_it_is_read(session, spark, settings):
    check(session, spark, settings, [*EDGES, *QUERIES], states=[0, 1, 2])
