"""``weirflow streams`` as far as it goes without Spark."""

import json
import os
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from weirflow.cli.app import app
from weirflow.errors import UserCodeError
from weirflow.streaming.detached.folder import JobFolder
from weirflow.streaming.detached.record import ErrorRecord, JobRecord, QueryEnd, QueryRecord
from weirflow.streaming.query.handle import QueryInfo
from weirflow.types import Delivery, OutputMode, QueryState

COMMANDS = ["start", "list", "show", "stop", "log"]
BOOM = "def boom(session):\n    raise ValueError('no such luck')\n"


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEIRFLOW_PATH", raising=False)
    return lambda *arguments: CliRunner().invoke(app, ["streams", *map(str, arguments)])


@pytest.fixture
def failed(tmp_path):
    """A job that has ended: one query failed, one is done."""
    folder = JobFolder(tmp_path / "jobs", "nightly")
    folder.create()
    folder.log.write_text("one\ntwo\nthree\n")
    error = ErrorRecord.of(UserCodeError("it raised", hint="do not"))
    ends = {
        "orders": QueryEnd(QueryState.FAILED, "2", 1, error, None),
        "late": QueryEnd(QueryState.FINISHED, "3", 0, None, None),
    }
    queries = [QueryRecord(info(name), end.run_id, end) for name, end in ends.items()]
    folder.write(JobRecord("nightly", os.getpid(), "here", datetime.now(UTC), "/nowhere", queries))


def info(name):
    delivery = Delivery.EXACTLY_ONCE
    return QueryInfo(
        name, f"id-{name}", OutputMode.APPEND, "once", "parquet out", delivery, "of its log", "there", "none"
    )


def error_of(result):
    return json.loads(result.stderr)["error"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_has_examples(run, command):
    assert f"weirflow streams {command} " in run(command, "--help").stdout.partition("Examples")[2]


def test_help_names_the_commands(run):
    shown = run("--help").stdout
    assert [command for command in COMMANDS if f" {command} " not in shown] == []


@pytest.mark.parametrize(
    "arguments", [["start"], ["show"], ["stop", "a", "b"], ["log", "a", "-n", "-1"], ["nope"]], ids=" ".join
)
def test_a_usage_error_exits_with_2(run, arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: weirflow streams" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["start", "jobs.py:orders", "--path", "data"], "PATH_NOT_FOUND", "There is no file jobs.py."),
        (["start", "orders", "--path", "data"], "CONFIG_INVALID", "'orders' does not say where a function is."),
        (["start", "os:getcwd"], "CONFIG_INVALID", "a Session without a path has none"),
        (
            ["start", "os:getcwd", "--path", "d", "--name", "a/b"],
            "CONFIG_INVALID",
            "'a/b' cannot be the name of a job.",
        ),
        (["list"], "CONFIG_INVALID", "a Session without a path has none"),
        (["show", "orders", "--path", "data"], "STREAM_NOT_FOUND", "is called 'orders'"),
        (["stop", "orders", "--at", "data"], "STREAM_NOT_FOUND", "is called 'orders'"),
        (["log", "orders", "--at", "data"], "STREAM_NOT_FOUND", "is called 'orders'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_work_is_said_and_leaves_nothing(run, tmp_path, arguments, code, said):
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stdout, error_of(result)["code"]) == (1, "", code)
    assert said in error_of(result)["message"]
    assert list(tmp_path.iterdir()) == []


def test_a_function_that_raises_is_reported_and_its_log_kept(run, tmp_path):
    (tmp_path / "jobs.py").write_text(BOOM)
    result = run("start", "jobs.py:boom", "--at", "jobs", "--json")
    assert (result.exit_code, error_of(result)["code"]) == (1, "USER_CODE_FAILED")
    assert error_of(result)["message"].startswith("The function jobs.py:boom raised ValueError: no such luck\n")
    assert "no such luck" in run("log", "boom", "--at", "jobs").stdout
    assert run("list", "--at", "jobs").stdout == f"There are no jobs at {tmp_path}/jobs.\n"


def test_jobs_are_listed(run, failed):
    shown = run("list", "--at", "jobs").stdout
    assert [line.split("│")[1:4] for line in shown.splitlines() if line.startswith("│")] == [
        [" nightly ", " orders ", " failed   "],
        [" nightly ", " late   ", " finished "],
    ]
    listed = json.loads(run("list", "--at", "jobs", "--json").stdout)["queries"]
    assert [(one["job"], one["name"], one["state"]) for one in listed] == [
        ("nightly", "orders", "failed"),
        ("nightly", "late", "finished"),
    ]


def test_a_query_is_shown_by_its_name_or_id_and_a_job_with_all_its_queries(run, failed, tmp_path):
    shown = run("show", "orders", "--at", "jobs").stdout
    assert shown.startswith("orders: failed\n  it raised\n  hint: do not\n\nquery        orders (id-orders)\n")
    assert shown.endswith(f"job          nightly\nlog          {tmp_path}/jobs/nightly/log\n")
    assert run("show", "id-late", "--at", "jobs").stdout.startswith("late: finished\n")
    document = json.loads(run("show", "nightly", "--at", "jobs", "--json").stdout)
    assert [one["id"] for one in document["queries"]] == ["id-orders", "id-late"]
    assert document["queries"][0]["error"] == {"code": "USER_CODE_FAILED", "message": "it raised", "hint": "do not"}
    assert document["queries"][0]["info"]["delivery"] == "exactly-once"


def test_a_name_that_is_nearly_right_is_suggested(run, failed):
    result = run("stop", "nihgtly", "--at", "jobs")
    assert result.exit_code == 1
    assert result.stderr.endswith("hint: did you mean 'nightly'?\n")


def test_stopping_what_has_ended_changes_nothing(run, failed):
    assert run("stop", "nightly", "--at", "jobs").stdout == "orders: failed\nlate: finished\n"


def test_the_log_is_printed_from_its_end(run, failed):
    assert run("log", "nightly", "--at", "jobs", "-n", "2").stdout == "two\nthree\n"
    assert run("log", "late", "--at", "jobs", "-n", "0").stdout == "one\ntwo\nthree\n"
    assert json.loads(run("log", "nightly", "--at", "jobs", "--json").stdout)["lines"] == ["one", "two", "three"]
