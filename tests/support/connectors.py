"""Which connectors have jars for the Spark under test: the newest Spark is out before they are."""

from __future__ import annotations

import pyspark
import pytest

from weirflow.spark.jars.packages import CONNECTORS

LINE = ".".join(pyspark.__version__.split(".")[:2])


def available_connectors(*names: str) -> list[str]:
    """Those of ``names`` that a Session on this Spark can have as packages."""
    return [name for name in names if LINE in CONNECTORS[name].jars]


def require_connectors(*names: str) -> None:
    """Skip the test, or every test of the fixture, that calls this on a Spark which lacks one of ``names``."""
    lacking = sorted(set(names) - set(available_connectors(*names)))
    if lacking:
        pytest.skip(f"Spark {LINE} has no jars yet for: {', '.join(lacking)}")
