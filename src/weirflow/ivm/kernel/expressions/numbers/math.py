"""Functions of numbers that IEEE 754 or exact arithmetic settle; not those whose last digit is the library's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.comparison import comparer
from weirflow.ivm.kernel.expressions.failures import overflow
from weirflow.ivm.kernel.expressions.numbers.decimal_words import fitted, rescaled, wide
from weirflow.ivm.kernel.expressions.numbers.double_rounding import scaled_integers
from weirflow.ivm.kernel.expressions.rows import first_row, is_scalar, like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.rows import Value
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_LONG = np.iinfo(np.int64)
_JAVA_NAMES = {pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long"}
_INT_DIGITS = 10
_EXACT_POWER = 22


def ceil_floor(signature: CallSignature) -> Kernel | None:
    """``ceil`` and ``floor``: BIGINT for integers and doubles (the nearest BIGINT if beyond), else a decimal."""
    kind, result = signature.types[0], signature.result
    up = signature.function == "ceil"
    if len(signature.types) != 1:
        return _to_scale(signature, up=up)
    if kind == result == pa.int64():
        return lambda value: value
    if pa.types.is_floating(kind) and result == pa.int64():
        operate = np.ceil if up else np.floor
        return on_arrays(lambda array: like_nulls(as_long(operate(numbers(array))), result, array))
    if not (pa.types.is_decimal128(kind) and pa.types.is_decimal128(result) and result.scale == 0):
        return None
    power, position = 10**kind.scale, signature.position

    def run(array: pa.Array) -> pa.Array:
        values = wide(array)
        whole = -(-values // power) if up else values // power
        return fitted(whole, result, position, array)

    return on_arrays(run)


def _to_scale(signature: CallSignature, *, up: bool) -> Kernel | None:
    """``ceil`` and ``floor`` of a decimal, to a constant number of places."""
    kind, result, places, position = signature.types[0], signature.result, signature.constants[1], signature.position
    if places is None or not places.is_valid or not pa.types.is_decimal128(kind):
        return None
    scale = min(places.as_py(), kind.scale)
    power = 10 ** (kind.scale - scale)

    def run(array: pa.Array) -> pa.Array:
        values = wide(array)
        whole = -(-values // power) if up else values // power
        return fitted(
            rescaled(whole, scale, result.scale),
            result,
            position,
            array,
            condition="NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
        )

    kernel = on_arrays(run)
    return lambda value, _: kernel(value)


def as_long(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """As Java converts whole numbers: NaN to zero, what is beyond the range to its end."""
    inside = np.where((values >= -(2.0**63)) & (values < 2.0**63), values, 0.0).astype(np.int64)
    return np.where(values >= 2.0**63, _LONG.max, np.where(values < -(2.0**63), _LONG.min, inside))


def rounding(signature: CallSignature) -> Kernel | None:
    """``round`` (halves away from zero) and ``bround`` (halves to even), to a constant number of places.

    What does not fit is an error, unless the function's name says that it wraps around.
    """
    kind = signature.types[0]
    places = signature.constants[1] if len(signature.types) > 1 else pa.scalar(0)
    if places is None or not places.is_valid:
        return None
    scale, even = places.as_py(), signature.function.endswith("bround")
    if pa.types.is_decimal128(kind):
        kernel = _round_decimal(signature, scale, even=even)
    elif pa.types.is_floating(kind):
        kernel = on_arrays(lambda array: _round_floating(array, scale, even=even))
    elif pa.types.is_integer(kind):
        kernel = _round_integer(signature, scale, even=even)
    else:
        return None
    return lambda value, *_: kernel(value)


def _round_decimal(signature: CallSignature, scale: int, *, even: bool) -> Kernel:
    kind, result, position = signature.types[0], signature.result, signature.position

    def run(array: pa.Array) -> pa.Array:
        values = wide(array)
        if scale < kind.scale:
            values = _divided(values, 10 ** (kind.scale - scale), even=even)
            values = rescaled(values, scale, result.scale)
        else:
            values = rescaled(values, kind.scale, result.scale)
        return fitted(values, result, position, array, condition="NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION")

    return on_arrays(run)


def _round_integer(signature: CallSignature, scale: int, *, even: bool) -> Kernel:
    kind, position = signature.types[0], signature.position
    if scale >= 0:
        return lambda value: value
    power = 10 ** min(-scale, _INT_DIGITS * 2)
    info = np.iinfo(kind.to_pandas_dtype())
    modulus = 1 << kind.bit_width
    wraps = signature.function.startswith("wrapping_")

    def run(array: pa.Array) -> pa.Array:
        values = _divided(numbers(array).astype(object), power, even=even) * power
        if wraps:
            values = (values - info.min) % modulus + info.min
        if first_row(((values < info.min) | (values > info.max)).astype(np.bool_), array) is not None:
            raise overflow(_JAVA_NAMES[kind], position)
        return like_nulls(np.where(numbers(array) == 0, 0, values).astype(info.dtype), kind, array)

    return on_arrays(run)


def _round_floating(array: pa.Array, scale: int, *, even: bool) -> pa.Array:
    """As the decimal number that Java prints, and back to the nearest double."""
    values = numbers(array)
    doubles = values.astype(np.float64)
    finite = np.isfinite(doubles) & (doubles != 0)
    integers = scaled_integers(np.where(finite, doubles, 0.0), scale, half_even=even)
    rounded = _nearest(integers, scale)
    results = np.where(np.isfinite(doubles), rounded, doubles)
    with np.errstate(over="ignore"):
        return like_nulls(results.astype(values.dtype), array.type, array)


def _nearest(integers: NDArray[Any], scale: int) -> NDArray[np.float64]:
    """Integers divided by ten to the power of ``scale``, rounded once."""
    small = (np.abs(integers) < (1 << 53)).all()
    if small and 0 <= scale <= _EXACT_POWER:
        exact: NDArray[np.float64] = integers.astype(np.float64) / 10.0**scale  # of exact operands
        return exact
    if scale >= 0:
        return np.array([value / 10**scale for value in integers], np.float64)
    return np.array([float(value * 10**-scale) for value in integers], np.float64)


def _divided(values: NDArray[Any], power: int, *, even: bool) -> NDArray[Any]:
    """Quotients to the nearest integer, halves away from zero or to even."""
    sizes = np.abs(values)
    whole, rest = sizes // power, sizes % power
    up = 2 * rest > power
    half = 2 * rest == power
    up = up | (half & (whole % 2 == 1) if even else half)
    rounded: NDArray[Any] = whole + up.astype(object)
    return np.where(values < 0, -rounded, rounded)


def square_root(signature: CallSignature) -> Kernel | None:
    """``sqrt``: NaN for what is negative."""
    return pc.sqrt if signature.types == (pa.float64(),) else None


def sign(signature: CallSignature) -> Kernel | None:
    """``sign``: a DOUBLE; zeros keep their sign, NaN stays NaN."""
    kind = signature.types[0]
    if signature.result != pa.float64() or not (kind == pa.float64() or pa.types.is_duration(kind)):
        return None

    def run(array: pa.Array) -> pa.Array:
        values = numbers(array).astype(np.float64)
        return like_nulls(np.where(values == 0, values, np.sign(values)), pa.float64(), array)

    return on_arrays(run)


def rint(signature: CallSignature) -> Kernel | None:
    """``rint``: to the nearest integer, halves to even."""
    if signature.types != (pa.float64(),):
        return None
    return on_arrays(lambda array: like_nulls(np.rint(numbers(array)), pa.float64(), array))


def greatest_least(signature: CallSignature) -> Kernel | None:
    """``greatest`` and ``least`` of what is not NULL; the first of equal ones."""
    better = comparer("greater" if signature.function == "greatest" else "less", signature.result, signature.result)
    if better is None or any(each not in (signature.result, pa.null()) for each in signature.types):
        return None

    def run(*values: Value) -> Value:
        best = values[0]
        for value in values[1:]:
            wins = pc.or_(pc.is_null(best), pc.coalesce(better(value, best), False))
            best = (value if wins.as_py() else best) if is_scalar(wins) else pc.if_else(wins, value, best)
        return best

    return run


def bitwise(signature: CallSignature) -> Kernel | None:
    """``&``, ``|``, ``^`` and ``~`` on integers."""
    if set(signature.types) != {signature.result} or not pa.types.is_integer(signature.result):
        return None
    return _BITWISE[signature.function]


_BITWISE: dict[str, Kernel] = {
    "bitwise_and": pc.bit_wise_and,
    "bitwise_or": pc.bit_wise_or,
    "bitwise_xor": pc.bit_wise_xor,
    "bitwise_not": pc.bit_wise_not,
}


def shift(signature: CallSignature) -> Kernel | None:
    """``shiftleft`` and ``shiftright``; as in Java, only the distance's low bits count."""
    kind = signature.types[0]
    if kind not in (pa.int32(), pa.int64()) or signature.types[1] != pa.int32():
        return None
    operate = np.left_shift if signature.function == "shiftleft" else np.right_shift
    bits = kind.bit_width - 1

    def run(values: pa.Array, distances: pa.Array) -> pa.Array:
        moved = operate(numbers(values), (numbers(distances) & bits).astype(kind.to_pandas_dtype()))
        return like_nulls(moved, kind, values, distances)

    return on_arrays(run)


FUNCTIONS: dict[str, Builder] = {
    "ceil": ceil_floor,
    "floor": ceil_floor,
    **dict.fromkeys(("round", "bround", "wrapping_round", "wrapping_bround"), rounding),
    "sqrt": square_root,
    "sign": sign,
    "rint": rint,
    "greatest": greatest_least,
    "least": greatest_least,
    **dict.fromkeys(_BITWISE, bitwise),
    "shiftleft": shift,
    "shiftright": shift,
}
