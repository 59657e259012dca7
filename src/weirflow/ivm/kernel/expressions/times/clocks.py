"""The clocks of time zones: from a moment to what a clock there shows, and back, as Java's ``java.time`` has it.

A clock that is put forward leaves out some times; such a time is read as if the clock had not been touched yet. A time
that a clock shows twice is the first of the two moments.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from weirflow.errors import UnsupportedError
from weirflow.sql.zone_ids import SHORT_IDS, fixed_offset, may_be_region

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Micros = NDArray[np.int64]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_WEEK = 7 * 86_400
_HEADER = 44
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = (int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (1000, 2500))
_CYCLE = 146_097 * _DAY  # 400 years: then the calendar and the rules begin again
_LONG_AGO = -(1 << 62)
_ZONES = 1_024
"""More than there are."""
_OF_OLD = "SystemV/"
"""Names that Java has and the tz database has not any more; see ``SHORT_IDS`` for those that are offsets."""


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

    def moment_at(self, shown: int) -> int:
        """``moment`` of one time, however far away it is."""
        late = shown - self.until
        within = shown - (late // _CYCLE + 1) * _CYCLE if late >= 0 else max(shown, _LONG_AGO)
        return shown - int(self.offsets[np.searchsorted(self.read, within, side="right")])

    def near(self, shown: Micros, offsets: Micros) -> Micros:
        """When the clocks show this; at this offset, if they can."""
        kept = shown - offsets
        found: Micros = np.where(self.local(kept) == shown, kept, self.moment(shown))
        return found

    def later(self, moments: Micros, span: int) -> Micros:
        """So much later: whole days by the clocks, the rest by time."""
        days = abs(span) // _DAY * (1 if span >= 0 else -1)
        offsets = self.offset_at(moments)
        return self.near(moments + offsets + days * _DAY, offsets) + (span - days * _DAY)

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


@lru_cache(maxsize=_ZONES)
def clock_of(zone: str) -> Clock:
    """The clock of a zone by its name or offset; ``UnsupportedError`` if this machine knows none."""
    name = SHORT_IDS.get(zone, zone)
    fixed = fixed_offset(name)
    if fixed is not None:
        none = np.array([], np.int64)
        return Clock(none, np.array([fixed * _SECOND], np.int64), none, np.iinfo(np.int64).max)
    if not may_be_region(name):
        raise _unknown(zone)
    try:
        info, written = ZoneInfo(name), _zone_file(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _unknown(zone) from None
    known = [second for second in _written_changes(written) if second >= _EARLIEST]
    later = _later_changes(info, known[-1] if known else _EARLIEST) if _goes_on(written) else []
    seconds = np.array(known + later, np.int64)
    offsets = np.array([_offset(info, _EARLIEST), *(_offset(info, int(one)) for one in seconds)], np.int64) * _SECOND
    changes = seconds * _SECOND
    return Clock(changes, offsets, changes + np.maximum(offsets[:-1], offsets[1:]), _LATEST * _SECOND)


def _unknown(zone: str) -> UnsupportedError:
    hint = "install its time zone data (tzdata), or use an offset"
    return UnsupportedError(f"This machine does not know the time zone {zone!r}.", hint=hint)


def written_clock(zone: str) -> Clock:
    """The clock of a zone that is written behind a time; ``ValueError`` for what Spark takes for no zone.

    Raises:
        UnsupportedError: Spark may know it; this machine does not, or has no time zone data at all.
    """
    try:
        return clock_of(zone)
    except UnsupportedError:
        if zone.startswith(_OF_OLD) or not _has_data():
            raise
        raise ValueError(zone) from None


@cache
def _has_data() -> bool:
    try:
        clock_of("America/New_York")
    except UnsupportedError:
        return False
    return True


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


def _goes_on(written: bytes) -> bool:
    """Whether a zone has a rule for all years to come: the line at the end names the days on which clocks change."""
    return b"," in written.rstrip(b"\n").rpartition(b"\n")[2]


def _later_changes(info: ZoneInfo, after: int) -> list[int]:
    """What follows from a zone's rule, whose changes are more than a week apart."""
    found = []
    before = _offset(info, after)
    for start in range(after, _LATEST, _WEEK):
        low, high = start, start + _WEEK
        begins, before = before, _offset(info, high)
        if begins == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(info, middle) == begins else (low, middle)
        found.append(high)
    return found


def _offset(info: ZoneInfo, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(info).utcoffset()
    assert offset is not None, "a zone has one"
    return offset // timedelta(seconds=1)
