"""Checkpoint storage on a real S3 server."""

import http.server
import socket
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from support.s3 import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from support.storage_contract import MB, StorageContract, listed, race

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ObjectExists, StorageError


@pytest.fixture(scope="module")
def server():
    with s3_server() as running:
        yield running


@pytest.fixture
def bucket(server):
    return server.make_bucket()


class TestS3(StorageContract):
    @pytest.fixture
    def storage(self, server, bucket):
        return open_checkpoint_storage(f"s3://{bucket}/prefix/of/flow", server.options)


def test_put_if_absent_has_one_winner_of_sixteen_clients(server, bucket):
    clients = [open_checkpoint_storage(f"s3://{bucket}/p", server.options) for _ in range(16)]
    for number in range(25):
        name = f"epochs/{number}"
        outcomes = race(16, lambda i, name=name: clients[i].put_if_absent(name, b"%d" % i * 1000) and i)
        winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
        losers = [type(outcome) for outcome in outcomes if not isinstance(outcome, int)]
        assert (len(winners), losers) == (1, [ObjectExists] * 15)
        assert clients[0].get(name) == b"%d" % winners[0] * 1000


def test_a_prefix_is_a_storage_of_its_own(server, bucket):
    whole = open_checkpoint_storage(f"s3://{bucket}", server.options)
    for name in ["flow/a", "flow2/b", "c"]:
        whole.put(name, b"x")
    assert listed(open_checkpoint_storage(f"s3://{bucket}/flow", server.options)) == [("a", 1)]
    assert listed(whole) == [("c", 1), ("flow/a", 1), ("flow2/b", 1)]


def test_credentials_and_endpoint_from_the_environment(server, bucket, monkeypatch):
    for key, value in server.options.items():
        monkeypatch.setenv(f"AWS_{key.upper()}", value)
    monkeypatch.setenv("AWS_BUCKET", "another-bucket")
    open_checkpoint_storage(f"s3://{bucket}").put("a", b"x")
    assert listed(open_checkpoint_storage(f"s3://{bucket}", server.options)) == [("a", 1)]


def test_listing_goes_on_after_the_first_page(server, bucket):
    storage = open_checkpoint_storage(f"s3://{bucket}", server.options)
    names = [f"{number % 7}/{number}" for number in range(1050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: storage.put(name, b"x"), names))
    assert listed(storage) == [(name, 1) for name in sorted(names)]


def test_a_failed_upload_leaves_no_parts(server, bucket):
    def failing():
        for _ in range(20):
            yield b"x" * MB
        raise ValueError

    storage = open_checkpoint_storage(f"s3://{bucket}", server.options)
    with pytest.raises(ValueError, match=r"^$"):
        storage.put("a", failing())
    assert (listed(storage), server.unfinished_uploads(bucket)) == ([], 0)


@pytest.mark.campaign
def test_huge_objects_are_never_in_memory(server, bucket):
    script = """
        import json, resource, sys
        from weirflow.checkpoint import open_checkpoint_storage

        storage = open_checkpoint_storage(sys.argv[1], json.loads(sys.stdin.read()))
        storage.put("warm", b"x" * 2**20)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        storage.put("huge", (bytes([i]) * 2**20 for i in range(200)))
        total = sum(len(chunk) for chunk in storage.stream("huge", 2**20))
        print(total, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), f"s3://{bucket}"],
        input=str(server.options).replace("'", '"'),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    total, grown_mb = map(int, result.stdout.split())
    assert total == 200 * MB
    assert grown_mb < 100


def every_call(storage):
    yield lambda: storage.put("a", b"x")
    yield lambda: storage.put("a", (b"x" * MB for _ in range(20)))
    yield lambda: storage.put_if_absent("a", b"x")
    yield lambda: storage.put_if_match("a", b"x", '"version"')
    yield lambda: storage.get("a")
    yield lambda: storage.get_range("a", 0, 1)
    yield lambda: list(storage.stream("a"))
    yield lambda: list(storage.list())
    yield lambda: storage.delete("a")


def test_a_missing_bucket_says_so(server):
    storage = open_checkpoint_storage("s3://no-such-bucket", server.options)
    for call in every_call(storage):
        with pytest.raises(StorageError) as caught:
            call()
        if caught.value.code != "OBJECT_CHANGED":
            assert caught.value.code == "STORAGE_FAILED"
            assert "create the bucket" in caught.value.hint


def test_a_closed_port_is_an_error_within_ten_seconds():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
    storage = open_checkpoint_storage("s3://bucket", S3Server(endpoint).options)
    assert_unreachable(storage, endpoint, list(every_call(storage))[:1])
    assert_unreachable(storage, endpoint, list(every_call(storage))[4:5])


def test_a_server_that_never_answers_is_an_error_within_ten_seconds():
    with closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        storage = open_checkpoint_storage("s3://bucket", S3Server(endpoint).options)
        assert_unreachable(storage, endpoint, [lambda: storage.put_if_absent("a", b"x")])


def test_the_time_to_wait_can_be_set():
    with closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = {**S3Server(endpoint).options, "read_timeout": "200ms"}
        storage = open_checkpoint_storage("s3://bucket", options)
        # Among them uploads in parts, which may take minutes by default.
        assert_unreachable(storage, endpoint, list(every_call(storage))[1:4])


def assert_unreachable(storage, endpoint, calls):
    for call in calls:
        began = time.monotonic()
        with pytest.raises(StorageError) as caught:
            call()
        assert time.monotonic() - began < 12
        assert caught.value.code == "STORAGE_FAILED"
        assert endpoint in caught.value.message
        assert "check the endpoint" in caught.value.hint
        assert_no_secret(caught.value)


def test_plain_http_must_be_allowed(server):
    options = {**server.options, "allow_http": "false"}
    with pytest.raises(StorageError, match="allow_http"):
        open_checkpoint_storage("s3://bucket", options).get("a")


@contextmanager
def server_that_echoes_credentials(status: int):
    body = f"<Error><Code>Refused</Code><Id>{ACCESS_KEY}</Id><Key>{SECRET_KEY}</Key></Error>".encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  # the names http.server asks for

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("status", [400, 401, 403])
def test_credentials_are_never_shown(status):
    with server_that_echoes_credentials(status) as endpoint:
        storage = open_checkpoint_storage("s3://bucket", S3Server(endpoint).options)
        for call in every_call(storage):
            with pytest.raises(StorageError) as caught:
                call()
            assert_no_secret(caught.value)
            assert caught.value.code == "STORAGE_FAILED"
            if status != 400:
                assert "check the credentials" in caught.value.hint
    assert_no_secret(storage)
    assert_no_secret(storage.uri)


def assert_no_secret(thing):
    shown = f"{thing!s} {thing!r} {getattr(thing, '__cause__', None)!r}"
    assert ACCESS_KEY not in shown
    assert SECRET_KEY not in shown
