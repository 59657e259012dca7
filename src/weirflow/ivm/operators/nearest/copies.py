"""Copies repeats rows as often as a column of them says, and shows some of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.buffers import raw_values

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.sql.expr import Expr


class Copies(Operator):
    """Row by row; the weight of a row is multiplied by a column of type BIGINT."""

    def __init__(self, types: Sequence[pa.DataType], count: int, shown: Sequence[Expr]) -> None:
        assert count < len(types)
        super().__init__([one.type for one in shown])
        self._count = count
        self._shown = compile_expressions(shown)

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """See ``Operator``."""
        (delta,) = deltas
        columns = self._shown(delta.columns, len(delta))
        return Batch(tuple(columns), delta.weights * raw_values(delta.columns[self._count]))
