"""``RunProgress``: how far a run has come, kept beside the state of every instance and written with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weirflow.errors import StateError
from weirflow.state import BroadcastState, KeyedStateStore, StateDescriptor

_EVENT_TIME = "event time "


@dataclass(frozen=True)
class RunProgress:
    """How far a run has come.

    Attributes:
        epoch: the number of batches that are done.
        clock: the latest processing time.
        watermark: the time that events have reached, or None.
        latest: the latest event time of each input, or None.
    """

    epoch: int = 0
    clock: int = 0
    watermark: int | None = None
    latest: tuple[int | None, ...] = ()

    def with_events(self, latest: Sequence[int | None], delays: Sequence[int | None]) -> RunProgress:
        """After events: the watermark is the least of all inputs that have one, and never goes back."""
        reached = [
            None if time is None else time - delay
            for time, delay in zip(latest, delays, strict=True)
            if delay is not None
        ]
        known = [one for one in reached if one is not None]
        moved = min(known) if known and len(known) == len(reached) else None
        return replace(self.with_watermark(moved), latest=tuple(latest))

    def with_watermark(self, watermark: int | None) -> RunProgress:
        """With a watermark, unless it is earlier than the one there is."""
        known = [one for one in (watermark, self.watermark) if one is not None]
        return replace(self, watermark=max(known, default=None))


class StoredProgress:
    """The progress in one store, as broadcast state."""

    def __init__(self, store: KeyedStateStore) -> None:
        self._entries: BroadcastState = store.broadcast(StateDescriptor("weirflow.progress", None, dict[str, int]))

    def write(self, progress: RunProgress) -> None:
        """Keep it with the next flush."""
        self._entries.put("epoch", progress.epoch)
        self._entries.put("clock", progress.clock)
        if progress.watermark is not None:
            self._entries.put("watermark", progress.watermark)
        for at, time in enumerate(progress.latest):
            if time is not None:
                self._entries.put(f"{_EVENT_TIME}{at}", time)

    def read(self, inputs: int) -> RunProgress:
        """What was written last, of as many inputs."""
        found = dict(self._entries.items())
        latest = tuple(found.get(f"{_EVENT_TIME}{at}") for at in range(inputs))
        return RunProgress(found.get("epoch", 0), found.get("clock", 0), found.get("watermark"), latest)


def common_progress(found: Sequence[RunProgress], operator: str) -> RunProgress:
    """What all instances have; ``StateError`` if they are not at the same batch."""
    if any(one != found[0] for one in found):
        epochs = ", ".join(str(one.epoch) for one in found)
        raise StateError(
            f"The instances of {operator!r} are not at the same batch: {epochs}.", hint="restore them from a checkpoint"
        )
    return found[0]
