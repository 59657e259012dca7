"""Batches as transactions of a real Kafka broker: who reads what is committed sees each row once."""

import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer
from support import kafka_shop, stream_shop
from support.processes import ChildProcess

from weirflow import RestartPolicy, Trigger
from weirflow.errors import ConfigError, StorageError, StreamConflict, StreamRefused
from weirflow.testing.sequence import SequenceSource
from weirflow.types import Delivery

SCHEMA = pa.schema({"key": pa.string(), "value": pa.string()})


@pytest.fixture
def rows():
    with SequenceSource(SCHEMA) as source:
        yield source


def records(broker, topic):
    """All that a reader of committed records sees up to the end of the topic."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found, ends, partitions = [], set(), len(consumer.list_topics(topic, 30).topics[topic].partitions)
    while len(ends) < partitions and (message := consumer.poll(30)) is not None:
        if message.error() is None:
            found.append((message.key(), message.value()))
        else:
            ends.add(message.partition())
    consumer.unsubscribe()
    consumer.close()
    return found


def writer(broker, stream, topic, checkpoint):
    made = stream.write_stream().format("kafka-transactions").option("checkpointLocation", checkpoint)
    return made.options(**{"topic": topic, "kafka.bootstrap.servers": broker.bootstrap})


def finish(made):
    with made.trigger(Trigger.available_now()).start() as query:
        query.await_termination(120)
        return query


def test_a_batch_that_comes_again_is_left_out(session, broker, rows, tmp_path):
    broker.create_topic("again", partitions=2)
    rows.add([{"key": "a", "value": "1"}, {"key": None, "value": "2"}])
    rows.add([{"key": "a", "value": "3"}])
    counted = rows.stream(session).groupBy("key").agg({"*": "count"})
    updates = counted.selectExpr("key", "CAST(`count(1)` AS STRING) AS value")
    made = writer(broker, updates, "again", tmp_path / "saved").output_mode("update")
    query = finish(made)
    assert query.describe().delivery is Delivery.EXACTLY_ONCE
    (tmp_path / "saved" / "commits" / "1").unlink()  # Spark was killed before it noted that the batch is done
    (tmp_path / "saved" / "commits" / ".1.crc").unlink(missing_ok=True)
    rows.add([{"key": "a", "value": "4"}])
    finish(made)
    expected = Counter([(b"a", b"1"), (None, b"1"), (b"a", b"2"), (b"a", b"3")])
    assert Counter(records(broker, "again")) == expected


def test_whoever_goes_on_with_a_query_shuts_out_who_was_there(session, broker, rows, tmp_path):
    broker.create_topic("fenced")
    rows.add([{"key": "a", "value": "1"}])
    with writer(broker, rows.stream(session), "fenced", tmp_path / "saved").restart(RestartPolicy()).start() as query:
        query.process_all_available()
        with Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"weirflow-{query.id}"}) as rival:
            rival.init_transactions(30)
            rows.add([{"key": "a", "value": "2"}])
            with pytest.raises(StreamConflict, match="Another process"):
                query.await_termination(60)
    assert records(broker, "fenced") == [(b"a", b"1")]


def test_what_is_no_record_is_refused_before_anything_starts(session, broker, rows, tmp_path):
    stream = rows.stream(session)
    with pytest.raises(ConfigError, match="not a part of a Kafka record"):
        writer(broker, stream.selectExpr("value", "key AS name"), "t", tmp_path).start()
    with pytest.raises(ConfigError, match="'value' is int"):
        writer(broker, stream.selectExpr("1 AS value"), "t", tmp_path).start()
    with pytest.raises(ConfigError, match="needs a column 'value'"):
        writer(broker, stream.select("key"), "t", tmp_path).start()
    with pytest.raises(ConfigError, match="No topic"):
        stream.write_stream().format("kafka-transactions").start()
    with pytest.raises(ConfigError, match="no option 'tpoic'"):
        writer(broker, stream, "t", tmp_path).option("tpoic", "t").start()
    with pytest.raises(ConfigError, match="cannot be set"):
        writer(broker, stream, "t", tmp_path).option("kafka.transactional.id", "mine").start()
    with pytest.raises(StreamRefused, match="batches"):
        writer(broker, stream, "t", tmp_path).trigger(Trigger.continuous(1000)).start()


def test_a_partition_that_is_not_there_is_an_error_and_nothing_is_written(session, broker, rows, tmp_path):
    broker.create_topic("narrow")
    rows.add([{"key": "a", "value": "1"}, {"key": "b", "value": "2"}])
    stream = rows.stream(session).selectExpr("value", "CAST(IF(key = 'b', 7, 0) AS INT) AS partition")
    with pytest.raises(StorageError, match="narrow"):
        finish(writer(broker, stream, "narrow", tmp_path / "saved"))
    assert records(broker, "narrow") == []


def life(folder, broker, *arguments):
    script = Path(kafka_shop.__file__)
    command = [sys.executable, script, folder, broker.bootstrap, *arguments]
    return ChildProcess(command, name="shop", env={"PYTHONPATH": str(script.parent.parent)})


@pytest.mark.campaign
def test_kills_around_the_commit_lose_and_double_nothing(broker, own_spark, tmp_path):
    own_spark()  # there is room for one Spark
    broker.create_topic(kafka_shop.TOPIC)
    stream_shop.land(tmp_path / "inbox", 4)
    for point, nth in [("kafka.before_commit", "2"), ("kafka.after_commit", "1")]:
        with life(tmp_path, broker, point, nth) as child:
            assert child.wait(120.0) == -9, f"{point} was not reached: {child.log}"
    with life(tmp_path, broker) as child:
        assert child.wait(120.0) == 0, child.log
    expected = [
        (row["customer"].encode(), str(row["amount"]).encode()) for n in range(4) for row in stream_shop.rows(n)
    ]
    assert Counter(records(broker, kafka_shop.TOPIC)) == Counter(expected)
