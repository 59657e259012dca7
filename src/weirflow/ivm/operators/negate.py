"""Negate turns insertions into retractions and back; it keeps no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.ivm.operators.operator import Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.ivm.zset.batch import Batch


class Negate(Operator):
    """The same rows with opposite weights, to take them away from another collection."""

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """See ``Operator``."""
        return deltas[0].negate()
