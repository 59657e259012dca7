"""``parse_timestamp``: texts in a pattern as times, read as strictly as Spark reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.expressions.calendar import days_from_civil
from weirflow.ivm.kernel.expressions.failures import failure, overflow, shown
from weirflow.ivm.kernel.expressions.rows import on_arrays
from weirflow.ivm.kernel.expressions.times.clocks import Clock, clock_of
from weirflow.ivm.kernel.expressions.times.names import MONTHS
from weirflow.ivm.kernel.expressions.times.offsets import OFFSETS, offset_expression, offset_of
from weirflow.ivm.kernel.expressions.times.pattern import Part, parts_of

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_DAY, _SECOND, _LONG = 86_400_000_000, 1_000_000, 1 << 63
_NUMBERS = "yMdHhkKms"
_RANGES = {
    "y": (-999_999_999, 999_999_999),
    "M": (1, 12),
    "d": (1, 31),
    "H": (0, 23),
    "h": (1, 12),
    "k": (1, 24),
    "K": (0, 11),
    "m": (0, 59),
    "s": (0, 59),
}
_NAMES = 3
_FULL_YEAR = 4
_NOON = 12


_OFFSET = "offset"


class TimeReader:
    """Reads texts in a pattern.

    Attributes:
        tells_offsets: whether it may be written how far the clock is ahead of UTC.
    """

    def __init__(self, expression: re.Pattern[str], letters: list[Part]) -> None:
        self._expression = expression
        self._letters = letters
        self.tells_offsets = any(part.letter in OFFSETS for part in letters)

    @classmethod
    def of(cls, pattern: str) -> TimeReader | None:
        """The reader of a pattern; None for those that are not known here."""
        parts = parts_of(pattern)
        expression = None if parts is None else _expression(parts)
        if parts is None or expression is None:
            return None
        return cls(expression, [part for part in parts if part.letter in {*_NUMBERS, *OFFSETS, "S", "a"}])

    def shown(self, text: str) -> int | None:
        """What the clock shows, in microseconds since 1970; None for a text of another form."""
        fields = self._fields(text)
        return None if fields is None else _resolved(fields)

    def moment(self, text: str, clock: Clock | None) -> int | None:
        """The moment that is meant: by the offset that is written, or by a clock, or else in UTC."""
        fields = self._fields(text)
        shown = None if fields is None else _resolved(fields)
        if fields is None or shown is None:
            return None
        if _OFFSET in fields:
            return shown - fields[_OFFSET] * _SECOND
        return shown if clock is None else clock.moment_at(shown)

    def _fields(self, text: str) -> dict[str, int] | None:
        found = self._expression.fullmatch(text)
        if found is None:
            return None
        fields: dict[str, int] = {}
        for part, written in zip(self._letters, found.groups(), strict=True):
            if written is None:
                continue
            name = _OFFSET if part.letter in OFFSETS else part.letter
            number = _number(part, written)
            if number is None or fields.setdefault(name, number) != number:
                return None
        return fields


def parse_timestamp(signature: CallSignature) -> Kernel | None:
    """``parse_timestamp(text, pattern)``: what a clock shows, or with offsets a moment; of others ``try_`` is NULL.

    With a zone behind the pattern it is the moment at which the clocks there show it, unless the text has an offset.
    """
    constant, zones = signature.constants[1], signature.constants[2:]
    pattern = "" if constant is None else constant.as_py()
    reader = None if constant is None or pattern is None else TimeReader.of(pattern)
    if reader is None or signature.types[0] != pa.string() or any(zone is None for zone in zones):
        return None
    position, tolerant = signature.position, signature.function.startswith("try_")
    clock = clock_of(zones[0].as_py()) if zones and zones[0] is not None else None
    is_moment = signature.result.tz is not None

    def value(text: str) -> int | None:
        micros = reader.moment(text, clock) if is_moment else reader.shown(text)
        if micros is None:
            if tolerant:
                return None
            raise failure(
                "CANNOT_PARSE_TIMESTAMP",
                f"{shown(text)!r} is not a time of the form {pattern!r}.",
                position,
                hint="use try_to_timestamp to get NULL instead",
            )
        if not -_LONG <= micros < _LONG:
            raise overflow("long", position)
        return micros

    def run(texts: pa.Array) -> pa.Array:
        known: dict[str, int | None] = {}
        found: list[int | None] = []
        for text in checked(texts.to_pylist()):
            if text is not None and text not in known:
                known[text] = value(text)
            found.append(None if text is None else known[text])
        return pa.array(found, pa.int64()).view(signature.result)

    alone = on_arrays(run)
    return lambda texts, *_: alone(texts)


def _expression(parts: list[Part]) -> re.Pattern[str] | None:
    """A pattern as a regular expression that, like Java, never goes back."""
    texts = []
    for at, part in enumerate(parts):
        if part.letter == "[":
            texts.append("(?:")
        elif part.letter == "]":
            texts.append(")?+")
        elif not part.letter:
            texts.append(re.escape(part.text))
        else:
            text = _field(part, parts, at)
            if text is None:
                return None
            texts.append(text)
    return re.compile("".join(texts), re.IGNORECASE | re.DOTALL)


def _field(part: Part, parts: list[Part], at: int) -> str | None:  # noqa: PLR0911 - one for each kind of field
    if part.letter == "a":
        return "(AM|PM)"
    if part.letter == "S":
        return rf"([0-9]{{1,{part.times}}}+)"
    if part.letter in OFFSETS:
        return offset_expression(part.letter, part.times)
    if part.letter not in _NUMBERS:
        return None
    if part.letter == "M" and part.times >= _NAMES:
        return f"({'|'.join(MONTHS[part.times > _NAMES])})"
    before, behind = _chain(parts, at)
    if part.letter == "y" and part.times != 2:  # noqa: PLR2004 - two digits are of this century
        if before:
            return None
        digits = rf"[+-]?[0-9]{{{part.times},19}}" if part.times >= _FULL_YEAR else rf"-?[0-9]{{{part.times},19}}"
        return f"({digits})" if behind else f"({digits}+)"
    if part.times == 2:  # noqa: PLR2004 - of fixed width
        last_of_open = before and not behind and _is_open(parts[before[0]])
        return "([0-9]{2})" + ("(?![0-9])" if last_of_open else "")
    if before:
        return None
    return "(-?[0-9]{1,19})" if behind else "(-?[0-9]{1,19}+)"


def _is_number(part: Part) -> bool:
    return part.letter != "" and part.letter in _NUMBERS and not (part.letter == "M" and part.times >= _NAMES)


def _is_open(part: Part) -> bool:
    return part.times != 2  # noqa: PLR2004 - of fixed width


def _chain(parts: list[Part], at: int) -> tuple[list[int], list[int]]:
    """The numbers directly before and behind the one at this place: they share the digits that there are."""
    start = at
    while start > 0 and _is_number(parts[start - 1]):
        start -= 1
    end = at
    while end + 1 < len(parts) and _is_number(parts[end + 1]):
        end += 1
    return list(range(start, at)), list(range(at + 1, end + 1))


def _number(part: Part, written: str) -> int | None:  # noqa: PLR0911 - one for each kind of field
    if part.letter == "a":
        return int(written.upper() == "PM")
    if part.letter == "S":
        return int(written[:6].ljust(6, "0"))
    if part.letter in OFFSETS:
        return offset_of(part.letter, part.times, written)
    if part.letter == "M" and part.times >= _NAMES:
        return [name.upper() for name in MONTHS[part.times > _NAMES]].index(written.upper()) + 1
    number = int(written)
    if part.letter == "y" and part.times == 2:  # noqa: PLR2004 - of this century
        return 2000 + number
    if written.startswith("-") and not number:
        return None
    if part.letter == "y" and part.times >= _FULL_YEAR and not written.startswith("-"):
        longer = len(written.lstrip("+")) > part.times
        if longer != written.startswith("+"):
            return None
    low, high = _RANGES[part.letter]
    return number if low <= number <= high else None


def _resolved(fields: dict[str, int]) -> int | None:
    hour = _hour(fields)
    if hour is None:
        return None
    try:
        days = days_from_civil(fields.get("y", 1970), fields.get("M", 1), fields.get("d", 1))
    except ValueError:
        return None
    seconds = hour * 3600 + fields.get("m", 0) * 60 + fields.get("s", 0)
    return days * _DAY + seconds * _SECOND + fields.get("S", 0)


def _hour(fields: dict[str, int]) -> int | None:
    """The hour of the day; None if it is said in several ways that differ."""
    of_half = {fields["h"] % _NOON} if "h" in fields else set()
    of_half |= {fields["K"]} if "K" in fields else set()
    of_day = {fields["k"] % 24} if "k" in fields else set()
    of_day |= {fields["H"]} if "H" in fields else set()
    if len(of_half) > 1 or len(of_day) > 1:
        return None
    if of_half and "a" in fields:
        of_day |= {of_half.pop() + _NOON * fields["a"]}
    if len(of_day) > 1:
        return None
    if of_day:
        hour = of_day.pop()
        half_fits = not of_half or of_half == {hour % _NOON}
        return hour if half_fits and fields.get("a", hour // _NOON) == hour // _NOON else None
    return of_half.pop() if of_half else _NOON * fields.get("a", 0)


FUNCTIONS: dict[str, Builder] = dict.fromkeys(("parse_timestamp", "try_parse_timestamp"), parse_timestamp)
