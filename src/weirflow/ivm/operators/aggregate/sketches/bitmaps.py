"""BITMAP_CONSTRUCT_AGG, BITMAP_OR_AGG and BITMAP_AND_AGG: 32,768 bits of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError
from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirflow.ivm.zset.batch import Batch
    from weirflow.sql.expr import AggregateCall, Expr

BITMAPS_OF_PARTS = frozenset({"bitmap_or_agg", "bitmap_and_agg"})
"""Those that give for all rows what they give for what they gave for parts of them."""
_BYTES = 4096
_BITS = 8 * _BYTES


class BitmapCall(RecomputeCall):
    """A bitmap, of no rows one of zeros, or for ``bitmap_and_agg`` of ones; NULLs do not count."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        super().__init__(call, key_types, expressions)
        self._position = call.position
        self._every = call.function == "bitmap_and_agg"
        self._add = self._set_bits if call.function == "bitmap_construct_agg" else self._merge

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        require_result(_BYTES * count, self._function, self._position)
        maps = np.full((count, _BYTES), 255 if self._every else 0, np.uint8)
        there = (rows.weights > 0) & rows.columns[1].is_valid().to_numpy(zero_copy_only=False)
        number, values = rows.filter(there).columns
        self._add(maps, number.to_numpy(), values)
        return pa.array([one.tobytes() for one in maps], self._type)

    def _set_bits(self, maps: np.ndarray, numbers: np.ndarray, positions: pa.Array) -> None:
        places = positions.to_numpy()
        outside = places[(places < 0) | (places >= _BITS)]
        if len(outside):
            raise DataError(
                f"The position {outside[0]} is outside of a bitmap, which has {_BITS} bits.",
                hint="bitmap_bit_position(x) is the position of x in the bitmap of bitmap_bucket_number(x)",
                condition="INVALID_BITMAP_POSITION",
                position=self._position,
            )
        bits = np.left_shift(1, places % 8).astype(np.uint8)
        np.bitwise_or.at(maps, (numbers, places // 8), bits)

    def _merge(self, maps: np.ndarray, numbers: np.ndarray, values: pa.Array) -> None:
        for number, value in checked(zip(numbers.tolist(), values.to_pylist(), strict=True)):
            other = np.frombuffer(value[:_BYTES], np.uint8)
            if self._every:
                maps[number, : len(other)] &= other
                maps[number, len(other) :] = 0
            else:
                maps[number, : len(other)] |= other
