"""Union adds up the deltas of its inputs; it keeps no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.ivm.kernel.frontier import least
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.ivm.kernel.frontier import Frontier


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
