"""Places held for values that a query computes later than it names them.

While a SELECT is bound, an aggregate or window function inside an expression is a ``Slot``. Equal calls share one slot,
so expressions that contain them still compare by structure. When the query is put together, slots become columns of the
Aggregate, Window and Generate nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.sql.expr import AggregateCall, Column, Expr, WindowCall
from weirflow.sql.traverse import parts

if TYPE_CHECKING:
    import pyarrow as pa


class SlotKind(StrEnum):
    """What computes the value of a slot."""

    AGGREGATE = "aggregate"
    WINDOW = "window"
    GENERATED = "generated"


@dataclass(frozen=True, eq=False)
class Slot(Column):
    """A column that is not there yet; its ``index`` is that of no column."""

    kind: SlotKind
    number: int


def _slot(kind: SlotKind, number: int, name: str, type_: pa.DataType) -> Slot:
    return Slot(-1, name, type_, kind, number)


@dataclass
class Slots:
    """The calls of one SELECT, in the order they were met."""

    aggregates: dict[AggregateCall, int] = field(default_factory=dict)
    windows: dict[WindowCall, int] = field(default_factory=dict)
    generated: int = 0

    def aggregate(self, call: AggregateCall) -> Slot:
        """The slot of an aggregate."""
        number = self.aggregates.setdefault(call, len(self.aggregates))
        return _slot(SlotKind.AGGREGATE, number, call.function, call.type)

    def window(self, call: WindowCall) -> Slot:
        """The slot of a window function."""
        number = self.windows.setdefault(call, len(self.windows))
        return _slot(SlotKind.WINDOW, number, call.function, call.type)

    def generate(self, name: str, kind: pa.DataType) -> Slot:
        """The slot of the next column that the SELECT's generator makes."""
        self.generated += 1
        return _slot(SlotKind.GENERATED, self.generated - 1, name, kind)


def has_slot(expr: Expr, kind: SlotKind) -> bool:
    """Whether a slot of this kind is in ``expr``."""
    return any(isinstance(part, Slot) and part.kind is kind for part in parts(expr))
