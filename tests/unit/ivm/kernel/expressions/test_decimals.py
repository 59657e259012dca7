from decimal import Decimal

import pytest
from support.exprs import BIGINT, apply, apply_rows, condition_of, decimal

TOO_LARGE = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
NINES = Decimal("9" * 38)
CASES = [
    ("add", decimal(8, 3), ("1.25", 7, 2), ("0.005", 5, 3), "1.255"),
    ("add", decimal(38, 0), ("9" * 38, 38, 0), ("-1", 38, 0), "9" * 37 + "8"),
    ("add", decimal(38, 9), ("1.0000000005", 38, 10), ("0", 38, 0), "1.000000001"),
    ("subtract", decimal(8, 3), ("1.25", 7, 2), ("0.005", 5, 3), "1.245"),
    ("multiply", decimal(13, 5), ("-1.25", 7, 2), ("0.005", 5, 3), "-0.00625"),
    ("multiply", decimal(32, 4), ("9999999999999.99", 15, 2), ("0.01", 16, 2), "99999999999.9999"),
    ("multiply", decimal(38, 6), ("0.0000004999999999", 38, 20), ("1", 38, 20), "0.000000"),
    ("multiply", decimal(38, 6), ("0.0000005", 38, 20), ("-1", 38, 20), "-0.000001"),
    ("divide", decimal(13, 8), ("2", 7, 2), ("3", 5, 3), "0.66666667"),
    ("divide", decimal(13, 8), ("-2", 7, 2), ("3", 5, 3), "-0.66666667"),
    ("divide", decimal(38, 38), ("0." + "0" * 37 + "2", 38, 38), ("3", 2, 0), "0." + "0" * 37 + "1"),
    ("remainder", decimal(5, 3), ("-7.55", 7, 2), ("0.37", 5, 3), "-0.150"),
    ("pmod", decimal(5, 3), ("-7.55", 7, 2), ("0.37", 5, 3), "0.220"),
    ("pmod", decimal(5, 3), ("-7.55", 7, 2), ("-0.37", 5, 3), "-0.150"),
]


@pytest.mark.parametrize(("function", "kind", "left", "right", "expected"), CASES)
def test_exact_then_half_up(function, kind, left, right, expected):
    values = [([Decimal(text), None], decimal(precision, scale)) for text, precision, scale in (left, right)]
    assert apply_rows(function, kind, *values) == [Decimal(expected), None]


def test_more_digits_than_the_type_has():
    wide = decimal(38, 0)
    assert condition_of("add", wide, (NINES, wide), (Decimal(1), wide)) == TOO_LARGE
    assert condition_of("multiply", wide, (NINES, wide), (Decimal(2), wide)) == TOO_LARGE
    assert apply_rows("add", wide, ([NINES], wide), ([None], wide)) == [None]


def test_zero_divides_nothing():
    kind = decimal(5, 2)
    assert condition_of("divide", decimal(11, 8), (Decimal(1), kind), (Decimal(0), kind)) == "DIVIDE_BY_ZERO"
    assert condition_of("remainder", kind, (Decimal(1), kind), (Decimal(0), kind)) == "REMAINDER_BY_ZERO"
    assert condition_of("integral_divide", BIGINT, (Decimal(1), kind), (Decimal(0), kind)) == "DIVIDE_BY_ZERO"
    assert apply_rows("divide", decimal(11, 8), ([None], kind), ([Decimal(0)], kind)) == [None]


def test_integral_division_keeps_the_low_bits():
    wide = decimal(38, 2)
    assert apply("integral_divide", BIGINT, (Decimal(-7), wide), (Decimal("0.30"), decimal(5, 2))) == -23
    assert (
        apply("integral_divide", BIGINT, (Decimal("1e30"), wide), (Decimal("0.30"), decimal(5, 2)))
        == -1523596506025339563
    )


def test_a_changed_sign_keeps_34_digits():
    kind = decimal(38, 10)
    value = Decimal("1234567890123456789012345678.0123456789")
    assert apply("negate", kind, (value, kind)) == Decimal("-1234567890123456789012345678.0123460000")
    assert apply("abs", kind, (Decimal(f"-{value}"), kind)) == Decimal("1234567890123456789012345678.0123460000")
    assert apply("abs", kind, (value, kind)) == value
    nines = decimal(38, 0)
    assert condition_of("negate", nines, (NINES, nines)) == "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION"
    assert apply("negate", decimal(34, 0), (Decimal("9" * 34), decimal(34, 0))) == Decimal("-" + "9" * 34)
