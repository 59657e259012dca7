"""One Session with several connectors: Iceberg, Delta and Kafka side by side, rows and types kept."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer
from support.connectors import require_connectors
from support.processes import wait_until

from weirflow.errors import AlreadyExists, TableNotFound

NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=dt.UTC)
# Two rows are equal: a connector that loses or doubles one shows.
ROWS = pa.table(
    {
        "i": pa.array([1, 2, 2, None], pa.int32()),
        "l": pa.array([2**62, 2, 2, -3], pa.int64()),
        "s": pa.array(["a", "é\n", "é\n", None], pa.string()),
        "d": pa.array([Decimal("1.10"), None, None, Decimal("-3.00")], pa.decimal128(10, 2)),
        "t": pa.array([NOON, None, None, dt.datetime(1969, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        "day": pa.array([NOON.date(), None, None, dt.date(1582, 10, 15)], pa.date32()),
        "b": pa.array([b"\x00\xff", b"", b"", None], pa.binary()),
        "x": pa.array([1.5, float("inf"), float("inf"), None], pa.float64()),
        "ok": pa.array([True, False, False, None], pa.bool_()),
        "many": pa.array([[1, None], [], [], None], pa.list_(pa.field("element", pa.int32()))),
        "one": pa.array([{"x": 1}, {"x": None}, {"x": None}, None], pa.struct([("x", pa.int64())])),
    }
)


@pytest.fixture
def session(connector_spark):
    require_connectors("kafka", "iceberg", "delta")
    connector_spark.register("source", ROWS)
    return connector_spark


def assert_same(found, expected):
    """Equal as multisets of rows, with equal names and types."""
    assert dict(zip(found.schema.names, found.schema.types, strict=True)) == dict(
        zip(expected.schema.names, expected.schema.types, strict=True)
    )
    assert _multiset(found) == _multiset(expected)


def _multiset(table):
    return Counter(map(repr, table.to_pylist()))


def test_an_iceberg_table_in_the_catalog_every_session_has(session):
    session.sql("CREATE TABLE iceberg.db.made USING iceberg AS SELECT * FROM source")
    assert_same(session.table("iceberg.db.made").to_arrow(), ROWS)


def test_an_iceberg_table_grows_and_keeps_its_past(session):
    session.table("source").write_table("iceberg.db.grown", format="iceberg")
    session.table("source").write_table("iceberg.db.grown", format="iceberg", mode="append")
    assert_same(session.table("iceberg.db.grown").to_arrow(), pa.concat_tables([ROWS, ROWS]))
    first = session.sql("SELECT snapshot_id FROM iceberg.db.grown.snapshots ORDER BY committed_at").first()[0]
    assert_same(session.sql(f"SELECT * FROM iceberg.db.grown VERSION AS OF {first}").to_arrow(), ROWS)


def test_iceberg_brings_its_own_commands(session):
    session.sql("CREATE TABLE iceberg.db.merged USING iceberg AS SELECT l, s FROM source")
    session.sql(
        "MERGE INTO iceberg.db.merged t USING (SELECT 2L AS l) n ON t.l = n.l "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (l, s) VALUES (0, 'new')"
    )
    session.sql("ALTER TABLE iceberg.db.merged ADD PARTITION FIELD bucket(4, l)")
    assert_same(session.table("iceberg.db.merged").to_arrow(), ROWS.select(["l", "s"]).take([0, 3]))


def test_a_delta_table_at_a_path(session, tmp_path):
    path = str(tmp_path / "delta")
    session.table("source").write.format("delta").save(path)
    assert (tmp_path / "delta" / "_delta_log").is_dir()
    assert_same(session.sql(f"SELECT * FROM delta.`{path}`").to_arrow(), ROWS)


def test_a_delta_table_by_name(session):
    session.table("source").write_table("named", format="delta")
    with pytest.raises(AlreadyExists):
        session.table("source").write_table("named", format="delta")
    session.sql("UPDATE named SET s = 'new' WHERE l = -3")
    expected = ROWS.set_column(2, "s", pa.array(["a", "é\n", "é\n", "new"], pa.string()))
    assert_same(session.table("named").to_arrow(), expected)
    assert_same(session.sql("SELECT * FROM named VERSION AS OF 0").to_arrow(), ROWS)
    session.drop("named")
    assert "named" not in session.tables()


def test_a_topic_is_written_and_read(session, broker):
    broker.create_topic("round-trip", partitions=2)
    records = pa.table(
        {
            "key": pa.array([b"a", b"a", None, b"\x00\xff"], pa.binary()),
            "value": pa.array([b"1", b"1", "é".encode(), None], pa.binary()),
        }
    )
    kafka = {"kafka.bootstrap.servers": broker.bootstrap}
    session.from_arrow(records).write.format("kafka").options(**kafka, topic="round-trip").save()
    topic = session.spark.read.format("kafka").options(**kafka, subscribe="round-trip").load()
    session.register("topic", topic)
    assert_same(session.sql("SELECT key, value FROM topic").to_arrow(), records)
    assert Counter(_consumed(broker, "round-trip", 4)) == Counter(zip(*records.to_pydict().values(), strict=True))


def test_records_of_another_producer_reach_a_lakehouse_table(session, broker):
    broker.create_topic("lakehouse-orders")
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(5):
            producer.produce("lakehouse-orders", key=f"k{number % 2}", value=str(number))
        assert producer.flush(30) == 0
    topic = session.spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    session.register("orders", topic.option("subscribe", "lakehouse-orders").load())
    session.sql(
        "CREATE TABLE iceberg.db.orders USING iceberg AS "
        "SELECT CAST(key AS STRING) AS k, sum(CAST(CAST(value AS STRING) AS INT)) AS total FROM orders GROUP BY key"
    )
    session.sql("CREATE TABLE orders_delta USING delta AS SELECT * FROM iceberg.db.orders")
    expected = pa.table({"k": pa.array(["k0", "k1"]), "total": pa.array([6, 4], pa.int64())})
    assert_same(session.table("orders_delta").to_arrow(), expected)


def test_queries_with_parameters_work_beside_the_connectors(session):
    named = session.sql("SELECT l FROM source WHERE l = :wanted AND s = :text", {"wanted": 2, "text": "é\n"})
    assert named.to_arrow().to_pylist() == [{"l": 2}, {"l": 2}]
    assert session.sql("SELECT ? AS a, ? AS b", [1, "it's"]).to_arrow().to_pylist() == [{"a": 1, "b": "it's"}]


def test_a_table_of_another_catalog_can_be_dropped(session):
    session.sql("CREATE TABLE iceberg.db.short_lived (a INT) USING iceberg")
    session.drop("iceberg.db.short_lived")
    with pytest.raises(TableNotFound, match="short_lived"):
        session.table("iceberg.db.short_lived").to_arrow()


def test_spark_copies_no_jar_as_it_starts(session):
    conf = session.spark.sparkContext.getConf()
    assert (conf.get("spark.jars", ""), conf.get("spark.jars.packages", "")) == ("", "")


def _consumed(broker, topic, count):
    """The records of a topic as another client sees them."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    seen = []

    def complete():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            seen.append((message.key(), message.value()))
        return len(seen) >= count

    wait_until(complete, 30.0, f"in possession of {count} records")
    consumer.close()
    return seen
