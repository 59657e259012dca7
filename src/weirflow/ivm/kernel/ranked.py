"""``RankedArrangement``: weighted values by key, of which the one at a rank is found without reading the key's rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.codes import KeyCodes
from weirflow.ivm.kernel.ordered import OrderedRuns
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.kernel.runs.search import Needles
from weirflow.ivm.kernel.runs.spine import SpineState
from weirflow.ivm.kernel.selection import RankedValues, RunRanges
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.hashing import Equality, RowHash, hash_rows
from weirflow.ivm.zset.rows import equal_rows_at, expand_ranges

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

_EXACT = np.uint64(0)
_MARK = np.uint64(0)


class RankedArrangement(SpineState):
    """Values by key, as words that compare as they do, with how often each is there. No word is 0.

    Keys compare as GROUP BY does. A run has the keys and the words as columns, sorted by the hash of the key and then
    by word, so that a key's words ascend. Where hashes collide, they do not: a key that comes to a hash where another
    one is leaves a *mark* there, a row with the word 0. The rows behind a mark are read one by one.
    """

    def __init__(
        self,
        key_types: Iterable[pa.DataType],
        *,
        runs: Iterable[Run] = (),
        row_hash: RowHash = hash_rows,
        spill: Path | None = None,
    ) -> None:
        self.key_types = tuple(key_types)
        self._run_order = OrderedRuns(())
        self._codes = KeyCodes(len(self.key_types), row_hash)
        super().__init__(self._run_order, runs, spill, self._codes)

    def sorted(self, keys: Sequence[pa.Array], words: UInt64s, weights: Int64s, codes: UInt64s | None = None) -> Run:
        """A change of the values, for ``insert``; ``codes`` are the keys' hashes, where the caller knows them."""
        if codes is None:
            codes = self._codes(keys, len(words))
        return self._run_order.sorted(codes, (*keys, pa.array(words)), weights.reshape(-1, 1))

    def ranking(self, keys: Sequence[pa.Array], codes: UInt64s | None = None) -> Ranking:
        """The values of each of these keys, which are different ones; without key columns there is one key."""
        if codes is None:
            codes = self._codes(keys, len(keys[0]) if keys else 1)
        return Ranking(keys, codes).including(*self._spine.runs)

    def insert(self, rows: Run, after: Ranking) -> None:
        """Apply a change of keys that are in ``after``, the ranking of which it is the last part."""
        self._spine.insert_run(rows)
        marked = np.flatnonzero(after.mixed)
        if len(marked):
            marks = np.full(len(marked), _MARK), np.ones(len(marked), np.int64)
            self._spine.insert_run(self.sorted(take_columns(after.keys, marked), *marks, after.codes[marked]))


class Ranking:
    """The values of some keys in several runs, at one moment.

    Attributes:
        keys, codes: the keys, all different, and their hashes.
        mixed: of which keys the hash is that of another one, too.
    """

    def __init__(
        self, keys: Sequence[pa.Array], codes: UInt64s, found: Sequence[RunRanges] = (), mixed: Bools | None = None
    ) -> None:
        self.keys = keys
        self.codes = codes
        self.mixed = _repeated(codes) if mixed is None else mixed
        self._found = found

    def including(self, *runs: Run) -> Ranking:
        """The same with the rows of more runs."""
        needles = Needles(self.keys, self.codes, _EXACT, Equality.GROUPING)
        mixed = self.mixed.copy()
        found = list(self._found)
        for run in runs:
            key, first, size = needles.ranges(run)
            if not len(key):
                continue
            low, high = np.zeros(len(self.codes), np.int64), np.zeros(len(self.codes), np.int64)
            low[key], high[key] = first, first + size
            found.append(RunRanges(run, low, high))
            own = equal_rows_at(run.columns[:-1], first, self.keys, key, Equality.GROUPING)
            mixed[key] |= ~own | (found[-1].words[first] == _MARK)
        return Ranking(self.keys, self.codes, found, mixed)

    @cached_property
    def values(self) -> RankedValues:
        """The values of each key."""
        parts = self._found
        if self.mixed.any():
            parts = [part for one in parts for part in (self._unmixed(one), self._set_apart(one)) if len(part.run)]
        return RankedValues(parts, len(self.codes))

    def _unmixed(self, found: RunRanges) -> RunRanges:
        return RunRanges(found.run, found.low, np.where(self.mixed, found.low, found.high))

    def _set_apart(self, found: RunRanges) -> RunRanges:
        """The rows of keys with mixed hashes, each key's by themselves."""
        mixed = np.flatnonzero(self.mixed)
        size = found.high[mixed] - found.low[mixed]
        places, owner = expand_ranges(found.low[mixed], size), mixed.repeat(size)
        words, weights = found.words[places], found.run.values[places]
        own = equal_rows_at(found.run.columns[:-1], places, self.keys, owner, Equality.GROUPING) & (words != _MARK)
        owner = owner[own]
        run = Run(owner.astype(np.uint64), (pa.array(words[own]),), weights[own])
        every = np.arange(len(self.codes))
        return RunRanges(run, owner.searchsorted(every), owner.searchsorted(every, "right"))


def _repeated(codes: UInt64s) -> Bools:
    """Which codes are there several times."""
    repeated = np.zeros(len(codes), np.bool_)
    order = np.argsort(codes, kind="stable")
    again = np.flatnonzero(codes[order[1:]] == codes[order[:-1]])
    repeated[order[again]] = repeated[order[again + 1]] = True
    return repeated
