"""PERCENTILE, PERCENTILE_CONT and PERCENTILE_DISC: exact ones, between two values or one of the values."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch
    from weirflow.sql.expr import AggregateCall, Expr, WindowCall

FREQUENCY, _DESCENDING = 2, 3
"""Arguments behind the value and the share."""


class Percentile:
    """``percentile(value, share, frequency, descending)``, or ``percentile_disc``.

    The share is one or several; a row counts as often as its frequency says, once without one.

    Attributes:
        descending: whether the largest value comes first.
    """

    def __init__(self, call: AggregateCall | WindowCall) -> None:
        descending = call.arguments[_DESCENDING] if len(call.arguments) > _DESCENDING else None
        self.descending = isinstance(descending, Literal) and bool(descending.value)
        self._at = _one_of if call.function == "percentile_disc" else _between
        self._position = call.position

    def rows(self, arguments: Sequence[pa.Array], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which rows count, from the smallest or the largest value on, their values, and how often each counts."""
        there = arguments[0].is_valid().to_numpy(zero_copy_only=False) & (weights > 0)
        counts = weights
        if len(arguments) > FREQUENCY:
            there &= arguments[FREQUENCY].is_valid().to_numpy(zero_copy_only=False)
            frequencies = arguments[FREQUENCY].fill_null(0).to_numpy(zero_copy_only=False)
            self.check(frequencies[there])
            counts = weights * frequencies
            there &= counts > 0
        places = np.flatnonzero(there)
        values = arguments[0].take(pa.array(places)).to_numpy()
        # NaN is the largest, and of zeros the negative one comes first.
        order = np.lexsort((~np.signbit(values), values))
        order = order[::-1] if self.descending else order
        return places[order], values[order], counts[places[order]].astype(np.int64)

    def of(self, values: np.ndarray, counts: np.ndarray, share: Any) -> Any:
        """The percentiles of values in order; None if there are none."""
        if not len(values):
            return None
        ends = np.cumsum(counts)
        return (
            [self._at(one, values, ends) for one in share] if isinstance(share, list) else self._at(share, values, ends)
        )

    def check(self, frequencies: np.ndarray) -> None:
        """``DataError`` if one of the frequencies is negative."""
        negative = frequencies[frequencies < 0]
        if len(negative):
            raise DataError(
                f"The frequency {negative[0]} of percentile() is negative.",
                condition="NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION",
                position=self._position,
            )


class DistinctPercentile(RecomputeCall):
    """A percentile of the different rows of a group, which is read again."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        super().__init__(call, key_types, expressions)
        self._percentile = Percentile(call)

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        if not len(rows):
            return pa.nulls(count, self._type)
        number, *arguments = (counted := self._counted(rows)).columns
        share = arguments[1][0].as_py()  # the same for all rows
        places, values, counts = self._percentile.rows(arguments, counted.weights)
        numbers = number.to_numpy()[places]
        by_group = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[by_group], np.arange(count + 1)).tolist()
        found = []
        for low, high in checked(pairwise(bounds)):
            mine = by_group[low:high]
            found.append(self._percentile.of(values[mine], counts[mine], share))
        return pa.array(found, self._type)


def _between(share: float, values: np.ndarray, ends: np.ndarray) -> float:
    """By linear interpolation; ``ends`` are the counts of values up to each."""
    place = share * (int(ends[-1]) - 1)
    low = math.floor(place)
    lower, higher = (float(values[bisect_right(ends, at)]) for at in (low, math.ceil(place)))
    if low == place or lower == higher:
        return lower
    return (low + 1 - place) * lower + (place - low) * higher


def _one_of(share: float, values: np.ndarray, ends: np.ndarray) -> float:
    """The first value up to which at least the share of all are."""
    return float(values[bisect_left(ends, share * int(ends[-1]))])
