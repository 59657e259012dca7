"""INTERSECT and EXCEPT are functions of how often a row occurs on either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.frontier import Frontier, least
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import group_rows
from weirflow.sql.plan import SetKind

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.state import State


class SetOperation(Operator):
    """INTERSECT or EXCEPT of two inputs, as sets or (``keep_all``) as multisets. Floats must be normalised before."""

    consolidated = True

    def __init__(self, types: Sequence[pa.DataType], kind: SetKind, *, keep_all: bool) -> None:
        super().__init__(types)
        self._kind = kind
        self._keep_all = keep_all
        self._counts = AdditiveArrangement(self.types, 2)

    @property
    def states(self) -> Sequence[State]:
        """How often each row occurs on the left and on the right."""
        return (self._counts,)

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        frontier = least(inputs)
        for column, bound in frontier.items():
            self._counts.release(column, bound)
        return frontier

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        left, right = deltas
        both = Batch.concat([left, right])
        if not len(both):
            return self.nothing
        order, starts, _ = group_rows(both.columns, len(both))
        sides = np.zeros((len(both), 2), np.int64)
        sides[: len(left), 0] = left.weights
        sides[len(left) :, 1] = right.weights
        change = np.add.reduceat(sides[order], starts, axis=0)
        rows = take_columns(both.columns, order[starts])
        old = self._counts.lookup(rows)
        self._stage(lambda: self._counts.add(rows, change))
        difference = self._multiplicity(old + change) - self._multiplicity(old)
        return Batch(rows, difference).filter(difference != 0)

    def _multiplicity(self, counts: np.ndarray) -> np.ndarray:
        """How often the result holds a row that occurs ``counts`` times on either side."""
        left, right = counts[:, 0], counts[:, 1]
        if self._kind is SetKind.INTERSECT:
            several = np.minimum(left, right)
        elif self._keep_all:
            several = left - right
        else:
            several = np.where(right > 0, 0, left)
        clipped: np.ndarray = np.clip(several, 0, None if self._keep_all else 1)
        return clipped
