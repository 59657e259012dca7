"""Which numbers fit a column: those that equal what is stored; a float for a FLOAT is rounded to the nearest one."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.arguments.in_errors import kind_of, shown
from weirflow.rows.misfit import Misfit

BOOLEANS = (bool, np.bool_)
"""What is a boolean, and no number though Python has it as one."""

_NUMBERS = frozenset({int, float, Decimal})
_WHOLE = {pa.float64(): 2**53, pa.float32(): 2**24}


def _number(value: Any, wanted: str) -> int | float | Decimal:
    """The value as one of Python's own numbers."""
    if type(value) in _NUMBERS:
        return value  # type: ignore[no-any-return]  # it is one of them
    if isinstance(value, BOOLEANS):
        raise Misfit(value, "it is a boolean", wanted)
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float):
        return float.__pos__(value)
    if isinstance(value, np.floating):
        near = float(value)
        if near == value or math.isnan(near):
            return near
        raise Misfit(value, "it has more digits than a DOUBLE")
    if isinstance(value, Decimal):
        return value
    raise Misfit(value, f"it is {kind_of(value)}, not an int, a float or a Decimal", wanted)


def _require_finite(number: float | Decimal, what: str) -> None:
    # The math module would make a float of a Decimal, which large ones are too large for.
    finite, nan = (
        (number.is_finite(), number.is_nan())
        if isinstance(number, Decimal)
        else (math.isfinite(number), math.isnan(number))
    )
    if not finite:
        raise Misfit(number, f"it is not a {what}", "None is NULL" if nan else None)


def integer(kind: pa.DataType) -> Callable[[Any], Any]:
    """For TINYINT to BIGINT: whole numbers in range."""
    most = 2 ** (kind.bit_width - 1) - 1
    digits = 20

    def convert(value: Any) -> int:
        number = _number(value, "give an int")
        if not isinstance(number, int):
            _require_finite(number, "whole number")
            if isinstance(number, Decimal) and number and number.adjusted() > digits:
                raise Misfit(value, "it is too large")
            whole = int(number)
            if whole != number:
                raise Misfit(value, "it is not a whole number", "round it, or declare the column DOUBLE or DECIMAL")
            number = whole
        if not -most - 1 <= number <= most:
            raise Misfit(value, f"it is not between {-most - 1} and {most}")
        return number

    return convert


def floating(kind: pa.DataType) -> Callable[[Any], Any]:
    """For FLOAT and DOUBLE: floats, and other numbers that are one."""
    single = pt.is_float32(kind)
    whole = _WHOLE[kind]

    def rounded(number: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.float32(number)) if single else number

    def convert(value: Any) -> float:
        number = _number(value, "give a float")
        if isinstance(number, float):
            near = rounded(number)
            if math.isinf(near) and not math.isinf(number):
                raise Misfit(value, "it is too large", "declare the column DOUBLE")
            return near
        if isinstance(number, int):
            if abs(number) > whole:
                raise Misfit(value, f"beyond {whole} such a column does not hold every int", "declare it DECIMAL")
            return float(number)
        try:
            near = rounded(float(number))
        except ValueError:
            raise Misfit(value, "it is not a number that a column can hold") from None
        if number.is_nan() or near == number:
            return near
        raise Misfit(value, "it would be rounded", "give a float, or declare the column DECIMAL")

    return convert


def decimal(kind: pa.DataType) -> Callable[[Any], Any]:
    """For DECIMAL: numbers that have no more digits."""
    precision, scale = kind.precision, kind.scale

    def convert(value: Any) -> Decimal:
        number = _number(value, "give a Decimal or an int")
        _require_finite(number, "number that a DECIMAL holds")
        if isinstance(number, int) and abs(number) >= 10**precision:
            raise Misfit(value, f"it has more than {precision - scale} digits before the point")
        exact = _trimmed(Decimal(number))
        if exact and exact.adjusted() >= precision - scale:
            raise Misfit(value, f"it has more than {precision - scale} digits before the point")
        if -_exponent(exact) > scale:
            if isinstance(number, float):
                raise Misfit(value, f"the float is {shown(exact)}", "give a Decimal, which has the digits it shows")
            raise Misfit(value, f"it has more than {scale} digits after the point", "round it")
        return exact

    return convert


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    return exponent


def _trimmed(number: Decimal) -> Decimal:
    """The same number without zeros behind its last digit; ``normalize`` would round."""
    sign, digits, _ = number.as_tuple()
    exponent, end = _exponent(number), len(digits)
    while end and not digits[end - 1]:
        end -= 1
    return Decimal((sign, digits[:end], exponent + len(digits) - end)) if end else Decimal(0)
