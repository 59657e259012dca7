"""Operators that can be stepped several times within a tick: each step reads what the earlier ones brought.

``commit`` ends one step. ``keep`` or ``forget`` of ``layer`` then decides about all steps of the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.kernel.layered import LayeredArrangement, LayeredSums
from weirflow.ivm.operators.arrange import Arrange, Meeting
from weirflow.ivm.operators.distinct import Distinct

if TYPE_CHECKING:
    import pyarrow as pa


class LayeredArrange(Arrange):
    """A delta made probeable, also by later steps of the same tick."""

    def __init__(self, types: Sequence[pa.DataType], key_count: int, meeting: Meeting = Meeting.BY_KEY) -> None:
        super().__init__(types, key_count, meeting)
        self.layer = LayeredArrangement(self.types, key_count)
        self.arrangement = self.layer


class LayeredDistinct(Distinct):
    """Each different row once, also over several steps of the same tick."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        super().__init__(types)
        self.layer = LayeredSums(self.types, 1)
        self._counts = self.layer
