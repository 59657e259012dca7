import math
from decimal import Decimal

import pytest
from support.exprs import BIGINT, DOUBLE, FLOAT, INT, STRING, TINYINT, apply, apply_rows, condition_of, decimal, lit


def test_ceil_and_floor_end_at_the_range_of_bigint():
    values = [-0.5, 1e300, -1e300, math.nan, 2.0, None]
    assert apply_rows("ceil", BIGINT, (values, DOUBLE)) == [0, 2**63 - 1, -(2**63), 0, 2, None]
    assert apply_rows("floor", BIGINT, (values, DOUBLE)) == [-1, 2**63 - 1, -(2**63), 0, 2, None]


def test_ceil_and_floor_of_decimals():
    kind = decimal(3, 1)
    assert apply_rows("ceil", decimal(3, 0), ([Decimal("99.9"), Decimal("-0.5")], kind)) == [Decimal(100), Decimal(0)]
    assert apply_rows("floor", decimal(3, 0), ([Decimal("99.9"), Decimal("-0.5")], kind)) == [Decimal(99), Decimal(-1)]


@pytest.mark.parametrize(
    ("value", "places", "half_up", "half_even"),
    [
        (2.5, 0, 3.0, 2.0),
        (-2.5, 0, -3.0, -2.0),
        (1.005, 2, 1.01, 1.0),
        (2.675, 2, 2.68, 2.68),
        (1234.5, -2, 1200.0, 1200.0),
        (250.0, -2, 300.0, 200.0),
        (1e300, 2, 1e300, 1e300),
        (0.1, 30, 0.1, 0.1),
        (12345.0, -400, 0.0, 0.0),
        (math.inf, 1, math.inf, math.inf),
    ],
)
def test_doubles_round_as_they_are_printed(value, places, half_up, half_even):
    assert apply("round", DOUBLE, (value, DOUBLE), lit(places, INT)) == half_up
    assert apply("bround", DOUBLE, (value, DOUBLE), lit(places, INT)) == half_even


def test_rounding_loses_the_sign_of_zero_and_keeps_nan():
    assert math.copysign(1, apply("round", DOUBLE, (-0.4, DOUBLE), lit(0, INT))) == 1
    assert math.isnan(apply("round", DOUBLE, (math.nan, DOUBLE), lit(0, INT)))
    assert apply("round", FLOAT, (123.45600128173828, FLOAT), lit(1, INT)) == pytest.approx(123.5)


def test_integers_round_to_tens():
    assert apply_rows("round", INT, ([25, -25, 35, None], INT), lit(-1, INT)) == [30, -30, 40, None]
    assert apply_rows("bround", INT, ([25, -25, 35, None], INT), lit(-1, INT)) == [20, -20, 40, None]
    assert apply("round", BIGINT, (2**63 - 1, BIGINT), lit(-25, INT)) == 0
    assert condition_of("round", TINYINT, (127, TINYINT), lit(-1, INT)) == "ARITHMETIC_OVERFLOW"


def test_decimals_round_to_their_own_type():
    kind = decimal(10, 3)
    assert apply("round", decimal(10, 2), (Decimal("2.345"), kind), lit(2, INT)) == Decimal("2.35")
    assert apply("bround", decimal(10, 2), (Decimal("2.345"), kind), lit(2, INT)) == Decimal("2.34")
    assert apply("round", decimal(8, 0), (Decimal("25.000"), kind), lit(-1, INT)) == Decimal(30)


def test_sqrt_sign_rint():
    assert math.isnan(apply("sqrt", DOUBLE, (-1.0, DOUBLE)))
    assert [math.copysign(1, apply("sign", DOUBLE, (value, DOUBLE))) for value in (-0.0, 0.0, -3.0)] == [-1, 1, -1]
    assert apply_rows("rint", DOUBLE, ([2.5, 3.5, None], DOUBLE)) == [2.0, 4.0, None]


def test_greatest_and_least_leave_null_out():
    values = ([1.0, None, -0.0, math.inf], DOUBLE), ([None, None, 0.0, math.nan], DOUBLE)
    assert str(apply_rows("greatest", DOUBLE, *values)) == "[1.0, None, -0.0, nan]"
    assert str(apply_rows("least", DOUBLE, *values)) == "[1.0, None, -0.0, inf]"
    assert apply_rows("greatest", STRING, (["a", "é"], STRING), lit("b", STRING)) == ["b", "é"]


def test_bits():
    assert apply("bitwise_and", TINYINT, (-1, TINYINT), (5, TINYINT)) == 5
    assert apply("shiftleft", INT, (1, INT), (33, INT)) == 2
    assert apply("shiftright", BIGINT, (-8, BIGINT), (65, INT)) == -4
