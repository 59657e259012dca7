"""``RunMerge``: runs become one run, in slices of bounded work that can be spread over many ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.ivm.kernel.runs import weights
from weirflow.ivm.kernel.runs.gathered import merged
from weirflow.ivm.kernel.runs.memory import Allocate, in_memory
from weirflow.ivm.kernel.runs.run import Run, kept_rows, sorted_run, sorted_runs
from weirflow.ivm.zset.batch import concat_columns
from weirflow.ivm.zset.buffers import raw_dtype, raw_values, validity, value_offsets
from weirflow.ivm.zset.hashing import Equality

if TYPE_CHECKING:
    import numpy.typing as npt

    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

MAX_STRING_BYTES = 2**31 - 1
"""What the 32-bit offsets of one Arrow string array can address."""


class RunOrder(Protocol):
    """How the runs of an arrangement are sorted."""

    @property
    def weighs(self) -> bool:
        """Whether the values of rows are weights, most of which are 1."""

    def sort(self, codes: UInt64s, columns: Sequence[pa.Array], values: Int64s) -> Sequence[Run]:
        """Runs of rows in any order, the largest first: equal rows added up, rows of zeros dropped."""

    def merge(self, parts: Sequence[Run]) -> Run:
        """One run of all rows of some runs, or of slices of runs cut by ``end_of``."""

    def merge_unsorted(self, parts: Sequence[Run]) -> Run:
        """One run of all rows, of which only the first part is sorted."""

    def end_of(self, run: Run, pivot: Run, at: int) -> int:
        """Where to cut ``run`` so that all rows not after row ``at`` of ``pivot`` are before the cut, in any run.

        Rows that are equal must fall on the same side.
        """


class RunMerge:
    """A merge under way. The inputs stay valid and in use until ``result`` replaces them.

    All equal rows fall into one slice.
    """

    def __init__(
        self, runs: Sequence[Run], order: RunOrder, *, keep: bool = True, allocate: Allocate = in_memory
    ) -> None:
        self.runs = tuple(runs)
        self._order = order
        self._at = [0] * len(self.runs)
        self._remaining = sum(len(run) for run in self.runs)
        self._keep, self._allocate = keep, allocate
        self._output: _RunBuilder | None = None
        self._whole: Run | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing remains to be done."""
        return self._remaining == 0

    def step(self, fuel: int) -> int:
        """Merge about ``fuel`` more rows, at least one, for the result; returns how many input rows were used up."""
        assert self._keep
        before = self._remaining
        part = self.advance(fuel)
        small = len(part) < weights.MANY or not self._order.weighs
        if self.finished and self._output is None and self._allocate is in_memory and small:
            self._whole = part  # all at once: it is the result
        else:
            if self._output is None:
                self._output = _RunBuilder(self.runs, self._allocate, weighs=self._order.weighs)
            self._output.append(part)
        return before - self._remaining

    def advance(self, fuel: int) -> Run:
        """The next slice of the merged rows, from about ``fuel`` rows of input, for a merge that keeps no result."""
        ends = self._cut(fuel)
        parts = [_slice(run, start, end) for run, start, end in zip(self.runs, self._at, ends, strict=True)]
        self._at = ends
        self._remaining -= sum(len(part) for part in parts)
        return self._order.merge([part for part in parts if len(part)])

    def result(self) -> list[Run]:
        """The merged run, and perhaps another of a few rows that are not in it; only once ``finished``."""
        if self._whole is not None:
            return [self._whole]
        assert self._output is not None
        return self._output.build()

    def _cut(self, fuel: int) -> list[int]:
        if fuel >= self._remaining:
            return [len(run) for run in self.runs]
        largest = max(range(len(self.runs)), key=lambda index: len(self.runs[index]) - self._at[index])
        left = len(self.runs[largest]) - self._at[largest]
        ahead = max(1, fuel * left // self._remaining)
        last = self._at[largest] + ahead - 1
        return [self._order.end_of(run, self.runs[largest], last) for run in self.runs]


class CodeOrder:
    """Runs sorted by code alone, whose rows add up when they are equal by ``equality``."""

    def __init__(self, equality: Equality) -> None:
        self._equality = equality
        self._grouping = equality is Equality.GROUPING
        self.weighs = equality is Equality.IDENTITY

    def sort(self, codes: UInt64s, columns: Sequence[pa.Array], values: Int64s) -> Sequence[Run]:
        """Runs of rows in any order."""
        if (run := self._merged([Run(codes, tuple(columns), values)])) is not None:
            return [run]
        return sorted_runs(codes, columns, values) if self.weighs else [self._sorted(codes, columns, values)]

    def merge(self, parts: Sequence[Run]) -> Run:
        """One run of all rows."""
        return parts[0] if len(parts) == 1 else self._together(parts, in_order=True)

    def merge_unsorted(self, parts: Sequence[Run]) -> Run:
        """One run of all rows, of which only the first part is sorted."""
        return self._together(parts, in_order=False)

    def _together(self, parts: Sequence[Run], *, in_order: bool) -> Run:
        if (run := self._merged(parts, in_order=in_order)) is not None:
            return run
        codes = np.concatenate([part.codes for part in parts])
        values = np.concatenate([part.values for part in parts])
        return self._sorted(codes, concat_columns([part.columns for part in parts]), values)

    def _merged(self, parts: Sequence[Run], *, in_order: bool = False) -> Run | None:
        """The run by compiled kernels; very many rows are sorted by NumPy, column by column."""
        if sum(map(len, parts)) >= weights.MANY:
            return None
        return merged(parts, grouping=self._grouping, in_order=in_order)

    def _sorted(self, codes: UInt64s, columns: Sequence[pa.Array], values: Int64s) -> Run:
        return sorted_run(codes, columns, values, self._equality)

    def end_of(self, run: Run, pivot: Run, at: int) -> int:
        """Behind the last row with the pivot's code."""
        return int(run.codes.searchsorted(pivot.codes[at], "right"))


def copied(run: Run, allocate: Allocate) -> Run:
    """The run in buffers of ``allocate``."""
    builder = _RunBuilder([run], allocate, weighs=weights.are_all_one(run.values))
    builder.append(run)
    return builder.build()[0]


def can_merge(runs: Sequence[Run]) -> bool:
    """Whether one run can hold all these rows: Arrow's plain strings and lists have 32-bit offsets."""
    return all(sum(column.nbytes for column in columns) <= MAX_STRING_BYTES for columns in _wide_columns(runs))


def _wide_columns(runs: Sequence[Run]) -> list[tuple[pa.Array, ...]]:
    by_column = zip(*(run.columns for run in runs), strict=True)
    return [columns for columns in by_column if raw_dtype(columns[0].type) is None]


def _slice(run: Run, start: int, end: int) -> Run:
    if start == 0 and end == len(run):
        return run
    columns = tuple([column.slice(start, end - start) for column in run.columns])
    return Run(run.codes[start:end], columns, run.values[start:end])


class _RunBuilder:
    """Collects slices into buffers of the final size, so that finishing costs nothing however large the run.

    With ``weighs``, weights take memory only once there are too many that are not 1. Until then, rows with other
    weights are kept apart.
    """

    def __init__(self, runs: Sequence[Run], allocate: Allocate, *, weighs: bool) -> None:
        self._capacity = sum(len(run) for run in runs)
        self._width = runs[0].values.shape[1]
        self._allocate = allocate
        self._length = 0
        self._codes = allocate(self._capacity, np.uint64)
        self._values = None if weighs and self._capacity >= weights.MANY else self._allocated_values()
        self._apart: list[Run] = []
        self._columns = [
            _column_builder(columns, self._capacity, allocate)
            for columns in zip(*(run.columns for run in runs), strict=True)
        ]

    def append(self, part: Run) -> None:
        if self._values is None and not weights.are_all_one(part.values):
            part = self._without_others(part)
        end = self._length + len(part)
        self._codes[self._length : end] = part.codes
        if self._values is not None:
            self._values[self._length : end] = part.values
        for builder, column in zip(self._columns, part.columns, strict=True):
            builder.append(column)
        self._length = end

    def build(self) -> list[Run]:
        columns = tuple([builder.build() for builder in self._columns])
        values = weights.all_one(self._length) if self._values is None else self._values[: self._length]
        run = Run(self._codes[: self._length], columns, values)
        return [run, behind_each_other(self._apart)] if self._apart else [run]

    def _without_others(self, part: Run) -> Run:
        """The rows of a slice whose weight is 1; all of it once there were too many others."""
        once = part.values[:, 0] == 1
        others = len(part) - np.count_nonzero(once)
        if others == 0:
            return part
        if others + sum(map(len, self._apart)) > weights.FEW:
            self._values = self._allocated_values()
            self._values[: self._length] = 1
            return part
        self._apart.append(kept_rows(part, ~once))
        return kept_rows(part, once)

    def _allocated_values(self) -> Int64s:
        values: Int64s = self._allocate((self._capacity, self._width), np.int64)
        return values


def behind_each_other(parts: Sequence[Run]) -> Run:
    """The rows of runs one below the other, which is a run if their codes follow each other."""
    codes, values = np.concatenate([part.codes for part in parts]), np.concatenate([part.values for part in parts])
    return Run(codes, concat_columns([part.columns for part in parts]), values)


def _column_builder(
    inputs: Sequence[pa.Array], capacity: int, allocate: Allocate
) -> _FixedBuilder | _BytesBuilder | _ChunkBuilder:
    type_ = inputs[0].type
    dtype = raw_dtype(type_)
    if dtype is not None or pt.is_decimal128(type_):
        return _FixedBuilder(type_, allocate(capacity, dtype or np.dtype("V16")))
    if pt.is_string(type_) or pt.is_binary(type_):
        byte_count = sum(_byte_count(array) for array in inputs)
        return _BytesBuilder(type_, allocate(capacity + 1, np.int32), allocate(byte_count, np.uint8))
    return _ChunkBuilder(type_)


def _byte_count(array: pa.Array) -> int:
    offsets = value_offsets(array.slice(0, 0)), value_offsets(array.slice(len(array), 0))
    return int(offsets[1][0] - offsets[0][0])


class _Validity:
    """One byte for each value while it grows, one bit when it is built; nothing as long as no NULL is seen."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._null: Bools | None = None

    def append(self, array: pa.Array, start: int) -> None:
        valid = validity(array)
        if valid is None:
            return
        if self._null is None:
            # Zeros, since fresh zeroed memory costs nothing until it is written to.
            self._null = np.zeros(self._capacity, np.bool_)
        np.logical_not(valid, out=self._null[start : start + len(array)])

    def build(self, length: int) -> pa.Buffer | None:
        if self._null is None:
            return None
        return pa.py_buffer(~np.packbits(self._null[:length], bitorder="little"))


class _FixedBuilder:
    """Values of up to 64 bits, and decimals."""

    def __init__(self, type_: pa.DataType, data: npt.NDArray[Any]) -> None:
        self._type = type_
        self._length = 0
        self._data = data
        self._validity = _Validity(len(data))

    def append(self, array: pa.Array) -> None:
        values = raw_values(array)
        end = self._length + len(array)
        self._data[self._length : end] = values if values.ndim == 1 else values.view("V16")[:, 0]
        self._validity.append(array, self._length)
        self._length = end

    def build(self) -> pa.Array:
        buffers = [self._validity.build(self._length), pa.py_buffer(self._data[: self._length].view(np.uint8))]
        return pa.Array.from_buffers(self._type, self._length, buffers)


class _BytesBuilder:
    """Strings and binary values: offsets and bytes."""

    def __init__(self, type_: pa.DataType, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> None:
        self._type = type_
        self._length = 0
        self._bytes = 0
        self._offsets = offsets
        self._offsets[0] = 0
        self._data = data
        self._validity = _Validity(len(offsets) - 1)

    def append(self, array: pa.Array) -> None:
        offsets: Int64s = value_offsets(array)
        first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
        end = self._length + len(array)
        self._offsets[self._length + 1 : end + 1] = offsets[1:] + (self._bytes - first)
        if size:
            self._data[self._bytes : self._bytes + size] = np.frombuffer(array.buffers()[2], np.uint8, size, first)
        self._validity.append(array, self._length)
        self._length = end
        self._bytes += size

    def build(self) -> pa.Array:
        buffers = [
            self._validity.build(self._length),
            pa.py_buffer(self._offsets[: self._length + 1]),
            pa.py_buffer(self._data[: self._bytes]),
        ]
        return pa.Array.from_buffers(self._type, self._length, buffers)


class _ChunkBuilder:
    """Booleans, nested and other types: pieces, put together at the end."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._chunks: list[pa.Array] = []

    def append(self, array: pa.Array) -> None:
        self._chunks.append(array)

    def build(self) -> pa.Array:
        return pa.concat_arrays(self._chunks) if self._chunks else pa.nulls(0, self._type)
