"""Typed expressions: what a logical plan computes for each row.

Every expression knows its Arrow type. Names are resolved to column indexes, implicit casts are explicit, and
syntax that is only sugar (BETWEEN, IF, NVL, ...) is gone, so that whoever evaluates them sees few shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from weirflow.sql.tree import LATER, Tree

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition
    from weirflow.sql.plan import Plan


@dataclass(frozen=True, eq=False)
class Column(Tree):
    """The input's column at ``index``; ``name`` is for people."""

    is_leaf = True

    index: int
    name: str = field(compare=False)
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class OuterColumn(Tree):
    """A column of the query around a correlated subquery; gone once subqueries are joins."""

    is_leaf = True
    is_outward = True

    index: int
    name: str = field(compare=False)
    type: pa.DataType
    depth: int = 1
    """How many queries further out: 1 is the one directly around."""


@dataclass(frozen=True, eq=False)
class Literal(Tree):
    """A constant: the Python value that pyarrow gives for its type, or None for NULL."""

    is_leaf = True

    value: Any
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class Call(Tree):
    """A scalar function or operator applied to arguments of exactly the types it takes.

    ``function`` is a canonical name of ``weirflow.sql.functions``: ``add``, ``equal``, ``cast``, ``case``, ``upper``...
    ``case`` has the arguments condition, value, condition, value, ..., default.
    """

    function: str
    arguments: tuple[Expr, ...]
    type: pa.DataType
    position: SqlPosition | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class ScalarSubquery(Tree):
    """The single value of a one-column query, NULL if it has no row; an error if it has several."""

    plan: Plan
    type: pa.DataType
    position: SqlPosition | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Exists(Tree):
    """Whether a query has a row."""

    plan: Plan
    type: pa.DataType
    position: SqlPosition | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class InSubquery(Tree):
    """Whether a query has a row equal to ``values``, with SQL's logic of NULLs."""

    values: tuple[Expr, ...]
    plan: Plan
    type: pa.DataType
    position: SqlPosition | None = field(default=None, compare=False)


Expr = Column | OuterColumn | Literal | Call | ScalarSubquery | Exists | InSubquery


@dataclass(frozen=True, eq=False)
class SortKey(Tree):
    """One key of an order. Spark's default: NULLs first when ascending, last when descending."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, eq=False)
class AggregateCall(Tree):
    """An aggregate function over the rows of a group.

    ``function`` is a canonical name: ``count`` (no arguments: COUNT(*)), ``sum``, ``avg``, ``min``, ``max_by``...
    """

    function: str
    arguments: tuple[Expr, ...]
    type: pa.DataType
    distinct: bool = False
    filter: Expr | None = None
    order_by: tuple[SortKey, ...] = ()
    position: SqlPosition | None = field(default=None, compare=False)


class FrameUnit(StrEnum):
    """What a window frame counts."""

    ROWS = "rows"
    RANGE = "range"


@dataclass(frozen=True)
class Frame:
    """A window frame. A bound is an offset from the current row (negative: before); None is unbounded.

    With a ``zone``, whole days of an offset in microseconds are counted by the clocks there.
    """

    unit: FrameUnit
    start: int | None
    end: int | None
    zone: str | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True, eq=False)
class WindowCall(Tree):
    """A window function: ranking, offset, or an aggregate over a frame."""

    function: str
    arguments: tuple[Expr, ...]
    type: pa.DataType
    partition_by: tuple[Expr, ...]
    order_by: tuple[SortKey, ...]
    frame: Frame | None
    """None for functions without a frame, such as ``row_number``."""
    ignore_nulls: bool = False
    position: SqlPosition | None = field(default=None, compare=False)
