import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from support.exprs import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    apply,
    apply_rows,
    array_of,
    condition_of,
    decimal,
)

from weirflow.ivm.kernel.expressions.failures import NOT_READ

OVERFLOW, INVALID = "CAST_OVERFLOW", "CAST_INVALID_INPUT"
TOO_LARGE = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
NUMBERS = [
    (127, INT, TINYINT, 127),
    (128, INT, TINYINT, OVERFLOW),
    (-129, BIGINT, TINYINT, OVERFLOW),
    (2**63 - 1, BIGINT, DOUBLE, 2.0**63),
    (2**53 + 1, BIGINT, DOUBLE, 2.0**53),
    (16777217, INT, FLOAT, 16777216.0),
    (-1.9, DOUBLE, INT, -1),
    (2147483647.9, DOUBLE, INT, 2147483647),
    (2147483648.0, DOUBLE, INT, OVERFLOW),
    (-128.9, DOUBLE, TINYINT, -128),
    (2.0**63, DOUBLE, BIGINT, 2**63 - 1),
    (1e19, DOUBLE, BIGINT, OVERFLOW),
    (math.nan, DOUBLE, INT, OVERFLOW),
    (math.inf, FLOAT, BIGINT, OVERFLOW),
    (1e300, DOUBLE, FLOAT, math.inf),
    (True, BOOLEAN, decimal(3, 1), Decimal("1.0")),
    (True, BOOLEAN, decimal(1, 1), TOO_LARGE),
    (math.nan, DOUBLE, BOOLEAN, True),
    (-0.0, DOUBLE, BOOLEAN, False),
    (1000, INT, decimal(3, 0), TOO_LARGE),
    (99, INT, decimal(4, 2), Decimal("99.00")),
    (Decimal("1.25"), decimal(3, 2), decimal(2, 1), Decimal("1.3")),
    (Decimal("-1.25"), decimal(3, 2), decimal(2, 1), Decimal("-1.3")),
    (Decimal("9.96"), decimal(3, 2), decimal(2, 1), TOO_LARGE),
    (Decimal("-1.99"), decimal(3, 2), INT, -1),
    (Decimal(128), decimal(20, 0), TINYINT, OVERFLOW),
    (Decimal("0.99999999999999999999"), decimal(38, 20), INT, 1),
    (Decimal("0.99999999999999999999"), decimal(38, 20), BIGINT, 0),
    (Decimal(9223372036854775808), decimal(38, 0), BIGINT, OVERFLOW),
    (Decimal("0.1"), decimal(38, 37), DOUBLE, 0.1),
    (Decimal("16777217.00000001"), decimal(18, 8), FLOAT, 16777218.0),
    (0.1, DOUBLE, decimal(38, 20), Decimal("0.10000000000000000000")),
    (1.005, DOUBLE, decimal(5, 2), Decimal("1.01")),
    (math.nan, DOUBLE, decimal(5, 2), None),
    (-math.inf, FLOAT, decimal(5, 2), None),
    (1e10, DOUBLE, decimal(5, 2), TOO_LARGE),
    (1.7623513982099548e18, DOUBLE, decimal(38, 0), Decimal(1762351398209954820)),
]
PARSED = [
    (" \t-12\n", INT, -12),
    ("+5", TINYINT, 5),
    ("128", TINYINT, INVALID),
    ("1.0", INT, INVALID),
    ("", INT, INVALID),
    ("٣", INT, INVALID),
    ("9223372036854775808", BIGINT, INVALID),
    (" 1.5e3d ", DOUBLE, 1500.0),
    (".5", DOUBLE, 0.5),
    ("0x1p3", DOUBLE, 8.0),
    ("1e400", DOUBLE, math.inf),
    (" -INF ", DOUBLE, -math.inf),
    ("1_0", DOUBLE, INVALID),
    ("\u00a01", DOUBLE, INVALID),
    ("1.00000017881393421514957253748434595763683319091796875001", FLOAT, 1.0000001192092896),
    ("٣", decimal(5, 2), Decimal("3.00")),
    ("1e2", decimal(5, 2), Decimal("100.00")),
    ("0.005", decimal(5, 2), Decimal("0.01")),
    ("-0.005", decimal(5, 2), Decimal("-0.01")),
    ("1e-400", decimal(5, 2), Decimal("0.00")),
    ("1e39", decimal(5, 2), "NUMERIC_OUT_OF_SUPPORTED_RANGE"),
    ("1000", decimal(5, 2), TOO_LARGE),
    ("1d", decimal(5, 2), INVALID),
    (" Yes ", BOOLEAN, True),
    ("F", BOOLEAN, False),
    ("on", BOOLEAN, INVALID),
    ("é", BINARY, b"\xc3\xa9"),
    ("2020", DATE, date(2020, 1, 1)),
    ("2020-2", DATE, date(2020, 2, 1)),
    (" 2020-02-29 anything", DATE, date(2020, 2, 29)),
    ("1900-02-29", DATE, INVALID),
    ("2020-02", TIMESTAMP, datetime(2020, 2, 1, tzinfo=UTC)),
    ("1500-02-28", DATE, date(1500, 2, 28)),
    ("999-01-01", DATE, INVALID),
    ("2020-01-01T12:30:45.1234567Z", TIMESTAMP, datetime(2020, 1, 1, 12, 30, 45, 123456, UTC)),
    ("2020-01-01 12:30:45+1:3", TIMESTAMP, datetime(2020, 1, 1, 11, 27, 45, tzinfo=UTC)),
    ("2020-01-01 12:30:45 UTC-02", TIMESTAMP, datetime(2020, 1, 1, 14, 30, 45, tzinfo=UTC)),
    ("0e37", decimal(10, 2), Decimal("0.00")),
    ("0e38", decimal(10, 2), "NUMERIC_OUT_OF_SUPPORTED_RANGE"),
    ("0." + "1" * 9999, decimal(10, 3), Decimal("0.111")),
    ("0." + "0" * 9999 + "5e9999", decimal(10, 0), Decimal(1)),
    ("0" * 9999 + "-7", INT, INVALID),
    ("-" + "0" * 9999 + "7", INT, -7),
    ("1.000000059604644775390625" + "0" * 9999, FLOAT, 1.0),
    ("1.000000059604644775390625" + "0" * 9999 + "1", FLOAT, 1.00000011920928955078125),
    ("2020-01-01 12:30:45 \t", TIMESTAMP, datetime(2020, 1, 1, 12, 30, 45, tzinfo=UTC)),
    ("2020-01-01 12:30:45+18:01", TIMESTAMP, INVALID),
    ("2020-01-01 24:00:00", TIMESTAMP, INVALID),
    ("2020-01-01 12:30Z", TIMESTAMP, INVALID),
    ("2020-01-01 12:30:45+01:00", TIMESTAMP_NTZ, datetime(2020, 1, 1, 12, 30, 45)),  # noqa: DTZ001
    ("12:30:45", TIMESTAMP_NTZ, INVALID),
    ("2020-01-01 12:30:45 Europe/Paris", TIMESTAMP, datetime(2020, 1, 1, 11, 30, 45, tzinfo=UTC)),
    ("2020-07-01 12:30:45 EST", TIMESTAMP, datetime(2020, 7, 1, 17, 30, 45, tzinfo=UTC)),
    ("2020-07-01 12:30:45 IST", TIMESTAMP, datetime(2020, 7, 1, 7, 0, 45, tzinfo=UTC)),
    ("2020-07-01 12:30:45 EST5EDT", TIMESTAMP, datetime(2020, 7, 1, 16, 30, 45, tzinfo=UTC)),
    ("2020-07-01 12:30:45 GMT+0", TIMESTAMP, datetime(2020, 7, 1, 12, 30, 45, tzinfo=UTC)),
    ("2020-07-01 12:30:45 SystemV/EST5", TIMESTAMP, datetime(2020, 7, 1, 17, 30, 45, tzinfo=UTC)),
    ("2020-07-01 12:30:45 ROC", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 posixrules", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 posix/Europe/Paris", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 Europe/Atlantis", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 Europe/../Europe/Paris", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 Europe", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 est", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 +130", TIMESTAMP, INVALID),
    ("2020-07-01 12:30:45 Europe/Paris", TIMESTAMP_NTZ, datetime(2020, 7, 1, 12, 30, 45)),  # noqa: DTZ001
    ("2020-07-01 12:30:45 Europe/Atlantis", TIMESTAMP_NTZ, INVALID),
    ("2020-07-01 12:30:45 SystemV/EST5EDT", TIMESTAMP, "UNSUPPORTED_TIME_ZONE"),
    ("12:30", TIMESTAMP, "TIME_WITHOUT_DATE"),
    ("T12", TIMESTAMP, "TIME_WITHOUT_DATE"),
    (" 1:2:3. EST ", TIMESTAMP, "TIME_WITHOUT_DATE"),
    (" T12", TIMESTAMP, INVALID),
    ("+12:30", TIMESTAMP, INVALID),
    ("25:00", TIMESTAMP, INVALID),
    ("12:30:45 Foo", TIMESTAMP, INVALID),
    ("T", TIMESTAMP, INVALID),
]
FORMATTED = [
    (1.0, DOUBLE, "1.0"),
    (-0.0, DOUBLE, "-0.0"),
    (1e7, DOUBLE, "1.0E7"),
    (9999999.0, DOUBLE, "9999999.0"),
    (0.001, DOUBLE, "0.001"),
    (9.99e-4, DOUBLE, "9.99E-4"),
    (1e10, DOUBLE, "1.0E10"),
    (4.9e-324, DOUBLE, "4.9E-324"),
    (math.nan, DOUBLE, "NaN"),
    (-math.inf, FLOAT, "-Infinity"),
    (1.100000023841858, FLOAT, "1.1"),
    (True, BOOLEAN, "true"),
    (-5, TINYINT, "-5"),
    (Decimal("1E-10"), decimal(38, 20), "0.00000000010000000000"),
    (Decimal("-0.05"), decimal(5, 2), "-0.05"),
    (-719529, DATE, "-0001-12-31"),
    (2932897, DATE, "+10000-01-01"),
    (-1, TIMESTAMP, "1969-12-31 23:59:59.999999"),
    (1500000, TIMESTAMP_NTZ, "1970-01-01 00:00:01.5"),
    (2**63 - 1, TIMESTAMP, "+294247-01-10 04:00:54.775807"),
]


def same(actual, expected):
    return actual == expected and type(actual) is type(expected)


@pytest.mark.parametrize(("value", "source", "target", "expected"), NUMBERS)
def test_numbers(value, source, target, expected):
    check(value, source, target, expected)


@pytest.mark.parametrize(("value", "target", "expected"), PARSED)
def test_parsed(value, target, expected):
    check(value, STRING, target, expected)


@pytest.mark.parametrize(("value", "source", "expected"), FORMATTED)
def test_formatted(value, source, expected):
    assert apply_rows("cast", STRING, ([None, value], source)) == [None, expected]


def check(value, source, target, expected):
    if isinstance(expected, str) and target != STRING:
        assert condition_of("cast", target, (value, source)) == expected
        if expected in NOT_READ:
            assert condition_of("try_cast", target, (value, source)) == expected
        else:
            assert apply("try_cast", target, (value, source)) is None
    else:
        assert same(apply("cast", target, (value, source)), expected)
        assert apply_rows("cast", target, ([None, None], source)) == [None, None]


def test_times():
    assert apply("cast", DATE, (-1, TIMESTAMP)) == date(1969, 12, 31)
    assert apply("cast", TIMESTAMP, (-1, DATE)) == datetime(1969, 12, 31, tzinfo=UTC)
    assert condition_of("cast", TIMESTAMP, (2**31 - 1, DATE)) == "ARITHMETIC_OVERFLOW"
    assert apply("cast", BIGINT, (-1, TIMESTAMP)) == -1
    assert condition_of("cast", SMALLINT, (10**13, TIMESTAMP)) == OVERFLOW
    assert apply("cast", DOUBLE, (-1500000, TIMESTAMP)) == -1.5
    assert apply("cast", decimal(20, 2), (-1505000, TIMESTAMP)) == Decimal("-1.51")
    assert apply("cast", TIMESTAMP, (-1.5, DOUBLE)) == datetime(1969, 12, 31, 23, 59, 58, 500000, UTC)
    assert condition_of("cast", TIMESTAMP, (math.nan, DOUBLE)) == INVALID
    assert condition_of("cast", TIMESTAMP, (1e30, DOUBLE)) == OVERFLOW


def test_nested_parts_are_cast():
    assert apply_rows("cast", array_of(STRING), ([[1, None], None, []], array_of(INT))) == [["1", None], None, []]
    assert condition_of("cast", array_of(TINYINT), ([300], array_of(INT))) == OVERFLOW
    assert apply("try_cast", array_of(TINYINT), ([300, 1], array_of(INT))) == [None, 1]
