"""Rows of a batch in Spark's order, ties broken by all columns as ordered state breaks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Batch


def sorted_batch(rows: Batch, order: Sequence[SortColumn]) -> Batch:
    """The rows sorted by ``order``, then by all columns."""
    if not len(rows):
        return rows
    return rows.take(np.lexsort(sort_words(rows.columns, order)[::-1]))
