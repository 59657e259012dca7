"""Map applies a predicate and projections to each row of the delta; it keeps no state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from weirflow.ivm.kernel.expressions.compile import compile_expression, compile_expressions
from weirflow.ivm.kernel.expressions.monotone import advanced, monotone
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.operators.shared import SharedExpressions, narrowed
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.lazy import taken
from weirflow.sql.expr import Column
from weirflow.sql.foreign import is_foreign
from weirflow.sql.traverse import parts

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.frontier import Frontier
    from weirflow.sql.expr import Expr


class Filter(Operator):
    """The rows for which the predicate is true."""

    def __init__(self, types: Sequence[pa.DataType], predicate: Expr) -> None:
        super().__init__(types)
        self._predicate = compile_expression(predicate)
        foreign = any(is_foreign(part) for part in parts(predicate))
        self._shared = None if foreign else SharedExpressions([predicate])

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        return inputs[0]

    @override
    def evaluate(self, rows: Batch) -> None:
        self._predicate(rows.columns, len(rows))

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        if self._shared is None:
            return delta.filter(true_rows(self._predicate(delta.columns, len(delta))))
        rows, predicate = self._shared.over(delta)
        kept = rows.once(("true", predicate.name), lambda rows: np.flatnonzero(true_rows(predicate.of(rows)[0])))
        if len(kept) == len(delta):
            return delta
        left = rows.once(("kept", predicate.name), lambda rows: taken(rows, kept))
        return left if delta.origin is None else narrowed(left, delta.origin[1])


class Project(Operator):
    """One column for each expression."""

    def __init__(self, expressions: Sequence[Expr]) -> None:
        super().__init__([expression.type for expression in expressions])
        self.expressions = tuple(expressions)
        self._evaluate = compile_expressions(expressions)
        plain = [expression.index for expression in expressions if isinstance(expression, Column)]
        self._chosen = tuple(plain) if len(plain) == len(self.expressions) else None
        self._monotone = [monotone(expression) for expression in expressions]

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        return advanced(self._monotone, inputs[0])

    @override
    def evaluate(self, rows: Batch) -> None:
        self._evaluate(rows.columns, len(rows))

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        if self._chosen is not None and (chosen := narrowed(delta, self._chosen)).types == self.types:
            return chosen
        return Batch(tuple(self._evaluate(delta.columns, len(delta))), delta.weights)


class Normalize(Operator):
    """The same rows with -0.0 made 0.0 in some columns, as SQL compares keys."""

    def __init__(self, types: Sequence[pa.DataType], columns: Sequence[int]) -> None:
        super().__init__(types)
        self._columns = frozenset(columns)

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        return inputs[0]

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        columns = [normalized(column) if at in self._columns else column for at, column in enumerate(delta.columns)]
        return Batch(tuple(columns), delta.weights)
