"""The commands as far as they go without Spark."""

import json
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weirflow import __version__
from weirflow.cli.app import app
from weirflow.cli.checks import EXTRAS

SECRET = "canary-7f3a"


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEIRFLOW_CACHE_DIR", str(tmp_path / "cache"))
    return lambda *arguments, **options: CliRunner().invoke(app, [*map(str, arguments)], **options)


def error_of(result):
    return json.loads(result.stderr)["error"]


def test_help_names_the_commands_and_loads_neither_spark_nor_arrow():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom weirflow.cli.app import app\n"
        "print(CliRunner().invoke(app, ['--help']).stdout)\n"
        "print(sorted({'pyspark', 'py4j', 'pyarrow', 'pydantic', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(f" {command} " in done.stdout for command in ("sql", "explain", "streams", "doctor", "version"))


@pytest.mark.parametrize("command", ["sql", "explain", "refresh", "doctor"])
def test_the_help_of_each_command_has_examples(run, command):
    assert f"weirflow {command} " in run(command, "--help").stdout.partition("Examples")[2]


def test_version_is_printed_without_spark(run):
    assert run("--version").stdout == f"weirflow {__version__}\n"
    versions = json.loads(run("version", "--json").stdout)
    assert list(versions) == ["weirflow", "python", "pyspark", "pyarrow", "java"]
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql"],
        ["sql", "SELECT 1", "--file", "q.sql"],
        ["sql", "  "],
        ["sql", "SELECT 1", "--json", "--format", "csv"],
        ["sql", "SELECT 1", "--output", "x.csv", "--format", "csv"],
        ["sql", "SELECT 1", "--limit", "-1"],
        ["explain", "--mode", "nope", "SELECT 1"],
        ["refresh"],
        ["refresh", "totals", "--all"],
        ["nope"],
    ],
    ids=" ".join,
)
def test_a_usage_error_exits_with_2(run, arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: weirflow" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-t", "orders"], "CONFIG_INVALID", ("--table takes NAME=PATH, not 'orders'.", "write --table orders=orders")),
        (
            ["-t", "a b=orders.csv"],
            "CONFIG_INVALID",
            ("'a b' cannot be the name of a table.", "--table orders=orders.csv"),
        ),
        (
            ["-t", "t=orders.csv", "-t", "T=orders.csv"],
            "CONFIG_INVALID",
            ("Two tables are called 'T'.", "name of its own"),
        ),
        (["-t", "t=order.csv"], "PATH_NOT_FOUND", ("There is no file order.csv.", "did you mean 'orders.csv'?")),
        (["-t", "t=no/order.csv"], "PATH_NOT_FOUND", ("There is no file no/order.csv.", "there is no folder ")),
        (["-t", "t=notes.txt"], "UNSUPPORTED", ("The name of notes.txt does not say what it holds.", ".parquet, .csv")),
        (["-t", "t=mixed"], "UNSUPPORTED", ("mixed holds csv and json files.", "all parquet, all csv or all json")),
        (["-t", "t=empty"], "UNSUPPORTED", ("empty holds no data files.", "all parquet")),
        (["-t", "t=lake"], "UNSUPPORTED", ("lake is a Delta table", "--package delta")),
        (["-P", "x"], "CONFIG_INVALID", ("--param takes NAME=VALUE.", "without spaces")),
        (["--conf", "x"], "CONFIG_INVALID", ("--conf takes NAME=VALUE.", "without spaces")),
        (["-o", "rows.xls"], "UNSUPPORTED", ("The name of rows.xls does not say how to write it.", ".parquet, .csv")),
        (["-o", "no/rows.csv"], "PATH_NOT_FOUND", ("There is no folder ", "")),
        (["-o", "heap.csv"], "CONFIG_INVALID", ("heap.csv is a folder.", "name a file in it")),
        (["--timeout", "0"], "CONFIG_INVALID", ("A timeout of 0 s leaves no time to run.", "above 0")),
        (["--token", SECRET], "CONFIG_INVALID", ("token is given, but the placement is embedded", "leave it out")),
        (["--cores", "1", "--driver-memory", "much"], "CONFIG_INVALID", ("driver_memory", "")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_work_is_said_before_spark_starts(run, tmp_path, arguments, code, said):
    (tmp_path / "orders.csv").write_text("id\n1\n")
    (tmp_path / "notes.txt").write_text("?")
    for folder in ("mixed", "empty", "lake/_delta_log", "heap.csv"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "mixed" / "a.csv").touch()
    (tmp_path / "mixed" / "b.json").touch()
    result = run("sql", "SELECT 1", "--json", *arguments)
    error = error_of(result)
    assert (result.exit_code, result.stdout, error["code"]) == (1, "", code)
    assert said[0] in error["message"].replace(f"{tmp_path}/", "")
    assert said[1] in (error["hint"] or "")
    assert SECRET not in result.stderr


def test_a_missing_sql_file_suggests_the_nearest(run, tmp_path):
    (tmp_path / "report.sql").write_text("SELECT 1")
    result = run("sql", "--file", "reprot.sql")
    assert result.exit_code == 1
    assert result.stderr == "error [PATH_NOT_FOUND]: There is no file reprot.sql.\n  hint: did you mean 'report.sql'?\n"


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE t",
        "CREATE TABLE t AS SELECT 1",
        "/* SELECT */ INSERT INTO t VALUES (1)",
        "-- SELECT\nDELETE FROM t",
        "WITH s AS (SELECT r'\\' AS x) INSERT INTO t SELECT 'y'",
        "FROM s INSERT INTO t SELECT *",
        "BEGIN DROP TABLE t; END",
    ],
)
def test_explain_never_runs_a_command(run, statement):
    result = run("explain", "--json", "--", statement)
    assert (result.exit_code, error_of(result)["code"]) == (1, "UNSUPPORTED")


def test_doctor_passes_on_a_good_machine_and_says_so_in_json(run):
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"]) == (0, True)
    assert [check["name"] for check in document["checks"]] == [
        "Python",
        "Java",
        "Spark",
        "Memory",
        "Extra compiled",
        "Extra connect",
        "Extra kafka",
        "Extra pandas",
        "Extra postgresql",
        "Extra rocksdb",
        "Extra server",
        "Extra vector",
        "Cache folder",
        "Class archive",
        "Temporary folder",
        "Loopback",
        "Server's HTTP",
        "Server's Flight",
        "Settings",
    ]


def test_doctor_says_what_to_do_without_java(run, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    result = run("doctor")
    assert result.exit_code == 1
    assert re.search(
        r"^problem +Java +Java at .*nowhere.*does not start.*\n +-> install a Java 17", result.stdout, re.MULTILINE
    )


def test_doctor_shows_a_wrong_setting_and_goes_on(run, monkeypatch):
    monkeypatch.setenv("WEIRFLOW_DRIVER_MEMROY", "4g")
    result = run("doctor")
    assert result.exit_code == 1
    assert re.search(r"^ok +Java", result.stdout, re.MULTILINE)
    assert "problem   Settings          No setting is called WEIRFLOW_DRIVER_MEMROY." in result.stdout
    assert "-> did you mean 'WEIRFLOW_DRIVER_MEMORY'?" in result.stdout


def test_an_absent_extra_is_no_problem(run, monkeypatch):
    monkeypatch.setattr(
        "weirflow.cli.checks.installed",
        lambda package: None if package == "pandas" else "4.1.0" if package == "pyspark" else "99",
    )
    result = run("doctor", "--json")
    pandas = next(check for check in json.loads(result.stdout)["checks"] if check["name"] == "Extra pandas")
    assert result.exit_code == 0
    assert (pandas["verdict"], pandas["advice"]) == ("optional", "pip install 'weirflow[pandas]'")


def test_doctor_knows_every_extra():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])


def test_doctor_looks_at_the_folder_and_ports_that_were_chosen(run, monkeypatch, tmp_path):
    monkeypatch.setenv("WEIRFLOW_PLACEMENT", "single-node")
    monkeypatch.setenv("WEIRFLOW_PATH", str(tmp_path / "new" / "shop"))
    result = run("doctor")
    assert re.search(rf"^ok +Session folder +{tmp_path}/new/shop, [\d.]+ GiB free$", result.stdout, re.MULTILINE)
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEIRFLOW_PATH", str(tmp_path / "file" / "shop"))
    result = run("doctor")
    assert result.exit_code == 1
    assert re.search(
        r"^problem +Session folder +.*/file/shop cannot be written\n +-> make .*/file a", result.stdout, re.MULTILINE
    )
    monkeypatch.delenv("WEIRFLOW_PATH")
    monkeypatch.setenv("WEIRFLOW_PLACEMENT", "distributed")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        monkeypatch.setenv("WEIRFLOW_ENDPOINT", f"sc://127.0.0.1:{port}")
        silent = run("doctor")
        listener.listen(1)
        answered = run("doctor")
    assert re.search(
        rf"^problem +Spark's port +127.0.0.1:{port} does not answer.*\n +-> start Spark", silent.stdout, re.MULTILINE
    )
    assert re.search(rf"^ok +Spark's port +127.0.0.1:{port} answers$", answered.stdout, re.MULTILINE)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_settings_are_listed_and_secrets_masked(run, monkeypatch, form):
    monkeypatch.setenv("WEIRFLOW_TOKEN", SECRET)
    monkeypatch.setenv("WEIRFLOW_PLACEMENT", "distributed")
    monkeypatch.setenv("WEIRFLOW_ENDPOINT", f"sc://host:1/;x-auth={SECRET}")
    monkeypatch.setenv("WEIRFLOW_SPARK_CONF", json.dumps({"spark.hadoop.fs.s3a.secret.key": SECRET, "a.b": "c"}))
    result = run("doctor", "--settings", *form)
    assert result.exit_code == 0
    assert SECRET not in result.output
    assert "WEIRFLOW_TOKEN" in result.stdout
    assert "***" in result.stdout
    assert "a.b=c, spark.hadoop.fs.s3a.secret.key=***" in result.stdout


def test_a_secret_in_the_metadata_url_is_masked(run, monkeypatch):
    monkeypatch.setenv("WEIRFLOW_METADATA_URL", f"postgresql://u:{SECRET}@h/d")
    result = run("doctor", "--settings")
    assert result.exit_code == 1  # dev-local does not use it, and says so
    assert SECRET not in result.output
