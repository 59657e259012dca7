"""``Batch``: weighted rows as Arrow columns, the form in which operators and arrangements exchange them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import DataError
from weirflow.ivm import compiled
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.lists import take_lists
from weirflow.rows.arrays import from_numpy

if TYPE_CHECKING:
    import numpy.typing as npt

    from weirflow.ivm.zset.lazy import LazyColumns

    Int64s = npt.NDArray[np.int64]
    UInt64s = npt.NDArray[np.uint64]
    Bools = npt.NDArray[np.bool_]

_Found = TypeVar("_Found")

# The registered functions called directly: the wrappers of pyarrow.compute cost as much as a take of 100 rows.
_TAKE = pc.get_function("take")
_UNCHECKED = pc.TakeOptions(boundscheck=False)
# Fresh memory costs most when it is first touched, and large blocks of the system less than those of Arrow's pool.
_LARGE = 1 << 20
_LARGE_POOL = pa.system_memory_pool()
_LISTS = pa.ListArray


def take_array(array: pa.Array, indices: Int64s) -> pa.Array:
    """The array's values at ``indices``, which must lie inside it (this is not checked)."""
    taken = take_lists(array, indices) if type(array) is _LISTS else None
    return _TAKE.call([array, from_numpy(indices)], _UNCHECKED) if taken is None else taken


def take_columns(columns: Iterable[pa.Array], indices: Int64s) -> tuple[pa.Array, ...]:
    """``take_array`` for each column; the indices are converted once."""
    positions = from_numpy(indices)
    pool = _LARGE_POOL if len(indices) >= _LARGE else None
    return tuple(
        [
            _TAKE.call([column, positions], _UNCHECKED, pool)
            if type(column) is not _LISTS or (taken := take_lists(column, indices)) is None
            else taken
            for column in columns
        ]
    )


def concat_columns(parts: Sequence[Sequence[pa.Array]]) -> tuple[pa.Array, ...]:
    """The columns of all parts one below the other; there is at least one part."""
    if len(parts) == 1:
        return tuple(parts[0])
    return tuple([pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)])


def add_segments(values: Int64s, starts: Int64s) -> Int64s:
    """The sums of segments of rows of ``values`` (weights, or rows of accumulators).

    Segments begin at ``starts``, the first at 0, and none is empty.

    Raises:
        DataError: a sum does not fit int64. Sums never wrap.
    """
    if len(starts) == 0:
        return values[:0]
    if len(starts) == len(values):
        return values
    total, longest = _segment_sums(values, starts)
    # |sum| <= longest * max|value|: only where that bound leaves int64 is a second, wide sum needed.
    if longest * max(int(values.max()), -int(values.min())) > _INT64_MAX:
        wide = np.add.reduceat(values.astype(object), starts, axis=0)
        if max(wide.max(), -wide.min() - 1) > _INT64_MAX:
            raise DataError(
                "The weights or sums of equal rows add up to more than a 64-bit integer holds.",
                hint="look for a change that is applied again and again: no table holds a row 2^63 times",
            )
    return total


def sum_groups(rows: Int64s, order: Int64s, starts: Int64s) -> Int64s:
    """``add_segments`` of two-dimensional ``rows`` taken in ``order``."""
    if compiled.kernels is None:
        return add_segments(rows[order], starts)
    totals, fits = compiled.kernels.sum_groups(np.ascontiguousarray(rows), order, starts)
    # A sum may leave int64 on its way and come back: the careful way decides.
    return totals if fits else add_segments(rows[order], starts)


def magnitude(rows: Int64s) -> int:
    """The greatest absolute value in two-dimensional ``rows``, 0 if there are none."""
    if len(rows) == 0:
        return 0
    if compiled.kernels is not None:
        least, greatest = compiled.kernels.extremes(np.ascontiguousarray(rows))
        return max(int(greatest), -int(least))
    return max(int(rows.max()), -int(rows.min()))


def add_rows(totals: Int64s, into: Int64s, rows: Int64s, at: Int64s) -> None:
    """Add ``rows`` at some places to the rows of ``totals`` at others, none of which is named twice."""
    if compiled.kernels is not None:
        compiled.kernels.add_rows(totals, into, rows, at)
    else:
        totals[into] += rows[at]


_INT64_MAX = 2**63 - 1
_FEW = 8


def _segment_sums(values: Int64s, starts: Int64s) -> tuple[Int64s, int]:
    """The sums, which may wrap, and the length of the longest segment."""
    rest = np.ones(len(values), np.bool_)
    rest[starts] = False
    others = np.flatnonzero(rest)
    if len(others) * _FEW > len(values):
        return np.add.reduceat(values, starts, axis=0), int(np.diff(starts, append=len(values)).max())
    # Almost every segment is one row: add the few others to theirs.
    total = values[starts]
    owner = np.searchsorted(starts, others, side="right") - 1
    np.add.at(total, owner, values[others])
    return total, 1 + int(np.bincount(owner).max())


class Batch:
    """Rows with weights. Columns are plain (unchunked) Arrow arrays as long as ``weights``; all are read-only.

    A row may occur several times and weights may be zero: only ``consolidate`` promises otherwise.

    Attributes:
        weights: one for each row.
        lazy: the columns, where arrays of them need not be there yet; None where they are.
        origin: as long as a tick runs, the rows of which these are some columns, and which; None of others.
    """

    __slots__ = ("_columns", "_found", "_layout", "lazy", "origin", "weights")

    def __init__(self, columns: tuple[pa.Array, ...], weights: Int64s, lazy: LazyColumns | None = None) -> None:
        self._columns = columns
        self.weights = weights
        self.lazy = lazy
        self._layout: Layout | None = None
        self._found: dict[Hashable, Any] | None = None
        self.origin: tuple[Batch, tuple[int, ...]] | None = None

    @classmethod
    def of_lazy(cls, columns: LazyColumns, weights: Int64s) -> Batch:
        """Rows of columns that become arrays when somebody asks for them."""
        return cls((), weights, columns)

    @property
    def columns(self) -> tuple[pa.Array, ...]:
        """The columns."""
        return self._columns if self.lazy is None else self.lazy.arrays

    @property
    def read(self) -> Sequence[pa.Array]:
        """The columns, for whom it is no matter whether those that he does not read are there."""
        return self._columns if self.lazy is None else self.lazy

    def once(self, name: Hashable, find: Callable[[Batch], _Found]) -> _Found:
        """What was found out about the rows under this name, or is now: once for all who read them in a tick."""
        if self._found is None:
            self._found = {}
        if name not in self._found:
            self._found[name] = find(self)
        found: _Found = self._found[name]
        return found

    def forget(self) -> None:
        """Let go of what was found out: the tick is over, and the rows may be kept for long."""
        self._found = self.origin = None

    def __reduce__(self) -> tuple[type[Batch], tuple[Any, ...]]:
        return Batch, (self.columns, self.weights)

    @property
    def layout(self) -> Layout | None:
        """Where its columns lie, for compiled kernels; None if these do not read them."""
        if self.lazy is not None:
            return self.lazy.layout
        if self._layout is None:
            self._layout = Layout.of(self._columns)
        return self._layout

    @property
    def known_layout(self) -> Layout | None:
        """As ``layout``, if it costs nothing to tell."""
        return self._layout if self.lazy is None else self.lazy.layout

    @classmethod
    def empty(cls, types: Iterable[pa.DataType]) -> Batch:
        """No rows of these column types."""
        return cls(tuple([pa.nulls(0, type_) for type_ in types]), np.empty(0, np.int64))

    @classmethod
    def of_arrow(cls, data: pa.RecordBatch | pa.Table, weight: int = 1) -> Batch:
        """Each row of ``data`` once, with the same weight."""
        columns = [one_array(column) for column in data.columns]
        return cls(tuple(columns), np.full(data.num_rows, weight, np.int64))

    @classmethod
    def concat(cls, batches: Sequence[Batch]) -> Batch:
        """All rows of one or more batches of the same types."""
        if len(batches) == 1:
            return batches[0]
        columns = concat_columns([batch.columns for batch in batches])
        return cls(columns, np.concatenate([batch.weights for batch in batches]))

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def types(self) -> tuple[Any, ...]:
        """The columns' Arrow types."""
        return tuple([column.type for column in self._columns] if self.lazy is None else self.lazy.types)

    @property
    def held(self) -> int:
        """Bytes of the buffers that it keeps alive; far cheaper to tell than those of its rows."""
        if self.lazy is not None:
            return int(self.weights.nbytes + self.lazy.held)
        return int(self.weights.nbytes + sum([column.get_total_buffer_size() for column in self._columns]))

    @property
    def nbytes(self) -> int:
        """Bytes of all values, of the rows only (not of the buffers they lie in)."""
        return int(self.weights.nbytes + sum(column.nbytes for column in self.columns))

    def take(self, indices: Int64s) -> Batch:
        """The rows at ``indices``, in that order, which must lie inside the batch."""
        return Batch(take_columns(self.columns, indices), self.weights[indices])

    def filter(self, mask: Bools) -> Batch:
        """The rows where ``mask`` is true; the batch itself when it is true everywhere."""
        kept = np.flatnonzero(mask)
        return self if len(kept) == len(self) else self.take(kept)

    def slice(self, start: int, length: int) -> Batch:
        """A view of consecutive rows."""
        columns = tuple([column.slice(start, length) for column in self.columns])
        return Batch(columns, self.weights[start : start + length])

    def select(self, indexes: Iterable[int]) -> Batch:
        """The columns at ``indexes``, in that order; the same batch for whoever asks for the same next."""
        wanted = tuple(indexes)
        return self.once(("columns", wanted), lambda rows: rows._selected(wanted))  # noqa: SLF001 - its own

    def _selected(self, indexes: Sequence[int]) -> Batch:
        if self.lazy is not None:
            return Batch.of_lazy(self.lazy.select(indexes), self.weights)
        return Batch(tuple([self._columns[at] for at in indexes]), self.weights)

    def negate(self) -> Batch:
        """The same rows with opposite weights."""
        return Batch(self._columns, -self.weights, self.lazy)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as a single array, copied only when it has several chunks."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column
