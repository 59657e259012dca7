"""Messages that nobody would send on purpose: the server answers, or hangs up, and is as it was."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket

import psutil
import pytest
from support.server import client, served

from weirflow.server.http.routes import ROUTES

ODD = [
    *(b"", b"\x00", b"\xff" * 9, b"{", b"[[[[", b'{"sql":', b"null", b"-1", b"1e999", b'"\\ud800"', b"%00", b"../.."),
    *(b"\r\n\r\n", b"'; DROP TABLE x; --", b"{}" * 50, "é\u202e\U0001f600".encode(), b"A" * 70_000, b"9" * 400),
    b'{"deltas":{"s":[{"id":{}}]}}',
]
BODIES = [
    b'{"deltas":{"s":[{"id":1,"x":"a"}]},"token":"t","timeout":1}',
    b'[{"id":1,"x":"a","_weight":-1}]',
    b'{"sql":"SELECT * FROM v WHERE id = 1"}',
    b'{"schema":"id BIGINT, x STRING","key":["id"]}',
    b'{"sql":"SELECT id, upper(x) AS y FROM s","replace":true}',
]
# What a fuzz must not do by chance: end the server, or start programs.
_LEFT_OUT = {"drain a node", "start streams", "save a flow", "run SQL", "submit SQL", "make a flow"}


def _request(rng):
    route = rng.choice([one for one in ROUTES if one.what not in _LEFT_OUT])
    path = route.path.replace("{flow}", "f").replace("{source}", "s").replace("{view}", "v").replace("{node:path}", "n")
    for name in ("sink", "operation", "stream", "savepoint"):
        path = path.replace(f"{{{name}}}", "none")
    if rng.random() < 0.05:
        path = "/v1/flows/f/views/nope/changes"
    body = b"" if route.method == "GET" else rng.choice(BODIES)
    lines = [f"{route.method} {path} HTTP/1.1", "Host: h", f"Content-Length: {len(body)}", "Connection: close"]
    lines += rng.sample(
        ["Accept: application/vnd.apache.arrow.stream", "Content-Type: application/vnd.apache.arrow.stream",
         "Last-Event-ID: 5", "Idempotency-Key: k", "Authorization: Bearer wf_0_0", "Transfer-Encoding: chunked"],
        rng.randrange(3),
    )  # fmt: skip
    return bytearray("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def _mutated(rng):
    message = _request(rng)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(message) + 1)
        match rng.randrange(5):
            case 0:
                message[at:at] = rng.choice(ODD)
            case 1:
                del message[at : at + rng.randrange(1, 20)]
            case 2 if message:
                message[rng.randrange(len(message))] = rng.randrange(256)
            case 3:
                message[at:at] = message[: rng.randrange(1, 60)]
            case _:
                message = message[: max(at, 1)]
    return bytes(message)


def _send(address, message):
    """The answer, or nothing if the server hung up or waits for more."""
    with socket.create_connection(address, timeout=10) as wire:
        answer = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            wire.sendall(message)
            with contextlib.suppress(
                OSError
            ):  # "not connected": the server has hung up already, perhaps with an answer
                wire.shutdown(socket.SHUT_WR)
            while len(answer) < 1_000_000 and (piece := wire.recv(65_536)):
                answer += piece
        return answer


def _fuzz(count, seed):
    rng = random.Random(seed)
    with served() as server, client(server.http_url) as http:
        http.put("/v1/flows/f")
        http.put("/v1/flows/f/sources/s", json={"schema": "id BIGINT, x STRING"})
        http.put("/v1/flows/f/views/v", json={"sql": "SELECT id, x FROM s"})
        host, _, port = server.http_url.partition("//")[2].rpartition(":")
        process = psutil.Process(os.getpid())
        for number in range(count):
            if number == min(count // 4, 200):
                before = process.memory_info().rss, process.num_fds(), process.num_threads()
            answer = _send((host, int(port)), _mutated(rng))
            if answer:
                assert answer.startswith(b"HTTP/1.1 "), answer[:100]
                head, _, body = answer.partition(b"\r\n\r\n")
                if b" 500 " in head[:14]:
                    assert json.loads(body)["code"] != "INTERNAL_ERROR", (number, seed)
        http.post("/v1/flows/f/discard")
        assert http.put("/v1/flows/after").status_code == 201
        after = process.memory_info().rss, process.num_fds(), process.num_threads()
        assert after[1] <= before[1] + 20
        assert after[2] <= before[2] + 60
        return after[0] - before[0]


@pytest.mark.usefixtures("exclusive_spark")
def test_a_few_hundred_mutated_messages():
    _fuzz(300, seed=1)


@pytest.mark.campaign
@pytest.mark.usefixtures("exclusive_spark")
@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_mutated_messages(seed):
    assert _fuzz(2_500, seed=seed) < 100 << 20
