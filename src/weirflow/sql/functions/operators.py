"""Arithmetic, comparison and boolean operators."""

from __future__ import annotations

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, check_count, same_as
from weirflow.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    YEAR_MONTH_INTERVAL,
    is_datetime,
    is_decimal,
    is_integral,
    is_interval,
    is_numeric,
    type_name,
)
from weirflow.sql.typing import decimals
from weirflow.sql.typing.coercion import ANY, INTEGRAL, NUMERIC, cast, common_type, comparable, decimal_operand

_BINARY = 2


def arithmetic(name: str) -> Rule:
    """``add``, ``subtract``, ``multiply``, ``remainder`` and ``pmod``: decimals keep their own operand types."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, _BINARY, _BINARY, position)
        temporal = _temporal(name, given[0], given[1], position)
        if temporal is not None:
            return temporal
        left, right = _numbers(name, given[0], given[1], position)
        if is_decimal(left.type):
            operator = "remainder" if name == "pmod" else name
            return Call(name, (left, right), decimals.arithmetic_type(operator, left.type, right.type), position)
        return Call(name, (left, right), left.type, position)

    return rule


def divide(given: Arguments, position: SqlPosition | None) -> Expr:
    """``/``: of decimals a decimal, of anything else a double."""
    check_count("divide", given, _BINARY, _BINARY, position)
    if is_interval(given[0].type):
        raise _unproven("divide", given[0], given[1], position)
    left, right = _numbers("divide", given[0], given[1], position)
    if is_decimal(left.type) and given[0].type != NULL:
        return Call("divide", (left, right), decimals.arithmetic_type("divide", left.type, right.type), position)
    return Call("divide", (cast(left, DOUBLE), cast(right, DOUBLE)), DOUBLE, position)


def integral_divide(given: Arguments, position: SqlPosition | None) -> Expr:
    """``div``: always a bigint."""
    check_count("integral_divide", given, _BINARY, _BINARY, position)
    left, right = _numbers("integral_divide", given[0], given[1], position)
    if not is_decimal(left.type):
        if not is_integral(left.type):
            raise _bad_operands("integral_divide", given[0], given[1], position)
        left, right = cast(left, BIGINT), cast(right, BIGINT)
    return Call("integral_divide", (left, right), BIGINT, position)


def comparison(name: str) -> Rule:
    """A comparison of two values in their common type."""

    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, _BINARY, _BINARY, position)
        left, right = comparable(given[0], given[1], name, position)
        if pa.types.is_map(left.type):
            raise SqlTypeError(f"{name} cannot compare maps.", position=position)
        return Call(name, (left, right), BOOLEAN, position)

    return rule


def contained(given: Arguments, position: SqlPosition | None) -> Expr:
    """``in``: the value, then the list."""
    kind = common_type(expr.type for expr in given)
    if kind is None:
        names = ", ".join(dict.fromkeys(type_name(expr.type) for expr in given))
        raise SqlTypeError(f"IN compares types that do not fit together: {names}.", position=position)
    if pa.types.is_map(kind):
        raise SqlTypeError("IN cannot compare maps.", position=position)
    return Call("in", tuple(cast(expr, kind, position) for expr in given), BOOLEAN, position)


def _numbers(name: str, left: Expr, right: Expr, position: SqlPosition | None) -> tuple[Expr, Expr]:
    """Both operands as numbers: two decimals (of their own precisions), or one common other type."""
    kinds = (left.type, right.type)
    if not all(is_numeric(kind) or kind in (STRING, NULL) for kind in kinds):
        raise _bad_operands(name, left, right, position)
    if set(kinds) in ({STRING}, {STRING, NULL}):
        raise _bad_operands(name, left, right, position)
    if kinds == (NULL, NULL):
        return cast(left, DOUBLE, position), cast(right, DOUBLE, position)
    if any(is_decimal(kind) for kind in kinds) and all(is_decimal(kind) or is_integral(kind) for kind in kinds):
        return cast(left, decimal_operand(left), position), cast(right, decimal_operand(right), position)
    kind = common_type(kinds)
    assert kind is not None, "numbers, strings and NULL always meet"
    return cast(left, kind, position), cast(right, kind, position)


def _temporal(  # noqa: C901 - a table of cases, one for each pair of kinds
    name: str, left: Expr, right: Expr, position: SqlPosition | None
) -> Expr | None:
    """Arithmetic on dates, times and intervals; None when there is none among the operands.

    A date plus an interval of days to seconds is a timestamp; whoever knows the interval is of whole days asks for
    ``date_add`` instead.
    """
    if name == "add" and (is_interval(left.type) or is_integral(left.type)) and is_datetime(right.type):
        left, right = right, left
    if is_interval(right.type) and not (is_datetime(left.type) or is_interval(left.type)):
        raise _unproven(name, left, right, position)
    if not (is_datetime(left.type) or is_interval(left.type) or is_datetime(right.type)):
        return None
    if name == "subtract":
        left, right = _both_times(left, right, position)
    if name == "subtract" and is_datetime(left.type) and is_datetime(right.type):
        both_dates = left.type == DATE and right.type == DATE
        pair = (left, right) if both_dates else comparable(left, right, name, position)
        return Call("subtract_dates" if both_dates else "subtract_timestamps", pair, DAY_TIME_INTERVAL, position)
    if name in ("add", "subtract") and is_datetime(left.type):
        if left.type == DATE and (is_integral(right.type) and right.type != BIGINT):
            function = "date_add" if name == "add" else "date_sub"
            return Call(function, (left, cast(right, INT)), DATE, position)
        if right.type == YEAR_MONTH_INTERVAL:
            function = "date_add_interval" if left.type == DATE else "timestamp_add_interval"
            return Call(function, (left, _signed(name, right)), left.type, position)
        if right.type == DAY_TIME_INTERVAL:
            time = cast(left, TIMESTAMP, position) if left.type == DATE else left
            return Call("timestamp_add_interval", (time, _signed(name, right)), time.type, position)
    if name in ("add", "subtract") and is_interval(left.type) and right.type in (left.type, NULL):
        return Call(name, (left, cast(right, left.type)), left.type, position)
    if is_interval(left.type) or NULL in (left.type, right.type):
        raise _unproven(name, left, right, position)
    raise _bad_operands(name, left, right, position)


def _both_times(left: Expr, right: Expr, position: SqlPosition | None) -> tuple[Expr, Expr]:
    """A string or NULL beside a date or timestamp is one too."""
    if is_datetime(left.type) and right.type in (STRING, NULL):
        return left, cast(right, left.type, position)
    if is_datetime(right.type) and left.type in (STRING, NULL):
        return cast(left, right.type, position), right
    return left, right


def _unproven(name: str, left: Expr, right: Expr, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        f"{name} of {type_name(left.type)} and {type_name(right.type)} is not proven equal to Spark's.",
        reason=Reason.TYPE_NOT_SUPPORTED,
        position=position,
    )


def _signed(name: str, interval: Expr) -> Expr:
    return interval if name == "add" else Call("negate", (interval,), interval.type)


def _bad_operands(name: str, left: Expr, right: Expr, position: SqlPosition | None) -> SqlTypeError:
    return SqlTypeError(
        f"{name} has no meaning for {type_name(left.type)} and {type_name(right.type)}.", position=position
    )


_NUMBER_OR_INTERVAL = (NUMERIC, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)
_ESCAPE = Literal("\\", STRING)

OPERATORS: dict[str, Rule] = {
    **{name: arithmetic(name) for name in ("add", "subtract", "multiply", "remainder", "pmod")},
    "divide": divide,
    "integral_divide": integral_divide,
    "negate": FunctionSignature("negate", (_NUMBER_OR_INTERVAL,), same_as(0)),
    **{
        name: comparison(name)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "equal_null_safe")
    },
    "in": contained,
    **{name: FunctionSignature(name, (BOOLEAN, BOOLEAN), BOOLEAN) for name in ("and", "or")},
    "not": FunctionSignature("not", (BOOLEAN,), BOOLEAN),
    **{name: FunctionSignature(name, (ANY,), BOOLEAN) for name in ("is_null", "is_not_null")},
    **{name: FunctionSignature(name, (STRING, STRING, STRING), BOOLEAN, (_ESCAPE,)) for name in ("like", "ilike")},
    "rlike": FunctionSignature("rlike", (STRING, STRING), BOOLEAN),
    "bitwise_not": FunctionSignature("bitwise_not", (INTEGRAL,), same_as(0)),
}
