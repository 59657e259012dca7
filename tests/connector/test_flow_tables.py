"""Flows between real Delta and Iceberg tables: their changes in, views out, each version and delta once."""

import pytest
from support.connectors import require_connectors
from support.processes import wait_until

from weirflow import DeltaBatch
from weirflow.errors import ConfigError, SinkConflict, SinkFailed, StreamConflict, UnsupportedError

TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
CHANGELOG = "customer STRING, total BIGINT, _weight BIGINT, _epoch BIGINT"
KINDS = ["delta", "iceberg"]


def mostly(kind):
    """This kind; in campaigns the others too, for what is the same code for all."""
    return [one if one == kind else pytest.param(one, marks=pytest.mark.campaign) for one in KINDS]


@pytest.fixture(autouse=True)
def _connectors():
    require_connectors("iceberg", "delta")


@pytest.fixture
def make(session):
    """Makes an empty table of a kind and returns its name; they are dropped after the test."""
    made = []

    def table(kind, name, columns):
        full = f"iceberg.flows.{name}" if kind == "iceberg" else name
        feed = " TBLPROPERTIES (delta.enableChangeDataFeed = true)" if kind == "delta" else ""
        session.spark.sql(f"CREATE TABLE {full} ({columns}) USING {kind}{feed}")
        made.append(full)
        return full

    yield table
    for name in made:
        session.drop(name)


def shop(session, path):
    flow = session.flow("shop", path=path)
    flow.register_source("orders", "customer STRING, amount BIGINT")
    flow.register_view("totals", TOTALS)
    return flow


def kill(flow):
    """What is left when the process dies: the log, and nothing that waited."""
    flow._backend._sinks._sinks.clear()
    flow.close()


def order(flow, amount, customer="ann"):
    flow.tick("orders", [{"customer": customer, "amount": amount}])


def rows(session, table):
    return sorted(tuple(row.values()) for row in session.sql(f"SELECT * FROM {table}").to_arrow().to_pylist())


# Sinks


@pytest.mark.campaign
def test_a_flow_in_shards_keeps_a_table_equal_to_its_view(session, make, tmp_path):
    table = make("delta", "sharded", "customer STRING, total BIGINT")
    for amount in (5, 7):
        with session.flow("sharded", partitions=2, path=tmp_path / "flow") as flow:
            flow.register_source("orders", "customer STRING, amount BIGINT")
            flow.register_view("totals", TOTALS)
            flow.sink("totals", table=table, mode="upsert", key="customer")
            order(flow, amount)
    assert rows(session, table) == [("ann", 12)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_holds_the_changelog_exactly_once(session, make, tmp_path, kind):
    table = make(kind, "changes", CHANGELOG)
    flow = shop(session, tmp_path / "flow")
    out = flow.sink("totals", table=table, every=2)
    assert "exactly-once" in out.describe()
    for amount in (5, 7, 1):
        order(flow, amount)
    kill(flow)
    with shop(session, tmp_path / "flow") as flow:
        assert flow.sink("totals", table=table).flush() == 3
    assert rows(session, table) == [
        ("ann", 5, -1, 2),
        ("ann", 5, 1, 1),
        ("ann", 12, -1, 3),
        ("ann", 12, 1, 2),
        ("ann", 13, 1, 3),
    ]


@pytest.mark.parametrize("kind", mostly("iceberg"))
def test_an_upserted_table_equals_the_view(session, make, tmp_path, kind):
    table = make(kind, "upserted", "total BIGINT, customer STRING")
    flow = shop(session, tmp_path / "flow")
    order(flow, 5)
    flow.sink("totals", table=table, mode="upsert", key="customer")
    order(flow, 7)
    order(flow, 1, "bob")
    flow.tick("orders", [{"customer": None, "amount": 3}])
    flow.tick("orders", DeltaBatch.from_deletes([{"customer": "bob", "amount": 1}]))
    flow.tick("orders", [{"customer": None, "amount": 1}])
    found = session.sql(f"SELECT customer, total FROM {table}").to_arrow().to_pylist()
    assert sorted(found, key=str) == sorted(flow.snapshot("totals").to_pylist(), key=str)
    kill(flow)
    with shop(session, tmp_path / "flow") as flow:
        assert flow.sink("totals", table=table, mode="upsert", key="customer").position == 6


@pytest.mark.parametrize("kind", mostly("iceberg"))
def test_a_resting_view_records_its_position_at_a_checkpoint(session, make, tmp_path, kind):
    table = make(kind, "resting", CHANGELOG)
    flow = shop(session, tmp_path / "flow")
    flow.register_source("other", "x BIGINT")
    flow.sink("totals", table=table)
    flow.tick("other", [{"x": 1}])
    flow.checkpoint()
    flow.checkpoint(tmp_path / "elsewhere")
    kill(flow)
    with shop(session, tmp_path / "flow") as flow:
        flow.sink("totals", table=table)
        order(flow, 5)
    assert rows(session, table) == [("ann", 5, 1, 2)]


@pytest.mark.parametrize("kind", mostly("iceberg"))
def test_rows_of_someone_else_are_replaced_only_when_asked_to(session, make, tmp_path, kind):
    table = make(kind, "theirs", CHANGELOG)
    session.spark.sql(f"INSERT INTO {table} VALUES ('eve', 1, 1, 1)")
    with shop(session, tmp_path / "flow") as flow:
        order(flow, 5)
        with pytest.raises(SinkConflict, match="not written"):
            flow.sink("totals", table=table)
        assert rows(session, table) == [("eve", 1, 1, 1)]
        flow.sink("totals", table=table, resync=True)
        order(flow, 7)
    assert rows(session, table) == [("ann", 5, -1, 2), ("ann", 5, 1, 1), ("ann", 12, 1, 2)]


def test_any_other_table_gets_the_changelog_at_least_once(session, make, tmp_path):
    table = make("parquet", "plain", CHANGELOG)
    flow = shop(session, tmp_path / "flow")
    out = flow.sink("totals", table=table, every=2)
    assert "at-least-once" in out.describe()
    order(flow, 5)
    kill(flow)
    with shop(session, tmp_path / "flow") as flow:
        flow.sink("totals", table=table)
        order(flow, 7)
    assert rows(session, table) == [("ann", 5, -1, 2), ("ann", 5, 1, 1), ("ann", 12, 1, 2)]
    with shop(session, tmp_path / "other") as flow, pytest.raises(UnsupportedError, match="merged"):
        flow.sink("totals", table=table, mode="upsert", key="customer")


def test_a_dropped_table_fails_the_sink_not_the_tick(session, make, tmp_path):
    table = make("delta", "dropped", CHANGELOG)
    flow = shop(session, tmp_path / "flow")
    out = flow.sink("totals", table=table)
    session.drop(table)
    order(flow, 5)
    assert isinstance(out.error, SinkFailed)
    session.spark.sql(f"CREATE TABLE {table} ({CHANGELOG}) USING delta")
    order(flow, 7)
    flow.close()
    assert rows(session, table) == [("ann", 5, -1, 2), ("ann", 5, 1, 1), ("ann", 12, 1, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "upsert"}, "key"),
        ({"key": "customer"}, "key"),
        ({"mode": "upsert", "key": "custmer"}, "custmer"),
        ({"mode": "append"}, "append"),
        ({"mode": "upsert", "key": "customer"}, "columns"),
        ({"to": "elsewhere"}, "one place"),
    ],
)
def test_what_a_table_sink_cannot_do_is_refused(session, make, tmp_path, options, message):
    table = make("delta", "refused", CHANGELOG)
    with shop(session, tmp_path / "flow") as flow, pytest.raises(ConfigError, match=message):
        flow.sink("totals", table=table, **options)


def test_a_key_that_does_not_identify_rows_is_an_error(session, make, tmp_path):
    table = make("delta", "ambiguous", "customer STRING, amount BIGINT")
    with shop(session, tmp_path / "flow") as flow:
        flow.register_view("copies", "SELECT customer, amount FROM orders")
        out = flow.sink("copies", table=table, mode="upsert", key="customer", every=10)
        order(flow, 5)
        order(flow, 7)
        with pytest.raises(SinkFailed, match="several rows"):
            out.flush()
        flow._backend._sinks._sinks.clear()


# Tables that feed a flow


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("delta", {}, id="delta, here"),
        pytest.param("iceberg", {"partitions": 2}, id="iceberg, in shards"),
        pytest.param("delta", {"partitions": 2}, id="delta, in shards", marks=pytest.mark.campaign),
        pytest.param("iceberg", {}, id="iceberg, here", marks=pytest.mark.campaign),
    ],
)
def test_versions_of_a_table_are_ticks(session, make, tmp_path, kind, options):
    table = make(kind, "incoming", "customer STRING, amount BIGINT")
    session.spark.sql(f"INSERT INTO {table} VALUES ('ann', 5), ('ann', 5), ('bob', 1)")
    with session.flow("fed", path=tmp_path / "flow", **options) as flow, flow.attach_table(table, "orders") as feed:
        flow.register_view("totals", TOTALS)
        assert (feed.poll(), flow.epoch) == (1, 1)
        assert feed.poll() == 0
        session.spark.sql(f"INSERT INTO {table} VALUES ('cid', 9)")
        session.spark.sql(f"UPDATE {table} SET amount = 7 WHERE customer = 'ann'")
        session.spark.sql(f"DELETE FROM {table} WHERE customer = 'bob'")
        assert (feed.poll(), flow.epoch) == (3, 4)
        assert flow.snapshot("totals", epoch=2).num_rows == 3
        assert same(flow.snapshot("orders"), session.table(table).to_arrow())
    session.spark.sql(f"INSERT INTO {table} VALUES ('dan', 2)")
    with session.flow("fed", path=tmp_path / "flow", **options) as flow, flow.attach_table(table, "orders") as feed:
        assert (feed.poll(), flow.epoch) == (1, 5)
        assert same(flow.snapshot("orders"), session.table(table).to_arrow())


@pytest.mark.parametrize("kind", mostly("iceberg"))
def test_a_table_can_be_replayed_from_an_old_version(session, make, tmp_path, kind):
    table = make(kind, "incoming", "customer STRING, amount BIGINT")
    for amount in (1, 2, 3):
        session.spark.sql(f"INSERT INTO {table} VALUES ('ann', {amount})")
    first = (
        1
        if kind == "delta"
        else session.sql(f"SELECT snapshot_id FROM {table}.history ORDER BY made_current_at").first()[0]
    )
    with session.flow("replayed") as flow, flow.attach_table(table, start=first) as feed:
        assert feed.poll() == 3
        assert flow.snapshot("incoming", epoch=1).to_pylist() == [{"customer": "ann", "amount": 1}]


@pytest.mark.parametrize("kind", mostly("delta"))
def test_another_table_of_the_name_is_refused(session, make, tmp_path, kind):
    columns = "customer STRING, amount BIGINT"
    table = make(kind, "incoming", columns)
    session.spark.sql(f"INSERT INTO {table} VALUES ('ann', 5)")
    with session.flow("fed", path=tmp_path / "flow") as flow:
        feed = flow.attach_table(table, "orders")
        feed.poll()
        session.drop(table)
        feature = " TBLPROPERTIES (delta.enableChangeDataFeed = true)" if kind == "delta" else ""
        session.spark.sql(f"CREATE TABLE {table} ({columns}) USING {kind}{feature}")
        session.spark.sql(f"INSERT INTO {table} VALUES ('eve', 1)")
        with pytest.raises(StreamConflict, match="not the one"):
            feed.poll()
        feed.stop()
        with pytest.raises(StreamConflict, match="not the one"):
            flow.attach_table(table, "orders")
        assert flow.snapshot("orders").to_pylist() == [{"customer": "ann", "amount": 5}]


def test_a_table_is_polled_in_the_background(session, make):
    table = make("delta", "incoming", "customer STRING, amount BIGINT")
    with session.flow("background") as flow:
        feed = flow.attach_table(table, "orders", every="100 milliseconds")
        session.spark.sql(f"INSERT INTO {table} VALUES ('ann', 5)")
        wait_until(lambda: flow.snapshot("orders").num_rows == 1, 60.0, "polled")
        session.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (city STRING)")
        session.spark.sql(f"INSERT INTO {table} VALUES ('bob', 1, 'Bern')")
        wait_until(lambda: feed.exception is not None, 60.0, "ended by a column it does not know")
        assert isinstance(feed.exception, ConfigError)
    assert flow.closed


def test_tables_without_changes_are_refused(session, make):
    session.spark.sql("CREATE TABLE silent (a INT) USING delta")
    plain = make("parquet", "plain", "a INT")
    with session.flow("refused") as flow:
        with pytest.raises(ConfigError, match="change data feed"):
            flow.attach_table("silent")
        with pytest.raises(UnsupportedError, match="parquet"):
            flow.attach_table(plain)
    session.drop("silent")


def same(one, other):
    return sorted(map(str, one.to_pylist())) == sorted(map(str, other.select(one.schema.names).to_pylist()))
