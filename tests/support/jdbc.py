"""JDBC for tests: Arrow's driver of Flight SQL in a JVM of its own, called from here, so that a JRE is enough."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from weirflow.spark.jars.artifacts import Artifact, Coordinate, Dependencies
from weirflow.spark.jars.cache import JarCache

_DRIVER = Artifact(Coordinate.parse("org.apache.arrow:flight-sql-jdbc-driver:18.3.0"), Dependencies.NONE)
_OPTIONS = ["--add-opens=java.base/java.nio=ALL-UNNAMED", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]


@contextmanager
def jdbc() -> Iterator[Jdbc]:
    """The driver for the block."""
    java = shutil.which("java")
    assert java is not None
    shipped = Path(pyspark.__file__).parent / "jars"
    cache = Path(os.environ.get("WEIRFLOW_CACHE_DIR") or Path.home() / ".cache" / "weirflow")
    (driver,) = JarCache(cache, Path(java), next(shipped.glob("ivy-*.jar"))).get([_DRIVER])
    port = launch_gateway(
        jarpath=str(next(shipped.glob("py4j-*.jar"))),
        classpath=str(driver),
        java_path=java,
        javaopts=_OPTIONS,
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield Jdbc(gateway)
    finally:
        gateway.shutdown()


class Jdbc:
    """The driver."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway = gateway

    def connect(self, url: str, **properties: str) -> Any:
        """A ``java.sql.Connection``; ``url`` is ``host:port``."""
        given = self._gateway.jvm.java.util.Properties()
        for name, value in {"useEncryption": "false", **properties}.items():
            given.setProperty(name, value)
        return self._gateway.jvm.java.sql.DriverManager.getConnection(f"jdbc:arrow-flight-sql://{url}", given)


def rows(result: Any) -> list[dict[str, Any]]:
    """All rows of a ``java.sql.ResultSet``, which is closed."""
    with closing(result):
        meta = result.getMetaData()
        names = [meta.getColumnLabel(number) for number in range(1, meta.getColumnCount() + 1)]
        found = []
        while result.next():
            found.append({name: result.getObject(number) for number, name in enumerate(names, 1)})
        return found
