"""Whatever is given to a client is refused with a typed error, before or instead of asking a server."""

from __future__ import annotations

import time

import pytest
from support.hostile_values import hostile_values

from weirflow import RemoteSession, WeirflowError
from weirflow.client.backend import RemoteBackend
from weirflow.client.flow import RemoteFlow
from weirflow.client.operations import RemoteOperation
from weirflow.client.streams import RemoteStream
from weirflow.wire.calls import FlowStatus, OperationForm, StreamForm

NOWHERE = "weirflow://127.0.0.1:9"


@pytest.fixture
def session():
    with RemoteSession(NOWHERE, connect_timeout=0.001, retry_timeout=0.001) as session:
        yield session


CALLS = {
    "sql": lambda session, value: session.sql(value).to_arrow(),
    "sql params": lambda session, value: session.sql("SELECT 1", value).to_arrow(),
    "sql timeout": lambda session, value: session.sql("SELECT 1", timeout=value).to_arrow(),
    "sql_with_timeout": lambda session, value: session.sql_with_timeout("SELECT 1", value),
    "submit": lambda session, value: session.submit(value),
    "subscribe": lambda session, value: session.subscribe(value),
    "explain": lambda session, value: session.explain("SELECT 1", value),
    "flow": lambda session, value: session.flow(value),
    "flow partitions": lambda session, value: session.flow("f", partitions=value),
    "flow option": lambda session, value: session.flow("f", history=value),
    "operation": lambda session, value: session.operations.get(value),
    "cancel": lambda session, value: session.operations.cancel(value),
    "stream": lambda session, value: session.streams.get(value),
    "wait": lambda session, value: _operation(session).wait(value),
    "result": lambda session, value: _operation(session).result(value),
    "stop": lambda session, value: _stream(session).stop(value),
    "savepoint": lambda session, value: _stream(session).savepoint(value),
    "tick source": lambda session, value: _flow(session).tick(value, []),
    "tick delta": lambda session, value: _flow(session).tick("orders", value),
    "tick token": lambda session, value: _flow(session).tick("orders", [], token=value),
    "register_view": lambda session, value: _flow(session).register_view("v", value),
    "register_source": lambda session, value: _flow(session).register_source("s", value),
    "snapshot": lambda session, value: _flow(session).snapshot(value),
    "watch": lambda session, value: _flow(session).watch_output(value),
    "watch epoch": lambda session, value: _flow(session).watch_output("v", from_epoch=value),
}


def _flow(session) -> RemoteFlow:
    return RemoteFlow(RemoteBackend(session._connection, FlowStatus("shop", 0)))


def _operation(session) -> RemoteOperation:
    return RemoteOperation(session._connection, OperationForm("id", "it", "running"))


def _stream(session) -> RemoteStream:
    return RemoteStream(session._connection, StreamForm("name", "id"))


@pytest.mark.parametrize("name", CALLS)
def test_hostile_values(session, tmp_path, name):
    for kind, value in hostile_values(tmp_path, letters=1000).items():
        began = time.perf_counter()
        with pytest.raises(WeirflowError):
            CALLS[name](session, value)
        assert time.perf_counter() - began < 5, kind
