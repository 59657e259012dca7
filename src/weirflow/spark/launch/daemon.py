"""Spark's Python worker daemon, without the zip files on its import path.

Spark puts ``pyspark.zip`` and a jar on the path of its workers, and every task calls
``importlib.invalidate_caches()``, which makes Python read those archives again from disk. Dropping them before
the daemon starts forking makes a small Python job about three times faster. Every task also ends in a full garbage
collection: what the daemon imports once and freezes is neither imported nor walked by its workers again. Set by
``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
from typing import Any

# What a worker imports for its first Arrow task.
_PRELOADED = ("pyarrow", "pyspark.worker", "pyspark.sql.pandas.serializers", "pyspark.sql.pandas.types")

_ARCHIVES = (".zip", ".jar")


def drop_archives() -> None:
    """Take archives off the import path; put them back if pyspark can only be found in them."""
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if not entry.endswith(_ARCHIVES)]
    for entry in [entry for entry in sys.path_importer_cache if _in_archive(entry)]:
        del sys.path_importer_cache[entry]
    # `import copy` looks for Jython's org.python and finds a namespace package in Spark's jar.
    for name, module in list(sys.modules.items()):
        if any(_in_archive(entry) for entry in getattr(module, "__path__", ())):
            del sys.modules[name]
    if importlib.util.find_spec("pyspark") is None:
        sys.path[:] = path


def _in_archive(entry: str) -> bool:
    """Whether an import path is an archive or, as Python finds namespace packages there, a folder in one."""
    return any(part.endswith(_ARCHIVES) for part in entry.split("/"))


def preload() -> None:
    """Import what every worker needs, and take it out of the collector's sight."""
    for module in _PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def leave_quietly() -> None:
    """Have a worker that Spark has hung up on, because its task was stopped, end without a traceback."""
    daemon: Any = importlib.import_module("pyspark.daemon")
    worker = daemon.worker

    def quiet(*args: Any) -> Any:
        try:
            return worker(*args)
        except BrokenPipeError:
            os._exit(1)  # as PySpark does after printing it

    daemon.worker = quiet


if __name__ == "__main__":
    drop_archives()
    preload()
    leave_quietly()
    importlib.import_module("pyspark.daemon").manager()
