"""Servers for tests: the real command in a child, or a ``Server`` in this process; and requests to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from weirflow.metadata import open_metadata
from weirflow.server.access.caller import Role
from weirflow.server.access.tokens import Tokens
from weirflow.server.server import Server

if TYPE_CHECKING:
    from pathlib import Path

_COMMAND = [sys.executable, "-c", "from weirflow.cli import main; main()", "serve"]
_PATIENCE = 60.0


def make_token(path: Path, role: str = "admin", name: str = "test", **given: Any) -> str:
    """A token of the server that is, or will be, at a path."""
    path.mkdir(parents=True, exist_ok=True)
    with open_metadata(path / "metadata.db") as store:
        return Tokens(store).create(name, Role(role), **given)[1]


@dataclass
class ServedProcess:
    """``weirflow serve`` as a child of this process.

    Attributes:
        path: the folder of its Session; of one that does not keep what it has there, beside its log.
        keeps: whether its Session has that folder.
    """

    path: Path
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    http: str = "127.0.0.1:0"
    flight: str = "127.0.0.1:0"
    keeps: bool = True
    process: subprocess.Popen[str] | None = None
    http_url: str = ""
    flight_url: str = ""

    def start(self) -> ServedProcess:
        """Start it, and wait until it says that it is ready; ports that it has got are kept for the next start."""
        log = (self.path.parent / f"{self.path.name}.log").open("a")
        variables = {"WEIRFLOW_SERVER_WARM": "false", **os.environ, **self.environment}
        place = ["--path", str(self.path)] if self.keeps else []
        given = [*place, "--http", self.http, "--flight", self.flight, "--json", *self.options]
        self.process = subprocess.Popen(
            [*_COMMAND, *given], stdout=subprocess.PIPE, stderr=log, text=True, env=variables, start_new_session=True
        )
        log.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the server ended: {self.log_text()}")
        ready = json.loads(line)["ready"]
        self.http_url, self.flight_url = ready["http"] or "", ready["flight"] or ""
        self.http = self.http_url.partition("//")[2] or "off"
        self.flight = self.flight_url.partition("//")[2] or "off"
        return self

    def log_text(self) -> str:
        """What it has logged."""
        return (self.path.parent / f"{self.path.name}.log").read_text()

    def kill(self) -> None:
        """End it at once, with the processes that it has started."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self._reap()

    def terminate(self) -> int:
        """Have it drain; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        code = self.process.wait(_PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code


@contextmanager
def served_process(path: Path, *options: str, **given: Any) -> Iterator[ServedProcess]:
    """The real command for the block."""
    served = ServedProcess(path, options, **given).start()
    try:
        yield served
    finally:
        if served.process is not None:
            served.kill()


@contextmanager
def served(path: Path | None = None, **settings: Any) -> Iterator[Server]:
    """A server in this process, which starts Spark only when it is needed; without a path it keeps nothing."""
    session = {} if path is None else {"path": path}
    given = {"http": "127.0.0.1:0", "flight": "off", "warm": False, "insecure": path is None, **settings}
    with Server(session, **given) as server:
        yield server


def client(url: str, token: str | None = None, **given: Any) -> httpx.Client:
    """An HTTP client of a server."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE, trust_env=False, **given)


@dataclass
class EventStream:
    """Server-sent events as they come."""

    lines: Iterator[str]

    def next(self) -> tuple[str, str | None, Any]:
        """The next event: its kind, its id, its data."""
        kind, number, data = "message", None, ""
        for line in self.lines:
            if not line:
                if data:
                    return kind, number, json.loads(data)
                kind, number = "message", None
            elif line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("id: "):
                number = line.removeprefix("id: ")
            elif line.startswith("data: "):
                data += line.removeprefix("data: ")
        raise StopIteration


@contextmanager
def events(http: httpx.Client, path: str, **given: Any) -> Iterator[EventStream]:
    """The events of a path."""
    with http.stream("GET", path, **given) as answer:
        assert answer.status_code == 200, answer.read()
        yield EventStream(answer.iter_lines())


def eventually(check: Any, seconds: float = 10.0) -> Any:
    """Ask again and again until the answer is true."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.02)
    return found
