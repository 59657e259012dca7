"""The last deltas of a flow's views, for readers that come back and for snapshots of the recent past."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from weirflow.errors import HistoryGone

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch

_SMALL = 1 << 14


class History:
    """Deltas of the last ``epochs`` epochs, and of fewer when they take more than ``nbytes``."""

    def __init__(self, *, epochs: int, nbytes: int) -> None:
        self._most_epochs = epochs
        self._most_bytes = nbytes
        # Each with the bytes of all steps up to it, so that adding and removing one is a single step.
        self._steps: deque[tuple[int, Mapping[str, Batch | None], int]] = deque()
        self._gone = 0
        self.oldest = 0
        """All deltas after this epoch are here."""
        self._lost = -1

    def append(self, epoch: int, deltas: Mapping[str, Batch | None]) -> None:
        """Keep what an epoch changed, and let go of what is too old; None for a view that began anew.

        May be repeated.
        """
        if epoch <= (self._steps[-1][0] if self._steps else self.oldest):
            return
        kept: dict[str, Batch | None] = {}
        size = self._steps[-1][2] if self._steps else self._gone
        for view, delta in deltas.items():
            kept[view], held = (None, 0) if delta is None else _own(delta)
            size += held
        self._steps.append((epoch, kept, size))
        while self._steps and (len(self._steps) > self._most_epochs or size - self._gone > self._most_bytes):
            self.oldest, _, self._gone = self._steps[0]
            self._steps.popleft()

    def lacks(self, epoch: int, now: int) -> bool:
        """Whether ``extend`` may bring back deltas after an epoch which are not here, though they are not too many."""
        return self._lost < epoch < self.oldest and now - epoch <= self._most_epochs

    def extend(self, after: int, steps: Iterable[tuple[int, Mapping[str, Batch | None]]]) -> None:
        """Keep what earlier epochs changed, too, from the one after ``after`` up to the oldest that is kept.

        Nothing is kept of them if they take more bytes than there is room for. ``append`` lets them go again.

        Raises:
            HistoryGone: what they were is not known any more.
        """
        while self._steps and self._steps[0][0] <= self.oldest:  # of an extension that was interrupted
            self._steps.popleft()
        before, self._lost = self._lost, after
        earlier: list[tuple[int, Mapping[str, Batch | None], int]] = []
        room = self._most_bytes - ((self._steps[-1][2] if self._steps else self._gone) - self._gone)
        size = 0
        for epoch, deltas in steps:
            if epoch > self.oldest:
                break
            kept: dict[str, Batch | None] = {}
            for view, delta in deltas.items():
                kept[view], held = (None, 0) if delta is None else _own(delta)
                size += held
            if size > room:
                return
            earlier.append((epoch, kept, size))
        gone = self._gone - size  # all that was counted so far stays as it was counted
        self._steps.extendleft((epoch, kept, gone + upto) for epoch, kept, upto in reversed(earlier))
        self._gone, self.oldest, self._lost = gone, after, before

    def forget(self, epoch: int) -> None:
        """Start anew after ``epoch``."""
        self.oldest = epoch
        self._steps.clear()
        self._gone = 0

    def since(self, epoch: int, view: str) -> list[tuple[int, Batch]]:
        """The view's deltas after ``epoch``, oldest first.

        Raises:
            HistoryGone: some of them are not kept any more.
        """
        known = [(number, deltas[view]) for number, deltas, _ in self._steps if view in deltas]
        oldest = max([self.oldest, *(number for number, delta in known if delta is None)])
        if epoch < oldest:
            raise HistoryGone(
                f"The deltas of {view!r} after epoch {epoch} are not all kept any more; "
                f"the oldest epoch to start from is {oldest}.",
                oldest=oldest,
                hint="start from a snapshot, or keep more history",
            )
        return [(number, delta) for number, delta in known if delta is not None and number > epoch]


def _own(delta: Batch) -> tuple[Batch, int]:
    """The delta and its bytes. It is copied if it is a small part of large buffers: these must not be kept alive."""
    held = delta.held
    if held <= _SMALL or held <= 2 * delta.nbytes:
        return delta, held
    own = delta.take(np.arange(len(delta)))
    return own, own.held
