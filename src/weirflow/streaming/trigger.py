"""``Trigger``: when a streaming query looks for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from weirflow.arguments import Count, checked
from weirflow.streaming.durations import milliseconds

if TYPE_CHECKING:
    from datetime import timedelta


class TriggerKind(StrEnum):
    """The ways to trigger."""

    ONCE = "once"
    AVAILABLE_NOW = "available now"
    PROCESSING_TIME = "processing time"
    CONTINUOUS = "continuous"


@checked
@dataclass(frozen=True)
class Trigger:
    """When a query looks for new rows. Use the class methods to make one.

    >>> str(Trigger.processing_time(5_000))
    'every 5000 ms'
    """

    kind: TriggerKind
    ms: Count = 0

    @classmethod
    def once(cls) -> Trigger:
        """All rows that are there now, as one batch; then the query ends."""
        return cls(TriggerKind.ONCE)

    @classmethod
    def available_now(cls) -> Trigger:
        """All rows that are there now, in batches of the source's maximum size; then the query ends."""
        return cls(TriggerKind.AVAILABLE_NOW)

    @classmethod
    def processing_time(cls, ms: int | timedelta) -> Trigger:
        """A batch every ``ms`` milliseconds; 0 for one right after the other, which is the default."""
        return cls(TriggerKind.PROCESSING_TIME, milliseconds(ms, "time between batches", allow_zero=True))

    @classmethod
    def continuous(cls, ms: int | timedelta) -> Trigger:
        """No batches: rows pass through as they come, and progress is saved every ``ms`` milliseconds."""
        return cls(TriggerKind.CONTINUOUS, milliseconds(ms, "time between checkpoints"))

    @property
    def ends(self) -> bool:
        """Whether the query ends by itself."""
        return self.kind in (TriggerKind.ONCE, TriggerKind.AVAILABLE_NOW)

    def __str__(self) -> str:
        match self.kind:
            case TriggerKind.PROCESSING_TIME:
                return f"every {self.ms} ms" if self.ms else "as soon as the last batch is done"
            case TriggerKind.CONTINUOUS:
                return f"continuous, saved every {self.ms} ms"
            case _:
                return str(self.kind)
