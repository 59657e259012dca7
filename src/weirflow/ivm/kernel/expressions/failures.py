"""What a row that breaks a rule raises: Spark's conditions, in its words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from weirflow.errors import DataError, SqlPosition

_SQL_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    pa.duration("us"): "INTERVAL DAY TO SECOND",
}
_LONGEST_SHOWN = 200
TIME_WITHOUT_DATE, UNSUPPORTED_TIME_ZONE = "TIME_WITHOUT_DATE", "UNSUPPORTED_TIME_ZONE"
NOT_READ = frozenset({TIME_WITHOUT_DATE, UNSUPPORTED_TIME_ZONE})
"""Conditions of ours: there is a value in Spark, so that no ``TRY`` makes NULL of them."""


def shown(value: Any) -> str:
    """A value for a message, which is no place for megabytes."""
    text = str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def sql_name(kind: pa.DataType) -> str:
    """The SQL name of a type, for messages."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _SQL_NAMES.get(kind, str(kind).upper())


def overflow(what: str, position: SqlPosition | None, *, function: str | None = None) -> DataError:
    """A result that its integer type cannot hold."""
    hint = f"use try_{function} to get NULL instead" if function else None
    return DataError(f"{what} overflow.", hint=hint, position=position, condition="ARITHMETIC_OVERFLOW")


def small_overflow(left: Any, symbol: str, right: Any, position: SqlPosition | None) -> DataError:
    """As ``overflow``, for TINYINT and SMALLINT, for which Spark has a condition of its own."""
    message = f"{left} {symbol} {right} caused overflow."
    return DataError(message, position=position, condition="BINARY_ARITHMETIC_OVERFLOW")


def divide_by_zero(position: SqlPosition | None) -> DataError:
    """A division whose divisor is zero."""
    hint = "use try_divide to get NULL instead"
    return DataError("Division by zero.", hint=hint, position=position, condition="DIVIDE_BY_ZERO")


def remainder_by_zero(position: SqlPosition | None) -> DataError:
    """A remainder whose divisor is zero."""
    hint = "use try_mod to get NULL instead"
    return DataError("Remainder by zero.", hint=hint, position=position, condition="REMAINDER_BY_ZERO")


def cast_overflow(value: Any, source: pa.DataType, target: pa.DataType, position: SqlPosition | None) -> DataError:
    """A number too large for the type it is cast to."""
    message = f"The value {value} of the type {sql_name(source)} cannot be cast to {sql_name(target)}: it overflows."
    return DataError(message, hint="use try_cast to get NULL instead", position=position, condition="CAST_OVERFLOW")


def cast_invalid(value: Any, source: pa.DataType, target: pa.DataType, position: SqlPosition | None) -> DataError:
    """A text that does not spell a value of the type it is cast to."""
    message = (
        f"The value {shown(value)!r} of the type {sql_name(source)} cannot be cast to {sql_name(target)}: "
        "it is malformed."
    )
    return DataError(
        message, hint="use try_cast to get NULL instead", position=position, condition="CAST_INVALID_INPUT"
    )


def decimal_overflow(
    value: Any,
    target: pa.DataType,
    position: SqlPosition | None,
    condition: str = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
) -> DataError:
    """A number with more integral digits than its decimal type has."""
    return DataError(
        f"{shown(value)} cannot be represented as {sql_name(target)}.", position=position, condition=condition
    )


def failure(condition: str, message: str, position: SqlPosition | None, *, hint: str | None = None) -> DataError:
    """Any other broken rule."""
    return DataError(message, hint=hint, position=position, condition=condition)
