"""Asks a classic Spark how many partitions the leaves of a plan have, without running anything.

The text of a plan does not say into how many partitions a file, a table or a cached relation is split; the
plan in the JVM knows. What it could only find out by running a job (dynamic pruning, a cache that is not
filled yet) stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_UNPRINTED_OR_REUSED = frozenset({"ReusedExchangeExec", "ReusedSubqueryExec", "SubqueryAdaptiveBroadcastExec"})


def leaf_partition_counts(native_df: Any) -> list[int | None]:
    """The partitions of each node of ``stages.partition_sources``, for ``stages.cut``; None where unknown.

    May read file listings that Spark has not cached, but starts no Spark job. Never raises for what Spark
    does not tell; a plan that cannot be walked, and every Spark Connect plan, gives an empty list.
    """
    query = getattr(native_df, "_jdf", None)
    if query is None:
        return []
    try:
        return list(_counts(query.queryExecution().executedPlan()))
    except (Py4JError, PySparkException):
        return []


def _counts(plan: Any) -> Iterator[int | None]:
    """Walks the plan in the order it is printed."""
    kind: str = plan.getClass().getSimpleName()
    if kind in _UNPRINTED_OR_REUSED:
        return
    if kind == "AdaptiveSparkPlanExec":
        yield from _counts(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _counts(plan.plan())
    else:
        children = list(_elements(plan.children()))
        inner = [node for node in _elements(plan.innerChildren()) if _is_subquery(node)]
        if kind in ("AQEShuffleReadExec", "UnionExec") or not children:
            yield _count(kind, plan)
        for node in inner + children:
            yield from _counts(node)


def _is_subquery(node: Any) -> bool:
    return "Subquery" in node.getClass().getSimpleName()


def _count(kind: str, plan: Any) -> int | None:
    ask = _QUESTIONS.get(kind)
    try:
        return None if ask is None else ask(plan)
    # Spark refuses, too, where files depend on a subquery that has not run.
    except (Py4JError, PySparkException):
        return None


def _cached_count(scan: Any) -> int | None:
    cache = scan.relation().cacheBuilder()
    if cache.isCachedColumnBuffersLoaded():
        return int(cache.cachedColumnBuffers().getNumPartitions())
    # A plan that is not adaptive knows its partitioning before it runs; 0 stands for unknown.
    return int(scan.outputPartitioning().numPartitions()) or None


def _elements(seq: Any) -> Iterator[Any]:
    return (seq.apply(index) for index in range(seq.size()))


_QUESTIONS: dict[str, Callable[[Any], int | None]] = {
    "AQEShuffleReadExec": lambda plan: int(plan.partitionSpecs().size()),
    "BatchScanExec": lambda plan: int(plan.inputRDD().getNumPartitions()),
    "ExternalRDDScanExec": lambda plan: int(plan.rdd().getNumPartitions()),
    "FileSourceScanExec": lambda plan: int(plan.inputRDD().getNumPartitions()),
    "InMemoryTableScanExec": _cached_count,
    "LocalTableScanExec": lambda plan: int(plan.execute().getNumPartitions()),
    "RDDScanExec": lambda plan: int(plan.rdd().getNumPartitions()),
    "RowDataSourceScanExec": lambda plan: int(plan.rdd().getNumPartitions()),
    "UnionExec": lambda plan: int(plan.outputPartitioning().numPartitions()),
}
