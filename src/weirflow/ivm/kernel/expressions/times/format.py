"""``date_format``: times as texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.calendar import month_starts, months_of
from weirflow.ivm.kernel.expressions.rows import like_nulls, nulls_of, numbers, on_arrays
from weirflow.ivm.kernel.expressions.times.clocks import clock_of
from weirflow.ivm.kernel.expressions.times.names import DAYS, MONTHS, QUARTERS
from weirflow.ivm.kernel.expressions.times.offsets import OFFSETS, offset_text
from weirflow.ivm.kernel.expressions.times.pattern import Part, parts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Numbers = NDArray[np.int64]

_DAY, _SECOND = 86_400_000_000, 1_000_000
_YEAR_DIGITS = 4


class TimeWriter:
    """Writes times as a pattern has them.

    Attributes:
        letters: those of the pattern.
    """

    def __init__(self, parts: list[Part]) -> None:
        self._parts = [part for part in parts if part.letter not in ("[", "]")]
        self.letters = frozenset(part.letter for part in self._parts if part.letter)

    @classmethod
    def of(cls, pattern: str) -> TimeWriter | None:
        """The writer of a pattern; None if it has a part that is not known here."""
        parts = parts_of(pattern)
        return None if parts is None else cls(parts)

    @property
    def tells_offsets(self) -> bool:
        """Whether it is written how far the clock is ahead of UTC."""
        return not self.letters.isdisjoint(OFFSETS)

    def __call__(self, shown: Numbers, offsets: Numbers | None = None) -> pa.Array:
        """The texts of what clocks show that are so far ahead of UTC, in microseconds."""
        length = len(shown)
        if not self._parts or not length:
            return pa.array([""] * length, pa.string())
        clock = _Clock(shown, np.zeros(length, np.int64) if offsets is None else offsets)
        pieces = [pa.repeat(part.text, length) if not part.letter else _piece(part, clock) for part in self._parts]
        return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, "")


def date_format(signature: CallSignature) -> Kernel | None:
    """``date_format(time, pattern)`` by the clock that the time is of; ``date_format(moment, pattern, zone)``."""
    pattern = signature.constants[1]
    writer = None if pattern is None or not pattern.is_valid else TimeWriter.of(pattern.as_py())
    kind = signature.types[0]
    if writer is None or not pa.types.is_timestamp(kind):
        return None
    if len(signature.types) == 2:  # noqa: PLR2004 - without a zone it is UTC, or not known any more
        if writer.tells_offsets and kind.tz is None:
            return None
        alone = on_arrays(lambda times: _with_nulls(writer(numbers(times)), times))
        return lambda times, _: alone(times)
    zone = signature.constants[2]
    if zone is None or kind.tz is None:
        return None
    clock = clock_of(zone.as_py())

    def run(moments: pa.Array) -> pa.Array:
        micros = numbers(moments)
        offsets = clock.offset_at(micros)
        return _with_nulls(writer(micros + offsets, offsets), moments)

    there = on_arrays(run)
    return lambda moments, *_: there(moments)


def seconds_wrapped(signature: CallSignature) -> Kernel | None:
    """The moment of so many seconds since 1970, without a look at whether that fits."""
    if signature.types[0] != pa.int64():
        return None

    def run(seconds: pa.Array) -> pa.Array:
        with np.errstate(over="ignore"):
            return like_nulls(numbers(seconds) * np.int64(_SECOND), signature.result, seconds)

    return on_arrays(run)


def _with_nulls(texts: pa.Array, nulls: pa.Array) -> pa.Array:
    if not nulls.null_count:
        return texts
    buffers = texts.buffers()
    return pa.Array.from_buffers(pa.string(), len(texts), [nulls_of(nulls), *buffers[1:]], offset=0)


class _Clock:
    """What is shown at times: the day, what has passed of it, and how far that is ahead of UTC."""

    def __init__(self, micros: Numbers, offsets: Numbers) -> None:
        self.days, self.rest = np.divmod(micros, _DAY)
        self.months = months_of(self.days)
        self.offsets = offsets

    @property
    def years(self) -> Numbers:
        return self.months // 12 + 1970

    @property
    def hours(self) -> Numbers:
        return self.rest // (3600 * _SECOND)


_VALUES: dict[str, Callable[[_Clock], Numbers]] = {
    "M": lambda clock: clock.months % 12 + 1,
    "L": lambda clock: clock.months % 12 + 1,
    "d": lambda clock: clock.days - month_starts(clock.months) + 1,
    "D": lambda clock: clock.days - month_starts(clock.months // 12 * 12) + 1,
    "Q": lambda clock: clock.months % 12 // 3 + 1,
    "q": lambda clock: clock.months % 12 // 3 + 1,
    "E": lambda clock: (clock.days + 3) % 7 + 1,
    "H": lambda clock: clock.hours,
    "k": lambda clock: (clock.hours + 23) % 24 + 1,
    "K": lambda clock: clock.hours % 12,
    "h": lambda clock: (clock.hours + 11) % 12 + 1,
    "m": lambda clock: clock.rest // (60 * _SECOND) % 60,
    "s": lambda clock: clock.rest // _SECOND % 60,
    "a": lambda clock: clock.hours // 12,
}
_SHORT = 3
_TEXTS = {**dict.fromkeys("ML", MONTHS), **dict.fromkeys("Qq", QUARTERS), "E": DAYS}


def _piece(part: Part, clock: _Clock) -> pa.Array:
    if part.letter == "y":
        return _years(clock.years, part.times)
    if part.letter == "S":
        nanos = (clock.rest % _SECOND) * 1000
        return _texts(nanos // 10 ** (9 - part.times), lambda value: f"{value:0{part.times}d}")
    if part.letter in OFFSETS:
        return _texts(clock.offsets // _SECOND, lambda seconds: offset_text(part.letter, part.times, seconds))
    values = _VALUES[part.letter](clock)
    if part.letter == "a":
        return pa.array(["AM", "PM"]).take(pa.array(values))
    if part.letter in _TEXTS and (part.times >= _SHORT or part.letter == "E"):
        names = _TEXTS[part.letter][part.times > _SHORT]
        return pa.array(names).take(pa.array(values - 1))
    return pa.array([f"{value:0{part.times}d}" for value in range(367)]).take(pa.array(values))


def _years(years: Numbers, count: int) -> pa.Array:
    if count == 2:  # noqa: PLR2004 - the last two digits
        return _texts(np.abs(years) % 100, lambda year: f"{year:02d}")

    def text(year: int) -> str:
        digits = f"{abs(year):0{count}d}"
        sign = "-" if year < 0 else "+" if count >= _YEAR_DIGITS and len(digits) > count else ""
        return sign + digits

    return _texts(years, text)


def _texts(values: Numbers, text: Callable[[int], str]) -> pa.Array:
    different, places = np.unique(values, return_inverse=True)
    return pa.array([text(value) for value in different.tolist()], pa.string()).take(pa.array(places.ravel()))


FUNCTIONS: dict[str, Builder] = {
    "date_format": date_format,
    "seconds_wrapped": seconds_wrapped,
}
