"""What differs between versions of Spark, each fact with a stand-in for each side; and that it is told in one file."""

import atexit
import re
import subprocess
import sys
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyspark.sql.pandas.types as pandas_types
import pytest
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
from pyspark.sql.types import StructType, TimestampType

import weirflow
from weirflow.spark import compat

SOURCES = Path(weirflow.__file__).parent
TELLING = {"spark/compat.py", "spark/jars/packages.py"}


@pytest.mark.parametrize("folder", ["spark", "flows", "streaming", "session"])
def test_no_other_file_speaks_of_versions_of_spark(folder):
    speaks = re.compile(r"\b4\.[1-9]\b|in_4_|pyspark\.__version__|inspect\.signature|(?i:version of (py)?spark)")
    files = {file: file.relative_to(SOURCES).as_posix() for file in (SOURCES / folder).rglob("*.py")}
    assert {name for file, name in files.items() if speaks.search(file.read_text())} <= TELLING


def test_asking_needs_no_pyspark():
    code = "import sys, weirflow.spark.compat; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_times_are_in_utc_for_those_who_must_be_told_and_those_who_are_not(monkeypatch):
    columns = StructType().add("at", TimestampType())
    assert compat.arrow_schema(columns) == pa.schema([("at", pa.timestamp("us", "UTC"))])
    told = []
    monkeypatch.setattr(
        pandas_types, "to_arrow_schema", lambda *_, timezone=None, large=False: told.append((timezone, large))
    )
    compat.arrow_schema(columns, large=True)
    monkeypatch.setattr(pandas_types, "to_arrow_schema", lambda *_, large=False: told.append(large))
    compat.arrow_schema(columns, large=True)
    assert told == [("UTC", True), True]


class Broken:
    """A connection that cannot send any more."""

    closed = 0

    def read(self):
        return b"x"

    def close(self):
        self.closed += 1
        raise BrokenPipeError


class Reader:
    """As PySpark's, which closes its connection when it is collected, or does not have one."""

    def __init__(self, file):
        if file is not None:
            self._sockfile = file

    def items(self):
        try:
            yield self
        finally:
            if hasattr(self, "_sockfile"):
                self._sockfile.close()


@pytest.mark.parametrize("file", [Broken(), None])
def test_an_iterator_ends_quietly_whether_it_closes_a_connection_or_not(file):
    items = compat.ending_quietly(Reader(file).items())
    reader = next(items)
    assert file is None or reader._sockfile.read() == b"x"
    items.close()
    assert file is None or file.closed == 1
    assert list(compat.ending_quietly(iter([1]))) == [1]


class NamedTrigger:
    """A writer that knows real-time mode by name."""

    def trigger(self, *, realTime=None):  # noqa: N803 - PySpark's
        return realTime


class UnnamedTrigger:
    """A writer that does not, of a JVM that may."""

    def __init__(self, **triggers):
        self.done = []
        self._jwrite = types.SimpleNamespace(trigger=self.done.append)
        streaming = types.SimpleNamespace(Trigger=types.SimpleNamespace(**triggers))
        jvm = types.SimpleNamespace(org=types.SimpleNamespace(apache=types.SimpleNamespace()))
        jvm.org.apache.spark = types.SimpleNamespace(sql=types.SimpleNamespace(streaming=streaming))
        session = types.SimpleNamespace(sparkContext=types.SimpleNamespace(_jvm=jvm))
        self._df = types.SimpleNamespace(sparkSession=session, writeStream=self)

    def trigger(self, *, processingTime=None):  # noqa: N803 - PySpark's
        raise AssertionError(processingTime)


def test_real_time_mode_is_asked_for_by_name_or_of_the_jvm():
    assert compat.has_real_time_mode(types.SimpleNamespace(writeStream=NamedTrigger()))
    assert compat.real_time(NamedTrigger(), "5 seconds") == "5 seconds"
    unnamed = UnnamedTrigger(RealTime=lambda every: f"every {every}")
    assert compat.has_real_time_mode(unnamed._df)
    assert compat.real_time(unnamed, "5 seconds") is unnamed
    assert unnamed.done == ["every 5 seconds"]
    assert not compat.has_real_time_mode(UnnamedTrigger()._df)


def test_a_serializer_that_is_elsewhere_is_left_alone():
    known = types.SimpleNamespace(_serialize_to_bytes=None, pickleSer=None)
    assert compat.state_serializer(types.SimpleNamespace(_statefulProcessorApiClient=known)) is known
    other = types.SimpleNamespace(pickleSer=None)
    assert compat.state_serializer(types.SimpleNamespace(_statefulProcessorApiClient=other)) is None
    assert compat.state_serializer(types.SimpleNamespace()) is None


class Result:
    """A result of a Connect client, which has threads of its own."""

    def __init__(self, stub):
        self._stub = stub
        self._lock = threading.Lock()
        self._release_thread_pool_instance = ThreadPoolExecutor(1)


def test_the_threads_of_a_clients_own_results_are_ended(monkeypatch):
    client = types.SimpleNamespace(_stub=object())
    monkeypatch.delattr(ExecutePlanResponseReattachableIterator, "_instances", raising=False)
    compat.end_release_threads(client)
    own, others = Result(client._stub), Result(object())
    pool, other_pool = own._release_thread_pool_instance, others._release_thread_pool_instance
    monkeypatch.setattr(
        ExecutePlanResponseReattachableIterator, "_instances", weakref.WeakSet([own, others]), raising=False
    )
    compat.end_release_threads(client)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)
    assert own._release_thread_pool_instance.submit(int).result() is None
    assert other_pool.submit(int).result() == 0
    other_pool.shutdown()


@pytest.mark.parametrize("name", ["_cleanup_ml_cache", "_on_exit"])
def test_nothing_of_a_client_is_left_to_be_done_at_exit(monkeypatch, name):
    taken_back = []
    monkeypatch.setattr(atexit, "unregister", taken_back.append)
    client = types.SimpleNamespace(_cleanup_ml_cache="cache")
    setattr(client, name, name)
    compat.forget_at_exit(client)
    assert taken_back == [name]
