"""The cells of output mode x trigger x sink that need a real Kafka broker, Delta or Iceberg."""

import pyarrow as pa
import pytest
from support.connectors import require_connectors
from support.processes import wait_until
from support.streaming_catalogue import CONNECTOR_SINKS, refused_cells, working_cells

from weirflow import OutputMode, Trigger
from weirflow.errors import StreamRefused
from weirflow.streaming.trigger import TriggerKind
from weirflow.testing.sequence import SequenceSource

SCHEMA = pa.schema({"key": pa.string(), "value": pa.string()})
FIRST = [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]
SECOND = [{"key": "a", "value": "3"}]


@pytest.fixture(autouse=True)
def _connectors():
    require_connectors("kafka", "iceberg", "delta")


@pytest.fixture(scope="module")
def rows():
    with SequenceSource(SCHEMA) as source:
        source.add(FIRST)
        source.add(SECOND)
        yield source


def asked(session, rows, cell):
    if cell.trigger.kind is TriggerKind.CONTINUOUS:
        stream = session.read_stream("rate", rowsPerSecond=50, numPartitions=1).selectExpr(
            "'a' AS key", "CAST(value AS STRING) AS value"
        )
    else:
        stream = rows.stream(session)
    if cell.mode is OutputMode.APPEND:
        return stream.where("value <> '2'")
    return stream.groupBy("key").agg({"*": "count"}).selectExpr("key", "CAST(`count(1)` AS STRING) AS value")


class Target:
    """A topic or table of its own for a cell."""

    def __init__(self, session, broker, cell):
        self.session = session
        self.kind = cell.sink
        name = str(cell).replace("-", "_")
        self.name = f"iceberg.streams.{name}" if self.kind == "iceberg" else name
        self.kafka = {"kafka.bootstrap.servers": broker.bootstrap}
        if self.kind == "kafka":
            broker.create_topic(self.name)
        else:
            session.spark.sql(f"CREATE TABLE {self.name} (key STRING, value STRING) USING {self.kind}")

    def wired(self, writer):
        if self.kind == "kafka":
            return writer.format("kafka").option("topic", self.name).options(**self.kafka)
        return writer.format(self.kind).table(self.name)

    def read(self):
        if self.kind != "kafka":
            frame = self.session.table(self.name)
        else:
            topic = self.session.spark.read.format("kafka").options(**self.kafka, subscribe=self.name).load()
            frame = topic.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        return sorted(tuple(row) for row in frame.collect())


def expected(cell):
    """After a batch of two rows and one of one; with Trigger.once they are one batch."""
    if cell.mode is OutputMode.APPEND:
        return [("a", "1"), ("a", "3")]
    if cell.sink == "kafka" and cell.trigger.kind is not TriggerKind.ONCE:  # a topic keeps what was written before
        again = [("b", "1")] if cell.mode is OutputMode.COMPLETE else []
        return sorted([("a", "1"), ("a", "2"), ("b", "1"), *again])
    return [("a", "2"), ("b", "1")]


@pytest.mark.parametrize("cell", working_cells(CONNECTOR_SINKS))
def test_what_the_table_has_works(session, broker, rows, cell):
    target = Target(session, broker, cell)
    writer = target.wired(asked(session, rows, cell).write_stream().output_mode(cell.mode).trigger(cell.trigger))
    if cell.sink != "kafka" and cell.mode is OutputMode.UPDATE:
        writer = writer.keys("key")
    with writer.start() as query:
        assert query.describe().delivery == cell.delivery
        if cell.trigger.kind is TriggerKind.CONTINUOUS:
            wait_until(target.read, 60.0, "rows")
            return
        if cell.trigger.ends:
            assert query.await_termination(120)
        else:
            query.process_all_available()
        assert target.read() == expected(cell)


@pytest.mark.parametrize("cell", refused_cells(CONNECTOR_SINKS))
def test_what_the_table_has_not_is_refused(session, broker, rows, cell):
    writer = asked(session, rows, cell).write_stream().output_mode(cell.mode).trigger(cell.trigger)
    writer = writer.format(cell.sink).table("nowhere")
    if cell.sink != "kafka" and cell.mode is OutputMode.UPDATE:
        writer = writer.keys("key")
    with pytest.raises(StreamRefused) as raised:
        writer.start()
    assert (raised.value.message, raised.value.hint) == cell.refusal


def test_a_repeated_batch_of_updates_changes_nothing(session, rows, tmp_path):
    session.spark.sql("CREATE TABLE repeated (key STRING, value STRING) USING delta")

    def run():
        stream = rows.stream(session).groupBy("key").agg({"*": "count"})
        writer = stream.selectExpr("key", "CAST(`count(1)` AS STRING) AS value").write_stream()
        writer = writer.output_mode("update").format("delta").table("repeated").keys("key")
        with writer.option("checkpointLocation", tmp_path / "saved").trigger(Trigger.available_now()).start() as query:
            query.await_termination(120)
            return query.last_progress().batch

    assert run() == 1
    (tmp_path / "saved" / "commits" / "1").unlink()  # Spark was killed before it noted that the batch is done
    (tmp_path / "saved" / "commits" / ".1.crc").unlink(missing_ok=True)
    run()
    assert sorted(tuple(row) for row in session.table("repeated").collect()) == [("a", "2"), ("b", "1")]


@pytest.mark.campaign
def test_updates_from_kafka_to_kafka_run_in_real_time_mode(session, broker):
    kafka = {"kafka.bootstrap.servers": broker.bootstrap}
    broker.create_topic("real-time-in")
    broker.create_topic("real-time-out")
    stream = session.read_stream("kafka", subscribe="real-time-in", startingOffsets="earliest", **kafka)
    upper = stream.selectExpr("key", "upper(CAST(value AS STRING)) AS value")
    writer = upper.write_stream().output_mode("update").trigger(Trigger.continuous(5000)).format("kafka")
    with writer.options(**kafka, topic="real-time-out").start() as query:
        assert "real-time mode" in query.describe().trigger
        session.from_arrow([{"key": "k", "value": "now"}]).write.format("kafka").options(
            **kafka, topic="real-time-in"
        ).save()

        def arrived():
            topic = session.spark.read.format("kafka").options(**kafka, subscribe="real-time-out").load()
            return [bytes(row.value) for row in topic.collect()] == [b"NOW"] or query.exception

        wait_until(arrived, 60.0, "there")
        assert query.exception is None
