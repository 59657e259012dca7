"""Functions of dates and timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.types import BIGINT, DATE, INT, SMALLINT, STRING, TIMESTAMP, TIMESTAMP_NTZ, TINYINT
from weirflow.sql.typing.coercion import ANY_TIMESTAMP, NUMERIC, ONLY_INTEGRAL, ONLY_TIMESTAMP, Family, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition

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
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "weekday_iso"),
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
        return FunctionSignature(name, (STRING, STRING), kind)(given, position)

    return rule


def _days_later(name: str) -> Rule:
    """``date_add`` and ``date_sub``: days are an int or smaller, never cut down from a larger number."""
    given_types = FunctionSignature(name, (DATE, _INT_OR_SMALLER), DATE)

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        day, days = given_types.arguments(given, position)
        return Call(name, (day, cast(days, INT, position)), DATE, position)

    return rule


def _date_diff(given: Arguments, position: SqlPosition | None) -> Expr:
    if len(given) == 3:  # noqa: PLR2004 - the form with a unit
        raise NotIncremental(
            "date_diff() with a unit is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="use the two-argument form, which counts days",
            position=position,
        )
    return FunctionSignature("date_diff", (DATE, DATE), INT)(given, position)


def extract(field: str, source: Expr, position: SqlPosition | None) -> Expr:
    """``EXTRACT(field FROM source)``; ``NotIncremental`` for fields without a proof."""
    name = _EXTRACTED.get(field.casefold())
    if name is None or name not in DATES:
        raise NotIncremental(
            f"EXTRACT of {field.upper()} is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="proven are " + ", ".join(sorted({*_EXTRACTED.values()} & DATES.keys())),
            position=position,
        )
    return DATES[name]((source,), position)


DATES: dict[str, Rule] = {
    **{name: FunctionSignature(name, (DATE,), INT) for name in _DATE_FIELDS},
    **{name: FunctionSignature(name, (ANY_TIMESTAMP,), INT) for name in _TIME_FIELDS},
    "add_months": FunctionSignature("add_months", (DATE, INT), DATE),
    **{name: _days_later(name) for name in ("date_add", "date_sub")},
    "date_diff": _date_diff,
    "last_day": FunctionSignature("last_day", (DATE,), DATE),
    "trunc": FunctionSignature("trunc", (DATE, STRING), DATE),
    "date_trunc": FunctionSignature("date_trunc", (STRING, TIMESTAMP), TIMESTAMP),
    "to_date": _parsed("to_date", DATE),
    "to_timestamp": _parsed("to_timestamp", TIMESTAMP),
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
