"""The first level at which each row of a recursion is found, while rows come to be derived more or less often.

A row may be derived at many levels, by counts of its own at each; it is found at the first of them and nowhere else.
A row therefore never holds itself up around a cycle: what derives it at its first level was found before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.layered import LayeredArrangement
from weirflow.ivm.zset.batch import Batch, add_segments, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.rows import group_rows

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import ProbeResult
    from weirflow.ivm.zset.batch import Int64s

LEVEL = pa.int32()
"""The type of levels: what the base gives is at level 0."""
_NEVER = np.iinfo(np.int32).max


class FirstLevels:
    """How often each row is derived at each level; ``change`` is called for ascending levels within a tick.

    Args:
        types: of the rows, in which floats are normalised.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.derived = LayeredArrangement((*types, LEVEL), len(types))
        self._waiting: dict[int, list[Batch]] = {}

    @property
    def due(self) -> Iterable[int]:
        """The levels for which ``change`` must be called though nothing is derived there that was not before."""
        return self._waiting

    def change(self, level: int, delta: Batch) -> Batch:
        """How the rows found at ``level`` change, given the change of how often they are derived there."""
        rows = _different([delta, *self._waiting.pop(level, [])])
        if len(delta):
            self.derived.insert(at_level(delta, level))
        before = self.derived.probe_stored(rows.columns)
        after = self.derived.probe(rows.columns, consolidated=True)
        old = _first(before, len(rows))
        new = _first(after, len(rows))  # counts above this level may still change, but they do not decide about it
        # A row that is now found earlier leaves its old level, one that was lost may be found at its next one.
        moved = (old <= level) != (new <= level)
        self._wait(rows, np.where(moved, _first(before, len(rows), above=level), _NEVER))
        change = (new == level).astype(np.int64) - (old == level)
        return Batch(rows.columns, change).filter(change != 0)

    def keep(self) -> None:
        """Make the tick's changes permanent."""
        self.derived.keep()

    def forget(self) -> None:
        """Drop the tick's changes, which may have ended between two levels."""
        self.derived.forget()
        self._waiting.clear()

    def _wait(self, rows: Batch, levels: Int64s) -> None:
        """Look at the rows again when it is their level's turn."""
        for level in np.unique(levels[levels != _NEVER]).tolist():
            self._waiting.setdefault(level, []).append(rows.filter(levels == level))


def at_level(batch: Batch, level: int) -> Batch:
    """The rows with their level as a last column."""
    return Batch((*batch.columns, pa.array(np.full(len(batch), level, np.int32))), batch.weights)


def _different(batches: Sequence[Batch]) -> Batch:
    """Each different row once, whatever its weights."""
    rows = Batch.concat(batches)
    if len(batches) == 1:
        return rows
    order, starts, _ = group_rows(rows.columns, len(rows))
    return Batch(take_columns(rows.columns, order[starts]), add_segments(rows.weights[order], starts))


def _first(matches: ProbeResult, count: int, *, above: int = -1) -> Int64s:
    """For each of ``count`` probe rows the first level behind ``above`` at which it is derived."""
    levels = raw_values(matches.batch.columns[-1])
    counted = (matches.batch.weights > 0) & (levels > above)
    first = np.full(count, _NEVER, np.int64)
    np.minimum.at(first, matches.probe_index[counted], levels[counted])
    return first
