"""Consolidate lets rows that cancel each other within the delta vanish before they cost anything downstream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch


class Consolidate(Operator):
    """The same delta, each different row once."""

    consolidated = True

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        return consolidate(deltas[0])
