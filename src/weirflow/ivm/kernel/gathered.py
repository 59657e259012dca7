"""Runs merged by compiled kernels; their columns become Arrow arrays when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm import compiled
from weirflow.ivm.kernel.run import Run
from weirflow.ivm.zset.batch import take_array
from weirflow.ivm.zset.layout import Layout, Place, places_of

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s, UInt64s

_WORD = 8


class GatheredRun(Run):
    """A run some of whose columns lie one behind the other in a block of memory.

    Args:
        types: of all columns.
        made: for each column an array, or where its values begin and end in the block.
        block: the values of the others.
    """

    __slots__ = ("_block", "_made", "_types")

    def __init__(
        self,
        codes: UInt64s,
        values: Int64s,
        layout: Layout | None,
        *,
        types: Sequence[pa.DataType],
        made: Sequence[pa.Array | tuple[int, int]],
        block: pa.Buffer,
    ) -> None:
        super().__init__(codes, (), values, layout)
        self._types = types
        self._made = made
        self._block = block

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        return self._types

    @property
    @override
    def columns(self) -> tuple[pa.Array, ...]:
        if not self._columns:
            self._columns = tuple([self._column(kind, one) for kind, one in zip(self._types, self._made, strict=True)])
        return self._columns

    def _column(self, kind: pa.DataType, made: pa.Array | tuple[int, int]) -> pa.Array:
        if not isinstance(made, tuple):
            return made
        begin, end = made
        return pa.Array.from_buffers(kind, len(self), [None, self._block.slice(begin, end - begin)])


def merged(parts: Sequence[Run], *, grouping: bool) -> Run | None:
    """One run of all rows of parts, only the first of which has to be sorted; None if it is not for compiled kernels.

    Equal rows are added up, rows of zeros dropped. Left to others are rows that differ but have the same code, sums
    that leave 64 bits, and types that kernels do not read.
    """
    if compiled.kernels is None:
        return None
    layouts = [part.layout for part in parts]
    places = [part.place for part in parts]
    if None in places:
        return None
    types, width = parts[0].types, parts[0].values.shape[1]
    found = np.array([(place[0], place[1], place[4], place[5]) for place in places if place is not None], np.int64)
    codes, values, rows, done = compiled.kernels.merge_parts(found, width, len(types), grouping)
    if not done:
        return None
    return _gathered(parts, [one for one in layouts if one is not None], types, (codes, values, rows))


def _gathered(
    parts: Sequence[Run],
    layouts: Sequence[Layout],
    types: Sequence[pa.DataType],
    merge: tuple[UInt64s, Int64s, Int64s],
) -> Run:
    """The run that ``merge_parts`` tells of: its codes, its values, and the numbers of its rows in the parts."""
    codes, values, rows = merge
    plain, ends = [], [0]
    for column in range(len(types)):
        widths = [layout.width(column) for layout in layouts]
        if 0 not in widths:
            plain.append(column)
            ends.append(ends[-1] + -(-len(rows) * widths[0] // _WORD) * _WORD)
    block = pa.py_buffer(np.empty(ends[-1], np.uint8))
    into = np.array([block.address + end for end in ends[:-1]], np.int64)
    tables = np.array([(layout.length, layout.address) for layout in layouts], np.int64)
    compiled.kernels.gather(tables, rows, np.array(plain, np.int64), into)
    made: list[pa.Array | tuple[int, int]] = []
    where: list[Place] | None = []
    bounds = iter(zip(ends, ends[1:], strict=False))
    for column in range(len(types)):
        if column in plain:
            begin, end = next(bounds)
            made.append((begin, end))
            one: list[Place] | None = [(layouts[0].places[column][0], 0, block.address + begin, 0, 0)]
        else:
            array = take_array(pa.concat_arrays([part.columns[column] for part in parts]), rows)
            made.append(array)
            one = places_of([array])
        where = None if where is None or one is None else [*where, *one]
    held = (block, made)
    layout = Layout(where, len(rows), held) if where and len(rows) else None
    return GatheredRun(codes, values, layout, types=types, made=made, block=block)
