"""``Deadline``: when a tick is to give up, known to all that works for it in its thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self, TypeVar

from weirflow.errors import TickTimeout

if TYPE_CHECKING:
    T = TypeVar("T")

_SLICE = 1024


class _Now(threading.local):
    """The deadline that holds in a thread."""

    deadline: Deadline | None = None


_now = _Now()


class Deadline:
    """So many seconds from now on, or for ever. It holds inside of its ``with`` blocks; time runs outside, too.

    Of blocks inside of each other, the innermost one decides. A block belongs around work that may be given up at any
    moment, never around what must be done whole.
    """

    __slots__ = ("_before", "at", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.at = None if seconds is None else time.monotonic() + seconds
        self._before: Deadline | None = None

    def __enter__(self) -> Self:
        self._before = _now.deadline
        _now.deadline = None if self.at is None else self
        return self

    def __exit__(self, *_: object) -> None:
        _now.deadline = self._before

    def passed(self) -> TickTimeout:
        """The error for a tick that is not done by then."""
        return TickTimeout(
            f"The tick did not finish within {self.seconds:g} s; nothing has changed.",
            hint="the delta is kept: retry() with a longer timeout=, or discard() it",
        )


def check() -> None:
    """Raise ``TickTimeout`` if the thread's deadline has passed. Costs next to nothing without one."""
    deadline = _now.deadline
    if deadline is not None and deadline.at is not None and time.monotonic() >= deadline.at:
        raise deadline.passed()


def remaining() -> float | None:
    """The seconds until the thread's deadline, at least 0; None without one."""
    deadline = _now.deadline
    return None if deadline is None or deadline.at is None else max(deadline.at - time.monotonic(), 0.0)


def soonest(moment: float) -> float:
    """The moment (monotonic), or the thread's deadline if that comes before."""
    deadline = _now.deadline
    return moment if deadline is None or deadline.at is None else min(moment, deadline.at)


def checked(values: Iterable[T]) -> Iterable[T]:
    """The values, for a loop that ends with ``TickTimeout`` when the deadline passes on its way."""
    return values if _now.deadline is None else _checked(values)


def _checked(values: Iterable[T]) -> Iterator[T]:
    for number, value in enumerate(values):
        if number % _SLICE == 0:
            check()
        yield value
