"""Metrics: every figure as a scrape shows it."""

import gc
import threading
import weakref

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from weirflow import DeltaBatch, Lateness, Session
from weirflow.errors import DataError, StorageError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.observability.metrics import REGISTRY, metrics_text


@pytest.fixture
def registry():
    return CollectorRegistry()


def figures(text):
    """What a scrape gives: values by name and labels, without the times at which counters began."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    keys = [(sample.name, *sorted(sample.labels.items())) for sample in samples]
    assert len(set(keys)) == len(keys), "a scrape must not have a sample twice"
    return {
        (sample.name.removeprefix("weirflow_"), *sorted(sample.labels.values())): sample.value
        for sample in samples
        if not sample.name.endswith("_created")
    }


def new_flow(name="shop", **options):
    flow = IncrementalFlow(name, **options)
    flow.register_source("orders", "customer STRING, amount BIGINT", dedup=True)
    flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    flow.register_view("worth", "SELECT customer, 100 DIV total AS worth FROM totals")
    return flow


def orders(*amounts):
    return [{"customer": "ann", "amount": amount} for amount in amounts]


def test_ticks_and_rows_are_counted(registry):
    flow = new_flow(registry=registry)
    flow.tick("orders", orders(1, 2), token="a")
    flow.tick("orders", orders(1, 2), token="a")
    flow.tick("orders", orders(1, 2))
    with pytest.raises(DataError):
        flow.tick("orders", orders(-3))
    flow.discard()
    with pytest.raises(DataError):
        flow.tick("orders", DeltaBatch.from_deletes(orders(9)))
    found = figures(flow.metrics())
    assert {key[1]: value for key, value in found.items() if key[0] == "ticks_total"} == {
        "committed": 2,
        "failed": 2,
        "replayed": 1,
    }
    assert found["rows_in_total", "shop"] == 4
    assert found["rows_dropped_total", "shop"] == 2
    assert found["rows_out_total", "shop"] == 2
    assert found["tick_seconds_count", "shop"] == 2
    assert 0 < found["tick_seconds_sum", "shop"] < 10
    assert found["epoch", "shop"] == 2


def test_a_failed_retry_is_a_failed_tick(registry):
    flow = new_flow(registry=registry)
    flow.tick("orders", orders(3))
    for again in (lambda: flow.tick("orders", orders(-3)), flow.retry):
        with pytest.raises(DataError):
            again()
    assert figures(flow.metrics())["ticks_total", "failed", "shop"] == 2


def test_late_rows_are_counted(registry):
    flow = IncrementalFlow("late", registry=registry)
    flow.register_source("t", "at DATE", lateness=Lateness("at", "1 day"))
    for day in ("2024-03-10", "2024-03-01"):
        flow.tick("t", flow.sql(f"SELECT DATE '{day}' AS at"))
    assert figures(flow.metrics())["rows_late_total", "late"] == 1


def test_state_is_what_explain_and_describe_say(registry):
    flow = new_flow(registry=registry)
    flow.tick("orders", orders(1, 2))
    found = figures(flow.metrics())
    assert found["state_bytes", "shop"] == flow.describe().nbytes > 0
    views = {view: found["view_state_bytes", "shop", view] for view in flow.views}
    assert all(size > 0 for size in views.values())
    # The source's rows belong to no view, and these views share nothing.
    assert sum(views.values()) < found["state_bytes", "shop"]
    flow.drop("worth")
    assert ("view_state_bytes", "shop", "worth") not in figures(flow.metrics())


def test_deltas_that_wait_for_readers_are_shown_for_each_view(registry):
    flow = new_flow(registry=registry)
    with flow.watch_output("totals") as watch, flow.watch_output("totals"):
        flow.tick("orders", orders(1))
        flow.tick("orders", orders(2))
        watch.get(0)
        assert figures(flow.metrics())["watch_waiting", "shop", "totals"] == 3
    assert ("watch_waiting", "shop", "totals") not in figures(flow.metrics())


def test_the_log_and_checkpoints_are_measured(registry, tmp_path):
    with new_flow(path=tmp_path / "flow", registry=registry, fsync=0) as flow:
        flow.tick("orders", orders(1))
        size = sum(path.stat().st_size for path in (tmp_path / "flow" / "log").glob("*.log"))
        assert figures(flow.metrics())["log_bytes", "shop"] == size > 0
        flow.checkpoint()
        flow.checkpoint()  # has nothing to do
        found = figures(flow.metrics())
        packs = sum(path.stat().st_size for path in (tmp_path / "flow" / "packs").iterdir())
        assert found["checkpoint_bytes_total", "shop"] == packs
        assert found["checkpoints_total", "saved", "shop"] == found["checkpoint_seconds_count", "shop"] == 1
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "packs").write_text("in the way of a folder")
        with pytest.raises(StorageError):
            flow.checkpoint(tmp_path / "other")
        assert figures(flow.metrics())["checkpoints_total", "failed", "shop"] == 1


def series(registry):
    """All series of a registry; what has no labels belongs to no flow."""
    return {(sample.name, *sorted(sample.labels.items())) for family in registry.collect() for sample in family.samples}


def test_a_closed_flow_leaves_no_series(registry):
    for number in range(20):
        with new_flow(f"flow {number}", registry=registry) as flow:
            flow.tick("orders", orders(1))
            assert series(registry)
        assert series(registry) == set()
    assert flow.metrics() == ""


def test_a_closed_flow_leaves_the_series_of_an_open_one_of_its_name(registry):
    with new_flow(registry=registry) as left:
        left.tick("orders", orders(1))
        with new_flow(registry=registry) as gone:
            gone.tick("orders", orders(1))
        gone.close()  # closing twice takes nothing from the other
        assert figures(left.metrics())["ticks_total", "committed", "shop"] == 2
        left.tick("orders", orders(2))
        assert figures(left.metrics())["ticks_total", "committed", "shop"] == 3
    assert series(registry) == set()
    with new_flow(registry=registry) as again:
        assert figures(again.metrics())["ticks_total", "committed", "shop"] == 0


def test_a_flow_that_was_never_closed_leaves_no_series(registry):
    new_flow(registry=registry).tick("orders", orders(1))
    gc.collect()
    assert series(registry) == set()


def test_a_flow_that_could_not_be_opened_leaves_no_series(registry, tmp_path):
    (tmp_path / "flow").touch()
    with pytest.raises(StorageError):
        new_flow(path=tmp_path / "flow", registry=registry)
    gc.collect()
    assert series(registry) == set()


def test_flows_that_come_and_go_in_threads_are_counted_right(registry):
    def come_and_go():
        for _ in range(30):
            with new_flow(registry=registry) as flow:
                flow.tick("orders", orders(1))

    with new_flow(registry=registry) as left:
        threads = [threading.Thread(target=come_and_go) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert figures(left.metrics())["ticks_total", "committed", "shop"] == 90
    assert series(registry) == set()


def test_metrics_keep_no_flow_and_no_registry_alive():
    registry = CollectorRegistry()
    flow = new_flow(registry=registry)
    one, other = weakref.ref(flow), weakref.ref(registry)
    text = flow.metrics()
    del flow
    gc.collect()
    assert one() is None
    assert ("epoch", "shop") in figures(text)
    assert ("epoch", "shop") not in figures(metrics_text(registry))
    del registry
    gc.collect()
    assert other() is None


def test_flows_of_one_name_are_one_in_the_figures(registry):
    flows = [new_flow(registry=registry) for _ in range(2)]
    for flow in flows:
        flow.tick("orders", orders(1))
    flows[1].tick("orders", orders(2))
    found = figures(generate_latest(registry).decode())
    assert found["ticks_total", "committed", "shop"] == 3
    assert found["epoch", "shop"] == 2
    assert found["state_bytes", "shop"] == sum(flow.describe().nbytes for flow in flows)


def test_a_flow_shows_only_itself_and_a_session_all():
    one, other = new_flow("one of two"), new_flow("two of two")
    for flow in (one, other):
        flow.tick("orders", orders(1))
    assert "two of two" not in one.metrics()
    for text in (Session.embedded().metrics(), metrics_text(), generate_latest(REGISTRY).decode()):
        assert {("epoch", "one of two"), ("epoch", "two of two")} <= figures(text).keys()


def test_a_scrape_does_not_wait_for_a_long_tick(registry):
    flow = new_flow(registry=registry)
    flow.tick("orders", orders(1))
    before = figures(flow.metrics())
    entered, leave = threading.Event(), threading.Event()

    def hold(*_):
        entered.set()
        leave.wait(30)

    flow.on_delta("totals", hold)
    tick = threading.Thread(target=flow.tick, args=("orders", orders(2)))
    tick.start()
    assert entered.wait(30)
    meanwhile = figures(flow.metrics())
    leave.set()
    tick.join()
    assert meanwhile["epoch", "shop"] == before["epoch", "shop"] == 1
    assert figures(flow.metrics())["epoch", "shop"] == 2


def test_names_are_escaped(registry):
    flow = new_flow('a "quoted"\n\\name', registry=registry)
    assert figures(flow.metrics())["epoch", 'a "quoted"\n\\name'] == 0
