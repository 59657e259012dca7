"""The nearest of each shard, and the nearest of all: lists of shards meet at their query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.ivm.operators.map import Filter
from weirflow.ivm.operators.nearest.copies import Copies
from weirflow.ivm.operators.window.changes import Limit
from weirflow.ivm.operators.window.operator import Window
from weirflow.ivm.sharded.plan.routes import Everywhere, Partitioning, Single, ToKeys, of_row
from weirflow.sql.expr import Call, Column, Expr, Literal, SortKey, WindowCall
from weirflow.sql.types import BOOLEAN, INT, is_orderable

if TYPE_CHECKING:
    from weirflow.ivm.operators.nearest.operator import Nearest


@dataclass(frozen=True)
class MergedNearest:
    """What lists on each shard, where lists go, what ranks them there, which are the first, and what is shown."""

    local: Nearest
    route: ToKeys
    ranked: Window
    first: Filter
    output: Copies


def is_near_in_place(given: Sequence[Partitioning]) -> bool:
    """Whether each query is where all documents are."""
    queries, documents = given
    if isinstance(documents, Everywhere):
        return of_row(queries) or isinstance(queries, Everywhere)
    return isinstance(documents, Single) and isinstance(queries, Single)


def merged_nearest(whole: Nearest) -> MergedNearest:
    """The steps that together do what an operator does."""
    local = whole.partial()
    columns = [Column(at, "", kind) for at, kind in enumerate(local.types)]
    spec, width = whole.spec, len(whole.left_types)
    # The query with its hash, how often it is there, what is listed, and the distance.
    query, copies, listed, distance = columns[: width + 1], columns[width + 1], columns[width + 2 : -1], columns[-1]
    order = [SortKey(distance, nulls_first=spec.order.nulls_first)]
    order += [SortKey(listed[key.index - 2], key.descending, key.nulls_first) for key in spec.order.keys]
    order += [SortKey(one) for one in listed if is_orderable(one.type)]
    call = WindowCall("row_number", (), INT, (*query, copies), tuple(order), None)
    ranked = Window(local.types, [call], Limit(0, spec.limit))
    rank = Column(len(columns), "", INT)
    first = Filter(ranked.types, Call("less_equal", (rank, Literal(spec.limit, INT)), BOOLEAN))
    shown: list[Expr] = [*(columns[1 + at] for at in spec.left_columns), *listed[: spec.shown], distance]
    output = Copies(ranked.types, copies.index, [*shown, rank] if spec.ranked else shown)
    return MergedNearest(local, ToKeys((columns[0],)), ranked, first, output)
