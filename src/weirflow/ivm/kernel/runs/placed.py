"""``PlacedRuns``: where runs lie, as the array that compiled kernels read."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.zset.batch import Int64s

_FIELDS = 7
_ROOM = 16


class PlacedRuns:
    """The places of a spine's runs. While runs are only added, theirs are written behind the others."""

    def __init__(self) -> None:
        self._runs: tuple[Run, ...] = ()
        self._places: Int64s = np.empty((0, _FIELDS), np.int64)

    def of(self, runs: tuple[Run, ...]) -> Int64s | None:
        """One row for each run; None if there are none, or kernels do not read one of them.

        It is good until the next call.
        """
        known = len(self._runs)
        if known > len(runs) or not all(map(is_, self._runs, runs)):
            known = 0
        new = [place for run in runs[known:] if (place := run.place) is not None]
        if not runs or known + len(new) < len(runs):
            return None
        if new:
            if len(runs) > len(self._places):
                self._places = np.concatenate([self._places[:known], np.empty((len(new) + _ROOM, _FIELDS), np.int64)])
            self._runs = runs[:known]  # whatever interrupts this, places are those of these runs
            self._places[known : len(runs)] = new
        self._runs = runs
        return self._places[: len(runs)]
