"""Spark whose driver runs beside this process: local Spark, and standalone clusters reached through it.

PySpark allows one driver for each process. Sessions that ask for the same launch share it and are isolated from each
other by Spark sessions of their own; the last one to close stops it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.clientserver import ClientServerConnection, FinalizerWorker
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from weirflow.errors import (
    EndpointUnreachable,
    SessionConflict,
    SessionError,
    WeirflowError,
)
from weirflow.spark.launch.home import spark_home
from weirflow.spark.launch.java import find_java
from weirflow.spark.launch.jvm import Jvm, JvmOptions
from weirflow.spark.launch.preflight import MasterWatch, check_masters
from weirflow.spark.launch.scratch import Scratch
from weirflow.spark.launch.warmup import WarmUp

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.spark.launch.endpoint import HostPort

_log = logging.getLogger(__name__)

_LOOKUP_SECONDS = 4.0  # what a master gets to answer however slow the JVM was
_SOCKET_FOLDER_LENGTH = 60  # the kernel allows 107 characters, of which Spark's file name takes 43

SCRATCH = "{scratch}"
"""Stands in a launch's conf for the driver's temporary folder, which is not known before it starts."""


@dataclass(frozen=True)
class Launch:
    """What decides whether two Sessions can share one driver."""

    master: str
    conf: tuple[tuple[str, str], ...]
    memory: str
    cache_dir: Path
    class_archive: bool
    worker_python: Path
    loopback: bool
    log_level: str
    jars: tuple[Path, ...] = ()
    """Connector jars for the driver's class path; on a cluster they also go to the executors by ``spark.jars``."""
    masters: tuple[HostPort, ...] = ()
    """Where the masters of a standalone cluster listen; none for local Spark."""
    start_timeout: float = 0.0
    """Seconds such a cluster may take to accept the driver."""


class Driver:
    """A started driver: its JVM, its SparkContext and the first Spark session."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.users = 0
        self._began = time.monotonic()
        self._scratch = Scratch()
        self._gateway: Any = None
        self._previous_gateway = SparkContext._gateway  # noqa: SLF001 - a stopped Spark of the user's own
        try:
            self._jvm = Jvm(self._jvm_options())
            try:
                self.session = self._start_spark()
            except BaseException:
                self._forget()
                self._jvm.kill()
                raise
        except BaseException:
            self._scratch.close()
            raise
        self.context: SparkContext = self.session.sparkContext

    @property
    def jvm(self) -> Jvm:
        """The driver's JVM."""
        return self._jvm

    def close(self) -> None:
        """Stop Spark and wait until its JVM is gone."""
        if self._jvm.exit_code is None:
            if self._jvm.writes_archive_at_exit:
                _log.warning("writing an archive of Spark's classes, once (about 10 s); later starts are faster")
            self._jvm.forward_stderr = False
        self._warm_up.join()
        with warnings.catch_warnings():
            # PySpark warns that a JVM which is gone could not be stopped.
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                self.session.stop()
            except (Py4JError, OSError):  # as above; whoever used it was told
                _log.debug("Spark's JVM was gone before it was stopped", exc_info=True)
        self._forget()
        self._jvm.close()
        self._scratch.close()

    def _jvm_options(self) -> JvmOptions:
        scratch = self._scratch.path.as_posix()
        conf = {name: value.replace(SCRATCH, scratch) for name, value in self.launch.conf}
        conf.setdefault("spark.local.dir", f"{scratch}/local")
        sockets = scratch if len(scratch) <= _SOCKET_FOLDER_LENGTH else "/tmp"  # noqa: S108 - its names are random
        conf.setdefault("spark.python.unix.domain.socket.dir", sockets)
        conf["spark.master"] = self.launch.master
        return JvmOptions(
            java=find_java(),
            spark_home=spark_home(),
            conf=conf,
            memory=self.launch.memory,
            scratch=self._scratch.path,
            cache_dir=self.launch.cache_dir,
            class_archive=self.launch.class_archive,
            worker_python=self.launch.worker_python,
            loopback=self.launch.loopback,
            jars=self.launch.jars,
        )

    def _start_spark(self) -> SparkSession:
        try:
            self._gateway = _connect_gateway(self._jvm)
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - PySpark has no public way
            SparkContext._ensure_initialized(gateway=self._gateway)  # noqa: SLF001 - as above
            # The JVM's own start counts too: the caller waits for the sum.
            self._check_masters(self.launch.start_timeout - (time.monotonic() - self._began))
            self._warm_up = WarmUp(self._gateway.jvm)
            with self._watched_masters(), _own_interrupt_handler():
                context = SparkContext(conf=SparkConf())
            # PySpark reads PYSPARK_PYTHON from this process's environment, which is not ours to change.
            context.pythonExec = str(self.launch.worker_python)
            context.setLogLevel(self.launch.log_level.upper())
            session = SparkSession(context)
        except WeirflowError:
            raise
        except Exception as error:
            raise self._start_error(error) from error
        self._jvm.forward_stderr = True
        return session

    def _check_masters(self, seconds: float) -> None:
        if self.launch.masters:
            secret = dict(self.launch.conf).get("spark.authenticate.secret")
            check_masters(self._gateway.jvm, self.launch.masters, secret, max(seconds, _LOOKUP_SECONDS))

    def _watched_masters(self) -> contextlib.AbstractContextManager[object]:
        if not self.launch.masters:
            return contextlib.nullcontext()
        seconds = self.launch.start_timeout
        return MasterWatch(seconds, lambda: self._check_masters(seconds), self._jvm.kill)

    def _start_error(self, error: Exception) -> WeirflowError:
        if not self.launch.masters:
            return SessionError(f"Spark could not be started: {error}\n{self._jvm.tail()}")
        return EndpointUnreachable(
            f"The Spark master at {self.launch.master} did not take the application.",
            hint="check the master's log and that it has workers",
        )

    def _forget(self) -> None:
        """Make PySpark forget this JVM, so that the next driver can start."""
        if self._gateway is not None:
            self._gateway.shutdown()
            _join_finalizers()
        if SparkContext._gateway is not self._gateway:  # noqa: SLF001 - another driver took the place of a dead one
            return
        context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public way
        server = getattr(context, "_accumulatorServer", None)
        if server is not None:
            server.shutdown()  # PySpark gives up before this if the JVM is gone
        SparkContext._active_spark_context = None  # noqa: SLF001 - as above
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001 - as above
        SparkContext._gateway = self._previous_gateway  # noqa: SLF001 - as above
        SparkContext._jvm = self._previous_gateway.jvm if self._previous_gateway else None  # noqa: SLF001


def _connect_gateway(jvm: Jvm) -> Any:
    """PySpark's own gateway object, connected to our JVM instead of one it starts itself."""
    variables = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    os.environ.update(variables)
    try:
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]  # PySpark does not type this module
    finally:
        for name in variables:
            os.environ.pop(name, None)
    _survive_interrupts(gateway._gateway_client)  # noqa: SLF001 - Py4J has no public way
    return gateway


class _Interrupted(BaseException):
    """Carries Ctrl-C past Py4J, which would log it and cut off the connections of other threads."""

    def __init__(self, interrupt: BaseException) -> None:
        super().__init__()
        self.interrupt = interrupt


class _Connection(ClientServerConnection):  # type: ignore[misc]  # Py4J is not typed
    """A thread's connection to the JVM, given up when Ctrl-C cuts off an answer.

    Otherwise the answer, once it came, would be taken for that of the next command.
    """

    def send_command(self, command: str) -> Any:
        try:
            return super().send_command(command)
        except KeyboardInterrupt as interrupt:
            self.close()
            raise _Interrupted(interrupt) from interrupt


def _survive_interrupts(client: Any) -> None:
    """Make a gateway's client use ``_Connection`` from its next command on."""

    def create() -> _Connection:
        connection = _Connection(client.java_parameters, client.python_parameters, client.gateway_property, client)
        connection.connect_to_java_server()
        client.set_thread_connection(connection)
        return connection

    send = client.send_command

    def send_command(*args: Any, **kwargs: Any) -> Any:
        try:
            return send(*args, **kwargs)
        except _Interrupted as carried:
            raise carried.interrupt from None

    client._create_new_connection = create  # noqa: SLF001 - Py4J has no public way
    client.send_command = send_command
    client.get_thread_connection().close()


@contextlib.contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep PySpark from replacing the process's Ctrl-C handler.

    PySpark's calls Spark from within whatever call was interrupted, on the same connection. Operations stop their
    Spark work themselves.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _join_finalizers() -> None:
    """Py4J's garbage collector sleeps for a second before it sees that its gateway is gone; wait for it."""
    for thread in threading.enumerate():
        if isinstance(thread, FinalizerWorker):
            thread.join(timeout=3.0)


_lock = threading.RLock()
_driver: Driver | None = None


def acquire_driver(launch: Launch) -> tuple[Driver, SparkSession]:
    """The process's driver, started if need be, and a Spark session of the caller's own.

    Raises ``SessionConflict`` when the process already runs a Spark that was launched otherwise. Each call is
    answered by one ``release_driver``.
    """
    global _driver  # noqa: PLW0603 - PySpark has one driver for each process, and this is it
    with _lock:
        if _driver is not None and _driver.jvm.exit_code is not None:
            _driver.close()  # its JVM died; those who still use it get a SessionError
            _driver = None
        if _driver is None:
            _refuse_foreign_context()
            _driver = Driver(launch)
            session = _driver.session
        elif _driver.launch == launch:
            session = _driver.session.newSession()
        else:
            raise SessionConflict(
                "Another Session of this process runs Spark with other settings "
                f"({_difference(_driver.launch, launch)}).",
                hint="close it first, give both the same settings, or use another process",
            )
        _driver.users += 1
        return _driver, session


def release_driver(driver: Driver) -> None:
    """Give back what ``acquire_driver`` returned; the last user stops Spark."""
    global _driver  # noqa: PLW0603 - see acquire_driver
    with _lock:
        driver.users -= 1
        if driver.users == 0 and driver is _driver:
            _driver = None
            driver.close()


def has_driver() -> bool:
    """Whether a driver runs beside this process, ours or the user's own."""
    return SparkContext._active_spark_context is not None  # noqa: SLF001 - PySpark has no public way


def _refuse_foreign_context() -> None:
    if is_remote():
        raise SessionConflict(
            "This process has a Spark Connect session open, and PySpark cannot mix it with a driver of its own.",
            hint="close it first, or use another process",
        )
    if has_driver():
        raise SessionConflict(
            "This process already runs a SparkContext that Weirflow did not start.",
            hint="stop it first with spark.stop()",
        )


def _difference(one: Launch, other: Launch) -> str:
    """Names of what differs; values may hold secrets."""
    names = [
        name
        for name in ("master", "memory", "worker_python", "log_level")
        if getattr(one, name) != getattr(other, name)
    ]
    mine: Mapping[str, str] = dict(one.conf)
    theirs: Mapping[str, str] = dict(other.conf)
    names += sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    return ", ".join(names) or "cache folder"
