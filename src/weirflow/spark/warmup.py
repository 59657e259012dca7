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

_PARSER = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"
_CLASSES = (
    "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$",
    "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$",
    "org.apache.spark.sql.util.ArrowUtils$",
    "org.apache.spark.sql.execution.arrow.ArrowConverters$",
)


class WarmUp:
    """A thread of the JVM that initializes classes; ``join`` before the gateway is used by anything that ends it."""

    def __init__(self, jvm: Any) -> None:
        self._thread = threading.Thread(target=_load, args=(jvm,), name="weirflow-warm-up", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it is done; it takes well under a second."""
        self._thread.join()


def _load(jvm: Any) -> None:
    try:
        parser = jvm.java.lang.Class.forName(_PARSER).getField("MODULE$").get(None)
        parser.parsePlan("SELECT 1")
        for name in _CLASSES:
            jvm.java.lang.Class.forName(name)
    except (Py4JError, OSError):  # the JVM ended meanwhile, or another Spark names its classes otherwise
        _log.debug("warming Spark up ended early", exc_info=True)
