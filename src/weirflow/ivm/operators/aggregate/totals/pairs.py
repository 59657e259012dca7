"""Aggregates of pairs of doubles: covariance, correlation, and the line that fits best.

All are made of exact sums of the two values, of their squares and of their products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.aggregate.totals.doubles import (
    LOWEST_BIT,
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

_SUMS = ((sums.VALUES, 1), (sums.VALUES, 1), (sums.SQUARES, 2), (sums.SQUARES, 2), (sums.SQUARES, 2))
"""Of the first values, the second ones, the squares of either, and the products."""
_FACTORS = ((0,), (1,), (0, 0), (1, 1), (0, 1))
_SPECIAL_SECOND = -10
"""Slots below this are of infinities and NaN among the second values."""


@dataclass(frozen=True)
class Pairs:
    """What is known of a group's pairs (x, y).

    Attributes:
        count: how many there are.
        mean_x, mean_y: the averages.
        spread_x, spread_y: the sums of the squared differences from them.
        common: the sum of the products of the differences.
    """

    count: int
    mean_x: float
    mean_y: float
    spread_x: float
    spread_y: float
    common: float


class PairFunction(DoubleFunction):
    """The totals of a group: how many pairs it has, and the limbs of their sums."""

    width = 1 + sum(window.limbs for window, _ in _SUMS)
    summand = "pair of doubles"

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._formula = _FORMULAS[call.function.removeprefix("try_")]
        self._divide = partial(divided, position=call.position, raises=not call.function.startswith("try_"))

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        columns = [double_values(argument) for argument in arguments]
        fits = self.fits(columns[0]) & self.fits(columns[1])
        inside = [np.where(fits, values, 0.0) for values in columns]
        into[:, 0] = weights
        at = 1
        for (window, _), factors in zip(_SUMS, _FACTORS, strict=True):
            limbs = into[:, at : at + window.limbs]
            at += window.limbs
            if len(factors) == 1:
                sums.encode_doubles(inside[factors[0]], weights, limbs, window)
                continue
            product, error = exact_products(*(inside[factor] for factor in factors))
            errors = np.empty((len(fits), window.limbs), np.int64)
            sums.encode_doubles(product, weights, limbs, window)
            sums.encode_doubles(error, weights, errors, window)
            limbs += errors
        return bool(fits.all())

    @override
    def fits(self, values: np.ndarray) -> np.ndarray:
        return has_exact_products(values)

    @override
    def _escape(self, rows: np.ndarray, columns: Sequence[np.ndarray]) -> Escapes:
        products = (
            far(rows, [columns[factor] for factor in factors], base=SLOTS * number)
            for number, factors in enumerate(_FACTORS)
        )
        return joined([special(rows, columns[0]), special(rows, columns[1], base=_SPECIAL_SECOND), *products])

    @override
    def read(self, totals: np.ndarray, escaped: Escaped) -> Any:
        """What is known of the pairs of each group; None of a group without any."""
        found = exact_sums(totals, _SUMS, escaped, lowest_bit=LOWEST_BIT)
        return [_pairs(group) if group.count else None for group in found]

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        results = [None if pairs is None else self._formula(pairs, self._divide) for pairs in values]
        return pa.array(results, pa.float64())


def _pairs(group: ExactSums) -> Pairs:
    n, (x, y, squares_x, squares_y, products) = group.count, group.sums
    unknown_x, unknown_y = is_special(group.slots), is_special(group.slots, base=_SPECIAL_SECOND)
    return Pairs(
        n,
        math.nan if unknown_x else group.ratio(x, n, 1),
        math.nan if unknown_y else group.ratio(y, n, 1),
        math.nan if unknown_x else group.ratio(n * squares_x - x * x, n, 2),
        math.nan if unknown_y else group.ratio(n * squares_y - y * y, n, 2),
        math.nan if unknown_x or unknown_y else group.ratio(n * products - x * y, n, 2),
    )


Divide = Callable[[float, float], float | None]
Formula = Callable[[Pairs, Divide], float | None]


def _covar_samp(pairs: Pairs, _: Divide) -> float | None:
    return None if pairs.count == 1 else pairs.common / (pairs.count - 1)


def _corr(pairs: Pairs, divide: Divide) -> float | None:
    return None if pairs.count == 1 else _correlation(pairs, divide)


def _correlation(pairs: Pairs, divide: Divide) -> float | None:
    return divide(pairs.common, math.sqrt(pairs.spread_x * pairs.spread_y))


# Regressions are of (dependent, independent): the line is over the second values.


def _regr_slope(pairs: Pairs, _: Divide) -> float | None:
    return None if pairs.spread_y == 0 else pairs.common / pairs.spread_y


def _regr_intercept(pairs: Pairs, _: Divide) -> float | None:
    return None if pairs.spread_y == 0 else pairs.mean_x - pairs.common / pairs.spread_y * pairs.mean_y


def _regr_r2(pairs: Pairs, divide: Divide) -> float | None:
    if pairs.spread_y == 0:
        return None
    if pairs.spread_x == 0:
        return 1.0
    correlation = _correlation(pairs, divide)
    return None if correlation is None else correlation * correlation


_FORMULAS: dict[str, Formula] = {
    "covar_pop": lambda pairs, _: pairs.common / pairs.count,
    "covar_samp": _covar_samp,
    "corr": _corr,
    "regr_sxy": lambda pairs, _: pairs.common,
    "regr_slope": _regr_slope,
    "regr_intercept": _regr_intercept,
    "regr_r2": _regr_r2,
}
