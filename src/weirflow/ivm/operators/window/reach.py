"""How far a change of a row reaches: the other rows whose window functions it may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weirflow.ivm.operators.aggregate.functions import is_linear
from weirflow.ivm.operators.window.functions import as_aggregate
from weirflow.sql.expr import Frame, FrameUnit, Literal, SortKey, WindowCall

_BY_PLACE = frozenset({"row_number", "rank"})
_BY_OFFSET = frozenset({"lag", "lead"})
_LAST, _FIRST = frozenset({"last_value"}), frozenset({"first_value", "any_value"})


@dataclass(frozen=True)
class Reach:
    """What a change may reach within a partition.

    Attributes:
        back, forth: how many rows before and behind it.
        peers: whether also all rows with equal sort keys.
        onwards: whether all that follows, as long as what was added differs from what was taken.
        spread: by how much sort keys may differ from its own.
    """

    back: int = 0
    forth: int = 0
    peers: bool = False
    onwards: bool = False
    spread: int = 0

    @property
    def rows(self) -> int:
        """How many rows on each side are needed to compute all that is reached.

        What is ``back`` rows before the change is computed from rows up to ``forth`` before that, and so behind it.
        """
        return self.back + self.forth

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            max(self.back, other.back),
            max(self.forth, other.forth),
            self.peers or other.peers,
            self.onwards or other.onwards,
            max(self.spread, other.spread),
        )


def common_reach(calls: Sequence[WindowCall]) -> Reach | None:
    """How far a change reaches in any of the calls; None if that may be the whole partition."""
    found = Reach()
    for call in calls:
        one = reach_of(call)
        if one is None or call.order_by != calls[0].order_by:
            return None
        found |= one
    # What is near by places may be computed from what is far by values.
    return None if found.spread and found.rows else found


def reach_of(call: WindowCall) -> Reach | None:
    """How far a change reaches in a call; None if that may be the whole partition."""
    if call.function in _BY_PLACE:
        return Reach(peers=call.function == "rank", onwards=True)
    if call.function in _BY_OFFSET:
        offset = call.arguments[1]
        if not isinstance(offset, Literal) or call.ignore_nulls:
            return None
        return _from(offset.value if call.function == "lead" else -offset.value)
    return None if call.frame is None else _in_frame(call, call.frame)


def _from(place: int) -> Reach:
    """The reach of what is read from the row so many places further."""
    return Reach(max(place, 0), max(-place, 0))


def _in_frame(call: WindowCall, frame: Frame) -> Reach | None:
    start, end = frame.start, frame.end
    if frame.unit is FrameUnit.RANGE and (start or end):
        return _near_values(frame)
    around = Reach(peers=frame.unit is FrameUnit.RANGE)
    if start is not None and end is not None:
        return around | _from(start) | _from(end)
    if start is None and end is not None:
        if is_linear(as_aggregate(call)):
            return around | _from(end) | Reach(onwards=True)
        return around | _from(end) if call.function in _LAST and not call.ignore_nulls else None
    if start is not None and call.function in _FIRST and not call.ignore_nulls:
        return around | _from(start)
    return None


def _near_values(frame: Frame) -> Reach | None:
    """As far as values are near; what is there is computed from values as near to it."""
    if frame.start is None or frame.end is None or frame.clocks is not None:
        return None
    return Reach(peers=True, spread=max(frame.end, 0) + max(-frame.start, 0))


def order_of(calls: Sequence[WindowCall]) -> tuple[SortKey, ...]:
    """The order in which the rows are kept: that of the first call that has one."""
    return next((call.order_by for call in calls if call.order_by), ())


def reads_peers(call: WindowCall) -> bool:
    """Whether the call's value may depend on rows behind it that have equal sort keys."""
    return call.frame is not None and call.frame.unit is FrameUnit.RANGE
