"""Distinct emits a row when its multiplicity leaves zero, and takes it back when it returns there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.ivm.kernel.state import State


class Distinct(Operator):
    """Each different row once. Floats must be normalised before."""

    consolidated = True

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        super().__init__(types)
        self._counts = AdditiveArrangement(self.types, 1)

    @property
    def states(self) -> Sequence[State]:
        """How often each row occurs."""
        return (self._counts,)

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        for column, bound in inputs[0].items():
            self._counts.release(column, bound)
        return inputs[0]

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        changed = consolidate(deltas[0])
        if not len(changed):
            return self.nothing
        old = self._counts.lookup(changed.columns)[:, 0]
        new = old + changed.weights
        self._stage(lambda: self._counts.add(changed.columns, changed.weights[:, None]))
        crossing = (new > 0).astype(np.int64) - (old > 0)
        return Batch(changed.columns, crossing).filter(crossing != 0)
