"""Operations on a real Spark: what is stopped really stops, and its slots are free again."""

import threading
import time
from collections import Counter

import pytest
from pyspark import BarrierTaskContext
from support.processes import wait_until

import weirflow
from weirflow import render_assignments
from weirflow.errors import ConfigError, OperationCancelled, OperationTimeout, SessionError, UnsupportedError
from weirflow.types import OperationState

# A minute of work in each of two tasks, in the JVM alone.
JVM_BOUND = "SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE sqrt(id) * sqrt(id + 1) < 0"
SHUFFLING = """
SELECT count(*) FROM (SELECT a.id % 1000 AS k, count(*) AS n FROM range(0, 400000000, 1, 200) a GROUP BY 1) x
JOIN (SELECT id % 1000 AS k, max(id) AS m FROM range(0, 400000000, 1, 200) GROUP BY 1) y ON x.k = y.k
"""


@pytest.fixture
def slow(session):
    """Queries that would run for a minute, by what keeps them busy."""

    def sleep(value):
        time.sleep(30)
        return value

    session.udf("sleepy", sleep, "long")
    return {
        "jvm": JVM_BOUND,
        "python": "SELECT sum(sleepy(id)) FROM range(0, 4, 1, 4)",
        "short tasks": SHUFFLING,
    }


def slots_are_free(session):
    """A job that needs both cores at once ends long before what was stopped would have freed them."""

    def meet(batches):
        BarrierTaskContext.get().barrier()
        yield from batches

    begin = time.monotonic()
    frame = session.from_arrow(session.spark.range(0, 2, 1, 2)).mapInArrow(meet, "id long", barrier=True)
    assert Counter(frame.to_arrow()["id"].to_pylist()) == Counter([0, 1])
    return time.monotonic() - begin < 20.0


def active_jobs(session):
    return list(session.spark.sparkContext.statusTracker().getActiveJobsIds())


@pytest.mark.parametrize("kind", ["jvm", "python", "short tasks"])
def test_a_deadline_stops_the_query(session, slow, kind):
    session.sql("SELECT 1").collect()
    begin = time.monotonic()
    with pytest.raises(OperationTimeout) as caught:
        session.sql_with_timeout(slow[kind], 1000)
    assert 1.0 <= time.monotonic() - begin < 10.0
    wait_until(lambda: not list(session.operations), 20.0, "stopped")  # a worker of Python's takes a while to end
    assert session.operations.get(caught.value.operation_id).state is OperationState.TIMED_OUT
    wait_until(lambda: not active_jobs(session), 20.0, "idle")
    assert slots_are_free(session)


@pytest.mark.parametrize("kind", ["jvm", "python"])
def test_cancel_from_another_thread(session, slow, kind):
    outcome = []

    def work():
        try:
            session.sql(slow[kind]).collect()
        except Exception as error:  # noqa: BLE001 - looked at below
            outcome.append((error, time.monotonic()))

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: active_jobs(session), 20.0, "running")
    [operation] = session.operations
    begin = time.monotonic()
    session.operations.cancel(operation.id)
    thread.join(10.0)
    [(error, ended)] = outcome
    assert type(error) is OperationCancelled
    assert error.operation_id == operation.id
    assert ended - begin < 6.0
    assert operation.state is OperationState.CANCELLED
    assert list(session.operations) == []
    assert slots_are_free(session)


def test_cancelling_one_leaves_the_others(session):
    def wait(batches):
        time.sleep(2)
        yield from batches

    session.from_arrow(session.spark.range(0, 1, 1, 1)).mapInArrow(wait, "id long").createOrReplaceTempView("waits")
    victim = session.submit(JVM_BOUND)
    survivor = session.submit("SELECT id FROM waits")
    wait_until(lambda: len(active_jobs(session)) == 2, 20.0, "both running")
    victim.cancel()
    with pytest.raises(OperationCancelled):
        victim.result(10)
    assert survivor.result(30).to_pylist() == [{"id": 0}]


def test_a_cancelled_stream(session):
    def wait(batches):
        for batch in batches:
            if batch.column(0)[0].as_py() > 0:
                time.sleep(30)
            yield batch

    stream = session.from_arrow(session.spark.range(0, 8, 1, 8)).mapInArrow(wait, "id long").to_batches()
    assert next(stream).to_pylist() == [{"id": 0}]
    [operation] = session.operations
    operation.cancel()
    begin = time.monotonic()
    with pytest.raises(OperationCancelled):
        next(stream)
    assert time.monotonic() - begin < 10.0
    assert operation.state is OperationState.CANCELLED
    assert slots_are_free(session)


def test_a_submitted_query_reports_progress_and_its_result(session):
    def wait(batches):
        time.sleep(0.3)
        yield from batches

    session.from_arrow(session.spark.range(0, 8, 1, 8)).mapInArrow(wait, "id long").createOrReplaceTempView("slow_rows")
    job = session.submit("SELECT id FROM slow_rows")
    assert list(session.operations) == [job]
    assert job.description == "SELECT id FROM slow_rows"
    seen = []
    while not job.wait(0.1):
        seen.append((job.progress.done, job.progress.total))
    assert sorted(row["id"] for row in job.result().to_pylist()) == list(range(8))
    done = [number for number, total in seen if total == 8]
    assert done == sorted(done)
    assert len(set(done)) >= 3
    assert job.state is OperationState.SUCCEEDED
    assert job.seconds >= 1.0


def test_assignments_say_where_each_task_ran(session):
    job = session.submit("SELECT id FROM range(0, 10, 1, 4)")
    job.result(60)
    tasks = job.assignments()
    assert sorted(task.partition for task in tasks) == [0, 1, 2, 3]
    assert {(task.executor, task.status) for task in tasks} == {("driver", "SUCCESS")}


JOINED = """
SELECT /*+ MERGE(b) */ a.id, n FROM (SELECT id % 5 AS id, count(*) AS n FROM range(0, 60, 1, 6) GROUP BY 1) a
JOIN range(0, 5, 1, 3) b ON a.id = b.id
"""


@pytest.fixture
def planned(session):
    """Plans are run as they are explained, with four tasks behind a shuffle."""
    wanted = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    before = {name: session.spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        session.spark.conf.set(name, value)
    yield
    for name, value in before.items():
        session.spark.conf.set(name, value)


def stages_and_partitions(operation):
    return sorted((task.stage, task.partition) for task in operation.assignments())


def numbered(*counts):
    return [(stage, partition) for stage, count in enumerate(counts) for partition in range(count)]


WAYS = {
    "to_arrow": lambda frame: frame.to_arrow(),
    "to_batches": lambda frame: list(frame.to_batches()),
    "collect": lambda frame: frame.collect(),
    "toArrow": lambda frame: frame.toArrow(),
    "toPandas": lambda frame: frame.toPandas(),
    "toLocalIterator": lambda frame: list(frame.toLocalIterator()),
}


@pytest.mark.parametrize("way", WAYS)
def test_tasks_are_numbered_as_the_stages_that_explain_shows(session, planned, way):
    explained = session.explain(JOINED, "stages")
    assert [line.strip("=") for line in explained.splitlines() if line.startswith("=")] == [
        "Stage 0 (partitions=4)",
        "Stage 1 (partitions=6)",
        "Stage 2 (partitions=3)",
    ]
    job = session.operations.submit(way, lambda: WAYS[way](session.sql(JOINED)))
    job.result(60)
    assert stages_and_partitions(job) == numbered(4, 6, 3)
    assert job.explain() == explained


@pytest.mark.parametrize("way", WAYS)
def test_a_call_of_its_own_is_numbered_too(session, planned, monkeypatch, way):
    ran = []
    monkeypatch.setattr(session.operations._display, "end", ran.append)
    WAYS[way](session.sql(JOINED))
    assert stages_and_partitions(ran[-1]) == numbered(4, 6, 3)


def test_a_submitted_query_is_rendered_by_executor(session, planned):
    job = session.submit(JOINED)
    job.result(60)
    ((line,), (address,)) = (render_assignments(job.assignments()).split(", "), {t.address for t in job.assignments()})
    assert line == f"0/{{0,1,2,3}},1/{{0,1,2,3,4,5}},2/{{0,1,2}}->{address}"
    host, _, port = address.rpartition(":")
    assert host
    assert 0 < int(port) < 2**16


def test_numbers_of_an_adaptive_plan_are_those_of_the_plan_that_ran(session):
    job = session.submit(JOINED)
    job.result(60)
    headings = [line.strip("=") for line in job.explain().splitlines() if line.startswith("=")]
    assert headings == ["Stage 0 (partitions=1)", "Stage 1 (partitions=6)", "Stage 2 (partitions=3)"]
    assert stages_and_partitions(job) == numbered(1, 6, 3)


def test_a_query_that_failed_is_numbered_as_far_as_it_came(session, planned):
    job = session.submit(f"SELECT n / (n - n) FROM ({JOINED})")
    assert job.wait(60)
    tasks = job.assignments()
    assert {task.stage for task in tasks if task.status == "FAILED"} == {0}
    assert Counter(task.stage for task in tasks if task.status == "SUCCESS" and task.stage) == {1: 6, 2: 3}
    assert job.explain().count("===Stage ") == 3


def test_a_query_that_was_stopped_is_numbered_as_far_as_it_came(session, planned, slow):
    query = "SELECT sum(sleepy(n)) FROM (SELECT id % 2, count(*) n FROM range(0, 60, 1, 6) GROUP BY 1)"
    job = session.submit(query)
    wait_until(lambda: Counter(task.stage for task in job.assignments()) >= Counter({1: 1, 2: 6}), 30.0, "asleep")
    assert "Stage 2 (partitions=6)" in job.explain()
    job.cancel()
    with pytest.raises(OperationCancelled):
        job.result(30)
    assert {task.stage for task in job.assignments() if task.status != "SUCCESS"} == {1}
    with pytest.raises(OperationTimeout) as caught:
        session.sql_with_timeout(query, 2000)
    stopped = session.operations.get(caught.value.operation_id)
    assert Counter(task.stage for task in stopped.assignments())[2] == 6
    assert stopped.explain() == job.explain()


def test_a_write_has_the_stage_that_writes_as_its_first(session, planned, monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(session.operations._display, "end", ran.append)
    session.sql(JOINED).write_parquet(tmp_path / "rows")
    counts = Counter(task.stage for task in ran[-1].assignments())
    assert (counts[0], {counts[1], counts[2]}, len(counts)) == (4, {6, 3}, 3)
    with pytest.raises(UnsupportedError, match="No plan is known of 'write parquet'"):
        ran[-1].explain()


def test_a_failed_submission_raises_when_asked(session):
    job = session.submit("SELECT 1 / (id - id) FROM range(3)")
    assert job.wait(60)
    with pytest.raises(weirflow.WeirflowError, match="Division by zero"):
        job.result()
    assert job.state is OperationState.FAILED


def test_a_deadline_that_is_met(session):
    frame = session.sql_with_timeout("SELECT :n AS n", 60_000, {"n": 5})
    assert frame.to_arrow().to_pylist() == [{"n": 5}]
    assert frame.select((frame.n + 1).alias("m")).to_arrow().to_pylist() == [{"m": 6}]


@pytest.mark.parametrize("timeout", [0, -5])
def test_a_deadline_in_the_past(session, timeout):
    with pytest.raises(ConfigError, match=r"timeout_ms is .* more than 0"):
        session.sql_with_timeout("SELECT 1", timeout)


def test_everything_that_runs_is_listed(session, tmp_path):
    seen = []

    original = session.operations._tracked

    def tracked(operation):
        seen.append(operation.description)
        return original(operation)

    session.operations._tracked = tracked
    try:
        session.sql("SELECT 1 AS a").write_parquet(tmp_path / "t")
        session.read_parquet(tmp_path / "t").count()
        session.register("t", [{"a": 1}])
        list(session.table("t").to_batches())
    finally:
        del session.operations._tracked
    assert seen == [
        "write parquet",
        f"read parquet {tmp_path / 't'}",
        "count",
        "from_arrow",
        "createOrReplaceTempView",
        "read t",
        "read t",
        "to_batches",
    ]


def test_long_queries_have_short_names(session):
    job = session.submit("SELECT 1 AS a,\n" + "2 AS b, " * 50 + "3 AS c")
    job.result(60)
    assert len(job.description) == 60
    assert job.description.startswith("SELECT 1 AS a, 2 AS b,")


def test_marks_do_not_leak_onto_the_thread(session):
    session.sql("SELECT 1").collect()
    assert list(session.spark.sparkContext.getJobTags()) == []


def test_closing_stops_what_runs(exclusive_spark):
    session = weirflow.Session.embedded(cores=2, driver_memory="1g", progress="off")
    stream = session.from_arrow(session.spark.range(0, 8, 1, 8)).to_batches()
    next(stream)
    job = session.submit(JVM_BOUND)
    wait_until(lambda: active_jobs(session), 20.0, "running")
    begin = time.monotonic()
    session.close()
    assert time.monotonic() - begin < 20.0
    assert job.state is OperationState.CANCELLED
    with pytest.raises(OperationCancelled):
        job.result()
    with pytest.raises((OperationCancelled, SessionError)):
        list(stream)
    assert list(session.operations) == []
