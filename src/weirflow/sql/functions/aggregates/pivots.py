"""What PIVOT does after its groups are aggregated: it picks the result of the group that has a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.expr import AggregateCall, Call, Expr
from weirflow.sql.types import BOOLEAN, is_numeric

if TYPE_CHECKING:
    import pyarrow as pa


def is_picked(kind: pa.DataType) -> bool:
    """Whether Spark picks results of a type; if not, it aggregates the rows of each value by themselves."""
    return is_numeric(kind) or bool(kind == BOOLEAN)


def picked(result: Expr, of: tuple[Expr, ...], values: tuple[Expr, ...]) -> AggregateCall:
    """The result of the one row in which these expressions have these values; NULL if there is none."""
    test: Expr | None = None
    for one, value in zip(of, values, strict=True):
        same = Call("equal_null_safe", (one, value), BOOLEAN)
        test = same if test is None else Call("and", (test, same), BOOLEAN)
    return AggregateCall("max", (result,), result.type, filter=test)
