"""The command on real Spark: in this process, or in one of its own where that is what is shown."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.processes import ChildProcess, descendants, java_children, wait_gone

SECRET = "canary-51c2"
# A test run in the background of a shell has SIGINT ignored, and children inherit that.
HEARS_INTERRUPTS = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('weirflow', run_name='__main__')"
)
JOIN = "SELECT name, sum(amount) AS total FROM orders JOIN people USING (id) WHERE amount > :least GROUP BY name"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.csv").write_text("id,amount\n1,10\n2,5\n1,7\n3,1\n")
    (tmp_path / "people").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "name": ["ann", "bob"]}), tmp_path / "people" / "a.parquet")
    pq.write_table(pa.table({"id": [3], "name": ["eve"]}), tmp_path / "people" / "b.parquet")
    (tmp_path / "odd [1] %41.csv").write_text("a\n1\n2\n")
    (tmp_path / "pretty.json").write_text('[\n  {"b": 1},\n  {"b": 3}\n]')
    return tmp_path


def test_files_of_all_kinds_are_joined_and_printed_as_json(weirflow, folder):
    done = weirflow(
        *("sql", "--json", "-t", "orders=orders.csv", "-t", "people=people", "-t", "odd=odd [1] %41.csv"),
        *("-t", "pretty=pretty.json", "-P", "least=2", "-P", "tag='007'", "-"),
        stdin=f"SELECT *, (SELECT sum(a * b) FROM odd, pretty) AS odd, :tag AS tag FROM ({JOIN}) ORDER BY name;\n",
    )
    assert json.loads(done.stdout) == {
        "columns": [
            {"name": "name", "type": "string"},
            {"name": "total", "type": "bigint"},
            {"name": "odd", "type": "bigint"},
            {"name": "tag", "type": "string"},
        ],
        "rows": [["ann", 17, 12, "007"], ["bob", 5, 12, "007"]],
        "row_count": 2,
        "truncated": False,
    }
    assert done.stderr == ""


@pytest.mark.campaign
def test_all_types_reach_a_pipe_as_csv_whatever_the_locale(folder):
    (folder / "types.sql").write_text("""
        SELECT INTERVAL 1 YEAR AS y, make_interval(1, 2, 3) AS i, INTERVAL '1 2:3:4.5' DAY TO SECOND AS d,
               parse_json('{"a":[1,2.5]}') AS v, DATE'0000-01-01' AS old, TIMESTAMP'+10000-01-01 00:00:00' AS far,
               CAST(X'ff41' AS STRING) AS bad, TIME'12:00:01.5' AS t, TIMESTAMP_NTZ'2026-01-31 01:02:03.12' AS n,
               NULL AS nothing, '' AS empty, X'00ff' AS b, double('nan') AS nan, float(0.1) AS f, 1.50BD AS m,
               map(1, array(struct(1 AS p, 'ü' AS q)), 2, NULL) AS nested, array() AS none, 1 AS x, 2 AS x,
               CAST('x' AS INT) AS lax
    """)
    done = subprocess.run(
        [sys.executable, "-m", "weirflow", "sql", "-f", "types.sql", "--conf=spark.sql.ansi.enabled=false"],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    header, row = done.stdout.splitlines()
    assert header == "y,i,d,v,old,far,bad,t,n,nothing,empty,b,nan,f,m,nested,none,x,x,lax"
    assert row == (
        'INTERVAL \'1\' YEAR,1 years 2 months 21 days,P1DT2H3M4.5S,"{""a"":[1,2.5]}",0000-01-01,'
        '10000-01-01T00:00:00Z,\ufffdA,12:00:01.5,2026-01-31T01:02:03.12,,"",AP8=,NaN,0.1,1.50,'
        '"{""1"":[{""p"":1,""q"":""ü""}],""2"":null}",[],1,2,'
    )


def test_rows_are_written_to_a_file_up_to_the_limit(weirflow, folder):
    done = weirflow("sql", "SELECT id FROM range(0, 100000, 1, 4)", "-o", "rows.parquet", "--limit", 70000, "--json")
    assert json.loads(done.stdout) == {"output": "rows.parquet", "row_count": 70000, "truncated": True}
    assert pq.read_table(folder / "rows.parquet").column("id").to_pylist() == list(range(70000))


def test_explain_shows_the_stages_of_a_join(weirflow, folder):
    done = weirflow(
        *("explain", "--mode", "stages", "--json", "-t", "t1=orders.csv", "-t", "t2=people"),
        "SELECT /*+ MERGE(t2) */ name, amount FROM t1 JOIN t2 USING (id)",
    )
    document = json.loads(done.stdout)
    assert document["plan"].startswith("===============Stage 0 (partitions=")
    assert [(stage["number"], stage["kind"], stage["children"]) for stage in document["stages"]] == [
        (0, "result", [1, 2]),
        (1, "shuffle", []),
        (2, "shuffle", []),
    ]
    assert all(isinstance(stage["partitions"], int) and stage["operators"] for stage in document["stages"])


def test_wrong_sql_is_shown_with_a_caret(weirflow, folder):
    done = weirflow("sql", "-t", "orders=orders.csv", "SELECT id,\n       amuont\nFROM orders", code=1)
    assert done.stdout == ""
    assert done.stderr == (
        "error [COLUMN_NOT_FOUND]: A column, variable, or function parameter with name `amuont` cannot be resolved.\n"
        "  at line 2, column 8\n"
        "           amuont\n"
        "           ^^^^^^\n"
        "  hint: did you mean 'amount'?\n"
    )


def test_a_query_that_takes_too_long_is_stopped(weirflow, folder):
    done = weirflow(
        *("sql", "--json", "--timeout", "1", "SELECT java_method('java.lang.Thread', 'sleep', 60000L)"),
        code=1,
    )
    assert json.loads(done.stderr)["error"]["code"] == "OPERATION_TIMEOUT"


@pytest.mark.campaign
def test_a_reader_that_has_had_enough_ends_the_command_quietly(folder):
    command = f"{sys.executable} -m weirflow sql 'SELECT id FROM range(10000000)' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("id\n141\n", "")


def test_ctrl_c_stops_spark_and_leaves_nothing_behind(folder):
    # The script is a process of its own, so that it can be seen that the query runs.
    query = "SELECT TRANSFORM(id) USING 'sleep 300' AS (x) FROM range(1)"
    command = [sys.executable, "-c", HEARS_INTERRUPTS, "sql", query]
    with ChildProcess(command, name="cli", env={"TMPDIR": str(folder)}) as child:
        child.wait_until(lambda: "sleep" in names(descendants(child.pid)), 60, "running the query")
        java = java_children(child.pid)
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(30) == 130
        wait_gone(java, 5)
        assert child.log == "x\nerror [OPERATION_CANCELLED]: Cancelled; nothing runs any more.\n"
    assert java
    assert list(folder.glob("weirflow-session-*")) == []


def test_doctor_starts_spark(weirflow, folder):
    document = json.loads(weirflow("doctor", "--start", "--json").stdout)
    start = document["checks"][-1]
    assert (document["ok"], start["name"], start["verdict"]) == (True, "Start", "ok")


def test_a_token_is_never_shown(folder):
    arguments = ("sql", "--endpoint", "sc://127.0.0.1:1", "--debug", "SELECT 1")
    done = subprocess.run(
        [sys.executable, "-m", "weirflow", *arguments, "--token", SECRET],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "error [ENDPOINT_UNREACHABLE]" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def names(pids):
    found = set()
    for pid in pids:
        try:
            found.add(psutil.Process(pid).name())
        except psutil.NoSuchProcess:
            continue
    return found
