"""One server by Weirflow's client, ADBC, JDBC, curl and server-sent events: the same view, the same changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from contextlib import closing
from queue import Queue
from typing import TYPE_CHECKING, Any

import adbc_driver_flightsql.dbapi as adbc
from support.jdbc import jdbc, rows
from support.server import client, events, make_token, served_process

from weirflow import Session

if TYPE_CHECKING:
    from pathlib import Path

VIEW = "SELECT who, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY who"
FIRST = [{"who": "ann", "orders": 2, "total": 5}, {"who": "bob", "orders": 1, "total": 7}]
CHANGE = {("ann", 2, 5): -1, ("ann", 3, 15): 1, ("cat", 1, 1): 1}
SECOND = [{"who": "ann", "orders": 3, "total": 15}, FIRST[1], {"who": "cat", "orders": 1, "total": 1}]


def changes(found: list[dict[str, Any]]) -> dict[tuple[Any, ...], int]:
    """Rows of changes by their values."""
    return {(one["who"], one["orders"], one["total"]): one["_weight"] for one in found}


def test_the_same_view_and_live_changes_through_every_door(exclusive_spark: None, tmp_path: Path) -> None:
    token = make_token(tmp_path / "data")
    with served_process(tmp_path / "data") as server, jdbc() as driver:
        address = server.flight_url.partition("//")[2]
        bearer = {"adbc.flight.sql.authorization_header": f"Bearer {token}"}
        with (
            Session.distributed(server.flight_url, token=token) as remote,
            adbc.connect(f"grpc://{address}", db_kwargs=bearer, autocommit=True) as connection,
            closing(driver.connect(address, token=token)) as java,
            client(server.http_url, token) as http,
        ):
            flow = remote.flow("shop")
            flow.register_source("orders", "id BIGINT, who STRING, amount BIGINT", key="id")
            flow.register_view("totals", VIEW)
            flow.tick("orders", [{"id": n, "who": who, "amount": m} for n, who, m in [(1, "ann", 2), (2, "ann", 3)]])
            flow.tick("orders", [{"id": 3, "who": "bob", "amount": 7}])

            def seen() -> dict[str, list[dict[str, Any]]]:
                sql = "SELECT * FROM shop.totals"
                with connection.cursor() as cursor, closing(java.createStatement()) as statement:
                    cursor.execute(sql)
                    found = {
                        "client": flow.snapshot("totals").to_pylist(),
                        "client SQL": remote.sql(sql).to_arrow().to_pylist(),
                        "ADBC": cursor.fetch_arrow_table().to_pylist(),
                        "JDBC": rows(statement.executeQuery(sql)),
                        "curl": _curl(f"{server.http_url}/v1/flows/shop/views/totals/rows", token)["rows"],
                    }
                return {door: sorted(those, key=lambda row: row["who"]) for door, those in found.items()}

            assert seen() == dict.fromkeys(("client", "client SQL", "ADBC", "JDBC", "curl"), FIRST)
            live: Queue[tuple[str, dict[tuple[Any, ...], int]]] = Queue()
            with (
                flow.watch_output("totals") as watch,
                connection.cursor() as cursor,
                closing(java.createStatement()) as statement,
                events(http, "/v1/flows/shop/views/totals/changes") as stream,
            ):
                subscribed = "SUBSCRIBE TO shop.totals WITH (SNAPSHOT = false)"
                cursor.execute(subscribed)
                batches = cursor.fetch_record_batch()
                # Which returns when there are rows, so it begins with those that are there.
                result = statement.executeQuery("SUBSCRIBE TO shop.totals")
                assert changes(_next_rows(result, len(FIRST))) == {tuple(row.values()): 1 for row in FIRST}
                followers = {
                    "client": lambda: changes(watch.get(60.0)[1].to_arrow().to_pylist()),
                    "ADBC": lambda: changes(batches.read_next_batch().to_pylist()),
                    "JDBC": lambda: changes(_next_rows(result, len(CHANGE))),
                    "SSE": lambda: _changed(stream),
                }
                for door, follow in followers.items():
                    threading.Thread(target=lambda d=door, f=follow: live.put((d, f())), daemon=True).start()
                _curl(
                    f"{server.http_url}/v1/flows/shop/sources/orders/ticks",
                    token,
                    [{"id": 4, "who": "ann", "amount": 10}, {"id": 5, "who": "cat", "amount": 1}],
                )
                told = dict(live.get(timeout=60.0) for _ in followers)
                assert told == dict.fromkeys(followers, CHANGE)
                cursor.adbc_cancel()
                statement.cancel()
            assert seen() == dict.fromkeys(("client", "client SQL", "ADBC", "JDBC", "curl"), SECOND)


def _curl(url: str, token: str, body: object = None) -> Any:
    program = shutil.which("curl")
    assert program is not None
    given = [] if body is None else ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    answer = subprocess.run(
        [program, "-sS", "--fail-with-body", "-H", f"Authorization: Bearer {token}", *given, url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return json.loads(answer.stdout)


def _next_rows(result: Any, count: int) -> list[dict[str, Any]]:
    found = []
    while len(found) < count:
        assert result.next()
        found.append({name: result.getObject(name) for name in ("who", "orders", "total", "_weight")})
    return found


def _changed(stream: Any) -> dict[tuple[Any, ...], int]:
    while True:
        kind, _, data = stream.next()
        if kind == "delta":
            return changes(data["rows"])
