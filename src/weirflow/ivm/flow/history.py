"""The last deltas of a flow's views, for readers that come back and for snapshots of the recent past."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from weirflow.errors import HistoryGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirflow.ivm.zset.batch import Batch


class History:
    """Deltas of the last ``epochs`` epochs, and of fewer when they take more than ``nbytes``."""

    def __init__(self, *, epochs: int, nbytes: int) -> None:
        self._most_epochs = epochs
        self._most_bytes = nbytes
        self._steps: deque[tuple[int, Mapping[str, Batch], int]] = deque()
        self._bytes = 0
        self.oldest = 0
        """All deltas after this epoch are here."""

    def append(self, epoch: int, deltas: Mapping[str, Batch]) -> None:
        """Keep what an epoch changed, and let go of what is too old."""
        size = sum(delta.nbytes for delta in deltas.values())
        self._steps.append((epoch, deltas, size))
        self._bytes += size
        while self._steps and (len(self._steps) > self._most_epochs or self._bytes > self._most_bytes):
            self.oldest, _, size = self._steps.popleft()
            self._bytes -= size

    def forget(self, epoch: int) -> None:
        """Start anew after ``epoch``."""
        self._steps.clear()
        self._bytes = 0
        self.oldest = epoch

    def since(self, epoch: int, view: str) -> list[tuple[int, Batch]]:
        """The view's deltas after ``epoch``, oldest first.

        Raises:
            HistoryGone: some of them are not kept any more.
        """
        if epoch < self.oldest:
            raise HistoryGone(
                f"The deltas of {view!r} after epoch {epoch} are not all kept any more; "
                f"the oldest epoch to start from is {self.oldest}.",
                oldest=self.oldest,
                hint="start from a snapshot, or keep more history",
            )
        return [(number, deltas[view]) for number, deltas, _ in self._steps if number > epoch and view in deltas]
