"""What estimates and sketches are made with: constants that decide their size."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.types import BIGINT, DOUBLE, INT

if TYPE_CHECKING:
    from weirflow.sql.functions.rules import Arguments

USUAL_ERROR = Literal(0.05, DOUBLE)
"""Of ``approx_count_distinct``, if none is given."""
_LEAST_PRECISION, _MOST_PRECISION = 4, 18


def distinct_estimate(value: Expr, error: Expr) -> tuple[Arguments, Expr] | None:
    """The arguments of ``approx_count_distinct`` and which rows it counts; None if the error is no proven constant.

    It is an estimate from the hashes of values that are not NULL, with as many registers as the error asks for.
    """
    precision = _precision(_number(error))
    if precision is None:
        return None
    hashed = Call("xxhash64", (value,), BIGINT)
    return (hashed, Literal(precision, INT)), OPERATORS["is_not_null"]((value,), None)


def is_count_min(error: Expr, confidence: Expr, seed: Expr) -> bool:
    """Whether Spark takes these for the relative error, the confidence and the seed of a sketch."""
    share, sure = _number(error), _number(confidence)
    return bool(
        share is not None
        and share > 0
        and sure is not None
        and 0 < sure < 1
        and isinstance(seed, Literal)
        and seed.type == INT
        and seed.value is not None
    )


def _precision(error: float | None) -> int | None:
    """The number of bits that choose a register; None if Spark has no bias for it."""
    if error is None or not error > 0:
        return None
    precision = math.ceil(2.0 * math.log(1.106 / error) / math.log(2.0))
    return precision if _LEAST_PRECISION <= precision <= _MOST_PRECISION else None


def _number(expr: Expr) -> float | None:
    if not isinstance(expr, Literal) or not isinstance(expr.value, float | Decimal):
        return None
    return float(expr.value)
