"""Generate repeats a row for each row that its generator makes of it; it keeps no state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.ivm.kernel.expressions.generators import compile_generator
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weirflow.sql.expr import Call


class Generate(Operator):
    """The input's columns, then those of ``explode``, ``posexplode`` or ``inline``."""

    def __init__(self, types: Sequence[pa.DataType], generator: Call, *, outer: bool) -> None:
        super().__init__(types)
        self._generate = compile_generator(generator, outer=outer)

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """See ``Operator``."""
        (delta,) = deltas
        owners, made = self._generate(delta.columns, len(delta))
        rows = delta.take(owners.to_numpy())
        return Batch((*rows.columns, *made), rows.weights)
