"""RANGE frames that reach some way in the values of the sort key: a number, days of a date, microseconds of a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.failures import overflow, small_overflow
from weirflow.ivm.kernel.expressions.times.clocks import clock_of
from weirflow.ivm.zset.buffers import raw_values

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.ivm.operators.window.ordered import OrderedPartitions

_KEY = 1
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32}
"""Of types whose values Spark adds in their own width; all others have 64."""


class ValueBound:
    """One side of a frame: the place of the sort key plus ``offset`` (counted in the order's direction).

    Days by the clocks of a ``zone`` may bring a later key to an earlier bound; as in Spark a frame never goes back. A
    NULL is as far from everything else as can be: its bound is that of its peers.

    Attributes:
        at: for each sorted row, where rows with that key begin; with ``behind``, where they end.
    """

    def __init__(self, rows: OrderedPartitions, offset: int, zone: str | None, *, behind: bool) -> None:
        self._key = rows.keys[0]
        self._shift = -offset if rows.descending else offset
        limit = 1 << _BITS.get(self._key.type, 64) - 1
        values = raw_values(self._key).astype(np.int64)
        present = np.ones(rows.count, np.bool_)
        if self._key.null_count:
            present = self._key.is_valid().to_numpy(zero_copy_only=False)
        outside = values > limit - 1 - self._shift if self._shift > 0 else values < -limit - self._shift
        self._outside = outside & present
        bounds = values + self._shift if zone is None else clock_of(zone).later(values, self._shift)
        # Complements sort the other way and differ as much.
        if rows.descending:
            values, bounds = ~values, ~bounds
        far = np.where(outside, np.sign(offset), 0)
        here = np.flatnonzero(present)
        found = _places(rows.begin[here], values[here], bounds[here], far[here], behind=behind)
        self.at = np.where(present, 0, rows.peer_end if behind else rows.peer_begin)
        self.at[here] = found + _shifts(rows.begin[here], here)
        if zone is not None:
            self.at = np.maximum.accumulate(self.at)

    @property
    def leaves_type(self) -> bool:
        """Whether a row's bound is no value of the sort key's type."""
        return bool(self._outside.any())

    def check(self, needed: np.ndarray, position: SqlPosition | None) -> None:
        """Raise as Spark does if the bound of one of the ``needed`` rows is no value of the sort key's type."""
        wrong = np.flatnonzero(self._outside & needed)
        if not len(wrong):
            return
        kind = self._key.type
        if kind in (pa.int8(), pa.int16()):
            raise small_overflow(self._key[int(wrong[0])].as_py(), "+", self._shift, position)
        raise overflow("integer" if kind == pa.int32() else "long", position)


def _places(
    partition: np.ndarray, keys: np.ndarray, bounds: np.ndarray, far: np.ndarray, *, behind: bool
) -> np.ndarray:
    """How many keys, of all partitions, come before each bound; with ``behind``, also those equal to it.

    ``far`` is -1 or 1 for bounds before or behind all keys, whatever their number.
    """
    count = len(keys)
    kind = np.repeat([_KEY, _KEY + 1 if behind else _KEY - 1], count)
    order = np.lexsort(
        (kind, np.concatenate([keys, bounds]), np.concatenate([np.zeros_like(far), far]), np.tile(partition, 2))
    )
    is_key = order < count
    places = np.empty(count, np.int64)
    places[order[~is_key] - count] = np.cumsum(is_key)[~is_key]
    return places


def _shifts(partition: np.ndarray, here: np.ndarray) -> np.ndarray:
    """How much further than among the rows ``here`` a row is among all; those of a partition lie together."""
    first = np.searchsorted(partition, partition)
    shifts: np.ndarray = here[first] - first
    return shifts
