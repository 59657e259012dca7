"""Who reads a flow of a server waits for no tick, whatever the tick waits for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.server import client, events, eventually, served

from weirflow import IncrementalFlow, RemoteSession
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.flow import query
from weirflow.ivm.flow.query import plan_query


@pytest.fixture
def held():
    """A server whose flow has a tick under way, which waits for a reader to make room; and what makes it."""
    with served(flight="127.0.0.1:0") as server:
        flow = server.coordinator.make_flow("shop", None)
        flow.register_source("orders", "id BIGINT")
        flow.register_view("ids", "SELECT id FROM orders")
        reader = flow.watch_output("ids", capacity=1, policy="block")
        flow.tick("orders", [{"id": 1}])
        ticking = threading.Thread(target=flow.tick, args=("orders", [{"id": 2}]))
        ticking.start()
        eventually(lambda: flow.pending)
        yield server, ticking
        while ticking.is_alive():
            reader.get(0.05)
        ticking.join()
        assert flow.epoch == 2


def test_rows_and_watches_over_flight(held):
    server, ticking = held
    with RemoteSession(server.flight_url) as session:
        flow = session.flow("shop")
        assert flow.snapshot("ids").to_pylist() == [{"id": 1}]
        with flow.watch_output("ids", snapshot=True) as changes:
            epoch, delta = changes.get(10)
            assert (epoch, list(delta)) == (1, [({"id": 1}, 1)])
    assert ticking.is_alive()


def test_rows_and_events_over_http(held):
    server, ticking = held
    with client(server.http_url) as http:
        assert http.get("/v1/flows/shop/views/ids/rows").json()["rows"] == [{"id": 1}]
        with events(http, "/v1/flows/shop/views/ids/changes?snapshot=true") as stream:
            assert stream.next()[:2] == ("snapshot", "1")
    assert ticking.is_alive()


@pytest.mark.parametrize("step", ["compile", "compute"])
def test_a_tick_waits_for_no_query(monkeypatch, step):
    """Neither while it is compiled nor while it is computed; it has the rows from before the tick, or after it."""
    begun, go_on = threading.Event(), threading.Event()
    owner, name = {"compile": (query, "Program"), "compute": (Circuit, "computed")}[step]
    real = getattr(owner, name)

    def held_up(*args):
        begun.set()
        assert go_on.wait(30)
        return real(*args)

    with IncrementalFlow("shop") as flow:
        flow.register_source("orders", "id BIGINT")
        flow.tick("orders", [{"id": 1}])
        with monkeypatch.context() as patched, ThreadPoolExecutor(2) as threads:
            patched.setattr(owner, name, held_up)
            asked = threads.submit(flow.sql, "SELECT count(*) AS n FROM orders")
            assert begun.wait(30)
            try:
                assert threads.submit(flow.tick, "orders", [{"id": 2}]).result(10).epoch == 2
            finally:
                go_on.set()
            assert asked.result(30).to_pylist() == [{"n": 2 if step == "compile" else 1}]


def test_a_query_whose_view_changes_meanwhile_is_compiled_again(monkeypatch):
    made = []

    def changing(*args):
        made.append(args)
        if len(made) == 1:
            flow.replace_view("seen", "SELECT CAST(id AS STRING) AS id FROM orders")
        return plan_query(*args)

    with IncrementalFlow("shop") as flow:
        flow.register_source("orders", "id BIGINT")
        flow.register_view("seen", "SELECT id FROM orders")
        flow.tick("orders", [{"id": 1}])
        monkeypatch.setattr("weirflow.ivm.flow.local.plan_query", changing)
        assert flow.sql("SELECT id FROM seen").to_pylist() == [{"id": "1"}]
    assert len(made) == 2
