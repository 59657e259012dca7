"""``weirflow serve``, the real command: started, killed, started again, drained."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest
from support.server import client, events, eventually, make_token, served_process

SCHEMA = "id BIGINT, customer STRING, amount DECIMAL(10,2)"
VIEW = "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer"


def _make_shop(http):
    assert http.put("/v1/flows/shop").status_code == 201
    answer = http.put("/v1/flows/shop/sources/orders", json={"schema": SCHEMA, "key": ["id"]})
    assert answer.status_code == 201, answer.text
    answer = http.put("/v1/flows/shop/views/totals", json={"sql": VIEW})
    assert answer.status_code == 201, answer.text


def _tick(http, rows, token):
    return http.post("/v1/flows/shop/sources/orders/ticks", json=rows, headers={"Idempotency-Key": token})


def _totals(http):
    rows = http.get("/v1/flows/shop/views/totals/rows").json()["rows"]
    return sorted((row["customer"], row["n"], row["total"]) for row in rows)


def test_a_server_is_killed_and_goes_on(tmp_path):
    token = make_token(tmp_path / "data")
    with served_process(tmp_path / "data") as served:
        with client(served.http_url, token) as http:
            _make_shop(http)
            rows = [{"id": 1, "customer": "ann", "amount": "2.50"}, {"id": 2, "customer": "bo", "amount": "1.00"}]
            assert _tick(http, rows, "a").json()["epoch"] == 1
        served.kill()
        served.start()
        with client(served.http_url, token) as http:
            assert http.get("/readyz").json() == {"status": "ready"}
            assert _totals(http) == [("ann", 1, "2.50"), ("bo", 1, "1.00")]
            assert _tick(http, rows, "a").json()["replayed"] is True
            assert _tick(http, [{"id": 2, "customer": "ann", "amount": "4.00"}], "b").json()["epoch"] == 2
            assert _totals(http) == [("ann", 2, "6.50")]
            with events(http, "/v1/flows/shop/views/totals/changes?from_epoch=1") as stream:
                kind, number, data = stream.next()
            assert (kind, number, data["last"]) == ("delta", "2", True)
            assert sorted((row["customer"], row["total"], row["_weight"]) for row in data["rows"]) == [
                ("ann", "2.50", -1),
                ("ann", "6.50", 1),
                ("bo", "1.00", -1),
            ]
        assert served.terminate() == 0
    assert token.rpartition("_")[2] not in served.log_text()


def test_a_sink_is_made_again_after_a_kill(tmp_path):
    token = make_token(tmp_path / "data")
    target = tmp_path / "out"
    with served_process(tmp_path / "data") as served:
        with client(served.http_url, token) as http:
            _make_shop(http)
            made = http.put("/v1/flows/shop/sinks/out", json={"view": "totals", "to": str(target)})
            assert made.status_code == 201, made.text
            _tick(http, [{"id": 1, "customer": "ann", "amount": "2.50"}], "a")
        served.kill()
        served.start()
        with client(served.http_url, token) as http:
            sinks = http.get("/v1/flows/shop/sinks").json()["sinks"]
            assert [(one["name"], one["view"]) for one in sinks] == [("out", "totals")]
            _tick(http, [{"id": 2, "customer": "bo", "amount": "1.00"}], "b")
            eventually(lambda: http.get("/v1/flows/shop/sinks").json()["sinks"][0]["position"] == 2)
            assert http.delete("/v1/flows/shop/sinks/out").status_code == 204
    assert any(target.rglob("*.parquet"))


def test_sigterm_lets_a_watch_end_and_refuses_what_is_new(tmp_path):
    token = make_token(tmp_path / "data")
    with served_process(tmp_path / "data") as served:
        seen = []
        with client(served.http_url, token) as http:
            _make_shop(http)

            def watch():
                with (
                    client(served.http_url, token) as own,
                    events(own, "/v1/flows/shop/views/totals/changes?snapshot=true") as stream,
                ):
                    seen.append(stream.next()[0])
                    seen.append(stream.next())

            reading = threading.Thread(target=watch)
            reading.start()
            eventually(lambda: seen)
            assert served.terminate() == 0
            reading.join(10)
        kind, _, data = seen[1]
        assert (kind, data["code"]) == ("end", "SERVER_DRAINING")


def _serve(*options, **given):
    command = [sys.executable, "-c", "from weirflow.cli import main; main()", "serve", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **given)


def test_check_says_what_would_be_done_and_starts_nothing(tmp_path):
    make_token(tmp_path / "data")
    done = _serve("--check", "--json", "--path", tmp_path / "data", "--http", "127.0.0.1:0", "--flight", "off")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)["plan"]
    assert (plan["profile"], plan["callers"], plan["flight"]) == ("single-node-durable", "1 tokens", "off")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "127.0.0.1:0"], "no tokens"),
        (["--insecure", "--http", "0.0.0.0:0"], "needs tokens"),
        (["--insecure", "--http", "nonsense"], "host:port"),
        (["--insecure", "--http", "off", "--flight", "off"], "needs at least one address"),
        (["--insecure", "--http", "127.0.0.1:0", "--tls-key", "key.pem"], "certificate and its key"),
    ],
)
def test_what_must_not_listen_does_not(tmp_path, options, said):
    done = _serve("--path", tmp_path / "data", "--flight", "127.0.0.1:0", *options)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_flow_that_cannot_be_opened_keeps_no_other_from_being_served(tmp_path):
    token = make_token(tmp_path / "data")
    with served_process(tmp_path / "data") as served:
        with client(served.http_url, token) as http:
            _make_shop(http)
            assert http.put("/v1/flows/broken").status_code == 201
            assert http.put("/v1/flows/broken/sources/s", json={"schema": "x INT"}).status_code == 201
        served.kill()
        for file in (tmp_path / "data" / "flows" / "broken").rglob("*"):
            if file.is_file() and file.name != "identity":
                file.write_bytes(b"damaged")
        served.start()
        with client(served.http_url, token) as http:
            assert [one["name"] for one in http.get("/v1/flows").json()["flows"]] == ["shop"]
            assert http.get("/v1/flows/broken").status_code == 500
    assert "broken" in served.log_text()
