"""What a Session answers: SQL with parameters, files, functions, plans."""

import datetime as dt
import re
import sys
import threading
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import weirflow
from weirflow import Session
from weirflow.errors import ConfigError, QueryError, SessionClosed, SessionConflict, SqlTypeError, TableNotFound
from weirflow.spark.launch.local import has_driver


def rows(frame):
    return frame.to_arrow().to_pylist()


# SQL and its parameters


def test_named_parameters(session):
    query = "SELECT :i AS i, :f AS f, :s AS s, :d AS d, :n AS n, :b AS b, :a AS a, :x AS x"
    params = {
        "i": 1,
        "f": 1.5,
        "s": "it's",
        "d": dt.date(2024, 2, 29),
        "n": None,
        "b": True,
        "a": [1, 2],
        "x": Decimal("1.20"),
    }
    assert rows(session.sql(query, params)) == [params]


def test_positional_parameters(session):
    assert rows(session.sql("SELECT ? AS a, ? AS b", [1, "x"])) == [{"a": 1, "b": "x"}]
    assert rows(session.sql("SELECT ? AS a", (7,))) == [{"a": 7}]


INJECTIONS = ["' OR '1'='1", "x'; DROP VIEW secrets; --", '" OR ""="', "\\' OR 1=1 --", "/* */", ":name", "?", "`id`"]


@pytest.mark.parametrize("text", INJECTIONS)
def test_a_parameter_is_a_value_and_never_sql(session, text):
    session.register("secrets", [{"id": "1"}, {"id": text}])
    assert rows(session.sql("SELECT * FROM secrets WHERE id = :id", {"id": text})) == [{"id": text}]
    assert rows(session.sql("SELECT * FROM secrets WHERE id = ?", [text])) == [{"id": text}]
    assert rows(session.sql_with_timeout("SELECT ? AS x", 60_000, [text])) == [{"x": text}]
    assert session.submit("SELECT :t AS x", {"t": text}).result(60).to_pylist() == [{"x": text}]
    assert session.tables() == ["secrets"]


@pytest.mark.parametrize(
    ("query", "params"), [("SELECT :a", {"b": 1}), ("SELECT ?, ?", [1]), ("SELECT :a", None), ("SELECT ?", {})]
)
def test_a_parameter_without_value_is_an_error(session, query, params):
    with pytest.raises(QueryError, match="unbound parameter") as caught:
        session.sql(query, params)
    assert caught.value.condition == "UNBOUND_SQL_PARAMETER"


def test_a_value_spark_has_no_type_for(session):
    with pytest.raises(SqlTypeError, match="no type"):
        session.sql("SELECT :x", {"x": object()})


def test_commands_run_at_once(session):
    session.sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS a")
    session.sql("CREATE TABLE t (a INT) USING parquet")
    session.sql("INSERT INTO t VALUES (1), (2)")
    assert sorted(session.tables()) == ["t", "v"]
    assert rows(session.sql("SELECT sum(a) AS s FROM t")) == [{"s": 3}]


def test_queries_are_lazy(session):
    frame = session.sql("SELECT raise_error('computed') AS x")
    with pytest.raises(QueryError, match="computed"):
        frame.collect()


def test_ansi_and_utc_are_on(session):
    assert rows(session.sql("SELECT current_timezone() AS tz")) == [{"tz": "UTC"}]
    assert session.spark.conf.get("spark.sql.ansi.enabled") == "true"


# Files


def test_csv_is_read_with_header_and_types(session, tmp_path):
    (tmp_path / "a.csv").write_text("id,name,day\n1,ann,2024-02-29\n2,,\n")
    frame = session.read_csv(tmp_path / "a.csv")
    assert frame.dtypes == [("id", "int"), ("name", "string"), ("day", "date")]
    assert rows(frame) == [{"id": 1, "name": "ann", "day": dt.date(2024, 2, 29)}, {"id": 2, "name": None, "day": None}]


def test_csv_without_inference_or_with_a_schema(session, tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    assert session.read_csv(str(tmp_path / "a.csv"), infer_schema=False).dtypes == [("id", "string")]
    assert session.read_csv(tmp_path / "a.csv", schema="id long").dtypes == [("id", "bigint")]
    assert session.read_csv(tmp_path / "a.csv", sep=";", header=False).dtypes == [("_c0", "string")]


def test_several_paths_are_one_frame(session, tmp_path):
    for index in (1, 2):
        session.sql(f"SELECT {index} AS a").write_json(tmp_path / str(index))
    frame = session.read_json([tmp_path / "1", str(tmp_path / "2")])
    assert sorted(row["a"] for row in rows(frame)) == [1, 2]
    with pytest.raises(ConfigError, match="No path"):
        session.read_json([])


@pytest.mark.parametrize("name", ["with space", "ünïcode", "per%20cent", "plus+", "comma,name", "quote'd"])
def test_paths_with_any_name(session, tmp_path, name):
    session.sql("SELECT 1 AS a").write_parquet(tmp_path / name)
    assert rows(session.read_parquet(tmp_path / name)) == [{"a": 1}]


# Functions


def test_a_python_function_in_sql(session):
    twice = session.udf("twice", lambda x: None if x is None else 2 * x, "int")
    assert rows(session.sql("SELECT twice(21) AS a, twice(NULL) AS b")) == [{"a": 42, "b": None}]
    assert rows(session.sql("SELECT 4 AS x").select(twice("x").alias("y"))) == [{"y": 8}]


def test_a_function_hides_a_builtin_of_its_name(session):
    # One that no other test calls: Spark 4.1 does not take the name back.
    session.udf("sentences", lambda text: f"said: {text}")
    assert rows(session.sql("SELECT sentences('It rains.') AS heard")) == [{"heard": "said: It rains."}]


def test_a_function_that_is_a_udf_brings_its_type(session):
    @F.pandas_udf("double")
    def half(values):
        return values / 2

    session.udf("half", half)
    assert rows(session.sql("SELECT half(3) AS a")) == [{"a": 1.5}]


def test_workers_run_this_interpreter_without_archives(session):
    def look(_):
        yield pa.RecordBatch.from_pylist([{"exe": sys.executable, "path": ":".join(sys.path)}])

    [row] = rows(session.from_arrow(session.spark.range(0, 1, 1, 1)).mapInArrow(look, "exe string, path string"))
    assert row["exe"] == sys.executable
    assert not [entry for entry in row["path"].split(":") if entry.endswith((".zip", ".jar"))]


# Plans


JOIN = "SELECT a.id, count(*) FROM range(0, 100, 1, 4) a JOIN range(0, 50, 1, 2) b ON a.id = b.id GROUP BY a.id"


def test_explain_has_three_modes(session):
    assert session.explain(JOIN, mode="logical").startswith("== Analyzed Logical Plan ==")
    assert "== Optimized Logical Plan ==" in session.explain(JOIN, mode="logical")
    assert "== Physical Plan ==" not in session.explain(JOIN, mode="logical")
    assert session.explain(JOIN).startswith("== Physical Plan ==")
    numbered = re.compile(r"#\d+|plan_id=\d+")
    by_frame = session.explain(session.sql(JOIN), mode=weirflow.ExplainMode.PHYSICAL)
    assert numbered.sub("", session.explain(JOIN)) == numbered.sub("", by_frame)
    stages = session.explain(JOIN, mode="stages")
    assert "stage" in stages.lower()
    assert "Range" in stages


def test_an_unknown_explain_mode(session):
    with pytest.raises(ConfigError, match="No explain mode is called 'stagse'") as caught:
        session.explain(JOIN, mode="stagse")
    assert caught.value.hint == "did you mean 'stages'?"


def test_explaining_runs_nothing(session):
    assert session.explain("SELECT raise_error('ran')")


# Several Sessions


def test_threads_share_a_session(session):
    results, errors = {}, []

    def work(number):
        try:
            results[number] = rows(session.sql("SELECT sum(id) + :n AS s FROM range(1000)", {"n": number}))
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert results == {number: [{"s": 499_500 + number}] for number in range(8)}


def test_sessions_share_one_jvm_and_nothing_else(exclusive_spark):
    settings = {"cores": 2, "driver_memory": "1g", "progress": "off"}
    with Session.embedded(**settings) as first:
        first.register("mine", [{"a": 1}])
        first.spark.conf.set("spark.sql.shuffle.partitions", "7")
        second = Session.embedded(**settings)
        assert second.spark.sparkContext is first.spark.sparkContext
        assert second.tables() == []
        with pytest.raises(TableNotFound):
            second.table("mine")
        assert second.spark.conf.get("spark.sql.shuffle.partitions") == "2"
        second.register("mine", [{"a": 2}])
        assert (rows(first.table("mine")), rows(second.table("mine"))) == ([{"a": 1}], [{"a": 2}])
        second.close()
        with pytest.raises(SessionClosed):
            second.tables()
        assert rows(first.table("mine")) == [{"a": 1}]
        third = Session.embedded(**settings)
        third.register("theirs", [{"a": 3}])
        first.close()
        assert rows(third.table("theirs")) == [{"a": 3}]
        third.close()
        assert not has_driver()


def test_other_settings_are_a_conflict_that_names_them_and_no_secret(session):
    session.sql("SELECT 1")
    other = Session.embedded(
        cores=1, driver_memory="1g", progress="off", spark_conf={"spark.my.secret": "canary", "spark.x": "1"}
    )
    with pytest.raises(SessionConflict, match=r"master.*spark\.my\.secret.*spark\.x") as caught:
        other.sql("SELECT 1")
    assert "canary" not in str(caught.value)
    other.close()
    assert rows(session.sql("SELECT 1 AS a")) == [{"a": 1}]


def test_a_closed_session_says_so(session):
    closed = Session.embedded(cores=2, driver_memory="1g", progress="off")
    closed.close()
    closed.close()
    for call in (
        lambda: closed.sql("SELECT 1"),
        lambda: closed.read_csv("x"),
        lambda: closed.register("t", [{"a": 1}]),
        lambda: closed.from_arrow([{"a": 1}]),
        closed.tables,
        lambda: closed.drop("t"),
        lambda: closed.udf("f", len),
        lambda: closed.spark,
        lambda: closed.submit("SELECT 1"),
        lambda: closed.sql_with_timeout("SELECT 1", 1000),
        lambda: closed.explain("SELECT 1"),
    ):
        with pytest.raises(SessionClosed) as caught:
            call()
        assert caught.value.hint == "open another one"
    assert repr(closed) == "<Session embedded dev-local closed>"


def test_describe_says_where_spark_runs(session):
    session.sql("SELECT 1")
    assert session.describe().spark == f"{session.spark.version} at local[2]"


def test_a_single_node_session_keeps_its_tables(exclusive_spark, tmp_path):
    settings = {"cores": 1, "driver_memory": "1g", "progress": "off"}
    with Session.single_node(tmp_path / "kept", **settings) as session:
        session.sql("SELECT 1 AS a").write_table("t")
    assert list((tmp_path / "kept" / "warehouse" / "t").glob("*.parquet"))
