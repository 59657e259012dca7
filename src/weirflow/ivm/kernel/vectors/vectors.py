"""``Vectors``: a column of arrays of floats as one run of numbers, without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weirflow.ivm.zset.buffers import raw_values, validity, value_offsets
from weirflow.ivm.zset.lists import stretches

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from weirflow.ivm.zset.batch import Bools, Int64s

    Floats = npt.NDArray[Any]
    Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vectors of some rows.

    Attributes:
        values: the numbers of all of them, FLOAT or DOUBLE.
        starts: where in ``values`` each begins.
        lengths: how many numbers each has; 0 where there is none.
        usable: whether there is a vector, and none of its numbers is NULL.
    """

    values: Floats
    starts: Int64s
    lengths: Int64s
    usable: Bools

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, column: pa.Array) -> Vectors:
        """Those of a column of type ARRAY<FLOAT> or ARRAY<DOUBLE>."""
        offsets = value_offsets(column)
        values = column.values
        lengths = np.diff(offsets)
        valid = validity(column)
        usable = np.ones(len(column), np.bool_) if valid is None else valid.copy()
        inside = validity(values) if values.null_count else None
        if inside is not None:
            missing = np.concatenate([[0], np.cumsum(~inside)])
            usable &= missing[offsets[1:]] == missing[offsets[:-1]]
        return cls(raw_values(values), offsets[:-1], np.where(usable, lengths, 0), usable)

    def take(self, at: Int64s | slice) -> Vectors:
        """Those at these places."""
        return Vectors(self.values, self.starts[at], self.lengths[at], self.usable[at])

    def matrix(self, first: int, last: int, dimension: int) -> Floats | None:
        """The rows from ``first`` to before ``last`` as a matrix, where they lie so; None where they do not."""
        if last == first:
            return self.values[:0].reshape(0, dimension)
        start = int(self.starts[first])
        end = start + (last - first) * dimension
        if end > len(self.values) or not self.usable[first:last].all():
            return None
        lengths = self.lengths[first:last]
        if (lengths != dimension).any() or int(self.starts[last - 1]) + dimension != end:
            return None
        return self.values[start:end].reshape(last - first, dimension)

    def gathered(self, at: Int64s, dimension: int) -> Floats:
        """The rows at ``at``, each of this dimension, as a matrix of their own."""
        return stretches(self.values, self.starts[at], dimension)
