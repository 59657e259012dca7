"""Limits: how much one token may have under way, and how long it may take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import ServerBusy

if TYPE_CHECKING:
    from weirflow.server.access.caller import Caller

_MIB = 1 << 20
_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """What each token may have of a server.

    Attributes:
        statement_seconds: how long a statement may take; None for any time.
        result_bytes: how large a result may be that is returned in one answer; larger ones are fetched by tickets.
        message_bytes: how large a request may be.
        statements_at_once: how many requests may be under way at a time.
        watches_at_once: how many watches may be open at a time.
    """

    statement_seconds: float | None = 600.0
    result_bytes: int = 64 * _MIB
    message_bytes: int = 64 * _MIB
    statements_at_once: int = 128
    watches_at_once: int = 10_000

    def seconds(self, wanted: float | None) -> float | None:
        """The time that a statement has: what was asked for, but not more than the limit."""
        if wanted is None or self.statement_seconds is None:
            return self.statement_seconds if wanted is None else wanted
        return min(wanted, self.statement_seconds)


class Slots:
    """Counts what each token has under way."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._taken: Counter[tuple[str, bool]] = Counter()

    @contextmanager
    def taken(self, caller: Caller, *, lasting: bool) -> Iterator[None]:
        """Have one more request, or one more watch, under way in the block; ``ServerBusy`` if that is too many."""
        slot = (caller.key, lasting)
        most = self._limits.watches_at_once if lasting else self._limits.statements_at_once
        with self._lock:
            if self._taken[slot] >= most:
                what = "watches open" if lasting else "requests under way"
                raise ServerBusy(
                    f"{caller.name!r} has {most} {what}, which is as many as a token may have.",
                    retry_after=_RETRY_SECONDS,
                    hint="wait for one to end, or close one",
                )
            self._taken[slot] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[slot] -= 1
                if not self._taken[slot]:
                    del self._taken[slot]
