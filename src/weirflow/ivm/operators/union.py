"""Union adds up the deltas of its inputs; it keeps no state."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from weirflow.ivm.kernel.frontier import Frontier, least
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch


class Union(Operator):
    """All rows of all inputs."""

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        return least(inputs)

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        present = [delta for delta in deltas if len(delta)]
        if not present:
            return self.nothing
        return present[0] if len(present) == 1 else Batch.concat(present)
