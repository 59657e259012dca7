"""Functions of moments that count days or read times by the clocks of a zone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.casts import dispatch as casts
from weirflow.ivm.kernel.expressions.casts import legacy, nested
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.casts.parse import to_timestamp
from weirflow.ivm.kernel.expressions.dates import DAY, add_interval
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays
from weirflow.ivm.kernel.expressions.time_units import timestamp_add
from weirflow.ivm.kernel.expressions.times.clocks import Clock, clock_of

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_MOMENT, _SHOWN = pa.timestamp("us", "UTC"), pa.timestamp("us")


def local_add(signature: CallSignature) -> Kernel | None:
    """``local_add(timestamp, interval, zone)``: whole days and months by the clock there, the rest by time."""
    clock, interval = _clock(signature), signature.types[1]
    if clock is None or signature.types[0] != _MOMENT:
        return None
    shift = add_interval(
        replace(signature, types=(_SHOWN, interval), result=_SHOWN, constants=(None, signature.constants[1]))
    )
    later = add_interval(replace(signature, types=(_MOMENT, interval), constants=(None, None)))
    if shift is None:
        return None
    if not pa.types.is_duration(interval):
        moved = _moved(clock, shift)
        return lambda times, span, _: moved(times, span)

    def run(times: pa.Array, spans: pa.Array) -> pa.Array:
        assert later is not None, "such intervals are added to timestamps with a zone and without"
        micros = numbers(spans)
        days = micros // DAY + ((micros < 0) & (micros % DAY != 0))  # towards zero
        whole, rest = (like_nulls(part, interval, spans) for part in (days * DAY, micros - days * DAY))
        return later(_moved(clock, shift)(times, whole), rest)

    both = on_arrays(run)
    return lambda times, spans, _: both(times, spans)


def local_timestampadd(signature: CallSignature) -> Kernel | None:
    """``local_timestampadd(unit, count, timestamp, zone)``: so many units later by the clock there."""
    clock = _clock(signature)
    types, constants = (*signature.types[:2], _SHOWN), signature.constants[:3]
    shift = timestamp_add(replace(signature, types=types, result=_SHOWN, constants=constants))
    if clock is None or shift is None or signature.types[2] != _MOMENT:
        return None

    def run(unit: pa.Array, counts: pa.Array, times: pa.Array) -> pa.Array:
        return _moved(clock, lambda shown: shift(unit, counts, shown))(times)

    each = on_arrays(run)
    return lambda unit, counts, times, _: each(unit, counts, times)


def _moved(clock: Clock, shift: Callable[..., pa.Array]) -> Kernel:
    """What is done to a time that a clock shows, done to moments; a clock that shows it twice stays as it is."""

    def run(times: pa.Array, *others: pa.Array) -> pa.Array:
        moments = numbers(times)
        offsets = clock.offset_at(moments)
        shown = shift(like_nulls(moments + offsets, _SHOWN, times), *others)
        return like_nulls(clock.near(numbers(shown), offsets), _MOMENT, shown)

    return on_arrays(run)


def local_cast(signature: CallSignature) -> Kernel | None:
    """``local_cast(value, zone)``: ``CAST`` in a session of that zone, ``try_local_cast`` ``TRY_CAST``.

    ``legacy_local_cast`` is ``CAST`` without ANSI.
    """
    clock = _clock(signature)
    if clock is None:
        return None
    cast = Cast(signature.types[0], signature.result, signature.position, tolerant=signature.function != "local_cast")
    others = legacy.kernel if signature.function == "legacy_local_cast" else casts.kernel
    made = _cast(cast, clock, others)
    return None if made is None else lambda value, _: made(value)


def cast_in_zone(cast: Cast, zone: str) -> Kernel | None:
    """The kernel of a cast in a session of that zone; None if there is none that is proven equal to Spark's."""
    return _cast(cast, clock_of(zone), casts.kernel)


def _cast(  # noqa: PLR0911 - one for each kind of cast
    cast: Cast, clock: Clock, others: Callable[[Cast], Kernel | None]
) -> Kernel | None:
    """The kernel of a cast; ``others`` has those that look at no clock."""
    if cast.source == cast.target:
        return others(cast)
    if pa.types.is_nested(cast.source):
        return nested.kernel(cast, lambda part: _cast(part, clock, others))
    if cast.source == _MOMENT and cast.target in (pa.date32(), pa.string(), _SHOWN):
        shown = casts.kernel(replace(cast, source=_SHOWN))
        assert shown is not None, "there are such casts"
        return on_arrays(lambda times: shown(like_nulls(clock.local(numbers(times)), _SHOWN, times)))
    if cast.target == _MOMENT and cast.source == pa.string():
        return to_timestamp(cast, clock.moment_at)
    if cast.target == _MOMENT and cast.source == _SHOWN:
        return on_arrays(lambda shown: like_nulls(clock.moment(numbers(shown)), _MOMENT, shown))
    if cast.target == _MOMENT and cast.source == pa.date32():
        return on_arrays(
            lambda dates: like_nulls(clock.day_start(numbers(dates).astype(np.int64) * DAY), _MOMENT, dates)
        )
    return others(cast)


def _clock(signature: CallSignature) -> Clock | None:
    zone = signature.constants[-1]
    return None if zone is None or not zone.is_valid else clock_of(zone.as_py())


FUNCTIONS: dict[str, Builder] = {
    "local_add": local_add,
    "local_timestampadd": local_timestampadd,
    "local_cast": local_cast,
    "try_local_cast": local_cast,
    "legacy_local_cast": local_cast,
}
