"""Which Spark jobs ran under a tag, and how far they are; classic sessions only.

Spark keeps its records behind a queue of events, so a job that just ended may not have reached them. Of jobs
long past only the newest (``spark.ui.retainedJobs``) are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from weirflow.errors import SessionClosed

if TYPE_CHECKING:
    from pyspark import SparkContext

_SETTLE_MS = 10_000


def job_ids_for_tag(sc: SparkContext, tag: str) -> list[int]:
    """The jobs, running or ended, that were started under the job tag ``tag``, oldest first."""
    settle(sc)
    return sorted(int(job) for job in scala_context(sc).statusTracker().getJobIdsForTag(tag))


def job_progress(sc: SparkContext, job_ids: Iterable[int]) -> tuple[int, int]:
    """How many tasks of these jobs are done, and how many there are.

    Does not wait for events under way: a running job may be further by a moment. The total shrinks when
    Spark finds that it can skip stages. Jobs Spark has no record of count as nothing.
    """
    store = scala_context(sc).statusStore()
    done = total = 0
    for job_id in job_ids:
        job = job_record(store, job_id)
        if job is not None:
            done += int(job.numCompletedIndices())
            total += int(job.numTasks()) - int(job.numSkippedTasks())
    return done, total


def settle(sc: SparkContext) -> None:
    """Blocks until Spark's records hold every event sent before, or for ten seconds under constant load."""
    try:
        scala_context(sc).listenerBus().waitUntilEmpty(_SETTLE_MS)
    except Py4JJavaError as error:
        if _java_class(error) != "java.util.concurrent.TimeoutException":
            raise


def job_record(store: Any, job_id: int) -> Any | None:
    """The status store's record of a job, or None if it has none."""
    try:
        return store.job(job_id)
    except Py4JJavaError as error:
        if _java_class(error) != "java.util.NoSuchElementException":
            raise
        return None


def scala_context(sc: SparkContext) -> Any:
    """The JVM's own SparkContext, which knows more than its Java and Python faces."""
    if sc._jsc is None:  # noqa: SLF001  as below
        raise SessionClosed("This Session is closed.", hint="open another one")
    return sc._jsc.sc()  # noqa: SLF001  there is no public way


def _java_class(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())
