"""Listed rows: for each query, by its number, the documents near to it, in order of their distance.

Columns are the number, the distance and what is wanted of the document. What stands beside a distance is all that is
known of a document here: those that look the same are one row, and count as often as there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words
from weirflow.ivm.zset.batch import Batch, add_segments, take_columns
from weirflow.ivm.zset.buffers import raw_values, validity

if TYPE_CHECKING:
    from weirflow.ivm.kernel.vectors.vectors import Doubles
    from weirflow.ivm.zset.batch import Bools, Int64s

NUMBER, DISTANCE = 0, 1
FIRST = 2
"""Where the columns of documents begin."""


def numbers(rows: Batch) -> Int64s:
    """The queries that rows are listed for."""
    found: Int64s = raw_values(rows.columns[NUMBER])
    return found


def listed(number: Int64s, values: Doubles, valid: Bools, documents: Batch) -> Batch:
    """Documents listed for queries, pair by pair."""
    distance = pa.array(values, mask=None if valid.all() else ~valid)
    return Batch((pa.array(number), distance, *documents.columns), documents.weights)


@dataclass(frozen=True)
class ListOrder:
    """How the documents of a query are ordered.

    Attributes:
        nulls_first: whether a distance that is NULL comes before all others.
        keys: which columns decide between equal distances; then all do.
    """

    nulls_first: bool
    keys: tuple[SortColumn, ...] = ()

    def columns(self) -> list[SortColumn]:
        """The order of listed rows."""
        return [SortColumn(NUMBER), SortColumn(DISTANCE, nulls_first=self.nulls_first), *self.keys]

    def sorted(self, rows: Batch) -> SortedRows:
        """The rows in order, each once."""
        if not len(rows):
            return SortedRows(rows, np.empty(0, np.int64))
        words = sort_words(rows.columns, self.columns())
        order = np.lexsort(words[::-1])
        fresh = np.zeros(len(rows), np.bool_)
        fresh[0] = True
        for word in words:
            placed = word[order]
            fresh[1:] |= placed[1:] != placed[:-1]
        starts = np.flatnonzero(fresh)
        place = np.empty(len(rows), np.int64)
        place[order] = np.cumsum(fresh) - 1
        weights = add_segments(rows.weights[order], starts)
        return SortedRows(Batch(take_columns(rows.columns, order[starts]), weights), place)

    def places(self, documents: Batch) -> Int64s:
        """The order of documents that are equally far, without a query and a distance before them."""
        keys = [SortColumn(key.index - FIRST, key.descending, key.nulls_first) for key in self.keys]
        words = sort_words(documents.columns, keys)
        return np.lexsort(words[::-1]) if words else np.arange(len(documents))


@dataclass(frozen=True)
class SortedRows:
    """Rows in order, each once with the sum of its weights, and where each row that was given is among them."""

    rows: Batch
    place: Int64s


@dataclass(frozen=True)
class Lists:
    """Ordered rows of several queries, one behind the other.

    Attributes:
        numbers: the queries that have rows, ascending.
        starts: where the rows of each begin; the last is the end.
    """

    rows: Batch
    numbers: Int64s
    starts: Int64s

    @classmethod
    def of(cls, rows: Batch) -> Lists:
        """Those of ordered rows."""
        own = numbers(rows)
        first = np.flatnonzero(np.diff(own, prepend=own[:1] - 1)) if len(own) else np.empty(0, np.int64)
        return cls(rows, own[first], np.append(first, len(own)))

    @property
    def lengths(self) -> Int64s:
        """How many different rows each query has."""
        return np.diff(self.starts)

    def cut(self, most: int) -> Lists:
        """The rows of each query until there are ``most`` documents, or more where the last row is several."""
        if not len(self.rows) or int(self.counts().max()) <= most:
            return self
        return Lists.of(self.rows.filter(self._before() < most))

    def _before(self) -> Int64s:
        """How many documents of its query come before each row."""
        end = np.cumsum(self.rows.weights)
        first = self.starts[:-1]
        found: Int64s = end - self.rows.weights - np.repeat(end[first] - self.rows.weights[first], self.lengths)
        return found

    def counts(self) -> Int64s:
        """How many documents each query has."""
        return add_segments(self.rows.weights, self.starts[:-1]) if len(self.rows) else np.empty(0, np.int64)

    def last_distances(self) -> tuple[Doubles, Bools]:
        """The distance of the last row of each, and whether it is not NULL."""
        last = self.starts[1:] - 1
        column = self.rows.columns[DISTANCE]
        valid = validity(column)
        there = np.ones(len(last), np.bool_) if valid is None else valid[last]
        return raw_values(column)[last], there

    def firsts(self, limit: int, *, ranked: bool) -> Batch:
        """The first ``limit`` documents of each query, with a last column for their place from 1 on if ``ranked``.

        A row that is there several times counts as often; ranked, it is that many rows.
        """
        begin = self._before()
        count = np.clip(limit - begin, 0, self.rows.weights)
        kept = np.flatnonzero(count)
        chosen = Batch(take_columns(self.rows.columns, kept), count[kept])
        if not ranked:
            return chosen
        repeated = np.repeat(np.arange(len(kept)), count[kept])
        total = np.cumsum(count[kept])
        within = np.arange(len(repeated)) - np.repeat(total - count[kept], count[kept])
        rank = np.repeat(begin[kept], count[kept]) + within
        columns = take_columns(chosen.columns, repeated)
        return Batch((*columns, pa.array((rank + 1).astype(np.int32))), np.ones(len(repeated), np.int64))
