"""After every tick each view equals what Spark SQL returns for the same query on the same data, types included."""

from collections import Counter

import pytest
from support import sql_catalogue, tpch
from support.maintained import Maintained, comparable
from support.tpch_data import TpchData
from support.view_corpus import SOURCES, VIEWS, RandomTables

from weirflow.sql.types import nullable
from weirflow.sql.typing.type_syntax import parse_ddl

TPCH = {f"q{number}": sql for number, sql in tpch.QUERIES.items()}


def spark_result(session, sql):
    table = session.sql(sql).to_arrow()
    rows = zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True)
    return Counter(rows), [nullable(kind) for kind in table.schema.types]


def check_against_spark(session, maintained, queries, dependencies=()):
    for name in maintained.sources:
        session.register(name, maintained.table(name))
    for name in dependencies:
        session.register(name, session.sql(queries[name]))
    for name, sql in queries.items():
        rows, types = spark_result(session, sql)
        assert maintained.views[name] == rows, name
        assert [nullable(kind) for kind in maintained.schemas[name].types] == types, name


def test_views_equal_spark_after_a_tick(session):
    views = Maintained(SOURCES, VIEWS)
    tables = RandomTables(seed=1)
    for _ in range(4):
        views.tick(tables.changes(most=8))
    check_against_spark(session, views, VIEWS, dependencies=("grouped", "extremes"))


def test_the_catalogue_of_constructs_equals_spark(session):
    queries = {f"construct_{number}": one.sql for number, one in enumerate(sql_catalogue.CONSTRUCTS) if one.is_kept}
    views = Maintained(sql_catalogue.SOURCES, queries)
    tables = sql_catalogue.CatalogueTables(seed=4)
    for _ in range(5):
        views.tick(tables.changes(most=9))
    check_against_spark(session, views, queries)


def tpch_equals_spark(session, refreshes):
    world = TpchData(seed=7)
    views = Maintained({name: parse_ddl(ddl) for name, ddl in tpch.SCHEMAS.items()}, TPCH)
    views.tick(world.base(orders=150))
    for _ in range(refreshes):
        views.tick(world.refresh(inserted=8, deleted=8))
        check_against_spark(session, views, TPCH)
    filled = [name for name, rows in views.views.items() if rows]
    assert len(filled) >= 18, sorted(set(TPCH) - set(filled))


def test_tpch_equals_spark_after_a_refresh(session):
    tpch_equals_spark(session, refreshes=1)


@pytest.mark.campaign
def test_tpch_equals_spark_after_each_of_ten_refreshes(session):
    tpch_equals_spark(session, refreshes=10)
