"""Views that read tables of the Session: snapshots, refreshed as one epoch, whose rows are those that Spark has."""

from collections import Counter

import pytest
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

from weirflow import IncrementalFlow
from weirflow.errors import (
    ConfigError,
    EngineMissing,
    ResultTooLarge,
    StreamRefused,
    TableNotFound,
    UnsupportedError,
)
from weirflow.flows import session_tables

ORDERS = "id BIGINT, customer BIGINT, amount DECIMAL(10,2)"
JOINED = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.customer"


@pytest.fixture
def flow(session):
    with session.flow("outside") as flow:
        flow.register_source("orders", ORDERS)
        flow.tick("orders", [{"id": 1, "customer": 7, "amount": None}, {"id": 2, "customer": 8, "amount": None}])
        yield flow


@pytest.fixture
def customers(session):
    """A table in the Session's catalog."""
    session.sql("CREATE TABLE customers (customer BIGINT, name STRING) USING parquet").collect()
    session.sql("INSERT INTO customers VALUES (7, 'Ada'), (8, 'Bob')").collect()
    yield "customers"
    session.sql("DROP TABLE IF EXISTS customers").collect()


def rows(flow, view):
    return Counter(tuple(row.values()) for row in flow.snapshot(view).to_pylist())


def kinds(flow):
    return {one.name: one.kind for one in flow.describe().relations}


ADA_AND_BOB = Counter([(1, "Ada"), (2, "Bob")])
BY_NAME = {
    "as it is": JOINED,
    "with its schema": JOINED.replace("customers c", "default.customers c"),
    "with its catalog": JOINED.replace("customers c", "spark_catalog.default.customers c"),
    "in front of columns": "SELECT orders.id, default.customers.name FROM orders JOIN spark_catalog.default.customers "
    "ON orders.customer = customers.customer",
    "all columns": "SELECT id, x.name FROM orders, (SELECT default.customers.* FROM default.customers) x "
    "WHERE orders.customer = x.customer",
    "in a subquery": "SELECT id, (SELECT max(name) FROM customers WHERE customer = o.customer) AS name FROM orders o",
    "in a common table": "WITH c AS (SELECT * FROM customers) SELECT id, name FROM orders o JOIN c "
    "ON o.customer = c.customer",
    "by a pipe": "FROM orders |> JOIN customers USING (customer) |> SELECT id, name",
    "table": "SELECT id, name FROM orders o JOIN (TABLE customers) c ON o.customer = c.customer",
    "recomputed": "SELECT id, upper(name) AS name FROM orders o JOIN default.customers ON o.customer = "
    "default.customers.customer WHERE printf(name) <> 'x'",
}


def test_a_table_is_found_however_it_is_named_and_read_once(session, flow, customers):
    for number, sql in enumerate(BY_NAME.values()):
        flow.register_view(f"v{number}", sql)
    expected = {"recomputed": Counter([(1, "ADA"), (2, "BOB")])}
    for number, name in enumerate(BY_NAME):
        assert rows(flow, f"v{number}") == expected.get(name, ADA_AND_BOB), name
    assert [name for name, kind in kinds(flow).items() if kind == "snapshot"] == [
        "snapshot of spark_catalog.default.customers"
    ]
    assert flow.sources == ("orders",)


def test_a_view_holds_what_the_table_had_until_it_is_refreshed_as_one_epoch(session, flow, customers):
    flow.register_view("named", JOINED)
    flow.register_view("counted", "SELECT count(*) AS n FROM customers")
    flow.register_view("sounds", "SELECT soundex(name) AS s FROM customers", mode="diff")
    session.sql("INSERT INTO customers VALUES (8, 'Bea')").collect()
    session.sql("INSERT OVERWRITE customers SELECT * FROM VALUES (8, 'Bob'), (8, 'Bea')").collect()
    flow.tick("orders", [{"id": 3, "customer": 7, "amount": None}])
    assert rows(flow, "named") == Counter([(1, "Ada"), (2, "Bob"), (3, "Ada")])
    assert rows(flow, "sounds") == Counter([("A300",), ("B100",)])

    watches = {name: flow.watch_output(name) for name in ("named", "counted", "sounds")}
    before = flow.epoch
    session.sql("REFRESH INCREMENTAL VIEW named").collect()

    assert flow.epoch == before + 1
    assert rows(flow, "named") == Counter([(2, "Bob"), (2, "Bea")])
    epoch, delta = next(watches["named"])
    weighted = {(row["id"], row["name"]): row["_weight"] for row in delta.to_arrow().to_pylist()}
    assert (epoch, weighted) == (before + 1, {(1, "Ada"): -1, (3, "Ada"): -1, (2, "Bea"): 1})
    assert rows(flow, "sounds") == Counter([("B100",), ("B000",)])  # all views see the same moment
    assert next(watches["sounds"])[0] == before + 1


def test_explain_and_describe_say_that_it_is_a_snapshot(session, flow, customers):
    flow.register_view("named", JOINED)
    expected = "snapshot of spark_catalog.default.customers: its rows as they were when last refreshed"
    assert expected in flow.explain("named")
    described = {row["col_name"]: row["data_type"] for row in session.sql("DESCRIBE INCREMENTAL VIEW named").collect()}
    assert described["Snapshots"] == "spark_catalog.default.customers; REFRESH reads them again"
    assert expected in flow.explain_query("SELECT count(*) AS n FROM customers")
    shown = [row["name"] for row in session.sql("SHOW INCREMENTAL VIEWS").collect()]
    assert shown == ["named"]


def test_a_source_or_view_goes_before_a_table_of_its_name(session, flow, customers):
    flow.register_source("customers", "customer BIGINT, name STRING")
    flow.tick("customers", [{"customer": 7, "name": "Eve"}])
    flow.register_view("own", JOINED)
    flow.register_view("other", JOINED.replace("customers c", "default.customers c"))
    assert rows(flow, "own") == Counter([(1, "Eve")])
    assert rows(flow, "other") == ADA_AND_BOB


def test_temporary_views_persistent_views_and_files_are_read(session, flow, customers, tmp_path):
    session.register("near", [{"customer": 7, "name": "Nan"}])
    session.sql("CREATE OR REPLACE VIEW far AS SELECT customer, upper(name) AS name FROM customers").collect()
    path = str(tmp_path / "A files")
    session.sql("SELECT 8L AS customer, 'Fay' AS name").write.parquet(path)
    flow.register_view("a", JOINED.replace("customers c", "near c"))
    flow.register_view("b", JOINED.replace("customers c", "far c"))
    flow.register_view("c", JOINED.replace("customers c", f"parquet.`{path}` c"))
    assert rows(flow, "a") == Counter([(1, "Nan")])
    assert rows(flow, "b") == Counter([(1, "ADA"), (2, "BOB")])
    assert rows(flow, "c") == Counter([(2, "Fay")])

    session.register("near", [{"customer": 8, "name": "Ned"}])
    session.sql("INSERT INTO customers VALUES (7, 'Al')").collect()
    session.sql("SELECT 7L AS customer, 'Flo' AS name").write.mode("append").parquet(path)
    for view in "abc":
        flow.refresh_view(view)
    assert rows(flow, "a") == Counter([(2, "Ned")])
    assert rows(flow, "b") == Counter([(1, "ADA"), (2, "BOB"), (1, "AL")])
    assert rows(flow, "c") == Counter([(2, "Fay"), (1, "Flo")])
    session.sql("DROP VIEW far").collect()


def test_a_temporary_view_goes_before_a_table_as_in_spark(session, flow, customers):
    session.register("customers", [{"customer": 7, "name": "Tim"}])
    flow.register_view("v", JOINED)
    assert rows(flow, "v") == Counter([(1, "Tim")])
    session.drop("customers")
    with pytest.raises(TableNotFound, match="no table 'customers' any more"):
        flow.refresh_view("v")


def test_a_snapshot_goes_with_the_last_view_that_reads_it(session, flow, customers):
    flow.register_view("one", JOINED)
    flow.register_view("two", "SELECT name FROM customers")
    flow.drop("one")
    assert "snapshot" in kinds(flow).values()
    flow.drop("two")
    assert "snapshot" not in kinds(flow).values()
    with pytest.raises(ConfigError):
        flow.register_view("bad", "SELECT name FROM customers", mode="incremental", materialized="no")
    flow.register_view("three", "SELECT name FROM customers")
    flow.replace_view("three", "SELECT id FROM orders")
    assert "snapshot" not in kinds(flow).values()


def test_what_cannot_be_a_snapshot_is_refused_and_leaves_nothing(session, flow, customers, monkeypatch):
    session.spark.readStream.format("rate").load().createOrReplaceTempView("ticking")
    refused = [
        ("SELECT * FROM ticking", StreamRefused, "is a stream"),
        ("SELECT * FROM STREAM customers", UnsupportedError, "as a stream"),
        ("SELECT * FROM customers VERSION AS OF 1", UnsupportedError, "earlier version"),
        ("SELECT * FROM IDENTIFIER('customers')", UnsupportedError, "write the table's plain name"),
        (
            "SELECT * FROM (WITH customers AS (SELECT 1 AS x) SELECT * FROM customers), customers",
            UnsupportedError,
            "give no CTE the same name",
        ),
        ("SELECT * FROM nothing_of_this_name", None, ""),
    ]
    for number, (sql, error, message) in enumerate(refused):
        if error is None:
            flow.register_view(f"v{number}", sql)
            assert list(flow.waiting) == [f"v{number}"]
        else:
            with pytest.raises(error, match=message):
                flow.register_view(f"v{number}", sql)
    monkeypatch.setattr(session_tables, "MOST_BYTES", 10)
    with pytest.raises(ResultTooLarge, match=r"spark_catalog\.default\.customers"):
        flow.register_view("large", JOINED)
    assert set(kinds(flow).values()) == {"source", "waiting"}
    with pytest.raises(ConfigError, match="deltas go to sources"):
        flow.tick("snapshot of spark_catalog.default.customers", [])
    session.drop("ticking")


def test_a_table_that_is_gone_or_has_other_columns_says_so_and_a_replaced_view_follows_it(session, flow, customers):
    flow.register_view("named", JOINED)
    session.sql("DROP TABLE customers").collect()
    with pytest.raises(TableNotFound, match=r"no table 'spark_catalog\.default\.customers' any more"):
        flow.refresh_view("named")
    session.sql("CREATE TABLE customers (customer BIGINT, name INT) USING parquet").collect()
    session.sql("INSERT INTO customers VALUES (7, 70)").collect()
    with pytest.raises(ConfigError, match="name was string, is int"):
        flow.refresh_view("named")
    assert rows(flow, "named") == ADA_AND_BOB
    flow.replace_view("named", JOINED)
    assert rows(flow, "named") == Counter([(1, 70)])
    assert list(kinds(flow).values()).count("snapshot") == 1
    session.sql("DROP TABLE customers").collect()
    session.sql("CREATE TABLE customers (more DATE, customer BIGINT, name INT) USING parquet").collect()
    session.sql("INSERT INTO customers VALUES (DATE'2024-01-01', 8, 80)").collect()
    flow.refresh_view("named")  # a new column is none that the view reads
    assert rows(flow, "named") == Counter([(2, 80)])


def test_a_refresh_that_fails_changes_nothing(session, flow, customers):
    flow.register_view("shares", "SELECT 1 / (length(name) - 3 + customer - 7) AS s FROM customers WHERE customer = 9")
    session.sql("INSERT INTO customers VALUES (9, 'x')").collect()
    before = flow.epoch
    with pytest.raises(Exception, match=r"(?i)divi"):
        flow.refresh_view("shares")
    assert (flow.epoch, flow.pending, rows(flow, "shares")) == (before, False, Counter())


def test_a_view_that_waits_reads_the_table_when_it_is_declared(session, flow, customers):
    flow.register_view("later", "SELECT n, name FROM numbers JOIN customers ON n = customer")
    assert list(flow.waiting) == ["later"]
    flow.register_source("numbers", "n BIGINT")
    flow.tick("numbers", [{"n": 8}])
    assert rows(flow, "later") == Counter([(8, "Bob")])


def test_another_flow_that_a_query_has_seen_is_no_table(session, flow, customers):
    with session.flow("second") as second:
        second.register_source("seen", "n BIGINT")
        second.tick("seen", [{"n": 8}])
        session.sql("SELECT * FROM seen").collect()
        flow.register_view("v", "SELECT n FROM seen")
        assert list(flow.waiting) == ["v"]


def test_a_durable_flow_has_the_rows_without_spark(session, customers, tmp_path):
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.register_source("orders", ORDERS)
        flow.register_view("named", JOINED)
        flow.tick("orders", [{"id": 1, "customer": 7, "amount": None}])
    session.sql("INSERT INTO customers VALUES (7, 'Zoe')").collect()
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        flow.register_view("named", JOINED)  # as it is declared already
        flow.tick("orders", [{"id": 2, "customer": 8, "amount": None}])
        assert rows(flow, "named") == ADA_AND_BOB
        with pytest.raises(EngineMissing):
            flow.refresh_view("named")
        flow.checkpoint(tmp_path / "copy")
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.refresh_view("named")
        assert rows(flow, "named") == ADA_AND_BOB + Counter([(1, "Zoe")])
    with IncrementalFlow("copy") as flow:
        flow.restore(tmp_path / "copy")
        assert rows(flow, "named") == ADA_AND_BOB


@pytest.mark.campaign
def test_flows_in_shards_read_tables_too(session, customers, tmp_path):
    path = str(tmp_path / "files")
    session.sql("SELECT 7L AS customer, 'x' AS tag").write.parquet(path)
    with session.flow("spread", partitions=2) as flow:
        flow.register_source("orders", ORDERS)
        flow.register_view("named", JOINED)
        flow.register_view(
            "sounds", f"SELECT printf(name) AS s, tag FROM customers JOIN parquet.`{path}` USING (customer)"
        )
        flow.tick("orders", [{"id": 1, "customer": 7, "amount": None}, {"id": 2, "customer": 8, "amount": None}])
        assert rows(flow, "named") == ADA_AND_BOB
        assert rows(flow, "sounds") == Counter([("Ada", "x")])
        assert "snapshot of spark_catalog.default.customers: its rows as they were" in flow.explain("named")
        session.sql("INSERT INTO customers VALUES (7, 'Bo')").collect()
        flow.refresh_view("named")
        assert rows(flow, "named") == ADA_AND_BOB + Counter([(1, "Bo")])
        assert rows(flow, "sounds") == Counter([("Ada", "x"), ("Bo", "x")])
        flow.drop("named")
        flow.drop("sounds")
        assert set(kinds(flow).values()) == {"source"}


def test_frames_read_tables_of_the_session(session, flow, customers):
    session.register("near", [{"customer": 7, "near": True}])
    orders, table, near = flow.table("orders"), session.read_table("customers"), session.read_table("near")
    flow.register_view("framed", orders.join(table, "customer").select("id", "name"))
    flow.register_view("twice", orders.join(table, "customer").join(near, "customer", "left").select("id", "near"))
    flow.register_view("counted", table.groupBy("name").agg(F.count("*").alias("n")))
    assert rows(flow, "framed") == ADA_AND_BOB
    assert rows(flow, "twice") == Counter([(1, True), (2, None)])
    session.sql("INSERT INTO customers VALUES (7, 'Ada')").collect()
    flow.refresh_view("framed")
    assert rows(flow, "framed") == ADA_AND_BOB + Counter([(1, "Ada")])
    assert rows(flow, "counted") == Counter([("Ada", 2), ("Bob", 1)])


def test_frames_of_others_are_refused(session, flow, tmp_path):
    with session.flow("second") as second:
        second.register_source("orders", ORDERS)
        with pytest.raises(ConfigError, match="'orders' of another flow"):
            flow.register_view("v", second.table("orders").select("id"))
    with pytest.raises(ConfigError, match="have no name"):
        flow.register_view("v", flow.table("orders").join(session.spark.createDataFrame([(1,)], "id BIGINT"), "id"))
    session.sql("SELECT 1L AS id").write.parquet(str(tmp_path / "p"))
    with pytest.raises(ConfigError, match="have no name"):
        flow.register_view("v", flow.table("orders").join(session.read_parquet(str(tmp_path / "p")), "id"))
    other = session.spark.newSession()
    other.createDataFrame([(1,)], "id BIGINT").createOrReplaceTempView("elsewhere")
    with pytest.raises(TableNotFound, match="not a table of this Session"):
        flow.register_view("v", other.table("elsewhere"))
    assert flow.views == ()
    assert set(kinds(flow).values()) == {"source"}
