"""Takebacks: rows of runs that rows of other runs take back, found once for each two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from weirflow.ivm.kernel.codes import NOTHING
from weirflow.ivm.kernel.runs.search import Needles
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import consolidate, equal_rows_at

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.zset.batch import Bools, Int64s


class _Met(NamedTuple):
    """Which negative rows of a run are in another one, and where: of the first ``done`` of them."""

    done: int = 0
    found: tuple[tuple[Int64s, Int64s], ...] = ()


class Takebacks:
    """Which rows of the runs of an arrangement are not to be taken for what they say.

    Args:
        types: of the rows.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._nothing = Batch.empty(types)
        self._met: WeakKeyDictionary[Run, WeakKeyDictionary[Run, _Met]] = WeakKeyDictionary()
        self._negatives: WeakKeyDictionary[Run, Int64s] = WeakKeyDictionary()

    def prepare(self, runs: Sequence[Run], rows: int) -> int:
        """Find, ahead of ``among``, what about so many rows take back; returns how many were looked at."""
        done = 0
        for run in runs:
            for other in runs if run.cancels else ():
                if done >= rows:
                    return done
                if other is not run:
                    done += self._look(run, other, rows - done)
        return done

    def among(self, runs: Sequence[Run]) -> tuple[dict[Run, Bools], Batch]:
        """For runs that have such rows, which rows count; and the rows that are left although some are taken back.

        Each of these is there once, with a weight of 1.
        """
        masks: dict[Run, Bools] = {}
        left: list[Batch] = []
        for run in runs:
            if not run.cancels:
                continue
            negative = self._negative(run)
            _mask(masks, run)[negative] = False
            net = run.values[negative, 0].copy()
            for other in runs:
                if other is not run:
                    self._look(run, other, len(negative))
                    for probe, position in self._met[run][other].found:
                        _mask(masks, other)[position] = False
                        net[probe] += other.values[position, 0]  # a run holds a row once
            still = negative[net > 0]
            if len(still):
                left.append(Batch(take_columns(run.columns, still), np.ones(len(still), np.int64)))
        if not left:
            return masks, self._nothing
        rows = consolidate(Batch.concat(left))
        return masks, Batch(rows.columns, np.ones(len(rows), np.int64))

    def _negative(self, run: Run) -> Int64s:
        if run not in self._negatives:
            self._negatives[run] = np.flatnonzero(run.values[:, 0] < 0)
        return self._negatives[run]

    def _look(self, run: Run, other: Run, rows: int) -> int:
        """Look for some of a run's negative rows in another run; returns for how many."""
        known = self._met.setdefault(run, WeakKeyDictionary())
        met = known.get(other, _Met())
        at = self._negative(run)[met.done : met.done + rows]
        found = []
        for _, probe, position in Needles((), run.codes[at], NOTHING, Equality.IDENTITY).candidates([other]):
            same = equal_rows_at(run.columns, at[probe], other.columns, position, Equality.IDENTITY)
            found.append((met.done + probe[same], position[same]))
        known[other] = _Met(met.done + len(at), (*met.found, *found))
        return len(at)


def _mask(masks: dict[Run, Bools], run: Run) -> Bools:
    if run not in masks:
        masks[run] = np.ones(len(run), np.bool_)
    return masks[run]
