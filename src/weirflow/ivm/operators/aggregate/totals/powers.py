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
from weirflow.ivm.operators.aggregate.totals.doubles import (
    SLOTS,
    DoubleFunction,
    Escapes,
    ExactSums,
    double_values,
    exact_products,
    exact_sums,
    far,
    has_exact_products,
    is_special,
    joined,
    special,
)
from weirflow.ivm.operators.aggregate.totals.linear import divided

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.totals.linear import Escaped
    from weirflow.sql.expr import AggregateCall

_LOWEST_BIT = -1088 * 4  # below the fourth power of the smallest double
_POWERS = ((sums.VALUES, 1), (sums.SQUARES, 2), (sums.CUBES, 3), (sums.FOURTHS, 4))


class DoublePowers(DoubleFunction):
    """The totals of a group: how many values it has, and the limbs of the sums of their powers."""

    width = 1 + sum(window.limbs for window, _ in _POWERS)
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
        for (window, _), parts in zip(_POWERS, _exact_powers(inside), strict=True):
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
        powers = (far(rows, [values] * power, base=SLOTS * (power - 1), lowest_bit=_LOWEST_BIT) for _, power in _POWERS)
        return joined([special(rows, values), *powers])

    @override
    def read(self, totals: np.ndarray, escaped: Escaped) -> Any:
        """The second, third and fourth central moments, each times the count, of each group that has a value."""
        found = exact_sums(totals, _POWERS, escaped, lowest_bit=_LOWEST_BIT)
        return [_central(group) if group.count else (0.0, 0.0, 0.0) for group in found]

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        results = [
            None if moments[0] == 0 else self._of(count, *moments)
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


def _central(group: ExactSums) -> tuple[float, float, float]:
    if is_special(group.slots):
        return math.nan, math.nan, math.nan
    n, (first, second, third, fourth) = group.count, group.sums
    return (
        group.ratio(n * second - first**2, n, 2),
        group.ratio(n * n * third - 3 * n * first * second + 2 * first**3, n**2, 3),
        group.ratio(n**3 * fourth - 4 * n * n * first * third + 6 * n * first**2 * second - 3 * first**4, n**3, 4),
    )
