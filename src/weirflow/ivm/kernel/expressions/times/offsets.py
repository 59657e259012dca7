"""Letters of patterns that tell how far a clock is ahead of UTC (``O X x Z``), written and read as Java does.

Names and ids of zones (``z``, ``VV``) are not among them: they are what Java's locales have, and how a session spells
its zone.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

OFFSETS: Final = frozenset("OXxZ")
MOST_SECONDS: Final = 18 * 3600
"""No clock is further ahead of UTC, or behind it."""
_FULL = 4
_LONGEST = 5
_HOURS = r"[0-5][0-9]"
_PARTS = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?$")


class _Style(NamedTuple):
    """How an offset is written.

    Attributes:
        none: what stands for no offset.
        colon: what is between hours, minutes and seconds.
        minutes: whether minutes are there also if they are none.
        seconds: whether seconds are there, if there are any.
    """

    none: str
    colon: str
    minutes: bool
    seconds: bool


def _style(letter: str, times: int) -> _Style:
    if letter == "Z":
        is_longest = times == _LONGEST
        return _Style("Z" if is_longest else "+0000", ":" if is_longest else "", minutes=True, seconds=is_longest)
    colon = ":" if times in (3, 5) else ""
    none = "Z" if letter == "X" else "+00" if times == 1 else f"+00{colon}00"
    return _Style(none, colon, minutes=times > 1, seconds=times >= _FULL)


def is_localized(letter: str, times: int) -> bool:
    """Whether the offset is behind the letters GMT."""
    return letter == "O" or (letter == "Z" and times == _FULL)


def offset_text(letter: str, times: int, seconds: int) -> str:
    """An offset of so many seconds as a letter that is there so often has it.

    >>> offset_text("X", 1, 19800), offset_text("x", 3, 0), offset_text("O", 1, -18000)
    ('+0530', '+00:00', 'GMT-5')
    """
    size = abs(seconds)
    hours, minutes, rest = size // 3600, size // 60 % 60, size % 60
    sign = "-" if seconds < 0 else "+"
    if is_localized(letter, times):
        tail = f":{rest:02d}" if rest else ""
        if not seconds:
            return "GMT"
        if times == _FULL:
            return f"GMT{sign}{hours:02d}:{minutes:02d}{tail}"
        return f"GMT{sign}{hours}{f':{minutes:02d}{tail}' if minutes or rest else ''}"
    style = _style(letter, times)
    shows_rest = style.seconds and rest > 0
    if not hours and not minutes and not shows_rest:
        return style.none
    text = f"{sign}{hours:02d}"
    if style.minutes or minutes:
        text += f"{style.colon}{minutes:02d}"
    return f"{text}{style.colon}{rest:02d}" if shows_rest else text


def offset_expression(letter: str, times: int) -> str:
    """A regular expression, with one group, of what is read as an offset; like Java it never goes back."""
    if is_localized(letter, times):
        if times == _FULL:
            signed = r"[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2})?+"
        else:
            signed = r"[+-][0-9]{1,2}+(?::[0-9]{2}(?::[0-9]{2})?+)?+"
        return f"(GMT(?:{signed}|(?![+-])))"
    style = _style(letter, times)
    minutes = f"{style.colon}{_HOURS}"
    tail = (minutes if style.minutes else f"(?:{minutes})?+") + (
        f"(?:{style.colon}{_HOURS})?+" if style.seconds else ""
    )
    return f"((?>{re.escape(style.none)}|[+-]{_HOURS}{tail}))"


def offset_of(letter: str, times: int, written: str) -> int | None:
    """The seconds that a text of ``offset_expression`` says; None if no clock is so far ahead.

    >>> offset_of("X", 3, "-05:30"), offset_of("O", 1, "GMT")
    (-19800, 0)
    """
    found = _PARTS.search(written)
    if found is None:  # Z, or GMT alone
        return 0
    hours, minutes, rest = (int(part or 0) for part in found.groups()[1:])
    if hours > 23 and not is_localized(letter, times):  # noqa: PLR2004 - a day
        return None
    seconds = hours * 3600 + minutes * 60 + rest
    if seconds > MOST_SECONDS:
        return None
    return -seconds if found[1] == "-" else seconds
