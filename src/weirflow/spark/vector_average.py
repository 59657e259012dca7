"""``vector_avg`` in Spark sessions: an aggregate in Python, since Spark lets no SQL function be one.

Each mean is the exact sum of the numbers, rounded once and then divided, as a view has it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf


def vector_average(vectors: pa.Array) -> list[float | None] | None:
    """The mean of each element of some vectors; those that are NULL are left out, of vectors and of elements.

    From its annotations PySpark knows that it aggregates.

    Raises:
        ValueError: the vectors have several dimensions.
    """
    present = vectors.drop_null()
    if not len(present):
        return None
    dimensions = present.value_lengths().unique().to_pylist()
    if len(dimensions) > 1:
        raise ValueError("vector_avg() takes vectors of one dimension; a group has several.")
    (dimension,) = dimensions
    numbers = present.flatten()
    every = range(0, len(numbers), dimension) if dimension else range(0)
    places = pa.array(every, pa.int64())
    return [_mean(numbers.take(pa.array(places.to_numpy() + at)).drop_null().to_pylist()) for at in range(dimension)]


def _mean(values: list[float]) -> float | None:
    if not values:
        return None
    return _sum(values) / len(values)


def _sum(values: list[float]) -> float:
    special = {value for value in values if not math.isfinite(value)}
    if special:
        return math.nan if len(special) > 1 else special.pop()
    try:
        return math.fsum(values)
    except OverflowError:  # which it may be on the way only
        exact = sum(map(Fraction, values))
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf


def spark_aggregate() -> Any:
    """What a session registers."""
    return arrow_udf(vector_average, "array<double>")  # type: ignore[call-overload] # the stubs know functions of arrays alone
