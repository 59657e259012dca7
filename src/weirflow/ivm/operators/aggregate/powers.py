"""SKEWNESS and KURTOSIS, from exact sums of values and their second, third and fourth powers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.aggregate.doubles import (
    SLOTS,
    DoubleFunction,
    Escapes,
    double_values,
    exact_products,
    exact_total,
    far,
    has_exact_products,
    is_special,
    joined,
    special,
)
from weirflow.ivm.operators.aggregate.linear import divided, exact_double

if TYPE_CHECKING:
    from fractions import Fraction

    from weirflow.ivm.operators.aggregate.doubles import Slots
    from weirflow.sql.expr import AggregateCall

_LOWEST_BIT = -1088 * 4  # below the fourth power of the smallest double
_POWERS = (sums.VALUES, sums.SQUARES, sums.CUBES, sums.FOURTHS)


class DoublePowers(DoubleFunction):
    """The totals of a group: how many values it has, and the limbs of the sums of their powers."""

    width = 1 + sum(power.limbs for power in _POWERS)
    summand = "double and its powers"

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._is_skewness = call.function.endswith("skewness")
        self._divide = partial(divided, position=call.position, raises=not call.function.startswith("try_"))

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        values = double_values(arguments[0])
        fits = self.fits(values)
        inside = np.where(fits, values, 0.0)
        into[:, 0] = weights
        at = 1
        for window, parts in zip(_POWERS, _exact_powers(inside), strict=True):
            limbs = into[:, at : at + window.limbs]
            at += window.limbs
            limbs[:] = 0
            one = np.empty((len(values), window.limbs), np.int64)
            for part in parts:
                sums.encode_doubles(part, weights, one, window)
                limbs += one
        return bool(fits.all())

    @override
    def fits(self, values: np.ndarray) -> np.ndarray:
        return has_exact_products(values)

    @override
    def _escape(self, rows: np.ndarray, columns: Sequence[np.ndarray]) -> Escapes:
        (values,) = columns
        powers = (
            far(rows, [values] * power, base=SLOTS * (power - 1), lowest_bit=_LOWEST_BIT)
            for power in range(1, len(_POWERS) + 1)
        )
        return joined([special(rows, values), *powers])

    @override
    def read(self, totals: np.ndarray, escaped: Any) -> Any:
        """The second, third and fourth central moments, each times the count, of each group that has a value."""
        return [
            _central(row, escaped.get(group, ())) if row[0] > 0 else (0.0, 0.0, 0.0) for group, row in enumerate(totals)
        ]

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        results = [
            None if count == 0 or moments[0] == 0 else self._of(count, *moments)
            for count, moments in zip(totals[:, 0].tolist(), values, strict=True)
        ]
        return pa.array(results, pa.float64())

    def _of(self, count: int, second: float, third: float, fourth: float) -> float | None:
        if self._is_skewness:
            cubed = second * second * second
            return self._divide(math.sqrt(count) * third, math.sqrt(cubed))
        ratio = self._divide(count * fourth, second * second)
        return None if ratio is None else ratio - 3.0


def _exact_powers(values: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Doubles that add up to each power exactly."""
    square, error = exact_products(values, values)
    yield [values]
    yield [square, error]
    yield [*exact_products(values, square), *exact_products(values, error)]
    mixed = [2.0 * part for part in exact_products(square, error)]
    yield [*exact_products(square, square), *mixed, *exact_products(error, error)]


def _central(totals: np.ndarray, slots: Slots) -> tuple[float, float, float]:
    if is_special(slots):
        return math.nan, math.nan, math.nan
    count, at, found = int(totals[0]), 1, []
    for power, window in enumerate(_POWERS):
        limbs = totals[at : at + window.limbs]
        found.append(exact_total(limbs, window, slots, base=SLOTS * power, lowest_bit=_LOWEST_BIT))
        at += window.limbs
    first, second, third, fourth = found
    mean: Fraction = first / count
    return (
        exact_double(second - mean * first),
        exact_double(third - 3 * mean * second + 2 * mean * mean * first),
        exact_double(fourth - 4 * mean * third + 6 * mean * mean * second - 3 * mean**3 * first),
    )
