import asyncio
import threading
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

from weirflow import DeltaBatch
from weirflow.errors import (
    ConfigError,
    DataError,
    EngineMissing,
    FlowError,
    HistoryGone,
    NotIncremental,
    SqlSyntaxError,
    TickPending,
    WatchOverflow,
)
from weirflow.ivm.flow import IncrementalFlow, Lateness, OverflowPolicy

ORDERS = "customer STRING, amount BIGINT"
TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"
TOP = "SELECT * FROM totals ORDER BY total DESC LIMIT 1"


@pytest.fixture
def flow():
    flow = IncrementalFlow()
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    return flow


def order(customer, amount):
    return [{"customer": customer, "amount": amount}]


def rows(flow, name, **options):
    return sorted(tuple(row.values()) for row in flow.snapshot(name, **options).to_pylist())


# Definitions


def test_views_may_be_registered_before_what_they_read():
    flow = IncrementalFlow()
    flow.register_view("top", TOP)
    flow.register_view("totals", TOTALS)
    flow.register_source("orders", ORDERS)
    flow.tick("orders", order("ann", 5))
    assert rows(flow, "top") == [("ann", 5)]


def test_a_view_registered_after_data_is_filled_at_once(flow):
    flow.tick("orders", order("ann", 5))
    flow.register_view("top", TOP)
    assert rows(flow, "top") == [("ann", 5)]


def test_registering_the_same_again_does_nothing(flow):
    flow.tick("orders", order("ann", 5))
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    assert rows(flow, "totals") == [("ann", 5)]


@pytest.mark.parametrize("name", ["orders", "totals", "TOTALS"])
def test_a_name_is_taken_once(flow, name):
    with pytest.raises(ConfigError, match="already has a source or view"):
        flow.register_view(name, "SELECT 1 AS x")


def test_a_circle_of_views_is_named():
    flow = IncrementalFlow()
    flow.register_view("a", "SELECT * FROM b")
    with pytest.raises(ConfigError, match=r"a reads b reads a|b reads a reads b"):
        flow.register_view("b", "SELECT * FROM a")


def test_a_view_of_something_unknown_waits_while_others_tick(flow):
    flow.register_view("top", "SELECT * FROM totls")
    flow.tick("orders", order("ann", 5))
    assert flow.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 5}]
    assert {one.name: one.kind for one in flow.describe().relations}["top"] == "waiting"
    assert "totls" in flow.waiting["top"]
    with pytest.raises(FlowError, match="totls"):
        flow.snapshot("top")
    flow.register_source("totls", "id BIGINT")
    assert flow.snapshot("top").num_rows == 0
    assert flow.waiting == {}


def test_a_waiting_view_that_turns_out_wrong_does_not_keep_what_it_reads_from_being_declared(flow):
    flow.register_view("wrong", "SELECT nothing FROM later")
    flow.register_source("later", "id BIGINT")
    flow.tick("later", [{"id": 1}])
    assert "nothing" in flow.waiting["wrong"]
    flow.drop("wrong")
    assert flow.views == ("totals",)


def test_a_view_that_cannot_be_filled_leaves_the_flow_as_it_was(flow):
    flow.register_view("share", "SELECT 10 / part AS share FROM VALUES (0) AS parts (part)")
    for attempt in (lambda: flow.snapshot("totals"), lambda: flow.tick("orders", order("ann", 5))):
        with pytest.raises(DataError, match="zero"):
            attempt()
        assert (flow.sources, flow.views, flow.epoch) == (("orders",), ("totals", "share"), 0)
    flow.drop("share")
    flow.tick("orders", order("ann", 5))
    assert flow.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 5}]


def test_bad_sql_is_refused_when_it_is_registered(flow):
    with pytest.raises(SqlSyntaxError):
        flow.register_view("bad", "SELEC 1")
    assert flow.views == ("totals",)


def test_sql_that_is_not_incremental_is_refused_with_a_reason(flow):
    with pytest.raises(NotIncremental) as refused:
        flow.register_view("random", "SELECT rand() AS r FROM orders")
    assert refused.value.reason == "EXPRESSION_NOT_DETERMINISTIC"


def test_a_diff_based_view_needs_a_session(flow):
    with pytest.raises(EngineMissing, match="no Session"):
        flow.register_view("slow", TOTALS, mode="diff")


def test_the_decorator_registers_a_view(flow):
    @flow.view
    def big():
        return "SELECT * FROM totals WHERE total > 10"

    flow.tick("orders", order("ann", 50))
    assert rows(flow, "big") == [("ann", 50)]


def test_drop_removes_a_view_and_its_state(flow):
    flow.register_view("top", TOP)
    flow.tick("orders", order("ann", 5))
    with pytest.raises(ConfigError, match="top reads it"):
        flow.drop("totals")
    flow.drop("top")
    flow.drop("totals")
    assert flow.views == ()
    flow.register_view("totals", "SELECT COUNT(*) AS n FROM orders")
    flow.tick("orders", order("bob", 7))
    assert rows(flow, "totals") == [(2,)]


def test_a_view_that_cannot_be_filled_is_not_there(flow):
    flow.tick("orders", order("ann", 0))
    with pytest.raises(DataError):
        flow.register_view("ratio", "SELECT 1 / amount AS r FROM orders")
    assert flow.views == ("totals",)
    flow.tick("orders", order("ann", 1))
    assert rows(flow, "totals") == [("ann", 1)]


# Ticks


def test_a_tick_says_what_it_did(flow):
    summary = flow.tick("orders", order("ann", 5) + order("bob", 7))
    assert (summary.epoch, summary.rows_in, summary.rows_out, summary.views) == (1, 2, 2, {"totals": 2})


def test_several_sources_change_in_one_tick(flow):
    flow.register_source("names", "customer STRING, name STRING")
    flow.register_view("named", "SELECT name, total FROM totals JOIN names USING (customer)")
    watch = flow.watch_output("named")
    flow.tick({"orders": order("a", 5), "names": [{"customer": "a", "name": "Ann"}]})
    assert rows(flow, "named") == [("Ann", 5)]
    assert watch.get(0)[0] == 1


def test_a_token_makes_a_replayed_tick_do_nothing(flow):
    first = flow.tick("orders", order("ann", 5), token="batch 1")
    again = flow.tick("orders", order("ann", 5), token="batch 1")
    assert (again.replayed, again.epoch) == (True, first.epoch)
    assert rows(flow, "totals") == [("ann", 5)]


def test_a_failed_tick_changes_nothing_and_waits(flow):
    flow.register_view("ratio", "SELECT 100 DIV amount AS r FROM orders")
    flow.tick("orders", order("ann", 5))
    with pytest.raises(DataError):
        flow.tick("orders", order("bob", 0))
    assert flow.pending
    assert rows(flow, "totals") == [("ann", 5)]
    with pytest.raises(TickPending):
        flow.tick("orders", order("bob", 1))
    with pytest.raises(DataError):
        flow.retry()
    flow.drop("ratio")
    assert flow.retry().epoch == 2
    assert rows(flow, "totals") == [("ann", 5), ("bob", 0)]


def test_a_discarded_tick_never_happened(flow):
    flow.register_view("ratio", "SELECT 100 DIV amount AS r FROM orders")
    with pytest.raises(DataError):
        flow.tick("orders", order("bob", 0), token="t")
    flow.discard()
    flow.tick("orders", order("bob", 1), token="t")
    assert rows(flow, "totals") == [("bob", 1)]


def test_retracting_what_is_not_there_is_an_error(flow):
    with pytest.raises(DataError, match="holds 0 times"):
        flow.tick("orders", DeltaBatch.from_deletes(order("ann", 5)))
    assert not flow.pending


@pytest.mark.parametrize(
    ("delta", "message"),
    [
        (pa.table({"customer": ["ann"]}), "amount"),
        ([{"customer": "ann", "amount": "five"}], "amount"),
        ([{"customer": "ann", "amount": 5, "extra": 1}], "extra"),
        (7, "holds no rows"),
    ],
)
def test_a_delta_that_does_not_fit_names_what_is_wrong(flow, delta, message):
    with pytest.raises(ConfigError, match=message):
        flow.tick("orders", delta)
    assert not flow.pending


def test_an_unknown_source_is_named(flow):
    with pytest.raises(ConfigError, match="'order' is not registered") as error:
        flow.tick("order", [])
    assert "orders" in error.value.hint


# Keys, repetitions, lateness


def test_rows_of_a_keyed_source_are_upserts_and_deletes_by_key():
    flow = IncrementalFlow()
    flow.register_source("people", "id BIGINT, name STRING", key="id")
    flow.register_view("all", "SELECT * FROM people")
    flow.tick("people", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 1, "name": "c"}])
    assert rows(flow, "all") == [(1, "c"), (2, "b")]
    flow.tick("people", DeltaBatch.from_changes([{"id": 1, "name": None, "op": "delete"}]))
    assert rows(flow, "all") == [(2, "b")]
    assert flow.tick("people", [{"id": 2, "name": "b"}]).rows_out == 0


def test_a_key_is_not_null():
    flow = IncrementalFlow()
    flow.register_source("people", "id BIGINT, name STRING", key="id")
    with pytest.raises(DataError, match="NULL in its key"):
        flow.tick("people", [{"id": None, "name": "a"}])


def test_a_repeated_delta_is_dropped_and_counted():
    flow = IncrementalFlow()
    flow.register_source("orders", ORDERS, dedup=True)
    flow.register_view("totals", TOTALS)
    assert [flow.tick("orders", order("ann", 5)).dropped for _ in range(3)] == [0, 1, 1]
    assert flow.tick("orders", order("ann", 6)).dropped == 0
    assert flow.tick("orders", order("ann", 5)).dropped == 0
    assert rows(flow, "totals") == [("ann", 16)]


def test_late_rows_go_to_the_side_output():
    flow = IncrementalFlow()
    flow.register_source("events", "at TIMESTAMP_NTZ, v BIGINT", lateness=Lateness("at", "10 minutes"))
    flow.register_view("n", "SELECT COUNT(*) AS n FROM events")
    late = flow.watch_output("events.late")
    flow.tick("events", [event(30)])
    summary = flow.tick("events", [event(19), event(20), event(45)])
    assert summary.late == 1
    assert rows(flow, "n") == [(3,)]
    assert late.get(0)[1].inserts().to_pylist() == [event(19)]


def event(minute):
    return {"at": pa.scalar(minute * 60_000_000, pa.timestamp("us")).as_py(), "v": minute}


# Reading


def test_a_snapshot_of_an_earlier_epoch(flow):
    flow.tick("orders", order("ann", 5))
    flow.tick("orders", order("ann", 7))
    assert rows(flow, "totals", epoch=1) == [("ann", 5)]
    assert rows(flow, "totals", epoch=0) == []
    assert rows(flow, "orders", epoch=1) == [("ann", 5)]
    with pytest.raises(ConfigError, match="yet to come"):
        flow.snapshot("totals", epoch=3)


def test_history_ends_somewhere():
    flow = IncrementalFlow(history=2)
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    for amount in range(5):
        flow.tick("orders", order("ann", amount))
    with pytest.raises(HistoryGone) as gone:
        flow.watch_output("totals", from_epoch=1)
    assert gone.value.oldest == 3
    assert [epoch for epoch, _ in iter_now(flow.watch_output("totals", from_epoch=3))] == [4, 5]


def iter_now(watch):
    while (item := watch.get(0)) is not None:
        yield item


def test_ad_hoc_sql_over_sources_and_views(flow):
    flow.tick("orders", order("ann", 5) + order("bob", 7))
    found = flow.sql(
        "SELECT COUNT(*) AS n, SUM(total) AS s FROM totals WHERE customer IN (SELECT customer FROM orders)"
    )
    assert found.to_pylist() == [{"n": 2, "s": 12}]


def test_rows_of_an_unmaterialized_view_are_not_kept(flow):
    flow.register_view("loose", "SELECT customer FROM orders", materialized=False)
    watch = flow.watch_output("loose")
    flow.tick("orders", order("ann", 5))
    assert len(watch.get(0)[1]) == 1
    with pytest.raises(ConfigError, match="not kept"):
        flow.snapshot("loose")


def test_explain_shows_operators_and_state(flow):
    flow.tick("orders", order("ann", 5))
    text = flow.explain("totals")
    assert text.startswith("totals: incremental\n")
    assert "aggregate, 1 rows in" in text
    assert "source orders" in text


# Watches


def test_a_watch_gets_every_delta_in_order(flow):
    watch = flow.watch_output("totals")
    for amount in (5, 7):
        flow.tick("orders", order("ann", amount))
    items = list(iter_now(watch))
    assert [epoch for epoch, _ in items] == [1, 2]
    assert items[1][1] == DeltaBatch.from_updates([{"customer": "ann", "total": 5}], [{"customer": "ann", "total": 12}])


def test_a_watch_may_begin_with_a_snapshot(flow):
    flow.tick("orders", order("ann", 5))
    watch = flow.watch_output("totals", snapshot=True)
    assert watch.get(0)[1].inserts().to_pylist() == [{"customer": "ann", "total": 5}]


def test_a_reader_that_falls_behind_is_told_where(flow):
    watch = flow.watch_output("totals", capacity=2)
    for amount in range(1, 5):
        flow.tick("orders", order("ann", amount))
    assert [watch.get(0)[0], watch.get(0)[0]] == [1, 2]
    with pytest.raises(WatchOverflow) as overflow:
        watch.get(0)
    assert overflow.value.epoch == 2
    assert [epoch for epoch, _ in iter_now(flow.watch_output("totals", from_epoch=2))] == [3, 4]


def test_a_blocking_watch_holds_the_ticks_back(flow):
    watch = flow.watch_output("totals", capacity=1, policy=OverflowPolicy.BLOCK)
    ticks = threading.Thread(target=lambda: [flow.tick("orders", order("ann", amount)) for amount in range(1, 6)])
    ticks.start()
    assert [next(watch)[0] for _ in range(5)] == [1, 2, 3, 4, 5]
    ticks.join(10)
    assert not ticks.is_alive()


def test_a_watch_is_read_with_async_for(flow):
    async def read():
        found = []
        watch = flow.watch_output("totals")
        ticking = asyncio.to_thread(lambda: [flow.tick("orders", order("ann", amount)) for amount in (1, 2, 3)])
        task = asyncio.ensure_future(ticking)
        async for epoch, _ in watch:
            found.append(epoch)
            if epoch == 3:
                watch.close()
        await task
        return found

    assert asyncio.run(asyncio.wait_for(read(), 20)) == [1, 2, 3]


def test_closing_a_watch_ends_its_reader(flow):
    watch = flow.watch_output("totals")
    read = []
    reader = threading.Thread(target=lambda: read.extend(watch))
    reader.start()
    watch.close()
    reader.join(10)
    assert not reader.is_alive()
    assert read == []


def test_a_callback_that_raises_does_not_harm_the_tick(flow, caplog):
    seen = []
    flow.on_delta("totals", lambda epoch, delta: seen.append((epoch, len(delta))))
    flow.on_delta("totals", lambda *_: 1 / 0)
    flow.tick("orders", order("ann", 5))
    assert seen == [(1, 1)]
    assert "callback" in caplog.text


def test_a_closed_flow_says_so(flow):
    flow.close()
    with pytest.raises(FlowError, match="closed"):
        flow.tick("orders", order("ann", 5))


# Looking at it


def test_describe_says_where_it_runs_and_what_it_holds(flow):
    flow.register_view("top", TOP)
    flow.register_view("lost", "SELECT * FROM nowhere")
    flow.drop("lost")
    flow.tick("orders", order("ann", 5) + order("ann", 5) + order("bob", 7))
    lines = str(flow.describe()).splitlines()
    assert lines[:3] == ["flow       flow, epoch 1", "runs       in this process", "kept       in memory"]
    assert lines[4:] == [
        "source       orders: 3 rows",
        "incremental  totals: 2 rows, reads orders",
        "incremental  top: 1 rows, reads totals",
    ]


def test_the_graph_as_mermaid_and_svg(flow):
    flow.register_view("top", TOP)
    flow.tick("orders", order("ann", 5))
    assert flow.graph().mermaid.splitlines() == [
        "flowchart LR",
        '    orders[("orders<br/>source, 1 rows")]',
        '    totals["totals<br/>incremental, 1 rows"]',
        '    top["top<br/>incremental, 1 rows"]',
        "    orders --> totals",
        "    totals --> top",
    ]
    drawn = ET.fromstring(flow.graph().svg)
    assert len(drawn.findall("{http://www.w3.org/2000/svg}rect")) == 3
    assert len(drawn.findall("{http://www.w3.org/2000/svg}path")) == 2


def test_ad_hoc_sql_does_not_mind_what_views_are_called(flow):
    flow.register_view("result", "SELECT COUNT(*) AS n FROM orders")
    flow.tick("orders", order("ann", 5))
    assert flow.sql("SELECT n + 1 AS m FROM result").to_pylist() == [{"m": 2}]


def test_a_source_that_a_failed_tick_waits_for_is_not_dropped():
    flow = IncrementalFlow()
    flow.register_source("orders", ORDERS)
    flow.register_view("ratio", "SELECT 100 DIV amount AS r FROM orders")
    with pytest.raises(DataError):
        flow.tick("orders", order("bob", 0))
    flow.drop("ratio")
    with pytest.raises(TickPending, match="orders"):
        flow.drop("orders")
    assert flow.retry().epoch == 1


def test_a_reader_of_batches_is_read_once(flow):
    rows = pa.table({"customer": ["ann", "bob"], "amount": pa.array([5, 7], pa.int64())})
    assert flow.tick("orders", rows.to_reader()).rows_in == 2
    assert sorted(flow.snapshot("orders").to_pylist(), key=str) == rows.to_pylist()
