# ruff: noqa: E501 - tables of values read better in long lines
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from support.exprs import BIGINT, DATE, INT, INTERVAL, MONTHS, STRING, TIMESTAMP, apply, apply_rows, condition_of, lit

FIRST = -719162  # 0001-01-01
OUT_OF_BOUNDS = "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION"


def day(year, month, number):
    return date(year, month, number)


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        ("year", FIRST - 1, 0),
        ("year", 2**31 - 1, 5881580),
        ("quarter", day(2020, 12, 31), 4),
        ("month", day(1582, 10, 10), 10),
        ("day", day(1969, 12, 31), 31),
        ("dayofweek", day(1969, 12, 28), 1),
        ("weekday", FIRST, 0),
        ("dayofyear", day(2020, 12, 31), 366),
        ("weekofyear", day(2021, 1, 3), 53),
        ("weekofyear", day(2018, 12, 31), 1),
        ("unix_date", day(1969, 12, 31), -1),
    ],
)
def test_parts_of_dates(function, value, expected):
    assert apply_rows(function, INT, ([value, None], DATE)) == [expected, None]


def test_parts_of_times():
    assert [apply(part, INT, (-1, TIMESTAMP)) for part in ("hour", "minute", "second")] == [23, 59, 59]


def test_days_wrap_around():
    assert apply("date_add", DATE, (day(2020, 2, 28), DATE), (2, INT)) == day(2020, 3, 1)
    assert apply("date_sub", DATE, (day(2020, 3, 1), DATE), (1, INT)) == day(2020, 2, 29)
    assert apply("date_diff", INT, (2**31 - 1, DATE), (-(2**31), DATE)) == -1


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [((2020, 1, 31), 1, (2020, 2, 29)), ((2020, 2, 29), 12, (2021, 2, 28)), ((2020, 4, 30), 1, (2020, 5, 30)), ((2020, 3, 31), -1, (2020, 2, 29)), ((1, 1, 31), 1, (1, 2, 28))],
)  # fmt: skip
def test_add_months_ends_with_the_month(start, months, end):
    assert apply("add_months", DATE, (day(*start), DATE), (months, INT)) == day(*end)
    interval = lit(pa.MonthDayNano([months, 0, 0]), MONTHS)
    assert apply("date_add_interval", DATE, (day(*start), DATE), interval) == day(*end)
    moment = datetime(*start, 1, 2, 3, 4, tzinfo=UTC)
    assert apply("timestamp_add_interval", TIMESTAMP, (moment, TIMESTAMP), interval) == datetime(
        *end, 1, 2, 3, 4, tzinfo=UTC
    )


def test_months_too_far_away():
    assert condition_of("add_months", DATE, (day(2020, 1, 1), DATE), (2**31 - 1, INT)) == "ARITHMETIC_OVERFLOW"


def test_last_day():
    assert apply_rows("last_day", DATE, ([day(2020, 2, 1), day(1900, 2, 1)], DATE)) == [
        day(2020, 2, 29),
        day(1900, 2, 28),
    ]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("WEEK", (2020, 5, 11)), ("Mon", (2020, 5, 1)), ("qUarter", (2020, 4, 1)), ("yy", (2020, 1, 1)), ("day", None), ("xx", None), ("", None)],
)  # fmt: skip
def test_trunc(unit, expected):
    value = apply("trunc", DATE, (day(2020, 5, 15), DATE), lit(unit, STRING))
    assert value == (day(*expected) if expected else None)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("microsecond", (1969, 12, 31, 23, 59, 59, 123456)),
        ("MILLISECOND", (1969, 12, 31, 23, 59, 59, 123000)),
        ("second", (1969, 12, 31, 23, 59, 59)),
        ("hour", (1969, 12, 31, 23)),
        ("dd", (1969, 12, 31)),
        ("week", (1969, 12, 29)),
        ("quarter", (1969, 10, 1)),
        ("year", (1969, 1, 1)),
        ("decade", None),
    ],
)
def test_date_trunc(unit, expected):
    moment = datetime(1969, 12, 31, 23, 59, 59, 123456, UTC)
    value = apply("date_trunc", TIMESTAMP, lit(unit, STRING), (moment, TIMESTAMP))
    assert value == (datetime(*expected, tzinfo=UTC) if expected else None)


def test_make_date():
    assert apply("make_date", DATE, (2000, INT), (2, INT), (29, INT)) == day(2000, 2, 29)
    assert apply("make_date", DATE, (None, INT), (13, INT), (29, INT)) is None
    for parts in ((2020, 13, 1), (1900, 2, 29), (10**9, 1, 1)):
        assert condition_of("make_date", DATE, *[(part, INT) for part in parts]) == OUT_OF_BOUNDS
    assert condition_of("make_date", DATE, (6_000_000, INT), (1, INT), (1, INT)) == "ARITHMETIC_OVERFLOW"


def test_intervals():
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    assert apply("timestamp_add_interval", TIMESTAMP, (moment, TIMESTAMP), (timedelta(days=-1), INTERVAL)) == datetime(
        2019, 12, 31, tzinfo=UTC
    )
    assert (
        condition_of("timestamp_add_interval", TIMESTAMP, (2**63 - 1, TIMESTAMP), (1, INTERVAL))
        == "ARITHMETIC_OVERFLOW"
    )
    assert apply("subtract_dates", INTERVAL, (day(2020, 3, 1), DATE), (day(2020, 2, 1), DATE)) == timedelta(days=29)
    assert apply("subtract_timestamps", INTERVAL, (moment, TIMESTAMP), (moment, TIMESTAMP)) == timedelta(0)


def test_epochs():
    assert apply("unix_seconds", BIGINT, (-1, TIMESTAMP)) == -1
    assert apply("unix_millis", BIGINT, (-1, TIMESTAMP)) == -1
    assert apply("timestamp_millis", TIMESTAMP, (1500, BIGINT)) == datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)
    assert condition_of("timestamp_millis", TIMESTAMP, (2**62, BIGINT)) == "ARITHMETIC_OVERFLOW"
    assert apply("date_from_unix_date", DATE, (-1, INT)) == day(1969, 12, 31)


def moment(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("unit", "count", "time", "later"),
    [
        ("MONTH", 1, "2020-01-31T10:20:30.123456", "2020-02-29T10:20:30.123456"),
        ("QUARTER", -1, "2020-05-31T12:00:00", "2020-02-29T12:00:00"),
        ("YEAR", 1, "2020-02-29T00:00:00", "2021-02-28T00:00:00"),
        ("WEEK", 1, "1969-12-28T23:00:00", "1970-01-04T23:00:00"),
        ("DAY", -1, "1970-01-01T00:00:00", "1969-12-31T00:00:00"),
        ("DAYOFYEAR", 366, "2020-01-01T00:00:00", "2021-01-01T00:00:00"),
        ("HOUR", 25, "2020-01-31T10:20:30", "2020-02-01T11:20:30"),
        ("MINUTE", -1, "2020-01-01T00:00:30", "2019-12-31T23:59:30"),
        ("SECOND", -1, "1970-01-01T00:00:00.5", "1969-12-31T23:59:59.5"),
        ("MILLISECOND", 1, "2020-01-01T00:00:00", "2020-01-01T00:00:00.001"),
        ("MICROSECOND", 1, "2020-01-01T00:00:00", "2020-01-01T00:00:00.000001"),
    ],
)
def test_units_later(unit, count, time, later):
    added = apply("timestampadd", TIMESTAMP, lit(unit, STRING), (count, BIGINT), (moment(time), TIMESTAMP))
    assert added == moment(later)


@pytest.mark.parametrize(
    ("unit", "count"),
    [("YEAR", 300_000), ("MONTH", 2**31), ("MONTH", -(2**31) - 1), ("QUARTER", 2**62), ("DAY", 2**31), ("WEEK", 2**63 - 1), ("HOUR", -(2**63)), ("MICROSECOND", 2**63 - 1)],
)  # fmt: skip
def test_units_too_far_away(unit, count):
    call = ("timestampadd", TIMESTAMP, lit(unit, STRING), (count, BIGINT), (moment("2020-01-01T00:00:00"), TIMESTAMP))
    assert condition_of(*call) == "DATETIME_OVERFLOW"
    assert apply("timestampadd", TIMESTAMP, lit(unit, STRING), (count, BIGINT), (None, TIMESTAMP)) is None


@pytest.mark.parametrize(
    ("unit", "start", "end", "count"),
    [
        ("MONTH", "2020-01-31T00:00:00", "2020-02-29T00:00:00", 0),
        ("MONTH", "2020-03-31T00:00:00", "2020-02-29T00:00:00", -1),
        ("MONTH", "2020-01-31T10:00:00", "2020-03-31T09:00:00", 1),
        ("MONTH", "2020-03-31T09:00:00", "2020-01-31T10:00:00", -1),
        ("QUARTER", "2020-01-31T10:20:30", "2024-02-29T23:59:59", 16),
        ("YEAR", "2020-02-29T00:00:00", "2021-02-28T00:00:00", 0),
        ("YEAR", "2021-03-01T00:00:00", "2020-02-29T00:00:00", -1),
        ("WEEK", "2020-01-08T00:00:00", "2020-01-01T00:00:01", 0),
        ("DAY", "1969-12-31T12:00:00", "1970-01-02T11:59:59", 1),
        ("HOUR", "2020-01-02T00:30:00", "2020-01-01T23:00:00", -1),
        ("MINUTE", "1969-12-31T23:59:30", "1970-01-01T00:01:29", 1),
        ("SECOND", "1970-01-01T00:00:00.5", "1969-12-31T23:59:59", -1),
        ("MILLISECOND", "2020-01-31T10:20:30.123456", "2024-02-29T23:59:59.999999", 128785169876),
        ("MICROSECOND", "2020-01-31T10:20:30.123456", "2024-02-29T23:59:59.999999", 128785169876543),
    ],
)
def test_units_between(unit, start, end, count):
    given = lit(unit, STRING), (moment(start), TIMESTAMP), (moment(end), TIMESTAMP)
    assert apply("timestampdiff", BIGINT, *given) == count


def test_units_between_the_ends_of_time():
    ends = (-(2**63), TIMESTAMP), (2**63 - 1, TIMESTAMP)
    assert apply("timestampdiff", BIGINT, lit("MILLISECOND", STRING), *ends) == (2**64 - 1) // 1000
    assert apply("timestampdiff", BIGINT, lit("DAY", STRING), *ends) == (2**64 - 1) // 86_400_000_000
    assert condition_of("timestampdiff", BIGINT, lit("MICROSECOND", STRING), *ends) == "ARITHMETIC_OVERFLOW"
