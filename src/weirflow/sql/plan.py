"""The logical plan: relational operators over typed expressions, as a tree of frozen nodes.

A node's ``fields`` are its output columns; expressions refer to the columns of the node's input by index. The input
of a ``Join``'s residual condition is the left side's columns followed by the right side's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.sql.tree import Tree
from weirflow.sql.types import DOUBLE, INT

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.errors import SqlPosition
    from weirflow.sql.expr import AggregateCall, Call, Expr, SortKey, WindowCall
    from weirflow.types import VectorIndexKind, VectorMetric


@dataclass(frozen=True)
class Field:
    """A named, typed output column."""

    name: str
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class Scan(Tree):
    """All rows of a source or of another view."""

    name: str
    fields: tuple[Field, ...]
    position: SqlPosition | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Values(Tree):
    """Constant rows; no columns and one row for a SELECT without FROM."""

    rows: tuple[tuple[Expr, ...], ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False)
class Project(Tree):
    """One output column for each expression."""

    input: Plan
    expressions: tuple[Expr, ...]
    fields: tuple[Field, ...]


def _set_fields(node: Filter | Join | Distinct | TopK | Nearest, fields: tuple[Field, ...]) -> None:
    """Columns that follow from a node's inputs, known from the beginning: asking the inputs would recurse."""
    object.__setattr__(node, "fields", fields)


@dataclass(frozen=True, eq=False)
class Filter(Tree):
    """The rows for which the predicate is true; not those for which it is NULL."""

    input: Plan
    predicate: Expr
    fields: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    """Those of the input."""

    def __post_init__(self) -> None:
        _set_fields(self, self.input.fields)


class JoinKind(StrEnum):
    """Which rows a join returns."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    """Left rows with a match; left columns only."""
    ANTI = "anti"
    """Left rows without a match; left columns only."""


@dataclass(frozen=True, eq=False)
class Join(Tree):
    """A join on equal keys and a residual condition; no keys at all is a cross join.

    ``null_aware`` is NOT IN: an ANTI join that returns nothing for NULL keys on either side, as SQL has it.
    """

    left: Plan
    right: Plan
    kind: JoinKind
    left_keys: tuple[Expr, ...]
    right_keys: tuple[Expr, ...]
    residual: Expr | None = None
    null_aware: bool = False
    fields: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    """Left columns, then right ones unless the kind has left rows only."""

    def __post_init__(self) -> None:
        left_only = self.kind in (JoinKind.SEMI, JoinKind.ANTI)
        _set_fields(self, self.left.fields if left_only else self.left.fields + self.right.fields)

    @property
    def own_breadth(self) -> int:
        """The columns of the join."""
        return len(self.fields)


@dataclass(frozen=True, eq=False)
class Aggregate(Tree):
    """Groups of equal keys; output is the keys, then one column for each call.

    Without keys there is exactly one group, also over nothing. With ``grouping_sets`` (indexes into the keys) the rows
    are grouped once for each set, keys outside it are NULL, and a last column holds Spark's grouping id (bigint).
    """

    input: Plan
    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, eq=False)
class Window(Tree):
    """The input's columns, then one for each window function."""

    input: Plan
    calls: tuple[WindowCall, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False)
class FirstRanked(Window):
    """A window of which only those rows are asked for whose rank, a call of it, is at most ``most``.

    Every call is computed from rows before, the row itself and those with equal sort keys. Other rows may be left out:
    a filter above says again which are wanted.
    """

    rank: int
    most: int


@dataclass(frozen=True, eq=False)
class Distinct(Tree):
    """Each different row once."""

    input: Plan
    fields: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    """Those of the input."""

    def __post_init__(self) -> None:
        _set_fields(self, self.input.fields)


@dataclass(frozen=True, eq=False)
class Union(Tree):
    """All rows of all inputs (UNION ALL); their types are equal."""

    inputs: tuple[Plan, ...]
    fields: tuple[Field, ...]


class SetKind(StrEnum):
    """The set operations besides union."""

    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True, eq=False)
class SetOperation(Tree):
    """INTERSECT or EXCEPT, as sets or (``all``) as multisets; types are equal."""

    kind: SetKind
    all: bool
    left: Plan
    right: Plan
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False)
class TopK(Tree):
    """The rows from ``offset`` on, ``limit`` of them (None: all), in the given order."""

    input: Plan
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    fields: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    """Those of the input."""

    def __post_init__(self) -> None:
        _set_fields(self, self.input.fields)


@dataclass(frozen=True, eq=False)
class Generate(Tree):
    """The input's columns, then those of a generator (``explode``, ``posexplode``, ``inline``, ``stack``...).

    A row is repeated for each row it generates; with ``outer`` a row that generates none is kept once, with NULLs.
    """

    input: Plan
    generator: Call
    outer: bool
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False)
class SessionWindow(Tree):
    """The input's columns, then ``session_window``: rows of equal keys whose times are within ``gap_us`` merge."""

    input: Plan
    keys: tuple[Expr, ...]
    time: Expr
    gap_us: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False)
class Recursive(Tree):
    """A recursive CTE: ``base``, then ``step`` over the rows found last, until none is new.

    ``distinct`` is UNION (a row is found once); otherwise UNION ALL. Inside ``step`` a ``Scan`` of ``name`` is the
    rows found last.
    """

    name: str
    base: Plan
    step: Plan
    distinct: bool
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class VectorIndex:
    """What finds the nearest vectors approximately, with the parameters it was given."""

    kind: VectorIndexKind
    parameters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Nearest(Tree):
    """Each row of the left side beside the ``limit`` rows of the right side whose vectors are nearest to its own.

    The columns chosen of the left side, then those of the right, the distance and, if ``ranked``, the place from 1 on.
    Rows that are equally far are ordered by ``order``, over the right side, then by all of the chosen columns.

    Attributes:
        query: the vector of a left row.
        document: the vector of a right row.
        nulls_first: whether rows whose distance is NULL come first, or last.
        dimension: which all vectors must have, if it was declared.
        index: what finds the nearest approximately; None if the result is exact.
    """

    left: Plan
    right: Plan
    query: Expr
    document: Expr
    metric: VectorMetric
    order: tuple[SortKey, ...]
    limit: int
    nulls_first: bool
    left_columns: tuple[int, ...]
    right_columns: tuple[int, ...]
    ranked: bool = False
    dimension: int | None = None
    index: VectorIndex | None = None
    fields: tuple[Field, ...] = field(init=False, compare=False, repr=False)
    """Those chosen of both sides, the distance and the rank."""

    def __post_init__(self) -> None:
        chosen = [self.left.fields[at] for at in self.left_columns] + [
            self.right.fields[at] for at in self.right_columns
        ]
        made = [Field("_distance", DOUBLE), *([Field("_rank", INT)] if self.ranked else [])]
        _set_fields(self, (*chosen, *made))

    @property
    def own_breadth(self) -> int:
        """The columns of both sides."""
        return len(self.left.fields) + len(self.right.fields)


Plan = (
    Scan
    | Values
    | Project
    | Filter
    | Join
    | Aggregate
    | Window
    | FirstRanked
    | Distinct
    | Union
    | SetOperation
    | TopK
    | Generate
    | SessionWindow
    | Recursive
    | Nearest
)
