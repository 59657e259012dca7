"""A secret that is in a token, a statement and a row is in no log, error, metric, process list or other file."""

from __future__ import annotations

import subprocess

import psutil
from support.server import client, make_token, served_process

CANARY = "canary4d1f7e"


def test_a_secret_leaves_no_trace(tmp_path):
    path = tmp_path / "data"
    token = make_token(path, "admin", "ann")
    secret = token.split("_", 2)[2]
    said = []
    with served_process(path, "--log-level", "debug", "--cores", "1") as served:
        with client(served.http_url, token) as http:
            http.put("/v1/flows/shop")
            http.put("/v1/flows/shop/sources/s", json={"schema": "id BIGINT, card STRING"})
            http.put("/v1/flows/shop/views/v", json={"sql": "SELECT count(*) AS n FROM s"})
            said += [http.post("/v1/flows/shop/ticks", json={"deltas": {"s": [{"id": 1, "card": CANARY}]}}).text]
            said += [
                http.post("/v1/sql", json={"sql": f"SELECT count(*) AS n FROM shop.s WHERE card = '{CANARY}'"}).text
            ]
            catalog = f"CREATE CATALOG lake LOCATION 'iceberg-rest+http://127.0.0.1:1/x' OPTIONS (token = '{CANARY}')"
            said += [http.post("/v1/sql", json={"sql": catalog}).text]
            said += [http.post("/v1/operations", json={"sql": f"SELECT '{CANARY}' AS x FROM nowhere"}).text]
            said += [
                http.get(one).text for one in ("/metrics", "/v1/operations", "/v1/nodes", "/v1/session", "/v1/flows")
            ]
        with client(served.http_url, f"wf_{CANARY}_{CANARY}") as wrong:
            said += [wrong.get("/v1/flows").text]
        with client(served.http_url, f"{CANARY}.{CANARY}.{CANARY}") as wrong:
            said += [wrong.get("/v1/flows").text]
        assert served.process is not None
        family = [psutil.Process(served.process.pid), *psutil.Process(served.process.pid).children(recursive=True)]
        said += [" ".join(one.cmdline()) for one in family]
        served.terminate()
    for text in (*said, served.log_text()):
        assert CANARY not in text
        assert secret not in text
    files = [file for file in path.rglob("*") if file.is_file()]
    assert (path / "server" / "audit.log") in files
    for file in files:
        content = file.read_bytes()
        assert secret.encode() not in content, file
        assert CANARY.encode() not in content or "flows" in file.parts, file  # the flow's own rows, which it keeps
    listed = subprocess.run(["ls", "-lR", str(path / "server")], capture_output=True, text=True, check=True).stdout
    assert "audit.log" in listed
