"""Statements about materialized views as they are read, and what is left to Spark."""

import pytest

from weirflow.errors import SqlSyntaxError, UnsupportedError
from weirflow.sql.statements.kinds import About, kind_of
from weirflow.sql.statements.materialized import (
    AlterMaterialized,
    CreateMaterialized,
    DescribeMaterialized,
    DropMaterialized,
    ExplainRefresh,
    RefreshMaterialized,
    ShowMaterialized,
    read_materialized,
)

CREATE = """CREATE MATERIALIZED VIEW IF NOT EXISTS lake.gold.totals
USING delta PARTITIONED BY (days(at), region)
COMMENT "Ann's" TBLPROPERTIES ('a.b' = 'c', refresh_policy = 'full', x = 1)
AS SELECT region, at FROM orders -- all
"""


def test_a_view_is_created_with_what_its_table_is_to_be():
    found = read_materialized(CREATE)
    assert isinstance(found, CreateMaterialized)
    assert found.query.text == "SELECT region, at FROM orders"
    assert (found.name, found.using, found.partitioned_by) == ("`lake`.`gold`.`totals`", "delta", "days(at), region")
    assert found.properties == {"a.b": "c", "refresh_policy": "full", "x": "1"}
    assert (found.comment, found.if_not_exists) == ("Ann's", True)


def test_a_view_is_given_another_query():
    found = read_materialized("alter materialized view lake.v as select 1 as one;")
    assert isinstance(found, AlterMaterialized)
    assert (found.name, found.query.text) == ("`lake`.`v`", "select 1 as one")
    assert kind_of("ALTER MATERIALIZED VIEW v AS SELECT 1").about is About.MATERIALIZED
    assert kind_of("ALTER VIEW materialized AS SELECT 1").about is About.SPARK
    with pytest.raises(SqlSyntaxError, match="Expected AS"):
        read_materialized("ALTER MATERIALIZED VIEW v RENAME TO w")


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("refresh materialized view v;", RefreshMaterialized("`v`")),
        ("REFRESH MATERIALIZED VIEW a.v FULL CASCADE", RefreshMaterialized("`a`.`v`", full=True, cascade=True)),
        ("DROP MATERIALIZED VIEW IF EXISTS v", DropMaterialized("`v`", if_exists=True)),
        ("SHOW MATERIALIZED VIEWS", ShowMaterialized()),
        ("SHOW MATERIALIZED VIEWS IN lake.gold", ShowMaterialized("`lake`.`gold`")),
        ("DESC MATERIALIZED VIEW v", DescribeMaterialized("`v`")),
        ("DESCRIBE MATERIALIZED VIEW v", DescribeMaterialized("`v`")),
        ("EXPLAIN REFRESH MATERIALIZED VIEW v", ExplainRefresh("`v`")),
    ],
)
def test_other_statements_name_a_view(sql, statement):
    assert kind_of(sql).about is About.MATERIALIZED
    assert read_materialized(sql) == statement


@pytest.mark.parametrize(
    "sql",
    [
        "REFRESH materialized",
        "REFRESH TABLE materialized",
        "DESCRIBE materialized",
        "CREATE VIEW materialized AS SELECT 1",
        "EXPLAIN SELECT 1",
        "DROP VIEW materialized",
    ],
)
def test_what_only_looks_alike_is_not_ours(sql):
    assert kind_of(sql).about is not About.MATERIALIZED


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE MATERIALIZED VIEW v SELECT 1", "expected USING, PARTITIONED BY"),
        ("CREATE MATERIALIZED VIEW v USING delta USING delta AS SELECT 1", "USING is given twice"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES (a = 1, 'a' = 2) AS SELECT 1", "'a' is given twice"),
        ("CREATE MATERIALIZED VIEW v COMMENT x AS SELECT 1", "expected a comment"),
        ("CREATE MATERIALIZED VIEW v AS", "expected a query"),
        ("REFRESH MATERIALIZED VIEW v CASCADE FULL", "expected the end"),
    ],
)
def test_what_is_wrong_is_shown(sql, message):
    with pytest.raises(SqlSyntaxError, match=f"(?i){message}"):
        read_materialized(sql)


def test_a_view_is_not_replaced():
    assert kind_of("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1").about is About.MATERIALIZED
    with pytest.raises(UnsupportedError, match="not replaced"):
        read_materialized("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1")
