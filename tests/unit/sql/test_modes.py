"""Which function means what in which evaluation mode, and what passes know of it."""

import pytest
from support.exprs import BIGINT, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, TINYINT, array_of, call, decimal, lit

from weirflow.sql.expr import AggregateCall, Column
from weirflow.sql.functions.modes import EvalMode, aggregate_in, call_in, cast_in, name_in
from weirflow.sql.passes.failure import can_fail, is_null_if
from weirflow.sql.plan import Field, Project, Scan
from weirflow.sql.print import print_expr
from weirflow.sql.stored import decode_plan, encode_plan
from weirflow.sql.types import DATE

MONEY = decimal(9, 2)


@pytest.mark.parametrize(
    ("function", "kind", "legacy", "tried"),
    [
        ("add", INT, "wrapping_add", "try_add"),
        ("multiply", MONEY, "try_multiply", "try_multiply"),
        ("subtract", DOUBLE, "subtract", "subtract"),
        ("add", INTERVAL, "add", "add"),
        ("divide", DOUBLE, "try_divide", "try_divide"),
        ("remainder", INT, "try_remainder", "try_remainder"),
        ("pmod", MONEY, "try_pmod", None),
        ("integral_divide", BIGINT, "wrapping_integral_divide", None),
        ("integral_divide", MONEY, "try_integral_divide", None),
        ("negate", TINYINT, "wrapping_negate", None),
        ("abs", MONEY, "abs", None),
        ("round", INT, "wrapping_round", None),
        ("round", MONEY, "round", None),
        ("element_at", array_of(INT), "try_element_at", "try_element_at"),
        ("sum", INT, "wrapping_sum", "try_sum"),
        ("sum", DOUBLE, "sum", "sum"),
        ("avg", MONEY, "try_avg", "try_avg"),
        ("avg", INT, "avg", "avg"),
        ("upper", STRING, "upper", "upper"),
    ],
)
def test_a_function_has_a_name_for_each_meaning(function, kind, legacy, tried):
    assert name_in(EvalMode.ANSI, function, kind) == function
    assert name_in(EvalMode.LEGACY, function, kind) == legacy
    assert name_in(EvalMode.TRY, function, kind) == tried


def test_calls_keep_all_but_their_name():
    a = Column(0, "a", INT)
    added = call("add", INT, a, lit(1, INT))
    assert print_expr(call_in(EvalMode.LEGACY, added)) == "wrapping_add(a#0, 1::int)"
    assert call_in(EvalMode.ANSI, added) is added
    assert call_in(EvalMode.TRY, call("pmod", INT, a, a)) is None
    assert call_in(EvalMode.LEGACY, a) is a
    total = AggregateCall("sum", (a,), BIGINT, distinct=True)
    assert aggregate_in(EvalMode.LEGACY, total) == AggregateCall("wrapping_sum", (a,), BIGINT, distinct=True)
    assert aggregate_in(EvalMode.LEGACY, AggregateCall("count", (), BIGINT)) == AggregateCall("count", (), BIGINT)


def test_the_size_of_null_without_ansi():
    size = call("size", INT, Column(0, "a", array_of(INT)))
    assert print_expr(call_in(EvalMode.LEGACY, size)) == "coalesce(size(a#0), -1::int)"


@pytest.mark.parametrize(
    ("source", "target", "legacy"),
    [
        (INT, BIGINT, "cast(x#0 as bigint)"),
        (BIGINT, INT, "legacy_cast(x#0 as int)"),
        (STRING, DOUBLE, "legacy_cast(x#0 as double)"),
        (INT, STRING, "cast(x#0 as string)"),
        (MONEY, STRING, "legacy_cast(x#0 as string)"),
        (DATE, TIMESTAMP, "cast(x#0 as timestamp)"),
        (DATE, INT, "legacy_cast(x#0 as int)"),
    ],
)
def test_casts(source, target, legacy):
    value = Column(0, "x", source)
    assert print_expr(cast_in(EvalMode.LEGACY, value, target)) == legacy
    assert print_expr(cast_in(EvalMode.TRY, value, target)).startswith("try_cast(")
    assert print_expr(cast_in(EvalMode.ANSI, value, target)).startswith("cast(")
    assert cast_in(EvalMode.LEGACY, value, source) is value


def test_passes_know_what_cannot_fail():
    a, b = Column(0, "a", INT), Column(1, "b", INT)
    item = Column(2, "c", array_of(INT))
    assert can_fail(call("divide", DOUBLE, a, b))
    for function in ("try_divide", "try_remainder", "wrapping_integral_divide", "legacy_cast", "try_get_array_item"):
        assert not can_fail(call(function, INT, a, b)), function
    assert can_fail(call("try_element_at", INT, item, a))  # for the index 0
    assert is_null_if(call("wrapping_add", INT, a, b), {0})
    assert is_null_if(call("legacy_cast", INT, a), {0})
    assert not is_null_if(call("coalesce", INT, a, lit(-1, INT)), {0})


def test_plans_carry_what_they_mean():
    scan = Scan("t", (Field("a", INT),))
    added = call("wrapping_add", INT, Column(0, "a", INT), lit(1, INT))
    plan = Project(scan, (added,), (Field("x", INT),))
    assert decode_plan(encode_plan(plan)) == plan
    assert "wrapping_add" in encode_plan(plan)
