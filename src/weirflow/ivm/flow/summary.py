"""What a tick did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StepSummary:
    """The outcome of one tick.

    Attributes:
        epoch: the number of the tick; for a token that was seen before, the number of the first run.
        rows_in: rows of the deltas as they were given.
        rows_out: rows of all views' deltas together.
        duration_ms: how long it took.
        views: the rows of each changed view's delta.
        late: rows that came too late and went to the late side output.
        dropped: rows of deltas that repeat the source's last ones, if the source has ``dedup``.
        replayed: whether the token was seen before, so that nothing was done.
    """

    epoch: int
    rows_in: int
    rows_out: int
    duration_ms: float
    views: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    dropped: int = 0
    replayed: bool = False
