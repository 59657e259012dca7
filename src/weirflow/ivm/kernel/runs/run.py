"""``Run``: an immutable, sorted piece of state; in memory or mapped from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.errors import StorageError
from weirflow.ivm.kernel.runs import weights
from weirflow.ivm.zset.batch import Batch, sum_groups, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.rows import group_sorted
from weirflow.ivm.zset.sorting import sorted_codes

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

_FORMAT = {b"weirflow.run": b"1"}
_CODE, _VALUES = "_code", "_values"
_SAMPLED_ROWS = 1 << 19
_UNSAMPLED_ROWS = 1 << 12
"""So few codes stay in the processor's cache themselves."""
_NO_SAMPLE = (0, 0)
RunPlace = tuple[int, int, int, int, int, int, int]
"""A run, as ``compiled.tables.add_found`` reads it."""
BLOCK = 64
"""Rows for each code of a run's sample."""
SUMMED = 32
"""Rows for each of a run's sums."""
FEW_NEEDLES = 4096
"""More needles than that come so close to each other that a plain search finds most of its way in the cache."""


class Run:
    """Different rows, each with a code and one or more int64 values, sorted by code.

    The values are a row's weight, or the accumulators of a key; a row whose values are all zero is not kept. Which
    bits a code has is the arrangement's business; equal rows have equal codes. Nothing here changes after creation.

    Where every weight is 1, ``values`` is one number that is seen at each row (its stride is 0) and takes no memory.
    """

    __slots__ = (
        "__weakref__", "_cancels", "_columns", "_layout", "_place", "_sample", "_sums", "codes", "values"
    )  # fmt: skip

    def __init__(
        self, codes: UInt64s, columns: tuple[pa.Array, ...], values: Int64s, layout: Layout | None = None
    ) -> None:
        self.codes = codes
        self._columns = columns
        self.values = values
        self._layout = layout
        self._place: RunPlace | None = None
        self._sample: UInt64s | None = None
        self._cancels: bool | None = None
        self._sums: Int64s | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def __reduce__(self) -> tuple[type[Run], tuple[Any, ...]]:
        return Run, (self.codes, self.columns, self.values)

    def with_values(self, codes: UInt64s, values: Int64s) -> Run:
        """The same rows with other values, as when known groups change; ``codes`` are theirs again."""
        return self._moved(Run(codes, self._columns, values, self._layout))

    def _moved(self, other: Run) -> Run:
        """A run of the same rows, which says of them what is known of these."""
        if self._place is not None and other.codes is self.codes and other.values.flags.c_contiguous:
            begin = pa.py_buffer(other.values).address
            other._sample = self._sample
            other._place = (*self._place[:4], begin, other.values.strides[0], self._place[6])
        return other

    @property
    def columns(self) -> tuple[pa.Array, ...]:
        """The columns of the rows."""
        return self._columns

    def column(self, index: int) -> pa.Array:
        """One of the columns; no others are made for it."""
        return self._columns[index]

    @property
    def types(self) -> Sequence[pa.DataType]:
        """The columns' types."""
        return [column.type for column in self._columns]

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, codes and values, mapped or in memory."""
        values = 0 if weights.are_all_one(self.values) else self.values.nbytes
        return int(self.codes.nbytes + values + sum(column.nbytes for column in self.columns))

    @property
    def batch(self) -> Batch:
        """All rows, with the first value as the weight."""
        return Batch(self.columns, np.ascontiguousarray(self.values[:, 0]))

    @property
    def cancels(self) -> bool:
        """Whether rows may take back those of other runs; accumulators always may."""
        if self._cancels is None:
            self._cancels = self.values.shape[1] > 1 or bool(len(self) and self.values.min() < 0)
        return self._cancels

    @property
    def sample(self) -> UInt64s:
        """The first code of each whole block: small enough to stay in the processor's cache."""
        if self._sample is None:
            self._sample = self.codes[: len(self) // BLOCK * BLOCK : BLOCK].copy()
        return self._sample

    @property
    def sums(self) -> Int64s:
        """The sum of the first values of all rows before each block of ``SUMMED`` rows, and before the end."""
        if self._sums is None:
            sums = np.zeros(-(-len(self) // SUMMED) + 1, np.int64)
            np.cumsum(np.add.reduceat(self.values[:, 0], np.arange(0, len(self), SUMMED)), out=sums[1:])
            self._sums = sums
        return self._sums

    @property
    def layout(self) -> Layout | None:
        """Where its columns lie, for compiled kernels; None if these do not read them."""
        if self._layout is None:
            self._layout = Layout.of(self.columns)
        return self._layout

    @property
    def place(self) -> RunPlace | None:
        """Where it lies, for compiled kernels; None if these do not read it."""
        if self._place is None and self.layout is not None:
            found = weights.place(self.values)
            if found is None:
                return None
            length, codes = len(self.codes), pa.py_buffer(self.codes).address
            sample = (pa.py_buffer(self.sample).address, len(self.sample)) if length > _UNSAMPLED_ROWS else _NO_SAMPLE
            self._place = (codes, length, *sample, *found, self.layout.address)
        return self._place

    def search(self, low: UInt64s) -> Int64s:
        """The first position whose code is not below each of ``low``, which is in ascending order."""
        if len(self) < _SAMPLED_ROWS or len(low) > FEW_NEEDLES:
            return self.codes.searchsorted(low)
        # A binary search of a large run waits for memory at almost every step. A sample that stays in the cache tells
        # the block to look into, and the blocks of all needles are compared at once.
        sample = self.sample
        block = np.maximum(sample.searchsorted(low) - 1, 0)
        blocks = self.codes[: len(sample) * BLOCK].reshape(-1, BLOCK)
        first: Int64s = block * BLOCK + np.count_nonzero(blocks[block] < low[:, np.newaxis], axis=1)
        if len(block) and block[-1] == len(sample) - 1:
            last = block == block[-1]
            first[last] = self.codes.searchsorted(low[last])
        return first

    def save(self, target: Path | str | Any) -> None:
        """Write the run as one Arrow IPC file to a path or a binary file object. An existing file is replaced."""
        names = [f"c{index}" for index in range(len(self.columns))]
        width = self.values.shape[1]
        flat = pa.array(np.ascontiguousarray(self.values).reshape(-1))
        values = pa.FixedSizeListArray.from_arrays(flat, width)
        batch = pa.record_batch([*self.columns, pa.array(self.codes), values], [*names, _CODE, _VALUES])
        batch = batch.replace_schema_metadata(_FORMAT)
        with pa.ipc.new_file(str(target) if isinstance(target, Path) else target, batch.schema) as writer:
            writer.write_batch(batch)

    @classmethod
    def load(cls, path: Path | str) -> Run:
        """Map a saved run into memory; pages are read when they are first touched.

        The file must stay as it is while the run is in use.

        Raises:
            StorageError: the file is missing, damaged, or not a run.
        """
        try:
            buffer = pa.memory_map(str(path)).read_buffer()
        except OSError as error:
            raise _unreadable(str(path), error) from error
        return cls.from_buffer(buffer, str(path))

    @classmethod
    def from_buffer(cls, buffer: pa.Buffer, origin: str) -> Run:
        """A saved run that lies in ``buffer``, without copying it; ``origin`` is what errors call it.

        Raises:
            StorageError: it is damaged, or not a run.
        """
        try:
            batch = pa.ipc.open_file(pa.BufferReader(buffer)).get_batch(0)
            if (batch.schema.metadata or {}).get(b"weirflow.run") != _FORMAT[b"weirflow.run"]:
                raise StorageError(f"{origin} is not a run of this format version.", uri=origin)
            batch.validate()
        except (OSError, pa.ArrowInvalid) as error:
            raise _unreadable(origin, error) from error
        *columns, codes, values = batch.columns
        width = values.type.list_size
        flat = raw_values(values.values).reshape(-1, width)[values.offset : values.offset + len(values)]
        return cls(raw_values(codes), tuple(columns), flat)


def _unreadable(origin: str, error: Exception) -> StorageError:
    return StorageError(f"The run {origin} cannot be read: {error}", uri=origin, hint="restore from another checkpoint")


def kept_rows(run: Run, kept: Bools) -> Run:
    """The run with just the rows that are ``kept``."""
    at = np.flatnonzero(kept)
    if len(at) == len(run):
        return run
    values = weights.all_one(len(at)) if weights.are_all_one(run.values) else run.values[at]
    return Run(run.codes[at], take_columns(run.columns, at), values)


def sorted_run(codes: UInt64s, columns: Sequence[pa.Array], values: Int64s, equality: Equality) -> Run:
    """A run of any rows: sorted, equal rows (by ``equality``) added up, rows of zeros dropped."""
    order, codes, values = _sorted(codes, columns, values, equality)
    return Run(codes, take_columns(columns, order), values)


def sorted_runs(codes: UInt64s, columns: Sequence[pa.Array], values: Int64s) -> list[Run]:
    """As ``sorted_run``, of identical rows and their weights: the few of many that are not 1 are a run of their own."""
    order, codes, values = _sorted(codes, columns, values, Equality.IDENTITY)
    parts = weights.divided(values)
    if parts is None:
        return [Run(codes, take_columns(columns, order), values)]
    once, others = parts
    if len(others) == 0:
        return [Run(codes, take_columns(columns, order), weights.all_one(len(codes)))]
    return [
        Run(codes[once], take_columns(columns, order[once]), weights.all_one(len(once))),
        Run(codes[others], take_columns(columns, order[others]), values[others]),
    ]


def _sorted(
    codes: UInt64s, columns: Sequence[pa.Array], values: Int64s, equality: Equality
) -> tuple[Int64s, UInt64s, Int64s]:
    """Which rows a run has, in its order, with their codes and values."""
    order, codes, repeated = sorted_codes(codes)
    regrouped, starts = group_sorted(codes, repeated, columns, equality, order)
    if regrouped is not None:
        order = order[regrouped]
    if starts is None or len(starts) == len(codes):
        values = values[order]
    else:
        values, order, codes = sum_groups(values, order, starts), order[starts], codes[starts]
    nonzero = values[:, 0] != 0 if values.shape[1] == 1 else values.any(axis=1)
    if not nonzero.all():
        kept = np.flatnonzero(nonzero)
        order, codes, values = order[kept], codes[kept], values[kept]
    return order, codes, values
