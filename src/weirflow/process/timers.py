"""The timers of one instance: registered for the current key, found by their time."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, get_args

from typing_extensions import override

from weirflow.arguments import shown
from weirflow.errors import ConfigError, StateError
from weirflow.process.context import END_OF_TIME, Timers
from weirflow.state import KeyedStateStore, StateDescriptor, TimerState
from weirflow.state.descriptors import TimeKind

_NEVER = END_OF_TIME + 1


def as_time(time: int) -> int:
    """A time in milliseconds since 1970; ``ConfigError`` if it is none, or beyond 64 bits."""
    try:
        at = _NEVER if isinstance(time, bool) else operator.index(time)
    except TypeError:
        at = _NEVER
    if not -END_OF_TIME <= at <= END_OF_TIME:
        raise ConfigError(f"{shown(time)} is not a time.", hint="give milliseconds since 1970, a whole number")
    return at


class Due(NamedTuple):
    """A timer whose time has come; they are ordered by time, then by key."""

    at: int
    key: bytes


class InstanceTimers(Timers):
    """All timers of one instance, in its store.

    Attributes:
        added: those that were registered since it was last emptied, for the kind that fires.
    """

    def __init__(self, store: KeyedStateStore, key: Any) -> None:
        self._kinds: dict[str, TimerState] = {
            kind: store.timers(StateDescriptor(f"weirflow.{kind}_timers", key, None)) for kind in get_args(TimeKind)
        }
        # The earliest of each kind, or something earlier; absent when it must be looked for.
        self._first: dict[str, int] = {}
        self.added: dict[str, list[Due]] = {kind: [] for kind in self._kinds}

    @override
    def register(self, at: int, kind: TimeKind = "event") -> None:
        at = as_time(at)
        state = self._of(kind)
        if kind in self._first:
            self._first[kind] = min(self._first[kind], at)
        key = state.add(at)
        if key is not None:
            self.added[kind].append(Due(at, key))

    @override
    def delete(self, at: int, kind: TimeKind = "event") -> None:
        self._of(kind).remove(as_time(at))

    def due(self, kind: TimeKind, until: int) -> list[Due]:
        """The timers of all keys that are not after a time."""
        if self._first.get(kind, until) > until:
            return []
        found = [Due(*one) for one in self._kinds[kind].until(until)]
        if found:
            self._first.pop(kind, None)
        else:
            first = self._kinds[kind].first()
            self._first[kind] = _NEVER if first is None else first
        return found

    def take(self, at: int, kind: TimeKind) -> bool:
        """Remove a timer of the current key; whether it was there."""
        return self._kinds[kind].remove(at)

    def key(self, data: bytes) -> Any:
        """The key that these bytes encode."""
        return self._kinds["event"].key(data)

    def forget(self) -> None:
        """Nothing is remembered of what is stored: it may have been taken back."""
        self._first.clear()
        for added in self.added.values():
            added.clear()

    def _of(self, kind: str) -> TimerState:
        found = self._kinds.get(kind)
        if found is None:
            raise ConfigError(f"There are no timers of {shown(kind)} time.", hint="use 'event' or 'processing'")
        return found


class NoTimers:
    """The timers of a function without keyed state: the type of its keys is not known, and none can be stored."""

    def register(self, at: int, kind: TimeKind = "event") -> None:
        """Refused."""
        raise StateError(
            f"A timer for {shown(at)} ({kind} time) needs keyed state.",
            hint="declare a slot in open(): its type of keys is that of the timers",
        )

    def delete(self, at: int, kind: TimeKind = "event") -> None:
        """There is none."""
