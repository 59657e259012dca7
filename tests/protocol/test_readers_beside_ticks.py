"""Who reads a flow of a server waits for no tick, whatever the tick waits for."""

from __future__ import annotations

import threading

import pytest
from support.server import client, events, eventually, served

from weirflow import RemoteSession


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
