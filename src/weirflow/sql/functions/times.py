"""Functions of times and texts in formats, of time zones, and of parts of times."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError, NotIncremental, Reason, SqlPosition
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count
from weirflow.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    decimal,
    is_numeric,
    type_name,
)
from weirflow.sql.typing.coercion import ANY_TIMESTAMP, Family, cast
from weirflow.sql.zoned import UTC_ZONE, tzinfo_of

if TYPE_CHECKING:
    import pyarrow as pa

_USUAL = Literal("yyyy-MM-dd HH:mm:ss", STRING)
_SECONDS = decimal(16, 6)
_ONLY_NUMERIC = Family("numeric", is_numeric, DOUBLE, casts=False)
_WITH_ZONE = 7


def parsed_in(name: str, given: Arguments, kind: pa.DataType, position: SqlPosition | None) -> Expr:
    """A text in a pattern as a time: of ``DATE`` the day of the moment that is read, by the session's clocks."""
    if given[0].type != STRING or given[1].type != STRING:
        raise _unproven(name, f"of {type_name(given[0].type)} in a format", position)
    made = Call("parse_timestamp", given, TIMESTAMP if kind == DATE else kind, position)
    return cast(made, kind, position)


def formatted(value: Expr, pattern: Expr, position: SqlPosition | None) -> Expr:
    """A moment, or seconds since 1970, as a text."""
    moment = Call("seconds_wrapped", (value,), TIMESTAMP, position) if value.type == BIGINT else value
    return Call("date_format", (moment, pattern), STRING, position)


def _formatted(name: str, kind: pa.DataType, defaults: Arguments) -> Rule:
    signature = FunctionSignature(name, (kind, STRING), STRING, defaults)

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        value, pattern = signature.arguments(given, position)
        return formatted(value, pattern, position)

    return rule


def _unix_time(name: str) -> Rule:
    """Seconds since 1970 of a text in a format, a date or a moment."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        if not given and name == "unix_timestamp":
            raise NotIncremental(
                "unix_timestamp() can give another result for the same rows, so a view cannot be kept equal to it.",
                reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
                hint="put the value into a column of a source, or run the query on Spark",
                position=position,
            )
        check_count(name, given, 1, 2, position)
        value = given[0]
        if value.type == STRING:
            value = parsed_in(name, (value, given[1] if len(given) > 1 else _USUAL), TIMESTAMP, position)
        elif value.type not in (DATE, TIMESTAMP):
            raise _unproven(name, f"of {type_name(value.type)}", position)
        return Call("truncated_seconds", (cast(value, TIMESTAMP, position),), BIGINT, position)

    return rule


def by_zone(function: str, value: Expr, zone: Expr, kind: pa.DataType, position: SqlPosition | None) -> Expr:
    """``local_time`` or ``utc_time`` by the clocks of a constant zone, which this machine must know."""
    name = zone.value if isinstance(zone, Literal) else None
    if not isinstance(name, str) or not (name == UTC_ZONE or "/" in name or name[:1] in "+-"):
        raise _unproven("A time zone", "that is no constant region or offset", position)
    try:
        tzinfo_of(name)
    except ConfigError:
        raise _unproven("A time zone", f"named {name!r}", position) from None
    return Call(function, (value, Literal(name, STRING)), kind, position)


def _converted(name: str, function: str) -> Rule:
    """``from_utc_timestamp`` and ``to_utc_timestamp``: moments that are off by how far the clocks of a zone are."""
    signature = FunctionSignature(name, (TIMESTAMP, STRING), TIMESTAMP)

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        moment, zone = signature.arguments(given, position)
        return by_zone(function, moment, zone, TIMESTAMP, position)

    return rule


def _convert_timezone(given: Arguments, position: SqlPosition | None) -> Expr:
    """What a clock of another zone shows when one of the first zone shows a time."""
    if len(given) == 2:  # noqa: PLR2004 - without the first zone
        raise _unproven("convert_timezone", "from the session's time zone", position)
    signature = FunctionSignature("convert_timezone", (STRING, STRING, TIMESTAMP_NTZ), TIMESTAMP_NTZ)
    source, target, shown = signature.arguments(given, position)
    return by_zone(
        "local_time", by_zone("utc_time", shown, source, TIMESTAMP, position), target, TIMESTAMP_NTZ, position
    )


def _made(name: str, kind: pa.DataType) -> Rule:
    """``make_timestamp`` and its like, in the session's zone or in one that is given."""
    parts = FunctionSignature(name, (INT, INT, INT, INT, INT, _SECONDS), kind)
    function = "try_make_timestamp" if name.startswith("try_") else "make_timestamp"

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        if len(given) == 2:  # noqa: PLR2004 - a date and a time
            raise _unproven(name, "of a date and a time", position)
        if len(given) < _WITH_ZONE or kind == TIMESTAMP_NTZ:
            return Call(function, parts.arguments(given, position), kind, position)
        check_count(name, given, _WITH_ZONE, _WITH_ZONE, position)
        made = Call(function, parts.arguments(given[:-1], position), TIMESTAMP_NTZ, position)
        return by_zone("utc_time", made, given[-1], TIMESTAMP, position)

    return rule


def _months_between(given: Arguments, position: SqlPosition | None) -> Expr:
    rounded = Literal(value=True, type=BOOLEAN)
    signature = FunctionSignature("months_between", (TIMESTAMP, TIMESTAMP, BOOLEAN), DOUBLE, (rounded,))
    typed = (*signature.arguments(given, position), Literal(UTC_ZONE, STRING))
    return Call("months_between", typed, DOUBLE, position)


def _iso_weekday(given: Arguments, position: SqlPosition | None) -> Expr:
    weekday = FunctionSignature("weekday", (DATE,), INT)(given, position)
    return OPERATORS["add"]((weekday, Literal(1, INT)), position)


def _unproven(name: str, how: str, position: SqlPosition | None) -> NotIncremental:
    called = name if " " in name else f"{name}()"
    return NotIncremental(
        f"{called} {how} is not proven equal to Spark's.", reason=Reason.FUNCTION_NOT_PROVEN, position=position
    )


PARTS: dict[str, Rule] = {
    "second_with_fraction": FunctionSignature("second_with_fraction", (ANY_TIMESTAMP,), decimal(8, 6)),
    "year_of_week": FunctionSignature("year_of_week", (DATE,), INT),
    "dayofweek_iso": _iso_weekday,
}
"""Of EXTRACT, without a function of their own."""

TIMES: dict[str, Rule] = {
    "date_format": _formatted("date_format", TIMESTAMP, ()),
    "from_unixtime": _formatted("from_unixtime", BIGINT, (_USUAL,)),
    "unix_timestamp": _unix_time("unix_timestamp"),
    "to_unix_timestamp": _unix_time("to_unix_timestamp"),
    "from_utc_timestamp": _converted("from_utc_timestamp", "local_time"),
    "to_utc_timestamp": _converted("to_utc_timestamp", "utc_time"),
    "convert_timezone": _convert_timezone,
    **{
        name: _made(name, TIMESTAMP_NTZ if name.endswith("_ntz") else TIMESTAMP)
        for name in (
            "make_timestamp",
            "make_timestamp_ltz",
            "make_timestamp_ntz",
            "try_make_timestamp",
            "try_make_timestamp_ltz",
            "try_make_timestamp_ntz",
        )
    },
    "make_dt_interval": FunctionSignature(
        "make_dt_interval",
        (INT, INT, INT, decimal(18, 6)),
        DAY_TIME_INTERVAL,
        (*(Literal(0, INT) for _ in range(3)), Literal(Decimal(0), decimal(18, 6))),
    ),
    "months_between": _months_between,
    "next_day": FunctionSignature("next_day", (DATE, STRING), DATE),
    "dayname": FunctionSignature("dayname", (DATE,), STRING),
    "monthname": FunctionSignature("monthname", (DATE,), STRING),
    "timestamp_seconds": FunctionSignature("timestamp_seconds", (_ONLY_NUMERIC,), TIMESTAMP),
}
