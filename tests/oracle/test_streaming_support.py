"""Every cell of output mode x trigger x sink: it works, or is refused at start() with its sentence."""

from pathlib import Path

import pyarrow as pa
import pytest
from support.processes import wait_until
from support.streaming_catalogue import LOCAL_SINKS, document, refused_cells, working_cells

from weirflow import OutputMode
from weirflow.errors import ConfigError, StreamRefused
from weirflow.streaming.trigger import TriggerKind
from weirflow.testing.sequence import SequenceSource

SCHEMA = pa.schema({"key": pa.string(), "value": pa.int64()})
ROWS = [{"key": "a", "value": 1}, {"key": "b", "value": -2}, {"key": "a", "value": 3}]
SELECTED = [("a", 1), ("a", 3)]
COUNTED = [("a", 2), ("b", 1)]


@pytest.fixture(scope="module")
def rows():
    with SequenceSource(SCHEMA) as source:
        source.add(ROWS)
        yield source


@pytest.fixture
def asked(session, rows):
    """The frame that a cell is asked for with."""

    def make(cell):
        if cell.trigger.kind is TriggerKind.CONTINUOUS:
            rate = session.read_stream("rate", rowsPerSecond=100, numPartitions=1)
            stream = rate.selectExpr("'a' AS key", "value")
        else:
            stream = rows.stream(session)
        if cell.mode is OutputMode.APPEND:
            return stream.where("value > 0")
        return stream.groupBy("key").count()

    return make


class Target:
    """Where a cell's rows go, and how to read them."""

    def __init__(self, session, cell, folder):
        self.session = session
        self.cell = cell
        self.folder = folder
        self.batches = []
        self.flow = None

    def wired(self, writer):
        match self.cell.sink:
            case "foreach_batch":
                return writer.foreach_batch(lambda frame, _: self.batches.append(frame.to_arrow()))
            case "foreach":
                self.folder.mkdir()
                return writer.foreach(noting(str(self.folder)))
            case "flow":
                self.flow = self.session.flow("fed")
                counts = "value BIGINT" if self.cell.mode is OutputMode.APPEND else "count BIGINT"
                key = "key" if self.cell.mode is OutputMode.UPDATE else None
                self.flow.register_source("rows", f"key STRING, {counts}", key=key)
                return writer.flow(self.flow, "rows")
            case "parquet":
                return writer.format("parquet").option("path", self.folder)
            case sink:
                return writer.format(sink)

    def read(self, query):
        match self.cell.sink:
            case "foreach_batch":
                return pairs(pa.concat_tables(self.batches)) if self.batches else []
            case "foreach":
                return sorted(tuple(eval(path.read_text())) for path in self.folder.iterdir())
            case "flow":
                return pairs(self.flow.sql("SELECT * FROM rows"))
            case "parquet":
                return pairs(self.session.read_parquet(self.folder).to_arrow())
            case "memory":
                return pairs(pa.Table.from_batches(query.memory_batches()))
            case _:
                return None  # written where nobody can look

    def close(self):
        if self.flow is not None:
            self.flow.close()


def noting(folder):
    def note(row):
        Path(folder, f"{row[0]} {row[1]}").write_text(repr(tuple(row)))

    return note


def pairs(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.fixture
def target(session, tmp_path):
    made = []

    def make(cell):
        made.append(Target(session, cell, tmp_path / "out"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("cell", working_cells(LOCAL_SINKS))
def test_what_the_table_has_works(asked, target, cell):
    sink = target(cell)
    writer = sink.wired(asked(cell).write_stream().output_mode(cell.mode).trigger(cell.trigger))
    with writer.start() as query:
        assert query.describe().delivery == cell.delivery
        if cell.trigger.kind is TriggerKind.CONTINUOUS:
            wait_until(lambda: (found := sink.read(query)) is None or found, 60.0, "rows")
            assert query.exception is None
            return
        if cell.trigger.ends:
            assert query.await_termination(60)
        else:
            query.process_all_available()
        assert query.exception is None
        assert sink.read(query) in (None, SELECTED if cell.mode is OutputMode.APPEND else COUNTED)
        assert query.recent_progress[0].input_rows == 3


@pytest.mark.parametrize("cell", refused_cells(LOCAL_SINKS))
def test_what_the_table_has_not_is_refused(session, asked, target, cell):
    writer = target(cell).wired(asked(cell).write_stream().output_mode(cell.mode).trigger(cell.trigger))
    with pytest.raises(StreamRefused) as raised:
        writer.start()
    assert (raised.value.message, raised.value.hint) == cell.refusal
    assert session.spark.streams.active == []


def test_the_page_is_what_the_script_writes():
    assert Path(__file__).parents[2].joinpath("docs", "streaming-support.md").read_text() == document()


@pytest.mark.parametrize(
    ("query", "mode", "message"),
    [
        (lambda s: s.groupBy("key").count(), "append", "never final"),
        (lambda s: s, "complete", "does not aggregate"),
        (lambda s: s.groupBy("key").count().groupBy("count").count(), "update", "aggregates an aggregation"),
        (lambda s: s.orderBy("value"), "append", "no end to sort up to"),
        (lambda s: s.selectExpr("row_number() OVER (PARTITION BY key ORDER BY value)"), "append", "OVER a window"),
        (lambda s: s.limit(1), "update", "limit"),
    ],
)
def test_queries_that_a_mode_cannot_have_are_refused(session, rows, query, mode, message):
    writer = query(rows.stream(session)).write_stream().format("memory").output_mode(mode)
    with pytest.raises(StreamRefused, match=message):
        writer.start()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (lambda w: w.format("parquet"), "No folder is given"),
        (lambda w: w.format("delta"), "No delta table is given"),
        (lambda w: w.format("memory").partition_by("key"), "no folders to partition by"),
        (lambda w: w.format("memory").query_name("two words"), "cannot name a table"),
        (
            lambda w: w.format("memory").option("checkpointLocation", "a").option("checkpoint.location", "b"),
            "Two places",
        ),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_refused(session, rows, told, message):
    with pytest.raises(ConfigError, match=message):
        told(rows.stream(session).write_stream()).start()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (lambda w: w.format("memory").restart(), "would lack rows"),
        (lambda w: w.format("memory").keys("key"), "merges nothing"),
        (lambda w: w.format("delta").output_mode("update"), "none is given"),
    ],
)
def test_what_would_lose_or_double_rows_is_refused(session, rows, told, message):
    with pytest.raises(StreamRefused, match=message):
        told(rows.stream(session).write_stream()).start()


def test_updates_of_a_flow_need_a_key(session, rows):
    with session.flow("keyless") as flow:
        flow.register_source("rows", "key STRING, value BIGINT")
        with pytest.raises(ConfigError, match="has no key"):
            rows.stream(session).write_stream().output_mode("update").flow(flow, "rows").start()


def test_sorted_complete_results_and_the_tables_of_joins_are_fine(session, rows):
    session.register("sorted_names", session.sql("SELECT 'a' AS key, 'A' AS name ORDER BY key"))
    counted = rows.stream(session).join(session.table("sorted_names"), "key").groupBy("name").count().orderBy("count")
    writer = counted.write_stream().format("memory").output_mode("complete")
    with writer.start() as query:
        query.process_all_available()
        assert pairs(pa.Table.from_batches(query.memory_batches())) == [("A", 2)]
