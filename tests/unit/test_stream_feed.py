"""Batches of a query into a flow, without Spark: each counts once, whoever brings it again and however much later."""

import contextlib
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from weirflow import IncrementalFlow
from weirflow.errors import StreamConflict
from weirflow.flows.feeds.stream import StreamFeed
from weirflow.ivm.flow.position import Position
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.streaming.savepoints.named import RestoreNote
from weirflow.streaming.sinks.flow import FlowSink

REMEMBERED = 10
TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"


class Batch:
    """What a native frame is asked for. It notes whether its rows were computed, and where they went."""

    def __init__(self, rows):
        self._rows = pa.Table.from_pylist(rows, pa.schema({"customer": pa.string(), "amount": pa.int64()}))
        self.used = []
        self.write = self

    def toArrow(self):  # noqa: N802 - PySpark's name
        self.used.append("here")
        return self._rows

    def format(self, name):
        assert name == "noop"
        return self

    def mode(self, _):
        return self

    def save(self):
        self.used.append("nowhere")


class Frame:
    """Our frame around it, whose rows only tasks read."""

    mapInArrow = None  # noqa: N815 - PySpark's name, by which flows know a frame

    def __init__(self, batch):
        self._batch = batch

    def to_batches(self):
        self._batch.used.append("there")
        return self._batch._rows.to_batches()


class Host:
    """The Session, as far as it matters here."""

    wrap = Frame
    inside = staticmethod(contextlib.nullcontext)

    def run(self, _, call):
        return call()


@pytest.fixture(params=["here", "in shards"])
def flow(request, tmp_path):
    made = IncrementalFlow() if request.param == "here" else PartitionedFlow(str(tmp_path), 2, InThisProcess())
    with made as flow:
        flow.register_source("orders", "customer STRING, amount BIGINT")
        flow.register_view("totals", TOTALS)
        yield flow


def feed(flow, query="q1", *, stream="orders", before=None, source="orders"):
    return StreamFeed(FlowSink(flow=flow, source=source, stream=stream), lambda: query, lambda: before, Host())


def batch(amount, customer="ann"):
    return Batch([{"customer": customer, "amount": amount}])


def restored(query, number):
    return RestoreNote("before", datetime.now(UTC), done=True, query_id=query, batch=number)


def totals(flow):
    return {row["customer"]: row["total"] for row in flow.snapshot("totals").to_pylist()}


@pytest.mark.parametrize("stream", ["orders", None])
def test_rows_are_read_where_the_flow_takes_them_and_once(flow, stream):
    take, first, again = feed(flow, stream=stream), batch(5), batch(5)
    take(first, 0)
    take(again, 0)
    assert first.used == ["there" if flow.takes_frames else "here"]
    assert again.used == ["nowhere"]  # computed, for the state of its operators
    assert (flow.epoch, totals(flow)) == (1, {"ann": 5})
    position = flow.position(stream or "q1")
    assert (position.origin, position.at) == ("q1", "0")


def test_a_batch_that_its_first_run_has_just_ticked_is_computed_all_the_same(flow, monkeypatch):
    take = feed(flow)
    for number in range(2):
        take(batch(1), number)
    late, again = Position("orders", "q1", "0"), batch(1)
    monkeypatch.setattr(flow, "position", lambda _: late)  # asked for while the first run still ticked
    take(again, 1)
    assert again.used[-1] == "nowhere"
    assert totals(flow) == {"ann": 2}


def test_the_last_batch_is_known_after_more_ticks_than_there_are_tokens(flow, monkeypatch):
    for module in ("flow.state", "sharded.coordinator"):
        monkeypatch.setattr(f"weirflow.ivm.{module}._TOKENS", REMEMBERED)
    take = feed(flow, stream=None)
    take(batch(5), 0)
    for number in range(REMEMBERED + 1):
        flow.tick("orders", [{"customer": "bob", "amount": 1}], token=f"other {number}")
    assert flow.epoch_of("other 0") is None  # forgotten
    take(batch(5), 0)
    take(batch(7), 1)
    assert totals(flow) == {"ann": 12, "bob": REMEMBERED + 1}


def test_every_batch_counts_once_though_each_comes_twice(flow):
    take = feed(flow)
    for number in range(REMEMBERED):
        take(batch(1), number)
        take(batch(1), number)
    assert totals(flow) == {"ann": REMEMBERED}


@pytest.mark.parametrize("stream", ["orders", None])
@pytest.mark.parametrize("number", [0, 3, 7])
def test_what_is_neither_the_last_batch_nor_the_next_is_refused(flow, stream, number):
    take = feed(flow, stream=stream)
    for one in range(2):
        take(batch(1), one)
    with pytest.raises(StreamConflict, match=f"brings batch {number}, but the flow expects batch 2"):
        take(batch(1), number)
    assert totals(flow) == {"ann": 2}


def test_a_flow_that_lacks_batches_is_refused(flow):
    with pytest.raises(StreamConflict, match="brings batch 4, but the flow expects batch 0"):
        feed(flow, stream=None)(batch(1), 4)
    assert flow.epoch == 0


def test_another_query_under_a_name_is_refused_and_one_without_a_name_begins_anew(flow):
    feed(flow, "q1")(batch(1), 0)
    with pytest.raises(StreamConflict, match="Another stream"):
        feed(flow, "q2")(batch(1), 0)
    assert totals(flow) == {"ann": 1}
    feed(flow, "q2", stream=None)(batch(1), 0)
    feed(flow, "q3", stream=None)(batch(1), 0)
    assert totals(flow) == {"ann": 3}


@pytest.mark.parametrize("last", [3, 4])
def test_a_query_that_was_begun_by_tokens_goes_on(flow, last):
    for number in range(last + 1):
        flow.tick("orders", [{"customer": "ann", "amount": 1}], token=f"q1/{number}")
    take = feed(flow, stream=None)
    for number in (4, 5):
        take(batch(10), number)
    taken = 5 - last  # of the two
    assert totals(flow) == {"ann": last + 1 + 10 * taken}
    assert flow.position("q1").at == "5"


@pytest.mark.parametrize("stream", ["orders", None])
class TestOneThatBeginsWithASavepoint:
    def test_takes_over_where_the_flow_is(self, flow, stream):
        for number in range(3):
            feed(flow, "q1", stream=stream)(batch(1), number)
        take = feed(flow, "q2", stream=stream, before=restored("q1", 2))
        for number in (3, 3, 4):
            take(batch(10), number)
        assert totals(flow) == {"ann": 23}

    @pytest.mark.parametrize("reached", [1, 3])
    def test_is_refused_by_a_flow_that_has_fewer_or_more(self, flow, stream, reached):
        for number in range(reached + 1):
            feed(flow, "q1", stream=stream)(batch(1), number)
        take = feed(flow, "q2", stream=stream, before=restored("q1", 2))
        with pytest.raises(StreamConflict, match=f"up to {reached} .* of batch 2: rows would be lost or doubled"):
            take(batch(10), 3)
        assert totals(flow) == {"ann": reached + 1}

    def test_brings_a_new_flow_what_follows(self, flow, stream):
        take = feed(flow, "q2", stream=stream, before=restored("q1", 2))
        with pytest.raises(StreamConflict, match="brings batch 4, but the flow expects batch 3"):
            take(batch(10), 4)
        take(batch(10), 3)
        assert totals(flow) == {"ann": 10}


def test_the_query_that_was_saved_cannot_go_on_under_its_name(flow):
    feed(flow, "q1")(batch(1), 0)
    feed(flow, "q2", before=restored("q1", 0))(batch(10), 1)
    with pytest.raises(StreamConflict, match="Another stream"):
        feed(flow, "q1")(batch(100), 1)
    assert totals(flow) == {"ann": 11}


def test_a_source_that_notices_repetitions_has_its_rows_looked_at_here(flow):
    flow.register_source("events", "customer STRING, amount BIGINT", dedup=True)
    take, rows = feed(flow, source="events"), batch(5)
    take(rows, 0)
    take(batch(5), 1)
    assert rows.used == ["here"]
    assert flow.snapshot("events").to_pylist() == [{"customer": "ann", "amount": 5}]


def test_kinds_of_changes_are_weights():
    with IncrementalFlow() as flow:
        flow.register_source("orders", "customer STRING")
        take = StreamFeed(FlowSink(flow=flow, source="orders", changes="op"), lambda: "q1", lambda: None, Host())
        rows = pa.table({"customer": ["ann", "bob", "ann"], "op": ["insert", "insert", "delete"]})
        frame = Batch([])
        frame._rows = rows
        take(frame, 0)
        assert flow.snapshot("orders").to_pylist() == [{"customer": "bob"}]
