"""Which connectors have jars for the Spark under test: the newest Spark is out before they are."""

from __future__ import annotations

import pyspark
import pytest

from weirflow.spark.packages import CONNECTORS

LINE = ".".join(pyspark.__version__.split(".")[:2])


def available_connectors(*names: str) -> list[str]:
    """Those of ``names`` that a Session on this Spark can have as packages."""
    return [name for name in names if LINE in CONNECTORS[name].jars]


def require_connectors(*names: str) -> None:
    """Skip the test, or every test of the fixture, that calls this on a Spark which lacks one of ``names``."""
    available = available_connectors(*names)
    lacking = [name for name in names if name not in available]
    if lacking:
        pytest.skip(f"no {' and no '.join(lacking)} connector has jars for Spark {LINE} yet")
