"""Fires the timers of all instances in one order: by time, then by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from weirflow.errors import UserCodeError
from weirflow.process.context import END_OF_TIME

if TYPE_CHECKING:
    from weirflow.process.instance import Instance
    from weirflow.process.timers import Due
    from weirflow.state.descriptors import TimeKind

MOST_AT_THE_END = 1_000_000
"""Timers that one key may register one behind the other when the input has ended."""


def fire(instances: Sequence[Instance], kind: TimeKind, until: int) -> None:
    """Fire the timers of a kind that are not after a time.

    Those that ``on_timer`` registers meanwhile are among them if they are after the one that fires; others wait, so
    that it comes to an end.

    Raises:
        UserCodeError: a key goes on registering timers when the input has ended.
    """
    waiting: list[tuple[Due, int]] = []
    for at, instance in enumerate(instances):
        if instance.timers is not None:
            waiting += ((due, at) for due in instance.timers.due(kind, until))
            instance.timers.added[kind].clear()
    heapify(waiting)
    registered: Counter[bytes] = Counter()
    last = None
    while waiting:
        entry = heappop(waiting)
        if entry == last:
            # Deleted and registered anew before it fired; it fires once.
            continue
        last = entry
        due, at = entry
        instances[at].timer(due.at, due.key, kind)
        for new in _added(instances[at], kind):
            if due.at < new.at <= until:
                heappush(waiting, (new, at))
                registered[new.key] += 1
        if until == END_OF_TIME and registered[due.key] > MOST_AT_THE_END:
            raise UserCodeError(
                f"A key has registered {MOST_AT_THE_END:,} timers one after another after the end of the input.",
                hint="register none in on_timer when ctx.watermark is END_OF_TIME",
            )


def _added(instance: Instance, kind: TimeKind) -> list[Due]:
    assert instance.timers is not None, "one of its timers has fired"
    added = instance.timers.added[kind]
    found = added.copy()
    added.clear()
    return found
