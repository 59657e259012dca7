"""``Schedule``: weighted rows by the moment at which they are to be looked at again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.runs.merge import CodeOrder
from weirflow.ivm.kernel.runs.spine import SpineState
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.zset.batch import Int64s, UInt64s

BEFORE_ALL = np.iinfo(np.int64).min
"""The moment of rows that are to be looked at as soon as there is a clock."""
NEVER = np.iinfo(np.int64).max
"""The moment of rows that need not be looked at again; they are not scheduled."""
_SECOND = 1_000_000
_HASH_BITS = 25
_HASH = np.uint64((1 << _HASH_BITS) - 1)


class Schedule(SpineState):
    """Weighted rows, each behind a moment in microseconds since 1970, at which it is due.

    Reading what is due costs what it weighs, and the rows of one second. A code has the second in its upper bits, so
    that runs are sorted by it, and of the row's hash as many bits as fit below, so that equal rows lie side by side.
    """

    def __init__(self, types: Iterable[pa.DataType]) -> None:
        self.types = (pa.int64(), *types)
        super().__init__(CodeOrder(Equality.IDENTITY), (), None, _codes)

    def insert(self, due: Int64s, rows: Batch) -> None:
        """Add the rows' weights to those that are scheduled for the same moments."""
        if len(rows):
            columns = (pa.array(due), *rows.columns)
            self._spine.insert(columns, np.ascontiguousarray(rows.weights).reshape(-1, 1))

    def due(self, after: int | None, until: int) -> tuple[Int64s, Batch]:
        """The rows that are due after one moment and not after another, each once, with their moments."""
        low = np.uint64(0) if after is None else _code(after // _SECOND)
        high = _code(until // _SECOND + 1)
        found = []
        for run in self._spine.runs:
            first, last = run.codes.searchsorted(np.array([low, high]))
            if first < last:
                columns = tuple(column.slice(first, last - first) for column in run.columns)
                found.append(Batch(columns, np.ascontiguousarray(run.values[first:last, 0])))
        if not found:
            return np.empty(0, np.int64), Batch.empty(self.types[1:])
        rows = Batch.concat(found)
        moments = raw_values(rows.columns[0])
        rows = rows.filter((moments <= until) if after is None else (moments <= until) & (moments > after))
        rows = consolidate(rows)
        return raw_values(rows.columns[0]), Batch(rows.columns[1:], rows.weights)

    def next_due(self, after: int) -> int | None:
        """The next moment at which a row may be due, or a row that was retracted; None if there is none."""
        found = [moment for run in self._spine.runs if (moment := _first_after(run, after)) is not None]
        return min(found, default=None)


def _first_after(run: Run, after: int) -> int | None:
    """The least moment in a run that is after this one."""
    at = int(run.codes.searchsorted(_code(after // _SECOND)))
    while at < len(run):
        second = int(run.codes[at] >> np.uint64(_HASH_BITS)) - 1
        end = int(run.codes.searchsorted(_code(second + 1)))
        moments = raw_values(run.columns[0])[at:end]
        later = moments[moments > after]
        if len(later):
            return int(later.min())
        at = end
    return None


def _codes(columns: Sequence[pa.Array], length: int) -> UInt64s:
    moments = raw_values(columns[0])
    seconds = np.maximum(moments // _SECOND + 1, 0).astype(np.uint64)
    hashes = hash_rows(columns, length, Equality.IDENTITY)
    codes: UInt64s = (seconds << np.uint64(_HASH_BITS)) | (hashes & _HASH)
    return codes


def _code(second: int) -> np.uint64:
    """The least code of a second; those of moments before 1970 are the least of all."""
    return np.uint64(max(second + 1, 0) << _HASH_BITS)
