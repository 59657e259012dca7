"""The HTTP door of a server in this process: bodies, errors, events; nothing here needs Spark."""

from __future__ import annotations

import itertools
import json
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from support.server import client, events, eventually, served

from weirflow.errors import ConfigError, MessageTooLarge, WeirflowError
from weirflow.rows.from_json import from_json_rows
from weirflow.rows.json_values import json_values
from weirflow.server.http import events as sse
from weirflow.server.http.failures import body_of, status_of
from weirflow.server.http.routes import ROUTES
from weirflow.server.server import Server
from weirflow.wire.arrow import pack_rows, unpack_rows

NUMBERS = itertools.count()
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def server(own_spark):
    own_spark()
    with served() as opened:
        yield opened


@pytest.fixture(scope="module")
def http(server):
    with client(server.http_url) as opened:
        yield opened


@pytest.fixture
def shop(http):
    """A flow of the test's own, and the path that it has."""
    path = f"/v1/flows/shop{next(NUMBERS)}"
    assert http.put(path).status_code == 201
    assert (
        http.put(f"{path}/sources/orders", json={"schema": "id BIGINT, amount BIGINT", "key": ["id"]}).status_code
        == 201
    )
    assert http.put(f"{path}/views/total", json={"sql": "SELECT sum(amount) AS total FROM orders"}).status_code == 201
    return path


def _tick(http, shop, *rows, token=None):
    headers = {} if token is None else {"Idempotency-Key": token}
    answer = http.post(f"{shop}/sources/orders/ticks", json=list(rows), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_rows_go_in_and_come_out_as_arrow(http, shop):
    rows = pa.table({"id": [1, 2], "amount": [10, 20]})
    answer = http.post(f"{shop}/sources/orders/ticks", content=pack_rows(rows), headers={"Content-Type": ARROW})
    assert answer.json()["rows_in"] == 2
    weighted = pa.table({"id": [1], "amount": [10], "_weight": [-1]})
    http.post(f"{shop}/sources/orders/ticks", content=pack_rows(weighted), headers={"Content-Type": ARROW})
    answer = http.get(f"{shop}/views/total/rows", headers={"Accept": ARROW})
    assert (answer.headers["content-type"], answer.headers["weirflow-epoch"]) == (ARROW, "2")
    assert unpack_rows(answer.content).to_pylist() == [{"total": 20}]
    assert http.get(f"{shop}/views/total/rows?epoch=1").json()["rows"] == [{"total": 30}]


def test_a_tick_of_several_sources_is_one(http, shop):
    http.put(f"{shop}/sources/more", json={"schema": "x STRING"})
    body = {
        "deltas": {"orders": [{"id": 1, "amount": 1}], "more": [{"x": "a"}, {"x": "b", "_weight": 2}]},
        "token": "t",
    }
    assert http.post(f"{shop}/ticks", json=body).json()["epoch"] == 1
    assert http.post(f"{shop}/ticks", json=body).json()["replayed"] is True
    assert sorted(row["x"] for row in http.get(f"{shop}/sources/more/rows").json()["rows"]) == ["a", "b", "b"]


def test_a_failed_tick_waits_and_is_discarded(http, shop):
    http.put(f"{shop}/views/ratio", json={"sql": "SELECT id, 1 div amount AS r FROM orders"})
    answer = http.post(f"{shop}/sources/orders/ticks", json=[{"id": 1, "amount": 0}])
    assert (answer.status_code, answer.json()["code"]) == (400, "DATA_ERROR")
    assert http.get(shop).json()["pending"] is True
    answer = http.post(f"{shop}/sources/orders/ticks", json=[{"id": 2, "amount": 1}])
    assert (answer.status_code, answer.json()["code"]) == (409, "TICK_PENDING")
    assert http.post(f"{shop}/discard").status_code == 200
    _tick(http, shop, {"id": 2, "amount": 1})


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "said"),
    [
        ("POST", "/sources/orders/ticks", b"{", 400, "not JSON"),
        ("POST", "/sources/orders/ticks", b"\xff\xfe", 400, "not JSON"),
        ("POST", "/sources/orders/ticks", b"[" * 100_000, 400, "not JSON"),
        ("POST", "/sources/orders/ticks", b"[" * 200 + b"]" * 200, 400, "nested"),
        ("POST", "/sources/orders/ticks", b"{}", 400, "list of objects"),
        ("POST", "/sources/orders/ticks", b"[1]", 400, "Row 1"),
        ("POST", "/sources/orders/ticks", b'[{"id": NaN}]', 400, "not JSON"),
        ("POST", "/sources/orders/ticks", b'[{"id": 1e400, "amount": 1}]', 400, "id"),
        ("POST", "/sources/orders/ticks", b'[{"id": 123456789012345678901, "amount": 1}]', 400, "id"),
        ("POST", "/sources/orders/ticks", b'[{"nope": 1}]', 400, "nope"),
        ("POST", "/ticks", b'{"deltas": []}', 400, "deltas"),
        ("POST", "/ticks", b'{"delta": {}}', 400, "nobody reads"),
        ("POST", "/ticks", b'{"timeout": "soon"}', 400, "timeout"),
        ("POST", "/query", b'{"sql": 7}', 400, "sql"),
        ("PUT", "/sources/x", b"{}", 400, "schema"),
        ("PUT", "/views/x", b'{"sql": "SELEC"}', 400, ""),
        ("PUT", "/views/x", b'{"sql": "SELECT 1", "replace": "yes"}', 400, "replace"),
        ("GET", "/views/total/rows?epoch=x", b"", 400, "whole number"),
        ("GET", "/views/nope/rows", b"", 404, "nope"),
        ("GET", "/views/total/changes?snapshot=maybe", b"", 400, "true or false"),
        ("GET", "/nowhere", b"", 404, "openapi"),
        ("PATCH", "", b"", 405, "openapi"),
    ],
)
def test_what_is_wrong_is_said_in_one_form(http, shop, method, path, content, status, said):
    answer = http.request(method, shop + path, content=content)
    body = answer.json()
    assert answer.status_code == status, body
    assert {"code", "message", "hint", "position"} <= body.keys()
    assert said in json.dumps(body)


def test_an_error_of_sql_has_its_position(http, shop):
    body = http.put(f"{shop}/views/x", json={"sql": "SELECT nope\nFROM orders"}).json()
    assert body["code"] == "COLUMN_NOT_FOUND"
    assert (body["position"]["line"], body["position"]["column"]) == (1, 8)


def test_a_body_that_is_too_large_is_not_read(tmp_path):
    with served(message_bytes=2048) as own, client(own.http_url) as http:
        http.put("/v1/flows/small")
        answer = http.post("/v1/flows/small/ticks", content=b"x" * 3000)
        assert (answer.status_code, answer.json()["code"]) == (413, MessageTooLarge.code)

        def pieces():
            for _ in range(10):
                yield b"x" * 1000

        answer = http.post("/v1/flows/small/ticks", content=pieces())
        assert (answer.status_code, answer.json()["code"]) == (413, MessageTooLarge.code)


def test_every_error_has_a_status():
    ahead, seen = [WeirflowError], set()
    while ahead:
        kind = ahead.pop()
        ahead += kind.__subclasses__()
        error = kind.__new__(kind, "m")
        error.message, error.hint, error.position, error.retry_after = "m", None, None, 1.0
        assert 400 <= status_of(error) < 600
        assert body_of(error)["code"] == kind.code
        seen.add(status_of(error))
    assert {400, 401, 403, 404, 409, 410, 413, 429, 500, 503, 504} <= seen


# Events


def test_events_resume_by_epoch_without_gap_or_repeat(http, server, shop):
    for number in range(5):
        _tick(http, shop, {"id": number, "amount": 1})
    with client(server.http_url) as own, events(own, f"{shop}/views/total/changes?from_epoch=0") as stream:
        first = [stream.next()[1] for _ in range(3)]
    assert first == ["1", "2", "3"]
    with (
        client(server.http_url) as own,
        events(own, f"{shop}/views/total/changes", headers={"Last-Event-ID": "3"}) as stream,
    ):
        assert [stream.next()[1] for _ in range(2)] == ["4", "5"]
        _tick(http, shop, {"id": 9, "amount": 1})
        kind, number, data = stream.next()
    assert (kind, number, sorted((row["total"], row["_weight"]) for row in data["rows"])) == (
        "delta",
        "6",
        [(5, -1), (6, 1)],
    )


def test_many_readers_begin_and_end_at_any_time_and_miss_nothing(http, server, shop):
    ticks, seen, wrong = 60, [], []

    def read(start):
        eventually(lambda: http.get(shop).json()["epoch"] >= start)
        with client(server.http_url) as own, events(own, f"{shop}/views/total/changes?snapshot=true") as stream:
            total, epoch = None, 0
            while epoch < ticks:
                kind, number, data = stream.next()
                if int(number) <= epoch:
                    wrong.append((epoch, number))
                epoch = int(number)
                total = next(row["total"] for row in data["rows"] if row["_weight"] > 0)
                if kind == "delta" and total != epoch:
                    wrong.append((epoch, total))
            seen.append(total)

    readers = [threading.Thread(target=read, args=(start * 8,)) for start in range(6)]
    for reader in readers:
        reader.start()
    for number in range(ticks):
        _tick(http, shop, {"id": number, "amount": 1})
    for reader in readers:
        reader.join(30)
    assert (seen, wrong) == ([ticks] * 6, [])


def test_a_large_delta_is_several_events_of_which_the_last_has_the_epoch(http, server, shop):
    http.put(f"{shop}/views/all", json={"sql": "SELECT id FROM orders"})
    rows = pa.table({"id": range(12_000), "amount": [1] * 12_000})
    with client(server.http_url) as own, events(own, f"{shop}/views/all/changes?from_epoch=0") as stream:
        http.post(f"{shop}/sources/orders/ticks", content=pack_rows(rows), headers={"Content-Type": ARROW})
        got = [stream.next() for _ in range(3)]
    assert [(number, data["last"]) for _, number, data in got] == [(None, False), (None, False), ("1", True)]
    assert sorted(row["id"] for _, _, data in got for row in data["rows"]) == list(range(12_000))


def test_a_slow_reader_is_let_go_and_told_from_where(http, server, shop, monkeypatch):
    monkeypatch.setattr(sse, "_MOST_EVENTS", 3)
    http.put(f"{shop}/views/wide", json={"sql": "SELECT id, repeat('x', 400000) AS x FROM orders"})
    with client(server.http_url) as own, events(own, f"{shop}/views/wide/changes?from_epoch=0") as stream:
        for number in range(60):
            _tick(http, shop, {"id": number, "amount": 1})
        seen = []
        while not seen or seen[-1][0] == "delta":
            kind, number, data = stream.next()
            seen.append((kind, number, data.get("from_epoch")))
    assert [int(number) for kind, number, _ in seen[:-1]] == list(range(1, len(seen)))
    assert seen[-1] == ("overflow", None, len(seen) - 1)


def test_the_stream_ends_when_the_view_does(http, server, shop):
    with client(server.http_url) as own, events(own, f"{shop}/views/total/changes?snapshot=true") as stream:
        assert stream.next()[0] == "snapshot"
        assert http.delete(f"{shop}/views/total").status_code == 204
        assert stream.next()[0] == "end"


def test_a_ticket_stands_for_a_token_once(http, server, shop):
    _tick(http, shop, {"id": 1, "amount": 1})
    ticket = http.post("/v1/tickets").json()["ticket"]
    path = f"{shop}/views/total/changes?from_epoch=0&ticket={ticket}"
    with client(server.http_url) as own:
        with events(own, path) as stream:
            assert stream.next()[1] == "1"
        assert own.get(path).status_code == 401


def test_history_that_is_gone_is_gone(http, shop):
    _tick(http, shop, {"id": 1, "amount": 1})
    answer = http.get(f"{shop}/views/total/changes?from_epoch=99")
    assert answer.status_code == 400


# What belongs to a server


def test_the_openapi_document_has_every_route(http):
    document = http.get("/openapi.json").json()
    for route in ROUTES:
        path = route.path.replace(":path}", "}")
        described = document["paths"][path][route.method.lower()]
        assert described["summary"]
        assert all(f"{{{one['name']}}}" in path for one in described["parameters"] if one["in"] == "path")
    ids = [one["operationId"] for path in document["paths"].values() for one in path.values() if "operationId" in one]
    assert len(ids) == len(set(ids))


def test_a_server_that_ends_refuses_what_is_new_and_says_when_to_come_back():
    with served() as own, client(own.http_url) as http:
        http.put("/v1/flows/f")
        with own.coordinator.work(own.coordinator.gate.caller(None, "127.0.0.1"), "read", "hold on"):  # type: ignore[arg-type]
            ending = threading.Thread(target=own.stop, args=(5.0,))
            ending.start()
            eventually(own.coordinator.draining.is_set)
            answer = http.get("/v1/flows")
            assert (answer.status_code, answer.json()["code"]) == (503, "SERVER_DRAINING")
            assert int(answer.headers["retry-after"]) > 0
            assert http.get("/readyz").status_code == 503
            assert http.get("/healthz").status_code == 200
        ending.join(20)


def test_two_servers_do_not_listen_at_one_address(server):
    with pytest.raises(ConfigError, match="cannot listen"):
        Server({}, http=server.http_url.partition("//")[2], flight="off", insecure=True, warm=False).start()


def test_a_startup_function_is_called_with_the_session(tmp_path):
    file = tmp_path / "start.py"
    file.write_text("def begin(session):\n    session.flow('made').register_source('s', 'x INT')\n")
    with served(startup=f"{file}:begin") as own, client(own.http_url) as http:
        assert http.get("/v1/flows/made").json()["sources"] == ["s"]
    file.write_text("def begin(session):\n    raise RuntimeError('no')\n")
    with pytest.raises(ConfigError, match="startup function"), served(startup=f"{file}:begin"):
        pass


# JSON


def test_values_are_read_as_they_are_spelt():
    schema = pa.schema(
        [
            ("i", pa.int64()),
            ("f", pa.float64()),
            ("d", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("ntz", pa.timestamp("us")),
            ("b", pa.binary()),
            ("gap", pa.duration("us")),
            ("l", pa.list_(pa.decimal128(4, 1))),
            ("s", pa.struct([("x", pa.float64())])),
            ("m", pa.map_(pa.int32(), pa.string())),
        ]
    )
    row = {
        "i": 2**62,
        "f": float("-inf"),
        "d": Decimal("1.20"),
        "day": date(2026, 1, 31),
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "ntz": datetime(2026, 1, 31, 12, 0, 0, 5),  # noqa: DTZ001 - of a column without a zone
        "b": b"\x00\xff",
        "gap": timedelta(days=-1, seconds=5),
        "l": [Decimal("1.5"), None],
        "s": {"x": None},
        "m": [(1, "a")],
    }
    table = pa.Table.from_pylist([row, {}], schema=schema)
    text = json.dumps(
        [
            dict(zip(schema.names, one, strict=True))
            for one in zip(*(json_values(c.chunk(0)) for c in table.columns), strict=True)
        ]
    )
    read = from_json_rows(json.loads(text), schema)
    assert pa.Table.from_pylist(read, schema=schema).equals(table)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.decimal128(4, 1), 1.5),
        (pa.decimal128(4, 1), "x"),
        (pa.binary(), "!"),
        (pa.date32(), "yesterday"),
        (pa.date32(), 5),
        (pa.timestamp("us"), "12"),
        (pa.duration("us"), "1 day"),
        (pa.list_(pa.int64()), {}),
        (pa.struct([("x", pa.int64())]), []),
        (pa.map_(pa.int32(), pa.string()), {"x": "y"}),
        (pa.float64(), "nan"),
    ],
)
def test_a_value_of_another_type_is_refused(kind, value):
    with pytest.raises(ConfigError, match="'c'"):
        from_json_rows([{"c": value}], pa.schema([("c", kind)]))
