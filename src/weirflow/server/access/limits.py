"""Limits: how much one token may have under way, and how long it may take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError, ServerBusy, did_you_mean

if TYPE_CHECKING:
    from weirflow.server.access.caller import Caller

_MIB = 1 << 20
_RETRY_SECONDS = 1.0
_MOST = 1_000_000_000_000


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

    def of(self, caller: Caller) -> Limits:
        """Those of a caller: what their token says, and of all else these."""
        return replace(self, **caller.limits) if caller.limits else self

    def seconds(self, wanted: float | None) -> float | None:
        """The time that a statement has: what was asked for, but not more than the limit."""
        if wanted is None or self.statement_seconds is None:
            return self.statement_seconds if wanted is None else wanted
        return min(wanted, self.statement_seconds)


NAMES = tuple(one.name for one in fields(Limits))
"""What a token may have a limit of its own of."""


def own_limits(given: Mapping[str, float | None]) -> dict[str, float]:
    """The limits of a token, checked; what is None is not one.

    Raises:
        ConfigError: a name or a value cannot be used.
    """
    found: dict[str, float] = {}
    for name, value in given.items():
        if name not in NAMES:
            raise ConfigError(f"A token has no limit {name!r}.", hint=did_you_mean(name, NAMES))
        if value is None:
            continue
        least = {"message_bytes": 1024, "statement_seconds": 0.001}.get(name, 1)
        is_whole = isinstance(value, int) or name == "statement_seconds"
        if isinstance(value, bool) or not is_whole or not least <= value <= _MOST:
            raise ConfigError(
                f"The limit {name} is {value!r}; it must be a number from {least} to {_MOST:,}.",
                hint="leave it out to have the server's",
            )
        found[name] = value
    return found


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
        limits = self._limits.of(caller)
        most = limits.watches_at_once if lasting else limits.statements_at_once
        with self._lock:
            if self._taken[slot] >= most:
                what = "watches open" if lasting else "requests under way"
                raise ServerBusy(
                    f"{caller.name!r} has {most} {what}, which is the most that a token may have.",
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
