"""``BroadcastState``: a map that belongs to no key and is the same on every instance of its operator."""

from __future__ import annotations

from weirflow.state.encoding.layout import BROADCAST
from weirflow.state.kinds.map import MapState


class BroadcastState(MapState):
    """A map without a key. Every instance writes the same map, and has all of it after any change of parallelism."""

    kind = "broadcast"

    def _base(self) -> bytes:
        return self._slot.place_in(BROADCAST)
