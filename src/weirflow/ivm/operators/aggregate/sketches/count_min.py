"""COUNT_MIN_SKETCH of integers: counters by several hashes, as Spark writes them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall
from weirflow.ivm.operators.aggregate.totals.linear import integer_values
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch
    from weirflow.sql.expr import AggregateCall, Expr

_VERSION = 1
_PRIME = (1 << 31) - 1


class CountMinSketch(RecomputeCall):
    """``count_min_sketch(value, relative error, confidence, seed)``; all but the value are literals."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        value, *settings = call.arguments
        super().__init__(replace(call, arguments=(value,)), key_types, expressions)
        error, confidence, seed = (_constant(one) for one in settings)
        self._position = call.position
        self._width = math.ceil(2 / error)
        self._depth = math.ceil(-math.log1p(-confidence) / math.log(2))
        self._factors = java_random_integers(seed, self._depth)

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        require_result(8 * self._depth * self._width * count, self._function, self._position)
        counted = self._counted(rows.filter(rows.columns[1].is_valid().to_numpy(zero_copy_only=False)))
        numbers, values = counted.columns[0].to_numpy(), integer_values(counted.columns[1])
        tables = np.zeros((count, self._depth, self._width), np.int64)
        for level, factor in enumerate(self._factors):
            np.add.at(tables[:, level], (numbers, self._buckets(values, factor)), counted.weights)
        totals = np.zeros(count, np.int64)
        np.add.at(totals, numbers, counted.weights)
        return pa.array([self._written(*one) for one in zip(totals.tolist(), tables, strict=True)], self._type)

    def _buckets(self, values: np.ndarray, factor: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            product = values * np.int64(factor)
            product += product >> np.int64(32)
        buckets: np.ndarray = (product & np.int64(_PRIME)) % self._width
        return buckets

    def _written(self, total: int, table: np.ndarray) -> bytes:
        head = struct.pack(f">iqii{self._depth}q", _VERSION, total, self._depth, self._width, *self._factors)
        return head + table.astype(">i8").tobytes()


def java_random_integers(seed: int, count: int) -> list[int]:
    """What ``java.util.Random(seed).nextInt(Integer.MAX_VALUE)`` gives, one after the other.

    >>> java_random_integers(1, 2)
    [1569741360, 895445372]
    """
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
    found: list[int] = []
    while len(found) < count:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        bits = state >> 17
        if bits < _PRIME:  # else Java draws again
            found.append(bits)
    return found


def _constant(expr: Expr) -> Any:
    assert isinstance(expr, Literal), "the binder gives constants"
    return expr.value
