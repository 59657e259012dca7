# ruff: noqa: E501 - tables of values read better in long lines
import pyarrow as pa
import pytest
from support.exprs import BIGINT, BOOLEAN, DOUBLE, INT, STRING, apply_rows, array_of, call, cast, evaluate, lit

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions import compile_expression
from weirflow.sql.expr import Column

X, S = Column(0, "x", INT), Column(0, "s", STRING)
INVERSE = call("divide", DOUBLE, lit(1.0, DOUBLE), cast(X, DOUBLE))
IS_ZERO = call("equal", BOOLEAN, X, lit(0, INT))


def test_the_first_true_condition_decides_and_null_is_not_true():
    assert apply_rows(
        "case", STRING, ([True, None, False, False], BOOLEAN), lit("a", STRING), ([True, True, True, None], BOOLEAN), lit("b", STRING), lit("c", STRING),
    ) == ["a", "b", "b", "c"]  # fmt: skip


@pytest.mark.parametrize("rows", [[0, 2, None], [4, 2], [0], [0, 0, 1]])
def test_only_the_chosen_branch_is_evaluated(rows):
    expr = call("case", DOUBLE, IS_ZERO, lit(-1.0, DOUBLE), INVERSE)
    expected = [-1.0 if x == 0 else None if x is None else 1 / x for x in rows]
    evaluator = compile_expression(expr)
    for _ in range(2):  # the second time it knows that a branch may raise
        assert evaluator([pa.array(rows, INT)], len(rows)).to_pylist() == expected


def test_a_later_condition_is_not_evaluated_for_decided_rows():
    large = call("greater", BOOLEAN, INVERSE, lit(0.3, DOUBLE))
    expr = call("case", STRING, IS_ZERO, lit("zero", STRING), large, lit("large", STRING), lit("small", STRING))
    assert evaluate(expr, ([0, 2, 10, None], INT)) == ["zero", "large", "small", "small"]


def test_the_chosen_branch_raises():
    expr = call("case", DOUBLE, call("not", BOOLEAN, IS_ZERO), lit(1.0, DOUBLE), INVERSE)
    with pytest.raises(DataError) as raised:
        evaluate(expr, ([1, 0], INT))
    assert raised.value.condition == "DIVIDE_BY_ZERO"
    assert evaluate(expr, ([1, 2], INT)) == [1.0, 1.0]


def test_a_constant_that_raises_is_left_alone_until_a_row_asks():
    broken = call("integral_divide", BIGINT, lit(1, BIGINT), lit(0, BIGINT))
    expr = call("case", BIGINT, IS_ZERO, broken, lit(2, BIGINT))
    assert evaluate(expr, ([1, 2], INT)) == [2, 2]
    assert evaluate(broken, ([], INT)) == []
    with pytest.raises(DataError):
        evaluate(expr, ([0], INT))


def test_coalesce_stops_at_the_first_value():
    assert apply_rows("coalesce", INT, ([None, 1, None], INT), ([2, 2, None], INT), lit(None, INT)) == [2, 1, None]
    parsed = cast(S, INT)
    assert evaluate(call("coalesce", INT, call("length", INT, S), parsed), (["x", "yy"], STRING)) == [1, 2]
    number = Column(1, "n", INT)
    assert evaluate(call("coalesce", INT, number, parsed), (["x", "7"], STRING), ([3, None], INT)) == [3, 7]
    with pytest.raises(DataError):
        evaluate(call("coalesce", INT, number, parsed), (["x", "7"], STRING), ([None, None], INT))


def test_branches_of_nested_types():
    ints = array_of(INT)
    assert apply_rows("case", ints, ([True, False], BOOLEAN), ([[1], [2]], ints), lit(None, ints)) == [[1], None]
