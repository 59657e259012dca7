"""A real Spark Connect server, from the installed PySpark."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyspark
from support.processes import ChildProcess, accepts, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90.0
STARTED_LINE = re.compile(r"Spark Connect server started")


class ConnectServer:
    """A Spark Connect server on loopback that asks its clients for a token. Ready once constructed.

    Args:
        token: what clients must present; None lets everyone in.
        conf: further Spark settings of the server.
        port: where to listen; by default any free port.
    """

    def __init__(
        self,
        token: str | None = "a-token-for-tests",
        conf: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.token = token
        self.port = port or free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="weirflow-test-connect-"))
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "768m",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.local.dir": str(self._folder / "local"),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            **(conf or {}),
        }
        (self._folder / "conf").mkdir()
        # In a file, not on the command line: settings may hold secrets.
        lines = [f"{key} {value}\n" for key, value in settings.items()]
        (self._folder / "conf" / "spark-defaults.conf").write_text("".join(lines))
        self.process = ChildProcess(
            [
                SPARK_HOME / "bin" / "spark-submit",
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *([] if "spark.master" in settings else ["--master", "local[2]"]),
                "spark-internal",
            ],
            name="connect-server",
            env={
                "SPARK_HOME": str(SPARK_HOME),
                "SPARK_CONF_DIR": str(self._folder / "conf"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_CONNECT_MODE_ENABLED": None,
            },
            cwd=self._folder,
        )
        try:
            self.process.wait_until(self._ready, START_SECONDS, "serving")
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        return f"sc://localhost:{self.port}"

    def kill(self) -> None:
        """``kill -9`` the server; a client only finds out by itself."""
        self.process.kill()

    def stop(self) -> None:
        """End the server and remove its files. Does nothing the second time."""
        self.process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _ready(self) -> bool:
        return STARTED_LINE.search(self.process.log) is not None and accepts(self.port)
