"""``FirstRows``: the first row of each group in some order, found without reading the group.

The first row after a delta that retracts r rows is among the first 1 + r old rows and the inserted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.sorting import sorted_batch
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import ProbeResult


class FirstRows:
    """Rows of (key, ordering values, ..., value), of which the last column of the first one is asked for.

    Attributes:
        rows: the rows, in order within each group.

    Args:
        types: of all columns.
        key_count: how many of them are the key.
        descending: for each column that orders, whether the largest value comes first.
    """

    def __init__(self, types: Sequence[pa.DataType], key_count: int, descending: Sequence[bool]) -> None:
        self._key_count = key_count
        self._order = [SortColumn(key_count + place, descending=down) for place, down in enumerate(descending)]
        self.rows = OrderedArrangement(types, key_count, self._order)

    def values(
        self, keys: Sequence[pa.Array], count: int, own: Batch, numbers: np.ndarray
    ) -> tuple[pa.Array, pa.Array]:
        """The values asked for of groups with these keys, before and after rows of theirs came or went."""
        retracted = np.bincount(numbers, np.maximum(-own.weights, 0), count)
        old = self.rows.first(keys, 1 + int(retracted.max(initial=0)))
        before = _first_values(old.probe_index, old.batch.columns[-1], count)
        return before, self._after(old, own, numbers, count) if len(own) else before

    def _after(self, old: ProbeResult, own: Batch, numbers: np.ndarray, count: int) -> pa.Array:
        """The first values once the delta is applied to the old first rows."""
        kept = self._key_count
        parts = [
            Batch((pa.array(old.probe_index), *old.batch.columns[kept:]), old.batch.weights),
            Batch((pa.array(numbers), *own.columns[kept:]), own.weights),
        ]
        merged = consolidate(Batch.concat(parts))
        merged = merged.filter(merged.weights > 0)
        order = [replace(column, index=column.index - kept + 1) for column in self._order]
        ranked = sorted_batch(merged, [SortColumn(0), *order])
        return _first_values(ranked.columns[0].to_numpy(), ranked.columns[-1], count)


def _first_values(numbers: np.ndarray, values: pa.Array, count: int) -> pa.Array:
    """The value at the first place of each group number; NULL for groups that do not appear."""
    first = np.full(count, -1, np.int64)
    present, at = np.unique(numbers, return_index=True)
    first[present] = at
    return values.take(pa.array(first, mask=first < 0))
