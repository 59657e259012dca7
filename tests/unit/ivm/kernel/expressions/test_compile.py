import pickle

import pyarrow as pa
import pytest
from support.exprs import BOOLEAN, DOUBLE, INT, POSITION, STRING, array_of, call, cast, first_unsupported, lit

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions import (
    SUPPORTED,
    UnknownFunction,
    compile_expression,
    compile_expressions,
    is_supported,
)
from weirflow.ivm.kernel.expressions.registry import FUNCTIONS
from weirflow.sql.expr import Column, Literal

X, Y = Column(0, "x", INT), Column(1, "y", INT)


def test_a_column_is_itself():
    column = pa.array([1, None], INT)
    assert compile_expression(X)([column], 2) is column


def test_a_literal_is_repeated():
    for value, kind in ((5, INT), (None, array_of(STRING)), ([1, None], array_of(INT)), (None, pa.null())):
        assert compile_expression(Literal(value, kind))([], 3).to_pylist() == [value] * 3


def test_no_rows_give_the_type():
    nothing = compile_expression(call("divide", DOUBLE, lit(1.0, DOUBLE), lit(0.0, DOUBLE)))([], 0)
    assert (nothing.type, len(nothing)) == (DOUBLE, 0)


def test_common_parts_are_evaluated_once(monkeypatch):
    calls = []
    builder = FUNCTIONS["add"]

    def counting(signature):
        kernel = builder(signature)
        return lambda *values: calls.append(1) or kernel(*values)

    monkeypatch.setitem(FUNCTIONS, "add", counting)
    total = call("add", INT, X, Y)
    again = call("add", INT, Column(0, "another name", INT), Y)
    evaluate = compile_expressions([call("negate", INT, total), call("greater", BOOLEAN, again, lit(1, INT)), total])
    columns = [pa.array([1, 2], INT), pa.array([0, None], INT)]
    assert [array.to_pylist() for array in evaluate(columns, 2)] == [[-1, None], [False, None], [1, None]]
    assert len(calls) == 1


def test_zeros_of_both_signs_are_not_common():
    evaluate = compile_expressions([lit(0.0, DOUBLE), lit(-0.0, DOUBLE)])
    assert str([array.to_pylist() for array in evaluate([], 1)]) == "[[0.0], [-0.0]]"


def test_sliced_columns():
    columns = [pa.array([9, 1, None, 3], INT).slice(1), pa.array([None, 9, 2, None, 1], INT).slice(2)]
    expr = call("remainder", INT, call("add", INT, X, Y), lit(2, INT))
    assert compile_expression(expr)(columns, 3).to_pylist() == [1, None, 0]


def test_errors_carry_condition_and_position_and_pickle():
    with pytest.raises(DataError) as raised:
        compile_expression(cast(Column(0, "s", STRING), INT))([pa.array(["x"])], 1)
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.condition, error.position) == ("CAST_INVALID_INPUT", POSITION)
    assert "'x'" in error.message


@pytest.mark.parametrize(
    "expr",
    [
        call("cos", DOUBLE, lit(1.0, DOUBLE)),
        call("sqrt", DOUBLE, X),
        call("cast", STRING, lit(None, pa.duration("us"))),
        call("add", INT, X, call("sin", DOUBLE, lit(1.0, DOUBLE))),
    ],
)
def test_what_is_not_proven_is_refused(expr):
    refusal = first_unsupported(expr)
    assert isinstance(refusal, UnknownFunction)
    assert refusal.code == "FUNCTION_NOT_PROVEN"
    assert refusal.position == POSITION
    with pytest.raises(UnknownFunction):
        compile_expression(expr)


def test_support_by_name_and_types():
    assert is_supported("add", [INT, INT])
    assert is_supported("case", [BOOLEAN, array_of(INT), array_of(INT)])
    assert not is_supported("cos", [DOUBLE])
    assert not is_supported("equal", [pa.large_string(), pa.large_string()])
    assert {"explode"}.isdisjoint(SUPPORTED)
