"""How far vectors are from each other: products and sums in DOUBLE, in the order of the elements.

What Spark computes by ``aggregate(zip_with(a, b, ...), 0D, (sum, one) -> sum + one)`` over elements cast to DOUBLE, bit
for bit. Pairs are computed one number after the other by compiled loops or, with the same bits, by NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weirflow.ivm import compiled
from weirflow.types import VectorMetric

if TYPE_CHECKING:
    from weirflow.ivm.kernel.vectors.vectors import Doubles, Vectors
    from weirflow.ivm.zset.batch import Bools, Int64s

_AT_ONCE = 1 << 20
"""So many numbers of pairs are gathered at once where there are no compiled loops."""


class Distances(NamedTuple):
    """A distance for each pair, and whether there is one: NULL where not."""

    values: Doubles
    valid: Bools


def distances(metric: VectorMetric, left: Vectors, left_at: Int64s, right: Vectors, right_at: Int64s) -> Distances:
    """The distances of pairs of vectors: the smaller, the nearer.

    ``l2`` is the square root of the sum of squared differences, ``inner`` 0 minus the sum of products, ``cosine`` 1
    minus the sum of products divided by the product of both norms. NULL if a vector or one of its elements is, if the
    dimensions differ, and for the cosine of a vector whose norm is 0.
    """
    valid = left.usable[left_at] & right.usable[right_at] & (left.lengths[left_at] == right.lengths[right_at])
    if not valid.all():
        left_at, right_at = left_at[valid], right_at[valid]
    with np.errstate(all="ignore"):
        if metric is VectorMetric.L2:
            found = np.sqrt(_squares(left, left_at, right, right_at))
            there = np.ones(len(found), np.bool_)
        elif metric is VectorMetric.INNER:
            found = 0.0 - _products(left, left_at, right, right_at)
            there = np.ones(len(found), np.bool_)
        else:
            scale = _norms_at(left, left_at) * _norms_at(right, right_at)
            there = scale != 0.0
            found = 1.0 - _products(left, left_at, right, right_at) / scale
    values = np.zeros(len(valid))
    valid[valid] = there
    values[valid] = found[there]
    return Distances(values, valid)


def norms(vectors: Vectors) -> Doubles:
    """The square root of the sum of squares of each vector; 0 where there is none."""
    at = np.arange(len(vectors))
    with np.errstate(all="ignore"):
        return np.sqrt(_products(vectors, at, vectors, at))


def _norms_at(vectors: Vectors, at: Int64s) -> Doubles:
    """The norms of the vectors at these places, each computed once."""
    different, places = np.unique(at, return_inverse=True)
    return np.sqrt(_products(vectors, different, vectors, different))[places]


def _products(left: Vectors, left_at: Int64s, right: Vectors, right_at: Int64s) -> Doubles:
    """The sums of products of pairs of equal dimensions."""
    return _sums(left, left_at, right, right_at, squared=False)


def _squares(left: Vectors, left_at: Int64s, right: Vectors, right_at: Int64s) -> Doubles:
    """The sums of squared differences of pairs of equal dimensions."""
    return _sums(left, left_at, right, right_at, squared=True)


def _sums(left: Vectors, left_at: Int64s, right: Vectors, right_at: Int64s, *, squared: bool) -> Doubles:
    lengths = left.lengths[left_at]
    ours, theirs = left.starts[left_at], right.starts[right_at]
    if compiled.kernels is not None:
        found: Doubles = compiled.kernels.pair_sums(left.values, ours, right.values, theirs, lengths, squared)
        return found
    total = np.zeros(len(left_at))
    for dimension in np.unique(lengths).tolist():
        if not dimension:
            continue
        of_it = np.flatnonzero(lengths == dimension)
        many = max(1, _AT_ONCE // dimension)
        for start in range(0, len(of_it), many):
            at = of_it[start : start + many]
            total[at] = _added(left, ours[at], right, theirs[at], dimension, squared=squared)
    return total


def _added(left: Vectors, ours: Int64s, right: Vectors, theirs: Int64s, dimension: int, *, squared: bool) -> Doubles:
    steps = np.arange(dimension)[:, np.newaxis]
    one = left.values[ours + steps].astype(np.float64, copy=False)
    other = right.values[theirs + steps].astype(np.float64, copy=False)
    terms = one - other if squared else one * other
    if squared:
        terms *= terms
    total = np.zeros(len(ours))
    for term in terms:  # one element after the other: NumPy's own sums add up in pairs
        total += term
    return total
