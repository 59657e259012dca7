"""Plans as text: what is read is what was written, in any process, and what is no plan is refused by name."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from support import time_corpus, tpch, view_corpus
from support.expression_catalogue import FAMILIES
from support.expression_data import SCHEMA
from support.generator.case import make_case
from support.sql_catalogue import CONSTRUCTS
from support.sql_catalogue import SOURCES as CATALOGUE_SOURCES

from weirflow.errors import (
    ColumnNotFound,
    NotIncremental,
    Reason,
    SqlPosition,
    SqlTooComplex,
    SqlTypeError,
    StorageError,
    TableNotFound,
)
from weirflow.ivm.circuit.circuit import ancestors
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.view import Mode, View
from weirflow.sql import expr, plan, types
from weirflow.sql.bind.query import bind_query
from weirflow.sql.expr import Call, Column, Literal
from weirflow.sql.passes.optimize import logical_plan, optimized
from weirflow.sql.plan import Field, Filter, Project, Scan, Union
from weirflow.sql.print import print_plan
from weirflow.sql.stored import Outline, decode_plan, encode_plan, encode_refusal, fitted, outline
from weirflow.sql.stored.nodes import KINDS
from weirflow.sql.typing.type_syntax import parse_ddl, parse_type_name

KEPT = Path(__file__).parent / "stored_plan_v1.json"
CATALOG = {"t": (Field("a", types.INT), Field("b", types.STRING)), "u": (Field("a", types.INT),)}


def program_of(sources):
    program = Program()
    for name, schema in sources.items():
        program.add_source(name, schema)
    return program


def fingerprints(program):
    return [node.fingerprint for node in program.circuit.nodes]


def require_equal(sources, views):
    """Each view is the same from its plan as from its SQL: node for node, and word for word."""
    by_sql, by_plan = program_of(sources), program_of(sources)
    for name, sql in views.items():
        catalog = {one: relation.fields for one, relation in by_sql.relations.items()}
        try:
            bound = bind_query(sql, catalog)
            by_sql.add_views({name: View(sql, Mode.INCREMENTAL)})
        except NotIncremental:
            continue
        text = encode_plan(bound)
        read = decode_plan(text)
        assert (read, print_plan(read)) == (bound, print_plan(bound)), sql
        assert encode_plan(read) == text
        by_plan.add_views({name: View("no SQL at all", Mode.INCREMENTAL, plan=text)})
        assert by_plan.relations[name].fields == by_sql.relations[name].fields
    assert fingerprints(by_plan) == fingerprints(by_sql)


def test_the_corpus():
    require_equal(view_corpus.SOURCES, view_corpus.VIEWS)
    require_equal(time_corpus.SOURCES, time_corpus.VIEWS)


def test_the_catalogue():
    require_equal(CATALOGUE_SOURCES, {f"v{number}": one.sql for number, one in enumerate(CONSTRUCTS) if one.is_kept})


def test_tpch():
    schemas = {name: parse_ddl(ddl) for name, ddl in tpch.SCHEMAS.items()}
    require_equal(schemas, {f"q{number}": sql for number, sql in tpch.QUERIES.items()})


@pytest.mark.parametrize("family", FAMILIES)
def test_expressions(family):
    scan = Scan("t", tuple(Field(one.name, one.type) for one in SCHEMA))
    cases = [case.expr for case in FAMILIES[family]()]
    whole = Project(scan, tuple(cases), tuple(Field(f"c{place}", one.type) for place, one in enumerate(cases)))
    read = decode_plan(encode_plan(whole))
    assert print_plan(read) == print_plan(whole)
    assert repr(read) == repr(whole)
    assert encode_plan(read) == encode_plan(whole)


@pytest.mark.parametrize("seed", range(60))
def test_random_views(seed):
    case = make_case(seed)
    require_equal(case.sources, {view.name: view.text.spark for view in case.views})


# What a plan consists of


def test_every_kind_of_node_and_each_of_its_fields_is_written():
    kinds = {*get_args(plan.Plan), *get_args(expr.Expr), expr.SortKey, expr.AggregateCall, expr.WindowCall}
    assert set(KINDS) == kinds
    for kind, (_, parts) in KINDS.items():
        assert list(parts) == [one.name for one in fields(kind) if one.init], kind


def literal(value, kind):
    return Project(Scan("t", CATALOG["t"]), (Literal(value, kind),), (Field("c", kind),))


VALUES = {
    "null": (None, types.NULL),
    "true": (True, types.BOOLEAN),
    "one": (1, types.TINYINT),
    "largest": (2**63 - 1, types.BIGINT),
    "more than a bigint": (10**40, types.BIGINT),
    "a float": (0.1, types.DOUBLE),
    "a whole float": (2.0, types.FLOAT),
    "the smallest float": (5e-324, types.DOUBLE),
    "negative zero": (-0.0, types.DOUBLE),
    "infinite": (math.inf, types.DOUBLE),
    "minus infinite": (-math.inf, types.DOUBLE),
    "nan": (math.nan, types.DOUBLE),
    "decimal": (Decimal("-12.3400"), types.decimal(38, 4)),
    "decimal with an exponent": (Decimal("1E-7"), types.decimal(38, 10)),
    "text": ('a"b\\\n\0 é😀 {"float": "nan"}', types.STRING),
    "half a character": ("\ud800", types.STRING),
    "bytes": (b"\x00\xff'", types.BINARY),
    "date": (date(1, 1, 1), types.DATE),
    "timestamp": (datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), types.TIMESTAMP),
    "timestamp without a zone": (datetime(1, 1, 1, tzinfo=UTC).replace(tzinfo=None), types.TIMESTAMP_NTZ),
    "days": (timedelta(-3, 4, 5), types.DAY_TIME_INTERVAL),
    "the longest": (timedelta.max, types.DAY_TIME_INTERVAL),
    "months": (pa.MonthDayNano([-13, 0, 0]), types.YEAR_MONTH_INTERVAL),
    "list": ([1, None, 3], types.array_of(types.INT)),
    "empty tuple": ((), types.array_of(types.INT)),
    "map": ([("a", Decimal(1)), ("b", None)], pa.map_(types.STRING, types.decimal(1, 0))),
    "struct": ({"x": [{"y": b"z"}], "list": None}, parse_type_name("STRUCT<x: ARRAY<STRUCT<y: BINARY>>, list: INT>")),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_constant_is_read_as_it_was(name):
    value, kind = VALUES[name]
    (read,) = decode_plan(encode_plan(literal(value, kind))).expressions
    assert (repr(read.value), type(read.value)) == (repr(value), type(value))
    assert str(read.type) == str(kind)


def test_a_moment_of_another_zone_is_the_same_moment():
    value = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    (read,) = decode_plan(encode_plan(literal(value, types.TIMESTAMP))).expressions
    assert repr(read.value) == repr(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "kind",
    [
        *types._NAMES,
        pa.decimal128(38, 0),
        pa.decimal128(5, 5),
        pa.list_(pa.int32()),
        pa.list_(pa.field("element", pa.int32(), nullable=False)),
        pa.struct([]),
        pa.struct([pa.field("a b", pa.map_(pa.string(), pa.list_(pa.int8())), nullable=False)]),
        pa.map_(pa.struct([("k", pa.date32())]), pa.field("value", pa.float32(), nullable=False)),
    ],
    ids=str,
)
def test_a_type_is_read_as_it_was(kind):
    (read,) = decode_plan(encode_plan(literal(None, kind))).fields
    assert (read.type, str(read.type)) == (kind, str(kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, pa.large_string()),
        (None, pa.timestamp("ns")),
        (None, pa.list_(pa.uint8())),
        (None, pa.map_(pa.string(), pa.int32(), keys_sorted=True)),
        (object(), types.INT),
        ([frozenset()], types.array_of(types.INT)),
    ],
)
def test_what_no_view_has_is_refused(value, kind):
    with pytest.raises(NotIncremental, match=r"cannot be stored with a view\.") as caught:
        encode_plan(literal(value, kind))
    assert caught.value.reason is Reason.TYPE_NOT_SUPPORTED


def test_positions_are_kept():
    bound = bind_query("SELECT a,\n  a / a AS q FROM t", CATALOG)
    (_, divided) = decode_plan(encode_plan(bound)).expressions
    found = [part.position for part in (divided, *divided.arguments) if isinstance(part, Call)]
    assert SqlPosition(2, 3, "a") in found


def test_what_is_in_several_places_is_written_once_and_read_as_one():
    bound = bind_query("WITH c AS (SELECT a + 1 AS x FROM t) SELECT * FROM c UNION ALL SELECT * FROM c", CATALOG)
    text = encode_plan(bound)
    assert text.count('"scan"') == 1
    read = decode_plan(text)
    assert isinstance(read, Union)
    assert read.inputs[0] is read.inputs[1]


def test_a_plan_that_doubles_at_each_level_is_as_long_as_it_is_deep():
    doubled = Scan("t", CATALOG["t"])
    for _ in range(200):
        doubled = Union((doubled, doubled), doubled.fields)
    text = encode_plan(doubled)
    assert len(text) < 10_000
    assert encode_plan(decode_plan(text)) == text


def test_what_is_too_large_once_written_out_is_refused_before_it_is():
    doubled = Scan("t", CATALOG["t"])
    for _ in range(60):
        doubled = Union((doubled, doubled), doubled.fields)
    program = program_of({"t": pa.schema([("a", pa.int32()), ("b", pa.string())])})
    with pytest.raises(SqlTooComplex, match="more than 250,000 operations"):
        program.add_views({"v": View("", Mode.INCREMENTAL, plan=encode_plan(doubled))})


def test_a_plan_may_be_deep():
    deep, sum_ = Scan("t", CATALOG["t"]), Column(0, "a", types.INT)
    for _ in range(5_000):
        deep, sum_ = Filter(deep, Literal(True, types.BOOLEAN)), Call("add", (sum_, sum_), types.INT)
    deep = Project(deep, (sum_,), (Field("s", types.INT),))
    text = encode_plan(deep)
    assert encode_plan(decode_plan(text)) == text
    assert outline(text).reads == {"t"}


def test_passes_run_on_a_plan_that_was_read():
    sql = "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND a > (SELECT MIN(a) FROM u)"
    assert optimized(decode_plan(encode_plan(bind_query(sql, CATALOG)))) == logical_plan(sql, CATALOG)


# The same in every process

SCRIPT = """
from support.view_corpus import SOURCES, VIEWS
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.stored import encode_plan

catalog = {name: tuple(Field(one.name, one.type) for one in schema) for name, schema in SOURCES.items()}
for name in ("ranked", "full_joined", "cubed", "filtered_calls"):
    print(encode_plan(bind_query(VIEWS[name], catalog)))
"""


def test_the_text_is_the_same_in_every_process():
    paths = ":".join([str(Path(__file__).parents[2]), *sys.path])
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONPATH": paths, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert found.pop().count('{"version":1,') == 4


def test_a_text_that_was_kept_is_read_as_it_was():
    kept = json.loads(KEPT.read_text("utf-8"))
    program = program_of({name: parse_ddl(ddl) for name, ddl in kept["sources"].items()})
    for name, (text, printed) in kept["views"].items():
        assert print_plan(decode_plan(text)) == printed
        assert encode_plan(decode_plan(text)) == text
        program.add_views({name: View("", Mode.INCREMENTAL, plan=text)})
    nodes = program.circuit.nodes
    # Semi joins had the fingerprints of anti joins then, so what is behind one is not found.
    behind = [any(nodes[one].label == "semi join" for one in ancestors(nodes, [at])) for at in range(len(nodes))]
    found = zip(fingerprints(program), kept["fingerprints"], behind, strict=True)
    assert [now != then for now, then, _ in found] == behind
    assert 0 < sum(behind) < len(nodes) // 4
    later = {"first ranked", "nearest"}  # kinds of nodes that were not there when it was written
    assert {json.loads(row)[0] if isinstance(row, str) else row[0] for row in _rows(kept)} == {
        name for name, _ in KINDS.values()
    } - later


def _rows(kept):
    return [row for text, _ in kept["views"].values() for row in json.loads(text)["nodes"]]


# What is no plan

GOOD = json.loads(encode_plan(bind_query("SELECT a + 1 AS x FROM t WHERE b = 'z'", CATALOG)))


def damaged(**changes):
    return json.dumps({**GOOD, **changes})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is damaged"),
        ("nonsense", "it is damaged"),
        ("[1]", "it is damaged"),
        ("{}", "it is damaged"),
        ("[" * 100_000, "it is damaged"),
        (damaged(version=2), "it is damaged"),
        (damaged(version=3), "its version is 3, this Weirflow reads 1 and 2"),
        (damaged(version=None), "its version is None"),
        (damaged(nodes=[]), "it is damaged"),
        (damaged(nodes=[["teleport", 1]]), "this Weirflow does not know 'teleport'"),
        (damaged(nodes=[[]]), "it is damaged"),
        (damaged(nodes=[["distinct", -1]]), "it is damaged"),
        (damaged(nodes=[["distinct", 0]]), "it is damaged"),
        (damaged(nodes=[["scan", "t", [], None], ["distinct", -1]]), "it is damaged"),
        (damaged(nodes=[["column", 0, "a", 0], ["distinct", 0]]), "it is damaged"),
        (damaged(nodes=[["column", 0, "a", 0]]), "it is damaged"),
        (damaged(nodes=[["column", True, "a", 0]]), "it is damaged"),
        (damaged(nodes=[["column", 0, "a", 99]]), "it is damaged"),
        (damaged(nodes=[["scan", "t", [["a", 0, 0]], None]]), "it is damaged"),
        (damaged(types=["int33"]), "it is damaged"),
        (damaged(types=[["decimal", 99, 0]]), "it is damaged"),
        (damaged(nodes=[["literal", {"decimal": "x"}, 0]]), "it is damaged"),
        (damaged(nodes=[["literal", {"pickle": "x"}, 0]]), "it is damaged"),
        (damaged(nodes=[["literal", {"duration": 10**40}, 0]]), "it is damaged"),
        (damaged(refusal=["WHY", "so", None, None]), "it is damaged"),
    ],
)
def test_a_text_that_is_no_plan_is_refused(text, why):
    with pytest.raises(StorageError, match=why) as caught:
        decode_plan(text)
    assert "open the flow with the version of Weirflow that registered the view" in caught.value.hint


def test_a_text_with_any_change_is_a_plan_or_refused():
    text, dice = json.dumps(GOOD), random.Random(1)
    for _ in range(3000):
        at = dice.randrange(len(text))
        changed = text[:at] + dice.choice(["", *'0123-"[]{},ax:']) + text[at + dice.randrange(3) :]
        try:
            assert isinstance(decode_plan(changed), get_args(plan.Plan))
        except StorageError:
            continue


def test_a_refusal_is_raised_as_it_was():
    refusal = NotIncremental("No.", reason=Reason.FUNCTION_NOT_PROVEN, hint="yes?", position=SqlPosition(1, 2, "x"))
    text = encode_refusal(refusal)
    with pytest.raises(NotIncremental) as caught:
        decode_plan(text)
    assert str(caught.value) == str(refusal)
    assert outline(text) == Outline(None, None)
    assert outline(encode_refusal(refusal, ["T", "u", "t"])) == Outline(frozenset({"t", "u"}), None)


# A plan over what there is


def test_a_scan_finds_its_relation_and_columns_in_any_case_and_order():
    catalog = {
        "T": (Field("n", types.DATE), Field("B", types.STRING), Field("A", types.INT)),
        "U": (Field("A", types.INT),),
    }
    read = fitted(bind_query("SELECT b, a FROM t WHERE a IN (SELECT a FROM u)", CATALOG), catalog)
    assert print_plan(read).splitlines() == [
        "Project b#1 AS b string, a#0 AS a int",
        "  Filter (a#0) IN (subquery)",
        "      subquery:",
        "        Project a#0 AS a int",
        "          Scan U [a int]",
        "    Project a#2 AS a int, b#1 AS b string",
        "      Scan T [n date, B string, A int]",
    ]


def test_a_plan_that_fits_stays_the_object_that_it_is():
    read = bind_query("SELECT a FROM t", CATALOG)
    assert fitted(read, CATALOG) is read


@pytest.mark.parametrize(
    ("catalog", "error", "message"),
    [
        ({"u": CATALOG["u"]}, TableNotFound, "No source or view is named 't'"),
        ({"t": CATALOG["t"][:1]}, ColumnNotFound, "'t' has no column 'b', which a view reads"),
        (
            {"t": (Field("a", types.BIGINT), CATALOG["t"][1])},
            SqlTypeError,
            "The column 'a' of 't' is bigint; a view reads it as int",
        ),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(catalog, error, message):
    with pytest.raises(error, match=message) as caught:
        fitted(bind_query("SELECT a, b FROM t", CATALOG), catalog)
    assert caught.value.hint


def test_rows_that_a_recursion_has_found_are_no_relation():
    sql = "WITH RECURSIVE r AS (SELECT a FROM u UNION SELECT r.a + t.a FROM r JOIN t ON r.a = t.a) SELECT * FROM r"
    bound = bind_query(sql, CATALOG)
    assert outline(encode_plan(bound)).reads == {"t", "u"}
    assert fitted(bound, {"T": CATALOG["t"], "U": CATALOG["u"]}) == bind_query(
        sql, {"T": CATALOG["t"], "U": CATALOG["u"]}
    )
