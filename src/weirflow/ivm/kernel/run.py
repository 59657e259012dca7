"""``Run``: an immutable, sorted piece of state; in memory or mapped from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.errors import StorageError
from weirflow.ivm.zset.batch import Batch, add_segments, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.rows import group_sorted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.ivm.zset.batch import Int64s, UInt64s
    from weirflow.ivm.zset.hashing import Equality

_FORMAT = {b"weirflow.run": b"1"}
_CODE, _VALUES = "_code", "_values"
_SAMPLED_ROWS = 1 << 19
_BLOCK = 64
_FEW_NEEDLES = 4096
"""More needles than that come so close to each other that a plain search finds most of its way in the cache."""


class Run:
    """Different rows, each with a code and one or more int64 values, sorted by code.

    The values are a row's weight, or the accumulators of a key; a row whose values are all zero is not kept. Which
    bits a code has is the arrangement's business; equal rows have equal codes. Nothing here changes after creation.
    """

    __slots__ = ("__weakref__", "_sample", "codes", "columns", "values")

    def __init__(self, codes: UInt64s, columns: tuple[pa.Array, ...], values: Int64s) -> None:
        self.codes = codes
        self.columns = columns
        self.values = values
        self._sample: UInt64s | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, codes and values, mapped or in memory."""
        return int(self.codes.nbytes + self.values.nbytes + sum(column.nbytes for column in self.columns))

    @property
    def batch(self) -> Batch:
        """All rows, with the first value as the weight."""
        return Batch(self.columns, self.values[:, 0])

    def search(self, low: UInt64s) -> Int64s:
        """The first position whose code is not below each of ``low``, which is in ascending order."""
        if len(self) < _SAMPLED_ROWS or len(low) > _FEW_NEEDLES:
            return self.codes.searchsorted(low)
        # A binary search of a large run waits for memory at almost every step. A sample that stays in the cache tells
        # the block to look into, and the blocks of all needles are compared at once.
        if self._sample is None:
            self._sample = self.codes[: len(self) // _BLOCK * _BLOCK : _BLOCK].copy()
        block = np.maximum(self._sample.searchsorted(low) - 1, 0)
        blocks = self.codes[: len(self._sample) * _BLOCK].reshape(-1, _BLOCK)
        first: Int64s = block * _BLOCK + np.count_nonzero(blocks[block] < low[:, np.newaxis], axis=1)
        if len(block) and block[-1] == len(self._sample) - 1:
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


def sorted_run(
    codes: UInt64s, columns: Sequence[pa.Array], values: Int64s, equality: Equality, order: Int64s | None = None
) -> Run:
    """A run of any rows: sorted, equal rows (by ``equality``) added up, rows of zeros dropped.

    ``order`` is one that sorts the codes, where the caller knows it.
    """
    if order is None:
        order = sort_order(codes)
    codes, values = codes[order], values[order]
    regrouped, starts = group_sorted(codes, columns, equality, order)
    if regrouped is not None:
        order, values = order[regrouped], values[regrouped]
    if starts is not None and len(starts) < len(codes):
        order, codes, values = order[starts], codes[starts], add_segments(values, starts)
    nonzero = values[:, 0] != 0 if values.shape[1] == 1 else values.any(axis=1)
    if not nonzero.all():
        kept = np.flatnonzero(nonzero)
        order, codes, values = order[kept], codes[kept], values[kept]
    return Run(codes, take_columns(columns, order), values)


def sort_order(codes: UInt64s) -> Int64s:
    """The stable order that sorts the codes; fastest for codes that are spread evenly over 64 bits."""
    if len(codes) <= _CHUNK:
        return np.argsort(codes, kind="stable")
    # Radix sort by the upper 16 bits, then chunks that fit the processor's cache by the next 16 bits, then what is
    # still equal by comparison: hashes are spread evenly, so that is little unless one key has many rows.
    bucket = (codes >> np.uint64(48)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    edges = np.cumsum(np.bincount(bucket, minlength=1 << 16))
    cuts = edges[np.unique(edges.searchsorted(np.arange(_CHUNK, len(codes) + _CHUNK, _CHUNK)).clip(max=(1 << 16) - 1))]
    start = 0
    for cut in cuts.tolist():
        part = order[start:cut]
        order[start:cut] = part[_chunk_order(codes[part])]
        start = cut
    return order


_CHUNK = 1 << 16


def _chunk_order(codes: UInt64s) -> Int64s:
    upper = (codes >> np.uint64(32)).astype(np.uint32)
    order = np.argsort(upper.astype(np.uint16), kind="stable")
    order = order[np.argsort((upper >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
    codes = codes[order]
    if (codes[1:] >= codes[:-1]).all():
        return order
    upper = upper[order]
    tied = np.zeros(len(codes), np.bool_)
    np.equal(upper[1:], upper[:-1], out=tied[1:])
    tied[:-1] |= tied[1:]
    rows = np.flatnonzero(tied)
    order[rows] = order[rows][np.argsort(codes[rows], kind="stable")]
    return order
