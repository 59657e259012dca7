"""``SqlSettings``: what the text of a query leaves to the session that reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SqlSettings:
    """The settings that decide what SQL means, as they were when a view was registered.

    Attributes:
        time_zone: whose clocks times are read by: a region, or an offset from UTC.
        ansi: whether what has no result is an error, as in Spark's ANSI mode; otherwise it is NULL, or wraps around.
        case_sensitive: whether names that differ only by case are different ones.
        timestamp_ntz: whether TIMESTAMP is a type without a time zone.
    """

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    timestamp_ntz: bool = False

    def __str__(self) -> str:
        """In one line, for people."""
        parts = [
            f"time zone {self.time_zone}",
            "ANSI" if self.ansi else "not ANSI",
            f"names {'' if self.case_sensitive else 'not '}case sensitive",
        ]
        return ", ".join([*parts, *(["TIMESTAMP without time zone"] if self.timestamp_ntz else [])])


USUAL = SqlSettings()
"""UTC, ANSI, names compared without regard to case: those of a flow that was told no others."""
