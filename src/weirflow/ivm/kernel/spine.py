"""``Spine``: runs of geometrically growing sizes, merged a bounded slice at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weirflow.errors import DataError
from weirflow.ivm.kernel.frontier import may_change
from weirflow.ivm.kernel.memory import allocator
from weirflow.ivm.kernel.merge import Merge, can_merge, copied
from weirflow.ivm.kernel.run import Run, kept_rows
from weirflow.ivm.zset.batch import concat_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from weirflow.ivm.kernel.merge import RunOrder
    from weirflow.ivm.zset.batch import Int64s, UInt64s

    Codes = Callable[[Sequence[pa.Array], int], UInt64s]
    """Columns of rows and how many these are to the rows' codes."""

HEAD_ROWS = 2048
"""Inserted rows are merged at once into the newest run up to this size: it is as fast as adding another run."""
_LARGE = 1 << 40
"""Once there was a greater value than this, sums may leave int64: they are added up at once, to find out."""
LEAST_TO_RELEASE = 4096
"""Smaller states are not worth looking for rows to let go."""
FAN_IN = 3
"""How many runs of similar size are merged into one, and so the factor between the sizes of levels."""


class _Inserted(NamedTuple):
    """Rows that wait for their place."""

    columns: tuple[pa.Array, ...]
    values: Int64s
    codes: UInt64s | None


class Spine:
    """The runs of one arrangement. Runs may be merged in any order, since adding weights is commutative.

    ``maintain`` keeps their number logarithmic in the number of rows, and the rows that cancel each other to at most
    about half of all, provided that its fuel is at least about 12 rows for each row inserted. With a folder ``spill``
    large runs lie in files there instead of in memory.
    """

    def __init__(
        self, order: RunOrder, runs: Iterable[Run] = (), *, codes: Codes | None = None, spill: Path | None = None
    ) -> None:
        self._order = order
        self._codes = codes
        self._spill = spill
        self._allocate = allocator(spill)
        self._runs: list[Run] = [run for run in runs if len(run)]
        self._head: Run | None = None
        # Unsorted; they go into the head when it is looked at, or when they are many.
        self._inserted: list[_Inserted] = []
        self._inserted_rows = 0
        self._large = False
        self._merges: list[Merge] = []
        self._settled = False

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that together are the state; all rows of all of them count. Merges under way are not in it."""
        self._tidy()
        return (*self._runs, self._head) if self._head is not None else tuple(self._runs)

    @property
    def row_count(self) -> int:
        """Rows held, counting those that cancel each other in different runs."""
        return sum(len(run) for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all runs, without merges under way."""
        return sum(run.nbytes for run in self.runs)

    def insert(self, columns: Sequence[pa.Array], values: Int64s, codes: UInt64s | None = None) -> None:
        """Add rows, in any order; their codes are found when they are needed. On an error nothing has changed."""
        if len(values) > HEAD_ROWS // 2:
            run = self._order.sort(self._coded(columns, len(values), codes), columns, values)
            if len(run):
                self._runs.append(run if self._spill is None else copied(run, self._allocate))
                self._settled = False
            return
        self._inserted.append(_Inserted(tuple(columns), values, codes))
        self._inserted_rows += len(values)
        if self._inserted_rows > HEAD_ROWS // 2:
            self._tidy()
            return
        self._large |= len(values) > 0 and max(int(values.max()), -int(values.min())) > _LARGE
        if self._large:
            try:
                self._tidy()
            except DataError:
                self._inserted_rows -= len(self._inserted.pop().values)
                raise

    def _coded(self, columns: Sequence[pa.Array], length: int, codes: UInt64s | None) -> UInt64s:
        if codes is not None:
            return codes
        assert self._codes is not None
        return self._codes(columns, length)

    def _tidy(self) -> None:
        """Put what was inserted into the head."""
        if not self._inserted:
            return
        newest = [] if self._head is None else [self._head]
        # Those without codes get them together: hashing costs little for each row and much for each call.
        waiting = [one for one in self._inserted if one.codes is None]
        if waiting:
            columns, values = concat_columns([one.columns for one in waiting]), [one.values for one in waiting]
            summed = values[0] if len(values) == 1 else np.concatenate(values)
            newest.append(Run(self._coded(columns, len(summed), None), columns, summed))
        newest += [Run(one.codes, one.columns, one.values) for one in self._inserted if one.codes is not None]
        head = self._order.merge_unsorted(newest)
        self._inserted, self._inserted_rows = [], 0
        if len(head) > HEAD_ROWS:
            self._runs.append(head)
            self._head = None
            self._settled = False
        else:
            self._head = head if len(head) else None

    def maintain(self, fuel: int) -> int:
        """Merge about ``fuel`` rows; returns how many were. Zero means that there is nothing to merge."""
        if self._settled:
            return 0
        self._tidy()
        done = 0
        self._plan()
        while self._merges and done < fuel:
            # The smallest first: small merges keep the number of runs low for little work.
            merge = self._merges[0]
            done += merge.step(fuel - done)
            if merge.finished:
                del self._merges[0]
                self._replace(merge)
                self._plan()
        # While no run is added, the head alone cannot become half as large as a base of this size.
        self._settled = not self._merges and max(map(len, self._runs), default=0) > 2 * HEAD_ROWS
        return done

    def _replace(self, merge: Merge) -> None:
        used = {id(run) for run in merge.runs}
        self._runs = [run for run in self._runs if id(run) not in used]
        merged = merge.result()
        if len(merged):
            self._runs.append(merged)

    def _plan(self) -> None:
        """Start the merges that the sizes of the runs ask for."""
        busy = {id(run) for merge in self._merges for run in merge.runs}
        idle = [run for run in self._runs if id(run) not in busy]
        by_level: dict[int, list[Run]] = {}
        for run in idle:
            by_level.setdefault(_level(len(run)), []).append(run)
        for level, runs in by_level.items():
            if (len(runs) >= FAN_IN or (level == 0 and len(runs) > 1)) and self._start(runs):
                idle = [run for run in idle if run not in runs]
        if idle and not self._merges:
            newest = [] if self._head is None else [self._head]
            largest = max(len(run) for run in idle)
            newer = sum(len(run) for run in (*idle, *newest)) - largest
            # What is newer than the base may cancel rows of it: merge before it is much more than half as large.
            if 2 * newer >= largest and self._start([*idle, *newest]):
                self._runs += newest
                self._head = None

    def _start(self, runs: Sequence[Run]) -> bool:
        if not can_merge(runs):
            return False
        self._merges.append(Merge(runs, self._order, allocate=self._allocate))
        self._merges.sort(key=lambda merge: sum(len(run) for run in merge.runs))
        return True


class Spined:
    """What all states made of one spine have in common."""

    def __init__(self, order: RunOrder, runs: Iterable[Run], spill: Path | None, codes: Codes | None = None) -> None:
        self._spine = Spine(order, runs, codes=codes, spill=spill)
        self._find_codes = codes
        self._spine_order = order
        self._spill = spill
        self.released = 0

    @property
    def runs(self) -> tuple[Run, ...]:
        """The immutable runs that together are the state: what a checkpoint saves and ``adopt`` takes back."""
        return self._spine.runs

    @property
    def row_count(self) -> int:
        """Stored rows, counting those that cancel each other but were not merged yet."""
        return self._spine.row_count

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows with their codes and values, in memory or mapped."""
        return self._spine.nbytes

    def maintain(self, fuel: int) -> int:
        """Merge about ``fuel`` rows; returns how many were, 0 when there is nothing to merge.

        Call it once a tick with at least 12 times the rows inserted, and at least a few thousand: see ``Spine``.
        """
        return self._spine.maintain(fuel)

    def adopt(self, runs: Iterable[Run]) -> None:
        """Be the state whose ``runs`` these were; nothing is read until it is looked into."""
        self._spine = Spine(self._spine_order, runs, codes=self._find_codes, spill=self._spill)
        self.released = 0

    def release(self, column: int, bound: pa.Scalar) -> None:
        """Let go of rows whose ``column`` is below the bound, once there are twice as many rows as last time."""
        if self.row_count < max(2 * self.released, LEAST_TO_RELEASE):
            return
        kept = [kept_rows(run, may_change(run.columns[column], bound)) for run in self.runs]
        self._spine = Spine(self._spine_order, kept, codes=self._find_codes, spill=self._spill)
        self.released = self.row_count


def _level(rows: int) -> int:
    level, size = 0, HEAD_ROWS
    while rows > size:
        level, size = level + 1, size * FAN_IN
    return level
