"""Places held for values that a query computes later than it names them.

While a SELECT is bound, an aggregate or window function inside an expression is a column with an index far below
zero, its slot. Equal calls share one slot, so expressions that contain them still compare by structure. When the
query is put together, slots become columns of the Aggregate, Window and Generate nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weirflow.sql.expr import AggregateCall, Column, Expr, WindowCall
from weirflow.sql.traverse import parts

if TYPE_CHECKING:
    import pyarrow as pa

_AGGREGATES = -1_000_000
_WINDOWS = -2_000_000
_GENERATED = -3_000_000
_WIDTH = 1_000_000


@dataclass
class Slots:
    """The calls of one SELECT, in the order they were met."""

    aggregates: dict[AggregateCall, int] = field(default_factory=dict)
    windows: dict[WindowCall, int] = field(default_factory=dict)
    generated: int = 0

    def aggregate(self, call: AggregateCall) -> Column:
        """The slot of an aggregate."""
        number = self.aggregates.setdefault(call, len(self.aggregates))
        return Column(_AGGREGATES + number, call.function, call.type)

    def window(self, call: WindowCall) -> Column:
        """The slot of a window function."""
        number = self.windows.setdefault(call, len(self.windows))
        return Column(_WINDOWS + number, call.function, call.type)

    def generate(self, name: str, kind: pa.DataType) -> Column:
        """The slot of the next column that the SELECT's generator makes."""
        self.generated += 1
        return Column(_GENERATED + self.generated - 1, name, kind)


def aggregate_index(column: Column) -> int | None:
    """Which aggregate the slot is for, or None if it is no aggregate's slot."""
    return _within(column, _AGGREGATES)


def window_index(column: Column) -> int | None:
    """Which window function the slot is for, or None if it is no window function's slot."""
    return _within(column, _WINDOWS)


def generated_index(column: Column) -> int | None:
    """Which generated column the slot is for, or None if it is not for one."""
    return _within(column, _GENERATED)


def has_aggregate(expr: Expr) -> bool:
    """Whether an aggregate's slot is in ``expr``."""
    return any(isinstance(part, Column) and aggregate_index(part) is not None for part in parts(expr))


def has_window(expr: Expr) -> bool:
    """Whether a window function's slot is in ``expr``."""
    return any(isinstance(part, Column) and window_index(part) is not None for part in parts(expr))


def _within(column: Column, base: int) -> int | None:
    return column.index - base if base <= column.index < base + _WIDTH // 2 else None
