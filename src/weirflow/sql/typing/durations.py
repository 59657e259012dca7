"""Lengths of time as text: ``5 minutes``, ``1 hour 30 minutes``."""

from __future__ import annotations

import re
from decimal import Decimal

from weirflow.errors import SqlPosition, SqlSyntaxError

MICROS = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
"""How long a unit of time is."""
_DURATION_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s+([a-z]+)", re.IGNORECASE)


def duration_micros(text: str, position: SqlPosition | None = None) -> int:
    """The length in microseconds of text such as ``5 minutes`` or ``1 hour 30 minutes``, as ``window()`` takes it."""
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    total, end = 0, 0
    while (found := _DURATION_PART.match(rest, end)) is not None:
        unit = found[2].upper().rstrip("S")
        if unit not in MICROS:
            break
        total += int(Decimal(found[1]) * MICROS[unit])
        end = found.end()
    if end == 0 or rest[end:].strip():
        raise SqlSyntaxError(f"{text!r} is not a length of time.", hint="write it like '5 minutes'", position=position)
    return total
