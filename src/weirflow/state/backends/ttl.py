"""``TtlStateBackend``: a backend whose slots may expire; what has expired is absent at once and removed later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from weirflow.arguments import Positive, checked
from weirflow.errors import ConfigError, StateError
from weirflow.state.backends.contract import Changes, StateBackend, StateReader, StateSnapshot
from weirflow.state.catalogue import read_slots
from weirflow.state.encoding.layout import BROADCAST, CATALOGUE, NOBODY, slot_bytes, slot_of, successor
from weirflow.state.encoding.values import STAMP, expiry

if TYPE_CHECKING:
    from weirflow.state.descriptors import TimeKind, Ttl

_WATERMARK = CATALOGUE + b"watermark"
_LATEST = (1 << 8 * STAMP) - 1
# What reads find expired and the next write removes; beyond so many it is left to the cleanup.
_MOST_NOTED = 10_000


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class TtlStateBackend(StateBackend):
    """Wraps a backend so that slots declared with a ``Ttl`` expire; see ``StateBackend`` for the contract.

    Slots with processing time expire by the clock. Slots with event time expire by the watermark, however far it lags
    behind the clock; before the first watermark, nothing in them expires. The watermark is stored with the state and
    never goes back.

    Args:
        backend: where the state is; it is closed together with this wrapper.
        clock: milliseconds since 1970.
    """

    @checked
    def __init__(self, backend: StateBackend, clock: Callable[[], int] = wall_clock) -> None:
        self._backend = backend
        self._clock = clock
        self._expiring: dict[str, dict[bytes, TimeKind]] = {}
        self._noted: dict[str, set[bytes]] = {}
        self._cursor = ("", b"")
        stored = backend.get(NOBODY, _WATERMARK)
        self._watermark = None if stored is None else int.from_bytes(stored, "little")
        self._stored_watermark = self._watermark
        for operator in backend.operators():
            for slot in read_slots(backend, operator).values():
                if slot.expires is not None:
                    self.declare(operator, slot.name, slot.expires)

    def __repr__(self) -> str:
        return f"<{self._backend!r}, expiring>"

    @property
    def backend(self) -> StateBackend:
        """The wrapped backend, with all that was set here; it also shows expired entries until they are removed."""
        if self._watermark != self._stored_watermark:
            self.write({})
        return self._backend

    @property
    def watermark(self) -> int | None:
        """The event time that has been reached, in milliseconds since 1970."""
        return self._watermark

    @checked
    def set_watermark(self, watermark_ms: int) -> None:
        """Say how far event time has come; an earlier time than before changes nothing."""
        if not 0 <= watermark_ms <= _LATEST:
            raise ConfigError(f"{watermark_ms} is not a watermark.", hint="give milliseconds since 1970")
        if self._watermark is None or watermark_ms > self._watermark:
            self._watermark = watermark_ms

    def declare(self, operator: str, slot: str, by: TimeKind) -> None:
        """Declare that the values of a slot begin with the time at which they expire."""
        self._expiring.setdefault(operator, {})[slot_bytes(slot)] = by

    def expires_at(self, ttl: Ttl, timestamp_ms: int | None) -> int:
        """The time at which something that is written now will expire.

        Args:
            ttl: how long it lives.
            timestamp_ms: the time of the event that writes it; without one, the watermark.

        Raises:
            StateError: it expires by event time, and neither time is known.
        """
        if ttl.time == "processing":
            begin = self._clock()
        else:
            known = [one for one in (timestamp_ms, self._watermark) if one is not None]
            if not known:
                raise StateError(
                    "State that expires by event time was written before any event time was known.",
                    hint="pass timestamp_ms to set_key, or call set_watermark first",
                )
            begin = max(known)
        return min(begin + ttl.milliseconds, _LATEST)

    def expired(self, data: bytes, by: TimeKind) -> bool:
        """Whether the time at the beginning of a value has been reached."""
        now = self._clock() if by == "processing" else self._watermark
        return now is not None and expiry(data) <= now

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        data = self._backend.get(operator, key)
        return data if data is None or self._lives(operator, key, data) else None

    @override
    def multi_get(self, operator: str, keys: Sequence[bytes]) -> list[bytes | None]:
        found = self._backend.multi_get(operator, keys)
        if not self._expiring.get(operator):
            return found
        return [
            data if data is None or self._lives(operator, key, data) else None
            for key, data in zip(keys, found, strict=True)
        ]

    @override
    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        found = self._backend.scan(operator, start, end, reverse=reverse)
        if not self._expiring.get(operator):
            return found
        return ((key, data) for key, data in found if self._lives(operator, key, data))

    @override
    def operators(self) -> list[str]:
        return self._backend.operators()

    def write(self, changes: Changes) -> None:
        """See ``StateBackend``. It also removes entries that reads have found expired."""
        complete = dict(changes)
        # Taken out first: what is written now must not be removed by the next write, should an exception come between.
        expired, self._noted = self._noted, {}
        for operator, noted in expired.items():
            own = complete.get(operator, {})
            complete[operator] = {**dict.fromkeys(noted), **own}
        if self._watermark is not None and self._watermark != self._stored_watermark:
            complete[NOBODY] = {**complete.get(NOBODY, {}), _WATERMARK: self._watermark.to_bytes(STAMP, "little")}
        reached = self._watermark
        self._backend.write(complete)
        self._stored_watermark = reached

    @checked
    def cleanup(self, limit: Positive = 1000) -> int:
        """Remove what has expired among the next entries, at most ``limit`` of them; returns how many were removed.

        Each call continues where the last one ended, and starts again at the end.
        """
        expired: dict[str, dict[bytes, bytes | None]] = {}
        for looked, (operator, key, data) in enumerate(self._from_cursor()):
            if looked == limit:
                break
            self._cursor = (operator, key + b"\0")
            by = self._expiring[operator].get(slot_of(key))
            if by is not None and self.expired(data, by):
                expired.setdefault(operator, {})[key] = None
        else:
            self._cursor = ("", b"")
        if expired:
            self.write(expired)
        return sum(map(len, expired.values()))

    def snapshot(self) -> StateSnapshot:
        """See ``StateBackend``. It shows only entries that have not expired when they are read."""
        return _TtlSnapshot(self.backend.snapshot(), self._live)

    @override
    def close(self) -> None:
        self._backend.close()

    def _from_cursor(self) -> Iterator[tuple[str, bytes, bytes]]:
        at, start = self._cursor
        for operator in sorted(self._expiring):
            if operator >= at:
                entries = self._backend.scan(operator, start if operator == at else b"", successor(BROADCAST))
                yield from ((operator, key, data) for key, data in entries)

    def _live(self, operator: str, key: bytes, data: bytes) -> bool:
        by = self._expiring.get(operator, {}).get(slot_of(key)) if key < CATALOGUE else None
        return by is None or not self.expired(data, by)

    def _lives(self, operator: str, key: bytes, data: bytes) -> bool:
        """As ``_live``, and notes what does not."""
        if self._live(operator, key, data):
            return True
        noted = self._noted.setdefault(operator, set())
        if len(noted) < _MOST_NOTED:
            noted.add(key)
        return False


class _TtlSnapshot(StateReader):
    """A snapshot without what has expired."""

    def __init__(self, snapshot: StateReader, live: Callable[[str, bytes, bytes], bool]) -> None:
        self._snapshot = snapshot
        self._live = live

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        data = self._snapshot.get(operator, key)
        return data if data is None or self._live(operator, key, data) else None

    @override
    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        found = self._snapshot.scan(operator, start, end, reverse=reverse)
        return ((key, data) for key, data in found if self._live(operator, key, data))

    @override
    def operators(self) -> list[str]:
        return self._snapshot.operators()

    @override
    def close(self) -> None:
        self._snapshot.close()
