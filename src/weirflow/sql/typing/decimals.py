"""Precision and scale of decimal results, as Spark computes them with ``allowPrecisionLoss``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.sql.types import INTEGRAL_DIGITS, MAX_PRECISION, decimal

if TYPE_CHECKING:
    import pyarrow as pa

_MINIMUM_ADJUSTED_SCALE = 6


def arithmetic_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The result type of ``left operator right`` for two decimals.

    >>> str(arithmetic_type("divide", decimal(10, 2), decimal(10, 0)))
    'decimal128(21, 13)'
    """
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in ("add", "subtract"):
        scale = max(s1, s2)
        return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "multiply":
        return adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "divide":
        scale = max(_MINIMUM_ADJUSTED_SCALE, s1 + p2 + 1)
        return adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def adjusted(precision: int, scale: int) -> pa.DataType:
    """A decimal with that many digits; when they are too many, fraction digits beyond six give way first."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole_digits = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - whole_digits, min(scale, _MINIMUM_ADJUSTED_SCALE)))


def bounded(precision: int, scale: int) -> pa.DataType:
    """A decimal with that many digits, each number cut to 38."""
    return decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def wider(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal that holds both; when none does, whole digits are kept and fraction digits given up."""
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    excess = max(0, precision - MAX_PRECISION)
    return decimal(precision - excess, max(0, scale - excess))


def for_integral(kind: pa.DataType, literal: Any = None) -> pa.DataType:
    """The decimal that holds an integer type, or just this literal of it."""
    if literal is not None:
        return decimal(len(str(abs(literal))), 0)
    return decimal(INTEGRAL_DIGITS[kind], 0)


def rounded(kind: pa.DataType, scale: int) -> pa.DataType:
    """The type of ``round(kind, scale)``."""
    whole_digits = kind.precision - kind.scale + 1
    if scale < 0:
        return decimal(min(MAX_PRECISION, max(whole_digits, 1 - scale)), 0)
    new_scale = min(kind.scale, scale)
    return decimal(min(MAX_PRECISION, whole_digits + new_scale), new_scale)
