"""Placeholders for values that a query computes later than it names them.

While a SELECT is bound, an aggregate or window function inside an expression is a placeholder. Equal calls share one,
so expressions that contain them still compare by structure. When the query is put together, placeholders become
columns of the Aggregate, Window and Generate nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.sql.expr import AggregateCall, Column, Expr, WindowCall
from weirflow.sql.traverse import parts

if TYPE_CHECKING:
    import pyarrow as pa


class PlaceholderKind(StrEnum):
    """What computes the value of a placeholder."""

    AGGREGATE = "aggregate"
    WINDOW = "window"
    GENERATED = "generated"


@dataclass(frozen=True, eq=False)
class Placeholder(Column):
    """A column that is not there yet; its ``index`` is that of no column."""

    kind: PlaceholderKind
    number: int


def _placeholder(kind: PlaceholderKind, number: int, name: str, type_: pa.DataType) -> Placeholder:
    return Placeholder(-1, name, type_, kind, number)


@dataclass
class SelectCalls:
    """The calls of one SELECT, in the order they were met."""

    aggregates: dict[AggregateCall, int] = field(default_factory=dict)
    windows: dict[WindowCall, int] = field(default_factory=dict)
    generated: int = 0

    def aggregate(self, call: AggregateCall) -> Placeholder:
        """The placeholder of an aggregate."""
        number = self.aggregates.setdefault(call, len(self.aggregates))
        return _placeholder(PlaceholderKind.AGGREGATE, number, call.function, call.type)

    def window(self, call: WindowCall) -> Placeholder:
        """The placeholder of a window function."""
        number = self.windows.setdefault(call, len(self.windows))
        return _placeholder(PlaceholderKind.WINDOW, number, call.function, call.type)

    def generate(self, name: str, kind: pa.DataType) -> Placeholder:
        """The placeholder of the next column that the SELECT's generator makes."""
        self.generated += 1
        return _placeholder(PlaceholderKind.GENERATED, self.generated - 1, name, kind)

    def has_aggregate(self, expr: Expr) -> bool:
        """Whether an aggregate is in ``expr``, maybe inside a window function."""
        windows = list(self.windows)
        used = [
            windows[part.number]
            for part in parts(expr)
            if isinstance(part, Placeholder) and part.kind is PlaceholderKind.WINDOW
        ]
        inside = [
            one for call in used for one in (*call.arguments, *call.partition_by, *(key.expr for key in call.order_by))
        ]
        return any(has_placeholder(one, PlaceholderKind.AGGREGATE) for one in (expr, *inside))


def has_placeholder(expr: Expr, kind: PlaceholderKind) -> bool:
    """Whether a placeholder of this kind is in ``expr``."""
    return any(isinstance(part, Placeholder) and part.kind is kind for part in parts(expr))
