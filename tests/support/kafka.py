"""A real Kafka broker for tests: one KRaft node on loopback, gone with the test run however that ends."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self

from confluent_kafka.admin import AdminClient, NewTopic

from weirflow.spark.jars.artifacts import Artifact, Coordinate, Dependencies
from weirflow.spark.jars.cache import JarCache

if TYPE_CHECKING:
    from types import TracebackType

_ARTIFACTS = tuple(
    Artifact(Coordinate.parse(coordinate), Dependencies.ALL)
    for coordinate in ("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36")
)
_FAST_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_START_ATTEMPTS = 3

# Runs its arguments as a program that the kernel kills when the thread that started it is no more.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class KafkaBroker:
    """A broker that is ready for clients once constructed.

    Construct it in the main thread: the broker ends with the thread that started it. Topics come into being
    when they are first written, with one partition; `create_topic` makes them with more.

    Args:
        timeout: seconds until the broker must be ready; fetching its jars for the first time is not counted.
    """

    def __init__(self, *, timeout: float = 60.0) -> None:
        java = shutil.which("java")
        if java is None:
            raise RuntimeError("java is not on the PATH")
        self._java = java
        self._classpath = os.pathsep.join(map(str, _broker_jars(Path(java))))
        self._folder = Path(tempfile.mkdtemp(prefix="weirflow-kafka-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        deadline = time.monotonic() + timeout
        try:
            for attempt in range(1, _START_ATTEMPTS + 1):
                try:
                    self._start(deadline)
                except BrokerEndedError:
                    # A port may be taken by somebody else before the broker binds it.
                    if attempt == _START_ATTEMPTS:
                        raise
                else:
                    break
        except BaseException:
            self.stop()
            raise

    @property
    def bootstrap(self) -> str:
        """What clients call ``bootstrap.servers``."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process of the running broker."""
        assert self._process is not None
        return self._process.pid

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Create a topic and wait until the broker has it."""
        # Kept until the answer is there: an AdminClient that goes away takes its requests with it.
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        created = admin.create_topics([NewTopic(name, partitions, 1)])
        created[name].result(timeout=30)

    def stop(self) -> None:
        """End the broker and remove its data; may be called again."""
        self._end_process()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self, deadline: float) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        self._port, controller_port = free_ports(2)
        properties = self._folder / "server.properties"
        properties.write_text(_server_properties(self._port, controller_port, self._folder / "data"))
        log = (self._folder / "broker.log").open("wb")
        with log:
            cluster = str(uuid.uuid4())
            format_storage = self._command("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties))
            subprocess.run(format_storage, stdout=log, stderr=subprocess.STDOUT, timeout=60, check=True)
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(properties)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_ready(deadline)

    def _command(self, main: str, *arguments: str) -> list[str]:
        return dying_with_parent([self._java, "-Xmx512m", *_FAST_START, "-cp", self._classpath, main, *arguments])

    def _wait_until_ready(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            self._check_alive()
            # Librdkafka complains aloud about a closed port, so the port is tried first.
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                break
            time.sleep(0.05)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        while time.monotonic() < deadline:
            self._check_alive()
            if admin.list_topics(timeout=max(1.0, deadline - time.monotonic())).brokers:
                return
            time.sleep(0.05)
        raise TimeoutError(f"the Kafka broker was not ready in time; its log ends:\n{self._log_tail()}")

    def _check_alive(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise BrokerEndedError(f"the Kafka broker ended; its log ends:\n{self._log_tail()}")

    def _log_tail(self) -> str:
        lines = (self._folder / "broker.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-20:])

    def _end_process(self) -> None:
        # Its data is thrown away, so it need not be asked politely, which takes seconds.
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None


def dying_with_parent(command: list[str]) -> list[str]:
    """The command as one whose process ends with the thread that starts it."""
    return [sys.executable, "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now; held together, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class BrokerEndedError(RuntimeError):
    """The broker ended before it was ready."""


def _broker_jars(java: Path) -> list[Path]:
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    ivy_jar = next((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
    cache = Path(os.environ.get("WEIRFLOW_CACHE_DIR") or Path.home() / ".cache" / "weirflow")
    return JarCache(cache, java, ivy_jar).get(_ARTIFACTS)


def _server_properties(port: int, controller_port: int, data: Path) -> str:
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
