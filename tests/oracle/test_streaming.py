"""Streams in, windows and joins, files and memory out: what a query writes equals the batch result."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf
from pyspark.sql.functions import col, count

from weirflow import OutputMode, StreamingDataFrame, Trigger
from weirflow.errors import ColumnNotFound, ConfigError
from weirflow.testing.sequence import SequenceSource

START = datetime(2024, 1, 1, tzinfo=UTC)
ORDERS = pa.schema({"event_time": pa.timestamp("us", "UTC"), "customer": pa.string(), "amount": pa.int64()})


def at(seconds):
    return START + timedelta(seconds=seconds)


def order(seconds, customer="ann", amount=1):
    return {"event_time": at(seconds), "customer": customer, "amount": amount}


@pytest.fixture
def orders():
    with SequenceSource(ORDERS) as source:
        yield source


def rows(query):
    """The rows of a memory sink, sorted; windows as seconds since the start."""
    made = [
        tuple(plain(value) for value in row.values())
        for row in pa.Table.from_batches(query.memory_batches()).to_pylist()
    ]
    return sorted(made, key=repr)


def plain(value):
    if isinstance(value, dict):
        return tuple(int((moment.replace(tzinfo=UTC) - START).total_seconds()) for moment in value.values())
    return value


def run(writer):
    with writer.format("memory").trigger(Trigger.available_now()).start() as query:
        query.await_termination(60)
        return rows(query)


def test_windows_in_files_equal_the_batch_result(session, tmp_path):
    table = pa.Table.from_pylist([order(10 * number, amount=number) for number in range(60)], ORDERS)
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "orders.parquet")
    streaming = (
        session.read_parquet(tmp_path / "data" / "orders.parquet")
        .to_streaming()
        .with_event_time("event_time")
        .tumbling_window(60_000)
        .agg([count(col("*"))])
    )
    query = (
        streaming.write_stream()
        .output_mode(OutputMode.APPEND)
        .trigger(Trigger.processing_time(100))
        .format("parquet")
        .option("path", tmp_path / "out" / "per_minute")
        .option("checkpoint.location", tmp_path / "ckpt")
        .start()
    )
    with query:
        query.process_all_available()
        progress = query.last_progress()
        assert query.status().state in ("waiting", "running")
    batch = session.read_parquet(tmp_path / "data").groupBy(sf.window("event_time", "60 seconds")).agg(count(col("*")))
    last = at(540)  # its end is not before the watermark, so it is not final
    expected = sorted(tuple(row) for row in batch.where(sf.col("window.start") < sf.lit(last)).collect())
    written = session.read_parquet(tmp_path / "out" / "per_minute")
    assert sorted(tuple(row) for row in written.collect()) == expected
    assert len(expected) == 9
    assert written.dtypes == batch.dtypes
    assert progress.watermark == at(590)
    assert "exactly-once" in str(query.describe())


def test_tumbling_windows_by_key(session, orders):
    orders.add([order(0), order(59, "bob", 5), order(61, "ann", 7)])
    orders.add([order(30, "bob", 2), order(200)])
    frame = orders.stream(session).with_event_time("event_time", "1 minute")
    summed = frame.key_by("customer").tumbling_window(60_000).agg("sum(amount) AS total", [sf.count("*").alias("n")])
    assert isinstance(summed, StreamingDataFrame)
    assert run(summed.write_stream()) == [((0, 60), "ann", 1, 1), ((0, 60), "bob", 7, 2), ((60, 120), "ann", 7, 1)]


def test_sliding_and_session_windows(session, orders):
    orders.add([order(0), order(10), order(40), order(1000)])
    orders.add([order(2000)])
    frame = orders.stream(session).with_event_time("event_time")
    assert run(frame.sliding_window(60_000, timedelta(seconds=30)).agg(["count(*) AS n"]).write_stream())[:3] == [
        ((-30, 30), 2),
        ((0, 60), 3),
        ((30, 90), 1),
    ]
    assert run(frame.session_window("20 seconds").agg(["count(*) AS n"]).write_stream()) == [
        ((0, 30), 2),
        ((1000, 1020), 1),
        ((40, 60), 1),
    ]
    with pytest.raises(ConfigError, match="size of windows"):
        frame.tumbling_window(0)


def test_keys_without_windows_are_updated(session, orders):
    orders.add([order(0), order(1, "bob", 5)])
    orders.add([order(2, "ann", 7)])
    writer = orders.stream(session).key_by("customer").agg("sum(amount) AS total").write_stream()
    assert run(writer.output_mode("update")) == [("ann", 1), ("ann", 8), ("bob", 5)]


def test_pyspark_methods_are_unchanged(session, orders):
    orders.add([order(0, "ann", 1), order(1, "bob", 2)])
    session.register("names", [{"customer": "ann", "name": "Ann"}])
    stream = orders.stream(session)
    joined = stream.join(session.table("names"), "customer", "left").select(
        "name", (stream.amount * 10).alias("tenfold")
    )
    assert isinstance(joined.where("tenfold > 0").dropDuplicates(), StreamingDataFrame)
    assert joined.isStreaming
    assert run(joined.write_stream()) == [("Ann", 10), (None, 20)]


def test_repeated_rows_are_dropped(session, orders):
    orders.add([order(0), order(0), order(5)])
    orders.add([order(5), order(6)])
    stream = orders.stream(session).with_event_time("event_time", "1 minute")
    assert len(run(stream.drop_duplicates(["event_time"]).write_stream())) == 3


def test_streams_are_joined_with_streams(session, orders):
    with SequenceSource(pa.schema({"paid_at": pa.timestamp("us", "UTC"), "payer": pa.string()})) as payments:
        orders.add([order(0), order(10, "bob")])
        payments.add([{"paid_at": at(20), "payer": "ann"}, {"paid_at": at(500), "payer": "bob"}])
        left = orders.stream(session).with_event_time("event_time", "1 minute")
        right = payments.stream(session).with_event_time("paid_at", "1 minute")
        soon = sf.expr("customer = payer AND paid_at BETWEEN event_time AND event_time + INTERVAL 1 MINUTE")
        assert run(left.join(right, soon).select("customer", "amount").write_stream()) == [("ann", 1)]


def test_late_rows_are_kept_aside(session, orders, tmp_path):
    orders.add([order(10), order(600)])
    orders.add([order(700)])  # rows are late by the watermark that the batch before began with
    orders.add([order(20, "late", 5), order(30, "late", 6), order(659, "in time"), order(710)])
    frame = orders.stream(session).with_event_time("event_time")
    counted = frame.key_by("customer").tumbling_window(60_000).late_rows(tmp_path / "late").agg("count(*) AS n")
    plainly = frame.key_by("customer").tumbling_window(60_000).agg("count(*) AS n")
    assert run(counted.write_stream()) == run(plainly.write_stream())
    kept = pq.read_table(tmp_path / "late").sort_by("amount")
    assert kept.cast(ORDERS).to_pylist() == [order(20, "late", 5), order(30, "late", 6)]
    with pytest.raises(ConfigError, match="late rows of another query"):
        run(counted.write_stream())


def test_what_is_no_file_read_does_not_stream(session, tmp_path):
    session.sql("SELECT 1 AS one").write_parquet(tmp_path / "one")
    for frame in (session.sql("SELECT 1 AS one"), session.read_parquet(tmp_path / "one").where("one = 1")):
        with pytest.raises(ConfigError, match="straight from files or a table"):
            frame.to_streaming()
    session.register("view", [{"one": 1}])
    with pytest.raises(ConfigError, match="do not stream"):
        session.table("view").to_streaming()


def test_tables_and_sources_stream(session, tmp_path):
    session.sql("SELECT 1 AS one").write_table("ones_to_stream")
    assert run(session.table("ones_to_stream").to_streaming().write_stream()) == [(1,)]
    assert run(session.read_stream(table="ones_to_stream").write_stream()) == [(1,)]
    rate = session.read_stream("rate-micro-batch", rowsPerBatch=2, startTimestamp=0)
    assert rate.columns == ["timestamp", "value"]
    session.sql("SELECT 2 AS one").write_json(tmp_path / "a")
    session.sql("SELECT 3 AS one").write_json(tmp_path / "b")
    both = session.read_stream("json", [tmp_path / "a", tmp_path / "b"])
    assert run(both.write_stream()) == [(2,), (3,)]
    with pytest.raises(ConfigError, match="from a source or from a table"):
        session.read_stream()
    session.drop("ones_to_stream")


def test_event_times_are_checked(session, orders):
    stream = orders.stream(session)
    with pytest.raises(ColumnNotFound, match="evnt_time") as raised:
        stream.with_event_time("evnt_time")
    assert raised.value.hint == "did you mean 'event_time'?"
    with pytest.raises(ConfigError, match="of type bigint"):
        stream.with_event_time("amount")
    with pytest.raises(ConfigError, match="no event time"):
        stream.tumbling_window(1000)
    with pytest.raises(ColumnNotFound, match="custmer"):
        stream.key_by("custmer")
