from types import SimpleNamespace

import pytest

import weirflow
from weirflow import TaskAssignment, render_assignments
from weirflow.errors import SessionClosed, UnsupportedError
from weirflow.spark.frames.plan_text import PlanNode
from weirflow.spark.frames.stages import Stage, StageKind
from weirflow.spark.jobs import assignments
from weirflow.spark.jobs.control import DriverControl


def ran(stage, partition, port, host="localhost", attempt=0):
    return TaskAssignment(
        job=0,
        stage=stage,
        attempt=attempt,
        partition=partition,
        executor="7",
        host=host,
        address=f"{host}:{port}" if port else host,
        locality="PROCESS_LOCAL",
        status="SUCCESS",
        duration_ms=5,
        spark_stage=40 + stage,
    )


def test_assignments_are_grouped_by_executor_and_stage():
    tasks = [
        *(ran(0, partition, 50060) for partition in (9, 3, 0, 6)),
        *(ran(1, partition, 50060) for partition in (1, 0)),
        *(ran(0, partition, 50070) for partition in (4, 1)),
    ]
    assert render_assignments(tasks) == "0/{0,3,6,9},1/{0,1}->localhost:50060, 0/{1,4}->localhost:50070"
    assert render_assignments(tasks[::-1]) == render_assignments(tuple(tasks)) == render_assignments(tasks)


def test_stages_and_partitions_are_in_the_order_of_numbers():
    tasks = [ran(10, 11, 50060), ran(10, 2, 50060), ran(9, 0, 50060)]
    assert render_assignments(tasks) == "9/{0},10/{2,11}->localhost:50060"


def test_a_partition_is_there_once_for_each_executor_that_tried_it():
    tasks = [ran(0, 2, 50060), ran(0, 2, 50060, attempt=1), ran(0, 2, 50070, attempt=2)]
    assert render_assignments(tasks) == "0/{2}->localhost:50060, 0/{2}->localhost:50070"


def test_of_a_forgotten_executor_the_host_is_left():
    assert render_assignments([ran(0, 0, None, "other"), ran(0, 1, 1, "::1")]) == "0/{1}->::1:1, 0/{0}->other"


def test_nothing_ran():
    assert render_assignments([]) == ""


def test_a_limit_that_needed_no_exchange_is_a_part_of_the_stage_that_reads_it(monkeypatch):
    empty = PlanNode("")
    planned = (
        Stage(0, 1, empty, (1,), StageKind.RESULT, "result"),
        Stage(1, None, empty, (), StageKind.SHUFFLE, "limit 0"),
    )
    monkeypatch.setattr(assignments, "plan_stages", lambda _: planned)
    monkeypatch.setattr(assignments, "stage_rdds", lambda _: {"limit 0": 10, "result": 11})
    assert assignments._numbers({7: {9, 10, 11, 12}}, 7, "a frame") == {7: 0}
    assert assignments._numbers({7: {9, 10}, 8: {11, 12}, 9: {13}}, 9, "a frame") == {7: 1, 8: 0, 9: 2}


def test_a_query_that_could_not_be_planned_is_numbered_from_its_end(monkeypatch):
    def fail(_):
        raise UnsupportedError("too deep")

    monkeypatch.setattr(assignments, "plan_stages", fail)
    assert assignments._numbers({7: {1}, 3: {2}, 5: {3}}, 7, "a frame") == {7: 0, 3: 1, 5: 2}
    # The last one is known, but has no tasks yet.
    assert assignments._numbers({3: {2}, 5: {3}}, 7, None) == {7: 0, 3: 1, 5: 2}


def test_of_a_closed_session_nothing_is_known():
    with pytest.raises(SessionClosed, match="closed"):
        DriverControl(SimpleNamespace(_jsc=None)).assignments("weirflow-1", None)


def test_both_names_are_exported():
    assert {"TaskAssignment", "render_assignments"} <= set(weirflow.__all__)
