"""Rows of several runs gathered by compiled kernels; columns become Arrow arrays when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm import compiled
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.zset.batch import take_array
from weirflow.ivm.zset.layout import WIDTHS, Layout, Place, places_of
from weirflow.ivm.zset.lazy import LazyColumns

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s, UInt64s

_WORD = 8
_FEW = 8
"""So many sorted parts are merged by looking at the next row of each."""


class GatheredColumns(LazyColumns):
    """Columns some of which lie one behind the other in a block of memory.

    Args:
        types: of all columns.
        made: for each column an array, or where its values begin and end in the block.
        block: the values of the others.
        length: how many rows there are.
        kinds: by which kernels know the values of each column.
    """

    __slots__ = ("_block", "_kinds", "_parts", "_types")

    def __init__(
        self,
        types: Sequence[pa.DataType],
        made: Sequence[pa.Array | tuple[int, int]],
        block: pa.Buffer,
        length: int,
        kinds: Sequence[int],
    ) -> None:
        super().__init__(length)
        self._types = types
        self._parts = made
        self._block = block
        self._kinds = kinds

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        return self._types

    @property
    @override
    def held(self) -> int:
        arrays = [made.get_total_buffer_size() for made in self._parts if not isinstance(made, tuple)]
        return int(self._block.size + sum(arrays))

    @override
    def __getitem__(self, index: int | slice) -> Any:
        if self._arrays is not None or isinstance(index, slice):
            return self.arrays[index]
        return self._array(self._types[index], self._parts[index])

    @override
    def select(self, indexes: Sequence[int]) -> LazyColumns:
        parts, kinds, types = self._parts, self._kinds, self._types
        return GatheredColumns(
            [types[one] for one in indexes],
            [parts[one] for one in indexes],
            self._block,
            self.length,
            [kinds[one] for one in indexes],
        )

    @override
    def _made(self) -> tuple[pa.Array, ...]:
        return tuple([self._array(kind, one) for kind, one in zip(self._types, self._parts, strict=True)])

    @override
    def _laid_out(self) -> Layout | None:
        places: list[Place] = []
        for made, kind in zip(self._parts, self._kinds, strict=True):
            if isinstance(made, tuple):
                places.append((kind, 0, self._block.address + made[0], 0, 0))
            elif (own := places_of([made])) is None:
                return None
            else:
                places += own
        return Layout(np.array(places, np.int64), self.length, (self._block, self._parts)) if places else None

    def _array(self, kind: pa.DataType, made: pa.Array | tuple[int, int]) -> pa.Array:
        if not isinstance(made, tuple):
            return made
        begin, end = made
        return pa.Array.from_buffers(kind, self.length, [None, self._block.slice(begin, end - begin)])


class LazyRun(Run):
    """A run whose columns become arrays when somebody asks for them."""

    __slots__ = ("_lazy",)

    def __init__(self, codes: UInt64s, lazy: LazyColumns, values: Int64s) -> None:
        super().__init__(codes, (), values)
        self._lazy = lazy

    @override
    def with_values(self, codes: UInt64s, values: Int64s) -> Run:
        return self._moved(LazyRun(codes, self._lazy, values))

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        return self._lazy.types

    @property
    @override
    def columns(self) -> tuple[pa.Array, ...]:
        return self._lazy.arrays

    @override
    def column(self, index: int) -> pa.Array:
        return self._lazy[index]

    @property
    @override
    def layout(self) -> Layout | None:
        return self._lazy.layout


def gather(
    parts: Sequence[Run], layouts: Sequence[Layout], rows: Int64s, columns: Sequence[int] | None = None
) -> GatheredColumns:
    """Some columns, or all, of the rows with these numbers in all parts one below the other; by compiled kernels."""
    types = parts[0].types
    chosen = range(len(types)) if columns is None else columns
    plain, ends = [], [0]
    nullable = layouts[0].table[:, 1] if len(layouts) == 1 else np.any([one.table[:, 1] for one in layouts], axis=0)
    for column, kind, is_nullable in zip(range(len(types)), layouts[0].kinds, nullable.tolist(), strict=True):
        if is_nullable or column not in chosen or not (width := WIDTHS[kind]):
            continue
        plain.append(column)
        ends.append(ends[-1] + -(-len(rows) * width // _WORD) * _WORD)
    block = pa.py_buffer(np.empty(ends[-1], np.uint8))
    if plain:
        into = np.array([block.address + end for end in ends[:-1]], np.int64)
        tables = np.array([(layout.length, layout.address) for layout in layouts], np.int64)
        compiled.kernels.gather(tables, rows, np.array(plain, np.int64), into)
    bounds = dict(zip(plain, pairwise(ends), strict=True))
    made = [bounds.get(column) or _taken([part.column(column) for part in parts], rows) for column in chosen]
    kinds = [layouts[0].kinds[column] for column in chosen]
    return GatheredColumns([types[column] for column in chosen], made, block, len(rows), kinds)


def _taken(arrays: Sequence[pa.Array], rows: Int64s) -> pa.Array:
    """The values at these places in all arrays one below the other; what is large is not put together for few rows."""
    if len(arrays) == 1:
        return take_array(arrays[0], rows)
    ends = np.cumsum([len(array) for array in arrays])
    if int(ends[-1]) <= 2 * len(rows):
        return take_array(pa.concat_arrays(arrays), rows)
    owner = ends.searchsorted(rows, "right")
    order = np.argsort(owner, kind="stable")
    cuts = owner[order].searchsorted(np.arange(len(arrays) + 1))
    starts = ends - [len(array) for array in arrays]
    parts = [
        take_array(array, rows[order[begin:end]] - start)
        for array, start, begin, end in zip(arrays, starts.tolist(), cuts.tolist(), cuts[1:].tolist(), strict=False)
    ]
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    return take_array(pa.concat_arrays(parts), back)


def layouts_of(runs: Sequence[Run]) -> list[Layout] | None:
    """Where the runs' columns lie; None if kernels do not read one of them."""
    found = [layout for run in runs if (layout := run.layout) is not None]
    return found if len(found) == len(runs) else None


def merged(parts: Sequence[Run], *, grouping: bool, in_order: bool = False) -> Run | None:
    """One run of all rows of parts, which are all sorted if ``in_order``; None if it is not for compiled kernels.

    Equal rows are added up, rows of zeros dropped. Left to others are rows that differ but have the same code, sums
    that leave 64 bits, and types that kernels do not read.
    """
    if compiled.kernels is None or (layouts := layouts_of(parts)) is None:
        return None
    places = [place for part in parts if (place := part.place) is not None]
    if len(places) < len(parts):
        return None
    found = np.array([(place[0], place[1], *place[4:]) for place in places], np.int64)
    width = parts[0].values.shape[1]
    few = in_order and len(parts) <= _FEW
    merge = compiled.kernels.merge_sorted if few else compiled.kernels.merge_parts
    codes, values, rows, done = merge(found, width, layouts[0].count, grouping)
    if not done:
        return None
    first = parts[0]
    if isinstance(first, LazyRun) and np.array_equal(rows, np.arange(len(first))):
        return first.with_values(codes, values)
    return LazyRun(codes, gather(parts, layouts, rows), values)
