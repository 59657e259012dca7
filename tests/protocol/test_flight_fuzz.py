"""Messages that are broken on the way to the Flight door: each is answered or refused, and nothing is left of it."""

from __future__ import annotations

import gc
import random
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.flight import Flighted, flighted
from support.server import eventually

from weirflow.server.flight.sql.messages import flight, sql, wrapped
from weirflow.wire.arrow import pack_rows
from weirflow.wire.messages import (
    CALL,
    TICK,
    Call,
    FlowQuery,
    Put,
    Result,
    Rows,
    Statement,
    Tick,
    Watch,
    pack,
    pack_command,
    pack_ticket,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirflow import Session

ROWS = pa.record_batch([pa.array([1, 2]), pa.array([3, None])], names=["id", "amount"])
COMMANDS = [
    wrapped(sql.CommandStatementQuery(query="SHOW SOURCES")),
    wrapped(sql.CommandStatementUpdate(query="INSERT INTO orders VALUES (1, 2)")),
    wrapped(sql.CommandPreparedStatementQuery(prepared_statement_handle=b"0123456789abcdef")),
    wrapped(sql.CommandGetTables(catalog="", table_name_filter_pattern="o%r_", include_schema=True)),
    wrapped(sql.CommandGetSqlInfo(info=[0, 1, 508])),
    wrapped(sql.CommandStatementIngest(table="orders", schema="shop")),
    wrapped(sql.TicketStatementQuery(statement_handle=b"result/" + b"0" * 32 + b"/0")),
    pack_command(Statement("SHOW SOURCES", timeout=5.0, key="k")),
    pack_command(Result("weirflow-nothing")),
    pack_command(Put("shop", "orders", token="t")),
    pack_ticket(Rows("shop", "orders")),
    pack_ticket(FlowQuery("shop", "SELECT id FROM orders")),
    pack_ticket(Watch("shop", "large", from_epoch=0)),
]
ACTIONS = [
    (TICK, pack(Tick("shop", {"orders": pack_rows(ROWS)}, token="x"))),
    (CALL, pack(Call("status", flow="shop"))),
    (CALL, pack(Call("flows"))),
    ("CreatePreparedStatement", wrapped(sql.ActionCreatePreparedStatementRequest(query="SHOW SOURCES"))),
    ("ClosePreparedStatement", wrapped(sql.ActionClosePreparedStatementRequest(prepared_statement_handle=b"x"))),
    ("CancelFlightInfo", flight.CancelFlightInfoRequest(info=flight.FlightInfo()).SerializeToString()),
    ("RenewFlightEndpoint", flight.RenewFlightEndpointRequest().SerializeToString()),
]


def broken(content: bytes, chance: random.Random) -> bytes:
    """A message with some of its bytes changed, cut out, repeated or added."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(5):
            case 0 if changed:
                changed[at % len(changed)] = chance.randrange(256)
            case 1:
                del changed[at : at + chance.randrange(1, 9)]
            case 2:
                changed[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
            case 3:
                changed[at:at] = changed[at : at + chance.randrange(1, 33)]
            case _:
                del changed[at:]
    return bytes(changed)


def send(served: Flighted, client: fl.FlightClient, chance: random.Random) -> None:
    """One broken message in one of the calls of Flight, read as far as something comes."""
    options = served.options(timeout=20.0)
    content = broken(chance.choice(COMMANDS), chance)
    descriptor = fl.FlightDescriptor.for_command(content)

    def put() -> None:
        writer, reader = client.do_put(descriptor, ROWS.schema, options)
        try:
            writer.write_batch(ROWS)
            writer.done_writing()
            reader.read()
        finally:
            writer.close()

    def get() -> None:
        reader = client.do_get(fl.Ticket(content), options)
        try:
            reader.read_chunk()
        finally:
            reader.cancel()

    def act() -> None:
        kind, body = chance.choice(ACTIONS)
        list(client.do_action((kind, broken(body, chance)), options))

    calls: list[Callable[[], Any]] = [
        put,
        get,
        get,
        act,
        act,
        lambda: client.get_flight_info(descriptor, options),
        lambda: client.get_schema(descriptor, options),
    ]
    try:
        chance.choice(calls)()
    except fl.FlightTimedOutError:
        raise
    except (fl.FlightError, pa.ArrowException, OSError, StopIteration, KeyError):
        pass  # refused, which is well


def measured(served: Flighted) -> tuple[int, int, int]:
    """Descriptors, threads and bytes of memory, when nothing is under way."""
    eventually(lambda: not served.coordinator.under_way, 30.0)
    gc.collect()
    process = psutil.Process()
    return process.num_fds(), process.num_threads(), process.memory_info().rss


def flooded(served: Flighted, count: int, seed: int) -> None:
    chance = random.Random(seed)
    with served.client() as client:
        for _ in range(count // 10):
            send(served, client, chance)
        descriptors, threads, memory = measured(served)
        for _ in range(count):
            send(served, client, chance)
        after = measured(served)
        # The door still does what it did.
        (answer,) = client.do_action((CALL, pack(Call("status", flow="shop"))), served.options())
        assert answer.body.size
    assert after[0] <= descriptors + 8
    assert after[1] <= threads + 16  # gRPC keeps some for calls to come
    assert after[2] - memory < 100 << 20
    assert served.spool.size < 1 << 20


@pytest.fixture
def served(session: Session, tmp_path: Path) -> Any:
    flow = session.flow("shop")
    flow.register_source("orders", "id BIGINT, amount BIGINT", key="id")
    flow.register_view("large", "SELECT id, amount FROM orders WHERE amount > 10")
    with flighted(session, tmp_path) as opened:
        yield opened
    flow.close()


def test_broken_messages_harm_nothing(served: Flighted, caplog: pytest.LogCaptureFixture) -> None:
    flooded(served, 300, seed=7)
    assert [one.exc_text for one in caplog.records if "failed unexpectedly" in one.getMessage()] == []


@pytest.mark.campaign
def test_ten_thousand_broken_messages_harm_nothing(served: Flighted, caplog: pytest.LogCaptureFixture) -> None:
    flooded(served, 10_000, seed=11)
    assert [one.exc_text for one in caplog.records if "failed unexpectedly" in one.getMessage()] == []
