"""Operators on numbers that are NULL where the exact result does not fit its type, or where they divide by zero.

A divisor of zero is NULL before it comes here: see ``ZERO_IS_NULL``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.numbers import arithmetic, decimals
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Longs = NDArray[np.int64]

PREFIX = "try_"
_LOWEST = np.iinfo(np.int64).min
_CHECKED = {"add": pc.add_checked, "subtract": pc.subtract_checked, "multiply": pc.multiply_checked}
_EXACT: dict[str, Callable[[Longs, Longs], Longs]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
}


def add_subtract_multiply(signature: CallSignature) -> Kernel | None:
    """``+``, ``-`` and ``*`` of integers and decimals."""
    strict = _strict(signature)
    if pa.types.is_decimal(signature.result):
        return decimals.arithmetic(strict, tolerant=True)
    kind = signature.result
    if not pa.types.is_integer(kind) or set(signature.types) != {kind}:
        return None
    checked, bits = _CHECKED[strict.function], np.iinfo(kind.to_pandas_dtype())

    def fitting(left: pa.Array, right: pa.Array) -> pa.Array:
        a, b = numbers(left).astype(np.int64), numbers(right).astype(np.int64)
        with np.errstate(over="ignore"):
            results = _EXACT[strict.function](a, b)
            outside = (results < bits.min) | (results > bits.max) | _LEAVES_LONGS[strict.function](a, b, results)
        return pc.if_else(pa.array(~outside), like_nulls(results.astype(bits.dtype), kind, left, right), None)

    exact = on_arrays(fitting)

    def run(left: Value, right: Value) -> Value:
        try:
            return checked(left, right)
        except pa.ArrowInvalid:
            return exact(left, right)

    return run


def _sum_leaves(a: Longs, b: Longs, total: Longs) -> NDArray[np.bool_]:
    leaves: NDArray[np.bool_] = ((a ^ total) & (b ^ total)) < 0
    return leaves


def _difference_leaves(a: Longs, b: Longs, difference: Longs) -> NDArray[np.bool_]:
    leaves: NDArray[np.bool_] = ((a ^ b) & (a ^ difference)) < 0
    return leaves


def _product_leaves(a: Longs, b: Longs, product: Longs) -> NDArray[np.bool_]:
    divided_back = product // np.where((a == 0) | (a == -1), 1, a)
    leaves: NDArray[np.bool_] = np.where(a == -1, b == _LOWEST, (a != 0) & (divided_back != b))
    return leaves


_LEAVES_LONGS = {"add": _sum_leaves, "subtract": _difference_leaves, "multiply": _product_leaves}


def divide(signature: CallSignature) -> Kernel | None:
    """``/``."""
    strict = _strict(signature)
    if pa.types.is_decimal(signature.result):
        return decimals.division(strict, tolerant=True)
    return arithmetic.divide(strict)


def modulus(signature: CallSignature) -> Kernel | None:
    """``%`` and ``pmod``."""
    strict = _strict(signature)
    if pa.types.is_decimal(signature.result):
        return decimals.modulus(strict, tolerant=True)
    return arithmetic.FUNCTIONS[strict.function](strict)


def integral_divide(signature: CallSignature) -> Kernel | None:
    """``div`` of decimals."""
    if not pa.types.is_decimal(signature.types[0]):
        return None
    return decimals.integral_division(_strict(signature), tolerant=True)


def _strict(signature: CallSignature) -> CallSignature:
    """The same call of the function that raises."""
    return replace(signature, function=signature.function.removeprefix(PREFIX))


def without_zeros(value: Value) -> Value:
    """The numbers, with NULL for zero."""
    zeros = pc.equal(value, pa.scalar(0, value.type))
    if isinstance(value, pa.Scalar):
        return pa.scalar(None, value.type) if zeros.as_py() else value
    return pc.if_else(zeros, None, value) if pc.any(zeros).as_py() else value


FUNCTIONS: dict[str, Builder] = {
    "try_add": add_subtract_multiply,
    "try_subtract": add_subtract_multiply,
    "try_multiply": add_subtract_multiply,
    "try_divide": divide,
    "try_remainder": modulus,
    "try_pmod": modulus,
    "try_integral_divide": integral_divide,
}
