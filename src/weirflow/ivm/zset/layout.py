"""``Layout``: where the values of columns lie in memory, for compiled kernels that read whole rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s, UInt64s

_KINDS = {
    pa.bool_().id: 1,
    pa.int8().id: 2,
    pa.int16().id: 3,
    pa.int32().id: 4,
    pa.date32().id: 4,
    pa.int64().id: 5,
    pa.uint64().id: 5,
    pa.timestamp("us").id: 5,
    pa.duration("us").id: 5,
    pa.float32().id: 6,
    pa.float64().id: 7,
    pa.decimal128(1).id: 8,
    pa.string().id: 9,
    pa.binary().id: 9,
}
"""By Arrow's number of a type, the number that ``compiled.tables`` has for its kind of values."""
_TEXT = 9
WIDTHS = (0, 0, 1, 2, 4, 8, 4, 8, 16, 0)
"""Bytes of a value of each kind; 0 for those that ``gather`` does not copy."""

Place = tuple[int, int, int, int, int]
"""One column of a table, as ``compiled.tables`` describes it."""


class Layout:
    """The addresses of columns of equal length. They are valid while it is there, since it holds what they are of.

    Attributes:
        address: of the table, as ``compiled.tables`` describes it.
        count: how many columns there are.
        length: how many rows there are.
        identities: the hashes of the rows by ``Equality.IDENTITY``, once somebody has asked for them.
        keyed: by how many of the first columns somebody has asked for the codes of the rows, and these.
    """

    __slots__ = ("_held", "_table", "address", "count", "identities", "keyed", "length")

    def __init__(self, table: Int64s, length: int, held: object, address: int | None = None) -> None:
        self._table = table
        self.address = pa.py_buffer(table).address if address is None else address
        self.count = len(table)
        self.length = length
        self.identities: UInt64s | None = None
        self.keyed: tuple[int, UInt64s] | None = None
        self._held = held

    def __reduce__(self) -> NoReturn:
        raise TypeError("a layout holds addresses of this process")

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> Layout | None:
        """The layout of columns; None if there are none, no rows, or types that kernels do not read."""
        places = places_of(columns)
        return cls(np.array(places, np.int64), len(columns[0]), columns) if places and len(columns[0]) else None

    @property
    def table(self) -> Int64s:
        """The table, a row for each column; it is only read."""
        return self._table

    @property
    def kinds(self) -> Sequence[int]:
        """The number of each column's kind of values."""
        kinds: list[int] = self._table[:, 0].tolist()
        return kinds

    def select(self, columns: Sequence[int]) -> Layout:
        """The layout of some of the columns."""
        return Layout(self._table[list(columns)], self.length, self)


def places_of(columns: Iterable[pa.Array]) -> list[Place] | None:
    """Where columns lie; None if kernels cannot read one of them."""
    places: list[Place] = []
    for column in columns:
        kind = _KINDS.get(column.type.id)
        if kind is None:
            return None
        valid, data, *texts = column.buffers()
        offsets = 0
        if kind == _TEXT and data is not None:
            offsets, data = data.address, texts[0]
        if data is None:
            return None
        places.append((kind, valid.address if column.null_count else 0, data.address, offsets, column.offset))
    return places
