"""Spark's own parser sees a change where we see one, and none in what we take for a query."""

import pytest
from pyspark.errors import ParseException
from support.statement_catalogue import FLOWS, QUERIES, SPARKS, TARGETS

from weirflow.sql.statements.kinds import is_query

UNCLOSED = {sql for sql in QUERIES if "not closed" in sql}
MORE = [
    "-- x\\\nSELECT 1\nDELETE FROM t",
    "-- x\rDELETE FROM t",
    "/* /* */ SELECT 1 */ DELETE FROM t",
    "/* /* */ DELETE FROM t",
    "/* */ */ SELECT 1",
    "WITH a AS (SELECT '\\') SELECT ') INSERT INTO t SELECT 1",
    "WITH a AS (SELECT r'\\') INSERT INTO t SELECT ') SELECT 1'",
    "FROM t INSERT INTO u SELECT 1",
    "FROM (FROM t INSERT INTO u SELECT 1)",
    "(WITH a AS (SELECT 1) INSERT INTO t SELECT 1)",
    "(FROM t) INSERT INTO u SELECT 1",
    "(WITH a AS (SELECT 1)) INSERT INTO t SELECT 1",
    "TABLE t INSERT INTO u SELECT 1",
    "SELECT 1 INSERT INTO t SELECT 2",
]


@pytest.fixture
def changes(session):
    """Whether Spark takes a statement for one that does something; None if it cannot read it."""
    native = session.spark
    parser = native._jsparkSession.sessionState().sqlParser()
    find = native._jvm.java.lang.Class.forName
    logical = "org.apache.spark.sql.catalyst.plans.logical"
    acting = [find(f"{logical}.{name}") for name in ("Command", "ParsedStatement", "CompoundBody")]

    def is_acting(plan):
        children = [plan.children().apply(at) for at in range(plan.children().size())]
        return any(kind.isInstance(plan) for kind in acting) or any(map(is_acting, children))

    def ask(sql):
        try:
            return is_acting(parser.parsePlan(sql))
        except ParseException:
            return None

    return ask


def test_spark_agrees_on_what_only_reads(changes):
    assert {sql: changes(sql) for sql in QUERIES} == {sql: None if sql in UNCLOSED else False for sql in QUERIES}


def test_spark_agrees_on_what_changes(changes):
    assert {sql for sql, _ in TARGETS if changes(sql) is False} == set()
    assert len({sql for sql in MORE if changes(sql)}) == 6
    assert {sql for sql in (*FLOWS, *SPARKS, *MORE) if is_query(sql) and changes(sql)} == set()
