"""A flow on a server does what a flow in the process does: the same calls, the same answers, the same errors."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.server import eventually, served

from weirflow import DeltaBatch, IncrementalFlow, Lateness, RemoteSession, Session
from weirflow.errors import (
    ConfigError,
    FlowError,
    HistoryGone,
    UnsupportedError,
    WatchOverflow,
    WeirflowError,
)
from weirflow.ivm.flow.position import Position

if TYPE_CHECKING:
    from weirflow.ivm.flow.flow import Flow
    from weirflow.server.server import Server

ORDERS = "id BIGINT, who STRING NOT NULL, amount BIGINT"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served(flight="127.0.0.1:0", http="off") as server:
        yield server


@pytest.fixture(scope="module")
def session(server) -> Iterator[RemoteSession]:
    with RemoteSession(server.flight_url) as session:
        yield session


@pytest.fixture
def flow(session, request) -> Flow:
    return session.flow(f"flow {abs(hash(request.node.nodeid))}")


def shop(flow: Flow) -> Flow:
    flow.register_source("orders", ORDERS, key="id")
    flow.register_source("bag", "x BIGINT")
    flow.register_view("large", "SELECT id, who, amount FROM orders WHERE amount > 10")
    flow.register_view("totals", "SELECT who, sum(amount) AS total FROM large GROUP BY who")
    return flow


def rows(table: pa.Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def order(number: int, who: str, amount: int) -> dict[str, Any]:
    return {"id": number, "who": who, "amount": amount}


def summary(step) -> tuple:
    return step.epoch, step.rows_in, step.rows_out, dict(step.views), step.late, step.dropped, step.replayed


SCRIPT: list[tuple[str, Callable[[Flow], Any]]] = [
    ("sources", lambda flow: (flow.sources, flow.views, flow.waiting, flow.readable, flow.epoch, flow.partitions)),
    ("the same again", lambda flow: shop(flow).sources),
    ("another of that name", lambda flow: flow.register_source("orders", "id BIGINT")),
    ("bad schema", lambda flow: flow.register_source("other", "id NOTATYPE")),
    ("how declared", lambda flow: flow.source("orders")),
    ("no such source", lambda flow: flow.source("order")),
    ("tick rows", lambda flow: summary(flow.tick("orders", [order(1, "ann", 20), order(2, "bob", 5)], token="t1"))),
    ("the token again", lambda flow: summary(flow.tick("orders", [order(9, "ann", 20)], token="t1"))),
    ("tick a table", lambda flow: summary(flow.tick("bag", pa.table({"x": [1, 1, 2]})))),
    ("tick several", lambda flow: summary(flow.tick({"orders": [order(2, "bob", 11)], "bag": {"x": [7]}}))),
    ("tick nothing", lambda flow: summary(flow.tick({}))),
    ("delete by key", lambda flow: summary(flow.tick("orders", [{"id": 1, "_weight": -1}]))),
    ("retract", lambda flow: summary(flow.tick("bag", DeltaBatch.from_deletes([{"x": 7}])))),
    ("retract what is not there", lambda flow: flow.tick("bag", DeltaBatch.from_deletes([{"x": 99}]))),
    ("nothing is pending then", lambda flow: flow.pending),
    ("a NULL too many", lambda flow: flow.tick("orders", [order(3, None, 1)])),
    ("a wrong type", lambda flow: flow.tick("bag", [{"x": "one"}])),
    ("an unknown column", lambda flow: flow.tick("bag", [{"y": 1}])),
    ("an unknown source", lambda flow: flow.tick("bags", [{"x": 1}])),
    ("a view is no source", lambda flow: flow.tick("totals", [{"x": 1}])),
    ("snapshot", lambda flow: rows(flow.snapshot("totals"))),
    ("its types", lambda flow: flow.snapshot("totals").schema),
    ("snapshot of a source", lambda flow: rows(flow.snapshot("bag"))),
    ("an earlier epoch", lambda flow: rows(flow.snapshot("totals", epoch=1))),
    ("an epoch to come", lambda flow: flow.snapshot("totals", epoch=99)),
    (
        "snapshots",
        lambda flow: {name: rows(one) for name, one in flow.snapshots(["large", "bag", "totals"])[1].items()},
    ),
    ("no such view", lambda flow: flow.snapshot("total")),
    ("stream", lambda flow: rows(flow.stream("large").read_all())),
    ("sql", lambda flow: rows(flow.sql("SELECT count(*) AS n, max(total) AS most FROM totals"))),
    (
        "sql with tables",
        lambda flow: rows(flow.sql("SELECT x, y FROM bag JOIN t USING (x)", tables={"t": [{"x": 1, "y": 2}]})),
    ),
    ("sql that is none", lambda flow: flow.sql("SELECT FROM WHERE")),
    ("schema", lambda flow: flow.schema("totals")),
    ("explain", lambda flow: flow.explain("totals")),
    ("explain a query", lambda flow: flow.explain_query("SELECT x FROM bag")),
    ("explain what cannot be", lambda flow: flow.explain_query("SELECT rand() FROM bag", mode="incremental")),
    ("graph", lambda flow: str(flow.graph())),
    ("epoch of a token", lambda flow: (flow.epoch_of("t1"), flow.epoch_of("t2"))),
    ("feed", lambda flow: summary(flow.feed("bag", [{"x": 5}], position=Position("s", "origin", "1")))),
    ("feed again", lambda flow: summary(flow.feed("bag", [{"x": 5}], position=Position("s", "origin", "1")))),
    ("feed another", lambda flow: flow.feed("bag", [{"x": 5}], position=Position("s", "elsewhere", "1"))),
    ("position", lambda flow: (flow.position("s"), flow.position("none"))),
    ("replace", lambda flow: flow.replace_view("totals", "SELECT who, max(amount) AS total FROM large GROUP BY who")),
    ("replaced", lambda flow: rows(flow.snapshot("totals"))),
    ("refresh", lambda flow: flow.refresh_view("totals")),
    ("drop what is read", lambda flow: flow.drop("large")),
    ("drop", lambda flow: flow.drop("totals")),
    ("dropped", lambda flow: flow.views),
    ("a view that waits", lambda flow: flow.register_view("early", "SELECT z FROM later")),
    ("waiting", lambda flow: list(flow.waiting)),
    ("late rows", lambda flow: flow.register_source("timed", "at TIMESTAMP", lateness=Lateness("at", "1 minute"))),
    ("a late source", lambda flow: flow.source("timed").lateness),
    ("in time", lambda flow: summary(flow.tick("timed", [{"at": datetime(2024, 1, 2, tzinfo=UTC)}]))),
    ("too late", lambda flow: flow.too_late("timed", [{"at": datetime(2024, 1, 1, tzinfo=UTC)}])),
    ("goes late", lambda flow: summary(flow.tick("timed", [{"at": datetime(2024, 1, 1, tzinfo=UTC)}]))),
    (
        "a tick that fails",
        lambda flow: (flow.register_view("odd", "SELECT 1 / (x - 77) AS q FROM bag"), flow.tick("bag", [{"x": 77}])),
    ),
    ("waits", lambda flow: flow.pending),
    ("and holds others up", lambda flow: flow.tick("bag", [{"x": 1}])),
    ("retry", lambda flow: flow.retry()),
    ("discard", lambda flow: flow.discard()),
    ("goes on", lambda flow: summary(flow.tick("bag", [{"x": 8}]))),
    ("retry nothing", lambda flow: flow.retry()),
    ("bad arguments", lambda flow: flow.tick("bag", [{"x": 1}], timeout=-1)),
    ("describe", lambda flow: [(one.name, one.kind, one.rows, one.reads) for one in flow.describe().relations]),
    ("gauges", lambda flow: (flow.gauges().epoch, sorted(flow.gauges().view_bytes))),
    ("snapshot and epoch", lambda flow: flow.watch_output("large", snapshot=True, from_epoch=1)),
    ("watch a source", lambda flow: flow.watch_output("bag")),
    ("watch nothing", lambda flow: flow.watch_output("nothing")),
    ("watch the future", lambda flow: flow.watch_output("large", from_epoch=1000)),
    ("kept in memory", lambda flow: (flow.path, sorted(flow.capabilities))),
]


def outcome(step: Callable[[Flow], Any], flow: Flow) -> Any:
    try:
        return step(flow)
    except WeirflowError as error:
        said = error.message.replace(f"{type(flow).__name__}.", "Flow.")
        return type(error), said, error.hint, getattr(error, "position", None)


def test_the_same_calls_have_the_same_outcomes(server, flow):
    local = shop(server.coordinator.session.flow(f"{flow.name} at home"))
    shop(flow)
    differences = {}
    for name, step in SCRIPT:
        here, there = outcome(step, local), outcome(step, flow)
        if here != there:
            differences[name] = (here, there)
    assert not differences, "\n".join(f"{name}: {here}\n  {there}" for name, (here, there) in differences.items())


def test_most_of_the_script_succeeds():
    """So that the test above does not compare errors with errors only."""
    local = shop(IncrementalFlow("f"))
    failed = [
        name
        for name, step in SCRIPT
        if isinstance(found := outcome(step, local), tuple) and found and isinstance(found[0], type)
    ]
    assert len(failed) <= 24, failed


def test_session_distributed_is_a_client(session, flow):
    address = str(session._connection.address)
    with Session.distributed(address) as other:
        assert isinstance(other, RemoteSession)
        assert flow.name in [one.name for one in other.flows()]
        assert other.describe().address == address


# What comes out


def test_a_watch_has_every_delta(flow):
    shop(flow)
    with flow.watch_output("totals") as watch, flow.watch_output("totals", progress=True) as told:
        flow.tick("orders", [order(1, "ann", 20)])
        flow.tick("orders", [order(2, "ann", 1)])
        flow.tick("orders", [order(2, "ann", 30)])
        found = [watch.get(10) for _ in range(2)]
        assert [epoch for epoch, _ in found] == [1, 3]
        assert found[1][1] == DeltaBatch.from_updates(
            [{"who": "ann", "total": 20}], [{"who": "ann", "total": 50}], schema=flow.schema("totals")
        )
        assert watch.get(0.05) is None
        epochs = [told.get(10)[0]]
        while epochs[-1] != 3:
            epochs.append(told.get(10)[0])
        assert epochs in ([1, 2, 3], [1, 3])


def test_a_watch_begins_with_a_snapshot_or_after_an_epoch(flow):
    shop(flow)
    with flow.watch_output("large", snapshot=True) as watch:
        epoch, first = watch.get(10)
        assert (epoch, len(first), first.schema) == (0, 0, flow.schema("large"))
    for number in range(1, 5):
        flow.tick("orders", [order(number, "ann", 10 * number)])
    with flow.watch_output("large", snapshot=True) as watch:
        epoch, first = watch.get(10)
        assert (epoch, rows(first.inserts())) == (4, [(2, "ann", 20), (3, "ann", 30), (4, "ann", 40)])
    with flow.watch_output("large", from_epoch=2) as watch:
        assert [watch.get(10)[0] for _ in range(2)] == [3, 4]


def test_late_rows_can_be_watched(flow):
    flow.register_source("timed", "at TIMESTAMP", lateness=Lateness("at", "1 minute"))
    with flow.watch_output("timed.late") as watch:
        flow.tick("timed", [{"at": datetime(2024, 1, 2, tzinfo=UTC)}])
        flow.tick("timed", [{"at": datetime(2024, 1, 1, tzinfo=UTC)}])
        epoch, late = watch.get(10)
        assert (epoch, [row["at"].day for row, _ in late]) == (2, [1])


def test_a_watch_in_an_event_loop(flow):
    shop(flow)

    async def read() -> list[int]:
        found = []
        with flow.watch_output("large") as watch:
            for number in (1, 2, 3):
                await asyncio.to_thread(flow.tick, "orders", [order(number, "ann", 50)])
            async for epoch, _ in watch:
                found.append(epoch)
                if len(found) == 3:
                    break
        return found

    assert asyncio.run(read()) == [1, 2, 3]


def test_a_callback_is_called_with_deltas(flow):
    shop(flow)
    found: list[tuple[int, int]] = []

    def note(epoch: int, delta: DeltaBatch) -> None:
        found.append((epoch, len(delta)))
        raise ValueError("what a callback raises is logged")

    flow.on_delta("large", note)
    flow.tick("orders", [order(1, "ann", 50)])
    flow.tick("orders", [order(1, "ann", 60)])
    eventually(lambda: found == [(1, 1), (2, 2)])


def test_a_watch_ends_with_its_view_after_what_was_sent(flow):
    shop(flow)
    watch = flow.watch_output("totals")
    flow.tick("orders", [order(1, "ann", 20)])
    flow.drop("totals")
    assert [epoch for epoch, _ in watch] == [1]
    assert watch.closed


def test_closing_ends_a_reader_that_waits(flow):
    shop(flow)
    watch = flow.watch_output("totals")
    threading.Timer(0.1, watch.close).start()
    assert list(watch) == []
    again = flow.watch_output("totals")
    flow.close()
    assert list(again) == []
    with pytest.raises(FlowError, match="closed here"):
        flow.tick("orders", [order(1, "ann", 20)])


def test_a_watch_that_nobody_has_any_more_is_let_go_on_the_server(session, flow):
    shop(flow)
    watch = flow.watch_output("totals")
    flow.tick("orders", [order(1, "ann", 20)])
    assert "totals" in flow.gauges().waiting
    del watch
    gc.collect()

    def gone() -> bool:
        flow.tick({})
        return "totals" not in flow.gauges().waiting

    eventually(gone)


def test_a_reader_that_falls_behind_is_told_and_harms_no_one(flow):
    shop(flow)
    flow.register_source("wide", "id BIGINT, text STRING")
    flow.register_view("copy", "SELECT id, text FROM wide")
    slow = flow.watch_output("copy", capacity=2)
    quick = flow.watch_output("copy", capacity=100_000)
    text = "x" * 150_000
    for number in range(150):  # more than the buffers of sockets hold
        flow.tick("wide", [{"id": number, "text": text}])
    assert [quick.get(30)[0] for _ in range(150)] == list(range(1, 151))
    seen: list[int] = []
    with pytest.raises(WatchOverflow) as behind:
        seen.extend(epoch for epoch, _ in slow)
    assert seen == list(range(1, seen[-1] + 1))
    assert behind.value.epoch == seen[-1]
    with flow.watch_output("copy", from_epoch=seen[-1], capacity=1000) as again:
        assert again.get(30)[0] == seen[-1] + 1


def test_history_that_is_gone_is_said(session):
    flow = session.flow("short", history=1)
    flow.register_source("bag", "x BIGINT")
    flow.register_view("all", "SELECT x FROM bag")
    for number in range(3):
        flow.tick("bag", [{"x": number}])
    with pytest.raises(HistoryGone) as gone:
        flow.watch_output("all", from_epoch=0)
    assert gone.value.oldest == 2


# Ticks


def test_a_large_tick_is_sent_as_a_stream(flow):
    flow.register_source("wide", "id BIGINT, text STRING", key="id")
    flow.register_view("n", "SELECT count(*) AS n, sum(length(text)) AS letters FROM wide")
    table = pa.table({"id": range(200_000), "text": ["0123456789"] * 200_000})
    done = flow.load("wide", table, token="big")
    assert (done.epoch, done.rows_in) == (1, 200_000)
    assert flow.load("wide", table, token="big").replayed
    assert flow.snapshot("n").to_pylist() == [{"n": 200_000, "letters": 2_000_000}]


def test_a_source_that_was_declared_anew_is_noticed(session, flow):
    flow.register_source("bag", "x BIGINT")
    flow.tick("bag", [{"x": 1}])
    with RemoteSession(str(session._connection.address)) as other:
        there = other.flow(flow.name)
        there.drop("bag")
        there.register_source("bag", "x STRING")
    assert flow.tick("bag", DeltaBatch.from_inserts([{"x": "one"}])).epoch == 2


def test_a_tick_has_its_time(flow):
    shop(flow)
    assert flow.tick("orders", [order(1, "ann", 20)], timeout=30).epoch == 1


def test_many_threads_tick_at_once(flow):
    shop(flow)
    with flow.watch_output("large") as watch:
        threads = [
            threading.Thread(
                target=lambda n=n: [flow.tick("orders", [order(100 * n + i, "ann", 50)]) for i in range(10)]
            )
            for n in range(8)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert [watch.get(10)[0] for _ in range(80)] == list(range(1, 81))
    assert len(flow.snapshot("large")) == 80


# What cannot be done from here


@pytest.mark.parametrize(
    "call",
    [
        lambda flow: flow.exclusive(),
        lambda flow: flow.sink("large", "/tmp/nowhere"),
        lambda flow: flow.sink("large", print),
        lambda flow: flow.sink("large", table="t"),
        lambda flow: flow.watch_output("large", policy="block"),
    ],
)
def test_what_must_be_done_where_the_flow_runs_is_refused_with_one_sentence(flow, call):
    with pytest.raises(UnsupportedError, match="The flow runs on a server, and ") as refused:
        call(shop(flow))
    assert refused.value.hint


def test_a_frame_is_no_view_of_a_flow_elsewhere(flow):
    with pytest.raises(ConfigError, match="is one query in SQL"):
        flow.register_view("v", object())


def test_a_flow_that_is_closed_here_goes_on_there(session, flow):
    shop(flow)
    flow.close()
    again = session.flow(flow.name)
    assert again is not flow
    assert again.tick("orders", [order(1, "ann", 20)]).epoch == 1


def test_subscribe(session, flow):
    shop(flow)
    flow.tick("orders", [order(1, "ann", 20)])
    with session.sql(f"SUBSCRIBE TO `{flow.name}`.large WITH (UPSERT = (id))") as changes:
        assert changes.get(10).to_pylist() == [{**order(1, "ann", 20), "_epoch": 1, "_weight": 1}]
        flow.tick("orders", [order(1, "ann", 30)])
        assert changes.get(10).to_pylist() == [{**order(1, "ann", 30), "_epoch": 2, "_weight": 1}]
    with session.subscribe(f"SUBSCRIBE TO `{flow.name}`.large AS OF 1 WITH (SNAPSHOT = false)") as changes:
        assert [row["_weight"] for row in sorted(changes.get(10).to_pylist(), key=lambda row: row["_weight"])] == [
            -1,
            1,
        ]
    with pytest.raises(ConfigError, match="does not begin with SUBSCRIBE"):
        session.subscribe("SELECT 1")


def test_checkpoints_are_the_server_s(session, flow, tmp_path):
    shop(flow)
    flow.tick("orders", [order(1, "ann", 20)])
    name = flow.checkpoint(tmp_path / "saved")
    other = session.flow(f"{flow.name} restored")
    other.restore(tmp_path / "saved")
    assert name
    assert rows(other.snapshot("totals")) == [("ann", 20)]
    assert flow.plan(other).kept == ("large", "totals")
