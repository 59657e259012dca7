"""Takebacks: rows of runs that rows of other runs take back, found once for each two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from weirflow.ivm.kernel.codes import NOTHING
from weirflow.ivm.kernel.search import Needles
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.run import Run
    from weirflow.ivm.zset.batch import Bools, Int64s


class Takebacks:
    """Which rows of the runs of an arrangement are not to be taken for what they say.

    Args:
        types: of the rows.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._nothing = Batch.empty(types)
        self._met: WeakKeyDictionary[Run, WeakKeyDictionary[Run, tuple[Int64s, Int64s]]] = WeakKeyDictionary()

    def among(self, runs: Sequence[Run]) -> tuple[dict[Run, Bools], Batch]:
        """For runs that have such rows, which rows count; and the rows that are left although some are taken back.

        Each of these is there once, with a weight of 1.
        """
        masks: dict[Run, Bools] = {}
        left: list[Batch] = []
        for run in runs:
            if not run.cancels:
                continue
            negative = np.flatnonzero(run.values[:, 0] < 0)
            _mask(masks, run)[negative] = False
            net = run.values[negative, 0].copy()
            for other in runs:
                if other is not run:
                    probe, position = self._pairs(run, other, negative)
                    _mask(masks, other)[position] = False
                    net[probe] += other.values[position, 0]  # a run holds a row once
            still = negative[net > 0]
            if len(still):
                left.append(Batch(take_columns(run.columns, still), np.ones(len(still), np.int64)))
        if not left:
            return masks, self._nothing
        rows = consolidate(Batch.concat(left))
        return masks, Batch(rows.columns, np.ones(len(rows), np.int64))

    def _pairs(self, run: Run, other: Run, negative: Int64s) -> tuple[Int64s, Int64s]:
        """Which of a run's negative rows are in another one, and where."""
        known = self._met.setdefault(run, WeakKeyDictionary())
        if other not in known:
            columns = take_columns(run.columns, negative)
            needles = Needles(columns, run.codes[negative], NOTHING, Equality.IDENTITY)
            found = [(probe, position) for _, probe, position in needles.matches([other])]
            known[other] = found[0] if found else (negative[:0], negative[:0])
        return known[other]


def _mask(masks: dict[Run, Bools], run: Run) -> Bools:
    if run not in masks:
        masks[run] = np.ones(len(run), np.bool_)
    return masks[run]
