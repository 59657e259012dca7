"""What the plan of a classic frame knows in the JVM and its text does not say, asked without running anything.

That is into how many partitions its leaves (a file, a table, a cached relation) are split, and which RDDs its stages
have made. What Spark could only find out by running a job (dynamic pruning, a cache that is not filled yet) stays
unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

_UNPRINTED_OR_REUSED = frozenset({"ReusedExchangeExec", "ReusedSubqueryExec", "SubqueryAdaptiveBroadcastExec"})
_SPREAD = frozenset({"AQEShuffleReadExec", "UnionExec"})
_LIMITS = frozenset({"TakeOrderedAndProjectExec", "CollectLimitExec", "CollectTailExec"})


def leaf_partition_counts(native_df: Any) -> list[int | None]:
    """The partitions of each node of ``stages.partition_sources``, for ``stages.cut``; None where unknown.

    May read file listings that Spark has not cached, but starts no Spark job. Never raises for what Spark
    does not tell; a plan that cannot be walked, and every Spark Connect plan, gives an empty list.
    """
    if not hasattr(native_df, "_jdf"):
        return []
    try:
        return [
            _count(kind, plan) for kind, plan in _printed(native_df) if kind in _SPREAD or plan.children().isEmpty()
        ]
    except (Py4JError, PySparkException):
        return []


def stage_rdds(native_df: Any) -> dict[str, int]:
    """The RDD that the tasks of a stage make, by ``Stage.key``, of the stages that Spark has come to so far."""
    java = native_df.sparkSession.sparkContext._jvm.org.apache.commons.lang3.reflect.FieldUtils  # noqa: SLF001  no public way

    def evaluated(owner: Any, field: str) -> Any:
        """A lazy value; None if it is not there yet, where asking Spark for it would run what it takes."""
        return java.readField(owner, field, True)  # noqa: FBT003  Java knows no keywords

    def made(plan: Any, *, last: bool = False) -> Any:
        kind, plan = _unwrapped(plan)
        if last and kind in _LIMITS:  # which the driver applies to what the tasks give it
            return made(plan.child())
        outcome = evaluated(evaluated(plan, "executeRDD"), "tryT")
        return outcome.get() if outcome is not None and outcome.isSuccess() else None

    rdds: dict[str, Any] = {}
    limits = itertools.count()
    for kind, plan in _printed(native_df):
        if not rdds:
            rdds["result"] = made(plan, last=True)
        if kind == "SubqueryExec":
            rdds[plan.name()] = made(plan.child(), last=True)
        elif kind in _LIMITS:
            rdds[f"limit {next(limits)}"] = made(plan.child())
        elif kind.endswith("BroadcastExchangeExec"):
            rdds[f"exchange {plan.id()}"] = made(plan.child())
        elif kind.endswith("ShuffleExchangeExec"):
            shuffle = evaluated(plan, "shuffleDependency")
            rdds[f"exchange {plan.id()}"] = None if shuffle is None else shuffle.rdd()
    return {key: int(rdd.id()) for key, rdd in rdds.items() if rdd is not None}


def elements(seq: Any) -> Iterator[Any]:
    """What a Scala sequence holds."""
    return (seq.apply(index) for index in range(seq.size()))


def _printed(native_df: Any) -> Iterator[tuple[str, Any]]:
    """The operators with their kinds, in the order in which they are printed; of an adaptive plan the current ones."""
    pending = [native_df._jdf.queryExecution().executedPlan()]  # noqa: SLF001  no public way
    while pending:
        kind, plan = _unwrapped(pending.pop())
        if kind == "ReusedExchangeExec":
            yield _unwrapped(plan.child())
        if kind in _UNPRINTED_OR_REUSED:
            continue
        yield kind, plan
        inner = [node for node in elements(plan.innerChildren()) if "Subquery" in _kind(node)]
        pending += reversed([*inner, *elements(plan.children())])


def _unwrapped(plan: Any) -> tuple[str, Any]:
    """The operator, with its kind, inside the wrappers of adaptive execution."""
    while (kind := _kind(plan)).endswith(("AdaptiveSparkPlanExec", "QueryStageExec")):
        plan = plan.plan() if kind.endswith("QueryStageExec") else plan.executedPlan()
    return kind, plan


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())


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
