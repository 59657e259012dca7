"""Operators on numbers: exact on integers, IEEE 754 on floating point, Spark's precision rules on decimals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.failures import (
    divide_by_zero,
    overflow,
    remainder_by_zero,
    small_overflow,
)
from weirflow.ivm.kernel.expressions.numbers import decimals
from weirflow.ivm.kernel.expressions.rows import first_row, is_scalar, like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_CHECKED = {"add": pc.add_checked, "subtract": pc.subtract_checked, "multiply": pc.multiply_checked}
_PLAIN = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}
_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*"}
_JAVA_NAMES = {pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long"}


def add_subtract_multiply(signature: CallSignature) -> Kernel | None:
    """``+``, ``-`` and ``*``: integers and intervals raise when they overflow, floating point never does."""
    left, right = signature.types
    if pa.types.is_decimal(signature.result):
        return decimals.arithmetic(signature)
    if left != right or left != signature.result:
        return None
    if pa.types.is_floating(left):
        return _PLAIN[signature.function]  # type: ignore[no-any-return]  # pyarrow ships no types
    if pa.types.is_integer(left) or (pa.types.is_duration(left) and signature.function != "multiply"):
        return _checked(signature)
    return None


def _checked(signature: CallSignature) -> Kernel:
    function, position, kind = _CHECKED[signature.function], signature.position, signature.result
    plain = _PLAIN[signature.function]

    def checked(left: Value, right: Value) -> Value:
        try:
            return function(left, right)
        except pa.ArrowInvalid:
            if kind.bit_width > 16:  # noqa: PLR2004 - INT and BIGINT
                raise overflow(_JAVA_NAMES.get(kind, "long"), position, function=signature.function) from None
            wide = [value.cast(pa.int32()) for value in (left, right)]
            exact = plain(*wide)
            bound = 1 << (kind.bit_width - 1)
            outside = pc.or_(pc.less(exact, -bound), pc.greater_equal(exact, bound))
            row = pc.index(outside, value=True).as_py() if not is_scalar(outside) else 0
            values = [each if is_scalar(each) else each[row] for each in (left, right)]
            raise small_overflow(values[0], _SYMBOLS[signature.function], values[1], position) from None

    return checked


def divide(signature: CallSignature) -> Kernel | None:
    """``/`` on DOUBLE and decimals; zero divides nothing, not even NaN."""
    if pa.types.is_decimal(signature.result):
        return decimals.division(signature)
    if not pa.types.is_floating(signature.result) or set(signature.types) != {signature.result}:
        return None
    position = signature.position
    divisor = signature.constants[1]
    if divisor is not None and divisor.as_py():
        return pc.divide  # type: ignore[no-any-return]  # pyarrow ships no types

    def divided(left: pa.Array, right: pa.Array) -> pa.Array:
        if first_row(numbers(right) == 0, left, right) is not None:
            raise divide_by_zero(position)
        return pc.divide(left, right)

    return on_arrays(divided)


def remainder(signature: CallSignature) -> Kernel | None:
    """``%``: the sign is the dividend's."""
    return _modulus(signature, np.fmod)


def pmod(signature: CallSignature) -> Kernel | None:
    """``pmod``: the remainder, with the divisor added once if it is negative."""

    def positive(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        rest = np.fmod(left, right)
        # In the width of the type, as Java has it for INT and BIGINT; TINYINT and SMALLINT are widened to INT.
        wide = rest.dtype if rest.dtype.itemsize > 2 or rest.dtype.kind == "f" else np.dtype(np.int32)  # noqa: PLR2004
        added: np.ndarray = np.fmod(rest.astype(wide) + right, right)
        return np.where(rest < 0, added, rest).astype(rest.dtype)

    return _modulus(signature, positive)


def _modulus(signature: CallSignature, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Kernel | None:
    if pa.types.is_decimal(signature.result):
        return decimals.modulus(signature)
    kind, position = signature.result, signature.position
    if set(signature.types) != {kind} or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None

    def modulus(left: pa.Array, right: pa.Array) -> pa.Array:
        dividend, divisor = numbers(left), numbers(right)
        zero = divisor == 0
        if first_row(zero, left, right) is not None:
            raise remainder_by_zero(position)
        with np.errstate(all="ignore"):
            return like_nulls(function(dividend, np.where(zero, divisor.dtype.type(1), divisor)), kind, left, right)

    return on_arrays(modulus)


def integral_divide(signature: CallSignature) -> Kernel | None:
    """``div``: BIGINT, towards zero."""
    if pa.types.is_decimal(signature.types[0]):
        return decimals.integral_division(signature)
    if set(signature.types) != {pa.int64()} or signature.result != pa.int64():
        return None
    position = signature.position
    lowest = np.iinfo(np.int64).min

    def divided(left: pa.Array, right: pa.Array) -> pa.Array:
        dividend, divisor = numbers(left), numbers(right)
        if first_row(divisor == 0, left, right) is not None:
            raise divide_by_zero(position)
        if first_row((divisor == -1) & (dividend == lowest), left, right) is not None:
            raise overflow("Integral divide:", position, function="divide")
        # Where a side is NULL the divisor may be anything; Arrow leaves those rows out.
        return pc.divide_checked(left, right)

    return on_arrays(divided)


def negate(signature: CallSignature) -> Kernel | None:
    """Unary minus."""
    return _sign_change(signature, pc.negate, pc.negate_checked)


def absolute(signature: CallSignature) -> Kernel | None:
    """``abs``."""
    return _sign_change(signature, pc.abs, pc.abs_checked)


def _sign_change(signature: CallSignature, plain: Kernel, checked: Kernel) -> Kernel | None:  # noqa: PLR0911 - by type
    kind, position = signature.types[0], signature.position
    if kind != signature.result:
        return None
    if pa.types.is_decimal128(kind):
        return decimals.sign_change(signature)
    if pa.types.is_floating(kind):
        return plain
    if kind == pa.month_day_nano_interval() and signature.function == "negate":
        return _negated_months
    if not (pa.types.is_integer(kind) or pa.types.is_duration(kind)):
        return None

    def changed(value: Value) -> Value:
        try:
            return checked(value)
        except pa.ArrowInvalid:
            raise overflow(_JAVA_NAMES.get(kind, "long"), position) from None

    if pa.types.is_integer(kind):
        return changed
    # Arrow has no arithmetic of one interval alone.
    return on_arrays(lambda array: changed(array.view(pa.int64())).view(kind))


def _negated_months(value: Value) -> Value:
    negated = [
        None if each is None else pa.MonthDayNano([-part for part in each])
        for each in ([value.as_py()] if is_scalar(value) else value.to_pylist())
    ]
    result = pa.array(negated, pa.month_day_nano_interval())
    return result[0] if is_scalar(value) else result


FUNCTIONS: dict[str, Builder] = {
    "add": add_subtract_multiply,
    "subtract": add_subtract_multiply,
    "multiply": add_subtract_multiply,
    "divide": divide,
    "remainder": remainder,
    "pmod": pmod,
    "integral_divide": integral_divide,
    "negate": negate,
    "abs": absolute,
}
