"""``SUBSCRIBE TO``, read."""

from __future__ import annotations

import pytest

from weirflow.errors import SqlSyntaxError
from weirflow.sql.statements.kinds import About, kind_of
from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.statements.subscribe import Subscribe, read_subscribe

TOTALS = RelationName(None, "totals")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SUBSCRIBE TO totals", Subscribe(TOTALS)),
        (" /* all */ subscribe to shop.`my view` ; ", Subscribe(RelationName("shop", "my view"))),
        ("SUBSCRIBE TO totals AS OF 7", Subscribe(TOTALS, 7)),
        ("SUBSCRIBE TO totals AS OF 0 WITH (SNAPSHOT = FALSE)", Subscribe(TOTALS, 0, snapshot=False)),
        ("SUBSCRIBE TO totals WITH (progress = true, snapshot = true)", Subscribe(TOTALS, progress=True)),
        ("SUBSCRIBE TO totals WITH (UPSERT = (a, `b c`))", Subscribe(TOTALS, upsert=("a", "b c"))),
        ("SUBSCRIBE TO totals WITH (UPSERT = a, PROGRESS = true)", Subscribe(TOTALS, progress=True, upsert=("a",))),
    ],
)
def test_subscribe(sql, expected):
    assert kind_of(sql).about is About.SUBSCRIPTION
    assert read_subscribe(sql) == expected


@pytest.mark.parametrize(
    ("sql", "message", "fragment"),
    [
        ("SUBSCRIBE TO", "Expected a name, the statement ends", ""),
        ("SUBSCRIBE TO a.b.c", "too many parts", "a"),
        ("SUBSCRIBE TO totals AS OF 'x'", "The epoch is a whole number", "'x'"),
        ("SUBSCRIBE TO totals AS OF", "Expected a string, a whole number", ""),
        ("SUBSCRIBE TO totals WITH (SNAPSHOTS = true)", "No option is called 'snapshots'", "SNAPSHOTS"),
        ("SUBSCRIBE TO totals WITH (SNAPSHOT = 1)", "true or false", "1"),
        ("SUBSCRIBE TO totals WITH (PROGRESS = true, PROGRESS = true)", "given twice", "PROGRESS"),
        ("SUBSCRIBE TO totals WITH (UPSERT = ())", "Expected a name", ")"),
        ("SUBSCRIBE TO totals WHERE x = 1", "Expected the end of the statement, found 'WHERE'", "WHERE"),
    ],
)
def test_what_is_no_subscription_is_refused_where_it_goes_wrong(sql, message, fragment):
    with pytest.raises(SqlSyntaxError, match=message) as refused:
        read_subscribe(sql)
    if fragment:
        assert refused.value.position.fragment == fragment


@pytest.mark.parametrize("sql", ["SUBSCRIBE", "SUBSCRIBE orders", "(SUBSCRIBE TO totals)", "EXPLAIN SUBSCRIBE TO t"])
def test_other_statements_are_spark_s_to_refuse(sql):
    assert kind_of(sql).about is About.SPARK
