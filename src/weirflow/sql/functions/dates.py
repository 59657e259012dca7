"""Functions of dates and timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count, same_as
from weirflow.sql.functions.times import PARTS, parsed_in
from weirflow.sql.types import (
    BIGINT,
    DATE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    is_interval,
    type_name,
)
from weirflow.sql.typing.coercion import ANY_TIMESTAMP, NUMERIC, ONLY_INTEGRAL, ONLY_TIMESTAMP, Family, cast

if TYPE_CHECKING:
    import pyarrow as pa

_DATE_FIELDS = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")
_TIME_FIELDS = ("hour", "minute", "second")
_EXTRACTED = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    **dict.fromkeys(("y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("qtr",), "quarter"),
    **dict.fromkeys(("mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "dayofweek_iso"),
    **dict.fromkeys(("second", "s", "sec", "seconds", "secs"), "second_with_fraction"),
    "yearofweek": "year_of_week",
    "doy": "dayofyear",
    **dict.fromkeys(("h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("m", "min", "mins", "minutes"), "minute"),
}


_INT_OR_SMALLER = Family("int", lambda kind: kind in (INT, SMALLINT, TINYINT), INT)
_TIMES = (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def _parsed(name: str, kind: pa.DataType) -> Rule:
    """``to_date`` and ``to_timestamp``: without a format they are casts."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 1, 2, position)
        if len(given) == 1:
            readable = _TIMES if kind == DATE else (*_TIMES, NUMERIC)
            return cast(FunctionSignature(name, (readable,), kind).arguments(given, position)[0], kind, position)
        return parsed_in(name, given, kind, position)

    return rule


def _days_later(name: str) -> Rule:
    """``date_add`` and ``date_sub``: days are an int or smaller, never cut down from a larger number."""
    given_types = FunctionSignature(name, (DATE, _INT_OR_SMALLER), DATE)

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        day, days = given_types.arguments(given, position)
        return Call(name, (day, cast(days, INT, position)), DATE, position)

    return rule


UNITS = frozenset(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"])
"""Of ``timestampdiff``; ``timestampadd`` also has DAYOFYEAR, which is a day."""
WITH_UNIT = {
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd"),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff"), "timestampdiff"),
}
"""Functions whose first of three arguments is a unit, without quotes, and which one that makes them."""


def with_unit(function: str, unit: str, given: Arguments, position: SqlPosition | None) -> Expr:
    """``timestampadd`` or ``timestampdiff`` of a unit; ``SqlTypeError`` if it has none of this name."""
    known = UNITS | {"DAYOFYEAR"} if function == "timestampadd" else UNITS
    if unit.upper() not in known:
        raise SqlTypeError(
            f"{function}() takes a unit as its first argument, not {unit}.",
            hint=f"units are {', '.join(sorted(known))}, without quotes",
            position=position,
        )
    return DATES[function]((Literal(unit.upper(), STRING), *given), position)


def extract(field: str, source: Expr, position: SqlPosition | None) -> Expr:
    """``EXTRACT(field FROM source)``; ``NotIncremental`` for fields without a proof."""
    name = _EXTRACTED.get(field.casefold())
    if name in PARTS and not is_interval(source.type):
        return PARTS[name]((source,), position)
    if name is None or name not in DATES or is_interval(source.type):
        raise NotIncremental(
            f"EXTRACT of {field.upper()} from {type_name(source.type)} is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="proven are " + ", ".join(sorted({*_EXTRACTED.values()} & (DATES.keys() | PARTS.keys()))),
            position=position,
        )
    return DATES[name]((source,), position)


DATES: dict[str, Rule] = {
    **{name: FunctionSignature(name, (DATE,), INT) for name in _DATE_FIELDS},
    **{name: FunctionSignature(name, (ANY_TIMESTAMP,), INT) for name in _TIME_FIELDS},
    "add_months": FunctionSignature("add_months", (DATE, INT), DATE),
    **{name: _days_later(name) for name in ("date_add", "date_sub")},
    "date_diff": FunctionSignature("date_diff", (DATE, DATE), INT),
    "timestampadd": FunctionSignature("timestampadd", (STRING, BIGINT, ANY_TIMESTAMP), same_as(2)),
    "timestampdiff": FunctionSignature("timestampdiff", (STRING, ANY_TIMESTAMP, ANY_TIMESTAMP), BIGINT),
    "last_day": FunctionSignature("last_day", (DATE,), DATE),
    "trunc": FunctionSignature("trunc", (DATE, STRING), DATE),
    "date_trunc": FunctionSignature("date_trunc", (STRING, TIMESTAMP), TIMESTAMP),
    "to_date": _parsed("to_date", DATE),
    "to_timestamp": _parsed("to_timestamp", TIMESTAMP),
    "to_timestamp_ltz": _parsed("to_timestamp_ltz", TIMESTAMP),
    "to_timestamp_ntz": _parsed("to_timestamp_ntz", TIMESTAMP_NTZ),
    "make_date": FunctionSignature("make_date", (INT, INT, INT), DATE),
    "unix_date": FunctionSignature("unix_date", (DATE,), INT),
    "date_from_unix_date": FunctionSignature("date_from_unix_date", (INT,), DATE),
    **{
        name: FunctionSignature(name, (ONLY_TIMESTAMP,), BIGINT)
        for name in ("unix_seconds", "unix_millis", "unix_micros")
    },
    **{name: FunctionSignature(name, (ONLY_INTEGRAL,), TIMESTAMP) for name in ("timestamp_millis", "timestamp_micros")},
}
