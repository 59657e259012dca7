"""A real Spark standalone cluster on this machine, from the installed PySpark."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Self
from urllib.error import URLError
from urllib.request import urlopen

import pyspark
from support.processes import ChildProcess, accepts, free_port

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 60.0
DAEMON_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


class StandaloneCluster:
    """A master and its workers as JVMs of their own, on 127.0.0.1 and random ports.

    A driver needs the master's ``url``, and ``driver_conf``: the memory that fits into a worker, the
    shared secret, a loopback address. Executors run the Python this cluster was started with
    (``PYSPARK_PYTHON`` of the *worker* is only the default: a driver's own ``PYSPARK_PYTHON`` or
    ``spark.pyspark.python`` wins, because it travels with each task).

    Args:
        workers: how many workers to start.
        secret: makes master, workers and so every driver authenticate with it and encrypt.
        cores: the cores each worker offers.
        memory: the memory each worker offers.
    """

    def __init__(self, workers: int = 2, secret: str | None = None, cores: int = 1, memory: str = "1024m") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="weirflow-test-cluster-"))
        self._secret = secret
        self._cores = cores
        self._memory = memory
        self._port = free_port()
        self._ui_port = free_port()
        self._started = 0
        self.workers: list[ChildProcess] = []
        self._conf_dir = self._write_conf()
        self.master = self._start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._ui_port)),
        )
        try:
            # A worker that finds no master tries again only seconds later.
            self.master.wait_until(lambda: accepts(self._port), START_SECONDS, "listening")
            for _ in range(workers):
                self.start_worker()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    @property
    def driver_conf(self) -> dict[str, str]:
        """What a driver on this machine must set to get executors here."""
        conf = {
            "spark.master": self.url,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.pyspark.python": sys.executable,
        }
        return conf | self._security

    def start_worker(self) -> ChildProcess:
        """Start one more worker; ``wait_ready`` waits for it too."""
        index = self._started
        self._started += 1
        work = self._folder / f"worker-{index}"
        work.mkdir()
        worker = self._start(
            f"worker-{index}",
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--webui-port", "0", "-c", str(self._cores), "-m", self._memory),
            *("-d", str(work), self.url),
        )
        self.workers.append(worker)
        return worker

    def kill_worker(self, index: int) -> None:
        """``kill -9`` worker ``index`` with its executors, as a lost host would."""
        self.workers[index].kill()

    def wait_ready(self, deadline: float = START_SECONDS) -> Self:
        """Wait until the master counts every running worker as ALIVE."""
        self.master.wait_until(
            lambda: len(self.alive_workers()) >= sum(w.returncode is None for w in self.workers),
            deadline,
            f"aware of {len(self.workers)} workers",
        )
        return self

    def alive_workers(self) -> list[str]:
        """The ids of the workers the master counts as ALIVE; empty while it does not answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self._ui_port}/json/", timeout=2.0) as answer:
                state = json.load(answer)
        except (URLError, TimeoutError, ConnectionError, json.JSONDecodeError):  # at first its page is another one
            return []
        return [worker["id"] for worker in state["workers"] if worker["state"] == "ALIVE"]

    def stop(self) -> None:
        """End every process and remove every file. Does nothing the second time."""
        for process in [*self.workers, self.master]:
            process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _security(self) -> dict[str, str]:
        if self._secret is None:
            return {}
        return {
            "spark.authenticate": "true",
            "spark.authenticate.secret": self._secret,
            "spark.network.crypto.enabled": "true",
        }

    def _write_conf(self) -> Path:
        # In a file, not in -D options: a secret on a command line is for everyone to read.
        folder = self._folder / "conf"
        folder.mkdir()
        settings = {"spark.master.rest.enabled": "false"} | self._security
        lines = [f"{key} {value}\n" for key, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines))
        return folder

    def _start(self, name: str, main: str, *arguments: str) -> ChildProcess:
        # spark-class knows the --add-opens of its own version, and replaces itself by the JVM.
        return ChildProcess(
            [SPARK_HOME / "bin" / "spark-class", main, *arguments],
            name=name,
            env={
                "SPARK_HOME": str(SPARK_HOME),
                "SPARK_CONF_DIR": str(self._conf_dir),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": DAEMON_OPTIONS,
                "SPARK_LOCAL_DIRS": str(self._folder),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_CONNECT_MODE_ENABLED": None,
            },
        )
