"""What a flow in shards does beside its ticks: it refuses early, counts what it drops and waits for its readers."""

import threading

import pytest

from weirflow.errors import ColumnNotFound, ConfigError
from weirflow.ivm.partitioned.executor import InThisProcess
from weirflow.ivm.partitioned.flow import PartitionedFlow

ORDERS = "id BIGINT, customer STRING, amount BIGINT"
TOTALS = "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"


@pytest.fixture
def flow(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess()) as flow:
        yield flow


def order(number, customer="ann", amount=1):
    return {"id": number, "customer": customer, "amount": amount}


def test_bad_sql_is_refused_when_it_is_registered(flow):
    flow.register_source("orders", ORDERS)
    with pytest.raises(ColumnNotFound, match="amuont"):
        flow.register_view("totals", "SELECT SUM(amuont) FROM orders")
    assert flow.views == ()
    flow.register_view("totals", TOTALS)
    assert flow.tick("orders", [order(1)]).views == {"totals": 1}


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


def test_the_flow_is_shown_as_a_graph(flow):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    text = flow.graph().mermaid
    assert "orders" in text
    assert "totals" in text
