"""Recompute runs a whole query over all rows of its inputs and emits how the result differs from the last one.

The difference is in canonical order, that of the rows' hashes: it depends on the rows alone, not on how they were
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate, group_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.operators.arrange import Arrange


class Recompute(Operator):
    """A query that has no delta rule.

    Args:
        types: of the result's columns.
        inputs: the arrangements that hold the rows of the inputs.
        run: the query; it gets all rows of each input and returns those of the result.
        last: all rows of the last result.
    """

    consolidated = True

    def __init__(
        self,
        types: Sequence[pa.DataType],
        inputs: Sequence[Arrange],
        run: Callable[[Sequence[Batch]], Batch],
        last: Callable[[], Batch],
    ) -> None:
        super().__init__(types)
        self._inputs = tuple(inputs)
        self._run = run
        self._last = last
        self._begun: Batch | None = None

    def start(self) -> Batch:
        """The query over nothing, which is the last result until the first commit."""
        self._begun = self._run([Batch.empty(one.types) for one in self._inputs])
        return self._begun

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        rows = [
            consolidate(Batch.concat([*one.arrangement.rows(), delta]))
            for one, delta in zip(self._inputs, deltas, strict=True)
        ]
        last = self._last() if self._begun is None else self._begun
        change = consolidate(Batch.concat([self._run(rows), last.negate()]))
        return change.take(group_rows(change.columns, len(change)).order)

    @override
    def commit(self) -> None:
        super().commit()
        self._begun = None
