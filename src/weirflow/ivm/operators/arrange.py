"""Arrange integrates a delta into an arrangement that several operators can probe; it passes the delta on.

Its columns are the key's, then the payload's. Readers see the state before the tick until the circuit commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.operators.operator import Operator

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.zset.batch import Batch


class Meeting(Enum):
    """How rows of an arrangement come to meet those of a join's other side, where a circuit is cut into shards."""

    BY_KEY = auto()
    """Rows of equal keys of both sides are brought together."""
    WHOLE = auto()
    """There are no keys, and each row of the other side meets all of these."""
    IN_PLACE = auto()
    """One of the sides is everywhere already, so that nothing has to move."""


class Arrange(Operator):
    """A delta made probeable by its first ``key_count`` columns.

    Attributes:
        meeting: how its rows come to meet others.
    """

    def __init__(self, types: Sequence[pa.DataType], key_count: int, meeting: Meeting = Meeting.BY_KEY) -> None:
        super().__init__(types)
        self.meeting = meeting
        self.arrangement = Arrangement(self.types, key_count)
        self.key_count = key_count

    @property
    def states(self) -> Sequence[State]:
        """The arrangement."""
        return (self.arrangement,)

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """For a while, the arrangement looks as before its first row."""
        kept, self.arrangement = self.arrangement, Arrangement(self.types, self.key_count)
        try:
            yield
        finally:
            self.arrangement = kept

    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        """As the input. Nothing goes: rows are probed by others, and new views are filled from them."""
        return inputs[0]

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        if len(delta):
            self._stage(lambda: self.arrangement.insert(delta))
        return delta
