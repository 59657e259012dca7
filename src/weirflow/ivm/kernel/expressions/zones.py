"""The clocks of time zones: from a moment to what a clock there shows, and back, as Java's ``java.time`` has it.

A clock that is put forward leaves out some times; such a time is read as if the clock had not been touched yet. A time
that a clock shows twice is the first of the two moments.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from weirflow.errors import UnsupportedError
from weirflow.ivm.kernel.expressions.by_value import by_value
from weirflow.ivm.kernel.expressions.casts.context import Cast
from weirflow.ivm.kernel.expressions.casts.parse import to_timestamp
from weirflow.ivm.kernel.expressions.dates import DATE_UNITS, DAY, TIME_UNITS, nulls_like
from weirflow.ivm.kernel.expressions.rows import like_nulls, numbers, on_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Micros = NDArray[np.int64]

_SECOND = 1_000_000
_WEEK = 7 * 86_400
_HEADER = 44
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = (int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (1000, 2500))
_CYCLE = 146_097 * DAY  # 400 years: then the calendar and the rules begin again
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
_NAMES_OF_UTC = ("UTC", "GMT", "UT", "Z")


@dataclass(frozen=True)
class Clock:
    """What the clocks of a zone were put to, and when.

    Attributes:
        changes: the moments at which they were.
        offsets: how far they are ahead of UTC: before the first change, and from each one on.
        read: what they show, before or after whichever is later, when a change is over: see the module.
        until: from when on the changes of the last 400 years before it repeat.
    """

    changes: Micros
    offsets: Micros
    read: Micros
    until: int

    def local(self, moments: Micros) -> Micros:
        """What the clocks show at these moments."""
        return moments + self.offset_at(moments)

    def offset_at(self, moments: Micros) -> Micros:
        """How far the clocks are ahead of UTC at these moments."""
        found: Micros = self.offsets[np.searchsorted(self.changes, self._within(moments), side="right")]
        return found

    def moment(self, shown: Micros) -> Micros:
        """When the clocks show this."""
        before: Micros = self.offsets[np.searchsorted(self.read, self._within(shown), side="right")]
        return shown - before

    def near(self, shown: Micros, offsets: Micros) -> Micros:
        """When the clocks show this; at this offset, if they can."""
        kept = shown - offsets
        found: Micros = np.where(self.local(kept) == shown, kept, self.moment(shown))
        return found

    def later(self, moments: Micros, span: int) -> Micros:
        """So much later: whole days by the clocks, the rest by time."""
        days = abs(span) // DAY * (1 if span >= 0 else -1)
        offsets = self.offset_at(moments)
        return self.near(moments + offsets + days * DAY, offsets) + (span - days * DAY)

    def day_start(self, midnights: Micros) -> Micros:
        """The first moment of the day that would begin at this time, which the clocks may leave out."""
        within = self._within(midnights)
        index = np.searchsorted(self.read, within, side="right")
        moment = within - self.offsets[index]
        following = np.append(self.changes, np.iinfo(np.int64).max)[index]
        first: Micros = np.minimum(moment, following) + (midnights - within)
        return first

    def _within(self, times: Micros) -> Micros:
        late = times >= self.until
        return np.where(late, times - ((times - self.until) // _CYCLE + 1) * _CYCLE, times) if late.any() else times


@lru_cache(maxsize=64)
def clock_of(zone: str) -> Clock:
    """The clock of a zone by its name or offset; ``UnsupportedError`` if this machine knows none."""
    fixed = _fixed_offset(zone)
    if fixed is not None:
        none = np.array([], np.int64)
        return Clock(none, np.array([fixed], np.int64), none, np.iinfo(np.int64).max)
    try:
        info, written = ZoneInfo(zone), _zone_file(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnsupportedError(
            f"This machine knows no time zone {zone!r}.", hint="install its time zone data (tzdata), or use an offset"
        ) from None
    known = [second for second in _written_changes(written) if second >= _EARLIEST]
    seconds = np.array(known + _later_changes(info, known[-1] if known else _EARLIEST), np.int64)
    offsets = np.array([_offset(info, _EARLIEST), *(_offset(info, int(one)) for one in seconds)], np.int64) * _SECOND
    changes = seconds * _SECOND
    return Clock(changes, offsets, changes + np.maximum(offsets[:-1], offsets[1:]), _LATEST * _SECOND)


def _fixed_offset(zone: str) -> int | None:
    """Microseconds ahead of UTC, of a zone whose clocks are never changed."""
    if zone in _NAMES_OF_UTC:
        return 0
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    return (hours * 3600 + minutes * 60 + seconds) * (-_SECOND if found[1] == "-" else _SECOND)


def _zone_file(zone: str) -> bytes:
    """What the machine, or the package ``tzdata``, has about a zone."""
    for folder in TZPATH:
        path = Path(folder, zone)
        if path.is_file():
            return path.read_bytes()
    try:
        return resources.files("tzdata").joinpath("zoneinfo", zone).read_bytes()
    except ModuleNotFoundError as error:
        raise ZoneInfoNotFoundError(zone) from error


def _written_changes(data: bytes) -> list[int]:
    """The moments that a file of time zone data (RFC 8536) lists, in seconds; what is later follows from a rule."""
    counts = struct.unpack(">6I", data[20:_HEADER])
    sizes = (1, 1, 8, 5, 6, 1)  # of one of each, in the part that is there for readers of 32 bits
    second = _HEADER + sum(count * size for count, size in zip(counts, sizes, strict=True))
    changes = struct.unpack(">6I", data[second + 20 : second + _HEADER])[3]
    return list(struct.unpack_from(f">{changes}q", data, second + _HEADER))


def _later_changes(info: ZoneInfo, after: int) -> list[int]:
    """What follows from a zone's rule, whose changes are more than a week apart."""
    found = []
    for start in range(after, _LATEST, _WEEK):
        low, high = start, start + _WEEK
        if _offset(info, low) == _offset(info, high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(info, middle) == _offset(info, low) else (low, middle)
        found.append(high)
    return found


def _offset(info: ZoneInfo, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()
    assert offset is not None, "a zone has one"
    return offset // timedelta(seconds=1)


def local_time(signature: CallSignature) -> Kernel | None:
    """``local_time(timestamp, zone)``: what a clock there shows, a timestamp without a zone."""
    clock = _clock(signature, 1)
    return (
        None
        if clock is None
        else on_arrays(lambda times, _: like_nulls(clock.local(numbers(times)), signature.result, times))
    )


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
        parsed = to_timestamp(cast, lambda shown: int(clock.moment(np.array([shown]))[0]))
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
