"""Typed expressions in a line: ``call("add", INT, c.x, lit(1, INT))``, and batches to evaluate them over."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from weirflow.errors import DataError, SqlPosition
from weirflow.ivm.kernel.expressions import UnknownFunction, compile_expression
from weirflow.sql.expr import Call, Column, Expr, Literal

NULL = pa.null()
BOOLEAN = pa.bool_()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
STRING, BINARY = pa.string(), pa.binary()
DATE = pa.date32()
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
INTERVAL = pa.duration("us")
MONTHS = pa.month_day_nano_interval()

POSITION = SqlPosition(1, 8, "here")


def first_unsupported(expr: Expr) -> UnknownFunction | None:
    """The error that compiling the expression raises, or None if it compiles."""
    try:
        compile_expression(expr)
    except UnknownFunction as error:
        return error
    return None


def decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


def array_of(element: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", element))


def lit(value: Any, kind: pa.DataType) -> Literal:
    return Literal(value, kind)


def call(function: str, kind: pa.DataType, *arguments: Expr) -> Call:
    return Call(function, arguments, kind, POSITION)


def cast(expr: Expr, kind: pa.DataType) -> Call:
    return call("cast", kind, expr)


class Columns:
    """The columns of a schema as attributes: ``c.name``."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __getattr__(self, name: str) -> Column:
        index = self._schema.get_field_index(name)
        if index < 0:
            raise AttributeError(name)
        return Column(index, name, self._schema.field(index).type)


def apply(function: str, kind: pa.DataType, *arguments: Any) -> Any:
    """The Python value of a call for one row; an argument is a pair of a value and its type, or a literal."""
    return apply_rows(
        function, kind, *[each if isinstance(each, Literal) else ([each[0]], each[1]) for each in arguments]
    )[0]


def apply_rows(function: str, kind: pa.DataType, *arguments: Any) -> list[Any]:
    """The Python values of a call over columns; an argument is a pair of a list and its type, or a literal."""
    columns: list[pa.Array] = []
    parts: list[Expr] = []
    for argument in arguments:
        if isinstance(argument, Literal):
            parts.append(argument)
            continue
        values, argument_type = argument
        parts.append(Column(len(columns), f"c{len(columns)}", argument_type))
        columns.append(values if isinstance(values, pa.Array) else pa.array(values, argument_type))
    length = len(columns[0]) if columns else 1
    result = compile_expression(call(function, kind, *parts))(columns, length)
    assert isinstance(result, pa.Array)
    assert result.type == kind
    assert len(result) == length
    result.validate(full=True)
    return result.to_pylist()


def evaluate(expr: Expr, *columns: tuple[list[Any], pa.DataType]) -> list[Any]:
    """The Python values of an expression over columns."""
    arrays = [pa.array(values, kind) for values, kind in columns]
    length = len(arrays[0]) if arrays else 1
    result = compile_expression(expr)(arrays, length)
    assert result.type == expr.type
    return result.to_pylist()


def condition_of(function: str, kind: pa.DataType, *arguments: Any) -> str | None:
    """The condition of the error that a call raises for one row, which must name its position."""
    with pytest.raises(DataError) as raised:
        apply(function, kind, *arguments)
    assert raised.value.position == POSITION
    return raised.value.condition
