"""Texts that are easily misread: a view without Spark is what Spark makes of the same text, or it is refused.

Names, types and rows are compared; a refusal is an error of ours, never one of Python or of the parser.
"""

import itertools
from collections import Counter
from contextlib import contextmanager

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from support import binder_catalogue as catalogue
from support.maintained import comparable

from weirflow import IncrementalFlow
from weirflow.errors import DataError, QueryError, TableNotFound
from weirflow.sql.types import nullable

BATCH = 40
PLAIN = {"spark.sql.adaptive.enabled": "false"}
"""Nothing is planned anew for five rows."""


@contextmanager
def settings(spark, conf):
    before = {key: spark.conf.get(key) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture
def spark(session):
    for name, table in catalogue.tables().items():
        session.register(name, table)
    with settings(session.spark, PLAIN):
        yield session.spark


def columns(schema):
    return [(field.name, nullable(field.type)) for field in schema]


def rows(table):
    return Counter(zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def snapshots(texts):
    """The view of each text after one tick, or the error that it was refused with."""
    found, views = {}, {}
    with IncrementalFlow() as flow:
        for name, schema in catalogue.SOURCES.items():
            flow.register_source(name, schema)
        for number, text in enumerate(texts):
            try:
                flow.register_view(f"v{number}", text, mode="incremental")
                views[text] = f"v{number}"
            except QueryError as error:
                found[text] = error
        try:
            flow.tick(catalogue.tables())
        except DataError as error:  # of one of them
            if len(texts) == 1:
                return {texts[0]: error}
            middle = len(texts) // 2
            return snapshots(texts[:middle]) | snapshots(texts[middle:])
        waiting = flow.waiting  # for a table that is not there
        found |= {text: TableNotFound(waiting[name]) for text, name in views.items() if name in waiting}
        return found | {text: flow.snapshot(name) for text, name in views.items() if name not in waiting}


def read(texts):
    return {text: view for some in batched(texts) for text, view in snapshots(some).items()}


def batched(texts):
    texts = iter(texts)
    return iter(lambda: list(itertools.islice(texts, BATCH)), [])


def kept(views):
    return {
        text: view
        for text, view in views.items()
        if not isinstance(view, QueryError) and text not in catalogue.SPARK_REFUSES
    }


def check_items(spark, theme):
    """Spark computes many items in one query; what they are called and are is seen in each of their columns."""
    views = kept(read(f"SELECT {item} FROM t" for item in catalogue.EXPRESSIONS[theme]))
    assert len(views) > len(catalogue.EXPRESSIONS[theme]) / 3
    for some in batched(views):
        items = [text.removeprefix("SELECT ").removesuffix(" FROM t") for text in some]
        table = spark.sql(f"SELECT {', '.join(items)} FROM t").toArrow()
        start = 0
        for text in some:
            width = views[text].num_columns
            part = table.select(range(start, start + width))
            start += width
            assert columns(views[text].schema) == columns(part.schema), text
            assert rows(views[text]) == rows(part), text
        assert start == table.num_columns


def check_queries(spark, *, analysed, computed):
    """Names and types of one in so many, and the rows of one in so many of those: Spark takes its time for them."""
    views = kept(read(text for queries in catalogue.QUERIES.values() for text in queries))
    for number, (text, view) in enumerate(list(views.items())[::analysed]):
        frame = spark.sql(text)
        assert columns(view.schema) == columns(to_arrow_schema(frame.schema)), text
        if number % computed == 0:
            assert rows(view) == rows(frame.toArrow()), text


@pytest.mark.parametrize("theme", list(catalogue.EXPRESSIONS))
def test_an_item_is_read_as_spark_reads_it_or_refused(spark, theme):
    check_items(spark, theme)


def test_a_query_is_read_as_spark_reads_it_or_refused(spark):
    check_queries(spark, analysed=6, computed=3)


@pytest.mark.campaign
def test_every_query_is_read_as_spark_reads_it_or_refused(spark):
    check_queries(spark, analysed=1, computed=1)


def test_what_spark_refuses_and_a_view_takes_is_known(spark):
    for text in sorted(catalogue.SPARK_REFUSES):
        assert not isinstance(snapshots([text])[text], QueryError), text
        with pytest.raises(PySparkException):
            spark.sql(text).toArrow()
