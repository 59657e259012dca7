"""Generate repeats a row for each row that its generator makes of it; it keeps no state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.bounds import require_takeable
from weirflow.ivm.kernel.expressions.monotone import monotone
from weirflow.ivm.kernel.expressions.nested.generators import Generator, compile_generator
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.expr import Call, Column

if TYPE_CHECKING:
    from weirflow.ivm.kernel.frontier import Frontier


class Generate(Operator):
    """The input's columns, then those of ``explode``, ``posexplode`` or ``inline``."""

    def __init__(self, types: Sequence[pa.DataType], generator: Call, *, outer: bool) -> None:
        super().__init__(types)
        self._generate = compile_generator(generator, outer=outer)
        # Sliding windows of a time: the first one that holds the bound is the first that may still change.
        self._time = monotone(generator.arguments[0]) if generator.function == "hop" else None
        self._windows = _hop(generator) if generator.function == "hop" else None

    @override
    def advance(self, inputs: Sequence[Frontier]) -> Frontier:
        (frontier,) = inputs
        bound = None if self._time is None else self._time.bound(frontier)
        if bound is None or self._windows is None:
            return frontier
        _, (windows,) = self._windows([pa.repeat(bound, 1)], 1)
        first = min(range(len(windows)), key=lambda at: windows[at][0].value)
        return {**frontier, len(self.types) - 1: windows[first]}

    @override
    def evaluate(self, rows: Batch) -> None:
        self._generate(rows.columns, len(rows))

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        (delta,) = deltas
        owners, made = self._generate(delta.columns, len(delta))
        at = owners.to_numpy()
        require_takeable(delta.columns, at, "A generator")
        rows = delta.take(at)
        return Batch((*rows.columns, *made), rows.weights)


def _hop(generator: Call) -> Generator:
    """The same windows of a time that is given by itself."""
    time, *lengths = generator.arguments
    return compile_generator(replace(generator, arguments=(Column(0, "time", time.type), *lengths)), outer=False)
