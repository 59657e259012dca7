"""Functions that users register: run on the rows that change, by this process or by Spark, with Spark's results."""

import datetime as dt
import subprocess
import sys
import threading
import weakref
import zipfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc
import pyspark
import pytest
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from support.flow_engine import FlowEngine
from support.maintained import comparable

from weirflow import IncrementalFlow
from weirflow.errors import (
    ConfigError,
    DataError,
    FunctionFailed,
    FunctionMissing,
    NotIncremental,
    Reason,
    UserCodeError,
)
from weirflow.spark.frames.arrow import relation_frame
from weirflow.sql.registered import UserFunction

HERE, SPARK = "evaluated by this process' Python", "evaluated by Spark on the delta"


def by_value():
    """A function that workers of Spark need not import from here."""
    return lambda text: None if text is None else text.strip().lower()


clean = by_value()


@pytest.fixture
def flow(session):
    with session.flow("functions") as flow:
        flow.register_source("t", "id BIGINT, name STRING, n INT", key=["id"])
        yield flow


def rows(table):
    return Counter(tuple(map(comparable, one.values())) for one in table.to_pylist())


def by_spark(session, flow, sql):
    relation_frame(session.spark, flow.snapshot("t")).createOrReplaceTempView("t")
    found = session.spark.sql(sql).toArrow()
    session.spark.catalog.dropTempView("t")
    return found


def test_a_python_function_runs_here_on_the_rows_that_change(session, flow):
    seen = []

    def cleaned(text):
        seen.append(text)
        return clean(text)

    session.udf("cleaned", cleaned, "STRING", deterministic=True)
    sql = "SELECT id, cleaned(name) AS c, upper(cleaned(name)) AS u FROM t WHERE cleaned(name) IS NOT NULL"
    flow.register_view("v", sql)
    assert f"{HERE}: `cleaned`(name)" in flow.explain("v")
    flow.tick("t", [{"id": 1, "name": " Ann ", "n": 1}, {"id": 2, "name": None, "n": 2}])
    seen.clear()
    flow.tick("t", [{"id": 3, "name": "Bob", "n": 3}, {"id": 4, "name": "Bob", "n": 3}])
    assert set(seen) == {"Bob"}
    flow.tick("t", [{"id": 1, "name": "ANN", "n": 1}])
    assert rows(flow.snapshot("v")) == rows(by_spark(session, flow, sql))


VALUES = {
    "BOOLEAN": [True, 1, "x"],
    "TINYINT": [1, 200, 1.5, True],
    "SMALLINT": [-5, 70_000],
    "INT": [7, 1 << 40, "7"],
    "BIGINT": [1 << 40, 2.0],
    "FLOAT": [0.1, 1, 1e300],
    "DOUBLE": [0.1, 3, float("nan"), "x"],
    "STRING": ["é", 5, 1.5, True, [1], {"a": 1}],
    "DECIMAL(10,2)": [Decimal("1.25"), Decimal("1.005"), 1],
    "DATE": [dt.date(2024, 2, 29)],
    "TIMESTAMP_NTZ": [dt.datetime(2024, 2, 29, 1, 2, 3, 4)],  # noqa: DTZ001 - a time without a zone
    "TIMESTAMP": [dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC)],
    "BINARY": [b"ab", bytearray(b"cd"), "ef"],
    "ARRAY<INT>": [[1, None], [1.5], (1, 2)],
    "MAP<STRING, INT>": [{"a": 1}],
    "STRUCT<a: INT, b: STRING>": [(1, "x"), {"a": 2, "b": None}],
}


def test_results_are_made_what_spark_makes_of_them(session, flow):
    views = {}
    for at, (kind, values) in enumerate(VALUES.items()):
        session.udf(
            f"made{at}", lambda n, values=values: values[n] if n < len(values) else None, kind, deterministic=True
        )
        views[f"v{at}"] = f"SELECT id, made{at}(n) AS x FROM t"
        flow.register_view(f"v{at}", views[f"v{at}"], mode="incremental")
    flow.tick("t", [{"id": n, "name": "x", "n": n} for n in range(7)])
    for name, sql in views.items():
        assert rows(flow.snapshot(name)) == rows(by_spark(session, flow, sql)), sql


def test_arguments_are_what_spark_gives(session):
    columns = {
        "b": ("BOOLEAN", True),
        "i": ("BIGINT", 5),
        "f": ("FLOAT", 0.1),
        "d": ("DOUBLE", -0.0),
        "s": ("STRING", "x\U0001f600"),
        "m": ("DECIMAL(12,3)", Decimal("1.500")),
        "day": ("DATE", dt.date(1900, 1, 1)),
        "ntz": ("TIMESTAMP_NTZ", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),  # noqa: DTZ001 - a time without a zone
        "at": ("TIMESTAMP", dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC)),
        "raw": ("BINARY", b"ab"),
        "a": ("ARRAY<STRING>", ["x", None]),
        "k": ("MAP<STRING, INT>", {"a": 1}),
        "p": ("STRUCT<x: INT, y: STRING>", {"x": 1, "y": "z"}),
    }
    session.udf("shown", lambda value: f"{type(value).__name__} {value!r}", "STRING", deterministic=True)
    with session.flow("arguments") as flow:
        flow.register_source("t", ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items()))
        sql = f"SELECT {', '.join(f'shown({name}) AS {name}' for name in columns)} FROM t"
        flow.register_view("v", sql, mode="incremental")
        flow.tick("t", [{name: value for name, (_, value) in columns.items()}, dict.fromkeys(columns)])
        assert rows(flow.snapshot("v")) == rows(by_spark(session, flow, sql))


def test_what_the_function_raises_fails_the_tick_whole(session, flow):
    session.udf("inverse", lambda n: 1.0 / n, "DOUBLE", deterministic=True)
    flow.register_view("v", "SELECT id, inverse(n) AS x FROM t")
    flow.register_view("guarded", "SELECT id, CASE WHEN n <> 0 THEN inverse(n) END AS x FROM t")
    flow.tick("t", [{"id": 1, "name": "", "n": 2}])
    with pytest.raises(FunctionFailed, match=r"'inverse' raised ZeroDivisionError for \(0\)") as failed:
        flow.tick("t", [{"id": 2, "name": "", "n": 0}, {"id": 3, "name": "", "n": 1}])
    assert isinstance(failed.value, DataError)
    flow.discard()
    flow.drop("v")
    flow.tick("t", [{"id": 2, "name": "", "n": 0}])
    assert rows(flow.snapshot("guarded")) == Counter({(1, comparable(0.5)): 1, (2, None): 1})


def test_a_function_cannot_tick_the_flow_that_calls_it(session, flow, monkeypatch):
    flows = weakref.WeakValueDictionary({"ticked": flow})
    monkeypatch.setattr(sys, "flows", flows, raising=False)  # what a function refers to is sent to Spark, too

    def ticking(n):
        sys.flows["ticked"].tick("t", [{"id": 9, "name": "", "n": n}])
        return n

    session.udf("ticking", ticking, "INT", deterministic=True)
    flow.register_view("v", "SELECT id, ticking(n) AS x FROM t")
    with pytest.raises(FunctionFailed, match="The function 'ticking' raised TickPending for"):
        flow.tick("t", [{"id": 1, "name": "", "n": 2}])
    flow.discard()
    assert flow.snapshot("t").num_rows == 0


def test_what_nobody_vouches_for_is_recomputed(session, flow):
    session.udf("doubtful", clean, "STRING")
    session.spark.udf.register("unknown", clean, "STRING")
    for name in ("doubtful", "unknown"):
        sql = f"SELECT id, {name}(name) AS c FROM t"
        with pytest.raises(NotIncremental, match="declared") as refused:
            flow.register_view("v", sql, mode="incremental")
        assert refused.value.reason == Reason.FUNCTION_NOT_DECLARED
        assert f"session.udf('{name}', ..., deterministic=True)" in str(refused.value)
        flow.register_view(name, sql)
    flow.tick("t", [{"id": 1, "name": " A", "n": 1}])
    assert flow.snapshot("unknown").to_pylist() == flow.snapshot("doubtful").to_pylist() == [{"id": 1, "c": "a"}]


def test_functions_of_spark_run_there(session, flow):
    import pandas as pd  # noqa: PLC0415 - for this test alone

    @F.pandas_udf("BIGINT")
    def lengths(names: pd.Series) -> pd.Series:
        return names.str.len()

    session.udf("lengths", lengths, deterministic=True)
    session.udf("clean", clean, "STRING", deterministic=True)
    views = {
        "pandas": "SELECT id, lengths(name) AS n FROM t",
        "inside": "SELECT id, printf(clean(name)) AS s FROM t",
        "both": "SELECT id, lengths(clean(name)) AS s FROM t",
    }
    for name, sql in views.items():
        flow.register_view(name, sql, mode="incremental")
        assert SPARK in flow.explain(name)
    flow.tick("t", [{"id": 1, "name": " Ann ", "n": 1}])
    flow.tick("t", [{"id": 2, "name": "Bob", "n": 1}])
    for name, sql in views.items():
        assert rows(flow.snapshot(name)) == rows(by_spark(session, flow, sql))


def test_frames_call_them_too(session, flow):
    made = session.udf("cleaned", clean, "STRING", deterministic=True)
    flow.register_view("v", flow.table("t").select("id", made("name").alias("c")))
    flow.tick("t", [{"id": 1, "name": " Ann ", "n": 1}])
    assert flow.snapshot("v").to_pylist() == [{"id": 1, "c": "ann"}]

    def cleaned(text):
        return f"another function than {text} is cleaned by"

    with pytest.raises(NotIncremental, match="not the one that is registered"):
        flow.register_view("w", flow.table("t").select(F.udf(cleaned)("name").alias("c")))
    with pytest.raises(NotIncremental) as refused:
        flow.register_view("w", flow.table("t").select(F.udf(lambda text: text)("name").alias("c")))
    assert refused.value.reason == Reason.FUNCTION_NOT_DECLARED
    assert "session.udf(None, ..., deterministic=True)" in refused.value.hint


def test_a_flow_in_shards_recomputes_views_that_call_them(session):
    session.udf("cleaned", clean, "STRING", deterministic=True)
    with session.flow("shards", partitions=2) as flow:
        flow.register_source("t", "id BIGINT, name STRING", key=["id"])
        flow.register_view("v", "SELECT id, cleaned(name) AS c FROM t")
        assert "recomputed by Spark" in flow.explain("v")
        flow.tick("t", [{"id": 1, "name": " Ann "}])
        session.udf("doubled", lambda text: text * 2, "STRING")
        flow.register_view("w", "SELECT cleaned(doubled(name)) AS c FROM t")
        flow.tick("t", [{"id": 1, "name": "Bob"}, {"id": 2, "name": "EVE"}])
        assert rows(flow.snapshot("v")) == Counter([(1, "bob"), (2, "eve")])
        assert rows(flow.snapshot("w")) == Counter([("bobbob",), ("eveeve",)])


UNNAMED = {
    "plain": lambda: clean,
    "PySpark's": lambda: F.udf(clean, "STRING"),
    "of Arrow": lambda: F.arrow_udf(lambda texts: pc.utf8_lower(pc.utf8_trim_whitespace(texts)), "STRING"),
}


@pytest.mark.parametrize("make", UNNAMED.values(), ids=UNNAMED)
def test_frames_of_a_flow_in_memory_call_functions_without_a_name(session, flow, tmp_path, make):
    made = session.udf(None, make(), "STRING", deterministic=True)
    other = session.udf(None, lambda text: text * 2, "STRING", deterministic=True)
    flow.register_view("v", flow.table("t").select("id", made("name").alias("c"), other("name").alias("d")))
    flow.tick("t", [{"id": 1, "name": " Ann ", "n": 1}])
    flow.tick("t", [{"id": 1, "name": "BOB", "n": 1}])
    assert flow.snapshot("v").to_pylist() == [{"id": 1, "c": "bob", "d": "BOBBOB"}]
    with session.flow("kept", path=tmp_path / "kept") as kept:
        kept.register_source("t", "id BIGINT, name STRING", key=["id"])
        with pytest.raises(ConfigError, match="calls a function that has no name"):
            kept.register_view("v", kept.table("t").select(made("name").alias("c")))
        assert "v" not in kept.views


def test_a_durable_flow_is_given_its_functions_again(session, tmp_path):
    session.udf("kept", clean, "STRING", deterministic=True, version="a")
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.register_source("t", "id BIGINT, name STRING", key=["id"])
        flow.register_view("v", "SELECT id, kept(name) AS c FROM t")
        flow.tick("t", [{"id": 1, "name": "Ann"}])
    with pytest.raises(FunctionMissing, match="'kept', version 'a', which is not registered"):
        IncrementalFlow("kept", path=tmp_path / "kept")
    with pytest.raises(FunctionMissing, match="version 'a' of the function 'kept', but version '1' is registered"):
        IncrementalFlow("kept", path=tmp_path / "kept", functions={"kept": clean})
    with IncrementalFlow("kept", path=tmp_path / "kept", functions={"KEPT": UserFunction(clean, "a")}) as flow:
        flow.tick("t", [{"id": 2, "name": "BOB"}])
        assert rows(flow.snapshot("v")) == Counter({(1, "ann"): 1, (2, "bob"): 1})
    with session.flow("kept", path=tmp_path / "kept") as flow:
        session.udf("kept", str.upper, "STRING", deterministic=True, version="b")
        flow.tick("t", [{"id": 3, "name": "Cy"}])
        assert {"id": 3, "c": "cy"} in flow.snapshot("v").to_pylist()
        flow.replace_view("v", "SELECT id, kept(name) AS c FROM t")
        assert rows(flow.snapshot("v")) == Counter({(1, "ANN"): 1, (2, "BOB"): 1, (3, "CY"): 1})
        flow.checkpoint()
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"id": 3, "name": "Di"}])
        assert {"id": 3, "c": "DI"} in flow.snapshot("v").to_pylist()
    with IncrementalFlow("kept", path=tmp_path / "kept", functions={"kept": UserFunction(str.upper, "b")}) as flow:
        assert {"id": 3, "c": "DI"} in flow.snapshot("v").to_pylist()


def test_without_spark_results_are_of_the_declared_type(session, tmp_path):
    session.udf("typed", lambda _: 1.5, "DOUBLE", deterministic=True)
    with session.flow("typed", path=tmp_path / "typed") as flow:
        flow.register_source("t", "id BIGINT")
        flow.register_view("v", "SELECT typed(id) AS x FROM t")
    with IncrementalFlow("typed", path=tmp_path / "typed", functions={"typed": lambda _: 1}) as flow:
        with pytest.raises(FunctionFailed, match="'typed' returned a value that is not of the declared type double"):
            flow.tick("t", [{"id": 1}])
        flow.discard()


def test_arguments_of_udf_that_make_no_sense_are_refused(session):
    lock = threading.Lock()
    with pytest.raises(UserCodeError, match="cannot be sent to Spark's workers"):
        session.udf("locked", lambda _: lock, "STRING")
    with pytest.raises(ConfigError, match="not both"):
        IncrementalFlow(functions={}, engine=FlowEngine())


JAVA = """
import org.apache.spark.sql.api.java.UDF2;

public class Joined implements UDF2<String, Integer, String> {
    public String call(String text, Integer number) { return text == null ? null : text + "-" + number; }
}
"""


def test_functions_of_java_run_in_spark(session, flow, tmp_path):
    (tmp_path / "Joined.java").write_text(JAVA)
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    subprocess.run(["javac", "-cp", jars, "Joined.java"], cwd=tmp_path, check=True, timeout=120)
    with zipfile.ZipFile(tmp_path / "joined.jar", "w") as jar:
        jar.write(tmp_path / "Joined.class", "Joined.class")
    session.spark.sql(f"ADD JAR '{tmp_path / 'joined.jar'}'").collect()
    session.udf("joined", "Joined", deterministic=True)
    sql = "SELECT id, joined(name, n) AS j FROM t"
    flow.register_view("v", sql, mode="incremental")
    assert f"{SPARK}: `joined`(name, n)" in flow.explain("v")
    flow.tick("t", [{"id": 1, "name": "Ann", "n": 2}, {"id": 2, "name": None, "n": 3}])
    assert rows(flow.snapshot("v")) == Counter({(1, "Ann-2"): 1, (2, None): 1})
