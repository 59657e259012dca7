"""Bounds of distances by matrix products: which vectors can be among the nearest, before any distance is computed.

A product of matrices adds up in an order of its own and, of FLOAT, in single precision. How far it can be from the
distance that is defined is known beforehand: with u the unit of rounding and n numbers in a vector, the computed inner
product differs from the true one by at most about n * u * |x| * |q|, in whatever order it is added up. All bounds here
are wider than that by a small factor, which also covers the rounding of the bounds and of the distance itself.

Distances are compared as *measures*, which need no root: the squared distance for ``l2``, the distance for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from weirflow.types import VectorMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from weirflow.ivm.kernel.vectors.vectors import Doubles, Floats, Vectors
    from weirflow.ivm.zset.batch import Bools, Int64s

_BLOCK = 1 << 15
"""Numbers whose squares are added up at once: few enough to stay in the processor's cache as DOUBLE."""
_UNIT = {4: 2.0**-24, 8: 2.0**-53}
_LONGEST = {4: 1e15, 8: 1e150}
"""Beyond that, products may overflow."""
_SHORTEST = {4: 1e-15, 8: 1e-150}
"""Below that, what is lost when products underflow matters to the cosine."""
_SMALLEST = {4: 2.0**-126, 8: 2.0**-1022}
_ROUNDED = 2.0**-50
"""What a distance may be off by when it is squared again, relatively."""


class Kind(IntEnum):
    """What is known of the distances of a vector before they are computed."""

    PLAIN = 0
    """They have bounds."""
    NULL = 1
    """They are NULL, whatever the other vector is."""
    NAN = 2
    """They are NaN, if the other vector is plain and of the same dimension."""
    ODD = 3
    """Nothing: a number is infinite, or so large or small that bounds do not hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What bounds need to know of vectors: the norm of each, its square, its kind, and what a product is corrected by.

    The last is the square for ``l2``, the norm for ``cosine`` and unused for ``inner``, as precise as products are.
    """

    squares: Doubles
    norms: Doubles
    kinds: npt.NDArray[np.uint8]
    corrections: Floats

    def take(self, at: Int64s | slice) -> Profile:
        """That of the vectors at these places."""
        return Profile(self.squares[at], self.norms[at], self.kinds[at], self.corrections[at])


def profile(vectors: Vectors, metric: VectorMetric, width: int) -> Profile:
    """What is known of each vector, for products of numbers of ``width`` bytes."""
    squares = np.zeros(len(vectors))
    many = max(1, _BLOCK // max(1, int(vectors.lengths.max(initial=1))))
    for first in range(0, len(vectors), many):
        last = min(first + many, len(vectors))
        _add_squares(vectors, first, last, squares)
    with np.errstate(all="ignore"):
        norms = np.sqrt(squares)
        kinds = np.where(norms <= _LONGEST[width], Kind.PLAIN, Kind.ODD).astype(np.uint8)
        if metric is VectorMetric.COSINE:
            kinds[norms < _SHORTEST[width]] = Kind.ODD
            kinds[squares == 0.0] = Kind.NULL
    kinds[np.isnan(squares)] = Kind.NAN
    kinds[~vectors.usable] = Kind.NULL
    with np.errstate(all="ignore"):
        corrections = (norms if metric is VectorMetric.COSINE else squares).astype(f"f{width}")
    return Profile(squares, norms, kinds, corrections)


def joined(parts: Sequence[Profile]) -> Profile:
    """What is known of vectors, behind each other."""
    if len(parts) == 1:
        return parts[0]
    return Profile(
        np.concatenate([part.squares for part in parts]),
        np.concatenate([part.norms for part in parts]),
        np.concatenate([part.kinds for part in parts]),
        np.concatenate([part.corrections for part in parts]),
    )


def _add_squares(vectors: Vectors, first: int, last: int, squares: Doubles) -> None:
    lengths = vectors.lengths[first:last]
    with np.errstate(all="ignore"):
        for dimension in np.unique(lengths[lengths > 0]).tolist():
            matrix = vectors.matrix(first, last, dimension)
            at = np.arange(first, last) if matrix is not None else first + np.flatnonzero(lengths == dimension)
            wide = (vectors.gathered(at, dimension) if matrix is None else matrix).astype(np.float64, copy=False)
            squares[at] = np.einsum("ij,ij->i", wide, wide)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Plain vectors of one dimension, as a matrix for products with others.

    Attributes:
        at: which ones of all these are.
    """

    metric: VectorMetric
    at: Int64s
    matrix: Floats
    profile: Profile

    @property
    def dimension(self) -> int:
        """How many numbers each has."""
        return int(self.matrix.shape[1])

    def take(self, chosen: Int64s) -> Asked:
        """Those at these places among them."""
        return Asked(self.metric, self.at[chosen], self.matrix[chosen], self.profile.take(chosen))


def asked(metric: VectorMetric, vectors: Vectors, known: Profile, dtype: np.dtype) -> list[Asked]:
    """The plain ones of some vectors, by dimension, as matrices of this type."""
    plain = known.kinds == Kind.PLAIN
    found = []
    for dimension in np.unique(vectors.lengths[plain]).tolist():
        at = np.flatnonzero(plain & (vectors.lengths == dimension))
        matrix = np.ascontiguousarray(vectors.gathered(at, dimension), dtype)
        found.append(Asked(metric, at, matrix, known.take(at)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """For pairs of vectors that ask (rows) and others (columns), how near they are: the greater, the nearer.

    The measure of a pair is ``offsets - scale * score``, give or take ``slack``.
    """

    values: Floats
    offsets: Doubles
    scale: Doubles
    slack: Doubles

    def least(self, bars: Doubles) -> Floats:
        """The score below which a measure is greater than the bar for certain; rounded down."""
        with np.errstate(all="ignore"):
            wanted = (self.offsets - bars - self.slack) / self.scale
        unsure = ~np.isfinite(wanted)
        lower = wanted - np.abs(np.where(unsure, 0.0, wanted)) * 8 * _UNIT[self.values.itemsize]
        with np.errstate(over="ignore"):  # beyond the greatest FLOAT is infinite: all scores pass, or none
            return np.where(np.isnan(wanted), -np.inf, lower).astype(self.values.dtype)

    def measures(self, rows: Int64s, values: Floats) -> tuple[Doubles, Doubles]:
        """The least and the greatest measure of pairs of these rows and scores."""
        middle = self.offsets[rows] - self.scale[rows] * values.astype(np.float64)
        return middle - self.slack[rows], middle + self.slack[rows]


def scores(of: Asked, others: Floats, known: Profile, left_out: Bools | None) -> Scores:
    """Those of vectors that ask with the rows of a matrix, all but some of which are plain."""
    metric, profile_ = of.metric, of.profile
    norms = known.norms if left_out is None else known.norms[~left_out]
    longest, shortest = float(norms.max(initial=0.0)), float(norms.min(initial=np.inf))
    with np.errstate(all="ignore"):
        # A matrix and a vector are twice as fast as two matrices.
        values = (others @ of.matrix[0])[np.newaxis] if len(of.at) == 1 else of.matrix @ others.T
        if metric is VectorMetric.L2:
            values *= 2
            values -= known.corrections
        elif metric is VectorMetric.COSINE:
            values /= known.corrections
    if left_out is not None:
        values[:, left_out] = -np.inf
    unit, width, dimension = _UNIT[values.itemsize], values.itemsize, of.dimension
    products, exact = (dimension + 8) * unit, (dimension + 8) * _UNIT[8]
    lost = 16 * dimension * _SMALLEST[width] * (1 + longest + profile_.norms)
    if metric is VectorMetric.L2:
        both = longest * longest + profile_.squares
        slack = 4 * products * longest * profile_.norms + (32 * unit + 8 * exact) * both + lost
        return Scores(values, profile_.squares, np.ones(len(of.at)), slack)
    if metric is VectorMetric.INNER:
        slack = (4 * products + 8 * exact) * longest * profile_.norms + lost
        return Scores(values, np.zeros(len(of.at)), np.ones(len(of.at)), slack)
    slack = 4 * products + 32 * unit + 16 * exact + lost / (min(shortest, 1e300) * profile_.norms)
    return Scores(values, np.ones(len(of.at)), 1.0 / profile_.norms, slack)


def bars(metric: VectorMetric, values: Doubles) -> Doubles:
    """The measures up to which a distance can be no greater than these; infinite for NaN, which is the greatest."""
    with np.errstate(all="ignore"):
        found = values * values if metric is VectorMetric.L2 else values
        found = found + (np.abs(found) + (0.0 if metric is VectorMetric.L2 else 1.0)) * _ROUNDED
    return np.where(np.isnan(found), np.inf, found)
