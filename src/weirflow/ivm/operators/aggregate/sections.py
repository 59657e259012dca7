"""Sums over a join in sections: calls that read one side only need no more of the other than how often keys occur.

SUM(a.x), SUM(b.y) over a key with n rows on either side takes n + n pairs instead of n times n.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.operators.aggregate.operator import TOTALS
from weirflow.ivm.operators.aggregate.partial import PartialAggregate, has_parts
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.traverse import columns, map_call, remap

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.operator import Aggregate
    from weirflow.ivm.operators.join.operator import Join
    from weirflow.sql.expr import AggregateCall, Expr


@dataclass(frozen=True)
class Section:
    """Some calls of an aggregate.

    Attributes:
        columns: those of the join's output that they and the keys read, in ascending order.
        partial: the calls over just these columns.
        calls: which of the aggregate's calls they are.
        counts: whether this section counts the rows of the groups, which is done once.
    """

    columns: tuple[int, ...]
    partial: PartialAggregate
    calls: tuple[int, ...]
    counts: bool

    def parts(self, slices: Iterable[Batch], whole: Aggregate) -> Batch:
        """What the rows, which have the section's columns, add to the groups: parts of the whole aggregate."""
        own = self.partial.of_slices(slices)
        keys = len(whole.keys)
        marks, slots, *integers = own.columns[keys:]
        mark = marks.to_numpy().copy()
        is_total = mark == TOTALS
        rows = np.zeros((len(own), whole.linear_width), np.int64)
        first = integers[0].to_numpy()
        # The first integer is the group's rows, or the amount of what has escaped.
        rows[:, 0] = first if self.counts else np.where(is_total, 0, first)
        numbers = mark.copy()
        for place, call in enumerate(self.calls):
            mine, theirs = self.partial.slot(place), whole.slot(call)
            for at, column in zip(
                range(theirs.columns.start, theirs.columns.stop), integers[mine.columns], strict=True
            ):
                rows[:, at] = column.to_numpy()
            numbers[mark == mine.number] = theirs.number
        made = [pa.array(np.ascontiguousarray(rows[:, place])) for place in range(whole.linear_width)]
        return Batch((*own.columns[:keys], pa.array(numbers), slots, *made), own.weights)


def sections(join: Join, aggregate: Aggregate, read: Sequence[int]) -> list[Section]:
    """The sections of an aggregate over a join, of whose output it reads the columns ``read``; none if that is no use.

    There are two where each call reads one side at most, and not all the same one.
    """
    if join.has_residual or not has_parts(aggregate.calls):
        return []
    width = len(join.left_columns)
    by_side: dict[bool, list[int]] = {True: [], False: []}
    anywhere: list[int] = []
    for place, call in enumerate(aggregate.calls):
        sides = {read[index] < width for index in _read(call)}
        if len(sides) > 1:
            return []
        (by_side[sides.pop()] if sides else anywhere).append(place)
    if not all(by_side.values()):
        return []
    chosen = [sorted(by_side[True] + anywhere), by_side[False]]
    return [_section(aggregate, read, calls, counts=place == 0) for place, calls in enumerate(chosen)]


def _section(aggregate: Aggregate, read: Sequence[int], chosen: Sequence[int], *, counts: bool) -> Section:
    calls = [aggregate.calls[place] for place in chosen]
    needed = {index for key in aggregate.keys for index in columns(key)} | {
        one for call in calls for one in _read(call)
    }
    kept = sorted({read[index] for index in needed})
    at = {column: place for place, column in enumerate(kept)}

    def moved(expr: Expr) -> Expr:
        return remap(expr, lambda index: at[read[index]])

    partial = PartialAggregate([moved(key) for key in aggregate.keys], [map_call(call, moved) for call in calls])
    return Section(tuple(kept), partial, tuple(chosen), counts)


def _read(call: AggregateCall) -> Iterator[int]:
    for expr in (*call.arguments, *(() if call.filter is None else (call.filter,))):
        yield from columns(expr)
