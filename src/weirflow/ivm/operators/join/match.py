"""Match splits left rows by whether the right side has a match: semi and anti joins, and the padding of outer ones.

A left row changes sides when its number of matches leaves or reaches zero. The matches are counted from the
arrangements, for new left rows and for those a right change meets. Where there is no residual condition the right side
is best given as its distinct keys: then there is one match at most to count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from weirflow.errors import DataError, ResultTooLarge
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.ivm.operators.join.pairs import met, replaced
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.operators.arrange import Arrange
    from weirflow.sql.expr import Expr


class Match(Operator):
    """The left rows with (``wanted``) or without a matching right row, left columns only.

    Both inputs are arranged by the same number of keys. A left row with a NULL key has no match; the right side holds
    no rows with NULL keys.
    """

    def __init__(self, left: Arrange, right: Arrange, residual: Expr | None, *, wanted: bool) -> None:
        super().__init__(left.types)
        self.left = left
        self.right = right
        self._residual = compile_expression(residual) if residual is not None else None
        self._wanted = wanted

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        try:
            return self._change(*deltas)
        except DataError as error:
            if self._residual is None or isinstance(error, ResultTooLarge):
                raise
            return replaced((self.left, self.right), deltas, self._whole)

    def _whole(self, left: Batch, right: Arrangement) -> Batch:
        return left.filter((self._matches(left, right) > 0) == self._wanted)

    def _change(self, left: Batch, right: Batch) -> Batch:
        parts = []
        if len(left):
            found = self._counts(left, right) > 0
            parts.append(left.filter(found == self._wanted))
        if len(right):
            parts.append(self._flipped(right))
        present = [part for part in parts if len(part)]
        return Batch.concat(present) if present else self.nothing

    def _flipped(self, right: Batch) -> Batch:
        """Old left rows whose matches appeared or disappeared with this tick's right changes."""
        touched = self._touched_left(right)
        if not len(touched):
            return touched
        old = self._counts(touched, None) > 0
        new = self._counts(touched, right) > 0
        change = (new.astype(np.int64) - old) * (1 if self._wanted else -1)
        return Batch(touched.columns, touched.weights * change).filter(change != 0)

    def _touched_left(self, right: Batch) -> Batch:
        """The old left rows that share a key with a changed right row, each once."""
        keys = self.left.key_count
        changed = consolidate(Batch(right.columns[:keys], np.ones(len(right), np.int64)))
        return self.left.arrangement.probe(changed.columns, count=len(changed), consolidated=True).batch

    def _counts(self, left: Batch, right_delta: Batch | None) -> np.ndarray:
        """For each left row the number of its matches in the old right side, plus this tick's changes if given."""
        counts = self._matches(left, self.right.arrangement)
        if right_delta is not None and len(right_delta):
            new = Arrangement(self.right.types, self.right.key_count)
            new.insert(right_delta)
            counts += self._matches(left, new)
        return counts

    def _matches(self, left: Batch, side: Arrangement) -> np.ndarray:
        counts = np.zeros(len(left), np.int64)
        for start, part, matches in met(left, side):
            weights = matches.batch.weights
            if self._residual is not None and len(weights):
                pairs = part.take(matches.probe_index)
                true = true_rows(self._residual((*pairs.columns, *matches.batch.columns), len(weights)))
                weights = np.where(true, weights, 0)
            np.add.at(counts, matches.probe_index + start, weights)
        return counts
