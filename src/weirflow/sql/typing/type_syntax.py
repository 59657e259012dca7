"""Types as SQL text names them: in DDL, in casts, in schemas that are strings."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp

from weirflow.arguments.in_errors import shown
from weirflow.errors import SqlSyntaxError, SqlTooComplex
from weirflow.sql.limits import check_type
from weirflow.sql.syntax.parse import parse_type
from weirflow.sql.type_names import FORMS, INSTEAD, NAMES, unknown_type
from weirflow.sql.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    array_of,
    decimal,
)
from weirflow.stack import grows

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


def parse_type_name(text: str) -> pa.DataType:
    """The type that Spark calls ``text``; ``SqlSyntaxError`` if there is none.

    >>> parse_type_name("STRUCT<a: INT, b: ARRAY<STRING>>")
    StructType(struct<a: int32, b: list<element: string>>)
    """
    kind = arrow_type(_parsed(text, text))
    check_type(kind)
    return kind


def parse_ddl(text: str) -> pa.Schema:
    """The schema of a list of columns as in ``CREATE TABLE``; ``SqlSyntaxError`` if it is none.

    >>> parse_ddl("a INT, b DECIMAL(10,2)").names
    ['a', 'b']
    """
    struct = _parsed(f"STRUCT<{text}>", text)
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
        raise SqlSyntaxError(f"{tree.sql('spark')} is not a Spark type.", hint=FORMS["STRUCT"])
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
    raise _no_type(tree)


def _no_type(tree: exp.DataType) -> SqlSyntaxError:
    kind = tree.this
    if isinstance(kind, exp.DType) and (not tree.expressions or kind.name in INSTEAD):
        return unknown_type(kind.name)
    return SqlSyntaxError(f"{tree.sql('spark')} is not a Spark type.", hint=FORMS.get(getattr(kind, "name", "")))


def _parsed(text: str, written: str) -> exp.DataType:
    """The syntax tree of a type; an error is about what was written, and names the word that is no type."""
    try:
        return parse_type(text)
    except SqlTooComplex:
        raise
    except SqlSyntaxError:
        for word in re.findall(r"(?:^|[\s<,:(])([A-Za-z_]\w*)\s*(?=$|[<>,()]|\sNOT\b)", written):
            if word.casefold() not in NAMES and not _is_type(word):
                raise unknown_type(word) from None
        raise SqlSyntaxError(
            f"{shown(written)} cannot be read as columns or a type.",
            hint='write columns such as "id BIGINT, tags ARRAY<STRING>"; every bracket has its other half',
        ) from None


def _is_type(word: str) -> bool:
    try:
        parse_type(word)
    except SqlSyntaxError:
        return False
    return True


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
    raise SqlSyntaxError(
        "An interval type is either of years and months or of days to seconds.", hint=FORMS["INTERVAL"]
    )


def _field(part: exp.Expr) -> pa.Field:
    constraints = part.args.get("constraints") or []
    not_null = any(isinstance(item.kind, exp.NotNullColumnConstraint) for item in constraints)
    kind = part.args.get("kind")
    if not isinstance(part, exp.ColumnDef) or kind is None:
        raise SqlSyntaxError(f"{part.sql('spark')} is not a column: expected a name and a type.")
    return pa.field(part.name, arrow_type(kind), nullable=not not_null)
