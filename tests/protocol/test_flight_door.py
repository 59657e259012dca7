"""The Flight door in Weirflow's own protocol: who comes in, ticks, watches and their limit, TLS."""

from __future__ import annotations

import subprocess
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.flight import Flighted, flighted
from support.server import eventually

from weirflow.server.flight.calls import Calls
from weirflow.server.flight.door import Tls
from weirflow.wire.arrow import pack_rows
from weirflow.wire.calls import METHODS
from weirflow.wire.errors import unpack_error
from weirflow.wire.messages import (
    TICK,
    Mark,
    Put,
    Rows,
    Summary,
    Tick,
    Watch,
    pack,
    pack_command,
    pack_ticket,
    unpack,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirflow import Session


@pytest.fixture
def own(session: Session) -> Iterator[Session]:
    """A Session with a flow."""
    flow = session.flow("shop")
    flow.register_source("orders", "id BIGINT, amount BIGINT", key="id")
    flow.register_view("large", "SELECT id, amount FROM orders WHERE amount > 10")
    yield session
    flow.close()


@pytest.fixture
def served(own: Session, tmp_path: Path) -> Iterator[Flighted]:
    with flighted(own, tmp_path, most_watches=3) as opened:
        yield opened


def code(failed: pytest.ExceptionInfo[fl.FlightError]) -> str:
    return unpack_error(bytes(failed.value.extra_info)).code


def batch(*amounts: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(len(amounts))), pa.array(amounts)], names=["id", "amount"])


def marks(reader: fl.FlightStreamReader, count: int) -> list[tuple[int, bool, list[dict]]]:
    found = []
    for _ in range(count):
        chunk = reader.read_chunk()
        mark = unpack(chunk.app_metadata.to_pybytes(), Mark)
        found.append((mark.epoch, mark.last, chunk.data.to_pylist()))
    return found


def test_every_method_has_a_handler(served: Flighted) -> None:
    assert served.door._calls.table.keys() == METHODS.keys()
    assert isinstance(served.door._calls, Calls)


def test_nobody_comes_in_without_a_token(served: Flighted) -> None:
    calls = [
        lambda client, options: client.get_flight_info(fl.FlightDescriptor.for_command(b"x"), options),
        lambda client, options: client.do_get(fl.Ticket(b"x"), options),
        lambda client, options: list(client.do_action(("x", b""), options)),
        lambda client, options: list(client.list_actions(options)),
        lambda client, options: list(client.list_flights(b"", options)),
    ]
    wrong = [[], [(b"authorization", b"Bearer wf_a_b")], [(b"authorization", b"Basic !!")], [(b"authorization", b"x")]]
    with served.client() as client:
        for headers in wrong:
            for call in calls:
                with pytest.raises(fl.FlightUnauthenticatedError) as failed:
                    call(client, fl.FlightCallOptions(headers=headers))
                assert code(failed) == "AUTHENTICATION_FAILED"
            with pytest.raises(
                (pa.ArrowException, OSError), match="AUTHENTICATION_FAILED"
            ):  # of which pyarrow sends the text
                client.get_schema(fl.FlightDescriptor.for_command(b"x"), fl.FlightCallOptions(headers=headers))


def test_a_tick_in_a_message_and_one_as_a_stream(served: Flighted, own: Session) -> None:
    with served.client() as client:
        ticked = Tick("shop", {"orders": pack_rows(batch(5, 50))}, token="first")
        answers = [list(client.do_action((TICK, pack(ticked)), served.options("writer"))) for _ in range(2)]
        summaries = [unpack(one[0].body.to_pybytes(), Summary) for one in answers]
        assert [(one.epoch, one.replayed) for one in summaries] == [(1, False), (1, True)]
        descriptor = fl.FlightDescriptor.for_command(pack_command(Put("shop", "orders", token="second")))
        writer, reader = client.do_put(descriptor, batch(1).schema, served.options("writer"))
        writer.write_batch(batch(70, 80, 9))
        writer.done_writing()
        assert unpack(reader.read().to_pybytes(), Summary).epoch == 2
        writer.close()
        rows = client.do_get(fl.Ticket(pack_ticket(Rows("shop", "large"))), served.options("reader")).read_all()
        assert sorted(rows.to_pylist(), key=lambda row: row["id"]) == [{"id": 0, "amount": 70}, {"id": 1, "amount": 80}]
        with pytest.raises(fl.FlightUnauthorizedError):
            list(client.do_action((TICK, pack(ticked)), served.options("reader")))


def test_a_watch_has_marks_and_goes_on_from_an_epoch(served: Flighted, own: Session) -> None:
    flow = own.flow("shop")
    flow.tick("orders", batch(20))
    with served.client() as client:
        first = client.do_get(fl.Ticket(pack_ticket(Watch("shop", "large", snapshot=True))), served.options("reader"))
        assert marks(first, 2) == [(1, False, []), (1, True, [{"id": 0, "amount": 20, "_weight": 1}])]
        flow.tick("orders", batch(5))
        assert marks(first, 1) == [(2, True, [{"id": 0, "amount": 20, "_weight": -1}])]
        flow.tick("orders", batch(6))
        assert marks(first, 1) == [(3, True, [])]  # progress
        second = client.do_get(fl.Ticket(pack_ticket(Watch("shop", "large", from_epoch=1))), served.options())
        assert marks(second, 2) == [(1, True, []), (2, True, [{"id": 0, "amount": 20, "_weight": -1}])]
        other = fl.Ticket(pack_ticket(Watch("shop", "large", from_epoch=1, identity="another")))
        with pytest.raises(fl.FlightServerError) as failed:
            client.do_get(other, served.options()).read_chunk()
        assert code(failed) == "HISTORY_GONE"
        first.cancel()
        second.cancel()
    eventually(lambda: not served.coordinator.under_way)


def test_watches_are_limited_and_places_come_back(served: Flighted) -> None:
    ticket = fl.Ticket(pack_ticket(Watch("shop", "large")))
    with served.client() as client:
        for _ in range(2):
            readers = [client.do_get(ticket, served.options(timeout=None)) for _ in range(3)]
            for reader in readers:
                reader.read_chunk()
            with pytest.raises(fl.FlightUnavailableError) as failed:
                client.do_get(ticket, served.options()).read_chunk()
            assert code(failed) == "SERVER_BUSY"
            for reader in readers:
                reader.cancel()
            eventually(lambda: not served.coordinator.under_way)


def test_a_slow_reader_fails_alone(served: Flighted, own: Session) -> None:
    ticket = Watch("shop", "large", capacity=2, progress=False)
    flow = own.flow("shop")
    wide = pa.record_batch([pa.array(range(50_000)), pa.array([20] * 50_000)], names=["id", "amount"])
    with served.client() as client:
        slow = client.do_get(fl.Ticket(pack_ticket(ticket)), served.options(timeout=None))
        slow.read_chunk()
        for number in range(60):  # more than all buffers between here and there hold
            flow.tick("orders", wide.set_column(1, "amount", pa.array([20 + number % 2] * 50_000)))

        def read_on() -> None:
            while True:
                slow.read_chunk()

        with pytest.raises(fl.FlightServerError) as failed:
            read_on()
        assert code(failed) == "WATCH_OVERFLOW"
    assert flow.epoch == 60


def test_watches_end_when_the_server_drains(served: Flighted) -> None:
    with served.client() as client:
        reader = client.do_get(fl.Ticket(pack_ticket(Watch("shop", "large"))), served.options(timeout=None))
        reader.read_chunk()
        threading.Thread(target=served.coordinator.drain, args=(10.0,)).start()
        with pytest.raises(fl.FlightUnavailableError) as failed:
            reader.read_chunk()
        assert code(failed) == "SERVER_DRAINING"


def test_a_tick_over_tls(own: Session, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named], check=True, capture_output=True)
    tls = Tls(certificate.read_bytes(), key.read_bytes())
    with flighted(own, tmp_path, tls=tls) as served:
        address = f"grpc+tls://localhost:{served.door.port}"
        with fl.FlightClient(address, tls_root_certs=certificate.read_bytes()) as client:
            ticked = Tick("shop", {"orders": pack_rows(batch(5))})
            (answer,) = client.do_action((TICK, pack(ticked)), served.options())
            assert unpack(answer.body.to_pybytes(), Summary).epoch == 1
        with served.client() as client, pytest.raises(fl.FlightUnavailableError):
            list(client.list_actions(served.options(timeout=5.0)))
