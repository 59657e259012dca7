"""Window functions that return the value of another row: of the frame, or some rows away; NULLs may not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from weirflow.ivm.operators.window.ordered import OrderedPartitions
    from weirflow.sql.expr import WindowCall

    Arguments = Sequence[pa.Array]
    WindowFunction = Callable[[OrderedPartitions, Arguments, WindowCall], pa.Array]


class Candidates:
    """The sorted rows whose values count: all, or with IGNORE NULLS those that have one."""

    def __init__(self, value: pa.Array, call: WindowCall) -> None:
        self._value = value
        counts = np.ones(len(value), np.bool_)
        if call.ignore_nulls and value.null_count:
            counts = value.is_valid().to_numpy(zero_copy_only=False)
        # Behind the last candidate comes a place that is outside of everything.
        self._places = np.append(np.flatnonzero(counts), len(value))
        self._before = np.concatenate([[0], np.cumsum(counts)])

    def nth(self, row: np.ndarray, n: np.ndarray | int) -> np.ndarray:
        """The place of the n-th candidate from ``row`` on, itself included if n is 0; before it if n is negative."""
        number = self._before[row] + n
        last = len(self._places) - 1
        places: np.ndarray = self._places[np.where((number >= 0) & (number < last), number, last)]
        return places

    def taken(self, at: np.ndarray, inside: np.ndarray) -> pa.Array:
        """The values at these places, NULL where they are not ``inside``."""
        return self._value.take(pa.array(np.where(inside, at, 0), mask=~inside))


def first_value(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The first value of the frame."""
    low, high = rows.frame(call)
    candidates = Candidates(arguments[0], call)
    at = candidates.nth(low, 0)
    return candidates.taken(at, at < high)


def last_value(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The last value of the frame."""
    low, high = rows.frame(call)
    candidates = Candidates(arguments[0], call)
    at = candidates.nth(high, -1)
    return candidates.taken(at, (at >= low) & (at < high))


def nth_value(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The n-th value of the frame, counted from 1."""
    low, high = rows.frame(call)
    candidates = Candidates(arguments[0], call)
    at = candidates.nth(low, _integers(arguments[1]) - 1)
    return candidates.taken(at, at < high)


def shifted(direction: int) -> WindowFunction:
    """LAG (-1) and LEAD (1): the value some rows away in the partition, else the default of the row itself."""

    def function(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
        value, offset, default = arguments
        away = direction * _integers(offset)
        here = np.arange(rows.count)
        candidates = Candidates(value, call)
        at = np.where(away > 0, candidates.nth(here + 1, away - 1), candidates.nth(here, away))
        # No rows away is the row itself, NULL or not.
        at = np.where(away == 0, here, at)
        inside = (at >= rows.begin) & (at < rows.end)
        both = pa.concat_arrays([candidates.taken(at, inside), default])
        return both.take(pa.array(here + np.where(inside, 0, rows.count)))

    return function


def _integers(argument: pa.Array) -> np.ndarray:
    values: np.ndarray = argument.to_numpy(zero_copy_only=False).astype(np.int64)
    return values
