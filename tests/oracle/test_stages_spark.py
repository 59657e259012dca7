"""The stages we print are the stages Spark runs."""

import itertools
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

from weirflow.spark.frames.explain import explain_stages, explain_text
from weirflow.spark.frames.live_plan import leaf_partition_counts, stage_rdds
from weirflow.spark.frames.plan_text import parse_plan
from weirflow.spark.frames.stages import cut, partition_sources
from weirflow.spark.jobs.assignments import render_assignments, task_assignments
from weirflow.spark.jobs.tagged import job_ids_for_tag, job_progress
from weirflow.types import ExplainMode

QUERIES = {
    "scan": "SELECT * FROM orders WHERE id > 5",
    "join": "SELECT /*+ MERGE(o) */ * FROM orders o JOIN regions r ON o.name = r.name",
    "hash join": "SELECT /*+ SHUFFLE_HASH(r) */ * FROM orders o JOIN regions r ON o.name = r.name",
    "broadcast join": "SELECT /*+ BROADCAST(r) */ * FROM orders o JOIN regions r ON o.name = r.name",
    "nested loop": "SELECT /*+ BROADCAST(r) */ * FROM orders o LEFT JOIN regions r ON o.id < r.id",
    "cartesian": "SELECT /*+ SHUFFLE_REPLICATE_NL(r) */ count(*) FROM orders o CROSS JOIN regions r",
    "aggregate": "SELECT customer, count(*) FROM orders GROUP BY customer",
    "distinct": "SELECT count(DISTINCT customer), sum(id) FROM orders",
    "sort": "SELECT * FROM orders ORDER BY id",
    "window": "SELECT *, row_number() OVER (PARTITION BY customer ORDER BY id) FROM orders",
    "explode": "SELECT customer, explode(array(1, 2)) FROM (SELECT DISTINCT customer FROM orders)",
    "top inside": "SELECT customer FROM (SELECT * FROM orders ORDER BY id LIMIT 9) GROUP BY customer",
    "top of one partition": "SELECT max(n) FROM (SELECT id n FROM range(0, 50, 1, 1) ORDER BY id LIMIT 9)",
    "top last": "SELECT * FROM orders ORDER BY id LIMIT 3",
    "limit inside": "SELECT count(*) FROM (SELECT * FROM orders LIMIT 7)",
    "subqueries": "SELECT id, (SELECT max(id) FROM regions) FROM orders WHERE id > (SELECT avg(id) FROM orders)",
    "subquery over range": "SELECT id FROM range(0, 9, 1, 3) WHERE id > (SELECT avg(customer) FROM orders)",
    "exists": "SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM regions r WHERE r.name = o.name)",
    "chained union": "SELECT id FROM orders UNION ALL SELECT id FROM regions"
    " UNION ALL SELECT id FROM range(0, 5, 1, 3)",
    "lined-up union": "WITH x AS (SELECT customer, count(*) n FROM orders GROUP BY customer)"
    " SELECT * FROM x UNION ALL SELECT * FROM x",
    "union of totals": "SELECT count(*) FROM orders UNION ALL SELECT count(*) FROM regions",
    "union of unlike": "SELECT customer, count(*) FROM orders GROUP BY customer"
    " UNION ALL SELECT id, count(*) FROM regions GROUP BY id",
    "reused exchange": "WITH x AS (SELECT customer, count(*) n FROM orders GROUP BY customer)"
    " SELECT /*+ MERGE(a) */ a.customer, a.n + b.n FROM x a JOIN x b ON a.customer = b.customer",
    "coalesce": "SELECT /*+ COALESCE(2) */ * FROM regions",
    "coalesce all": "SELECT /*+ COALESCE(1) */ * FROM (SELECT customer FROM orders GROUP BY customer)",
    "repartition": "SELECT /*+ REPARTITION(7, customer) */ * FROM orders",
    "round robin": "SELECT /*+ REPARTITION(3) */ * FROM orders",
    "range": "SELECT /*+ REPARTITION_BY_RANGE(5, id) */ * FROM orders",
    "pruned partitions": "SELECT * FROM regions WHERE part = 1",
    "pruning": "SELECT * FROM regions r JOIN orders o ON r.part = o.id WHERE o.customer = 3",
    "values": "SELECT col1, count(*) FROM VALUES (1), (2), (3) GROUP BY col1",
    "one row": "SELECT /*+ REPARTITION(3) */ 1",
    "cached": "SELECT name, count(*) FROM kept GROUP BY name",
    "broadcast aggregate": "SELECT /*+ BROADCAST(r) */ * FROM orders o"
    " JOIN (SELECT name, max(id) FROM regions GROUP BY name) r ON o.name = r.name",
    "two tops": "SELECT * FROM (SELECT * FROM orders ORDER BY id LIMIT 9)"
    " JOIN (SELECT * FROM regions ORDER BY id LIMIT 5) USING (name)",
    "subquery in a top": "SELECT count(*) FROM"
    " (SELECT id, (SELECT max(id) FROM regions) m FROM orders ORDER BY id LIMIT 9) WHERE m > id",
    "reused subquery": "SELECT id, (SELECT max(id) FROM regions) FROM orders WHERE id > (SELECT max(id) FROM regions)",
    "all unlike": "SELECT /*+ MERGE(b), BROADCAST(c) */ a.id FROM range(0, 50, 1, 2) a JOIN range(0, 50, 1, 3) b"
    " ON a.id = b.id JOIN range(0, 50, 1, 5) c ON b.id = c.id WHERE a.id > (SELECT avg(id) FROM range(0, 50, 1, 6))"
    " UNION ALL SELECT max(id) FROM range(0, 50, 1, 7) UNION ALL SELECT id FROM range(0, 50, 1, 8) ORDER BY 1",
}
# Where it is another way than to collect rows, and where there is most to tell apart.
ARROW = [(name, "toArrow") for name in ("top last", "two tops", "limit inside", "all unlike")]
# Where a plan that is not adaptive has other stages than Spark's default, an adaptive one.
UNLIKE = ("join", "top inside", "subqueries", "reused exchange", "coalesce all", "cached", "two tops", "all unlike")


def cases():
    """Every query as Spark runs it by default, and those of ``UNLIKE`` also as one that is not adaptive."""
    for name, how in [*((name, "collect") for name in QUERIES), *ARROW]:
        yield pytest.param(name, how, True, id=f"{name}-{how}-adaptive")
        marks = () if name in UNLIKE and how == "collect" else pytest.mark.campaign
        yield pytest.param(name, how, False, id=f"{name}-{how}-planned", marks=marks)


pytestmark = pytest.mark.filterwarnings(
    # DataFrame.collect() leaves its socket to the garbage collector.
    "ignore:unclosed <socket:ResourceWarning",
)
TAGS = (f"stages-{n}" for n in itertools.count())


@pytest.fixture(scope="module", autouse=True)
def tables(native_spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    native_spark.sparkContext.setLogLevel("ERROR")
    orders = native_spark.range(0, 200, 1, 5).selectExpr("id", "id % 10 AS customer", "concat('n', id % 7) AS name")
    regions = native_spark.range(0, 30, 1, 3).selectExpr("id", "concat('n', id % 7) AS name", "id % 4 AS part")
    orders.write.parquet(str(folder / "orders"))
    regions.write.partitionBy("part").parquet(str(folder / "regions"))
    native_spark.conf.set("spark.sql.files.maxPartitionBytes", "3kb")
    native_spark.conf.set("spark.sql.files.openCostInBytes", "1kb")
    for name in ("orders", "regions"):
        native_spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    kept = native_spark.table("orders").where("id < 100").repartition(6).cache()
    kept.count()
    kept.createOrReplaceTempView("kept")


@pytest.fixture
def adaptive(native_spark):
    def switch(on):
        native_spark.conf.set("spark.sql.adaptive.enabled", str(on).lower())

    yield switch
    native_spark.conf.unset("spark.sql.adaptive.enabled")


class Tagged:
    """The Spark jobs started within a ``with`` block."""

    def __init__(self, spark):
        self.sc = spark.sparkContext
        self.tag = next(TAGS)

    def __enter__(self):
        self.sc.addJobTag(self.tag)
        return self

    def __exit__(self, *_):
        self.sc.removeJobTag(self.tag)

    @property
    def jobs(self):
        return job_ids_for_tag(self.sc, self.tag)

    def tasks(self, frame=None):
        return task_assignments(self.sc, self.jobs, frame)


def stages_of(df):
    text = explain_text(df, ExplainMode.PHYSICAL)
    counts = leaf_partition_counts(df)
    assert len(counts) == len(partition_sources(parse_plan(text)))
    return cut(text, counts)


def without_partitions(stage):
    return replace(stage, partitions=None)


def test_every_kind_of_query_says_how_many_partitions_it_has(native_spark, adaptive):
    adaptive(False)
    unknown = {
        name: [stage.number for stage in stages_of(native_spark.sql(query)) if stage.partitions is None]
        for name, query in QUERIES.items()
    }
    # Which files are read depends on a subquery that has not run.
    assert {name: numbers for name, numbers in unknown.items() if numbers} == {
        "subqueries": [0],
        "pruning": [0],
        "reused subquery": [0],
    }


@pytest.mark.parametrize(("name", "how", "on"), list(cases()))
def test_the_stages_are_those_that_run_and_their_tasks_have_their_numbers(native_spark, adaptive, name, how, on):
    adaptive(on)
    df = native_spark.sql(QUERIES[name])
    with Tagged(native_spark) as before:
        explained = stages_of(df)
    with Tagged(native_spark) as ran:
        getattr(df, how)()
    with Tagged(native_spark) as after:
        stages = stages_of(df)
        tasks = ran.tasks(df)
    assert before.jobs == after.jobs == []
    if not on:
        assert [without_partitions(stage) for stage in explained] == [without_partitions(stage) for stage in stages]
        assert all(was.partitions in (None, now.partitions) for was, now in zip(explained, stages, strict=True))
    partitions = defaultdict(list)
    for task in sorted(tasks, key=lambda task: task.partition):
        partitions[task.stage].append(task.partition)
    # Before it spreads rows by range, Spark samples them in a job of its own.
    beside = [stage.partitions for stage in stages if stage.root.text.startswith("Exchange rangepartitioning")]
    if (name, how) == ("top last", "toArrow"):
        beside.append(1)  # the rows are gathered in Spark, not in the driver
    expected = {stage.number: stage.partitions for stage in stages} | dict(enumerate(beside, len(stages)))
    assert partitions == {number: list(range(count)) for number, count in expected.items() if count != 0}


def test_every_stage_of_a_plan_is_told_from_the_others(native_spark, adaptive):
    adaptive(False)
    df = native_spark.sql(QUERIES["all unlike"])
    with Tagged(native_spark) as ran:
        df.collect()
    tasks = ran.tasks(df)
    sort, union, left, right, broadcast, subquery, average, most, sample = range(9)
    counts = {sort: 4, union: 4 + 1 + 8, left: 2, right: 3, broadcast: 5, subquery: 1, average: 6, most: 7}
    assert Counter(task.stage for task in tasks) == counts | {sample: counts[union]}
    spark_stage = {task.stage: task.spark_stage for task in tasks}
    assert spark_stage[average] < spark_stage[subquery] < spark_stage[sample] < spark_stage[union] < spark_stage[sort]


def test_a_stage_whose_rows_are_still_there_has_no_tasks(native_spark, adaptive):
    adaptive(False)
    df = native_spark.sql(QUERIES["join"])
    df.collect()
    with Tagged(native_spark) as again:
        df.collect()
        native_spark.range(0, 9, 1, 6).collect()
    assert Counter(task.stage for task in again.tasks(df)) == {0: 4, 3: 6}


def test_asking_for_what_has_not_run_runs_nothing(native_spark, adaptive):
    adaptive(False)
    with Tagged(native_spark) as asked:
        assert stage_rdds(native_spark.sql(QUERIES["all unlike"])) == {}
    assert asked.jobs == []


def test_an_exchange_is_known_where_it_is_only_reused_any_more(native_spark, adaptive):
    adaptive(True)
    df = native_spark.sql(
        "WITH x AS (SELECT customer, count(*) n FROM orders WHERE customer IS NOT NULL GROUP BY customer)"
        " SELECT /*+ MERGE(e) */ n FROM x JOIN (SELECT max(id) k FROM regions WHERE concat(name, 'x') = 'none'"
        " GROUP BY name) e ON x.customer = e.k UNION ALL SELECT n FROM x"
    )
    with Tagged(native_spark) as ran:
        assert len(df.collect()) == 10
    assert len(stages_of(df)) == 2  # the join is empty, and gone
    assert Counter(task.stage for task in ran.tasks(df)) == {0: 1, 1: 5, 2: 6}


def test_each_partition_read_by_an_iterator_is_of_the_result(native_spark, adaptive):
    adaptive(False)
    df = native_spark.sql(QUERIES["aggregate"])
    with Tagged(native_spark) as ran:
        assert len(list(df.toLocalIterator())) == 10
    assert len(ran.jobs) == 4
    assert Counter(task.stage for task in ran.tasks(df)) == {0: 4, 1: 5}


def test_a_limit_that_has_seen_enough_leaves_partitions_out(native_spark, adaptive):
    adaptive(False)
    df = native_spark.sql("SELECT * FROM orders LIMIT 50")
    with Tagged(native_spark) as ran:
        df.collect()
    assert len(ran.jobs) == 2  # one partition, and then more
    assert [(task.stage, task.partition) for task in ran.tasks(df)] == [(0, 0), (0, 1)]


def test_other_work_has_the_numbers_behind_the_plan(native_spark, adaptive):
    adaptive(False)
    df, other = native_spark.sql(QUERIES["join"]), native_spark.range(0, 9, 1, 6).repartition(7)
    with Tagged(native_spark) as ran:
        other.collect()
        df.collect()
    assert Counter(task.stage for task in ran.tasks(df)) == {0: 4, 1: 5, 2: 6, 3: 6, 4: 7} | {
        stage.number: stage.partitions for stage in stages_of(df)
    }
    assert Counter(task.stage for task in ran.tasks(other))[0] == 7


def test_without_a_frame_the_last_stage_is_the_result(native_spark, adaptive):
    adaptive(False)
    with Tagged(native_spark) as ran:
        native_spark.sql(QUERIES["join"]).collect()
        native_spark.range(0, 9, 1, 6).repartition(7).collect()
    tasks = ran.tasks()
    assert Counter(task.stage for task in tasks)[0] == 7
    assert {task.spark_stage for task in tasks if task.stage == 0} == {max(task.spark_stage for task in tasks)}
    others = sorted({(task.spark_stage, task.stage) for task in tasks if task.stage})
    assert [number for _, number in others] == list(range(1, len(others) + 1))


@pytest.mark.parametrize("on", [False, True], ids=["planned", "adaptive"])
def test_stages_of_a_failed_query_are_known_as_far_as_it_came(native_spark, adaptive, on):
    adaptive(on)
    df = native_spark.sql(
        "SELECT /*+ MERGE(b) */ a.n, assert_true(a.n > 1) FROM"
        " (SELECT id, count(*) n FROM range(0, 9, 1, 3) GROUP BY id) a JOIN range(0, 9, 1, 2) b ON a.id = b.id"
    )
    with Tagged(native_spark) as ran, pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        df.collect()
    stages = stages_of(df)
    tasks = ran.tasks(df)
    done = Counter(task.stage for task in tasks if task.status == "SUCCESS" and task.stage)
    assert done == {stage.number: stage.partitions for stage in stages if stage.number}
    assert {task.stage for task in tasks if task.status == "FAILED"} == {0}


def test_an_unfilled_cache_is_not_filled_to_explain_it(native_spark, adaptive):
    adaptive(True)
    df = native_spark.table("orders").where("id < 7").groupBy("customer").count().cache()
    try:
        with Tagged(native_spark) as explained:
            text = explain_stages(df)
    finally:
        df.unpersist()
    assert explained.jobs == []
    assert text.startswith("===============Stage 0 (partitions=?)===============\nInMemoryTableScan [customer, count]")


def test_tasks_are_found_by_tag_after_the_run(native_spark, adaptive):
    adaptive(False)
    with Tagged(native_spark) as ran:
        native_spark.range(0, 10, 1, 3).repartition(2).collect()
    tasks = task_assignments(native_spark.sparkContext, ran.jobs)
    first, last = sorted({task.spark_stage for task in tasks})
    (job,) = ran.jobs
    assert [(task.job, task.stage, task.spark_stage, task.attempt, task.partition, task.status) for task in tasks] == [
        *((job, 0, last, 0, partition, "SUCCESS") for partition in range(2)),
        *((job, 1, first, 0, partition, "SUCCESS") for partition in range(3)),
    ]
    (executor, address) = {(task.executor, task.address) for task in tasks}.pop()
    port = native_spark._jvm.org.apache.spark.SparkEnv.get().blockManager().blockManagerId().port()
    assert (executor, address) == ("driver", f"127.0.0.1:{port}")
    assert render_assignments(tasks) == f"0/{{0,1}},1/{{0,1,2}}->127.0.0.1:{port}"
    assert all(task.duration_ms >= 0 and task.locality for task in tasks)
    assert job_progress(native_spark.sparkContext, ran.jobs) == (5, 5)


def test_failed_attempts_are_assignments_too(native_spark, adaptive):
    adaptive(False)
    with Tagged(native_spark) as ran, pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        native_spark.range(0, 1, 1, 1).select(1 / F.col("id")).collect()
    (task,) = task_assignments(native_spark.sparkContext, ran.jobs)
    assert (task.partition, task.status) == (0, "FAILED")
    assert job_progress(native_spark.sparkContext, ran.jobs) == (0, 1)


def test_unknown_jobs_have_no_tasks(native_spark):
    assert job_ids_for_tag(native_spark.sparkContext, "no-such-tag") == []
    assert task_assignments(native_spark.sparkContext, [10**6]) == []
    assert job_progress(native_spark.sparkContext, [10**6]) == (0, 0)


def test_logical_plans_are_the_analysed_and_the_optimised(native_spark):
    text = explain_text(native_spark.sql("SELECT 1 + 1 AS two"), ExplainMode.LOGICAL)
    assert [line for line in text.splitlines() if line.startswith("==")] == [
        "== Analyzed Logical Plan ==",
        "== Optimized Logical Plan ==",
    ]
