"""Calls of users' functions: once for equal rows, only with results of just the declared type, named when they fail."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from weirflow import UserFunction
from weirflow.errors import FunctionFailed, FunctionMissing, TickTimeout
from weirflow.ivm.compiler.user_functions import FunctionsOnly
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.ivm.kernel.expressions.foreign import evaluated_by
from weirflow.sql.expr import Call, Column, Literal
from weirflow.sql.foreign import PYTHON, foreign_call

NUMBER = Column(0, "n", pa.int64())


def called(function, kind, values, *, version="1"):
    call = foreign_call("`f`(`_wf0`)", {"function:f": "1"}, [NUMBER], kind, PYTHON)
    with evaluated_by(FunctionsOnly({"F": UserFunction(function, version)})):
        evaluate = compile_expression(call)
    return evaluate([pa.array(values, pa.int64())], len(values)).to_pylist()


def test_equal_rows_are_one_call_and_null_is_none():
    seen = []

    def doubled(n):
        seen.append(n)
        return None if n is None else 2 * n

    assert called(doubled, pa.int64(), [3, None, 3, 1, None]) == [6, None, 6, 2, None]
    assert sorted(seen, key=str) == [1, 3, None]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.bool_(), True),
        (pa.int8(), -128),
        (pa.int64(), 1 << 62),
        (pa.float64(), 0.1),
        (pa.string(), "x\x00é"),
        (pa.date32(), dt.date(1, 1, 1)),
        (pa.timestamp("us"), dt.datetime(2024, 1, 1, 2, 3, 4, 5)),  # noqa: DTZ001 - a time without a zone
        (pa.decimal128(10, 2), Decimal("1.20")),
        (pa.list_(pa.int32()), [1, None]),
    ],
)
def test_results_of_just_the_declared_type_are_taken(kind, value):
    assert called(lambda _: value, kind, [1]) == [value]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.bool_(), 1),
        (pa.int8(), 128),
        (pa.int64(), True),
        (pa.int64(), 1.0),
        (pa.float64(), 1),
        (pa.string(), 1),
        (pa.string(), "\ud800"),
        (pa.date32(), dt.datetime(2024, 1, 1)),  # noqa: DTZ001 - as above
        (pa.timestamp("us"), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (pa.decimal128(10, 2), Decimal("1.205")),
        (pa.decimal128(10, 2), Decimal("NaN")),
        (pa.decimal128(10, 2), 1),
        (pa.list_(pa.int32()), (1,)),
        (pa.list_(pa.int32()), ["x"]),
    ],
)
def test_other_results_are_for_spark_to_judge(kind, value):
    with pytest.raises(FunctionFailed, match="'f' returned a value that is not of the declared type"):
        called(lambda n: value if n else None, kind, [0, 1])


def test_what_it_raises_is_said_with_what_it_was_given():
    with pytest.raises(FunctionFailed, match=r"^\[FUNCTION_FAILED\] The function 'f' raised KeyError for \(7\): 'no'$"):
        called(lambda _: {}["no"], pa.int64(), [7])


def test_what_is_not_chosen_is_not_called():
    inverse = foreign_call("`f`(`_wf0`)", {"function:f": "1"}, [NUMBER], pa.float64(), PYTHON)
    is_zero = Call("equal", (NUMBER, Literal(0, pa.int64())), pa.bool_())
    chosen = Call("case", (is_zero, Literal(0.0, pa.float64()), inverse), pa.float64())
    with evaluated_by(FunctionsOnly({"f": UserFunction(lambda n: 1 / n)})):
        evaluate = compile_expression(chosen)
    assert evaluate([pa.array([4, 0], pa.int64())], 2).to_pylist() == [0.25, 0.0]


def test_a_deadline_ends_it():
    with Deadline(0.0), pytest.raises(TickTimeout):
        called(lambda n: n, pa.int64(), list(range(10)))


def test_what_is_missing_is_said_when_a_view_is_compiled():
    with pytest.raises(FunctionMissing, match="'f', version '1', which is not registered"):
        compile_expression(foreign_call("`f`(`_wf0`)", {"function:f": "1"}, [NUMBER], pa.int64(), PYTHON))
    with pytest.raises(FunctionMissing, match="version '1' of the function 'f', but version '2' is registered"):
        called(lambda n: n, pa.int64(), [1], version="2")
