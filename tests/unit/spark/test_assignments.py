from weirflow.spark.jobs.assignments import TaskAssignment, render_assignments


def ran(stage, partition, executor, host="localhost"):
    return TaskAssignment(
        job=0,
        stage=stage,
        attempt=0,
        partition=partition,
        executor=executor,
        host=host,
        locality="PROCESS_LOCAL",
        status="SUCCESS",
        duration_ms=5,
    )


def test_assignments_are_grouped_by_executor_and_stage():
    tasks = [ran(0, 3, "1"), ran(0, 0, "1"), ran(1, 0, "1"), ran(0, 10, "1"), ran(0, 2, "2", "other")]
    assert render_assignments(tasks) == "0/{0,3,10},1/{0}->executor-1@localhost, 0/{2}->executor-2@other"


def test_local_spark_runs_in_the_driver():
    assert render_assignments([ran(4, 0, "driver")]) == "4/{0}->driver@localhost"


def test_nothing_ran():
    assert render_assignments([]) == ""
