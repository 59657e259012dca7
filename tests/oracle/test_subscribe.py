"""``SUBSCRIBE TO`` in a Session's SQL."""

from __future__ import annotations

import pytest

from weirflow.errors import ConfigError, SqlSyntaxError, TableNotFound


@pytest.fixture
def shop(session):
    session.sql("CREATE SOURCE subscribed.orders (id BIGINT, who STRING) ")
    session.sql("CREATE INCREMENTAL VIEW subscribed.counts AS SELECT who, count(*) AS n FROM orders GROUP BY who")
    yield "subscribed"
    session.sql("DROP INCREMENTAL VIEW subscribed.counts")
    session.sql("DROP SOURCE subscribed.orders")


def test_changes_follow_statements(session, shop):
    session.sql("INSERT INTO subscribed.orders VALUES (1, 'ann')")
    with session.sql("SUBSCRIBE TO counts WITH (UPSERT = (who))") as changes:
        first = changes.get(10).to_pylist()
        assert [(row["who"], row["n"], row["_weight"]) for row in first] == [("ann", 1, 1)]
        session.sql("INSERT INTO subscribed.orders VALUES (2, 'ann')")
        assert [(row["who"], row["n"], row["_weight"]) for row in changes.get(10).to_pylist()] == [("ann", 2, 1)]
        epoch = session.flow("subscribed").epoch
    with session.subscribe("SUBSCRIBE TO subscribed.counts AS OF :e", {"e": epoch}) as again:
        assert [(row["n"], row["_epoch"]) for row in again.get(10).to_pylist()] == [(2, epoch)]


def test_what_cannot_be_followed_is_said(session, shop):
    with pytest.raises(TableNotFound, match="No flow has a source or view 'count'"):
        session.sql("SUBSCRIBE TO count")
    with pytest.raises(ConfigError, match="is a source"):
        session.sql("SUBSCRIBE TO subscribed.orders")
    with pytest.raises(SqlSyntaxError):
        session.sql("SUBSCRIBE TO subscribed.counts WITH (SNAP = true)")
    with pytest.raises(ConfigError, match="does not begin with SUBSCRIBE"):
        session.subscribe("SELECT 1")
