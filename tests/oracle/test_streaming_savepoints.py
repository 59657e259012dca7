"""Savepoints of streaming queries: taken while they run, listed, copied, restored into changed queries."""

import os
import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf
from support.processes import wait_until

from weirflow import IncrementalFlow, Trigger
from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import (
    ConfigError,
    ObjectExists,
    ObjectNotFound,
    StateMismatch,
    StorageError,
    StreamConflict,
    StreamRefused,
)
from weirflow.failpoints import watch_failpoints
from weirflow.process import ProcessFunction
from weirflow.state import StateDescriptor
from weirflow.testing.sequence import SequenceSource

START = datetime(2024, 1, 1, tzinfo=UTC)
WRITTEN = "window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, customer STRING, n BIGINT, total BIGINT"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FORGETFUL = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.fileSource.log.compactInterval": "2",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "0",
}


def order(number):
    moment = START + timedelta(seconds=7 * number)
    return {"event_time": moment, "customer": "abc"[number % 3], "amount": number}


class Shop:
    """A folder that files of orders arrive in, and the queries on it."""

    def __init__(self, session, folder):
        self.session = session
        self.folder = folder
        self.landed = 0
        (folder / "in").mkdir()
        self.land(2)

    def land(self, files):
        for _ in range(files):
            rows = [order(number) for number in range(20 * self.landed, 20 * self.landed + 20)]
            path = self.folder / "in" / f"{self.landed}.parquet"
            pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(".part"))
            # Spark reads files by their age, and those of one instant in any order.
            moment = START.timestamp() + self.landed
            os.utime(path.with_suffix(".part"), (moment, moment))
            path.with_suffix(".part").rename(path)
            self.landed += 1

    def stream(self):
        found = self.session.read_stream(
            "parquet", self.folder / "in", maxFilesPerTrigger=1, pathGlobFilter="*.parquet"
        )
        return found.with_event_time("event_time")

    def totals(self, *more, size=60_000, key="customer"):
        windows = self.stream().key_by(key).tumbling_window(size)
        return windows.agg(["count(*) AS n", "sum(amount) AS total", *more])

    def writer(self, stream, out, checkpoint):
        writer = stream.write_stream().format("parquet").option("path", self.folder / out)
        return writer.option("checkpointLocation", self.folder / checkpoint)

    def expected(self):
        """What the batch result has of the windows that are final."""
        rows = self.session.read_parquet(self.folder / "in")
        last = rows.agg(sf.max("event_time")).collect()[0][0]
        grouped = rows.groupBy(sf.window("event_time", "60 seconds"), "customer")
        made = grouped.agg(sf.count("*").alias("n"), sf.sum("amount").alias("total"))
        return values(made.where(sf.col("window.end") <= sf.lit(last)))

    def written(self, out):
        """All rows of a query; a savepoint of the last batch leaves none to the query that is restored from it."""
        return values(self.session.read_parquet(self.folder / out, schema=WRITTEN))

    def written_up_to(self, batch, out):
        """What the batches up to this one wrote."""
        log = [self.folder / out / "_spark_metadata" / str(number) for number in range(batch + 1)]
        names = [name for path in log for name in re.findall(r'"path":"file://([^"]+)"', path.read_text())]
        return values(self.session.read_parquet(names)) if names else []


def values(frame):
    return sorted(tuple(row) for row in frame.select("window", "customer", "n", "total").collect())


def finish(writer):
    with writer.trigger(Trigger.available_now()).start() as query:
        query.await_termination(120)
        return query


@pytest.fixture
def shop(session, tmp_path):
    return Shop(session, tmp_path)


@pytest.fixture(params=[pytest.param("in memory", marks=pytest.mark.campaign), "RocksDB"])
def provider(request, session):
    before = session.spark.conf.get(PROVIDER)
    if request.param == "RocksDB":
        session.spark.conf.set(PROVIDER, ROCKSDB)
    yield
    session.spark.conf.set(PROVIDER, before)


@pytest.fixture
def forgetful(session):
    """Spark deletes what it keeps for a hundred batches as soon as it may."""
    for name, value in FORGETFUL.items():
        session.spark.conf.set(name, value)
    yield
    watch_failpoints(None)
    for name in FORGETFUL:
        session.spark.conf.unset(name)


def save(shop):
    """A savepoint after two files, and where it is."""
    with shop.writer(shop.totals(), "out", "saved").query_name("totals").start() as query:
        query.process_all_available()
        query.savepoint("before", shop.folder / "points")
    return shop.session.streams.savepoints(shop.folder / "points")


@pytest.fixture
def saved(shop):
    return save(shop)


@pytest.fixture(scope="module")
def saved_once(shared_session, tmp_path_factory):
    """A shop with a savepoint, for tests that leave both as they are."""
    shop = Shop(shared_session.open(), tmp_path_factory.mktemp("shop"))
    save(shop)
    return shop


@pytest.fixture
def unchanged(session, saved_once):
    return saved_once


def test_a_changed_query_goes_on_from_the_savepoint_of_a_running_one(session, shop, provider):
    with shop.writer(shop.totals(), "out", "saved").query_name("totals").start() as query:
        query.process_all_available()
        made = query.savepoint("before", shop.folder / "points")
        before = shop.written("out")
        shop.land(2)
        query.process_all_available()  # it goes on; the savepoint does not know
        assert query.active
        old = query.id
    assert made.batch == max(int(name.split("/")[1]) for name in made.files if name.startswith("offsets/"))

    changed = shop.totals().withColumn("mean", sf.col("total") / sf.col("n")).where("n > 0")
    writer = shop.writer(changed, "other", "restored").from_savepoint("before", shop.folder / "points")
    with writer.query_name("means").start() as again:
        again.process_all_available()
        assert again.id != old
        shop.land(2)
        again.process_all_available()
    assert sorted([*before, *shop.written("other")]) == shop.expected()
    assert "mean" in session.read_parquet(shop.folder / "other").columns

    shop.land(1)  # started once more, it goes on from its own checkpoint
    finish(writer)
    assert sorted([*before, *shop.written("other")]) == shop.expected()


def test_a_savepoint_is_of_one_batch_whatever_the_query_does_meanwhile(shop):
    shop.land(4)
    with shop.writer(shop.totals(), "out", "saved").start() as query:
        wait_until((shop.folder / "saved" / "commits" / "1").exists, 60.0, "at work")
        made = query.savepoint("midway", shop.folder / "points")
        query.process_all_available()
    versions = [
        int(found[1]) for name in made.files if (found := re.match(r"state/0/0/(\d+)\.(?:delta|snapshot)$", name))
    ]
    assert max(versions) == made.batch + 1
    finish(shop.writer(shop.totals(), "other", "restored").from_savepoint("midway", shop.folder / "points"))
    assert shop.written("out") == shop.expected()
    # The first query wrote the same rows up to the savepoint, and each after it is in both.
    assert sorted([*shop.written_up_to(made.batch, "out"), *shop.written("other")]) == shop.expected()


@pytest.mark.parametrize("nth", [2, pytest.param(5, marks=pytest.mark.campaign)])
def test_a_savepoint_is_whole_also_if_the_query_deletes_its_files_meanwhile(shop, forgetful, nth):
    reached = 0

    def go_on(name):
        nonlocal reached
        reached += name == "savepoint.after_file"
        if name == "savepoint.after_file" and reached == nth:
            last = max(offsets.glob("[0-9]"))
            shop.land(4)
            query.process_all_available()
            wait_until(lambda: not last.exists(), 60.0, "deleted")

    with shop.writer(shop.totals(), "out", "saved").start() as query:
        offsets = shop.folder / "saved" / "offsets"
        query.process_all_available()
        watch_failpoints(go_on)
        made = query.savepoint("midway", shop.folder / "points")
    assert reached >= nth
    assert shop.written("out") == shop.expected()
    shop.land(2)
    finish(shop.writer(shop.totals(), "other", "restored").from_savepoint("midway", shop.folder / "points"))
    assert sorted([*shop.written_up_to(made.batch, "out"), *shop.written("other")]) == shop.expected()


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (
            lambda shop: shop.totals("max(amount) AS most"),
            "the values of operator 0 (Aggregate) did not have 'max(amount)'",
        ),
        (lambda shop: shop.totals(key="amount"), "the key of operator 0 (Aggregate) had 'customer', which is gone"),
        (
            lambda shop: shop.totals(size=30_000),
            "the key of operator 0 (Aggregate) had 'window' with windows of another",
        ),
        (lambda shop: shop.stream(), "operator 0 was Aggregate and is not there"),
        (
            lambda shop: shop.stream().groupBy(sf.window("event_time", "60 seconds"), sf.upper("customer")).count(),
            "the key of operator 0 (Aggregate) had 'customer', which is gone",
        ),
        (
            lambda shop: shop.stream().dropDuplicates(["customer", "event_time"]),
            "operator 0 (Aggregate) is Deduplicate now",
        ),
    ],
)
def test_what_the_state_would_not_survive_is_refused_by_name(unchanged, changed, difference):
    writer = unchanged.writer(changed(unchanged), "other", "restored").from_savepoint(
        "before", unchanged.folder / "points"
    )
    with pytest.raises(StateMismatch, match=re.escape(difference)):
        writer.start()
    assert not (unchanged.folder / "restored").exists()


def test_a_column_of_another_type_is_refused_by_name(unchanged):
    other = unchanged.stream().withColumn("amount", sf.col("amount").cast("double"))
    stream = other.key_by("customer").tumbling_window(60_000).agg(["count(*) AS n", "sum(amount) AS total"])
    writer = unchanged.writer(stream, "other", "restored").from_savepoint("before", unchanged.folder / "points")
    with pytest.raises(StateMismatch, match=r"had 'sum\(amount\)' as bigint, which is double now"):
        writer.start()


def test_another_source_is_refused_by_name(session, unchanged):
    rate = session.read_stream("rate").selectExpr("timestamp AS event_time", "'a' AS customer", "value AS amount")
    stream = rate.with_event_time("event_time").key_by("customer").tumbling_window(60_000)
    writer = unchanged.writer(stream.agg(["count(*) AS n", "sum(amount) AS total"]), "other", "restored")
    with pytest.raises(StateMismatch, match="source 0 was parquet and is rate"):
        writer.from_savepoint("before", unchanged.folder / "points").start()


def test_savepoints_are_listed_copied_and_deleted(session, shop, saved):
    [found] = saved.list()
    assert (found.name, found.query, found.state.sources) == ("before", "totals", ["parquet"])
    assert (
        "operator 0: Aggregate by [window struct<start:timestamp,end:timestamp>, customer string]" in found.describe()
    )
    copied = saved.copy("before", open_checkpoint_storage(shop.folder / "elsewhere"), new_name="kept")
    saved.delete("before")
    assert saved.list() == []
    assert copied.size == found.size

    before = shop.written("out")
    shop.land(2)
    finish(shop.writer(shop.totals(), "other", "restored").from_savepoint("kept", shop.folder / "elsewhere"))
    assert sorted([*before, *shop.written("other")]) == shop.expected()


def test_what_is_there_is_not_overwritten(shop, saved):
    with shop.writer(shop.totals(), "out", "saved").start() as query:
        with pytest.raises(ObjectExists, match="'before'"):
            query.savepoint("before", shop.folder / "points")
        with pytest.raises(ConfigError, match="dev-local"):
            query.savepoint("before")
        shop.land(1)
        query.process_all_available()
    with pytest.raises(StreamConflict, match="checkpoint"):
        shop.writer(shop.totals(), "other", "saved").from_savepoint("before", shop.folder / "points").start()
    with pytest.raises(StreamConflict, match="rows would be lost or doubled"):
        shop.writer(shop.totals(), "out", "restored").from_savepoint("before", shop.folder / "points").start()
    with pytest.raises(ObjectNotFound, match="'befor'"):
        shop.writer(shop.totals(), "other", "restored").from_savepoint("befor", shop.folder / "points").start()
    memory = shop.totals().write_stream().format("memory").from_savepoint("before", shop.folder / "points")
    with pytest.raises(StreamRefused, match="begins empty"):
        memory.start()


def test_a_damaged_file_is_named_and_the_restore_can_be_repeated(shop, saved):
    ref = next(ref for name, ref in saved.get("before").files.items() if name.endswith(".delta") and ref.size)
    path = shop.folder / "points" / ref.object
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    writer = shop.writer(shop.totals(), "other", "restored").from_savepoint("before", shop.folder / "points")
    with pytest.raises(StorageError, match=ref.object):
        writer.start()
    path.write_bytes(whole)
    before = shop.written("out")
    shop.land(2)
    finish(writer)
    assert sorted([*before, *shop.written("other")]) == shop.expected()


def test_a_flow_goes_on_from_a_savepoint(session, shop, saved):
    with IncrementalFlow("shop") as flow:
        flow.register_source("totals", "customer STRING, n BIGINT, total BIGINT")
        flow.register_view("all", "SELECT SUM(n) AS n, SUM(total) AS total FROM totals")
        writer = shop.totals().select("customer", "n", "total").write_stream().flow(flow, "totals")
        writer = writer.option("checkpointLocation", shop.folder / "restored")
        before = shop.written("out")
        shop.land(2)
        finish(writer.from_savepoint("before", shop.folder / "points"))
        rest = list(shop.expected())
        for row in before:
            rest.remove(row)
        assert flow.snapshot("all").to_pylist() == [
            {"n": sum(row[2] for row in rest), "total": sum(row[3] for row in rest)}
        ]


def test_the_state_of_a_process_function_is_restored_and_read_as_a_table(session, tmp_path):
    class Counting(ProcessFunction):
        output = "user STRING, seen BIGINT"

        def open(self, ctx):
            self.seen = ctx.value(StateDescriptor("seen", str, int))

        def on_element(self, ctx, key, row):  # noqa: ARG002 - the contract
            self.seen.set(self.seen.get(0) + 1)
            ctx.emit({"user": key, "seen": self.seen.get()})

    with SequenceSource(pa.schema({"user": pa.string()})) as source:

        def writer(keys="user"):
            stream = source.stream(session).withColumn("other", sf.col("user")).key_by(keys).process(Counting())
            written = stream.write_stream().output_mode("update").foreach_batch(collect)
            return written.option("checkpointLocation", tmp_path / "saved")

        found = []

        def collect(frame, number):
            found.extend(tuple(row.values()) for row in frame.to_arrow().to_pylist())

        source.add([{"user": "ann"}, {"user": "bob"}, {"user": "ann"}])
        with writer().start() as query:
            query.process_all_available()
            query.savepoint("counts", tmp_path / "points")
            source.add([{"user": "ann"}])
            query.process_all_available()
        savepoints = session.streams.savepoints(tmp_path / "points")
        savepoints.restore("counts", str(tmp_path / "restored"))
        seen = session.state_table(tmp_path / "restored", 0, "seen").to_arrow().sort_by("user").to_pylist()
        assert seen == [{"user": "ann", "value": 2}, {"user": "bob", "value": 1}]

        with pytest.raises(StateMismatch, match="had 'user', which is gone"):
            writer("other").option("checkpointLocation", tmp_path / "third").from_savepoint(
                "counts", tmp_path / "points"
            ).start()
        found.clear()
        finish(
            writer().option("checkpointLocation", tmp_path / "restored").from_savepoint("counts", tmp_path / "points")
        )
        assert found == [("ann", 3)]
