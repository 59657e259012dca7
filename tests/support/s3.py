"""A real S3 server on loopback, in a child process that ends with the test run."""

import logging
import os
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ACCESS_KEY = "AKIACANARYACCESSKEY0"
SECRET_KEY = "canary/secret+key/that/no/message/may/repeat"


@dataclass(frozen=True)
class S3Server:
    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "allow_http": "true",
            "region": "us-east-1",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
        }

    def make_bucket(self) -> str:
        bucket = f"bucket-{uuid.uuid4().hex}"
        request = urllib.request.Request(f"{self.endpoint}/{bucket}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return bucket

    def unfinished_uploads(self, bucket: str) -> int:
        with urllib.request.urlopen(f"{self.endpoint}/{bucket}?uploads", timeout=30) as answer:
            return answer.read().count(b"<UploadId>")


@contextmanager
def s3_server() -> Iterator[S3Server]:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        try:
            port = child.stdout.readline().strip()
            assert port, "the S3 server did not start"
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            child.kill()


def _serve() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415  # child only
    from werkzeug.serving import make_server  # noqa: PLC0415  # child only

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = DomainDispatcherApplication(create_backend_app)
    one_at_a_time = threading.Lock()

    def app(environ, start_response):
        # moto tests If-None-Match and then writes, without a lock: about one race in 600 has two winners.
        with one_at_a_time:
            return moto(environ, start_response)

    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()
