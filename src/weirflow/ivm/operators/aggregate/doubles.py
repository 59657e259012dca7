"""Linear aggregates over doubles, kept exact: SUM, AVG, variance and standard deviation.

Values that the limbs cannot hold *escape* into a side table of (slot, amount): far limbs, infinities and NaN. A result
is a function of the rows alone, whatever came and went before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.aggregate.linear import LinearFunction, exact_double
from weirflow.ivm.zset.buffers import raw_values

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.linear import Escaped
    from weirflow.sql.expr import AggregateCall

NAN, PLUS_INFINITY, MINUS_INFINITY = -1, -2, -3
# Slots of the side table from here on belong to the sum of squares.
_SQUARES = 1000
_LOWEST_BIT = -1088 * 2  # below the square of the smallest double


class Escapes(NamedTuple):
    """Rows, by index, and what they add to which slot of the side table."""

    rows: np.ndarray
    slots: np.ndarray
    amounts: np.ndarray


class DoubleFunction(LinearFunction):
    """A linear function whose rows may escape."""

    def escapes(self, argument: pa.Array, weights: np.ndarray) -> Escapes:
        """What does not fit the limbs, of rows with these weights."""
        values = _doubles(argument)
        outside = np.flatnonzero((weights != 0) & ~self.fits(values))
        return _weighted(self._escape(outside, values), weights)

    def fits(self, values: np.ndarray) -> np.ndarray:
        """Which values the limbs hold."""
        return sums.in_window(values)

    def _escape(self, rows: np.ndarray, values: np.ndarray) -> Escapes:
        return _escape(rows, values, power=1, base=0)


class DoubleSum(DoubleFunction):
    """SUM of doubles, rounded once."""

    width = 1 + sums.VALUES.limbs
    summand = "double"

    @override
    def encode(self, argument: pa.Array | None, weights: np.ndarray, into: np.ndarray) -> bool:
        assert argument is not None
        into[:, 0] = weights
        return sums.encode_doubles(_doubles(argument), weights, into[:, 1:])

    def read(self, totals: np.ndarray, escaped: Escaped) -> np.ndarray:
        """See ``LinearFunction``: the totals, each rounded once."""
        values = sums.double_totals(totals[:, 1:])
        for group, slots in escaped.items():
            values[group] = _total(totals[group, 1:], slots)
        return values

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        return pa.array(values, pa.float64(), mask=totals[:, 0] == 0)


class DoubleAverage(DoubleSum):
    """AVG of doubles: the exact total, divided once."""

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        counts = totals[:, 0]
        return super().decode(totals, values / np.where(counts == 0, 1, counts))


class DoubleVariance(DoubleFunction):
    """Variance and standard deviation, of a sample or a population, from exact sums of values and squares."""

    width = 1 + sums.VALUES.limbs + sums.SQUARES.limbs
    summand = "double and its square"

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._sample = call.function.endswith("_samp")
        self._root = call.function.startswith("stddev")

    @override
    def encode(self, argument: pa.Array | None, weights: np.ndarray, into: np.ndarray) -> bool:
        assert argument is not None
        values = _doubles(argument)
        fits = self.fits(values)
        inside = np.where(fits, values, 0.0)
        square, error = _exact_squares(inside)
        split = 1 + sums.VALUES.limbs
        errors = np.empty((len(values), sums.SQUARES.limbs), np.int64)
        into[:, 0] = weights
        sums.encode_doubles(inside, weights, into[:, 1:split])
        sums.encode_doubles(square, weights, into[:, split:], sums.SQUARES)
        sums.encode_doubles(error, weights, errors, sums.SQUARES)
        into[:, split:] += errors
        return bool(fits.all())

    def _escape(self, rows: np.ndarray, values: np.ndarray) -> Escapes:
        parts = (_escape(rows, values, power=1, base=0), _escape(rows, values, power=2, base=_SQUARES))
        return Escapes(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @override
    def read(self, totals: np.ndarray, escaped: Escaped) -> Any:
        del totals
        return escaped

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        results = [
            self._moment(row, values.get(group, ())) if row[0] > self._sample else None
            for group, row in enumerate(totals)
        ]
        return pa.array(results, pa.float64())

    def _moment(self, totals: np.ndarray, slots: Sequence[tuple[int, int]]) -> float:
        if any(slot in (NAN, PLUS_INFINITY, MINUS_INFINITY) and amount for slot, amount in slots):
            return math.nan
        count = int(totals[0])
        split = 1 + sums.VALUES.limbs
        first = _exact(totals[1:split], sums.VALUES, [item for item in slots if item[0] < _SQUARES])
        far_squares = [(slot - _SQUARES, amount) for slot, amount in slots if slot >= _SQUARES]
        second = _exact(totals[split:], sums.SQUARES, far_squares)
        variance = exact_double((second - first * first / count) / (count - self._sample))
        return math.sqrt(variance) if self._root else variance

    def fits(self, values: np.ndarray) -> np.ndarray:
        """Squares have twice the exponent, and the last bit of their rounding error lies 104 bits below."""
        magnitude = np.abs(values)
        fits: np.ndarray = (values == 0) | ((magnitude >= 2.0**-50) & (magnitude < 2.0**60))
        return fits


def _doubles(argument: pa.Array) -> np.ndarray:
    """The doubles, 0.0 where they are NULL."""
    filled = pc.fill_null(argument, 0.0) if argument.null_count else argument
    values: np.ndarray = raw_values(filled).astype(np.float64, copy=False)
    return values


def _exact_squares(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x*x as a double and the error of that double, exactly (Dekker's product)."""
    square = values * values
    shifted = values * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - values)
    low = values - high
    return square, ((high * high - square) + 2.0 * high * low) + low * low


def _weighted(escapes: Escapes, weights: np.ndarray) -> Escapes:
    return escapes._replace(amounts=escapes.amounts * weights[escapes.rows])


def _escape(rows: np.ndarray, values: np.ndarray, *, power: int, base: int) -> Escapes:
    """The slots of values that the limbs cannot hold; not vectorised, for they are rare."""
    found: list[tuple[int, int, int]] = []
    for row in rows.tolist():
        value = float(values[row])
        if not math.isfinite(value):
            slot = NAN if math.isnan(value) else PLUS_INFINITY if value > 0 else MINUS_INFINITY
            if base == 0:
                found.append((row, slot, 1))
            continue
        numerator, denominator = (Fraction(value) ** power).as_integer_ratio()
        shifted = numerator * 2**-_LOWEST_BIT // denominator
        sign, magnitude, slot = (1 if shifted > 0 else -1), abs(shifted), base
        while magnitude:
            if part := magnitude & 0xFFFFFFFF:
                found.append((row, slot, sign * part))
            magnitude >>= sums.LIMB_BITS
            slot += 1
    columns = [np.array(column, np.int64) for column in zip(*found, strict=True)] or [np.empty(0, np.int64)] * 3
    return Escapes(*columns)


def _total(limbs: np.ndarray, slots: Sequence[tuple[int, int]]) -> float:
    special = {slot for slot, amount in slots if slot < 0 and amount}
    if NAN in special or {PLUS_INFINITY, MINUS_INFINITY} <= special:
        return math.nan
    if special:
        return math.inf if PLUS_INFINITY in special else -math.inf
    return exact_double(_exact(limbs, sums.VALUES, slots))


def _exact(limbs: np.ndarray, window: sums.LimbRange, slots: Sequence[tuple[int, int]]) -> Fraction:
    total = Fraction(sums.wide_totals(limbs[None, :])[0]) * Fraction(2) ** window.lowest_bit
    far = sum(amount << (sums.LIMB_BITS * slot) for slot, amount in slots)
    return total + Fraction(far) * Fraction(2) ** _LOWEST_BIT
