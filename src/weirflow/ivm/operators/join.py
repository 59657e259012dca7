"""Join is bilinear: the change of A join B is dA with old B, old A with dB, and dA with dB; weights multiply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weirflow.ivm.kernel.arrangement import Matches
    from weirflow.ivm.operators.arrange import Arrange
    from weirflow.sql.expr import Expr


class Join(Operator):
    """The inner join of two arranged inputs on their keys.

    Inputs hold no row with a NULL key. Output columns are chosen from the left's then the right's by index, and
    ``residual`` is a condition over the left's columns followed by the right's.
    """

    def __init__(self, left: Arrange, right: Arrange, left_columns: Sequence[int], right_columns: Sequence[int], residual: Expr | None) -> None:
        super().__init__([*(left.types[index] for index in left_columns), *(right.types[index] for index in right_columns)])
        self._left = left
        self._right = right
        self._left_columns = tuple(left_columns)
        self._right_columns = tuple(right_columns)
        self._residual = compile_expression(residual) if residual is not None else None

    def step(self, deltas: Sequence[Batch]) -> Batch:
        """See ``Operator``."""
        left, right = deltas
        keys = self._left.key_count
        parts = []
        if len(left):
            parts.append(self._joined(left, self._right.arrangement.probe(left.columns[:keys], count=len(left))))
        if len(right):
            parts.append(self._joined_reversed(right, self._left.arrangement.probe(right.columns[:keys], count=len(right))))
        if len(left) and len(right):
            new = Arrangement(self._right.types, keys)
            new.insert(right)
            parts.append(self._joined(left, new.probe(left.columns[:keys], count=len(left))))
        present = [part for part in parts if len(part)]
        return Batch.concat(present) if present else Batch.empty(self.types)

    def _joined(self, left: Batch, matches: Matches) -> Batch:
        return self._combined(left.take(matches.probe_index), matches.batch)

    def _joined_reversed(self, right: Batch, matches: Matches) -> Batch:
        return self._combined(matches.batch, right.take(matches.probe_index))

    def _combined(self, left: Batch, right: Batch) -> Batch:
        return combine(left, right, self._left_columns, self._right_columns, self._residual)


def combine(left: Batch, right: Batch, left_columns: Sequence[int], right_columns: Sequence[int], residual: object) -> Batch:
    """Pairs of rows side by side: those that meet the residual condition, with the chosen columns."""
    weights = left.weights * right.weights
    if residual is not None and len(left):
        met = residual((*left.columns, *right.columns), len(left))  # type: ignore[operator]  # an Evaluator
        keep = np.flatnonzero(pc.fill_null(met, False).to_numpy(zero_copy_only=False))  # noqa: FBT003 - pc's own signature
        left, right, weights = left.take(keep), right.take(keep), weights[keep]
    columns: list[pa.Array] = [left.columns[index] for index in left_columns]
    columns += [right.columns[index] for index in right_columns]
    return Batch(tuple(columns), weights)
