import math

import pytest
from support.exprs import BIGINT, DOUBLE, FLOAT, INT, INTERVAL, SMALLINT, TINYINT, apply, apply_rows, condition_of

INTEGERS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        ("add", 3, -5, -2),
        ("subtract", 3, -5, 8),
        ("multiply", 3, -5, -15),
        ("remainder", -7, 3, -1),
        ("pmod", -7, 3, 2),
    ],
)
def test_integers(kind, function, left, right, expected):
    assert apply_rows(function, kind, ([left, None, left], kind), ([right, right, None], kind)) == [
        expected,
        None,
        None,
    ]


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(("function", "left", "right"), [("add", 0, 1), ("subtract", 1, -1), ("multiply", 0, 2)])
def test_overflow_names_the_width(kind, function, left, right):
    largest = (1 << (INTEGERS[kind] - 1)) - 1
    condition = "ARITHMETIC_OVERFLOW" if kind in (INT, BIGINT) else "BINARY_ARITHMETIC_OVERFLOW"
    assert condition_of(function, kind, (largest, kind), (right, kind)) == condition


@pytest.mark.parametrize("kind", INTEGERS)
def test_the_lowest_number_has_no_opposite(kind):
    lowest = -(1 << (INTEGERS[kind] - 1))
    assert condition_of("negate", kind, (lowest, kind)) == "ARITHMETIC_OVERFLOW"
    assert condition_of("abs", kind, (lowest, kind)) == "ARITHMETIC_OVERFLOW"
    assert apply("remainder", kind, (lowest, kind), (-1, kind)) == 0


def test_overflow_at_null_is_none():
    assert apply_rows("add", INT, ([2**31 - 1, 1], INT), ([None, 1], INT)) == [None, 2]


def test_division_by_zero_unless_a_side_is_null():
    assert condition_of("divide", DOUBLE, (1.0, DOUBLE), (0.0, DOUBLE)) == "DIVIDE_BY_ZERO"
    assert condition_of("divide", DOUBLE, (math.nan, DOUBLE), (-0.0, DOUBLE)) == "DIVIDE_BY_ZERO"
    assert condition_of("integral_divide", BIGINT, (1, BIGINT), (0, BIGINT)) == "DIVIDE_BY_ZERO"
    assert condition_of("remainder", INT, (1, INT), (0, INT)) == "REMAINDER_BY_ZERO"
    assert condition_of("pmod", DOUBLE, (1.0, DOUBLE), (0.0, DOUBLE)) == "REMAINDER_BY_ZERO"
    assert apply_rows("divide", DOUBLE, ([None, 6.0], DOUBLE), ([0.0, 4.0], DOUBLE)) == [None, 1.5]


def test_integral_division_truncates():
    assert apply_rows("integral_divide", BIGINT, ([7, -7, None], BIGINT), ([2, 2, 0], BIGINT)) == [3, -3, None]
    assert condition_of("integral_divide", BIGINT, (-(2**63), BIGINT), (-1, BIGINT)) == "ARITHMETIC_OVERFLOW"


def test_floating_point_never_overflows():
    assert apply("multiply", DOUBLE, (1e308, DOUBLE), (10.0, DOUBLE)) == math.inf
    assert math.isnan(apply("add", DOUBLE, (math.inf, DOUBLE), (-math.inf, DOUBLE)))
    assert apply("remainder", DOUBLE, (-7.5, DOUBLE), (math.inf, DOUBLE)) == -7.5
    assert math.copysign(1, apply("remainder", DOUBLE, (-0.0, DOUBLE), (3.0, DOUBLE))) == -1
    assert apply("pmod", FLOAT, (-7.0, FLOAT), (-2.0, FLOAT)) == -1.0


def test_pmod_wraps_like_java():
    assert apply("pmod", TINYINT, (-7, TINYINT), (-128, TINYINT)) == -7
    assert apply("pmod", INT, (-7, INT), (-(2**31), INT)) == 2147483641


def test_intervals():
    day = 86_400_000_000
    assert apply("add", INTERVAL, (day, INTERVAL), (day, INTERVAL)).days == 2
    assert apply("negate", INTERVAL, (day, INTERVAL)).days == -1
    assert condition_of("add", INTERVAL, (2**63 - 1, INTERVAL), (1, INTERVAL)) == "ARITHMETIC_OVERFLOW"
