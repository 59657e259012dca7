"""What a flow in shards does beside its ticks: it refuses early, counts what it drops and waits for its readers."""

import re
import threading

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from support.flow_engine import FlowEngine

from weirflow.errors import ColumnNotFound, ConfigError, DataError, EngineMissing, FlowError, HistoryGone, TableNotFound
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset import DeltaBatch

ORDERS = "id BIGINT, customer STRING, amount BIGINT"
TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def flow(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(), registry=CollectorRegistry()) as flow:
        yield flow


@pytest.fixture
def shop(flow):
    flow.register_source("orders", ORDERS)
    return flow


def order(number, customer="ann", amount=1):
    return {"id": number, "customer": customer, "amount": amount}


def test_bad_sql_is_refused_when_it_is_registered(flow):
    flow.register_source("orders", ORDERS)
    with pytest.raises(ColumnNotFound, match="amuont"):
        flow.register_view("totals", "SELECT SUM(amuont) FROM orders")
    assert flow.views == ()
    flow.register_view("totals", TOTALS)
    assert flow.tick("orders", [order(1)]).views == {"totals": 1}


@pytest.mark.parametrize("here", [True, False])
def test_a_choice_that_there_is_not_is_named(flow, here):
    one = IncrementalFlow() if here else flow
    one.register_source("orders", ORDERS)
    with pytest.raises(ConfigError, match="No mode of a view is called 'dif'") as caught:
        one.register_view("totals", TOTALS, mode="dif")
    assert "'diff'" in caught.value.hint
    one.register_view("totals", TOTALS)
    with pytest.raises(ConfigError, match="No policy for full watches is called 'wait'"):
        one.watch_output("totals", policy="wait")


def test_a_source_without_rows_can_be_dropped(flow):
    flow.register_source("orders", ORDERS)
    flow.drop("orders")
    assert flow.sources == ()
    flow.register_source("orders", "id BIGINT")
    flow.register_view("ids", "SELECT id FROM orders")
    with pytest.raises(ConfigError, match="ids reads it"):
        flow.drop("orders")
    flow.drop("ids")
    flow.drop("orders")
    assert (flow.sources, flow.views) == ((), ())


def test_what_is_dropped_ends_its_watches(flow):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    watch = flow.watch_output("totals")
    flow.tick("orders", [order(1)])
    flow.drop("totals")
    assert list(watch) == []


def test_a_token_is_of_bounded_length(flow):
    flow.register_source("orders", ORDERS)
    with pytest.raises(ConfigError, match="token"):
        flow.tick("orders", [order(1)], token="x" * 10_000)
    assert flow.epoch == 0


def test_repeated_deltas_are_counted(flow):
    flow.register_source("orders", ORDERS, dedup=True)
    flow.register_view("totals", TOTALS)
    assert flow.tick("orders", [order(1), order(2)]).dropped == 0
    again = flow.tick("orders", [order(1), order(2)])
    assert (again.dropped, again.rows_out) == (2, 0)
    assert flow.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 2}]
    assert "weirflow_rows_dropped_total 2.0" in flow.metrics().replace(f'{{flow="{flow.name}"}}', "")


def test_a_retraction_of_a_missing_row_leaves_a_flow_as_in_one_process(flow):
    alone = IncrementalFlow()
    for one in (flow, alone):
        one.register_source("orders", ORDERS)
        one.register_view("totals", TOTALS)
        one.tick("orders", [order(1)], token="first")
        with pytest.raises(DataError, match="retracts a row 1 times that the source 'orders' holds 0 times"):
            one.tick("orders", DeltaBatch.from_deletes([order(9)], schema=one.schema("orders")), token="bad")
        assert (one.pending, one.epoch, one.epoch_of("bad")) == (False, 1, None)
        with pytest.raises(FlowError, match="No tick is pending"):
            one.retry()
        one.discard()
        assert one.tick("orders", [order(2)], token="bad").epoch == 2
    assert flow.snapshot("totals").to_pylist() == alone.snapshot("totals").to_pylist()


def test_deltas_that_dedup_forgot_are_counted(flow):
    flow.register_source("orders", ORDERS, dedup=2)
    assert [flow.tick("orders", [order(n)]).dropped for n in (1, 2, 1, 3, 1, 1)] == [0, 0, 1, 0, 0, 1]
    assert "weirflow_dedup_evicted_total 2.0" in flow.metrics().replace(f'{{flow="{flow.name}"}}', "")


def test_content_is_remembered_as_long_as_commits_can_hold_it(flow):
    flow.register_source("orders", ORDERS, dedup="content")
    assert flow.source("orders").dedup == 10_000


def test_a_tick_waits_for_a_reader_that_asked_for_it(flow):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    watch = flow.watch_output("totals", capacity=1, policy="block")
    flow.tick("orders", [order(1)])
    second = threading.Thread(target=flow.tick, args=("orders", [order(2)]))
    second.start()
    second.join(0.3)
    assert (second.is_alive(), flow.epoch) == (True, 1)
    assert watch.get(timeout=0)[0] == 1
    second.join(10)
    assert (second.is_alive(), watch.get(timeout=0)[0]) == (False, 2)


def test_a_view_can_be_read_as_it_was(flow):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    for number in (1, 2, 3):
        flow.tick("orders", [order(number, f"c{number % 2}")])
    assert sorted(flow.snapshot("totals", epoch=2).to_pydict()["total"]) == [1, 1]
    assert flow.snapshot("totals", epoch=1).to_pylist() == [{"customer": "c1", "total": 1}]
    assert flow.snapshot("totals", epoch=0).num_rows == 0
    with pytest.raises(ConfigError, match="yet to come"):
        flow.snapshot("totals", epoch=4)
    with pytest.raises(ConfigError, match="is a source"):
        flow.snapshot("orders", epoch=1)


def test_the_flow_is_shown_as_a_graph(flow):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    text = flow.graph().mermaid
    assert "orders" in text
    assert "totals" in text


@pytest.mark.parametrize("engine", [None, FlowEngine()])
def test_a_view_is_replaced_with_what_reads_it(tmp_path, engine):
    """The same as in one piece, delta by delta; with an engine, half of the views are recomputed."""
    central = IncrementalFlow()
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(engine)) as flow:
        for one in (central, flow):
            one.register_source("orders", ORDERS)
            one.register_view("totals", TOTALS)
            one.register_view("big", "SELECT customer, total FROM totals WHERE total > 2")
            one.register_view("count", "SELECT COUNT(*) AS n FROM orders")
            one.tick("orders", [order(number, f"c{number % 3}", number) for number in range(8)])
        if engine is not None:
            flow.force_diff_based("big")
            flow.force_diff_based("count")
        watches = [{name: one.watch_output(name) for name in one.views} for one in (central, flow)]
        doubled = TOTALS.replace("SUM(amount)", "2 * SUM(amount)")
        plans = [one.replace_view("totals", doubled) for one in (central, flow)]
        assert (plans[1].kept, plans[1].rebuilt) == (plans[0].kept, plans[0].rebuilt) == (("count",), ("totals", "big"))
        for one in (central, flow):
            one.tick("orders", [order(9, "c9", 9)])
        assert flow.epoch == central.epoch == 3
        for name in central.views:
            told = [[(epoch, delta.checksum()) for epoch, delta in drained(one[name])] for one in watches]
            assert told[0] == told[1], name
        assert flow.replace_view("totals", doubled).rebuilt == ()
        with pytest.raises(ConfigError, match="is a source"):
            flow.replace_view("orders", "SELECT 1 AS n")
        with pytest.raises(ConfigError, match="circle"):
            flow.replace_view("totals", "SELECT customer, total FROM big")
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(engine)) as again:
        for epoch, delta in drained(again.watch_output("big", from_epoch=1)):
            assert delta.num_rows > 0, epoch
        assert again.snapshot("big").num_rows == central.snapshot("big").num_rows


def test_watches_of_a_view_with_other_columns_end(flow, tmp_path):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    flow.tick("orders", [order(1)])
    watch = flow.watch_output("totals")
    flow.replace_view("totals", "SELECT customer FROM orders")
    assert (list(watch), flow.epoch) == ([], 2)
    with pytest.raises(HistoryGone):
        flow.watch_output("totals", from_epoch=1)
    flow.close()
    with PartitionedFlow(str(tmp_path), 2, InThisProcess()) as again:
        with pytest.raises(HistoryGone):
            again.watch_output("totals", from_epoch=1)
        assert again.snapshot("totals").to_pylist() == [{"customer": "ann"}]


def test_a_view_with_a_sink_is_not_replaced_under_it(flow, tmp_path):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    flow.register_view("big", "SELECT customer, total FROM totals WHERE total > 2")
    with flow.sink("big", tmp_path / "out"), pytest.raises(FlowError, match="'big' has a sink"):
        flow.replace_view("totals", TOTALS.replace("SUM", "MAX"))
    assert flow.replace_view("totals", TOTALS.replace("SUM", "MAX")).rebuilt == ("totals", "big")


def test_a_refresh_finds_what_is_different(recomputing):
    flow = recomputing
    flow.register_view("totals", TOTALS, mode="diff")
    flow.register_view("gone", "SELECT customer FROM totals", materialized=False)
    flow.tick("orders", [order(1)])
    watch = flow.watch_output("totals")
    assert flow.refresh_view("totals").rebuilt == ("totals", "gone")
    assert (watch.get(timeout=0), flow.epoch) == (None, 2)
    flow._backend._executor._engine = Off()
    flow.refresh_view("totals")
    epoch, delta = watch.get(timeout=0)
    assert (epoch, delta.inserts().to_pylist()) == (3, [{"customer": "ann", "total": 1000}])
    with pytest.raises(ConfigError, match="not kept"):
        flow.refresh_view("gone")


def drained(watch):
    found = []
    while (one := watch.get(timeout=0)) is not None:
        found.append(one)
    return found


@pytest.fixture
def recomputing(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(FlowEngine())) as flow:
        flow.register_source("orders", ORDERS)
        yield flow


def test_views_are_not_recomputed_where_nothing_can(flow):
    flow.register_source("orders", ORDERS)
    with pytest.raises(EngineMissing):
        flow.register_view("totals", TOTALS, mode="diff")
    flow.register_view("totals", TOTALS)
    with pytest.raises(EngineMissing):
        flow.force_diff_based()
    assert flow.tick("orders", [order(1)]).views == {"totals": 1}


def test_only_views_are_forced(recomputing):
    with pytest.raises(ConfigError, match="is a source"):
        recomputing.force_diff_based("orders")
    with pytest.raises(TableNotFound, match="ordrs"):
        recomputing.force_diff_based("ordrs")


def test_a_view_can_be_forced_at_any_time_and_stays_so(recomputing, tmp_path):
    flow = recomputing
    flow.register_view("totals", TOTALS)
    flow.register_view("big", "SELECT customer FROM totals WHERE total > 2")
    flow.tick("orders", [order(1), order(2, "bob", 5)])
    watch = flow.watch_output("big")
    flow.force_diff_based("totals")
    flow.force_diff_based("totals")
    assert (flow.epoch, watch.get(timeout=0)) == (1, None)
    assert [(one.name, one.kind) for one in flow.describe().relations[1:]] == [
        ("totals", "diff"),
        ("big", "incremental"),
    ]
    assert re.search("recomputed and compared, .* -> totals", flow.explain())
    flow.tick("orders", [order(3, "ann", 5)])
    assert watch.get(timeout=0)[1].inserts().to_pylist() == [{"customer": "ann"}]
    flow.close()
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(FlowEngine())) as again:
        again.rescale(3)
        again.tick("orders", [order(4, "cleo", 7)])
        assert [one.kind for one in again.describe().relations] == ["source", "diff", "incremental"]
        assert again.snapshot("big").num_rows == 3


def test_later_views_are_recomputed_if_all_are(recomputing):
    recomputing.force_diff_based()
    recomputing.register_view("totals", TOTALS)
    recomputing.tick("orders", [order(1)])
    recomputing.register_view("count", "SELECT COUNT(*) AS n FROM totals")
    assert [one.kind for one in recomputing.describe().relations] == ["source", "diff", "diff"]
    assert recomputing.snapshot("count").to_pylist() == [{"n": 1}]
    recomputing.drop("count")
    recomputing.tick("orders", [order(2, "bob")])
    assert recomputing.snapshot("totals").num_rows == 2


def test_a_view_whose_rows_are_not_kept_can_be_forced_but_not_read(recomputing):
    recomputing.register_view("totals", TOTALS, materialized=False)
    recomputing.register_view("big", "SELECT customer FROM totals WHERE total > 2")
    recomputing.tick("orders", [order(1, "ann", 7)])
    with pytest.raises(ConfigError, match="'totals', whose rows are not kept"):
        recomputing.register_view("copy", "SELECT * FROM totals", mode="diff")
    recomputing.force_diff_based("totals")
    recomputing.tick("orders", [order(2, "bob", 8)])
    assert recomputing.snapshot("big").num_rows == 2


def test_a_wrong_view_is_put_right_when_it_is_forced(recomputing):
    flow = recomputing
    flow.register_view("totals", TOTALS)
    flow.tick("orders", [order(1)])
    watch = flow.watch_output("totals")
    flow._backend._executor._engine = Off()
    flow.force_diff_based("totals")
    epoch, delta = watch.get(timeout=0)
    assert (epoch, flow.epoch) == (2, 2)
    assert delta.inserts().to_pylist() == [{"customer": "ann", "total": 1000}]
    assert delta.retractions().to_pylist() == [{"customer": "ann", "total": 1}]


class Off(FlowEngine):
    def run(self, sql, tables):
        rows = super().run(sql, tables)
        return rows.set_column(1, rows.field(1), pa.array([1000] * rows.num_rows, pa.int64()))


@pytest.mark.parametrize(
    "delta", [[{"id": 1, "_weight": -1}], DeltaBatch.from_deletes([{"id": 1}])], ids=["dict", "delta"]
)
def test_a_source_with_a_key_deletes_by_it_and_takes_whole_rows(flow, delta):
    flow.register_source("people", "id BIGINT, name STRING, age BIGINT NOT NULL", key="id")
    flow.tick("people", [{"id": 1, "name": "ann", "age": 3}, {"id": 2, "name": "bob", "age": 4}])
    with pytest.raises(ConfigError, match="Row 0 has no column 'name'"):
        flow.tick("people", [{"id": 1}])
    with pytest.raises(ConfigError, match=r"Row 0: .* does not fit column 'age'"):
        flow.tick("people", [{"id": 1, "name": "ann", "age": 3.5}])
    flow.tick("people", delta)
    assert flow.snapshot("people").to_pylist() == [{"id": 2, "name": "bob", "age": 4}]


def test_columns_of_a_source_can_be_told_apart(flow):
    for columns in ("a BIGINT, A BIGINT", "_weight BIGINT"):
        with pytest.raises(ConfigError, match=r"cannot tell apart|the name for the weights"):
            flow.register_source("odd", columns)


def test_a_view_of_something_unknown_waits_while_others_tick(shop):
    shop.register_view("totals", TOTALS)
    shop.register_view("top", "SELECT * FROM totls")
    shop.tick("orders", [order(1)])
    assert shop.snapshot("totals").num_rows == 1
    assert {one.name: one.kind for one in shop.describe().relations}["top"] == "waiting"
    assert "totls" in shop.waiting["top"]
    with pytest.raises(FlowError, match="totls"):
        shop.snapshot("top")
    shop.register_source("totls", "id BIGINT")
    assert shop.snapshot("top").num_rows == 0
    assert shop.waiting == {}


def test_a_waiting_view_that_turns_out_wrong_does_not_keep_others_from_ticking(shop):
    shop.register_view("wrong", "SELECT nothing FROM later")
    shop.register_view("totals", TOTALS)
    shop.register_source("later", "id BIGINT")
    shop.tick("orders", [order(1)])
    assert shop.snapshot("totals").num_rows == 1
    assert "nothing" in shop.waiting["wrong"]
    shop.drop("wrong")
    assert shop.views == ("totals",)


def test_a_tick_that_waits_for_a_reader_holds_up_neither_snapshots_nor_closing(shop, monkeypatch):
    shop.register_view("totals", TOTALS)
    shop.watch_output("totals", capacity=1, policy="block")
    shop.tick("orders", [order(1)])
    waiting, raised = threading.Event(), []
    real = type(shop._backend._outputs).await_room

    def await_room(outputs, changed):
        waiting.set()
        real(outputs, changed)

    def tick():
        try:
            shop.tick("orders", [order(2)])
        except FlowError as error:
            raised.append(error)

    monkeypatch.setattr(type(shop._backend._outputs), "await_room", await_room)
    thread = threading.Thread(target=tick)
    thread.start()
    assert waiting.wait(20)
    assert shop.snapshot("orders").num_rows == 1
    shop.close()
    thread.join(20)
    assert not thread.is_alive()
    assert "closed" in raised[0].message


def test_a_later_view_may_have_an_aggregate_that_an_older_one_has(shop):
    shop.register_view("totals", TOTALS)
    shop.register_view("count", "SELECT COUNT(*) AS n FROM orders")
    shop.tick("orders", [order(1), order(2, "bob", 5)])
    shop.register_view("twice", "SELECT customer, 2 * SUM(amount) AS twice FROM orders GROUP BY customer")
    shop.register_view("more", "SELECT 1 + COUNT(*) AS n FROM orders")
    for amounts in ({"ann": 1, "bob": 5}, {"ann": 4, "bob": 5}):
        doubled = {row["customer"]: row["twice"] for row in shop.snapshot("twice").to_pylist()}
        assert doubled == {customer: 2 * amount for customer, amount in amounts.items()}
        counts = [shop.snapshot(name).to_pylist() for name in ("count", "more")]
        rows = len(shop.snapshot("orders"))
        assert counts == [[{"n": rows}], [{"n": rows + 1}]]
        shop.tick("orders", [order(3, "ann", 3)])
