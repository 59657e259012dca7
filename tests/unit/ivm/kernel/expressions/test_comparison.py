# ruff: noqa: E501 - tables of values read better in long lines
import math

import pytest
from support.exprs import BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, apply_rows, array_of, lit

NAN = math.nan
LEFT = [1.0, NAN, NAN, 0.0, -math.inf, math.inf, None]
RIGHT = [NAN, NAN, 1.0, -0.0, math.inf, NAN, 1.0]
NUMBERS = {
    "equal": [False, True, False, True, False, False, None],
    "not_equal": [True, False, True, False, True, True, None],
    "less": [True, False, False, False, True, True, None],
    "less_equal": [True, True, False, True, True, True, None],
    "greater": [False, False, True, False, False, False, None],
    "greater_equal": [False, True, True, True, False, False, None],
    "equal_null_safe": [False, True, False, True, False, False, False],
}


@pytest.mark.parametrize("function", NUMBERS)
def test_nan_is_the_greatest_and_zeros_are_equal(function):
    assert apply_rows(function, BOOLEAN, (LEFT, DOUBLE), (RIGHT, DOUBLE)) == NUMBERS[function]


@pytest.mark.parametrize("function", NUMBERS)
@pytest.mark.parametrize("constant", [0.0, -0.0, NAN, math.inf])
def test_a_constant_compares_as_a_column_does(function, constant):
    values = [NAN, 0.0, -0.0, math.inf, -math.inf, 1.5, None]
    by_column = apply_rows(function, BOOLEAN, (values, DOUBLE), ([constant] * len(values), DOUBLE))
    assert apply_rows(function, BOOLEAN, (values, DOUBLE), lit(constant, DOUBLE)) == by_column


def test_texts_compare_by_bytes():
    assert apply_rows("less", BOOLEAN, (["Z", "é", "\uffff", "", "a"], STRING), (["a", "z", "😀", "a", "a\0"], STRING)) == [
        True, False, True, True, True,
    ]  # fmt: skip


def test_null_safe_equality_of_null():
    assert apply_rows("equal_null_safe", BOOLEAN, ([None, 1, None], INT), ([None, None, 1], INT)) == [
        True,
        False,
        False,
    ]


def test_in_is_null_when_it_could_be_there():
    assert apply_rows("in", BOOLEAN, ([1, 3, None], INT), lit(1, INT), lit(2, INT)) == [True, False, None]
    assert apply_rows("in", BOOLEAN, ([1, 3, None], INT), lit(1, INT), lit(None, INT)) == [True, None, None]
    assert apply_rows("in", BOOLEAN, ([1, 3, None], INT), ([1, None, 1], INT), lit(2, INT)) == [True, None, None]
    assert apply_rows("in", BOOLEAN, ([NAN, -0.0], DOUBLE), lit(0.0, DOUBLE), lit(NAN, DOUBLE)) == [True, True]


def test_null_type():
    assert apply_rows("equal", BOOLEAN, ([1, None], INT), lit(None, NULL)) == [None, None]


def test_is_null_is_nan():
    assert apply_rows("is_null", BOOLEAN, ([NAN, None], DOUBLE)) == [False, True]
    assert apply_rows("is_nan", BOOLEAN, ([NAN, None, 1.0], DOUBLE)) == [True, False, False]


def test_arrays_compare_element_by_element_with_null_first():
    ints = array_of(INT)
    left, right = [[1, 2], [1], [None], [1, None], None, []], [[1, 3], [1, 0], [1], [1, None], [1], []]
    assert apply_rows("less", BOOLEAN, (left, ints), (right, ints)) == [True, True, True, False, None, False]
    assert apply_rows("equal", BOOLEAN, (left, ints), (right, ints)) == [False, False, False, True, None, True]


def test_dates():
    assert apply_rows("less", BOOLEAN, ([-719529, 0], INT), ([-719528, 0], INT)) == [True, False]
    assert apply_rows("greater", BOOLEAN, ([1], DATE), ([0], DATE)) == [True]
