"""Codes: the 64 bits by which rows are sorted and found. They only guide; rows are always compared themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm import compiled
from weirflow.ivm.zset.hashing import Equality, RowHash, has_floats, hash_layout, hash_rows
from weirflow.ivm.zset.layout import Layout

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.zset.batch import UInt64s

_HIGH = np.uint64(0xFFFFFFFF00000000)
_LOW = np.uint64(0x00000000FFFFFFFF)
_REMEMBERED = 1 << 16
"""The codes of more rows than that take more memory than it takes time to find them again."""
NOTHING = np.uint64(0)
EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)


class KeyCodes:
    """The codes of rows by their key, which is the first ``key_count`` columns, alone."""

    def __init__(self, key_count: int, row_hash: RowHash) -> None:
        self._key_count = key_count
        self._hash = row_hash

    def __call__(self, columns: Sequence[pa.Array], length: int) -> UInt64s:
        """The codes of ``length`` rows."""
        return self._hash(columns[: self._key_count], length, Equality.GROUPING)


class RowCodes:
    """The codes of whole rows; ``span`` are the bits of a code that tell nothing about the key."""

    def __init__(self, types: Sequence[pa.DataType], key_count: int, row_hash: RowHash) -> None:
        self.span = EVERYTHING if key_count == 0 else NOTHING if key_count == len(types) else _LOW
        self._key_count = key_count
        self._hash = row_hash
        self._float_keys = any(has_floats(type_) for type_ in types[:key_count])

    def __call__(self, columns: Sequence[pa.Array], length: int) -> UInt64s:
        """The codes of ``length`` rows."""
        if compiled.kernels is not None and self._hash is hash_rows and (layout := Layout.of(columns)) is not None:
            return self.of_layout(layout)
        keys = columns[: self._key_count]
        if self.span == EVERYTHING:
            return self._hash(columns, length, Equality.IDENTITY)
        codes = self._hash(keys, length, Equality.GROUPING)
        if self.span == NOTHING:
            return codes
        rest = columns if self._float_keys else columns[self._key_count :]
        # In place: for a bulk load, the fresh memory of temporaries costs more than the arithmetic.
        codes &= _HIGH
        lower = self._hash(rest, length, Equality.IDENTITY)
        lower &= _LOW
        codes |= lower
        return codes

    def of_layout(self, layout: Layout) -> UInt64s:
        """The same by compiled kernels, of columns whose layout is known; not to be changed."""
        if self.span != _LOW:
            return hash_layout(layout, Equality.IDENTITY if self.span == EVERYTHING else Equality.GROUPING)
        if layout.keyed is not None and layout.keyed[0] == self._key_count:
            return layout.keyed[1]
        codes: UInt64s = compiled.kernels.keyed_codes(
            layout.address, layout.count, self._key_count, layout.length, self._float_keys
        )
        if layout.length <= _REMEMBERED:
            layout.keyed = self._key_count, codes
        return codes

    def of_keys(self, layout: Layout) -> UInt64s:
        """The least code that a row with the key may have, of rows whose first columns are keys."""
        if self.span == _LOW and layout.keyed is not None and layout.keyed[0] == self._key_count:
            return layout.keyed[1] & _HIGH
        keys: UInt64s = compiled.kernels.hash_table(layout.address, self._key_count, layout.length, True)  # noqa: FBT003
        return keys & ~self.span
