"""Settings of Spark that one streaming query has, whatever the session's are."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirflow.spark.streaming.plan import QueryShape

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_starting = threading.Lock()


def process_settings(shape: QueryShape, *, ends: bool) -> dict[str, str]:
    """What a query with process functions needs.

    Their state is in several column families, which only RocksDB has; a batch saves what has changed in it. Timers by
    the clock ask for one more batch after every batch, so that a query that shall end when its input does would not.
    """
    if not shape.processes:
        return {}
    without_empty = {_EMPTY_BATCHES: "false"} if shape.by_clock and ends else {}
    return {_PROVIDER: _ROCKSDB, _CHANGELOG: "true", **without_empty}


@contextlib.contextmanager
def own_settings(spark: Any, conf: Mapping[str, str]) -> Iterator[None]:
    """Have settings while a query is started, which takes a copy of them; one query at a time."""
    if not conf:
        yield
        return
    with _starting:
        before = {name: spark.conf.get(name, None) for name in conf}
        try:
            for name, value in conf.items():
                spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, old)
