"""A view in PostgreSQL with pgvector: the table equals the view, whatever happens on the way."""

import datetime as dt
import multiprocessing
import pickle
import sys
import traceback
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
from support.hang import dead_port
from support.postgres import PASSWORD
from support.vector_library import declare, expected, run, spawn, store

from weirflow import DeltaBatch, IncrementalFlow, spawn_vector_view
from weirflow.errors import (
    ConfigError,
    DependencyMissing,
    FlowError,
    SinkConflict,
    SinkFailed,
    UnsupportedError,
    VectorStoreError,
)
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.vector import PgVectorStore

ROWS = "SELECT id, body, v::real[] FROM chunks ORDER BY id"
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '%vector\\_%\\_ops%'"


@pytest.fixture
def database(pgvector):
    return pgvector()


@pytest.fixture
def flow():
    with IncrementalFlow("library") as opened:
        yield declare(opened)


@pytest.fixture
def watcher():
    """Sets what is called at failpoints."""
    yield watch_failpoints
    watch_failpoints(None)


def held(database):
    return {one: (body, vector) for one, body, vector in database.run(ROWS)}


def doc(number, body="a", v=(1.0, 0.5, 0.25)):
    return {"id": number, "body": body, "v": None if v is None else list(v)}


def test_a_table_is_made_and_filled_and_follows_the_view(database, flow):
    run(flow, 3)
    with spawn(flow, database.uri) as sink:
        assert held(database) == expected(3)
        for ticks in range(4, 12):
            run(flow, ticks)
            assert held(database) == expected(ticks)
        assert sink.position == 11
    columns = "SELECT column_name, udt_name, is_nullable FROM information_schema.columns WHERE table_name = 'chunks'"
    in_schema = f"{columns} AND table_schema = current_schema() ORDER BY ordinal_position"
    assert database.run(in_schema) == [("id", "int8", "NO"), ("body", "text", "YES"), ("v", "vector", "YES")]
    assert database.run("SELECT atttypmod FROM pg_attribute WHERE attrelid = 'chunks'::regclass AND attname = 'v'") == [
        (3,)
    ]
    nearest = "SELECT id FROM chunks ORDER BY v OPERATOR(public.<->) '[22,11,0.25]'::public.vector LIMIT 1"
    assert database.run(nearest) == [(22,)]


def test_shards_write_the_same_rows(database, tmp_path):
    with PartitionedFlow(str(tmp_path / "flow"), 2, InThisProcess()) as flow:
        declare(flow)
        run(flow, 2)
        spawn(flow, database.uri)
        run(flow, 6)
        assert held(database) == expected(6)


TYPES = {
    "yes": (pa.bool_(), [True, False], "boolean"),
    "tiny": (pa.int8(), [-128, 127], "smallint"),
    "small": (pa.int16(), [-(2**15), 2**15 - 1], "smallint"),
    "plain": (pa.int32(), [-(2**31), 2**31 - 1], "integer"),
    "big": (pa.int64(), [-(2**63), 2**63 - 1], "bigint"),
    "real": (pa.float32(), [1.5, float("-inf")], "real"),
    "double": (pa.float64(), [0.1, 5e-324], "double precision"),
    "price": (pa.decimal128(38, 10), [Decimal("-1.0000000001"), Decimal(f"{'9' * 28}.{'9' * 10}")], "numeric(38,10)"),
    "text": (pa.string(), ["tab\tline\nreturn\r\\N \\. ' \" é \U0001f600", ""], "text"),
    "raw": (pa.binary(), [b"\x00\xff\\x", b""], "bytea"),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)], "date"),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 3, 29, 1, 30, 0, 1, dt.UTC)] * 2, "timestamp with time zone"),
    "clock": (pa.timestamp("us"), [dt.datetime(2026, 3, 29, 2, 30)] * 2, "timestamp without time zone"),  # noqa: DTZ001
    "tags": (pa.list_(pa.string()), [["a,b", '"{}\\', None, "NULL", ""], []], "text[]"),
    "counts": (pa.list_(pa.int64()), [[1, None, -3], [0]], "bigint[]"),
}


def test_every_type_is_kept_as_it_is(database):
    schema = pa.schema({"id": pa.int64(), **{name: kind for name, (kind, _, _) in TYPES.items()}, "v": VECTOR})
    values = [{"id": at, "v": [1.0], **{name: two[at] for name, (_, two, _) in TYPES.items()}} for at in (0, 1)]
    values.append({"id": 2} | dict.fromkeys(schema.names[1:]))
    with IncrementalFlow("library") as flow:
        flow.register_source("docs", schema)
        flow.register_view("chunks", "SELECT * FROM docs")
        flow.tick("docs", values[:1])
        spawn_vector_view(flow, "chunks", store(database.uri, dimension=1), key="id", vector="v")
        flow.tick("docs", values[1:])
        names = [f'"{name}"' for name in TYPES]
        assert database.run(f"SELECT {', '.join(names)} FROM chunks ORDER BY id") == [
            tuple(value[name] for name in TYPES) for value in values
        ]
        kinds = database.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = 'chunks'::regclass AND attnum > 0"
        )
        assert {name: kind for name, kind in kinds if name in TYPES} == {name: TYPES[name][2] for name in TYPES}


VECTOR = pa.list_(pa.float32())


@pytest.mark.parametrize(
    "name",
    [
        "select",
        'a"b',
        "a'b",
        "100%s {} %(x)s",
        "a b;DROP TABLE chunks--",
        "Ünï\U0001f600",
        "a\\b",
        "$1",
        "x" * 63,
        "c0",
    ],
)
def test_names_are_taken_as_they_are(database, name):
    with IncrementalFlow("library") as flow:
        flow.register_source("docs", pa.schema({name: pa.int64(), "v": VECTOR}), key=name)
        flow.register_view("chunks", "SELECT * FROM docs")
        target = PgVectorStore(database.uri, name, dimension=1, index="hnsw")
        spawn_vector_view(flow, "chunks", target, key=name)
        flow.tick("docs", [{name: 1, "v": [1.0]}, {name: 2, "v": [2.0]}])
        flow.tick("docs", DeltaBatch.from_deletes([{name: 1}]))
        flow.tick("docs", [{name: 2, "v": [3.0]}])
        table = psycopg.sql.Identifier(name).as_string(None)
        assert database.run(f"SELECT {table}, v::real[] FROM {table}") == [(2, [3.0])]
        assert database.run("SELECT table_name, epoch FROM weirflow_vector_positions") == [(name, 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "x" * 64}, "cannot call a table"),
        ({"table": "é" * 32}, "cannot call a table"),
        ({"table": "a\ud800"}, "written in UTF-8"),
        ({"schema": "x" * 64}, "cannot call a schema"),
        ({"metric": "manhattan"}, "No metric of vectors is called 'manhattan'"),
        ({"index": "btree"}, "No index of vectors is called 'btree'"),
        ({"index_options": {"m": 8}}, "The index none has no option 'm'"),
        ({"index": "hnsw", "index_options": {"list": 8}}, "The index hnsw has no option 'list'"),
        ({"index": "ivfflat", "index_options": {"lists": 0}}, "at least 1"),
        ({"index": "hnsw", "dimension": 2001}, "at most 2000"),
        ({"dimension": 0}, "at least 1"),
        ({"dimension": 16001}, "at most 16000"),
        ({"uri": f"mysql://ann:{PASSWORD}@host/db"}, "begins with postgresql://"),
        ({"uri": f"postgresql://ann:{PASSWORD}@@host/db"}, "cannot be read"),
    ],
)
def test_a_store_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message) as refused:
        PgVectorStore(**{"uri": "postgresql://host/db", "table": "chunks", "dimension": 3, **arguments})
    assert_no_secret(refused.value)


def test_a_missing_extension_is_named_with_the_statement(postgres, flow):
    postgres.execute("CREATE DATABASE bare")
    with pytest.raises(DependencyMissing) as missing:
        spawn(flow, postgres.make_uri().replace("/postgres?", "/bare?"))
    assert missing.value.hint == "CREATE EXTENSION vector"
    assert_no_secret(missing.value)


def test_a_missing_driver_is_named_with_the_command(monkeypatch):
    monkeypatch.delitem(sys.modules, "weirflow.vector.pgvector.connection", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DependencyMissing) as missing:
        store("postgresql://host/db")
    assert missing.value.hint == "pip install 'weirflow[postgresql]'"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            "CREATE TABLE chunks (id bigint PRIMARY KEY, body text, v public.vector(4))",
            r"has the columns .*vector\(4\)",
        ),
        ("CREATE TABLE chunks (id bigint PRIMARY KEY, body text, v public.vector)", "has the columns"),
        ("CREATE TABLE chunks (id integer PRIMARY KEY, body text, v public.vector(3))", "id integer"),
        ("CREATE TABLE chunks (id bigint PRIMARY KEY, v public.vector(3))", "has the columns"),
        ("CREATE TABLE chunks (id bigint PRIMARY KEY, body text, v public.vector(3), more int)", "more integer"),
        ("CREATE TABLE chunks (id bigint, body text, v public.vector(3))", "neither a primary key nor"),
        ("CREATE TABLE chunks (id bigint, body text, v public.vector(3), UNIQUE (id, body))", "neither a primary key"),
        (
            "CREATE VIEW chunks AS SELECT 1::bigint id, ''::text body, '[1,2,3]'::public.vector(3) v",
            "neither a primary",
        ),
    ],
)
def test_a_table_that_cannot_hold_the_view_is_left_alone(database, flow, made, message):
    database.run(made)
    with pytest.raises(ConfigError, match=message):
        spawn(flow, database.uri)


def test_a_table_that_can_is_taken(database, flow):
    database.run(
        "CREATE TABLE chunks (v public.vector(3), size int GENERATED ALWAYS AS (length(body)) STORED, "
        "id bigint UNIQUE, body text)"
    )
    run(flow, 2)
    spawn(flow, database.uri)
    run(flow, 5)
    assert held(database) == expected(5)


def test_a_column_that_postgresql_has_no_type_for_is_refused(database):
    with IncrementalFlow("library") as flow:
        flow.register_source("docs", "id BIGINT, v ARRAY<FLOAT>, more STRUCT<a: INT>")
        flow.register_view("chunks", "SELECT * FROM docs")
        with pytest.raises(UnsupportedError, match="'more' of type struct") as refused:
            spawn_vector_view(flow, "chunks", store(database.uri), key="id")
    assert "to_json" in refused.value.hint


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([doc(5, v=(1.0, 2.0))], "is of length 2 instead of 3"),
        ([doc(5, v=(1.0, 2.0, float("nan")))], "has nan at place 3"),
        ([doc(5, v=(1.0, float("-inf"), 0.0))], "has -inf at place 2"),
        ([doc(5, v=(1.0, None, 0.0))], "has NULL at place 2"),
        ([doc(5, body="a\0b")], "invalid byte sequence"),
        ([doc(5, body="x" * 100, v=(0.0, 0.0, 0.0))], None),
    ],
)
def test_rows_that_cannot_be_written_fail_with_a_sentence_and_the_sink_goes_on(database, flow, rows, message):
    sink = spawn(flow, database.uri)
    flow.tick("docs", [doc(1)])
    flow.tick("docs", [doc(2), *rows])
    if message is None:
        assert sink.error is None
        return
    assert message in sink.error.message
    assert sorted(held(database)) == [1]
    with pytest.raises(SinkFailed):
        sink.close()
    flow.tick("docs", [doc(5, "corrected")])
    assert spawn(flow, database.uri).flush() == 3
    assert held(database) == {n: (b, [1.0, 0.5, 0.25]) for n, b in [(1, "A"), (2, "A"), (5, "CORRECTED")]}


def test_vectors_that_do_not_fit_can_be_left_out(database, flow):
    flow.tick("docs", [doc(1), doc(2, v=None), doc(4, v=(1.0,)), doc(5, v=(float("nan"), 0.0, 0.0))])
    spawn(flow, database.uri, unfit="null")
    assert held(database) == {n: ("A", [1.0, 0.5, 0.25] if n == 1 else None) for n in (1, 2, 4, 5)}


def test_a_key_that_does_not_identify_rows_is_found_whenever_its_second_row_comes(database):
    with IncrementalFlow("library") as flow:
        flow.register_source("docs", "id BIGINT, body STRING, v ARRAY<FLOAT>")
        flow.register_view("chunks", "SELECT id, upper(body) AS body, v FROM docs")
        sink = spawn(flow, database.uri)
        flow.tick("docs", [doc(1), doc(2)])
        flow.tick("docs", [doc(1, "other")])
        assert "has a row for the key {'id': '1'} already" in sink.error.message
        flow_delta = DeltaBatch.from_deletes([doc(1, "other")])
        with pytest.raises(SinkFailed):
            flow.tick("docs", flow_delta)
        with pytest.raises(SinkFailed):
            sink.close()
        flow.tick("docs", flow_delta)
        spawn(flow, database.uri).flush()
        assert sorted(held(database)) == [1, 2]


def test_a_table_of_another_flow_is_left_alone_unless_it_is_to_be_replaced(database, flow):
    run(flow, 3)
    first = spawn(flow, database.uri)
    with IncrementalFlow("library") as other:
        run(declare(other), 5)
        with pytest.raises(SinkConflict, match="another flow"):
            spawn(other, database.uri)
        assert held(database) == expected(3)
        spawn(other, database.uri, resync=True)
        assert held(database) == expected(5)
        run(flow, 4)
        assert "another flow" in first.error.message
        assert held(database) == expected(5)
        with pytest.raises(SinkFailed):
            first.close()


def test_rows_that_nobody_has_written_are_left_alone(database, flow):
    spawn(flow, database.uri).close()
    database.run("DELETE FROM weirflow_vector_positions; INSERT INTO chunks VALUES (1, 'mine', NULL)")
    with pytest.raises(SinkConflict, match="no sink has written"):
        spawn(flow, database.uri)
    assert database.run(ROWS) == [(1, "mine", None)]
    spawn(flow, database.uri, resync=True)
    assert database.run(ROWS) == []


def test_two_writers_at_once_write_nothing_twice(database, flow):
    """As two processes would that both believe to run the flow."""
    run(flow, 2)
    first, second = spawn(flow, database.uri, name="first"), spawn(flow, database.uri, name="second")
    run(flow, 6)
    assert (first.error, second.error) == (None, None)
    assert held(database) == expected(6)
    database.run("UPDATE weirflow_vector_positions SET epoch = 4")
    run(flow, 7)
    assert "holds the rows of epoch 4, and not those of epoch 6" in first.error.message
    for sink in (first, second):
        with pytest.raises(SinkFailed):
            sink.close()


def test_a_table_that_was_dropped_is_filled_again(database, flow):
    run(flow, 3)
    spawn(flow, database.uri).close()
    database.run("DROP TABLE chunks")
    spawn(flow, database.uri)
    assert held(database) == expected(3)


def test_a_schema_can_be_named(database, flow):
    database.run('CREATE SCHEMA "Of ""mine"')
    try:
        run(flow, 2)
        spawn_vector_view(flow, "chunks", store(database.uri, schema='Of "mine'), key="id")
        run(flow, 4)
        rows = database.run('SELECT id FROM "Of ""mine".chunks ORDER BY id')
        assert [one for (one,) in rows] == sorted(expected(4))
        with pytest.raises(ConfigError, match="no schema 'none there'"):
            spawn_vector_view(flow, "chunks", store(database.uri, schema="none there"), key="id", name="other")
    finally:
        database.run('DROP SCHEMA "Of ""mine" CASCADE')


@pytest.mark.parametrize(
    ("index", "metric", "options", "found"),
    [
        ("none", "l2", {}, []),
        ("hnsw", "l2", {}, ["USING hnsw (v public.vector_l2_ops)"]),
        ("hnsw", "cosine", {"m": 4}, ["USING hnsw (v public.vector_cosine_ops) WITH (m='4')"]),
        ("ivfflat", "inner", {"lists": 2}, ["USING ivfflat (v public.vector_ip_ops) WITH (lists='2')"]),
    ],
)
def test_the_index_is_the_one_that_is_asked_for(database, flow, index, metric, options, found):
    run(flow, 4)
    chosen = {"index": index, "metric": metric, "index_options": options}
    for _ in range(2):
        spawn_vector_view(flow, "chunks", store(database.uri, **chosen), key="id").close()
    assert [one.partition("chunks ")[2] for (one,) in database.run(INDEXES)] == found


def test_an_index_can_be_asked_for_later_and_with_other_options_is_refused(database, flow):
    run(flow, 4)
    spawn_vector_view(flow, "chunks", store(database.uri), key="id").close()
    assert database.run(INDEXES) == []
    later = {"index": "hnsw", "index_options": {"m": 5}}
    spawn_vector_view(flow, "chunks", store(database.uri, **later), key="id").close()
    assert len(database.run(INDEXES)) == 1
    with pytest.raises(ConfigError, match="index chunks_v_idx with m=5; you asked for m=6"):
        spawn_vector_view(flow, "chunks", store(database.uri, index="hnsw", index_options={"m": 6}), key="id")


def test_a_connection_that_is_dropped_is_made_again(database, flow):
    spawn(flow, database.uri)
    for ticks in range(1, 4):
        assert database.server.drop_connections() >= 1
        run(flow, ticks)
        assert held(database) == expected(ticks)


@pytest.mark.parametrize("point", ["vector.before_copy", "vector.before_commit", "vector.after_commit"])
def test_a_connection_that_is_dropped_on_the_way_writes_everything_once(database, flow, watcher, point):
    sink = spawn(flow, database.uri)
    run(flow, 2)
    dropped = []

    def drop(name):
        if name == point and not dropped:
            dropped.append(database.server.drop_connections())

    watcher(drop)
    run(flow, 4)
    assert dropped
    assert (sink.error, held(database)) == (None, expected(4))


@pytest.mark.parametrize("point", ["vector.before_copy", "vector.before_commit", "vector.after_commit"])
def test_an_interrupt_on_the_way_loses_and_doubles_nothing(database, flow, watcher, point):
    spawn(flow, database.uri)
    run(flow, 2)
    left = [point]

    def interrupt(name):
        if name in left:
            left.remove(name)
            raise KeyboardInterrupt

    watcher(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(flow, 3)
    run(flow, 5)
    assert held(database) == expected(5)


@pytest.mark.parametrize("policy", ["raise", "keep"])
def test_what_cannot_be_written_is_kept_until_it_can(database, flow, policy):
    sink = spawn(flow, database.uri, on_failure=policy)
    run(flow, 2)
    database.run("ALTER TABLE chunks RENAME TO away")
    run(flow, 3)
    assert 'relation "' in sink.error.message
    if policy == "raise":
        with pytest.raises(SinkFailed, match="does not exist"):
            run(flow, 4)
    else:
        run(flow, 6)
    database.run("ALTER TABLE away RENAME TO chunks")
    ticks = 4 if policy == "raise" else 6
    run(flow, ticks)
    sink.flush()
    assert held(database) == expected(ticks)


@pytest.mark.parametrize("every", [1, 3])
def test_a_reopened_flow_goes_on_where_the_table_is(database, tmp_path, every):
    for ticks in (3, 4, 8):
        flow = declare(IncrementalFlow("library", path=tmp_path / "flow"))
        sink = spawn(flow, database.uri, every=every)
        run(flow, ticks)
        sink._target.close()
        flow._backend._store.close()  # as if killed: nothing is flushed
    with declare(IncrementalFlow("library", path=tmp_path / "flow")) as flow:
        spawn(flow, database.uri)
    assert held(database) == expected(8)


def _use(opened, flow):
    try:
        opened.position()
    except VectorStoreError as error:
        sys.exit(7 if "forked from" in error.message else 8)


def test_a_forked_child_leaves_the_connection_alone(database, flow):
    opened = store(database.uri)
    spawn_vector_view(flow, "chunks", opened, key="id")
    child = multiprocessing.get_context("fork").Process(target=_use, args=(opened, flow))
    child.start()
    child.join(30)
    assert child.exitcode == 7
    run(flow, 3)
    assert held(database) == expected(3)


def test_a_store_holds_one_view_at_a_time(database, flow):
    opened = store(database.uri)
    sink = spawn_vector_view(flow, "chunks", opened, key="id")
    flow.register_view("others", "SELECT id, v FROM docs")
    with pytest.raises(FlowError, match="in use by another sink"):
        spawn_vector_view(flow, "others", opened, key="id")
    run(flow, 3)
    assert (sink.error, held(database)) == (None, expected(3))
    sink.close()
    with spawn_vector_view(flow, "chunks", opened, key="id"):
        run(flow, 5)
    assert held(database) == expected(5)


def test_a_store_is_used_by_a_sink():
    with pytest.raises(FlowError, match="was not opened"):
        store("postgresql://host/db").position()


def test_a_server_that_is_gone_is_an_error_without_secrets(flow):
    with pytest.raises(VectorStoreError, match="could not be reached") as gone:
        spawn(flow, f"postgresql://ann:{PASSWORD}@127.0.0.1:{dead_port()}/db")
    assert gone.value.uri.startswith("postgresql://127.0.0.1:")
    assert_no_secret(gone.value)


def test_nothing_that_is_shown_holds_the_password(database, flow, caplog):
    opened = store(database.uri)
    sink = spawn_vector_view(flow, "chunks", opened, key="id", on_failure="keep")
    database.run("DROP TABLE chunks")
    run(flow, 1)
    assert_no_secret(sink.error)
    assert PASSWORD not in f"{opened!r} {sink!r} {sink.describe()} {flow.metrics()} {flow.describe()} {caplog.text}"
    with pytest.raises(SinkFailed) as failed:
        sink.close()
    assert_no_secret(failed.value)


def assert_no_secret(error):
    while error is not None:
        assert not isinstance(error.__cause__, psycopg.Error)
        assert error.__suppress_context__ or error.__context__ is None
        assert PASSWORD not in "".join(traceback.format_exception(error))
        assert PASSWORD.encode() not in pickle.dumps(error)
        error = error.__cause__
