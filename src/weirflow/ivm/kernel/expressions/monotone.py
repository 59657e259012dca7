"""Expressions that never fall while a time rises: where such a time has a bound, so has the expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.sql.expr import Call, Column, Expr, Literal
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.ivm.kernel.frontier import Frontier

_DAY = 86_400_000_000


class Monotone:
    """An expression of one column that never falls while that column rises.

    Args:
        expr: the expression.
        column: the one column it reads.
        calendar: whether it looks at a calendar. Clocks are put back now and then, by less than a day: its bound is
            that of a day before.
    """

    def __init__(self, expr: Expr, column: Column, *, calendar: bool) -> None:
        self.column = column.index
        self._type = column.type
        self._width = column.index + 1
        self._calendar = calendar
        self._evaluate = compile_expression(expr)

    def bound(self, frontier: Frontier) -> pa.Scalar | None:
        """The expression's bound where its column has one."""
        bound = frontier.get(self.column)
        if bound is None:
            return None
        values = pa.array([bound.as_py()], self._type) if pt.is_struct(self._type) else pa.repeat(bound, 1)
        if self._calendar:
            days = 1 if pt.is_date32(self._type) else _DAY
            kind = pa.int32() if pt.is_date32(self._type) else pa.int64()
            values = pa.array([values.cast(kind)[0].as_py() - days], kind).cast(self._type)
        columns = [pa.nulls(1, self._type)] * (self._width - 1)
        try:
            return self._evaluate([*columns, values], 1)[0]
        except DataError:  # at the ends of the calendar
            return None


def monotone(expr: Expr) -> Monotone | None:
    """The expression as one that never falls while a column rises, if it is known to be one."""
    column, calendar = _column(expr)
    return None if column is None else Monotone(expr, column, calendar=calendar)


def advanced(expressions: Sequence[Monotone | None], frontier: Frontier) -> Frontier:
    """The bounds of expressions over columns with these bounds."""
    bounds = {at: one.bound(frontier) for at, one in enumerate(expressions) if one is not None}
    return {at: bound for at, bound in bounds.items() if bound is not None}


@grows
def _column(expr: Expr) -> tuple[Column | None, bool]:
    if isinstance(expr, Column):
        return expr, False
    if not isinstance(expr, Call) or expr.function not in _FUNCTIONS:
        return None, False
    place, calendar = _FUNCTIONS[expr.function]
    others = [one for at, one in enumerate(expr.arguments) if at != place]
    argument = expr.arguments[place]
    if not all(isinstance(one, Literal) for one in others):
        return None, False
    if expr.function == "cast" and not (_is_time(argument.type) and _is_time(expr.type)):
        return None, False
    if calendar and not isinstance(argument, Column):
        return None, False
    column, inside = _column(argument)
    return column, calendar or inside


def _is_time(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) or pt.is_date32(kind))


_FUNCTIONS = {
    "cast": (0, True),
    "date_trunc": (1, True),
    "get_struct_field": (0, False),
    "trunc": (0, True),
    "tumble": (0, False),
    "year": (0, True),
}
"""The place of the time among the arguments, and whether the calendar counts. A window's fields rise with it."""
