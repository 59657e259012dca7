"""Exponentials, logarithms, angles and roots of doubles, each in the form that Spark computes it by ``StrictMath``.

Those of the sine and its relatives are not here: Java leaves their last bit to the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.numbers.strict import angles, exponentials, logarithms, powers, roots
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.numbers.strict.words import Doubles
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_DOUBLE = pa.float64()
_LN_2 = 0.6931471805599453
_LARGEST_SQUARED = math.sqrt(1.7976931348623157e308)
_DEGREES = 57.29577951308232
_RADIANS = 0.017453292519943295


def _acosh(x: Doubles) -> Doubles:
    result = np.where(x < 1, np.nan, logarithms.log(x + np.sqrt(x * x - 1.0)))
    return np.where(x >= _LARGEST_SQUARED, logarithms.log(x) + _LN_2, result)


def _asinh(x: Doubles) -> Doubles:
    far = np.sign(x) * (logarithms.log(np.abs(x)) + _LN_2)
    return np.where(np.abs(x) >= _LARGEST_SQUARED, far, logarithms.log(x + np.sqrt(x * x + 1.0)))


def _atanh(x: Doubles) -> Doubles:
    return 0.5 * (logarithms.log1p(x) - logarithms.log1p(-x))


def _log2(x: Doubles) -> Doubles:
    return logarithms.log(x) / _LN_2


def _atan2(y: Doubles, x: Doubles) -> Doubles:
    """A negative zero counts as a positive one."""
    return angles.atan2(y + 0.0, x + 0.0)


def _log(base: Doubles, x: Doubles) -> Doubles:
    return logarithms.log(x) / logarithms.log(base)


_UNARY: dict[str, Callable[[Doubles], Doubles]] = {
    "exp": exponentials.exp,
    "expm1": exponentials.expm1,
    "sinh": exponentials.sinh,
    "cosh": exponentials.cosh,
    "tanh": exponentials.tanh,
    "asin": angles.asin,
    "acos": angles.acos,
    "atan": angles.atan,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "cbrt": roots.cbrt,
    "degrees": lambda x: x * _DEGREES,
    "radians": lambda x: x * _RADIANS,
}
_LOGARITHMS: dict[str, tuple[Callable[[Doubles], Doubles], float]] = {
    "ln": (logarithms.log, 0.0),
    "log2": (_log2, 0.0),
    "log10": (logarithms.log10, 0.0),
    "log1p": (logarithms.log1p, -1.0),
}
"""With the number up to which they are NULL."""
_BINARY: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "power": powers.power,
    "atan2": _atan2,
    "hypot": roots.hypot,
}


def unary(signature: CallSignature) -> Kernel | None:
    """A function of one double."""
    if signature.types != (_DOUBLE,):
        return None
    return on_arrays(lambda array: _over(_UNARY[signature.function], array))


def binary(signature: CallSignature) -> Kernel | None:
    """A function of two doubles."""
    if signature.types != (_DOUBLE, _DOUBLE):
        return None
    return on_arrays(lambda left, right: _over(_BINARY[signature.function], left, right))


def logarithm(signature: CallSignature) -> Kernel | None:
    """A logarithm, NULL where it is not a number."""
    if signature.types != (_DOUBLE,):
        return None
    function, least = _LOGARITHMS[signature.function]
    return on_arrays(lambda array: _where(~(numbers(array) <= least), _over(function, array)))


def logarithm_of_base(signature: CallSignature) -> Kernel | None:
    """``log(base, x)``: NULL where one of the two has no logarithm."""
    if signature.types != (_DOUBLE, _DOUBLE):
        return None

    def run(base: pa.Array, x: pa.Array) -> pa.Array:
        return _where(~((numbers(base) <= 0) | (numbers(x) <= 0)), _over(_log, base, x))

    return on_arrays(run)


def _over(function: Callable[..., Doubles], *arrays: pa.Array) -> pa.Array:
    with np.errstate(all="ignore"):
        return like_nulls(function(*(numbers(one) for one in arrays)), _DOUBLE, *arrays)


def _where(wanted: np.ndarray[tuple[int], np.dtype[np.bool_]], array: pa.Array) -> pa.Array:
    return array if wanted.all() else pc.if_else(pa.array(wanted), array, None)


FUNCTIONS: dict[str, Builder] = {
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_BINARY, binary),
    **dict.fromkeys(_LOGARITHMS, logarithm),
    "log": logarithm_of_base,
}
