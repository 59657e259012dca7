"""Sums and averages that never raise: a total that does not fit wraps around, or is NULL.

Spark adds row after row, so that a sum of its that leaves the type on the way may be NULL although the total would fit,
if the rows come in an unlucky order. Here, as ever, only the total counts, which some order of the rows has in Spark,
too: a result is a function of the rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.aggregate.totals.linear import DecimalAverage, DecimalSum, IntegerSum, decimal_array

if TYPE_CHECKING:
    import numpy as np

    from weirflow.sql.expr import AggregateCall

_MOST_DIGITS = 38
_SUM_DIGITS = 10
"""So many more digits than its rows has the sum from which Spark makes an average."""


class WrappingSum(IntegerSum):
    """SUM of integers: the low 64 bits of the total."""

    of_parts = True

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        low, _ = sums.integer_totals(totals[:, 1:])
        return pa.array(low, pa.int64(), mask=totals[:, 0] == 0)


class TolerantIntegerSum(IntegerSum):
    """SUM of integers: NULL if the total does not fit."""

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        low, outside = sums.integer_totals(totals[:, 1:])
        return pa.array(low, pa.int64(), mask=outside | (totals[:, 0] == 0))


class TolerantDecimalSum(DecimalSum):
    """SUM of decimals: NULL if the total has too many digits."""

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        return decimal_array(_within(self.unscaled(totals), self.type.precision), self.type, self.position)


class TolerantDecimalAverage(DecimalAverage):
    """AVG of decimals: NULL if it, or the total, has too many digits."""

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._sum_digits = min(call.arguments[0].type.precision + _SUM_DIGITS, _MOST_DIGITS)

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        known = _within(self.unscaled(totals), self._sum_digits)
        averages = [None if total is None else found for total, found in zip(known, self.averages(totals), strict=True)]
        return decimal_array(_within(averages, self.type.precision), self.type, self.position)


def _within(unscaled: list[int | None], digits: int) -> list[int | None]:
    limit = 10**digits
    return [value if value is not None and -limit < value < limit else None for value in unscaled]
