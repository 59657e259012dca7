"""Rows of several runs gathered by compiled kernels; columns become Arrow arrays when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm import compiled
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.zset.batch import take_array
from weirflow.ivm.zset.layout import Layout, Place, places_of

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s, UInt64s

_WORD = 8


class GatheredColumns(NamedTuple):
    """Columns some of which lie one behind the other in a block of memory.

    Attributes:
        types: of all columns.
        made: for each column an array, or where its values begin and end in the block.
        block: the values of the others.
        length: how many rows there are.
    """

    types: Sequence[pa.DataType]
    made: Sequence[pa.Array | tuple[int, int]]
    block: pa.Buffer
    length: int

    def arrays(self) -> tuple[pa.Array, ...]:
        """The columns."""
        return tuple([self._array(kind, one) for kind, one in zip(self.types, self.made, strict=True)])

    def layout(self, kinds: Sequence[Place]) -> Layout | None:
        """Where they lie; ``kinds`` has the kind of each. None if kernels do not read them."""
        places: list[Place] = []
        for made, (kind, *_) in zip(self.made, kinds, strict=True):
            if isinstance(made, tuple):
                places.append((kind, 0, self.block.address + made[0], 0, 0))
            elif (own := places_of([made])) is None:
                return None
            else:
                places += own
        return Layout(places, self.length, self) if self.length else None

    def _array(self, kind: pa.DataType, made: pa.Array | tuple[int, int]) -> pa.Array:
        if not isinstance(made, tuple):
            return made
        begin, end = made
        return pa.Array.from_buffers(kind, self.length, [None, self.block.slice(begin, end - begin)])


class GatheredRun(Run):
    """A run of gathered columns."""

    __slots__ = ("_gathered",)

    def __init__(self, codes: UInt64s, gathered: GatheredColumns, values: Int64s, layout: Layout | None) -> None:
        super().__init__(codes, (), values, layout)
        self._gathered = gathered

    def with_values(self, codes: UInt64s, values: Int64s) -> GatheredRun:
        """The same rows with other values, as when known groups change; ``codes`` are theirs again."""
        return GatheredRun(codes, self._gathered, values, self._layout)

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        return self._gathered.types

    @property
    @override
    def columns(self) -> tuple[pa.Array, ...]:
        if not self._columns:
            self._columns = self._gathered.arrays()
        return self._columns


def gather(
    parts: Sequence[Run], layouts: Sequence[Layout], rows: Int64s, columns: Sequence[int] | None = None
) -> GatheredColumns:
    """Some columns, or all, of the rows with these numbers in all parts one below the other; by compiled kernels."""
    types = parts[0].types
    chosen = range(len(types)) if columns is None else columns
    plain, ends = [], [0]
    for column in chosen:
        widths = [layout.width(column) for layout in layouts]
        if 0 not in widths:
            plain.append(column)
            ends.append(ends[-1] + -(-len(rows) * widths[0] // _WORD) * _WORD)
    block = pa.py_buffer(np.empty(ends[-1], np.uint8))
    if plain:
        into = np.array([block.address + end for end in ends[:-1]], np.int64)
        tables = np.array([(layout.length, layout.address) for layout in layouts], np.int64)
        compiled.kernels.gather(tables, rows, np.array(plain, np.int64), into)
    bounds = dict(zip(plain, pairwise(ends), strict=True))
    made = [bounds.get(column) or _taken([part.columns[column] for part in parts], rows) for column in chosen]
    return GatheredColumns([types[column] for column in chosen], made, block, len(rows))


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


def merged(parts: Sequence[Run], *, grouping: bool) -> Run | None:
    """One run of all rows of parts, only the first of which has to be sorted; None if it is not for compiled kernels.

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
    codes, values, rows, done = compiled.kernels.merge_parts(found, width, len(layouts[0].places), grouping)
    if not done:
        return None
    first = parts[0]
    if isinstance(first, GatheredRun) and np.array_equal(rows, np.arange(len(first))):
        return first.with_values(codes, values)
    gathered = gather(parts, layouts, rows)
    return GatheredRun(codes, gathered, values, gathered.layout(layouts[0].places))
