"""APPROX_COUNT_DISTINCT: HyperLogLog++ as Spark has it, whose estimate depends on the set of values alone.

Of each value only its register and rank are kept, with how many values have them: so a value can be taken back, and a
group keeps a few thousand numbers at most, however many values it has.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.operators.aggregate.recompute import RecomputeCall
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.buffers import raw_values
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.sql.expr import AggregateCall, Expr

_RANK_BITS = 6
_THRESHOLDS = (10, 20, 40, 80, 220, 400, 900, 1800, 3100, 6500, 15500, 20000, 50000, 120000, 350000)
"""Up to which estimate by counting empty registers is best, for each precision from 4 to 18."""
_LEAST_PRECISION = 4
_NEIGHBOURS = 6
"""Of how many known estimates the biases are averaged."""
_ALPHAS = {4: 0.673, 5: 0.697, 6: 0.709}


class DistinctEstimate(RecomputeCall):
    """``approx_count_distinct(hash, precision)`` of the 64-bit hashes of values; the precision is a literal."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        hashed, precision = call.arguments
        assert isinstance(precision, Literal), "the binder gives a constant"
        super().__init__(replace(call, arguments=(hashed,)), key_types, expressions)
        self._precision = int(precision.value)

    @override
    def _own_rows(self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups) -> tuple[Batch, np.ndarray]:
        own, numbers = super()._own_rows(evaluated, weights, groups)
        *keys, hashes = own.columns
        return Batch((*keys, pa.array(ranked(raw_values(hashes), self._precision))), own.weights), numbers

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        present = rows.filter(rows.weights > 0)
        numbers, packed = (raw_values(column) for column in present.columns)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(count + 1))
        found = []
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            registers = np.zeros(1 << self._precision, np.int64)
            mine = packed[order[low:high]]
            np.maximum.at(registers, mine >> _RANK_BITS, mine & ((1 << _RANK_BITS) - 1))
            found.append(estimated(registers, self._precision))
        return pa.array(found, self._type)


def ranked(hashes: np.ndarray, precision: int) -> np.ndarray:
    """The register of each hash, and in the lowest bits its rank: at which place its other bits have their first 1."""
    words = np.ascontiguousarray(hashes, np.int64).view(np.uint64)
    register = words >> np.uint64(64 - precision)
    rest = (words << np.uint64(precision)) | np.uint64(1 << (precision - 1))
    rank = _leading_zeros(rest) + np.uint64(1)
    packed: np.ndarray = ((register << np.uint64(_RANK_BITS)) | rank).astype(np.int64)
    return packed


def _leading_zeros(words: np.ndarray) -> np.ndarray:
    zeros = np.zeros(len(words), np.uint64)
    for bits in (32, 16, 8, 4, 2, 1):
        small = words < np.uint64(1 << (64 - bits))
        zeros += np.where(small, np.uint64(bits), np.uint64(0))
        words = np.where(small, words << np.uint64(bits), words)
    return zeros


def estimated(registers: np.ndarray, precision: int) -> int:
    """How many different values these registers, each with its highest rank, have seen."""
    size = len(registers)
    inverse = float(np.cumsum(np.ldexp(1.0, -registers))[-1])  # one after the other, as Spark adds
    alpha = _ALPHAS.get(precision, 0.7213 / (1.0 + 1.079 / size))
    estimate = alpha * size * size / inverse
    empty = size - int(np.count_nonzero(registers))
    if empty:
        counted = size * math.log(size / empty)
        if counted <= _THRESHOLDS[precision - _LEAST_PRECISION] or estimate <= 2.5 * size:
            return math.floor(counted + 0.5)
    if estimate < 5.0 * size:
        estimate -= _bias(estimate, precision)
    return math.floor(estimate + 0.5)


class _Known(NamedTuple):
    estimates: list[float]
    biases: list[float]


@cache
def _known(precision: int) -> _Known:
    """Estimates, ascending, and by how much they are too high on average."""
    text = files(__package__).joinpath("hyperloglog_bias.json").read_text("utf-8")
    return _Known(**json.loads(text)[str(precision)])


def _bias(estimate: float, precision: int) -> float:
    estimates, biases = _known(precision)

    def distance(place: int) -> float:
        return (estimate - estimates[place]) ** 2

    low = max(bisect_left(estimates, estimate) - _NEIGHBOURS + 1, 0)
    high = min(low + _NEIGHBOURS, len(estimates))
    while high < len(estimates) and distance(high) < distance(low):
        low, high = low + 1, high + 1
    total = 0.0
    for bias in biases[low:high]:
        total += bias
    return total / (high - low)
