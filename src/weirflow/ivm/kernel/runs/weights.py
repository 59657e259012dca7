"""Weights of many rows that take no memory: most rows occur once.

Where every weight is 1, the weights are one number that is seen at each row: an array whose stride is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s

MANY = 1 << 18
"""Of so many rows, weights are worth the look whether all of them are 1."""
FEW = 1024
"""So few rows with other weights among many are kept apart from them."""


_ONE = np.ones((1, 1), np.int64)


def all_one(count: int) -> Int64s:
    """The weights of rows that occur once; they cannot be written to."""
    return np.broadcast_to(_ONE, (count, 1))


def are_all_one(values: Int64s) -> bool:
    """Whether values were made by ``all_one``, or cut out of such."""
    return len(values) > 0 and values.strides[0] == 0 and values[0, 0] == 1


def place(values: Int64s) -> tuple[int, int] | None:
    """The address of the first values and how many bytes lie from row to row; None if they do not lie row by row."""
    if are_all_one(values):
        return pa.py_buffer(_ONE).address, 0
    return (pa.py_buffer(values).address, values.strides[0]) if values.flags.c_contiguous else None


def divided(values: Int64s) -> tuple[Int64s, Int64s] | None:
    """Which of many weights are 1, and which few are not; None if these are too many, or all of them are not many."""
    if len(values) < MANY:
        return None
    once = values[:, 0] == 1
    if len(once) - np.count_nonzero(once) > FEW:
        return None
    return np.flatnonzero(once), np.flatnonzero(~once)
