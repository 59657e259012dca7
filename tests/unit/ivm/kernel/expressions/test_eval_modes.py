"""What functions give where those of ANSI mode raise: low bits, or NULL."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from support.exprs import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    apply,
    apply_rows,
    array_of,
    call,
    condition_of,
    decimal,
    evaluate,
    lit,
)

from weirflow.sql.expr import Column

INTEGERS = {TINYINT: 8, SMALLINT: 16, INT: 32, BIGINT: 64}
WIDE = decimal(38, 0)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_wrap_around(kind):
    largest = 2 ** (INTEGERS[kind] - 1) - 1
    lowest = -largest - 1
    one = ([1, 1, None], kind)
    assert apply_rows("wrapping_add", kind, ([largest, 2, 2], kind), one) == [lowest, 3, None]
    assert apply_rows("wrapping_subtract", kind, ([lowest, 2, 2], kind), one) == [largest, 1, None]
    assert apply_rows("wrapping_multiply", kind, ([largest, 3], kind), ([2, -4], kind)) == [-2, -12]
    assert apply_rows("wrapping_negate", kind, ([lowest, 5], kind)) == [lowest, -5]
    assert apply_rows("wrapping_abs", kind, ([lowest, -5], kind)) == [lowest, 5]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_that_do_not_fit_are_null(kind):
    largest = 2 ** (INTEGERS[kind] - 1) - 1
    lowest = -largest - 1
    assert apply_rows("try_add", kind, ([largest, -5, None], kind), ([1, 3, 1], kind)) == [None, -2, None]
    assert apply_rows("try_subtract", kind, ([lowest, 0, 7], kind), ([1, lowest, 3], kind)) == [None, None, 4]
    assert apply_rows(
        "try_multiply", kind, ([lowest, -1, 0, lowest, 6], kind), ([-1, lowest, lowest, 1, -7], kind)
    ) == [
        None,
        None,
        0,
        lowest,
        -42,
    ]


def test_division_by_zero_is_null():
    assert apply_rows("try_divide", DOUBLE, ([1.0, math.nan, 6.0], DOUBLE), ([0.0, -0.0, 4.0], DOUBLE)) == [
        None,
        None,
        1.5,
    ]
    assert apply_rows("try_remainder", INT, ([7, 7], INT), ([0, 4], INT)) == [None, 3]
    assert apply_rows("try_pmod", INT, ([-7, -7], INT), ([0, 4], INT)) == [None, 1]
    assert apply("try_divide", DOUBLE, (1.0, DOUBLE), lit(0.0, DOUBLE)) is None
    divided, by = ([-(2**63), 5, 7, -7, 7], BIGINT), ([-1, -1, 2, 2, 0], BIGINT)
    assert apply_rows("wrapping_integral_divide", BIGINT, divided, by) == [-(2**63), -5, 3, -3, None]


def test_what_is_divided_by_zero_is_not_looked_at():
    item = call("get_array_item", INT, Column(0, "a", array_of(INT)), Column(1, "b", INT))
    quotient = call("try_remainder", INT, item, Column(1, "b", INT))
    assert evaluate(quotient, ([[1, 5], []], array_of(INT)), ([1, 0], INT)) == [0, None]


def test_decimals_with_too_many_digits_are_null():
    nines, one = Decimal("9" * 38), Decimal(1)
    assert apply_rows("try_add", WIDE, ([nines, one], WIDE), ([one, one], WIDE)) == [None, Decimal(2)]
    assert apply_rows("try_multiply", WIDE, ([nines, one, None], WIDE), ([nines, one, one], WIDE)) == [None, one, None]
    assert apply_rows("try_divide", decimal(38, 6), ([nines, one], WIDE), ([one, one], WIDE)) == [None, one]
    small = decimal(3, 2)
    assert apply_rows("try_integral_divide", BIGINT, ([one, one], small), ([Decimal(0), one], small)) == [None, 1]


def test_rounded_integers_wrap_around():
    assert apply_rows("wrapping_round", TINYINT, ([127, 14], TINYINT), lit(-1, INT)) == [-126, 10]
    assert apply_rows("wrapping_bround", INT, ([2**31 - 1, 25], INT), lit(-1, INT)) == [-(2**31) + 2, 20]


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (300, INT, TINYINT, 44),
        (2**63 - 1, BIGINT, INT, -1),
        (1e30, DOUBLE, BIGINT, 2**63 - 1),
        (-1e30, DOUBLE, INT, -(2**31)),
        (1e30, DOUBLE, SMALLINT, -1),  # by way of INT
        (math.nan, DOUBLE, INT, 0),
        (-2.9, DOUBLE, INT, -2),
        (Decimal("-300.9"), decimal(5, 1), TINYINT, -44),
        (Decimal(2**64 + 7), WIDE, BIGINT, 7),
        (Decimal("12.3"), decimal(3, 1), decimal(2, 1), None),
        (Decimal("0.0000001"), decimal(9, 7), STRING, "1E-7"),
        (Decimal("0E-7"), decimal(9, 7), STRING, "0E-7"),
        (Decimal("0.0000120"), decimal(9, 7), STRING, "0.0000120"),
        (" 12.9 ", STRING, INT, 12),
        (".5", STRING, INT, 0),
        (".", STRING, INT, 0),
        ("1e3", STRING, INT, None),
        ("128", STRING, TINYINT, None),
        ("x", STRING, DOUBLE, None),
        ("maybe", STRING, BOOLEAN, None),
        ("2024-02-30", STRING, DATE, None),
        ("2024-02-30", STRING, TIMESTAMP, None),
        (dt.date(2024, 1, 1), DATE, INT, None),
        (dt.datetime(1970, 1, 1, tzinfo=dt.UTC), TIMESTAMP, BOOLEAN, False),
        (True, BOOLEAN, TIMESTAMP, dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)),
        (math.inf, DOUBLE, TIMESTAMP, None),
        (dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC), TIMESTAMP, TINYINT, None),
        (["1", "x", None], array_of(STRING), array_of(INT), [1, None, None]),
        (None, STRING, INT, None),
    ],
)
def test_casts_without_ansi(value, source, target, expected):
    assert apply("legacy_cast", target, (value, source)) == expected


def test_places_beyond_an_array_are_null():
    arrays = ([[1, 2], [1, 2], [], None], array_of(INT))
    assert apply_rows("try_get_array_item", INT, arrays, ([1, 2, 0, 0], INT)) == [2, None, None, None]
    assert apply_rows("try_element_at", INT, arrays, ([-1, 3, 1, 1], INT)) == [2, None, None, None]
    assert condition_of("try_element_at", INT, ([1], array_of(INT)), (0, INT)) == "INVALID_INDEX_OF_ZERO"


def test_an_index_is_32_bits_wide():
    assert apply("get_array_item", INT, ([1, 2], array_of(INT)), (2**32 + 1, BIGINT)) == 2


def test_dates_that_are_not_there_are_null():
    parts = ([2024, 2023, 10**9], INT), ([2, 2, 1], INT), ([29, 29, 1], INT)
    assert apply_rows("try_make_date", DATE, *parts) == [dt.date(2024, 2, 29), None, None]


def test_try_is_null_where_its_argument_raises():
    lengths = pa.array([2**63 - 1, 1, None, 2**63 - 1, 5], pa.int64()).view(INTERVAL)
    added = call("add", INTERVAL, Column(0, "a", INTERVAL), Column(0, "a", INTERVAL))
    assert apply_rows("try", INTERVAL, (lengths, INTERVAL)) == lengths.to_pylist()
    found = evaluate(call("try", INTERVAL, added), (lengths.to_pylist(), INTERVAL))
    micro = dt.timedelta(microseconds=1)
    assert found == [None, 2 * micro, None, None, 10 * micro]


def test_a_text_that_is_no_time_is_null_in_any_zone():
    zone = lit("America/New_York", STRING)
    noon = dt.datetime(2024, 1, 1, 17, tzinfo=dt.UTC)
    assert apply_rows("try_utc_time", TIMESTAMP, (["2024-01-01 12:00", "x", None], STRING), zone) == [noon, None, None]
