"""``Spine``: runs of geometrically growing sizes, merged a bounded slice at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from weirflow.ivm.kernel.frontier import may_change
from weirflow.ivm.kernel.runs.memory import allocator
from weirflow.ivm.kernel.runs.merge import RunMerge, RunOrder, behind_each_other, can_merge, copied
from weirflow.ivm.kernel.runs.placed import PlacedRuns
from weirflow.ivm.kernel.runs.run import Run, kept_rows
from weirflow.ivm.zset.batch import concat_columns, magnitude

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from weirflow.ivm.zset.batch import Int64s, UInt64s

    Codes = Callable[[Sequence[pa.Array], int], UInt64s]
    """Columns of rows and how many these are to the rows' codes."""

HEAD_ROWS = 2048
"""Inserted rows are merged at once into the newest run up to this size: it is as fast as adding another run."""
REBUILT_HEADS = 8
"""Fewer rows than that many heads are merged in passing, however little there is beside them."""
_LARGE = 1 << 40
"""Once there was a greater value than this, sums may leave int64: they are added up at once, to find out."""
LEAST_TO_RELEASE = 4096
"""Smaller states are not worth looking for rows to let go."""
MOST_SEARCHED = 12
"""So many small runs are searched one by one before they are merged into the newest."""
FAN_IN = 3
"""How many runs of similar size are merged into one, and so the factor between the sizes of levels."""


class _UncodedRows(NamedTuple):
    """Rows that wait for their codes and their place."""

    columns: tuple[pa.Array, ...]
    values: Int64s


class Content(NamedTuple):
    """All that a spine holds at one moment.

    It is replaced as a whole, so that whatever interrupts an operation, the spine holds what it held before or after.

    Attributes:
        runs: sorted, of any size.
        head: the newest run, as long as it is small.
        inserted: unsorted, with their codes or still without; they go into the head when it is looked at, or when they
            are many.
        inserted_rows: how many rows those are.
        searchable: whether the inserted are runs, but for rows of zeros, so that they may be searched as they are.
        large: whether a value was so large that sums may leave int64.
        settled: whether there is nothing to merge as long as no run is added.
        calm: whether there is nothing to merge as long as nothing is added at all.
    """

    runs: tuple[Run, ...]
    head: Run | None = None
    inserted: tuple[Run | _UncodedRows, ...] = ()
    inserted_rows: int = 0
    searchable: bool = True
    large: bool = False
    settled: bool = False
    calm: bool = False


class Spine:
    """The runs of one arrangement. Runs may be merged in any order, since adding weights is commutative.

    ``maintain`` keeps their number logarithmic in the number of rows, and the rows that cancel each other to at most
    about half of all, provided that its fuel is at least about 12 rows for each row inserted. With a folder ``spill``
    large runs lie in files there instead of in memory.

    Attributes:
        content: all that it holds; merges under way are not part of it.
    """

    def __init__(
        self, order: RunOrder, runs: Iterable[Run] = (), *, codes: Codes | None = None, spill: Path | None = None
    ) -> None:
        self._order = order
        self._codes = codes
        self._spill = spill
        self._allocate = allocator(spill)
        self.content = Content(tuple([run for run in runs if len(run)]))
        self._merges: list[RunMerge] = []
        self._planned: tuple[Run, ...] | None = None
        self._placed = PlacedRuns()

    @property
    def places(self) -> Int64s | None:
        """The runs as ``compiled.tables`` reads them; None if it does not read one of them, or there are none."""
        return self._placed.of(self.runs)

    @property
    def searched(self) -> Int64s | None:
        """As ``places``, for whom it is no matter in how many runs a row is: some of the inserted may be among them."""
        content = self.content
        if not content.searchable or len(content.inserted) > MOST_SEARCHED:
            return self.places
        # Of what is searchable, all are runs.
        return self._placed.of((*self._sorted, *cast("tuple[Run, ...]", content.inserted)))

    @property
    def unsorted_places(self) -> tuple[Int64s, Int64s] | None:
        """As ``places``, of what is sorted and of what waits for its place, which stays as it is."""
        waiting = [one.place if isinstance(one, Run) else None for one in self.content.inserted]
        found = self._placed.of(self._sorted)
        if found is None or None in waiting:
            return None
        return found, np.array(waiting, np.int64).reshape(-1, found.shape[1])

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that together are the state; all rows of all of them count. Merges under way are not in it."""
        self._tidy()
        return self._sorted

    @property
    def older(self) -> tuple[Run, ...]:
        """The runs without the newest rows: what is inserted leaves them as they are, until they are merged."""
        return self.content.runs

    @property
    def _sorted(self) -> tuple[Run, ...]:
        """The runs without what waits for its place."""
        content = self.content
        return (*content.runs, content.head) if content.head is not None else content.runs

    @property
    def row_count(self) -> int:
        """Rows held, counting those that cancel each other in different runs."""
        return sum(len(run) for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of all runs, without merges under way."""
        return sum(run.nbytes for run in self.runs)

    @property
    def is_waiting(self) -> bool:
        """Whether rows were inserted at which nobody has looked yet."""
        return bool(self.content.inserted)

    def insert(self, columns: Sequence[pa.Array], values: Int64s, codes: UInt64s | None = None) -> None:
        """Add rows, in any order; their codes are found when they are needed. On an error nothing has changed."""
        if codes is not None:
            self.append(Run(codes, tuple(columns), values))
        elif len(values) > HEAD_ROWS // 2:
            self.append(Run(self._coded(columns, len(values)), tuple(columns), values))
        else:
            self._append(_UncodedRows(tuple(columns), values), searchable=False, large=magnitude(values) > _LARGE)

    def append(self, rows: Run, *, searchable: bool = False, greatest: int | None = None) -> None:
        """Add rows with their codes, in any order. On an error nothing has changed.

        Args:
            rows: what is added.
            searchable: whether they are all different and in the order of their codes.
            greatest: the magnitude of their values, where the caller knows it.
        """
        if len(rows) > HEAD_ROWS // 2:
            self.content = self._with_many(rows)
        else:
            greatest = magnitude(rows.values) if greatest is None else greatest
            self._append(rows, searchable=searchable, large=greatest > _LARGE)

    def _append(self, own: Run | _UncodedRows, *, searchable: bool, large: bool) -> None:
        before = self.content
        large = large or before.large
        inserted, rows = (*before.inserted, own), before.inserted_rows + len(own.values)
        searchable = searchable and before.searchable
        after = Content(before.runs, before.head, inserted, rows, searchable, large, before.settled)
        self.content = self._tidied(after) if large or rows > HEAD_ROWS // 2 else after

    def _with_many(self, rows: Run) -> Content:
        """What is held with more rows, in any order.

        Where these are many against what is there and may take it back, all is sorted at once: sorting them first, only
        to merge the two, would cost as much again.
        """
        runs, content = self.runs, self.content
        many = len(rows) > REBUILT_HEADS * HEAD_ROWS and 2 * len(rows) >= sum(map(len, runs)) > 0
        if not many or not any(run.cancels for run in (rows, *runs)) or not can_merge([*runs, rows]):
            together, others = rows, content
        else:
            together, others = behind_each_other([*runs, rows]), content._replace(runs=(), head=None)
        merged, *apart = self._order.sort(together.codes, together.columns, together.values)
        if not len(merged):
            return self._with_apart(others, apart)
        if self._spill is not None:
            merged = copied(merged, self._allocate)
        return self._with_apart(others._replace(runs=(*others.runs, merged), settled=False, calm=False), apart)

    def replaceable(self, most: int) -> tuple[Run, ...] | None:
        """All runs, if they lie in memory, have up to so many rows, and nothing waits to be merged with them."""
        content = self.content
        if content.inserted or self._spill is not None:
            return None
        runs = self._sorted
        return runs if runs and sum(map(len, runs)) <= most else None

    def replace(self, old: tuple[Run, ...], new: Sequence[Run], greatest: int) -> None:
        """Hold runs of the same rows with other values, instead of those that are ``replaceable``.

        ``greatest`` is the magnitude of the change of a value.
        """
        assert len(old) == len(self._sorted)
        content = self.content
        runs, head = (tuple(new), None) if content.head is None else (tuple(new[:-1]), new[-1])
        self.content = content._replace(runs=runs, head=head, large=content.large or greatest > _LARGE)

    def insert_run(self, run: Run) -> None:
        """Add rows that are sorted already."""
        if len(run) <= HEAD_ROWS // 2:
            if len(run):
                self.append(run)
            return
        run = run if self._spill is None else copied(run, self._allocate)
        self.content = self.content._replace(runs=(*self.content.runs, run), settled=False, calm=False)

    def rewind(self, content: Content) -> None:
        """Hold what was held before."""
        self.content = content
        known = set(map(id, content.runs))
        self._merges = [merge for merge in self._merges if known.issuperset(map(id, merge.runs))]

    def _coded(self, columns: Sequence[pa.Array], length: int) -> UInt64s:
        assert self._codes is not None
        return self._codes(columns, length)

    def _tidy(self) -> None:
        """Put what was inserted into the head."""
        if self.content.inserted:
            self.content = self._tidied(self.content)

    def _tidied(self, content: Content) -> Content:
        newest = [] if content.head is None else [content.head]
        # Those without codes get them together: hashing costs little for each row and much for each call.
        waiting = [one for one in content.inserted if isinstance(one, _UncodedRows)]
        if waiting:
            columns, values = concat_columns([one.columns for one in waiting]), [one.values for one in waiting]
            summed = values[0] if len(values) == 1 else np.concatenate(values)
            newest.append(Run(self._coded(columns, len(summed)), columns, summed))
        newest += [one for one in content.inserted if isinstance(one, Run)]
        head = self._order.merge_unsorted(newest)
        if len(head) > HEAD_ROWS:
            return Content((*content.runs, head), large=content.large)
        return Content(content.runs, head if len(head) else None, large=content.large, settled=content.settled)

    def maintain(self, fuel: int) -> int:
        """Merge about ``fuel`` rows; returns how many were. Zero means that there is nothing to merge."""
        content = self.content
        if content.settled or content.calm:
            return 0
        if content.inserted and content.runs is self._planned:
            return 0  # what was inserted is sorted when it is looked at, or with what comes after it
        self._tidy()
        done = 0
        self._plan()
        while self._merges and done < fuel:
            # The smallest first: small merges keep the number of runs low for little work.
            merge, *others = self._merges
            # A merge that is interrupted cannot be continued; it is planned anew.
            self._merges = others
            done += merge.step(fuel - done)
            if merge.finished:
                self._replace(merge)
                self._plan()
            else:
                self._merges = [merge, *others]
        self._planned = None if self._merges else self.content.runs
        # While no run is added, the head alone cannot become half as large as a base of this size.
        if not self._merges and max(map(len, self.content.runs), default=0) > 2 * HEAD_ROWS:
            self.content = self.content._replace(settled=True)
        elif not self._merges:
            self.content = self.content._replace(calm=True)
        return done

    def _replace(self, merge: RunMerge) -> None:
        used = {id(run) for run in merge.runs}
        left = tuple([run for run in self.content.runs if id(run) not in used])
        run, *apart = merge.result()
        self.content = self._with_apart(self.content._replace(runs=(*left, run) if len(run) else left), apart)

    def _with_apart(self, content: Content, apart: Sequence[Run]) -> Content:
        """With a few rows that were taken out of a run: they go where newer rows are, and are no run to be searched."""
        if not apart:
            return content
        rows = content.inserted_rows + sum(map(len, apart))
        large = content.large or any(magnitude(run.values) > _LARGE for run in apart)
        inserted = (*content.inserted, *apart)
        return self._tidied(content._replace(inserted=inserted, inserted_rows=rows, large=large))

    def _plan(self) -> None:
        """Start the merges that the sizes of the runs ask for."""
        here = set(map(id, self.content.runs))
        self._merges = [merge for merge in self._merges if here.issuperset(map(id, merge.runs))]
        busy = {id(run) for merge in self._merges for run in merge.runs}
        idle = [run for run in self.content.runs if id(run) not in busy]
        by_level: dict[int, list[Run]] = {}
        for run in idle:
            by_level.setdefault(_level(len(run)), []).append(run)
        for level, runs in by_level.items():
            if (len(runs) >= FAN_IN or (level == 0 and len(runs) > 1)) and self._start(runs):
                idle = [run for run in idle if run not in runs]
        if idle and not self._merges:
            newest = () if self.content.head is None else (self.content.head,)
            base = max(idle, key=len)
            newer = [run for run in (*idle, *newest) if run is not base]
            # What is newer than the base may cancel rows of it: merge before it is much more than half as large. Where
            # nothing is taken back, as in a bulk load, there is no hurry: levels keep the number of runs low.
            large = 2 * sum(map(len, newer)) >= len(base)
            if large and any(run.cancels for run in (base, *newer)) and can_merge([*idle, *newest]):
                # First the head becomes one of the runs: what is merged must be among them.
                self.content = self.content._replace(runs=(*self.content.runs, *newest), head=None)
                self._start([*idle, *newest])

    def _start(self, runs: Sequence[Run]) -> bool:
        if not can_merge(runs):
            return False
        merge = RunMerge(runs, self._order, allocate=self._allocate)
        self._merges = sorted([*self._merges, merge], key=lambda one: sum(len(run) for run in one.runs))
        return True


StateMark = tuple[Spine, Content, int]
"""What a state held at a moment: runs are immutable, so that it costs nothing to remember."""


class SpineState:
    """What all states made of one spine have in common."""

    def __init__(self, order: RunOrder, runs: Iterable[Run], spill: Path | None, codes: Codes | None = None) -> None:
        self._spine = Spine(order, runs, codes=codes, spill=spill)
        self._find_codes = codes
        self._spine_order = order
        self._spill = spill
        self.released = 0

    @property
    def older_runs(self) -> tuple[Run, ...]:
        """The ``runs`` without the newest rows, which stay as they are longer than these."""
        return self._spine.older

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

    def adopt_without(self, runs: Iterable[Run], columns: int) -> None:
        """As ``adopt``, of runs of a state whose rows have so many more columns in front, the same in all rows."""
        self.adopt(() if columns else runs)
        for run in runs if columns else ():
            self._spine.insert(run.columns[columns:], np.ascontiguousarray(run.values))

    def mark(self) -> StateMark:
        """What it holds now, for ``rewind``."""
        return self._spine, self._spine.content, self.released

    def rewind(self, mark: StateMark) -> None:
        """Hold what was held at a mark. May be repeated."""
        self._spine, content, self.released = mark
        self._spine.rewind(content)

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
