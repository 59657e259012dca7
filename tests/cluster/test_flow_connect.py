"""Views over Spark Connect: the binder reads them, and Spark's columns of the same text must agree."""

from collections import Counter

import pytest

from weirflow import IncrementalFlow, Session
from weirflow.errors import ColumnNotFound, QueryError, TableNotFound, UnsupportedError
from weirflow.flows.local import SessionFlow

ZONE = "spark.sql.session.timeZone"


@pytest.fixture(scope="module")
def session(own_spark, connect_server):
    own_spark()
    with Session.distributed(connect_server.url, token=connect_server.token) as opened:
        yield opened


@pytest.fixture(params=[pytest.param("in shards", marks=pytest.mark.campaign), "in this process"])
def flow(request, session, tmp_path):
    if request.param == "in shards":
        flow = session.flow("far", partitions=2, path=tmp_path / "far")
    else:
        flow = SessionFlow(session, "far")
    with flow:
        flow.register_source("orders", "id BIGINT, customer BIGINT, at TIMESTAMP")
        yield flow


def rows(flow, view):
    return Counter(tuple(row.values()) for row in flow.snapshot(view).to_pylist())


def kinds(flow):
    return {one.name: one.kind for one in flow.describe().relations}


def test_what_both_read_alike_is_incremental_and_the_rest_is_recomputed(session, flow, monkeypatch):
    flow.register_view("totals", "SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    flow.register_view("sounds", "SELECT printf(CAST(customer AS STRING)) AS s FROM orders")
    from weirflow.flows import view_reader  # noqa: PLC0415 - patched here

    bind = view_reader.bind_query
    # A binder that reads something else than Spark does: it is not believed.
    monkeypatch.setattr(
        view_reader, "bind_query", lambda sql, *given, **named: bind(sql.replace("AS x", "AS y"), *given, **named)
    )
    flow.register_view("differs", "SELECT id AS x FROM orders")
    monkeypatch.undo()
    flow.tick("orders", [{"id": 1, "customer": 7, "at": None}, {"id": 2, "customer": 7, "at": None}])
    assert kinds(flow) == {"orders": "source", "totals": "incremental", "sounds": "diff", "differs": "diff"}
    assert rows(flow, "totals") == Counter([(7, 2)])
    assert rows(flow, "sounds") == Counter({("7",): 2})
    assert rows(flow, "differs") == Counter([(1,), (2,)])
    assert flow.schema("differs").names == ["x"]


def test_what_spark_refuses_is_refused_and_nothing_is_run(session, flow):
    with pytest.raises(ColumnNotFound):
        flow.register_view("v", "SELECT nope FROM orders")
    session.sql("CREATE TABLE stays (a INT) USING parquet").collect()
    with pytest.raises(QueryError):
        flow.register_view("v", "DROP TABLE stays")
    assert session.sql("SELECT * FROM stays").collect() == []
    session.sql("DROP TABLE stays").collect()
    with pytest.raises(UnsupportedError, match="register SQL"):
        flow.table("orders")


def test_a_view_is_read_by_the_clocks_of_the_session(session):
    session.spark.conf.set(ZONE, "America/New_York")
    try:
        with SessionFlow(session, "zoned") as zoned:
            zoned.register_source("orders", "at TIMESTAMP")
            zoned.register_view("hours", "SELECT hour(at) AS h FROM orders")
            zoned.tick("orders", session.sql("SELECT TIMESTAMP'2024-07-01 12:00:00+00:00' AS at").to_arrow())
            assert kinds(zoned)["hours"] == "incremental"
            assert rows(zoned, "hours") == Counter([(8,)])
    finally:
        session.spark.conf.set(ZONE, "UTC")


def test_tables_of_the_server_are_snapshots(session, tmp_path):
    session.sql("CREATE TABLE customers (customer BIGINT, name STRING) USING parquet").collect()
    session.sql("INSERT INTO customers VALUES (7, 'Ada')").collect()
    session.sql("SELECT 7L AS customer, 'near' AS tag").createOrReplaceTempView("near")
    sql = "SELECT o.id, customers.name FROM orders o JOIN default.customers ON o.customer = default.customers.customer"
    with SessionFlow(session, "kept", path=tmp_path / "kept") as kept:
        kept.register_source("orders", "id BIGINT, customer BIGINT")
        kept.register_view("named", sql)
        kept.register_view("near_ones", "SELECT id, printf(tag) AS s FROM orders JOIN near USING (customer)")
        kept.register_view("waits", "SELECT * FROM nothing_of_this_name")
        kept.tick("orders", [{"id": 1, "customer": 7}])
        session.sql("INSERT INTO customers VALUES (7, 'Bob')").collect()
        assert rows(kept, "named") == Counter([(1, "Ada")])
        assert rows(kept, "near_ones") == Counter([(1, "near")])
        assert list(kept.waiting) == ["waits"]
        kept.refresh_view("named")
        assert rows(kept, "named") == Counter([(1, "Ada"), (1, "Bob")])
        assert kinds(kept)["named"] == "incremental"
        kept.drop("near_ones")
        kept.drop("waits")
        session.sql("DROP TABLE customers").collect()
        with pytest.raises(TableNotFound, match="any more"):
            kept.refresh_view("named")
        kept.checkpoint()  # what was recomputed is not in it any more
    with IncrementalFlow("kept", path=tmp_path / "kept") as alone:
        alone.tick("orders", [{"id": 2, "customer": 7}])
        assert rows(alone, "named") == Counter([(1, "Ada"), (1, "Bob"), (2, "Ada"), (2, "Bob")])


def test_functions_of_users_are_known_to_the_sessions_that_views_run_in(session, flow):
    session.udf("twice", lambda number: 2 * number, "BIGINT", deterministic=True)
    flow.register_view("doubled", "SELECT twice(customer) AS d FROM orders")
    flow.tick("orders", [{"id": 1, "customer": 7, "at": None}])
    session.udf(
        "thrice", lambda number: 3 * number, "BIGINT", deterministic=True
    )  # when the sessions are there already
    flow.register_view("tripled", "SELECT thrice(customer) + twice(customer) AS d FROM orders")
    flow.tick("orders", [{"id": 2, "customer": 8, "at": None}])
    assert kinds(flow) == {"orders": "source", "doubled": "diff", "tripled": "diff"}
    assert rows(flow, "doubled") == Counter([(14,), (16,)])
    assert rows(flow, "tripled") == Counter([(35,), (40,)])
    with pytest.raises(QueryError, match="quarter"):
        flow.register_view("unknown", "SELECT quarter_of(customer) AS q FROM orders")
