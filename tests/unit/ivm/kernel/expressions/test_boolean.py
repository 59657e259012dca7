import pytest
from support.exprs import BIGINT, BOOLEAN, DOUBLE, INT, apply_rows, call, cast, evaluate, lit

from weirflow.errors import DataError
from weirflow.sql.expr import Column

X, Y = Column(0, "x", INT), Column(1, "y", INT)
THREE = [True, False, None]
LEFT, RIGHT = [a for a in THREE for _ in THREE], [b for _ in THREE for b in THREE]
INVERSE_IS_LARGE = call("greater", BOOLEAN, call("divide", DOUBLE, lit(1.0, DOUBLE), cast(X, DOUBLE)), lit(0.3, DOUBLE))


def test_tables_of_truth():
    assert apply_rows("and", BOOLEAN, (LEFT, BOOLEAN), (RIGHT, BOOLEAN)) == [
        True, False, None, False, False, False, None, False, None,
    ]  # fmt: skip
    assert apply_rows("or", BOOLEAN, (LEFT, BOOLEAN), (RIGHT, BOOLEAN)) == [
        True, True, True, True, False, None, True, None, None,
    ]  # fmt: skip
    assert apply_rows("not", BOOLEAN, (THREE, BOOLEAN)) == [False, True, None]


def test_what_is_decided_is_not_evaluated():
    not_zero = call("not_equal", BOOLEAN, X, lit(0, INT))
    assert evaluate(call("and", BOOLEAN, not_zero, INVERSE_IS_LARGE), ([0, 2, 4, None], INT)) == [
        False,
        True,
        False,
        None,
    ]
    is_zero = call("equal", BOOLEAN, X, lit(0, INT))
    assert evaluate(call("or", BOOLEAN, is_zero, INVERSE_IS_LARGE), ([0, 2, 4, None], INT)) == [True, True, False, None]


def test_what_is_unknown_is_evaluated():
    unknown = lit(None, BOOLEAN)
    with pytest.raises(DataError) as raised:
        evaluate(call("and", BOOLEAN, unknown, INVERSE_IS_LARGE), ([1, 0], INT))
    assert raised.value.condition == "DIVIDE_BY_ZERO"


def test_the_first_argument_is_always_evaluated():
    with pytest.raises(DataError):
        evaluate(call("and", BOOLEAN, INVERSE_IS_LARGE, lit(value=False, kind=BOOLEAN)), ([1, 0], INT))


def test_an_argument_after_null_is_not_evaluated():
    quotient = call("integral_divide", BIGINT, lit(1, BIGINT), cast(X, BIGINT))
    total = call("add", BIGINT, cast(Y, BIGINT), quotient)
    assert evaluate(total, ([0, 1], INT), ([None, 5], INT)) == [None, 6]
    with pytest.raises(DataError):
        evaluate(call("add", BIGINT, quotient, cast(Y, BIGINT)), ([0, 1], INT), ([None, 5], INT))
