"""Negate turns insertions into retractions and back; it keeps no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.ivm.operators.operator import Operator

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch


class Negate(Operator):
    """The same rows with opposite weights, to take them away from another collection."""

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        return deltas[0].negate()
