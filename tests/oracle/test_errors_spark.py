"""The catalogue of mistakes: each is one class, one code, one place in the SQL, one hint. No foreign error escapes."""

import pickle
import re
import threading

import pyarrow as pa
import pytest

from weirflow.errors import (
    AlreadyExists,
    CatalogNotFound,
    ColumnNotFound,
    DataError,
    FunctionNotFound,
    PathNotFound,
    QueryError,
    SqlSyntaxError,
    SqlTypeError,
    TableNotFound,
    UserCodeError,
    WeirflowError,
)


@pytest.fixture(scope="module")
def session(shared_session):
    """One with the tables that mistakes are about."""
    with shared_session.borrowed() as opened:
        opened.register("orders", pa.table({"id": [1, 2], "name": ["x", "y"], "size": pa.array([1, None], pa.int32())}))
        opened.sql("CREATE TABLE stored (a INT) USING parquet")
        yield opened


@pytest.fixture(autouse=True)
def _tables(session):
    """What a test has added is gone after it."""
    yield
    for name in session.tables():
        if name not in ("orders", "stored"):
            session.drop(name)


NO_CATALOG = "SHOW CATALOGS lists those that there are; CREATE CATALOG, or Session(catalogs=...), adds one"
MISTAKES = [
    # query, error, what it says, (line, column), hint
    ("SELECT id\nFORM orders", SqlSyntaxError, "Syntax error at or near 'orders'", (2, 6), None),
    ("", SqlSyntaxError, "empty statement", (1, 1), None),
    ("SELECT 1; SELECT 2", SqlSyntaxError, "Syntax error at or near 'SELECT'", (1, 11), None),
    ("SELECT 'open", SqlSyntaxError, "Syntax error", (1, 8), None),
    ("/* open", SqlSyntaxError, "unclosed bracketed comment", None, None),
    ("SELECT DATE'2024-13-01'", SqlSyntaxError, "typed literal", (1, 8), None),
    ("SELECT id,\n  nmae\nFROM orders", ColumnNotFound, "`nmae`", (2, 3), "did you mean 'name'?"),
    ("SELECT orders.idd FROM orders", ColumnNotFound, "`orders`.`idd`", (1, 8), "did you mean 'id'?"),
    ("SELECT zzz FROM orders", ColumnNotFound, "`zzz`", (1, 8), "the columns are id, size, name"),
    ("SELECT * FROM orders JOIN orders b USING (idd)", ColumnNotFound, "`idd`", None, "did you mean 'id'?"),
    ("SELECT s.nmae FROM (SELECT named_struct('name', 1) s)", ColumnNotFound, "nmae", (1, 8), "did you mean 'name'?"),
    ("SELECT *\nFROM ordres", TableNotFound, "`ordres`", (2, 6), "did you mean 'orders'?"),
    ("SELECT * FROM zzz", TableNotFound, "`zzz`", (1, 15), "the tables are orders, stored"),
    ("DROP TABLE ordres", TableNotFound, "ordres", None, "did you mean 'orders'?"),
    ("INSERT INTO stord VALUES (1)", TableNotFound, "stord", (1, 13), "did you mean 'stored'?"),
    ("SELECT id,\n  uper(name) FROM orders", FunctionNotFound, "`uper`", (2, 3), None),
    ("SELECT * FROM parquet.`/no/such/folder`", PathNotFound, "/no/such/folder", None, "/ has no 'no'"),
    ("CREATE TABLE stored (a INT) USING parquet", AlreadyExists, "stored", None, None),
    ("CREATE TEMPORARY VIEW orders AS SELECT 1", AlreadyExists, "orders", None, None),
    ("SELECT\n id + array(1) FROM orders", SqlTypeError, "incompatible types", (2, 2), None),
    ("INSERT INTO stored VALUES ('x')", SqlTypeError, "Cannot safely cast", None, None),
    ("SELECT id, count(*) FROM orders", QueryError, "GROUP BY", (1, 1), None),
    ("SELECT id FROM orders a JOIN orders b", QueryError, "ambiguous", (1, 8), None),
    ("SELECT 1 UNION SELECT 1, 2", QueryError, "same number of columns", (1, 1), None),
    ("SELECT abs(1, 2)", QueryError, "requires 1 parameters", (1, 8), None),
    ("SELECT id FROM orders ORDER BY 9", QueryError, "position 9", (1, 32), None),
    ("SELECT * FROM a.b.c.d", CatalogNotFound, "namespace", None, NO_CATALOG),
    ("INSERT INTO stored VALUES (1, 2)", QueryError, "too many data columns", None, None),
    ("SET spark.sql.shuffle.partitions=abc", QueryError, "'abc'", None, None),
    ("SELECT id,\n  id / (id - 1) FROM orders", DataError, "Division by zero", (2, 3), None),
    ("SELECT id % (id - 1) FROM orders", DataError, "zero", (1, 8), None),
    ("SELECT CAST(name AS INT) FROM orders", DataError, "'x'.*cannot be cast", (1, 8), None),
    ("SELECT CAST(id * 300 AS TINYINT) FROM orders", DataError, "overflow", None, None),
    ("SELECT 9223372036854775807 + id FROM orders", DataError, "overflow", (1, 8), None),
    ("SELECT array(id)[5] FROM orders", DataError, "out of bounds", (1, 8), None),
    ("SELECT to_date(name, 'yyyy') FROM orders", DataError, "could not be parsed", None, None),
    ("SELECT (SELECT id FROM orders)", QueryError, "More than one row", None, None),
    ("SELECT raise_error('my words') FROM orders", QueryError, "my words", None, None),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[row[0] or "empty" for row in MISTAKES])
def test_a_mistake_in_sql(session, mistake):
    query, kind, says, place, hint = mistake
    with pytest.raises(kind, match=says) as caught:
        session.sql(query).to_arrow()
    error = caught.value
    assert type(error) is kind
    assert (error.position and (error.position.line, error.position.column)) == place
    assert error.hint == hint
    assert error.condition
    assert "SQLSTATE" not in str(error)
    assert "JVM stacktrace" not in str(error)
    assert pickle.loads(pickle.dumps(error)).position == error.position
    assert list(session.operations) == []


@pytest.mark.parametrize("query", [row[0] for row in MISTAKES if row[1] is DataError])
@pytest.mark.parametrize(
    "run",
    [
        lambda df, _: list(df.to_batches()),
        lambda df, _: list(df.toLocalIterator()),
        lambda df, folder: df.write_parquet(folder / "t"),
        lambda df, _: df.collect(),
    ],
    ids=["to_batches", "toLocalIterator", "write_parquet", "collect"],
)
def test_a_row_that_breaks_a_rule_is_one_error_everywhere(session, tmp_path, query, run):
    with pytest.raises(DataError):
        run(session.sql(query).toDF(*[f"c{i}" for i in range(query.count(",\n") + 1)]), tmp_path)


def test_the_position_says_the_fragment(session):
    with pytest.raises(ColumnNotFound) as caught:
        session.sql("SELECT id,\n  nmae\nFROM orders")
    assert caught.value.position.fragment == "nmae"
    assert str(caught.value).endswith("at line 2, column 3: nmae")


def test_an_error_in_a_frame_method_is_typed_too(session):
    with pytest.raises(ColumnNotFound) as caught:
        session.table("orders").select("nmae")
    assert caught.value.hint == "did you mean 'name'?"
    with pytest.raises(ColumnNotFound):
        session.table("orders").groupBy("nope").count()
    with pytest.raises(ColumnNotFound):
        session.table("orders").na.fill(0).where("nope = 1")


# Files


def test_a_missing_file_names_the_nearest(session, tmp_path):
    (tmp_path / "orders.csv").write_text("a\n1\n")
    with pytest.raises(PathNotFound, match=r"ordres\.csv") as caught:
        session.read_csv(tmp_path / "ordres.csv")
    assert caught.value.hint == "did you mean 'orders.csv'?"
    with pytest.raises(PathNotFound) as caught:
        session.read_parquet(tmp_path / "deep" / "er" / "x")
    assert caught.value.hint == f"{tmp_path} has no 'deep'"


def write(path, content):
    path.write_bytes(content)
    return path


BROKEN_FILES = {
    "no parquet": ("parquet", b"this is not parquet at all", {}, "footer"),
    "truncated parquet": ("parquet", b"PAR1" + b"\0" * 20, {}, "footer"),
    "broken json": ("json", b'{"a": 1}\n{"a": ', {"mode": "FAILFAST", "schema": "a int"}, "(?i)malformed"),
    "wrong csv": ("csv", b"a\nx\n", {"mode": "FAILFAST", "schema": "a int"}, "(?i)malformed"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_file(session, tmp_path, name):
    form, content, options, says = BROKEN_FILES[name]
    path = write(tmp_path / "broken", content)
    with pytest.raises(QueryError, match=says):
        getattr(session, f"read_{form}")(path, **options).to_arrow()


def test_an_empty_folder(session, tmp_path):
    with pytest.raises(QueryError, match="Unable to infer schema") as caught:
        session.read_parquet(tmp_path)
    assert "no file with columns" in (caught.value.hint or "")
    assert session.read_parquet(tmp_path, schema="a INT").to_arrow().num_rows == 0


@pytest.mark.parametrize("path", ["foo://x/y", "s3://bucket/key", "relative:path", "", "\0"])
def test_a_path_nobody_can_open(session, path):
    with pytest.raises(WeirflowError):
        session.read_csv(path)


def test_a_folder_that_cannot_be_written(session):
    with pytest.raises(QueryError, match="Mkdirs failed") as caught:
        session.table("orders").write_parquet("/proc/no/such/place")
    assert "\tat " not in str(caught.value)


def test_an_unknown_format(session):
    with pytest.raises(QueryError, match="nofmt"):
        session.table("orders").write_table("t", format="nofmt")


# Python functions


@pytest.mark.parametrize(
    "run",
    [
        lambda df, _: df.to_arrow(),
        lambda df, _: df.collect(),
        lambda df, _: df.show(),
        lambda df, _: list(df.to_batches()),
        lambda df, _: list(df.toLocalIterator()),
        lambda df, folder: df.write_parquet(folder / "t"),
        lambda df, _: df.foreach(lambda row: row.k),
    ],
    ids=["to_arrow", "collect", "show", "to_batches", "toLocalIterator", "write", "foreach"],
)
def test_a_function_that_raises_is_told_in_a_sentence(session, tmp_path, run):
    def missing_key(value):
        return {"a": 1}[f"key {value}"]

    session.udf("missing_key", missing_key, "int")
    with pytest.raises(UserCodeError) as caught:
        run(session.sql("SELECT missing_key(id) AS k FROM orders"), tmp_path)
    line = missing_key.__code__.co_firstlineno + 1
    assert re.fullmatch(
        rf"\[USER_CODE_FAILED\] missing_key\(\) raised KeyError: 'key \d' at {re.escape(__file__)}, line {line}: "
        r'return \{"a": 1\}\[f"key \{value\}"\]',
        str(caught.value),
    )
    assert caught.value.traceback.startswith("Traceback (most recent call last)")
    assert "org.apache.spark" not in caught.value.traceback


def test_a_function_for_each_row_that_raises_is_told_in_a_sentence(session, capfd):
    def refuse(row):
        raise ValueError(f"not {row.id}")

    with pytest.raises(UserCodeError) as caught:
        session.sql("SELECT id FROM orders LIMIT 1").foreach(refuse)
    line = refuse.__code__.co_firstlineno + 1
    where = re.escape(f"{__file__}, line {line}: raise ValueError")
    assert re.fullmatch(rf"\[USER_CODE_FAILED\] refuse\(\) raised ValueError: not \d at {where}.*", str(caught.value))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "use",
    [
        lambda session, _: session.sql("SELECT 1 AS a").write_table("formats", format="parqet"),
        lambda session, _: session.sql("CREATE TABLE formats (a INT) USING parqet"),
        lambda session, place: session.sql("SELECT 1 AS a").write.format("parqet").save(str(place / "t")),
        lambda session, _: session.read_stream("parqet", schema="a INT"),
    ],
    ids=["write_table", "SQL", "writer", "read_stream"],
)
def test_a_format_that_there_is_not_says_what_was_meant(session, tmp_path, use):
    with pytest.raises(QueryError, match="data source: parqet") as caught:
        use(session, tmp_path)
    assert caught.value.hint == "did you mean 'parquet'?"


def test_a_connector_that_is_not_there_says_how_to_have_it(session):
    with pytest.raises(QueryError) as caught:
        session.read_stream("kafka", **{"kafka.bootstrap.servers": "localhost:1", "subscribe": "a"})
    assert caught.value.hint == "open the Session with packages=['kafka']"


def test_a_map_that_raises(session):
    def refuse(batches):
        for _ in batches:
            raise ValueError("not these rows")
        yield

    with pytest.raises(UserCodeError, match="raised ValueError: not these rows"):
        session.table("orders").mapInArrow(refuse, "a int").to_arrow()


def test_a_function_that_cannot_travel(session, capfd):
    lock = threading.Lock()
    with pytest.raises(UserCodeError, match="cannot be sent to Spark's workers"):
        session.udf("locked", lambda x: (lock, x), "int")


def test_a_type_that_is_none(session):
    with pytest.raises(QueryError):
        session.udf("f", lambda x: x, "no such type")


def test_the_cause_is_kept_and_never_itself(session):
    with pytest.raises(TableNotFound) as caught:
        session.submit("SELECT * FROM nope").result(60)
    error = caught.value
    assert error.__cause__ is not None
    assert error.__cause__ is not error


def test_the_session_works_after_every_error(session):
    for query, *_ in MISTAKES[::4]:  # the tests above have made all of them, in this session
        with pytest.raises(WeirflowError):
            session.sql(query).to_arrow()
    assert session.sql("SELECT count(*) AS n FROM orders").to_arrow().to_pylist() == [{"n": 2}]
    assert list(session.operations) == []
