"""Where the tasks of a job ran; classic sessions only."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.spark.jobs.tagged import job_record, scala_context, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark import SparkContext

_ALL_TASKS = 2**31 - 1


@dataclass(frozen=True, order=True)
class TaskAssignment:
    """One attempt of one task, and the executor it was given to.

    Attributes:
        job: the first of the asked jobs that lists the stage.
        stage: Spark's stage id.
        attempt: which attempt at the task this is, from 0.
        partition: the partition of the stage's rows it works on.
        executor: Spark's executor id, ``driver`` for local Spark.
        host: the executor's host.
        locality: how near its input was, such as ``PROCESS_LOCAL``.
        status: ``RUNNING``, ``SUCCESS``, ``FAILED``, ``KILLED`` or another of Spark's words.
        duration_ms: how long it ran, None while it has not ended.
    """

    job: int
    stage: int
    attempt: int
    partition: int
    executor: str
    host: str
    locality: str
    status: str
    duration_ms: int | None


def task_assignments(sc: SparkContext, job_ids: Iterable[int]) -> list[TaskAssignment]:
    """Every task attempt of these jobs, running or ended, sorted.

    Waits until Spark's records hold all events sent so far. Stages Spark skipped have no tasks; jobs, stages
    and tasks it no longer has records of are left out.
    """
    settle(sc)
    store = scala_context(sc).statusStore()
    jobs_of_stages: dict[int, int] = {}
    for job_id in sorted(job_ids):
        job = job_record(store, job_id)
        stages = [] if job is None else _elements(job.stageIds())
        for stage in stages:
            jobs_of_stages.setdefault(int(stage), job_id)
    return sorted(
        TaskAssignment(
            job=job_id,
            stage=stage,
            attempt=task["attempt"],
            partition=task["partitionId"],
            executor=task["executorId"],
            host=task["host"],
            locality=task["taskLocality"],
            status=task["status"],
            duration_ms=task.get("duration"),
        )
        for stage, job_id in jobs_of_stages.items()
        for task in _tasks(sc, store, stage)
    )


def render_assignments(assignments: Iterable[TaskAssignment]) -> str:
    """Who works on what, by executor in the order of names: ``0/{0,2},1/{0}->executor-1@host, ...``.

    Before each arrow stand the stages, each with the partitions the executor was given.
    """
    placed: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for task in assignments:
        name = f"executor-{task.executor}" if task.executor.isdigit() else task.executor
        placed[f"{name}@{task.host}"][task.stage].add(task.partition)
    return ", ".join(f"{_work(stages)}->{executor}" for executor, stages in sorted(placed.items()))


def _work(stages: dict[int, set[int]]) -> str:
    return ",".join(
        f"{stage}/{{{','.join(map(str, sorted(partitions)))}}}" for stage, partitions in sorted(stages.items())
    )


def _tasks(sc: SparkContext, store: Any, stage: int) -> Iterator[dict[str, Any]]:
    gateway: Any = sc._gateway  # noqa: SLF001  there is no public way
    # One JSON text per stage attempt: a call into the JVM for each field of each task would take seconds.
    mapper = gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    nothing = gateway.jvm.java.util.ArrayList()
    no_quantiles = gateway.new_array(gateway.jvm.double, 0)
    details = summaries = False
    for attempt in _elements(store.stageData(stage, details, nothing, summaries, no_quantiles)):
        tasks = store.taskList(stage, attempt.attemptId(), _ALL_TASKS)
        yield from json.loads(mapper.writeValueAsString(tasks))


def _elements(seq: Any) -> Iterator[Any]:
    return (seq.apply(index) for index in range(seq.size()))
