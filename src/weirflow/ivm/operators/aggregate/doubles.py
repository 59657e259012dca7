"""Linear aggregates over doubles, kept exact: SUM, AVG, variance and standard deviation.

Values that the limbs cannot hold *escape* into a side table of (slot, amount): far limbs, infinities and NaN. A result
is a function of the rows alone, whatever came and went before.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.aggregate.linear import LinearFunction, exact_double, present_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    def escapes(self, argument: pa.Array, counted: np.ndarray) -> Escapes | None:
        """What does not fit the limbs, or None."""
        values = _doubles(argument)
        outside = present_rows(argument, counted) & ~sums.in_window(values)
        return _escape(np.flatnonzero(outside), values, power=1, base=0) if outside.any() else None


class DoubleSum(DoubleFunction):
    """SUM of doubles, rounded once."""

    width = 1 + sums.VALUES.limbs
    summand = "double"

    def encode(self, argument: pa.Array | None, counted: np.ndarray, into: np.ndarray) -> None:
        """See ``LinearFunction``."""
        assert argument is not None
        present = present_rows(argument, counted)
        values = _doubles(argument)
        into[:, 0] = present
        into[:, 1:] = sums.split_doubles(np.where(present & sums.in_window(values), values, 0.0))

    def read(self, totals: np.ndarray, escaped: Escaped) -> np.ndarray:
        """See ``LinearFunction``: the totals, each rounded once."""
        values = sums.double_totals(totals[:, 1:])
        for group, slots in escaped.items():
            values[group] = _total(totals[group, 1:], slots)
        return values

    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        """See ``LinearFunction``."""
        return pa.array(values, pa.float64(), mask=totals[:, 0] == 0)


class DoubleAverage(DoubleSum):
    """AVG of doubles: the exact total, divided once."""

    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        """See ``LinearFunction``."""
        counts = totals[:, 0]
        return super().decode(totals, values / np.where(counts == 0, 1, counts))


class Moment(DoubleFunction):
    """Variance and standard deviation, of a sample or a population, from exact sums of values and squares."""

    width = 1 + sums.VALUES.limbs + sums.SQUARES.limbs
    summand = "double and its square"

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._sample = call.function.endswith("_samp")
        self._root = call.function.startswith("stddev")

    def encode(self, argument: pa.Array | None, counted: np.ndarray, into: np.ndarray) -> None:
        """See ``LinearFunction``."""
        assert argument is not None
        present = present_rows(argument, counted)
        values = _doubles(argument)
        inside = np.where(present & self._fits(values), values, 0.0)
        square, error = _exact_squares(inside)
        split = 1 + sums.VALUES.limbs
        into[:, 0] = present
        into[:, 1:split] = sums.split_doubles(inside)
        into[:, split:] = sums.split_doubles(square, sums.SQUARES) + sums.split_doubles(error, sums.SQUARES)

    def escapes(self, argument: pa.Array, counted: np.ndarray) -> Escapes | None:
        """See ``DoubleFunction``."""
        values = _doubles(argument)
        rows = np.flatnonzero(present_rows(argument, counted) & ~self._fits(values))
        if not len(rows):
            return None
        parts = (_escape(rows, values, power=1, base=0), _escape(rows, values, power=2, base=_SQUARES))
        return Escapes(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def read(self, totals: np.ndarray, escaped: Escaped) -> Any:
        """See ``LinearFunction``."""
        del totals
        return escaped

    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        """See ``LinearFunction``."""
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

    @staticmethod
    def _fits(values: np.ndarray) -> np.ndarray:
        """Squares have twice the exponent, and their rounding error lies 53 bits below."""
        magnitude = np.abs(values)
        fits: np.ndarray = (values == 0) | ((magnitude > 2.0**-70) & (magnitude < 2.0**60))
        return fits


def _doubles(argument: pa.Array) -> np.ndarray:
    filled = pc.fill_null(argument, 0.0) if argument.null_count else argument
    values: np.ndarray = filled.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return values


def _exact_squares(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x*x as a double and the error of that double, exactly (Dekker's product)."""
    square = values * values
    shifted = values * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - values)
    low = values - high
    return square, ((high * high - square) + 2.0 * high * low) + low * low


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


def _exact(limbs: np.ndarray, window: sums.Window, slots: Sequence[tuple[int, int]]) -> Fraction:
    total = Fraction(sums.wide_totals(limbs[None, :])[0]) * Fraction(2) ** window.lowest_bit
    far = sum(amount << (sums.LIMB_BITS * slot) for slot, amount in slots)
    return total + Fraction(far) * Fraction(2) ** _LOWEST_BIT
