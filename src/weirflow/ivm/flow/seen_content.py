"""``SeenContent``: which deltas a source had of late, so that it notices when one comes again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

HISTORY = 10_000_000
"""How many deltas a source remembers that drops what it had before by ``dedup="content"``."""
HISTORY_IN_SHARDS = 10_000
"""The same of a flow in shards, whose every commit holds them."""


class SeenContent:
    """The digests of the last deltas, in their order; the oldest is forgotten for one beyond the limit.

    Looking one up takes the same time however many there are. A digest takes about 130 bytes of memory.

    >>> seen = SeenContent(2)
    >>> seen.extend([b"a", b"b", b"c"])
    >>> list(seen), b"a" in seen, b"c" in seen
    ([b'b', b'c'], False, True)
    """

    __slots__ = ("_known", "_order", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._order: deque[bytes] = deque()
        self._known: set[bytes] = set()

    @property
    def is_full(self) -> bool:
        """Whether the next one is remembered at the cost of the oldest."""
        return len(self._order) >= self.limit

    def add(self, digest: bytes) -> None:
        """Remember one more. Doing it again with the same object, after it was interrupted, finishes it."""
        self._known.add(digest)
        if not (self._order and self._order[-1] is digest):
            self._order.append(digest)
        while len(self._order) > self.limit:
            self._known.discard(self._order[0])
            self._order.popleft()

    def extend(self, digests: Iterable[bytes]) -> None:
        """Remember several, the oldest first."""
        for digest in digests:
            self.add(digest)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._known

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)
