"""Linear aggregates over doubles, kept exact: SUM, AVG, variance and standard deviation.

Values that the limbs cannot hold *escape* into a side table of (slot, amount): far limbs, infinities and NaN. A result
is a function of the rows alone, whatever came and went before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.aggregate.totals.linear import LinearFunction, exact_double
from weirflow.ivm.zset.buffers import raw_values
from weirflow.rows.arrays import from_numpy

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.totals.linear import Escaped
    from weirflow.sql.expr import AggregateCall

    Slots = Sequence[tuple[int, int]]
    """Slots of the side table and the amounts in them."""

NAN, PLUS_INFINITY, MINUS_INFINITY = -1, -2, -3
SLOTS = 1000
"""So many slots of the side table belong to each sum."""
_SQUARES = SLOTS
LOWEST_BIT = -1088 * 2
"""Where the side table begins: below the square of the smallest double."""
_UNIT, _FAR_UNIT = 128, 1152
"""By how many bits a unit is smaller than 1: of values that the limbs hold, and of any."""
_WITH_SQUARES = ((sums.VALUES, 1), (sums.SQUARES, 2))


class Escapes(NamedTuple):
    """Rows, by index, and what they add to which slot of the side table."""

    rows: np.ndarray
    slots: np.ndarray
    amounts: np.ndarray


class DoubleFunction(LinearFunction):
    """A linear function whose rows may escape."""

    def escapes(self, arguments: Sequence[pa.Array], weights: np.ndarray) -> Escapes:
        """What does not fit the limbs, of rows with these weights."""
        columns = [double_values(argument) for argument in arguments]
        outside = np.flatnonzero((weights != 0) & ~np.logical_and.reduce([self.fits(values) for values in columns]))
        escaped = self._escape(outside, columns)
        return escaped._replace(amounts=escaped.amounts * weights[escaped.rows])

    def fits(self, values: np.ndarray) -> np.ndarray:
        """Which values the limbs hold."""
        return sums.in_window(values)

    def _escape(self, rows: np.ndarray, columns: Sequence[np.ndarray]) -> Escapes:
        return joined([special(rows, columns[0]), far(rows, columns)])


class DoubleSum(DoubleFunction):
    """SUM of doubles, rounded once."""

    width = 1 + sums.VALUES.limbs
    summand = "double"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        (argument,) = arguments
        into[:, 0] = weights
        return sums.encode_doubles(double_values(argument), weights, into[:, 1:])

    def read(self, totals: np.ndarray, escaped: Escaped) -> np.ndarray:
        """See ``LinearFunction``: the totals, each rounded once."""
        values = sums.double_totals(totals[:, 1:])
        for group, slots in escaped.items():
            values[group] = _total(totals[group, 1:], slots)
        return values

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        return from_numpy(values, totals[:, 0] == 0)


class DoubleAverage(DoubleSum):
    """AVG of doubles: the exact total, divided once."""

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        counts = totals[:, 0]
        return super().decode(totals, values / np.where(counts == 0, 1, counts))


class DoubleVariance(DoubleFunction):
    """Variance and standard deviation, of a sample or a population, from exact sums of values and squares.

    ``squared_deviations`` is the sum of the squared differences from the average.
    """

    width = 1 + sums.VALUES.limbs + sums.SQUARES.limbs
    summand = "double and its square"

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._sample = call.function.endswith("_samp")
        self._root = call.function.startswith("stddev")
        self._summed = call.function == "squared_deviations"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        (argument,) = arguments
        values = double_values(argument)
        fits = self.fits(values)
        inside = np.where(fits, values, 0.0)
        square, error = exact_products(inside, inside)
        split = 1 + sums.VALUES.limbs
        errors = np.empty((len(values), sums.SQUARES.limbs), np.int64)
        into[:, 0] = weights
        sums.encode_doubles(inside, weights, into[:, 1:split])
        sums.encode_doubles(square, weights, into[:, split:], sums.SQUARES)
        sums.encode_doubles(error, weights, errors, sums.SQUARES)
        into[:, split:] += errors
        return bool(fits.all())

    @override
    def _escape(self, rows: np.ndarray, columns: Sequence[np.ndarray]) -> Escapes:
        values = columns[0]
        return joined([special(rows, values), far(rows, [values]), far(rows, [values, values], base=_SQUARES)])

    @override
    def read(self, totals: np.ndarray, escaped: Escaped) -> Any:
        return list(exact_sums(totals, _WITH_SQUARES, escaped, lowest_bit=LOWEST_BIT))

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        return pa.array([self._moment(group) if group.count > self._sample else None for group in values], pa.float64())

    def _moment(self, group: ExactSums) -> float:
        if is_special(group.slots):
            return math.nan
        count, (first, second) = group.count, group.sums
        divisor = 1 if self._summed else count - self._sample
        variance = group.ratio(count * second - first * first, count * divisor, 2)
        return math.sqrt(variance) if self._root else variance

    @override
    def fits(self, values: np.ndarray) -> np.ndarray:
        return has_exact_products(values)


def double_values(argument: pa.Array) -> np.ndarray:
    """The doubles, 0.0 where they are NULL."""
    filled = pc.fill_null(argument, 0.0) if argument.null_count else argument
    values: np.ndarray = raw_values(filled).astype(np.float64, copy=False)
    return values


def has_exact_products(values: np.ndarray) -> np.ndarray:
    """Of which values ``exact_products`` fit ``sums.SQUARES``.

    Products have twice the exponent, and the last bit of their rounding error lies 104 bits below.
    """
    magnitude = np.abs(values)
    fits: np.ndarray = (values == 0) | ((magnitude >= 2.0**-50) & (magnitude < 2.0**60))
    return fits


def exact_products(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The products as doubles and the errors of those doubles, exactly (Dekker's product)."""
    product = left * right
    (high, low), (other_high, other_low) = _halves(left), _halves(right)
    error = ((high * other_high - product) + high * other_low + low * other_high) + low * other_low
    return product, error


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shifted = values * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - values)
    return high, values - high


def joined(parts: Sequence[Escapes]) -> Escapes:
    """Escapes of all parts."""
    return Escapes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def special(rows: np.ndarray, values: np.ndarray, *, base: int = 0) -> Escapes:
    """The slots below ``base`` of infinities and NaN."""
    found = rows[~np.isfinite(values[rows])]
    kinds = np.where(np.isnan(values[found]), NAN, np.where(values[found] > 0, PLUS_INFINITY, MINUS_INFINITY))
    return Escapes(found, kinds.astype(np.int64) + base, np.ones(len(found), np.int64))


def is_special(slots: Slots, *, base: int = 0) -> bool:
    """Whether there are infinities or NaN in the slots below ``base``."""
    kinds = (base + NAN, base + PLUS_INFINITY, base + MINUS_INFINITY)
    return any(slot in kinds and amount for slot, amount in slots)


def far(rows: np.ndarray, factors: Sequence[np.ndarray], *, base: int = 0, lowest_bit: int = LOWEST_BIT) -> Escapes:
    """The slots from ``base`` on of products that the limbs cannot hold; not vectorised, for they are rare."""
    found: list[tuple[int, int, int]] = []
    for row in rows.tolist():
        values = [float(factor[row]) for factor in factors]
        if not all(map(math.isfinite, values)):
            continue
        numerator, denominator = math.prod(map(Fraction, values)).as_integer_ratio()
        shifted = numerator * 2**-lowest_bit // denominator
        sign, magnitude, slot = (1 if shifted > 0 else -1), abs(shifted), base
        while magnitude:
            if part := magnitude & 0xFFFFFFFF:
                found.append((row, slot, sign * part))
            magnitude >>= sums.LIMB_BITS
            slot += 1
    columns = [np.array(column, np.int64) for column in zip(*found, strict=True)] or [np.empty(0, np.int64)] * 3
    return Escapes(*columns)


def _total(limbs: np.ndarray, slots: Slots) -> float:
    present = {slot for slot, amount in slots if slot < 0 and amount}
    if NAN in present or {PLUS_INFINITY, MINUS_INFINITY} <= present:
        return math.nan
    if present:
        return math.inf if PLUS_INFINITY in present else -math.inf
    total = Fraction(sums.wide_totals(limbs[None, :])[0]) * Fraction(2) ** sums.VALUES.lowest_bit
    return exact_double(total + Fraction(_far_total(slots, 0, 0)) * Fraction(2) ** LOWEST_BIT)


@dataclass(frozen=True)
class ExactSums:
    """The exact sums of products of a group's values.

    Attributes:
        count: how many rows it has; all else has no meaning if that is none.
        sums: each in units of 2 ** (-unit * factors), where ``factors`` says of how many values its products are.
        unit: the same for all of them.
        slots: what of them lies in the side table.
    """

    count: int
    sums: list[int]
    unit: int
    slots: Slots

    def ratio(self, numerator: int, denominator: int, factors: int) -> float:
        """A fraction of integers, the upper one in units of products of so many values, as the nearest double."""
        try:
            return numerator / (denominator << (self.unit * factors))
        except OverflowError:
            return math.inf if numerator > 0 else -math.inf


def exact_sums(
    totals: np.ndarray, windows: Sequence[tuple[sums.LimbRange, int]], escaped: Escaped, *, lowest_bit: int
) -> Iterator[ExactSums]:
    """The sums of each group from its totals, which are a count and the limbs of windows.

    Args:
        totals: of the groups.
        windows: each with how many factors its products have.
        escaped: what else there is of them, by group, from ``far`` with ``lowest_bit`` and SLOTS for each window.
        lowest_bit: see above.
    """
    columns, at = [], 1
    for window, _ in windows:
        columns.append(sums.wide_totals(totals[:, at : at + window.limbs]))
        at += window.limbs
    for group, (count, *limbs) in enumerate(zip(totals[:, 0].tolist(), *columns, strict=True)):
        slots = escaped.get(group, ())
        unit = _FAR_UNIT if slots else _UNIT
        found = []
        for number, ((window, factors), total) in enumerate(zip(windows, limbs, strict=True)):
            near = total << (window.lowest_bit + unit * factors)
            found.append(near + (_far_total(slots, SLOTS * number, lowest_bit + unit * factors) if slots else 0))
        yield ExactSums(count, found, unit, slots)


def _far_total(slots: Slots, base: int, shift: int) -> int:
    """The slots from ``base`` on; no bit of them is lost if ``shift`` is negative."""
    total = sum(amount << (sums.LIMB_BITS * (slot - base)) for slot, amount in slots if base <= slot < base + SLOTS)
    return total << shift if shift >= 0 else total >> -shift
