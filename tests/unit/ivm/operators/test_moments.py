"""Moments of doubles are the nearest doubles to the exact ones, whatever the values are, and NaN if they have none."""

import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.operators.aggregate.functions import linear_function
from weirflow.sql.expr import AggregateCall, Column

DOUBLE = pa.float64()
EDGES = [0.0, -0.0, 2.0**-50, 2.0**-50 * (1 + 2**-52), 2.0**60 * (1 - 2**-53), -(2.0**59.5), 1.0, 1 / 3]
FAR = [2.0**-51, 2.0**60, 5e-324, -1.7e308, 1e-160, 3e200]


def values(seed, edges):
    draw = random.Random(seed)
    return [draw.choice(edges) if draw.random() < 0.5 else draw.uniform(-1e3, 1e3) for _ in range(7)]


def read(function, *columns):
    """What a linear function reads of one group, whose last row is there three times and whose first is taken back."""
    arrays = [pa.array([*column, column[0]], DOUBLE) for column in columns]
    call = AggregateCall(function, tuple(Column(at, "", DOUBLE) for at in range(len(arrays))), DOUBLE)
    linear = linear_function(call)
    weights = np.ones(len(arrays[0]), np.int64)
    weights[-2], weights[-1] = 3, -1
    rows = np.empty((len(weights), linear.width), np.int64)
    held = linear.encode(arrays, weights, rows)
    slots = {}
    if not held:
        for _, slot, amount in zip(*(part.tolist() for part in linear.escapes(arrays, weights)), strict=True):
            slots[slot] = slots.get(slot, 0) + amount
    totals = rows.sum(axis=0)[None, :]
    (found,) = linear.decode(totals, linear.read(totals, {0: list(slots.items())})).to_pylist()
    return found, [column[1:] + column[-1:] * 2 for column in columns]


def nearest(fraction):
    try:
        return fraction.numerator / fraction.denominator
    except OverflowError:
        return math.inf if fraction > 0 else -math.inf


def central(column, power):
    exact = list(map(Fraction, column))
    mean = sum(exact) / len(exact)
    return nearest(sum((one - mean) ** power for one in exact))


@pytest.mark.parametrize("edges", [EDGES, EDGES + FAR], ids=["held", "far"])
@pytest.mark.parametrize("seed", range(30))
def test_moments_are_exact(seed, edges):
    column = values(seed, edges)
    found, (left,) = read("squared_deviations", column)
    assert found == central(left, 2)
    second, third, fourth = (central(left, power) for power in (2, 3, 4))
    if math.isfinite(second * second * second):
        assert read("skewness", column)[0] == math.sqrt(len(left)) * third / math.sqrt(second * second * second)
    if math.isfinite(second * second):
        assert read("kurtosis", column)[0] == len(left) * fourth / (second * second) - 3.0


@pytest.mark.parametrize("edges", [EDGES, EDGES + FAR], ids=["held", "far"])
@pytest.mark.parametrize("seed", range(30))
def test_products_are_exact(seed, edges):
    x, y = values(seed, edges), values(-1 - seed, edges)
    found, (left, right) = read("regr_sxy", x, y)
    mean_x, mean_y = (sum(map(Fraction, side)) / len(side) for side in (left, right))
    common = sum((Fraction(a) - mean_x) * (Fraction(b) - mean_y) for a, b in zip(left, right, strict=True))
    assert found == nearest(common)
    spread = central(right, 2)
    if spread and math.isfinite(spread):
        assert read("regr_slope", x, y)[0] == nearest(common) / spread


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_what_has_no_average_has_no_moments(special):
    column = [1.0, 2.0, special, 4.0]
    for function in ("squared_deviations", "skewness", "kurtosis", "var_pop"):
        assert math.isnan(read(function, column)[0])
    assert math.isnan(read("covar_pop", column, [1.0, 2.0, 3.0, 4.0])[0])
    assert math.isnan(read("regr_slope", [1.0, 2.0, 3.0, 4.0], column)[0])
    assert read("regr_r2", [5.0] * 4, column)[0] == 1.0
    assert read("regr_r2", column, [5.0] * 4)[0] is None
    assert not math.isnan(read("skewness", [special, 2.0, 3.0, 4.0])[0])
