"""Casts to STRING: the text Java gives a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.calendar import text_of_days, text_of_micros
from weirflow.ivm.kernel.expressions.numbers.decimal_words import plain_text, unscaled
from weirflow.ivm.kernel.expressions.numbers.java_double import DOUBLE_BITS, FLOAT_BITS, java_text
from weirflow.ivm.kernel.expressions.rows import numbers, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.casts.context import Cast
    from weirflow.ivm.kernel.expressions.signature import Kernel


def from_simple(cast: Cast) -> Kernel:
    """Booleans and integers, which Arrow spells alike."""
    return lambda value: value.cast(cast.target)


def from_floating(cast: Cast) -> Kernel:
    """``1.0``, ``1.0E10``, ``NaN``, ``-Infinity``."""
    bits = FLOAT_BITS if cast.source == pa.float32() else DOUBLE_BITS
    return texts(lambda array: [java_text(number, bits) for number in numbers(array).tolist()])


def from_decimal(cast: Cast) -> Kernel:
    """All digits of the scale, never an exponent."""
    scale = cast.source.scale
    return texts(lambda array: [plain_text(int(number), scale) for number in unscaled(array)])


def from_date(cast: Cast) -> Kernel:  # noqa: ARG001 - there is one way
    """``yyyy-MM-dd``."""
    return texts(lambda array: text_of_days(numbers(array).astype(np.int64)))


def from_timestamp(cast: Cast) -> Kernel:  # noqa: ARG001 - with and without zone alike, for the zone is UTC
    """``yyyy-MM-dd HH:mm:ss[.ffffff]``."""
    return texts(lambda array: text_of_micros(numbers(array)))


def texts(spell: Callable[[pa.Array], list[str]]) -> Kernel:
    """The texts, but NULL where the array is."""

    def run(array: pa.Array) -> pa.Array:
        mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        return pa.array(np.array(spell(array), object), pa.string(), mask=mask)

    return on_arrays(run)
