"""``sequence``: from a start to a stop, by a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.expressions.calendar import months_of, shift_months
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.nested.selection import known
from weirflow.ivm.kernel.expressions.rows import like_nulls, nulls_of, numbers, on_arrays

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.nested.selection import Places
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_DAY_MICROS = 86_400_000_000
_MOST = 2_147_483_632


def sequence(signature: CallSignature) -> Kernel | None:
    """``sequence(start, stop[, step])`` of integers, dates and timestamps; of times the step is constant."""
    kind = signature.types[0]
    if signature.types[1] != kind:
        return None
    if pa.types.is_integer(kind):
        return _by_numbers(signature) if all(one == kind for one in signature.types) else None
    if kind == pa.date32() or pa.types.is_timestamp(kind):
        return _by_time(signature)
    return None


def _by_numbers(signature: CallSignature) -> Kernel:
    def run(starts: pa.Array, stops: pa.Array, *steps: pa.Array) -> pa.Array:
        first, last = (numbers(one).astype(np.int64) for one in (starts, stops))
        step = numbers(steps[0]).astype(np.int64) if steps else np.where(first <= last, 1, -1)
        return _made(first, last, step, signature, starts, stops, *steps)

    return on_arrays(run)


def _by_time(signature: CallSignature) -> Kernel | None:
    """A step of months, or of a length of time; one day if there is none."""
    kind = signature.types[0]
    unit = 1 if pa.types.is_timestamp(kind) else _DAY_MICROS
    if len(signature.types) == 2:  # noqa: PLR2004 - no step
        day = _DAY_MICROS // unit

        def by_days(starts: pa.Array, stops: pa.Array) -> pa.Array:
            first, last = (numbers(one).astype(np.int64) for one in (starts, stops))
            return _made(first, last, np.where(first <= last, day, -day), signature, starts, stops)

        return on_arrays(by_days)
    constant = signature.constants[2]
    if constant is None or not constant.is_valid:
        return None
    if pa.types.is_duration(constant.type):
        micros = constant.value
        if micros % unit or not micros:
            return None
        width = micros // unit

        def by_length(starts: pa.Array, stops: pa.Array, _: pa.Array) -> pa.Array:
            first, last = (numbers(one).astype(np.int64) for one in (starts, stops))
            return _made(first, last, np.full(len(first), width), signature, starts, stops)

        return on_arrays(by_length)
    months, days, nanos = constant.as_py()
    if days or nanos or not months:
        return None

    def by_months(starts: pa.Array, stops: pa.Array, _: pa.Array) -> pa.Array:
        first, last = (numbers(one).astype(np.int64) * unit for one in (starts, stops))
        _require_way(first, last, np.full(len(first), months), signature, starts, stops)
        (from_day, time), (to_day, _) = (np.divmod(one, _DAY_MICROS) for one in (first, last))
        span = np.abs(months_of(to_day) - months_of(from_day)) // abs(months) + 1
        sizes = np.where(known(starts, stops), span, 0)
        require_result(8.0 * float(sizes.sum(dtype=np.float64)), signature.function, signature.position)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        count = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        values = shift_months(from_day[owners], count * months) * _DAY_MICROS + time[owners]
        kept = (values <= last[owners]) if months > 0 else (values >= last[owners])
        sizes = np.bincount(owners[kept], minlength=len(sizes))
        return _lists(values[kept] // unit, sizes, signature, starts, stops)

    return on_arrays(by_months)


def _made(first: Places, last: Places, step: Places, signature: CallSignature, *sources: pa.Array) -> pa.Array:
    _require_way(first, last, step, signature, *sources)
    valid = known(*sources)
    apart = np.where(valid, last, 0).astype(np.float64) - np.where(valid, first, 0)
    wide = np.abs(apart) / np.maximum(np.abs(step), 1)
    if (valid & (wide > _MOST - 1)).any():
        condition = "COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER"
        raise failure(condition, f"An array of {wide.max() + 1:.0f} elements is too large.", signature.position)
    require_result(8.0 * float(np.where(valid, wide + 1, 0).sum()), signature.function, signature.position)
    with np.errstate(over="ignore"):
        sizes = np.where(valid, np.where(step == 0, 1, np.abs(last - first) // np.maximum(np.abs(step), 1) + 1), 0)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    count = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return _lists(first[owners] + count * step[owners], sizes, signature, *sources)


def _require_way(first: Places, last: Places, step: Places, signature: CallSignature, *sources: pa.Array) -> None:
    """A step must lead from the start to the stop; it may be zero if they are the same."""
    wrong = ((step > 0) & (first > last)) | ((step < 0) & (first < last)) | ((step == 0) & (first != last))
    rows = np.flatnonzero(wrong & known(*sources))
    if len(rows):
        at = rows[0]
        raise DataError(
            f"Illegal sequence boundaries: {first[at]} to {last[at]} by {step[at]}", position=signature.position
        )


def _lists(values: Places, sizes: Places, signature: CallSignature, *nulls: pa.Array) -> pa.Array:
    kind = signature.result
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    elements = like_nulls(values, kind.value_type)
    return pa.Array.from_buffers(kind, len(sizes), [nulls_of(*nulls), pa.py_buffer(offsets)], children=[elements])


FUNCTIONS: dict[str, Builder] = {"sequence": sequence}
