"""Spark SQL's types: Arrow type to Spark name and back, in the one-to-one correspondence Spark itself uses."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import SqlSyntaxError
from weirflow.sql.limits import check_type
from weirflow.sql.parse import parse_type
from weirflow.stack import grows

NULL = pa.null()
BOOLEAN = pa.bool_()
TINYINT = pa.int8()
SMALLINT = pa.int16()
INT = pa.int32()
BIGINT = pa.int64()
FLOAT = pa.float32()
DOUBLE = pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
DAY_TIME_INTERVAL = pa.duration("us")
YEAR_MONTH_INTERVAL = pa.month_day_nano_interval()

MAX_PRECISION = 38
INTEGRAL_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_NAMES: dict[pa.DataType, str] = {
    NULL: "void",
    BOOLEAN: "boolean",
    TINYINT: "tinyint",
    SMALLINT: "smallint",
    INT: "int",
    BIGINT: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BINARY: "binary",
    DATE: "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    DAY_TIME_INTERVAL: "interval day to second",
    YEAR_MONTH_INTERVAL: "interval year to month",
}
_PARSED: dict[exp.DType, pa.DataType] = {
    exp.DType.NULL: NULL,
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.VARBINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}
_YEAR_MONTH = frozenset({"YEAR", "MONTH"})
_DAY_TIME = frozenset({"DAY", "HOUR", "MINUTE", "SECOND"})


def decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's ``decimal(precision,scale)``."""
    return pa.decimal128(precision, scale)


def array_of(element: pa.DataType) -> pa.DataType:
    """Spark's ``array<element>``, with the field name that Spark gives it in Arrow."""
    return pa.list_(pa.field("element", element))


def type_name(kind: pa.DataType) -> str:  # noqa: PLR0911 - one return for each kind of type
    """Spark's short name of a type, as ``DESCRIBE`` prints it.

    >>> type_name(pa.list_(pa.decimal128(10, 2)))
    'array<decimal(10,2)>'
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{type_name(field.type)}" for field in kind) + ">"
    return str(kind)


def parse_type_name(text: str) -> pa.DataType:
    """The type that Spark calls ``text``; ``SqlSyntaxError`` if there is none.

    >>> type_name(parse_type_name("STRUCT<a: INT, b: ARRAY<STRING>>"))
    'struct<a:int,b:array<string>>'
    """
    kind = arrow_type(parse_type(text))
    check_type(kind)
    return kind


def parse_ddl(text: str) -> pa.Schema:
    """The schema of a list of columns as in ``CREATE TABLE``; ``SqlSyntaxError`` if it is none.

    >>> parse_ddl("a INT, b DECIMAL(10,2)").names
    ['a', 'b']
    """
    struct = parse_type(f"STRUCT<{text}>")
    fields = [_field(part) for part in struct.expressions]
    for field in fields:
        check_type(field.type)
    return pa.schema(fields)


@grows
def arrow_type(tree: exp.Expr) -> pa.DataType:  # noqa: PLR0911 - one return for each kind of type
    """The Arrow type of a type in a syntax tree; ``SqlSyntaxError`` when Spark has no such type."""
    if isinstance(tree, exp.Interval):
        return _interval_type(tree)
    if not isinstance(tree, exp.DataType):
        raise SqlSyntaxError(f"{tree.sql('spark')} is not a Spark type.")
    kind, parts = tree.this, tree.expressions
    if isinstance(kind, exp.Interval):
        return _interval_type(kind)
    if kind == exp.DType.INTERVAL:
        return _interval_type(tree)
    if kind == exp.DType.DECIMAL:
        return _decimal_type([int(part.name) for part in parts])
    if kind in (exp.DType.ARRAY, exp.DType.LIST) and len(parts) == 1:
        return array_of(arrow_type(parts[0]))
    if kind == exp.DType.MAP and len(parts) == 2:  # noqa: PLR2004 - key and value
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    if kind == exp.DType.STRUCT:
        return pa.struct([_field(part) for part in parts])
    if kind in _PARSED and (not parts or kind in (exp.DType.CHAR, exp.DType.VARCHAR)):
        return _PARSED[kind]
    raise SqlSyntaxError(f"{tree.sql('spark')} is not a Spark type.")


def _decimal_type(numbers: list[int]) -> pa.DataType:
    precision, scale = (*numbers, 0)[:2] if numbers else (10, 0)
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise SqlSyntaxError(f"decimal({precision},{scale}) is not a Spark type.", hint="1 to 38 digits, scale within")
    return decimal(precision, scale)


def _interval_type(tree: exp.Expr) -> pa.DataType:
    unit = tree.args.get("unit")
    named = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit,)
    units = {part.name.upper() for part in named if part is not None}
    if units and units <= _YEAR_MONTH:
        return YEAR_MONTH_INTERVAL
    if units and units <= _DAY_TIME:
        return DAY_TIME_INTERVAL
    raise SqlSyntaxError("An interval type is either of years and months or of days to seconds.")


def _field(part: exp.Expr) -> pa.Field:
    constraints = part.args.get("constraints") or []
    not_null = any(isinstance(item.kind, exp.NotNullColumnConstraint) for item in constraints)
    kind = part.args.get("kind")
    if not isinstance(part, exp.ColumnDef) or kind is None:
        raise SqlSyntaxError(f"{part.sql('spark')} is not a column: expected a name and a type.")
    return pa.field(part.name, arrow_type(kind), nullable=not not_null)


def is_numeric(kind: pa.DataType) -> bool:
    """Integers, decimals, float and double."""
    return kind in INTEGRAL_DIGITS or kind in (FLOAT, DOUBLE) or pa.types.is_decimal(kind)


def is_integral(kind: pa.DataType) -> bool:
    """tinyint, smallint, int and bigint."""
    return kind in INTEGRAL_DIGITS


def is_decimal(kind: pa.DataType) -> bool:
    """Decimals of any precision."""
    return bool(pa.types.is_decimal(kind))


def is_string(kind: pa.DataType) -> bool:
    """String."""
    return bool(kind == STRING)


def is_datetime(kind: pa.DataType) -> bool:
    """Dates and timestamps, with or without a zone."""
    return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_interval(kind: pa.DataType) -> bool:
    """Intervals of years and months, and of days to microseconds."""
    return kind in (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL)


def is_array(kind: pa.DataType) -> bool:
    """Arrays of anything."""
    return bool(pa.types.is_list(kind))


def is_atomic(kind: pa.DataType) -> bool:
    """Neither an array, a map, a struct nor the type of NULL."""
    return not (kind == NULL or pa.types.is_nested(kind))


def nullable(kind: pa.DataType) -> pa.DataType:
    """The type with every nested field nullable and named as Spark names it: plans do not track what is never NULL."""
    if pa.types.is_map(kind):
        return pa.map_(nullable(kind.key_type), nullable(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return array_of(nullable(kind.value_type))
    return kind


def is_orderable(kind: pa.DataType) -> bool:
    """Whether values can be sorted: everything but maps, at any depth."""
    if pa.types.is_map(kind):
        return False
    if is_array(kind):
        return is_orderable(kind.value_type)
    return all(is_orderable(field.type) for field in kind) if pa.types.is_struct(kind) else True
