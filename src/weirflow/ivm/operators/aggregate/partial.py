"""Aggregates in two parts: what a delta adds to its groups is found where its rows are, and added up somewhere else.

The first part keeps nothing. However many rows of a delta have the same key, one row of integers goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.operators.aggregate.functions import is_linear
from weirflow.ivm.operators.aggregate.operator import TOTALS, Aggregate
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.sql.expr import AggregateCall, Column, Expr

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.ivm.operators.aggregate.totals.doubles import Escapes

_MARKS = 2
_MANY = 1 << 20
"""So many rows of parts are added up before there are more."""


def has_parts(calls: Sequence[AggregateCall]) -> bool:
    """Whether what a delta adds to a group does not depend on what the group was."""
    return all(is_linear(call) and not call.distinct for call in calls)


class PartialAggregate(Aggregate):
    """What a delta adds to the groups: their keys, two marks, and the integers of all calls."""

    consolidated = False

    def __init__(self, keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> None:
        super().__init__(keys, calls)
        marks = [pa.int32()] * _MARKS
        self.types = (*self.types[: len(keys)], *marks, *[pa.int64()] * self._linear_width)
        self.nothing = Batch.empty(self.types)
        self._fused = None  # groups are not replaced
        self._escaped: list[tuple[int, Escapes]] = []

    @property
    def states(self) -> Sequence[State]:
        """None."""
        return ()

    def start(self) -> Batch:
        """Nothing."""
        return self.nothing

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        if not len(delta):
            return self.nothing
        self._escaped = []
        groups, _, totals = self._grouped(delta)
        return self._parts(groups, totals)

    def of_slices(self, slices: Iterable[Batch]) -> Batch:
        """What ``step`` gives for a delta that comes in slices; of these and their parts only some are held at a time.

        Each slice is added up while the next one is not there yet.
        """
        parts, count = [self.nothing], 0
        for delta in slices:
            parts.append(self.step([delta]))
            count += len(parts[-1])
            if count > _MANY and count > 2 * len(parts[0]):
                parts = [self._summed(Batch.concat(parts))]
                count = len(parts[0])
        return self._summed(Batch.concat(parts)) if len(parts) > 1 else parts[0]

    def _summed(self, parts: Batch) -> Batch:
        """The same parts, those of equal keys as one."""
        if not len(parts):
            return parts
        self._escaped = []
        groups, _, totals = self._of_parts(parts)
        return self._parts(groups, totals)

    def _parts(self, groups: Groups, totals: np.ndarray) -> Batch:
        changed = np.flatnonzero(totals.any(axis=1))
        parts = [self._rows(groups, changed, np.full(len(changed), TOTALS), np.zeros(len(changed)), totals[changed])]
        for number, (rows, slots, amounts) in self._escaped:
            integers = np.zeros((len(rows), self._linear_width), np.int64)
            integers[:, 0] = amounts
            parts.append(self._rows(groups, groups.numbers[rows], np.full(len(rows), number), slots, integers))
        return Batch.concat(parts)

    def _escape(self, groups: Groups, number: int, escaped: Escapes) -> None:
        del groups
        self._escaped.append((number, escaped))

    def _rows(self, groups: Groups, of: np.ndarray, call: np.ndarray, slot: np.ndarray, integers: np.ndarray) -> Batch:
        marks = [pa.array(mark.astype(np.int32)) for mark in (call, slot)]
        columns = [pa.array(np.ascontiguousarray(integers[:, place])) for place in range(self._linear_width)]
        return Batch((*take_columns(groups.keys, of), *marks, *columns), np.ones(len(of), np.int64))


class FinalAggregate(Aggregate):
    """Adds up what a ``PartialAggregate`` of the same keys and calls has found."""

    def __init__(self, keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> None:
        super().__init__([Column(place, "", key.type) for place, key in enumerate(keys)], calls)
        self._fused = None  # what comes in are parts, not rows

    def _grouped(self, delta: Batch) -> tuple[Groups, Sequence[pa.Array], np.ndarray]:
        return self._of_parts(delta)
