"""The nearest rows as an operator: documents are read where a source or view keeps its rows, if it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weirflow.ivm.compiler.builder import ArrangedNode, CircuitBuilder
from weirflow.ivm.compiler.columns import identity, moved
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.nearest.approximate import ApproximateNearest
from weirflow.ivm.operators.nearest.documents import DocumentColumns, Documents
from weirflow.ivm.operators.nearest.listed import FIRST, ListOrder
from weirflow.ivm.operators.nearest.operator import Nearest, NearestSpec
from weirflow.sql import plan as logical
from weirflow.sql.clock.reading import reads_clock
from weirflow.sql.expr import Call, Column, Expr
from weirflow.sql.foreign import FOREIGN
from weirflow.sql.passes.conditions import conjunction
from weirflow.sql.traverse import parts, rewrite

Stored = Callable[[str], ArrangedNode | None]
"""Where all rows of a relation are kept for others to read; None if they are not."""


class NearestNode(NamedTuple):
    """An operator, the nodes that it reads, and all that makes it differ from others."""

    operator: Nearest
    inputs: list[int]
    spec: tuple[object, ...]


@dataclass(frozen=True)
class _KeptRows:
    """Rows of a relation: which of them, and what, over its columns."""

    name: str
    chosen: Expr | None
    columns: tuple[Expr, ...]


def lowered_nearest(builder: CircuitBuilder, plan: logical.Nearest, stored: Stored) -> NearestNode:
    """The operator of a plan."""
    columns = identity(plan.right.fields)
    shown = [columns[at] for at in plan.right_columns]
    listed: list[Expr] = list(dict.fromkeys([*shown, *(key.expr for key in plan.order)]))
    if len(set(shown)) < len(shown):  # a column that is shown twice is listed twice
        listed = [*shown, *(key.expr for key in plan.order if key.expr not in shown)]
    by = tuple(SortColumn(FIRST + listed.index(key.expr), key.descending, key.nulls_first) for key in plan.order)
    arranged, read = _documents(builder, plan, listed, stored)
    spec = NearestSpec(
        plan.metric,
        plan.query,
        plan.limit,
        ListOrder(plan.nulls_first, by),
        plan.left_columns,
        len(shown),
        plan.ranked,
        plan.dimension,
    )
    documents = Documents(builder.arrange_at(arranged), read, plan.metric, plan.dimension)
    types = [field.type for field in plan.left.fields]
    inputs = [builder.node(plan.left), arranged.node]
    if plan.index is None:
        return NearestNode(Nearest(types, documents, spec), inputs, (spec, read))
    return NearestNode(ApproximateNearest(types, documents, spec, plan.index), inputs, (spec, read, plan.index))


def _documents(
    builder: CircuitBuilder, plan: logical.Nearest, listed: Sequence[Expr], stored: Stored
) -> tuple[ArrangedNode, DocumentColumns]:
    """Where documents are kept, and what is read of them there."""
    kept = _kept(plan.right)
    arranged = None if kept is None else stored(kept.name)
    if kept is not None and arranged is not None:
        vector = _within(plan.document, kept.columns)
        if isinstance(vector, Column):
            return arranged, _read(arranged, kept.chosen, vector, [_within(one, kept.columns) for one in listed])
    if isinstance(plan.document, Column):
        arranged = builder.arrange(builder.node(plan.right), (), plan.right.fields)
        return arranged, _read(arranged, None, plan.document, listed)
    # A vector that is computed is kept with the row.
    fields = (*plan.right.fields, logical.Field("_vector", plan.document.type))
    wider = logical.Project(plan.right, (*identity(plan.right.fields), plan.document), fields)
    arranged = builder.arrange(builder.node(wider), (), fields)
    return arranged, _read(arranged, None, identity(fields)[-1], listed)


def _read(arranged: ArrangedNode, chosen: Expr | None, vector: Column, listed: Sequence[Expr]) -> DocumentColumns:
    places = arranged.positions
    return DocumentColumns(
        None if chosen is None else moved(chosen, places),
        places[vector.index],
        tuple(moved(one, places) for one in listed),
    )


def _kept(plan: logical.Plan) -> _KeptRows | None:
    """The plan as rows of one relation; None if it is anything else, or what Spark, Python or the clock decides."""
    columns: tuple[Expr, ...] = identity(plan.fields)
    chosen: list[Expr] = []
    while not isinstance(plan, logical.Scan):
        if isinstance(plan, logical.Filter):
            chosen.append(plan.predicate)
        elif isinstance(plan, logical.Project):
            below = plan.expressions
            columns = tuple(_within(one, below) for one in columns)
            chosen = [_within(one, below) for one in chosen]
        else:
            return None
        plan = plan.input
    if any(_is_from_outside(one) for one in (*columns, *chosen)):
        return None
    return _KeptRows(plan.name, conjunction(reversed(chosen)), columns)


def _within(expr: Expr, below: Sequence[Expr]) -> Expr:
    return rewrite(expr, lambda part: below[part.index] if isinstance(part, Column) else None)


def _is_from_outside(expr: Expr) -> bool:
    return reads_clock(expr) or any(isinstance(part, Call) and part.function in FOREIGN for part in parts(expr))
