"""Arithmetic on decimals: exact, then rounded half up to the type Spark gives the result, or an error if it is larger.

``tolerant``, what is larger is NULL.

Spark computes with 39 digits and cuts off the rest, one digit more than any result has, so its rounding is exact too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.failures import (
    decimal_overflow,
    divide_by_zero,
    failure,
    remainder_by_zero,
)
from weirflow.ivm.kernel.expressions.numbers.decimal_words import (
    LONG_DIGITS,
    MAX_DIGITS,
    fitted,
    from_unscaled,
    half_up,
    plain_text,
    rescaled,
    unscaled,
    wide,
)
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.errors import SqlPosition
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature, Kernel

_ARROW = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}
_MAX_256 = 76
_NEGATED_DIGITS = 34
_WORKING_DIGITS = 39


def arithmetic(signature: CallSignature, *, tolerant: bool = False) -> Kernel | None:
    """``+``, ``-`` and ``*`` of two decimals."""
    left, right = signature.types
    if not (pa.types.is_decimal128(left) and pa.types.is_decimal128(right)):
        return None
    kind = signature.result
    precision, scale = _exact_type(signature.function, left, right)
    if (precision, scale) == (kind.precision, kind.scale):
        # Nothing is lost, nothing can overflow.
        return _on_longs(signature) if precision <= LONG_DIGITS else _ARROW[signature.function]
    if scale == kind.scale and precision <= _MAX_256:
        return _on_256_bits(signature, tolerant=tolerant)
    return _on_integers(signature, tolerant=tolerant)


def _exact_type(function: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Precision and scale that hold every result."""
    if function == "multiply":
        return left.precision + right.precision + 1, left.scale + right.scale
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def _on_longs(signature: CallSignature) -> Kernel:
    left, right = signature.types
    kind, function = signature.result, signature.function
    if function == "multiply":
        return on_arrays(lambda a, b: from_unscaled(unscaled(a) * unscaled(b), kind, a, b))
    up, down = 10 ** (kind.scale - left.scale), 10 ** (kind.scale - right.scale)
    operate = np.add if function == "add" else np.subtract
    return on_arrays(lambda a, b: from_unscaled(operate(unscaled(a) * up, unscaled(b) * down), kind, a, b))


def _on_256_bits(signature: CallSignature, *, tolerant: bool) -> Kernel:
    left, right = (pa.decimal256(each.precision, each.scale) for each in signature.types)
    operate, kind = _ARROW[signature.function], signature.result
    exact = _on_integers(signature, tolerant=tolerant)

    def run(a: Value, b: Value) -> Value:
        try:
            return operate(a.cast(left), b.cast(right)).cast(kind)
        except pa.ArrowInvalid:
            return exact(a, b)  # which knows the row

    return run


def _on_integers(signature: CallSignature, *, tolerant: bool) -> Kernel:
    left, right = signature.types
    kind, function, position = signature.result, signature.function, signature.position
    _, scale = _exact_type(function, left, right)

    def run(a: pa.Array, b: pa.Array) -> pa.Array:
        first, second = wide(a), wide(b)
        if function == "multiply":
            exact = first * second
        else:
            first, second = rescaled(first, left.scale, scale), rescaled(second, right.scale, scale)
            exact = first + second if function == "add" else first - second
        return fitted(rescaled(exact, scale, kind.scale), kind, position, a, b, tolerant=tolerant)

    return on_arrays(run)


def division(signature: CallSignature, *, tolerant: bool = False) -> Kernel | None:
    """``/`` of two decimals."""
    left, right = signature.types
    if not (pa.types.is_decimal128(left) and pa.types.is_decimal128(right)):
        return None
    kind, position = signature.result, signature.position

    def run(a: pa.Array, b: pa.Array) -> pa.Array:
        divisor = _divisor(a, b)
        if divisor is None:
            raise divide_by_zero(position)
        quotient = half_up(wide(a) * 10 ** (kind.scale + right.scale), divisor * 10**left.scale)
        return fitted(quotient, kind, position, a, b, tolerant=tolerant)

    return on_arrays(run)


def modulus(signature: CallSignature, *, tolerant: bool = False) -> Kernel | None:
    """``%`` and ``pmod``."""
    left, right = signature.types
    if not (pa.types.is_decimal128(left) and pa.types.is_decimal128(right)):
        return None
    kind, position = signature.result, signature.position
    scale = max(left.scale, right.scale)
    positive = signature.function == "pmod"

    def run(a: pa.Array, b: pa.Array) -> pa.Array:
        divisor = _divisor(a, b)
        if divisor is None:
            raise remainder_by_zero(position)
        dividend, divisor = rescaled(wide(a), left.scale, scale), rescaled(divisor, right.scale, scale)
        quotient = _towards_zero(dividend, divisor)
        _check_quotient(quotient, position, a, b)
        rest = dividend - quotient * divisor
        if positive:
            again = rest + divisor
            rest = np.where(rest < 0, again - _towards_zero(again, divisor) * divisor, rest)
        return fitted(rescaled(rest, scale, kind.scale), kind, position, a, b, tolerant=tolerant)

    return on_arrays(run)


def integral_division(signature: CallSignature, *, tolerant: bool = False) -> Kernel | None:
    """``div``: the quotient's integral part as BIGINT; as in Spark, its low 64 bits if it is larger."""
    left, right = signature.types
    if not (pa.types.is_decimal128(left) and pa.types.is_decimal128(right)) or signature.result != pa.int64():
        return None
    position = signature.position
    digits = min(max(left.precision - left.scale + right.scale, 1), MAX_DIGITS)

    def run(a: pa.Array, b: pa.Array) -> pa.Array:
        divisor = _divisor(a, b)
        if divisor is None:
            raise divide_by_zero(position)
        quotient = _towards_zero(wide(a) * 10**right.scale, divisor * 10**left.scale)
        _check_quotient(quotient, position, a, b)
        large = (np.abs(quotient) >= 10**digits).astype(np.bool_)
        row = first_row(large, a, b)
        if row is not None and not tolerant:
            raise decimal_overflow(plain_text(int(quotient[row]), 0), pa.decimal128(digits, 0), position)
        wrapped = ((quotient + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
        quotients = like_nulls(wrapped.astype(np.int64), pa.int64(), a, b)
        return quotients if row is None else pc.if_else(pa.array(~large), quotients, None)

    return on_arrays(run)


def _divisor(a: pa.Array, b: pa.Array) -> NDArray[Any] | None:
    """Python integers, never zero (one stands in at NULLs); None if a row divides by zero."""
    divisor = wide(b)
    zero = divisor == 0
    if first_row(zero, a, b) is not None:
        return None
    return np.where(zero, 1, divisor)


def _towards_zero(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    size: NDArray[Any] = np.abs(numerator) // np.abs(denominator)
    return np.where((numerator < 0) != (denominator < 0), -size, size)


def _check_quotient(quotient: NDArray[Any], position: SqlPosition | None, a: pa.Array, b: pa.Array) -> None:
    """Spark finds no quotient of more than 39 digits, unless those beyond are zeros."""
    if not (np.abs(quotient) >= 10**_WORKING_DIGITS).any():
        return
    lost = np.array([len(str(abs(value)).rstrip("0")) > _WORKING_DIGITS for value in quotient], np.bool_)
    if first_row(lost, a, b) is not None:
        raise failure("ARITHMETIC_OVERFLOW", "Division impossible: the quotient has more than 39 digits.", position)


def sign_change(signature: CallSignature) -> Kernel:
    """``-`` and ``abs``: as in Spark, a number whose sign changes keeps 34 significant digits, rounded half even."""
    kind, position = signature.result, signature.position
    positive_only = signature.function == "abs"
    if kind.precision <= _NEGATED_DIGITS:
        return pc.abs if positive_only else pc.negate  # type: ignore[no-any-return]  # pyarrow ships no types

    def run(array: pa.Array) -> pa.Array:
        values = wide(array)
        negated = np.array([_shortened(-value) for value in values], object)
        results = np.where(values < 0, negated, values) if positive_only else negated
        return fitted(results, kind, position, array, condition="NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION")

    return on_arrays(run)


def _shortened(value: int) -> int:
    """The value with 34 significant digits, rounded half even."""
    extra = len(str(abs(value))) - _NEGATED_DIGITS
    if extra <= 0:
        return value
    power: int = 10**extra
    size, rest = divmod(abs(value), power)
    if 2 * rest > power or (2 * rest == power and size % 2 == 1):
        size += 1
    return size * power if value >= 0 else -size * power
