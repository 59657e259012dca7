"""The JVM that runs Spark's driver: started directly, watched, and ended with this process.

Spark's own launch scripts start a first JVM only to compute the command line of the second. We know the command
line, so we start ``SparkSubmit`` at once. The JVM exits when its standard input closes, which the kernel does for
us even if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from weirflow.errors import SessionError
from weirflow.spark.compat import JAVA_MODULE_OPTIONS
from weirflow.spark.launch.archive import ClassArchive
from weirflow.spark.launch.noise import StderrNoise

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.spark.launch.java import Java

_START_SECONDS = 120.0
_EXIT_SECONDS = 15.0
_ARCHIVE_SECONDS = 120.0
_TAIL_LINES = 200

_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True)
class JvmOptions:
    """What a driver JVM is started with."""

    java: Java
    spark_home: Path
    conf: Mapping[str, str]
    memory: str
    scratch: Path
    cache_dir: Path
    class_archive: bool
    worker_python: Path
    loopback: bool
    """Whether Spark talks to this machine only; otherwise it chooses the address that others can reach."""
    jars: tuple[Path, ...] = ()
    """Connector jars, behind Spark's own on the class path: Spark would copy each ``spark.jars`` at every start."""


class Jvm:
    """A running driver JVM.

    Everything it prints to stderr is kept (the last lines appear in errors) and, once ``forward_stderr`` is set,
    passed on to this process's stderr.
    """

    def __init__(self, options: JvmOptions) -> None:
        self.forward_stderr = False
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._archive = _class_archive(options)
        info = options.scratch / "gateway"
        command = _command(options, self._archive)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(options, info),
            start_new_session=True,  # Ctrl-C is for the Python process, which then decides
        )
        self._pump = threading.Thread(target=self._pump_stderr, name="weirflow-jvm-stderr", daemon=True)
        self._pump.start()
        try:
            self.port, self.secret = self._await_gateway(info)
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while the JVM runs."""
        return self._process.poll()

    @property
    def writes_archive_at_exit(self) -> bool:
        """Whether ``close`` will take several seconds because the class archive is written."""
        return self._archive is not None and self._archive.writes_at_exit

    def tail(self, lines: int = 20) -> str:
        """The last lines the JVM printed to stderr."""
        return "\n".join(list(self._tail)[-lines:])

    def close(self) -> None:
        """Let the JVM exit and wait for it; kill it if it does not. Blocks while the class archive is written."""
        self._close_stdin()
        patience = _ARCHIVE_SECONDS if self.writes_archive_at_exit else _EXIT_SECONDS
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def kill(self) -> None:
        """End the JVM at once."""
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        self._close_stdin()
        self._pump.join()
        if self._archive is not None:
            self._archive.settle()

    def _close_stdin(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the JVM may be gone already
            stdin.close()

    def _await_gateway(self, info: Path) -> tuple[int, str]:
        deadline = time.monotonic() + _START_SECONDS
        while not info.exists():  # Spark renames the file into place once it is whole
            if self._process.poll() is not None:
                self._pump.join()
                raise SessionError(f"Spark's JVM exited with code {self.exit_code} as it started:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise SessionError(f"Spark's JVM did not start within {_START_SECONDS:.0f} s:\n{self.tail()}")
            time.sleep(0.005)
        content = info.read_bytes()
        info.unlink()
        port, length = struct.unpack_from(">ii", content)
        return port, content[8 : 8 + length].decode()

    def _pump_stderr(self) -> None:
        stream: IO[bytes] | None = self._process.stderr
        assert stream is not None
        with stream:
            noise = StderrNoise()
            for raw in stream:
                line = raw.decode(errors="replace").rstrip("\n")
                if noise.has(line):
                    continue
                self._tail.append(line)
                if self.forward_stderr:
                    print(line, file=sys.stderr)  # noqa: T201 - the JVM's stderr is ours


def _class_archive(options: JvmOptions) -> ClassArchive | None:
    if not options.class_archive or "spark.driver.extraClassPath" in options.conf:
        return None  # an archive holds for class paths that begin as the one it was made with
    spark_jars = _spark_jars(options.spark_home)
    return ClassArchive(options.cache_dir / "classes", options.java, spark_jars, may_write=not options.jars)


def _spark_jars(spark_home: Path) -> list[Path]:
    return sorted((spark_home / "jars").glob("*.jar"))


def _command(options: JvmOptions, archive: ClassArchive | None) -> list[str]:
    """The command line that Spark's launch scripts would arrive at, plus the class archive."""
    conf = options.conf
    log4j = options.scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    class_path = [str(jar) for jar in [*_spark_jars(options.spark_home), *options.jars]]
    if extra := conf.get("spark.driver.extraClassPath"):
        class_path.insert(0, extra)
    command = [str(options.java.executable), f"-Xmx{conf.get('spark.driver.memory', options.memory)}"]
    command += JAVA_MODULE_OPTIONS
    command += ["-Xlog:disable", "-Xlog:all=error:stderr", f"-Dlog4j2.configurationFile={log4j.as_uri()}"]
    # Native libraries, artifacts and the like that Spark unpacks and forgets.
    temporary = options.scratch / "tmp"
    temporary.mkdir(exist_ok=True)
    command.append(f"-Djava.io.tmpdir={temporary}")
    command += archive.java_options if archive else ()
    if extra := conf.get("spark.driver.extraLibraryPath"):
        command.append(f"-Djava.library.path={extra}")
    for name in ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"):
        command += shlex.split(conf.get(name, ""))
    properties = options.scratch / "spark.properties"
    properties.touch(mode=0o600)  # conf may hold secrets, which a command line would show to everybody
    properties.write_text("".join(f"{_escape(name)}={_escape(value)}\n" for name, value in sorted(conf.items())))
    command += ["-cp", os.pathsep.join(class_path), "org.apache.spark.deploy.SparkSubmit"]
    return [*command, "--properties-file", str(properties), "--load-spark-defaults", "pyspark-shell"]


def _escape(text: str) -> str:
    """Text as a Java properties file spells it, in a key or in a value."""
    escaped = re.sub(r"([\\:=# !])", r"\\\1", text)
    return "".join(
        char if " " <= char <= "~" else "".join(f"\\u{unit:04x}" for unit in _utf16(char)) for char in escaped
    )


def _utf16(char: str) -> tuple[int, ...]:
    encoded = char.encode("utf-16-be")
    return struct.unpack(f">{len(encoded) // 2}H", encoded)


def _environment(options: JvmOptions, info: Path) -> dict[str, str]:
    return {
        **os.environ,
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if options.loopback else {}),
        "SPARK_HOME": str(options.spark_home),
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": str(options.worker_python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
    }
