"""What Spark loads for its first query, loaded beside the start of its context.

Starting a context keeps one core busy; parsing, the table of functions, code generation and Arrow are another core's
work meanwhile. Nothing depends on it: what is not loaded by then is loaded by the first query, as without it.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from py4j.protocol import Py4JError

_log = logging.getLogger(__name__)

_CLASSES = (
    "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$",
    "org.apache.spark.sql.util.ArrowUtils$",
    "org.apache.spark.sql.execution.arrow.ArrowConverters$",
)


class WarmUp:
    """A thread that has the JVM load what a first query needs; ``join`` it before Spark is stopped."""

    def __init__(self, jvm: Any) -> None:
        self._thread = threading.Thread(target=_load, args=(jvm,), name="weirflow-warm-up", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it is done; it takes about a second."""
        self._thread.join()


def _load(jvm: Any) -> None:
    def scala_object(name: str) -> Any:
        return jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)

    try:
        scala_object("org.apache.spark.sql.catalyst.parser.CatalystSqlParser").parsePlan("SELECT 1")
        for name in _CLASSES:
            jvm.java.lang.Class.forName(name)
        # Makes Spark generate and compile its first class.
        row = jvm.org.apache.spark.sql.types.StructType().add("a", scala_object("org.apache.spark.sql.types.LongType"))
        scala_object("org.apache.spark.sql.catalyst.expressions.UnsafeProjection").create(row)
    except (Py4JError, OSError):  # the JVM ended meanwhile, or another Spark names its classes otherwise
        _log.debug("warming Spark up ended early", exc_info=True)
