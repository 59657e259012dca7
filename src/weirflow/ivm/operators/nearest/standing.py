"""Standing queries: the rows that ask, each with a number under which documents are listed for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.operators.nearest.search import Questions
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.rows import equal_rows_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.ivm.kernel.vectors.vectors import Doubles, Vectors
    from weirflow.ivm.zset.batch import Int64s, UInt64s
    from weirflow.types import VectorMetric


@dataclass(frozen=True, eq=False)
class Standing:
    """All queries at one moment, and what is known of the documents that are listed for them.

    Attributes:
        numbers: of the queries, ascending.
        rows: the queries, with their weights.
        vectors: their vectors.
        bars: the measure up to which every document is listed; infinite where all are.
        counts: how many documents are listed for each.
        documents: how many there are.
        hashes: of the rows.
        free: a number that no query has had.
    """

    metric: VectorMetric
    dtype: np.dtype
    numbers: Int64s
    rows: Batch
    vectors: Vectors
    bars: Doubles
    counts: Int64s
    documents: int
    hashes: UInt64s
    free: int

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def questions(self) -> Questions:
        """The queries as a search wants them."""
        return Questions.of(self.metric, self.vectors, self.dtype)

    @cached_property
    def _by_hash(self) -> tuple[UInt64s, Int64s]:
        """The hashes in ascending order, and whose they are."""
        order = np.argsort(self.hashes, kind="stable")
        return self.hashes[order], order

    def places(self, numbers: Int64s) -> Int64s:
        """Where the queries of these numbers are; they are there."""
        return np.searchsorted(self.numbers, numbers)

    def find(self, rows: Batch) -> Int64s:
        """Where rows that are identical to these are; -1 for those that are not."""
        found = np.full(len(rows), -1, np.int64)
        if not len(self.rows) or not len(rows):
            return found
        hashes, order = self._by_hash
        wanted = hashes_of(rows)
        first, last = np.searchsorted(hashes, wanted), np.searchsorted(hashes, wanted, side="right")
        for step in range(int((last - first).max())):  # several only where hashes collide
            asked = np.flatnonzero((found < 0) & (first + step < last))
            place = order[first[asked] + step]
            equal = equal_rows_at(rows.columns, asked, self.rows.columns, place, Equality.IDENTITY)
            found[asked[equal]] = place[equal]
        return found

    def with_lists(self, numbers: Int64s, bars: Doubles, counts: Int64s, documents: int) -> Standing:
        """The same queries, of which some have other lists now, among so many documents."""
        at = self.places(numbers)
        new_bars, new_counts = self.bars.copy(), self.counts.copy()
        new_bars[at], new_counts[at] = bars, counts
        changed = replace(self, bars=new_bars, counts=new_counts, documents=documents)
        for known in ("questions", "_by_hash"):
            if known in self.__dict__:
                changed.__dict__[known] = self.__dict__[known]
        return changed

    def changed(self, change: QueryChange, vectors: Callable[[Batch], Vectors]) -> Standing:
        """The queries after a change; those that are new have no list yet."""
        weights = self.rows.weights.copy()
        weights[change.before] += change.gained
        stays = weights > 0
        count = len(change.new)
        rows = Batch.concat([Batch(self.rows.columns, weights).filter(stays), change.new])
        return Standing(
            self.metric,
            self.dtype,
            np.concatenate([self.numbers[stays], self.numbers_of(change)]),
            rows,
            vectors(rows),
            np.concatenate([self.bars[stays], np.full(count, np.inf)]),
            np.concatenate([self.counts[stays], np.zeros(count, np.int64)]),
            self.documents,
            np.concatenate([self.hashes[stays], hashes_of(change.new)]),
            self.free + count,
        )

    def numbers_of(self, change: QueryChange) -> Int64s:
        """The numbers that new queries get."""
        return np.arange(self.free, self.free + len(change.new))


def hashes_of(rows: Batch) -> UInt64s:
    """A hash for each query: equal for identical ones."""
    return hash_rows(rows.columns, len(rows), Equality.IDENTITY)


@dataclass(frozen=True, eq=False)
class QueryChange:
    """How the queries change in a tick.

    Attributes:
        before: where those that change are among the old ones, without those that are new.
        gained: by how much the weight of each changes.
        new: rows that were not there.
    """

    before: Int64s
    gained: Int64s
    new: Batch

    @classmethod
    def of(cls, standing: Standing, delta: Batch) -> QueryChange:
        """The change that a delta makes; each row is in it once."""
        at = standing.find(delta)
        known = at >= 0
        return cls(at[known], delta.weights[known], delta.filter(~known & (delta.weights > 0)))
