"""Join is bilinear: the change of A join B is dA with old B, old A with dB, and dA with dB; weights multiply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from weirflow.errors import DataError, ResultTooLarge
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.bounds import require_memory, require_takeable, row_bytes
from weirflow.ivm.kernel.expressions.compile import Evaluator, compile_expression
from weirflow.ivm.kernel.frontier import Frontier, least
from weirflow.ivm.operators.join.pairs import met, replaced
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import ProbeResult
    from weirflow.ivm.operators.arrange import Arrange
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.expr import Expr


class Join(Operator):
    """The inner join of two arranged inputs on their keys.

    Inputs hold no row with a NULL key. Output columns are chosen from the left's then the right's by index, and
    ``residual`` is a condition over the left's columns followed by the right's.
    """

    def __init__(
        self,
        left: Arrange,
        right: Arrange,
        left_columns: Sequence[int],
        right_columns: Sequence[int],
        residual: Expr | None,
    ) -> None:
        types = [left.types[index] for index in left_columns]
        super().__init__([*types, *(right.types[index] for index in right_columns)])
        self.left = left
        self.right = right
        self.left_columns = tuple(left_columns)
        self.right_columns = tuple(right_columns)
        self._residual: Evaluator | None = compile_expression(residual) if residual is not None else None

    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        """See ``Operator``: rows that meet have equal keys, so a key that has a bound on both sides keeps one."""
        keys = range(self.left.key_count)
        bounds = {column: bound for column, bound in least(inputs).items() if column in keys}
        columns = (*self.left_columns, *self.right_columns)
        return {at: bounds[column] for at, column in enumerate(columns) if column in bounds}

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        try:
            return self._change(*deltas)
        except DataError as error:
            if self._residual is None or isinstance(error, ResultTooLarge):
                raise
            return replaced((self.left, self.right), deltas, self._whole)

    def _whole(self, left: Batch, right: Arrangement) -> Batch:
        parts = [self.nothing]
        self._join(left, right, self._joined, parts)
        return Batch.concat(parts)

    def _change(self, left: Batch, right: Batch) -> Batch:
        keys = self.left.key_count
        parts: list[Batch] = []
        undone = False
        if len(left):
            undone |= self._join(left, self.right.arrangement, self._joined, parts)
        if len(right):
            undone |= self._join(right, self.left.arrangement, self._joined_reversed, parts)
        if len(left) and len(right):
            new = Arrangement(self.right.types, keys)
            new.insert(right)
            undone |= self._join(left, new, self._joined, parts)
        joined = Batch.concat(parts) if parts else self.nothing
        # A row that meets what the other side was, its retraction, and what it is now makes three where one is left.
        # Each join of joins would multiply them; that none returns more rows than it was given, or than there are, adds
        # up instead.
        return consolidate(joined) if undone and len(joined) > len(left) + len(right) else joined

    def _join(
        self, rows: Batch, side: Arrangement, joined: Callable[[Batch, ProbeResult], Batch], parts: list[Batch]
    ) -> bool:
        """Append the pairs of rows with one side; ``ResultTooLarge`` rather than run out of memory.

        Returns whether a row was met that takes back others of its side.
        """
        made, undone = 0, False
        for part in met(rows, side, self._require_memory if self._residual is None else None):
            pairs = joined(part.rows, part.matches)
            if not len(pairs):
                continue
            undone = undone or bool(part.matches.batch.weights.min() < 0)
            parts.append(pairs)
            made += len(pairs)
            if len(part.rows) < len(rows):
                self._require_memory(made)  # once more, to put the slices together
        return undone

    def _require_memory(self, pairs: int) -> None:
        require_memory(pairs * row_bytes(self.types), f"A join that makes {pairs:,} rows at once")

    def _joined(self, left: Batch, matches: ProbeResult) -> Batch:
        return self._combined(left, matches.probe_index, matches.batch, None)

    def _joined_reversed(self, right: Batch, matches: ProbeResult) -> Batch:
        return self._combined(matches.batch, None, right, matches.probe_index)

    def _combined(self, left: Batch, left_at: Int64s | None, right: Batch, right_at: Int64s | None) -> Batch:
        """Pairs of rows side by side, of each side those at the given places or all in order.

        Only pairs that meet the residual condition are returned, with the chosen columns.
        """
        if self._residual is None:
            left, right = left.select(self.left_columns), right.select(self.right_columns)
        if left_at is not None:
            require_takeable(left.columns, left_at, "A join")
            left = left.take(left_at)
        if right_at is not None:
            require_takeable(right.columns, right_at, "A join")
            right = right.take(right_at)
        weights = left.weights * right.weights
        if self._residual is None:
            return Batch((*left.columns, *right.columns), weights)
        if len(weights):
            keep = np.flatnonzero(true_rows(self._residual((*left.columns, *right.columns), len(left))))
            left, right, weights = left.take(keep), right.take(keep), weights[keep]
        columns = left.select(self.left_columns).columns + right.select(self.right_columns).columns
        return Batch(columns, weights)
