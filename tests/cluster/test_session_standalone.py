"""A Session on a standalone master with two workers: both work, tasks are placed, lost executors are survived."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark
import pytest
from support.connectors import available_connectors, require_connectors
from support.processes import alive, java_children, wait_until

from weirflow import Session, render_assignments
from weirflow.errors import OperationCancelled, OperationTimeout, TableNotFound, UserCodeError
from weirflow.types import OperationState

# Minutes of work in the JVM, and in Python.
LONG = "SELECT count(*) FROM range(0, 1000000000000, 1, 8) WHERE id % 7 = 3"
LONG_PYTHON = "SELECT sum(wait(id)) FROM range(0, 400, 1, 400)"
SOON_SECONDS = 20.0  # half of what the shorter one takes


@pytest.fixture(scope="module")
def session(own_spark, cluster):
    own_spark()
    settings = {"driver_memory": "1g", "spark_conf": {"spark.executor.memory": "512m"}}
    packages = available_connectors("iceberg")
    with Session.distributed(cluster.url, token=cluster._secret, packages=packages, **settings) as opened:

        def wait(number):
            time.sleep(0.2)
            return number

        opened.udf("wait", wait, "bigint")
        yield opened


@pytest.fixture
def both_executors(session):
    """Both executors are ready, and free."""
    context = session.spark.sparkContext._jsc.sc()
    wait_until(lambda: context.getExecutorMemoryStatus().size() == 3, 60.0, "in possession of two executors")
    assert_both_slots_free(session, within=60.0)  # their first Python job of all takes long


def assert_both_slots_free(session, within=SOON_SECONDS):
    """A barrier stage of two tasks needs both executors at once."""

    def where(batches):
        pyspark.BarrierTaskContext.get().barrier()
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": batch.column("id"), "worker": [str(Path.cwd())] * batch.num_rows})

    begin = time.monotonic()
    frame = session.sql("SELECT id FROM range(0, 10, 1, 2)").mapInArrow(where, "id bigint, worker string", barrier=True)
    rows = frame.to_arrow().to_pydict()
    assert time.monotonic() - begin < within
    assert sorted(rows["id"]) == list(range(10))
    assert len(set(rows["worker"])) == 2


def executors(cluster):
    """The executor processes, the only JVMs that workers start, by worker."""
    return [psutil.Process(pid) for worker in cluster.workers for pid in alive(java_children(worker.pid))]


def test_a_job_runs_on_both_executors_and_says_so(session, both_executors):
    job = session.submit("SELECT sum(wait(id)) AS total FROM range(0, 8, 1, 8)")
    assert job.result(60.0).to_pydict() == {"total": [28]}
    tasks = job.assignments()
    assert {task.executor for task in tasks} == {"0", "1"}
    assert {task.status for task in tasks} == {"SUCCESS"}
    assert sorted((task.stage, task.partition) for task in tasks) == [(0, 0), *((1, number) for number in range(8))]
    addresses = {task.executor: task.address for task in tasks}
    assert len(set(addresses.values())) == 2
    assert all(re.fullmatch(r"\S+:\d+", address) for address in addresses.values())
    assert sorted(re.findall(r"->(\S+:\d+)", render_assignments(tasks))) == sorted(addresses.values())


def test_workers_run_this_python_without_archives_on_its_path(session, both_executors):
    def look(batches):
        for batch in batches:
            archives = [entry for entry in sys.path if entry.endswith((".zip", ".jar"))]
            yield pa.RecordBatch.from_pydict(
                {"id": batch.column("id"), "python": [f"{sys.executable} {archives}"] * batch.num_rows}
            )

    frame = session.sql("SELECT id FROM range(0, 4, 1, 2)").mapInArrow(look, "id bigint, python string")
    assert frame.to_arrow().to_pydict() == {"id": [0, 1, 2, 3], "python": [f"{sys.executable} []"] * 4}


def test_a_join_is_explained_as_stages(session):
    stages = session.explain("SELECT /*+ MERGE(b) */ * FROM range(10) a JOIN range(20) b USING (id)", "stages")
    headings = [line.strip("=") for line in stages.splitlines() if line.startswith("=")]
    partitions = session.spark.conf.get("spark.sql.shuffle.partitions")
    assert headings == [
        f"Stage 0 (partitions={partitions})",
        "Stage 1 (partitions=2)",
        "Stage 2 (partitions=2)",
    ]
    assert f"ExchangeRead: stage=1, hashpartitioning(id, {partitions})" in stages
    assert f"ExchangeRead: stage=2, hashpartitioning(id, {partitions})" in stages


def test_rows_cross_the_cluster_unchanged(session):
    rows = pa.table({"k": ["a", "b", "a"], "n": pa.array([1, None, 3], pa.int32())})
    session.register("rows", rows)
    found = session.sql("SELECT k, sum(n) AS total FROM rows GROUP BY k ORDER BY k").to_arrow()
    assert found.to_pydict() == {"k": ["a", "b"], "total": [4, None]}
    assert pa.Table.from_batches(session.table("rows").to_batches()).equals(rows)


@pytest.mark.campaign
def test_executors_get_the_jars_of_packages(session):
    require_connectors("iceberg")
    session.sql("CREATE TABLE iceberg.db.numbers USING iceberg AS SELECT id FROM range(0, 1000, 1, 4)")
    assert session.sql("SELECT sum(id) AS total FROM iceberg.db.numbers").to_arrow().to_pydict() == {"total": [499500]}


def test_errors_are_typed(session):
    def boom(number):
        raise ValueError(f"boom {number}")

    session.udf("boom", boom, "int")
    with pytest.raises(UserCodeError, match="ValueError: boom 0"):
        session.sql("SELECT boom(id) FROM range(1)").to_arrow()
    with pytest.raises(TableNotFound, match="nowhere") as caught:
        session.sql("SELECT 1\nFROM nowhere")
    assert (caught.value.position.line, caught.value.position.column) == (2, 6)


@pytest.mark.parametrize("query", [LONG, LONG_PYTHON], ids=["JVM", "Python"])
def test_a_deadline_frees_the_executors(session, both_executors, query):
    begin = time.monotonic()
    with pytest.raises(OperationTimeout):
        session.sql_with_timeout(query, 1000)
    assert time.monotonic() - begin < SOON_SECONDS
    assert list(session.operations) == []
    assert_both_slots_free(session)


def test_a_cancelled_job_frees_the_executors(session, both_executors):
    job = session.submit(LONG_PYTHON)
    wait_until(lambda: job.progress.done > 0, 30.0, "making progress")
    canceller = threading.Thread(target=session.operations.cancel, args=(job.id,))
    canceller.start()
    with pytest.raises(OperationCancelled):
        job.result(10.0)
    canceller.join()
    assert (job.state, list(session.operations)) == (OperationState.CANCELLED, [])
    assert_both_slots_free(session)
    assert {task.status for task in job.assignments()} <= {"SUCCESS", "KILLED"}


@pytest.mark.campaign
def test_a_job_survives_the_loss_of_an_executor(session, cluster, both_executors):
    job = session.submit("SELECT sum(wait(id)) AS total, count(*) AS n FROM range(0, 40, 1, 40)")
    wait_until(lambda: {task.executor for task in job.assignments()} >= {"0", "1"}, 30.0, "on both executors")
    wait_until(lambda: job.progress.done >= 4, 30.0, "making progress")
    executors(cluster)[0].kill()
    assert job.result(90.0).to_pydict() == {"total": [780], "n": [40]}
    tasks = job.assignments()
    assert any(task.attempt > 0 for task in tasks)
    # The executor that is gone has an address of its own, and the numbers are the plan's.
    assert len({task.address for task in tasks}) == len({task.executor for task in tasks}) >= 2
    assert all(re.fullmatch(r"\S+:\d+", task.address) for task in tasks)
    done = Counter(task.stage for task in tasks if task.status == "SUCCESS")
    assert (set(done), done[0], done[1] >= 40) == ({0, 1}, 1, True)


def test_the_secret_is_nowhere_to_be_seen(session, cluster, both_executors):
    secret = cluster._secret
    with pytest.raises(TableNotFound) as caught:
        session.sql(f"SELECT * FROM nowhere WHERE x = '{cluster.url}'")
    shown = f"{session!r} {session.describe()} {session.describe()!r} {session.settings!r} {caught.value}"
    assert secret not in shown
    assert len(executors(cluster)) == 2
    command_lines = {process.pid: process.info["cmdline"] for process in psutil.process_iter(["cmdline"])}
    assert set(command_lines) >= java_children(os.getpid())
    assert [line for line in command_lines.values() if secret in " ".join(line or [])] == []
