"""Functions of moments by the clocks of a zone: see ``times/clocks.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.by_value import by_value
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.casts.parse import to_timestamp
from weirflow.ivm.kernel.expressions.dates import DATE_UNITS, DAY, TIME_UNITS, nulls_like
from weirflow.ivm.kernel.expressions.failures import overflow
from weirflow.ivm.kernel.expressions.rows import first_row, like_nulls, numbers, on_arrays
from weirflow.ivm.kernel.expressions.times.clocks import Clock, clock_of

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_SECOND = 1_000_000
_FAR = 1 << 62


def local_time(signature: CallSignature) -> Kernel | None:
    """``local_time(timestamp, zone)``: what a clock there shows, a timestamp without a zone."""
    clock = _clock(signature, 1)
    if clock is None:
        return None

    def run(times: pa.Array, _: pa.Array) -> pa.Array:
        moments = numbers(times)
        shown = clock.local(moments)
        if first_row((np.abs(moments) > _FAR) & ((moments ^ shown) < 0), times) is not None:
            raise overflow("long", signature.position)
        return like_nulls(shown, signature.result, times)

    return on_arrays(run)


def utc_time(signature: CallSignature) -> Kernel | None:
    """``utc_time(timestamp_ntz, zone)``: when a clock there shows it. Of a date, its begin; of a text, its cast.

    Of a text ``try_utc_time`` is NULL where its cast raises.
    """
    clock = _clock(signature, 1)
    if clock is None:
        return None
    if pa.types.is_string(signature.types[0]):
        tolerant = signature.function == "try_utc_time"
        cast = Cast(signature.types[0], signature.result, signature.position, tolerant=tolerant)
        parsed = to_timestamp(cast, clock.moment_at)
        return lambda texts, _: parsed(texts)
    if pa.types.is_date(signature.types[0]):
        return on_arrays(
            lambda dates, _: like_nulls(clock.day_start(numbers(dates).astype(np.int64) * DAY), signature.result, dates)
        )
    return on_arrays(lambda times, _: like_nulls(clock.moment(numbers(times)), signature.result, times))


def local_trunc(signature: CallSignature) -> Kernel | None:
    """``local_trunc(unit, timestamp, zone)``: ``date_trunc`` by the clock there.

    A clock that was put back within the unit stays as it was, as long as it could show the result.
    """
    clock, unit = _clock(signature, 2), signature.constants[0]
    if clock is None:
        return None
    if unit is None:
        return by_value(local_trunc, signature, 0)
    name = (unit.as_py() or "").upper()
    width = TIME_UNITS.get(name)
    cut = DATE_UNITS.get(name)

    def run(_: pa.Array, times: pa.Array, __: pa.Array) -> pa.Array:
        moments = numbers(times)
        if width is not None and width <= _SECOND:
            return like_nulls(moments // width * width, times.type, times)
        offsets = clock.offset_at(moments)
        local = moments + offsets
        if cut is not None:
            return like_nulls(clock.day_start(cut(local // DAY) * DAY), times.type, times)
        assert width is not None, "other units were told apart before"
        return like_nulls(clock.near(local // width * width, offsets), times.type, times)

    if width is None and cut is None:
        return lambda _, times, __: nulls_like(times, signature.result)
    return on_arrays(run)


def _clock(signature: CallSignature, index: int) -> Clock | None:
    zone = signature.constants[index]
    return None if zone is None or not zone.is_valid else clock_of(zone.as_py())


FUNCTIONS: dict[str, Builder] = {
    "local_time": local_time,
    "utc_time": utc_time,
    "try_utc_time": utc_time,
    "local_trunc": local_trunc,
}
