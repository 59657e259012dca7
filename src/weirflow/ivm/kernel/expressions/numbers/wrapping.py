"""Operators on integers without ANSI: as in Java, a result keeps the low bits of what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_ARROW: dict[str, Kernel] = {
    "wrapping_add": pc.add,
    "wrapping_subtract": pc.subtract,
    "wrapping_multiply": pc.multiply,
    "wrapping_negate": pc.negate,
    "wrapping_abs": pc.abs,
}


def wrapping(signature: CallSignature) -> Kernel | None:
    """``+``, ``-``, ``*``, unary minus and ``abs``."""
    kind = signature.result
    return _ARROW[signature.function] if pa.types.is_integer(kind) and set(signature.types) == {kind} else None


def integral_divide(signature: CallSignature) -> Kernel | None:
    """``div`` of BIGINT, towards zero; the lowest one divided by -1 is itself."""
    if set(signature.types) != {pa.int64()} or signature.result != pa.int64():
        return None

    def divided(left: pa.Array, right: pa.Array) -> pa.Array:
        dividend, divisor = numbers(left), numbers(right)
        with np.errstate(over="ignore"):
            plain = np.where((divisor == 0) | (divisor == -1), 1, divisor)
            floor = dividend // plain
            quotient = floor + ((floor < 0) & (floor * plain != dividend))
            return like_nulls(np.where(divisor == -1, -dividend, quotient), pa.int64(), left, right)

    return on_arrays(divided)


FUNCTIONS: dict[str, Builder] = {
    **dict.fromkeys(_ARROW, wrapping),
    "wrapping_integral_divide": integral_divide,
}
