"""Where the tasks of a job ran, by the stages of the plan that they carried out; classic sessions only."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from weirflow.arguments import checked
from weirflow.errors import UnsupportedError
from weirflow.spark.frames.explain import plan_stages
from weirflow.spark.frames.live_plan import elements, stage_rdds
from weirflow.spark.jobs.tagged import job_record, scala_context, settle

if TYPE_CHECKING:
    from pyspark import SparkContext

_ALL_TASKS = 2**31 - 1


@dataclass(frozen=True, order=True)
class TaskAssignment:
    """One attempt to run one task, and the executor that it was given to.

    If the operation computed a DataFrame's rows, ``stage`` is the stage's number in ``Operation.explain()``. It is also
    the number in ``session.explain(query, "stages")``, unless adaptive execution changed the plan. Stages whose rows
    Spark still had have no tasks. Work that Spark ran in addition to the plan has the next numbers, in Spark's order:
    samples of rows that are spread by range, what fills a cache, collecting the rows of a final limit for ``to_arrow``,
    other queries.

    If no plan is known (a write, a count, an operation that ended long ago), the last stage of the last job is 0, and
    the others follow in Spark's order.

    Attributes:
        job: the first of the jobs in question that lists the stage.
        stage: the number of the stage.
        attempt: which attempt at the task this is, from 0.
        partition: the partition of the stage's rows it works on.
        executor: Spark's executor id, ``driver`` for local Spark.
        host: the executor's host.
        address: the executor's ``host:port``, or only the host if Spark no longer knows the port.
        locality: how near its input was, such as ``PROCESS_LOCAL``.
        status: ``RUNNING``, ``SUCCESS``, ``FAILED``, ``KILLED``, or another word that Spark uses.
        duration_ms: how long it ran, None while it has not ended.
        spark_stage: Spark's own id of the stage.
    """

    job: int
    stage: int
    attempt: int
    partition: int
    executor: str
    host: str
    address: str
    locality: str
    status: str
    duration_ms: int | None
    spark_stage: int


def task_assignments(sc: SparkContext, job_ids: Iterable[int], frame: Any = None) -> list[TaskAssignment]:
    """Every task attempt of these jobs, running or ended, sorted.

    Waits until Spark's records hold all events sent so far. Stages Spark skipped have no tasks; jobs, stages
    and tasks it no longer has records of are left out. ``frame`` is the native one whose rows they computed.
    """
    settle(sc)
    store = scala_context(sc).statusStore()
    jobs_of_stages: dict[int, int] = {}
    for job_id in sorted(job_ids):
        job = job_record(store, job_id)
        stages = [] if job is None else elements(job.stageIds())
        for stage in stages:
            jobs_of_stages.setdefault(int(stage), job_id)
    ran = {stage: found for stage in jobs_of_stages if (found := _ran(sc, store, stage))[1]}
    numbers = _numbers({stage: rdds for stage, (rdds, _) in ran.items()}, max(jobs_of_stages, default=0), frame)
    addresses = {one.id(): one.hostPort() for one in elements(store.executorList(False))}  # noqa: FBT003  the lost, too
    return sorted(
        TaskAssignment(
            job=jobs_of_stages[stage],
            stage=numbers[stage],
            attempt=task["attempt"],
            partition=task["partitionId"],
            executor=task["executorId"],
            host=task["host"],
            address=addresses.get(task["executorId"]) or task["host"],
            locality=task["taskLocality"],
            status=task["status"],
            duration_ms=task.get("duration"),
            spark_stage=stage,
        )
        for stage, (_, tasks) in ran.items()
        for task in tasks
    )


@checked
def render_assignments(assignments: Sequence[TaskAssignment]) -> str:
    """Text that shows who works on what: ``0/{0,3,6,9},1/{0,1}->localhost:50060, 0/{1,4}->localhost:50070``.

    Executors are in the order of their addresses. Before each arrow are the stages, each with the executor's
    partitions.
    """
    placed: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for task in assignments:
        placed[task.address][task.stage].add(task.partition)
    return ", ".join(f"{_work(stages)}->{address}" for address, stages in sorted(placed.items()))


def _work(stages: dict[int, set[int]]) -> str:
    return ",".join(
        f"{stage}/{{{','.join(map(str, sorted(partitions)))}}}" for stage, partitions in sorted(stages.items())
    )


def _numbers(ran: dict[int, set[int]], last: int, frame: Any) -> dict[int, int]:
    """The numbers of Spark's stages, given with the RDDs they computed; ``last`` is the last stage of the last job."""
    planned: tuple[Any, ...] = ()
    rdds: dict[str, int] = {}
    if ran and frame is not None:
        # A query that Spark failed to plan, or one too deep to be cut, has no numbers to agree with.
        with contextlib.suppress(Py4JError, PySparkException, UnsupportedError):
            planned, rdds = plan_stages(frame), stage_rdds(frame)
    by_rdd = {rdds[stage.key]: stage.number for stage in planned if stage.key in rdds}
    # Of a limit that needed no exchange, the stage it would have had is a part of the one that reads it.
    numbers = {stage: by_rdd[max(known)] for stage, computed in ran.items() if (known := computed & by_rdd.keys())}
    others = sorted(ran.keys() - numbers) if planned else sorted({*ran, last}, key=lambda stage: (stage != last, stage))
    return numbers | {stage: number for number, stage in enumerate(others, len(planned))}


def _ran(sc: SparkContext, store: Any, stage: int) -> tuple[set[int], list[dict[str, Any]]]:
    """The RDDs that the tasks of a stage compute, and all attempts at these tasks."""
    gateway: Any = sc._gateway  # noqa: SLF001  there is no public way
    # One JSON text per stage attempt: a call into the JVM for each field of each task would take seconds.
    mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    nothing = gateway.jvm.java.util.ArrayList()
    no_quantiles = gateway.new_array(gateway.jvm.double, 0)
    details = summaries = False
    rdds: set[int] = set()
    tasks: list[dict[str, Any]] = []
    for attempt in elements(store.stageData(stage, details, nothing, summaries, no_quantiles)):
        rdds.update(map(int, elements(attempt.rddIds())))
        tasks += json.loads(mapper.writeValueAsString(store.taskList(stage, attempt.attemptId(), _ALL_TASKS)))
    return rdds, tasks
