"""Interval join: left and right rows of a key whose times are not too far from each other."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from weirflow.arguments import checked
from weirflow.errors import ConfigError
from weirflow.process.joins.join import How, KeyedJoin, columns, has_null
from weirflow.state import StateDescriptor

if TYPE_CHECKING:
    from weirflow.process.context import ElementContext, OpenContext
    from weirflow.process.function import Row
    from weirflow.process.joins.inputs import JoinInput
    from weirflow.state.descriptors import TimeKind

_MILLISECOND = timedelta(milliseconds=1)


@checked
def interval_join(
    left: JoinInput, right: JoinInput, *, lower: timedelta, upper: timedelta, how: How = "inner"
) -> KeyedJoin:
    """Join rows with equal keys where ``left time + lower <= right time <= left time + upper``.

    A pair is emitted when its second row comes. With ``how="left"``, a left row without a match is emitted when the
    watermark has passed its interval. Rows are kept until then, and no longer.

    Raises:
        ConfigError: an input has no time, the interval is empty, or the inputs do not fit each other.
    """
    if left.time is None or right.time is None:
        raise ConfigError("An interval join needs the times of both inputs.", hint="give JoinInput(..., time=...)")
    if lower > upper:
        raise ConfigError(f"There is no time between {lower} and {upper}.", hint="let lower be at most upper")
    return IntervalJoin(left, right, lower // _MILLISECOND, upper // _MILLISECOND, how)


class IntervalJoin(KeyedJoin):
    """Keeps the rows of both inputs by time, each until no match can come."""

    def __init__(self, left: JoinInput, right: JoinInput, lower: int, upper: int, how: How) -> None:
        super().__init__(left, right, how)
        self._lower, self._upper = lower, upper

    def open(self, ctx: OpenContext) -> None:
        """Rows by (time, number), and the numbers of left rows that have matched."""
        key = self.left.key_type
        self._count = ctx.value(StateDescriptor("count", key, int))
        self._lefts = ctx.map(StateDescriptor("left", key, self.left.rows_by(tuple[int, int])))
        self._rights = ctx.map(StateDescriptor("right", key, self.right.rows_by(tuple[int, int])))
        self._matched = ctx.map(StateDescriptor("matched", key, dict[tuple[int, int], None]))

    def on_left(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Match with the right rows so far, and wait for others."""
        left, time = columns(row, self.left.schema), ctx.timestamp
        if time is None or has_null(key):
            self.unmatched(ctx, left)
            return
        matches = [right for _, right in self._rights.items((time + self._lower, 0), (time + self._upper + 1, 0))]
        for right in matches:
            self.emit(ctx, left, right)
        end = time + self._upper
        if _passed(ctx, end):
            if not matches:
                self.unmatched(ctx, left)
            return
        place = (time, self._next())
        self._lefts.put(place, left)
        if matches and self.how == "left":
            self._matched.put(place, None)
        ctx.timers.register(end)

    def on_right(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Match with the left rows so far, and wait for others."""
        time = ctx.timestamp
        if time is None or has_null(key):
            return
        right = columns(row, self.right.schema)
        for place, left in self._lefts.items((time - self._upper, 0), (time - self._lower + 1, 0)):
            self.emit(ctx, left, right)
            if self.how == "left":
                self._matched.put(place, None)
        end = time - self._lower
        if not _passed(ctx, end):
            self._rights.put((time, self._next()), right)
            ctx.timers.register(end)

    def on_timer(self, ctx: ElementContext, key: Any, ts: int, kind: TimeKind) -> None:  # noqa: ARG002 - the contract
        """Let go of what cannot match any more."""
        for place, left in self._lefts.items(None, (ts - self._upper + 1, 0)):
            if place not in self._matched:
                self.unmatched(ctx, left)
            self._lefts.remove(place)
            self._matched.remove(place)
        for place, _ in self._rights.items(None, (ts + self._lower + 1, 0)):
            self._rights.remove(place)
        if next(self._lefts.keys(), None) is None and next(self._rights.keys(), None) is None:
            self._count.clear()

    def _next(self) -> int:
        number: int = self._count.get(0)
        self._count.set(number + 1)
        return number


def _passed(ctx: ElementContext, time: int) -> bool:
    return ctx.watermark is not None and ctx.watermark >= time
