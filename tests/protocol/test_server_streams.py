"""Streaming queries of a server: their progress in every door, and their life over its end."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from support import detached_jobs
from support.detached_jobs import job_pids, land, no_job_left, written
from support.server import client, events, eventually, make_token, served_process

from weirflow import RemoteSession
from weirflow.errors import NotAllowed

BEGIN = """
def begin(session):
    flow = session.flow("shop")
    flow.register_source("numbers", "n BIGINT")
    flow.register_view("sums", "SELECT count(*) AS count, sum(n) AS total FROM numbers")
    numbers = session.read_stream("json", {inbox!r}, schema="n BIGINT", maxFilesPerTrigger=1)
    return flow.attach(numbers, "numbers", trigger="200 milliseconds")
"""


@pytest.fixture
def folder(tmp_path):
    with no_job_left(tmp_path):
        yield tmp_path


def _sums(http):
    return http.get("/v1/flows/shop/views/sums/rows").json()["rows"]


def test_progress_over_every_door_and_after_a_kill(folder):
    land(folder, 1, 2)
    (folder / "begin.py").write_text(BEGIN.format(inbox=str(folder / "inbox")))
    token = make_token(folder / "data")
    other = make_token(folder / "data", "operator", "of another flow", flows=("other",))
    with served_process(folder / "data", "--cores", "1", "--startup", f"{folder}/begin.py:begin") as served:
        with client(served.http_url, token) as http:
            eventually(lambda: _sums(http) == [{"count": 2, "total": 3}], 60)
            with events(http, "/v1/streams/shop/numbers/progress") as stream:
                kind, number, data = stream.next()
                assert (kind, number, data["batch"], data["input_rows"]) == ("progress", "0", 0, 2)
                land(folder, 5)
                while data["input_rows"] != 1:
                    kind, number, data = stream.next()
                assert (kind, int(number)) == ("progress", data["batch"])
            headers = {"Last-Event-ID": "0"}
            with events(http, "/v1/streams/shop/numbers/progress", headers=headers) as stream:
                assert int(stream.next()[1]) > 0
            assert [one["name"] for one in http.get("/v1/streams").json()["streams"]] == ["shop/numbers"]
            assert http.get("/v1/streams/shop/numbers").json()["error"] is None
        with RemoteSession(served.flight_url, token) as session:
            [query] = session.streams.active
            assert (query.name, query.exception, query.last_progress() is None) == ("shop/numbers", None, False)
        with client(served.http_url, other) as http:
            assert http.get("/v1/streams").json() == {"streams": []}
            for path in ("/v1/streams/shop/numbers", "/v1/streams/shop/numbers/progress", "/v1/streams/shop/none"):
                assert http.get(path).status_code == 403
            assert http.post("/v1/streams/shop/numbers/stop", json={}).status_code == 403
        with RemoteSession(served.flight_url, other) as session:
            assert session.streams.active == []
            with pytest.raises(NotAllowed):
                session.streams.get("shop/numbers")
        served.kill()
        land(folder, 10)
        served.start()
        with client(served.http_url, token) as http:
            eventually(lambda: _sums(http) == [{"count": 4, "total": 18}], 60)


@pytest.mark.campaign
def test_a_job_is_started_again_with_the_server(folder):
    land(folder, 1, 2)
    token = make_token(folder / "data")
    with served_process(folder / "data", "--cores", "1") as served:
        with client(served.http_url, token) as http:
            function = f"{detached_jobs.__file__}:copy"
            made = http.post("/v1/streams", json={"function": function, "name": "copying"})
            assert made.status_code == 201, made.text
            eventually(lambda: written(folder) == Counter([1, 2]), 120)
        served.kill()
        for pid in job_pids(folder):
            os.kill(pid, signal.SIGKILL)
        land(folder, 3)
        served.start()
        with client(served.http_url, token) as http:
            eventually(lambda: written(folder) == Counter([1, 2, 3]), 120)
            with events(http, "/v1/streams/copy/progress") as stream:
                assert stream.next()[0] == "progress"
            assert http.post("/v1/streams/copy/stop", json={}).status_code == 200
        served.kill()
        served.start()
        with client(served.http_url, token) as http:
            streams = http.get("/v1/streams").json()["streams"]
            assert [(one["job"], one["state"]) for one in streams] == [("copying", "stopped")]
