"""Spark comes and goes with the Session and with the process, however either ends."""

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from support.processes import ChildProcess, accepts, alive, descendants, java_children, wait_gone

PRELUDE = """
import os, signal, sys, threading, time
import psutil
from weirflow import Session
from weirflow.errors import OperationCancelled, SessionError

def open_session(**settings):
    return Session.embedded(cores=2, driver_memory="1g", progress="off", **settings)

def one(session):
    return session.sql("SELECT 1 AS one").to_arrow().to_pylist() == [{"one": 1}]

def say(*words):
    print(*words, flush=True)
"""


@pytest.fixture
def scratch(tmp_path):
    """Where the child's temporary files go, so that what it leaves is seen; short, for the sockets' sake."""
    with tempfile.TemporaryDirectory(prefix="wl-") as folder:
        yield Path(folder)


@pytest.fixture
def run(scratch):
    children = []

    def start(program, **env):
        child = ChildProcess(
            [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", PRELUDE + program],
            name="child",
            env={"TMPDIR": str(scratch), **env},
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.stop()


def finished(child, deadline=60.0):
    assert child.wait(deadline) == 0, child.log
    return child.log


def said(child, word, deadline=60.0):
    child.wait_until(lambda: word in child.log, deadline, f"heard to say {word!r}")


def test_close_leaves_nothing(run, scratch):
    log = finished(
        run(
            """
handler = signal.getsignal(signal.SIGINT)
environment = dict(os.environ)
with open_session() as session:
    assert one(session)
    session.udf("plus", lambda x: x + 1, "int")
    assert session.sql("SELECT plus(1) AS x").collect()[0].x == 2
    assert session.submit("SELECT 1").result(30).num_rows == 1
    next(session.sql("SELECT id FROM range(0, 10, 1, 4)").to_batches())
    session.sql("SELECT 1 AS a").write_table("kept_nowhere")
    ports = {c.laddr.port for p in psutil.Process().children(recursive=True) for c in p.net_connections("tcp")
             if c.status == "LISTEN"}
    pids = [p.pid for p in psutil.Process().children(recursive=True)]
    # What Java itself writes, whatever TMPDIR says, is under the scratch folder too.
    [jvm] = [p for p in psutil.Process().children() if "java" in p.name()]
    [folder] = [o.partition("=")[2] for o in jvm.cmdline() if o.startswith("-Djava.io.tmpdir=")]
    assert folder.startswith(os.environ["TMPDIR"]), folder
    files = [f.path for p in [jvm, *jvm.children(recursive=True)] for f in p.open_files() if f.mode != "r"]
    sockets = [c.laddr for p in [psutil.Process(), jvm] for c in p.net_connections("unix") if c.laddr.startswith("/")]
    outside = [path for path in files + sockets if not path.startswith((os.environ["TMPDIR"], os.getcwd()))]
    assert outside == [], outside
say("PORTS", *ports)
say("PIDS", *pids)
deadline = time.monotonic() + 3
while threading.active_count() > 1 and time.monotonic() < deadline:
    time.sleep(0.05)
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
assert psutil.Process().children(recursive=True) == [], psutil.Process().children(recursive=True)
assert signal.getsignal(signal.SIGINT) is handler
changed = {name for name, _ in set(os.environ.items()) ^ set(environment.items())}
assert changed <= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}, changed  # PySpark leaves these
assert os.listdir() == ["child.log"], os.listdir()
"""
        )
    )
    lines = {line.split()[0]: [int(number) for number in line.split()[1:]] for line in log.splitlines() if line}
    assert lines["PORTS"]
    assert not [port for port in lines["PORTS"] if accepts(port)]
    assert alive(lines["PIDS"]) == set()
    assert list(scratch.iterdir()) == []


def test_kill_minus_9_takes_the_jvm_and_the_workers_along(run, scratch):
    child = run(
        """
session = open_session()
def sleep(batches):
    open(os.path.join(os.environ["TMPDIR"], f"working-{os.getpid()}"), "w").close()
    time.sleep(300)
    yield from batches
session.from_arrow(session.spark.range(0, 2, 1, 2)).mapInArrow(sleep, "id long").collect()
"""
    )
    child.wait_until(lambda: len(list(scratch.glob("working-*"))) == 2, 60.0, "busy in two workers")
    workers = {int(file.name.partition("-")[2]) for file in scratch.glob("working-*")}
    family = descendants(child.pid)
    assert workers < family
    assert java_children(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    wait_gone(family, 10.0)
    [left] = scratch.glob("weirflow-session-*")
    loud = finished(run("with open_session(spark_log_level='info') as session: assert one(session)"))
    assert "INFO" in loud  # which is not shown by default
    assert not left.exists()
    assert list(scratch.glob("weirflow-session-*")) == []


@pytest.mark.campaign
def test_a_forgotten_session_ends_with_the_program_and_nothing_of_the_jvm_is_shown(run, scratch):
    child = run(
        """
session = open_session()
assert one(session)
session.sql("SELECT 1 AS a").write_parquet("t", mode="overwrite")
session.spark.sparkContext.setLocalProperty("x", "y")
say("DONE")
"""
    )
    said(child, "DONE")
    family = descendants(child.pid)
    assert child.wait(10.0) == 0, child.log
    assert child.log.strip() == "DONE"
    wait_gone(family, 5.0)
    assert list(scratch.iterdir()) == []


def test_a_program_that_raises_shows_its_error_and_leaves_nothing(run, scratch, tmp_path):
    """Its cache is in a folder that cannot be used, which costs speed only."""
    (tmp_path / "file").write_text("in the way")
    child = run(
        f"""
import logging
logging.basicConfig(level="WARNING")
session = open_session(cache_dir={str(tmp_path / "file" / "cache")!r})
assert one(session)
raise RuntimeError("mine")
"""
    )
    assert child.wait(60.0) == 1
    assert "RuntimeError: mine" in child.log
    assert "starts are slower" in child.log
    assert list(scratch.iterdir()) == []


INTERRUPTED = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
session = open_session()
assert one(session)
handler = signal.getsignal(signal.SIGINT)
tracker = session.spark.sparkContext.statusTracker()

def sleep(batches):
    time.sleep(60)
    yield from batches

def meet(batches):
    from pyspark import BarrierTaskContext
    BarrierTaskContext.get().barrier()
    yield from batches

def two_rows():
    return session.from_arrow(session.spark.range(0, 2, 1, 2))

slow = two_rows().mapInArrow(sleep, "id long")
slow.createOrReplaceTempView("slow")

def interrupt():
    while not tracker.getActiveJobsIds():
        time.sleep(0.05)
    time.sleep(0.2)
    times.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

def wait_until(condition, what):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)

def interrupted(name, call):
    global times, kept
    times = []
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        call()
        raise AssertionError(f"{name} was not interrupted")
    except KeyboardInterrupt as interruption:
        kept = interruption  # as a prompt does: it keeps the frames, and the connection in them, alive
    assert time.monotonic() - times[0] < 5, (name, time.monotonic() - times[0])
    thread.join()
    assert signal.getsignal(signal.SIGINT) is handler, name
    for number in range(5):  # each answer belongs to its own question
        assert session.sql("SELECT :n AS n", {"n": number}).to_arrow().to_pylist() == [{"n": number}], name
    # What waits on another thread ends a moment later.
    wait_until(lambda: not list(session.operations), f"{name}: {list(session.operations)}")
    if name != "native":  # PySpark's own call is no operation: nobody stops its job
        wait_until(lambda: not tracker.getActiveJobsIds(), f"{name}: idle")
        slots_are_free(name)
    say(name)

def slots_are_free(name):
    both = two_rows().mapInArrow(meet, "id long", barrier=True).collect()
    assert sorted(row.id for row in both) == [0, 1], name

interrupted("collect", lambda: slow.collect())
interrupted("count", lambda: slow.count())
interrupted("to_arrow", lambda: slow.to_arrow())
interrupted("to_batches", lambda: list(slow.to_batches()))
interrupted("toLocalIterator", lambda: list(slow.toLocalIterator()))
interrupted("toPandas", lambda: slow.toPandas())
interrupted("sql_with_timeout", lambda: session.sql_with_timeout("SELECT * FROM slow", 60_000))

def nap(batches):
    time.sleep(5)
    yield from batches

interrupted("native", lambda: two_rows().spark.mapInArrow(nap, "id long").collect())
session.close()
"""


def test_control_c_stops_the_query_and_not_the_session(run):
    ways = [
        "collect",
        "count",
        "to_arrow",
        "to_batches",
        "toLocalIterator",
        "toPandas",
        "sql_with_timeout",
        "native",
    ]
    assert finished(run(INTERRUPTED), 120.0).split() == ways


def test_a_jvm_killed_under_us_is_a_typed_error_and_the_next_session_works(run, scratch):
    finished(
        run(
            """
def jvm():
    [child] = [p for p in psutil.Process().children() if "java" in p.name()]
    return child

def expect_loss(call):
    try:
        call()
    except SessionError as error:
        assert error.hint == "close this Session and open another", error
    else:
        raise AssertionError("no error")

first = open_session()
frame = first.sql("SELECT 1 AS one")
assert frame.count() == 1
jvm().kill()
jvm().wait()
for call in (frame.count, frame.to_arrow, lambda: first.sql("SELECT 1"), first.tables, lambda: next(frame.to_batches()),
             lambda: frame.where("one = 2").schema, lambda: first.register("t", [{"a": 1}])):
    expect_loss(call)
second = open_session()  # beside the first, which is not closed yet
assert one(second)
first.close()
assert one(second)

job = second.submit("SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE sqrt(id) * sqrt(id + 1) < 0")
while not second.spark.sparkContext.statusTracker().getActiveJobsIds():
    time.sleep(0.05)
jvm().kill()
expect_loss(lambda: job.result(30))
second.close()

with open_session() as third:
    assert one(third)
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
"""
        ),
        120.0,
    )
    assert list(scratch.iterdir()) == []


@pytest.mark.campaign
def test_the_second_start_uses_the_class_archive(run, tmp_path):
    program = f"""
import logging
logging.basicConfig(level="INFO")
with open_session(cache_dir={str(tmp_path)!r}) as session:
    assert one(session)
    say("COMMAND", *[p for child in psutil.Process().children() for p in child.cmdline() if p.startswith("-XX:") ])
"""
    first = finished(run(program), 120.0)
    assert "-XX:ArchiveClassesAtExit=" in first
    [archive] = (tmp_path / "classes").glob("*.jsa")
    assert "writing an archive of Spark's classes" in first
    second = finished(run(program))
    assert f"-XX:SharedArchiveFile={archive}" in second
    assert "writing an archive" not in second


@pytest.mark.campaign
def test_a_torn_class_archive_costs_time_but_never_the_start(run, tmp_path):
    program = f"""
with open_session(cache_dir={str(tmp_path)!r}) as session:
    assert one(session)
"""
    finished(run(program), 120.0)
    [archive] = (tmp_path / "classes").glob("*.jsa")
    os.truncate(archive, archive.stat().st_size // 2)
    finished(run(program), 120.0)
    [again] = (tmp_path / "classes").glob("*.jsa")
    assert again.stat().st_size > 10_000_000


@pytest.mark.campaign
def test_plain_pyspark_before_and_after(run, scratch):
    log = finished(
        run(
            """
import warnings
warnings.simplefilter("ignore")  # plain PySpark's own
from pyspark.sql import SparkSession
from weirflow.errors import SessionConflict

def plain():
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
        "spark.driver.memory", "512m").getOrCreate()

spark = plain()
assert spark.range(3).count() == 3
session = open_session()
try:
    one(session)
except SessionConflict as error:
    assert "stop it first" in error.hint
else:
    raise AssertionError("two drivers in one process")
assert spark.range(3).count() == 3
spark.stop()
assert one(session)
session.close()
again = plain()
assert again.range(4).count() == 4
again.stop()
say("ALL")
""",
            SPARK_LOCAL_IP="127.0.0.1",
        ),
        120.0,
    )
    assert log.strip().splitlines()[-1] == "ALL"


def test_a_start_that_fails_leaves_nothing(run, scratch):
    finished(
        run(
            """
session = open_session(spark_conf={"spark.driver.extraJavaOptions": "-XX:NoSuchOption -Xmx1x"})
try:
    session.sql("SELECT 1")
except SessionError as error:
    assert "exited with code" in str(error), error
    assert "-Xmx1x" in str(error), error
else:
    raise AssertionError("started")
session = open_session(spark_conf={"spark.serializer": "no.such.Serializer"})
try:
    session.sql("SELECT 1")
except SessionError as error:
    assert "could not be started" in str(error), error
else:
    raise AssertionError("started")
assert psutil.Process().children() == []
with open_session() as good:
    assert one(good)
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
"""
        ),
        90.0,
    )
    assert list(scratch.iterdir()) == []
