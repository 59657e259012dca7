"""Moving expressions to where their columns are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.plan import Field


@grows
def moved(expression: Expr, positions: Sequence[int]) -> Expr:
    """The expression with each column index ``i`` replaced by ``positions[i]``."""
    if isinstance(expression, Column):
        return replace(expression, index=positions[expression.index])
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(moved(argument, positions) for argument in expression.arguments))
    assert isinstance(expression, Literal), "subqueries are joins by now"
    return expression


def moved_call(call: AggregateCall, positions: Sequence[int]) -> AggregateCall:
    """``moved`` for all expressions of an aggregate call."""
    return replace(
        call,
        arguments=tuple(moved(argument, positions) for argument in call.arguments),
        filter=moved(call.filter, positions) if call.filter is not None else None,
        order_by=tuple(replace(key, expr=moved(key.expr, positions)) for key in call.order_by),
    )


def identity(fields: Sequence[Field]) -> tuple[Column, ...]:
    """Every column as it is."""
    return tuple(Column(index, field.name, field.type) for index, field in enumerate(fields))
