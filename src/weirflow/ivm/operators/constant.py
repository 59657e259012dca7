"""Constant is a fixed collection: all of its rows at the start, no delta ever after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.operators.operator import Operator

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.zset.batch import Batch


class Constant(Operator):
    """The rows of VALUES, or the one row of a SELECT without FROM."""

    def __init__(self, types: Sequence[pa.DataType], rows: Batch) -> None:
        super().__init__(types)
        self._rows = rows

    def start(self) -> Batch:
        """All of it."""
        return self._rows

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """Never changes."""
        del deltas
        return self.nothing
