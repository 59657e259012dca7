"""Where Spark's executors are."""

from __future__ import annotations

from typing import Any


def executor_hosts(native: Any) -> list[str]:
    """The hosts of the executors that a classic session has now; the driver's own, if it runs the tasks itself.

    Empty for a session behind Spark Connect, which does not tell.
    """
    if not hasattr(native, "_jsparkSession"):
        return []
    tracker = native.sparkContext._jsc.sc().statusTracker()  # noqa: SLF001 - no public way
    return sorted({str(info.host()) for info in tracker.getExecutorInfos()})
