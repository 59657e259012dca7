"""Conditional functions and the sugar that is spelled with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.rules import Arguments, FunctionSignature, Rule, alike, check_count
from weirflow.sql.types import (
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
    TINYINT,
    decimal,
)
from weirflow.sql.typing.coercion import explicit_cast, unify

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition


def case(branches: tuple[tuple[Expr, Expr], ...], default: Expr, position: SqlPosition | None) -> Expr:
    """CASE WHEN ...: a call of condition, value, condition, value, ..., default."""
    conditions = FunctionSignature("case", (BOOLEAN,), BOOLEAN, optional=1, repeats=True).arguments(
        tuple(condition for condition, _ in branches), position
    )
    *values, otherwise = unify((*(value for _, value in branches), default), "CASE", position)
    flat = tuple(part for pair in zip(conditions, values, strict=True) for part in pair)
    return Call("case", (*flat, otherwise), otherwise.type, position)


def _if(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("if", given, 3, 3, position)
    return case(((given[0], given[1]),), given[2], position)


def _nvl2(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("nvl2", given, 3, 3, position)
    return case(((OPERATORS["is_not_null"](given[:1], position), given[1]),), given[2], position)


def _nullif(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("nullif", given, 2, 2, position)
    return case(((OPERATORS["equal"](given, position), Literal(None, given[0].type)),), given[0], position)


def _zeroifnull(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("zeroifnull", given, 1, 1, position)
    return alike("coalesce")((*given, Literal(0, INT)), position)


def _nullifzero(given: Arguments, position: SqlPosition | None) -> Expr:
    check_count("nullifzero", given, 1, 1, position)
    return _nullif((*given, Literal(0, INT)), position)


def _nvl(name: str) -> Rule:
    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count(name, given, 2, 2, position)
        return alike("coalesce")(given, position)

    return rule


def _conversion(kind: pa.DataType) -> Rule:
    def rule(given: Arguments, position: SqlPosition | None) -> Expr:
        check_count("cast", given, 1, 1, position)
        return explicit_cast(given[0], kind, position)

    return rule


_CONVERSIONS = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "decimal": decimal(10, 0),
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
}

CONDITIONALS: dict[str, Rule] = {
    "coalesce": alike("coalesce", least=1),
    "if": _if,
    "nvl": _nvl("nvl"),
    "ifnull": _nvl("ifnull"),
    "nvl2": _nvl2,
    "nullif": _nullif,
    "zeroifnull": _zeroifnull,
    "nullifzero": _nullifzero,
    "isnull": OPERATORS["is_null"],
    "isnotnull": OPERATORS["is_not_null"],
    "equal_null": OPERATORS["equal_null_safe"],
    **{name: _conversion(kind) for name, kind in _CONVERSIONS.items()},
}
