"""Weights of many rows that take no memory: most rows occur once.

Where every weight is 1, the weights are one number that is seen at each row: an array whose stride is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s

MANY = 1 << 18
"""Of so many rows, weights are worth the look whether all of them are 1."""
FEW = 1024
"""So few rows with other weights among many are kept apart from them."""


def all_one(count: int) -> Int64s:
    """The weights of rows that occur once; they cannot be written to."""
    return np.broadcast_to(np.int64(1), (count, 1))


def are_all_one(values: Int64s) -> bool:
    """Whether values were made by ``all_one``, or cut out of such."""
    return len(values) > 0 and values.strides[0] == 0 and values[0, 0] == 1


def divided(values: Int64s) -> tuple[Int64s, Int64s] | None:
    """Which of many weights are 1, and which few are not; None if these are too many, or all of them are not many."""
    if len(values) < MANY:
        return None
    once = values[:, 0] == 1
    if len(once) - np.count_nonzero(once) > FEW:
        return None
    return np.flatnonzero(once), np.flatnonzero(~once)
