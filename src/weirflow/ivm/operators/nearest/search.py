"""Search finds the first documents for each of some queries: bounds tell which pairs are worth a distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.vectors.bounds import Asked, Kind, Profile, Scores, asked, bars, profile, scores
from weirflow.ivm.kernel.vectors.distances import distances
from weirflow.ivm.operators.nearest.listed import ListOrder, Lists, listed
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weirflow.ivm.kernel.vectors.vectors import Doubles, Vectors
    from weirflow.ivm.operators.nearest.documents import Part
    from weirflow.ivm.zset.batch import Bools, Int64s
    from weirflow.types import VectorMetric

_SCORES = 1 << 20
"""So many pairs are scored at once: more do not stay in the processor's cache."""
_MOST_ROWS = 1 << 16
_PENDING = 1 << 19
"""With more pairs than that in doubt, distances are computed to have less."""
_SAMPLE, _SAMPLE_FOR_EACH = 8192, 256
"""Among at least so many rows, and so many for each that is wanted, the first bar of a query is looked for."""
_DENSE = 4
"""A block of which fewer than one in so many rows are searched is gathered first."""


class Pairs(NamedTuple):
    """Queries and documents of one part, pair by pair, and between which measures their distance is."""

    query: Int64s
    row: Int64s
    least: Doubles
    greatest: Doubles


@dataclass(frozen=True, eq=False)
class Questions:
    """Vectors to which others may be near.

    Attributes:
        groups: the plain ones, by dimension.
        odd: which ones are not plain.
    """

    metric: VectorMetric
    vectors: Vectors
    profile: Profile
    groups: Sequence[Asked]
    odd: Int64s

    @classmethod
    def of(cls, metric: VectorMetric, vectors: Vectors, dtype: np.dtype) -> Questions:
        """Questions for products of numbers of this type."""
        known = profile(vectors, metric, dtype.itemsize)
        odd = np.flatnonzero(known.kinds != Kind.PLAIN)
        return cls(metric, vectors, known, asked(metric, vectors, known, dtype), odd)

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, at: Int64s, dtype: np.dtype[Any]) -> Questions:
        """Those at these places, numbered anew."""
        return Questions.of(self.metric, self.vectors.take(at), dtype)


def near_pairs(questions: Questions, part: Part, bar: Doubles, wanted: Bools) -> tuple[Int64s, Int64s]:
    """Pairs of wanted queries and live rows whose measure is not above the bar of the query for certain."""
    found = [(pairs.query, pairs.row) for pairs in _all_pairs(questions, part, wanted)]
    for group in questions.groups:
        chosen = np.flatnonzero(wanted[group.at])
        if not len(chosen):
            continue
        some = group if len(chosen) == len(group.at) else group.take(chosen)
        own = bar[some.at]
        for block in _blocks(some, part):
            hits = block.below(own)
            found.append((hits.query, hits.row))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    queries, rows = zip(*found, strict=True)
    return np.concatenate(queries), np.concatenate(rows)


def _all_pairs(questions: Questions, part: Part, wanted: Bools) -> Iterator[Pairs]:
    """Pairs of which nothing is known before: of queries or documents that are not plain, or of other dimensions."""
    odd = questions.odd[wanted[questions.odd]]
    if len(odd):
        yield _crossed(odd, np.flatnonzero(part.live))
    for group in questions.groups:
        own = group.at[wanted[group.at]]
        others = np.concatenate(part.unplain(group.dimension))
        if len(own) and len(others):
            yield _crossed(own, others)


def _crossed(queries: Int64s, rows: Int64s) -> Pairs:
    count = len(queries) * len(rows)
    return Pairs(
        np.repeat(queries, len(rows)), np.tile(rows, len(queries)), np.full(count, -np.inf), np.full(count, np.inf)
    )


class _Block(NamedTuple):
    """Some rows of a part, scored for a group of queries."""

    group: Asked
    at: Int64s
    scores: Scores

    def below(self, own: Doubles) -> Pairs:
        """The pairs that may be below the bars of their queries."""
        values = self.scores.values
        # What is left out has a score of -inf, which does not pass even a bar that lets all pass.
        near = values >= self.scores.least(own)[:, np.newaxis]
        near &= values > -np.inf
        # Places in a flat array are found several times as fast as those in a matrix.
        queries, rows = np.divmod(np.flatnonzero(near), near.shape[1])
        low, high = self.scores.measures(queries, values[queries, rows])
        return Pairs(self.group.at[queries], self.at[rows], low, high)

    def bars(self, count: int) -> Doubles:
        """For each query, a measure that ``count`` rows of the block do not exceed; infinite if there are fewer.

        It is found among the first rows alone: not the lowest that there is, but low enough to leave few pairs.
        """
        values = self.scores.values[:, : max(_SAMPLE, _SAMPLE_FOR_EACH * count)]
        if values.shape[1] < count:
            return np.full(len(self.group.at), np.inf)
        cut = values.shape[1] - count
        value = np.partition(values, cut, axis=1)[:, cut]
        return self.scores.measures(np.arange(len(value)), value)[1]


def _blocks(group: Asked, part: Part) -> Iterator[_Block]:
    """The plain live rows of a part, of the group's dimension, a block at a time."""
    dimension, known = group.dimension, part.profile
    searched = part.searched(dimension)
    many = max(1, min(_MOST_ROWS, _SCORES // len(group.at)))
    for first in range(0, len(searched), many):
        check()
        last = min(first + many, len(searched))
        here = searched[first:last]
        count = int(np.count_nonzero(here))
        if not count:
            continue
        matrix = part.vectors.matrix(first, last, dimension) if count * _DENSE >= last - first else None
        if matrix is None:
            at = first + np.flatnonzero(here)
            yield _Block(group, at, scores(group, part.vectors.gathered(at, dimension), known.take(at), None))
        else:
            left_out = None if count == last - first else ~here
            found = scores(group, matrix, known.take(slice(first, last)), left_out)
            yield _Block(group, np.arange(first, last), found)


class Search:
    """The first documents for each of some queries, found part by part.

    Args:
        questions: the queries, numbered from 0.
        order: of documents.
        most: how many documents are wanted for each.
        nothing: no listed rows.
    """

    def __init__(self, questions: Questions, order: ListOrder, most: int, nothing: Batch) -> None:
        self._questions = questions
        self._order = order
        self._most = most
        self._bars = np.full(len(questions), np.inf)
        self._pending: list[tuple[Part, Pairs]] = []
        self._count = 0
        self._found = [nothing]

    def add(self, part: Part) -> None:
        """Look for documents of a part."""
        self.add_unbounded(part)
        self.add_plain(part, self._questions.groups)

    def add_unbounded(self, part: Part) -> None:
        """Look for documents of a part of whose distances nothing is known before."""
        for pairs in self._constant(part):
            self._keep(part, pairs)

    def consider(self, part: Part, query: Int64s, row: Int64s) -> None:
        """Take these pairs for near, whoever found them."""
        self._keep(part, Pairs(query, row, np.full(len(query), -np.inf), np.full(len(query), np.inf)))

    def add_plain(self, part: Part, groups: Sequence[Asked]) -> None:
        """Look for plain documents of a part, for these groups of the queries."""
        for group in groups:
            for block in _blocks(group, part):
                own = self._bars[group.at]
                if np.isinf(own).any():
                    self._bars[group.at] = own = np.minimum(own, block.bars(self._most))
                self._keep(part, block.below(own))

    def lists(self) -> Lists:
        """The first documents of each query, which has its number in the questions."""
        self._settle()
        return Lists.of(Batch.concat(self._found))

    def _constant(self, part: Part) -> Iterator[Pairs]:
        """Pairs without bounds. Of documents that are equally far from every plain query, the first will do."""
        for odd in self._questions.odd.tolist():
            yield _crossed(np.array([odd]), np.flatnonzero(part.live))
        for group in self._questions.groups:
            nulls, nans, others = part.unplain(group.dimension)
            rows = np.concatenate([self._first_of(part, nulls), self._first_of(part, nans), others])
            if len(rows):
                yield _crossed(group.at, rows)

    def _first_of(self, part: Part, rows: Int64s) -> Int64s:
        if len(rows) <= self._most:
            return rows
        return rows[self._order.places(part.rows(rows))[: self._most]]

    def _keep(self, part: Part, pairs: Pairs) -> None:
        if not len(pairs.query):
            return
        self._pending.append((part, pairs))
        self._count += len(pairs.query)
        if self._count > max(_PENDING, 16 * self._most * len(self._questions)):
            self._settle()

    def _settle(self) -> None:
        """Compute the distances that are in doubt, and keep the first documents of each query."""
        if not self._pending:
            return
        top = self._bar_of_pending()
        parts = list(self._found)
        for part, pairs in self._pending:
            near = pairs.least <= top[pairs.query]
            if not near.any():
                continue
            query, row = pairs.query[near], pairs.row[near]
            found = distances(self._questions.metric, self._questions.vectors, query, part.vectors, row)
            parts.append(listed(query, found.values, found.valid, part.rows(row)))
        lists = Lists.of(self._order.sorted(Batch.concat(parts)).rows).cut(self._most)
        self._found, self._pending, self._count = [lists.rows], [], 0
        full = lists.counts() >= self._most
        value, valid = lists.last_distances()
        bar = np.where(valid, bars(self._questions.metric, value), -np.inf if self._order.nulls_first else np.inf)
        self._bars[lists.numbers[full]] = np.minimum(self._bars[lists.numbers[full]], bar[full])

    def _bar_of_pending(self) -> Doubles:
        """For each query, a measure that so many of the pending pairs as are wanted do not exceed."""
        query = np.concatenate([pairs.query for _, pairs in self._pending])
        greatest = np.concatenate([pairs.greatest for _, pairs in self._pending])
        order = np.lexsort((greatest, query))
        query, greatest = query[order], greatest[order]
        first = np.searchsorted(query, np.arange(len(self._questions)))
        last = np.searchsorted(query, np.arange(len(self._questions)), side="right")
        top = self._bars.copy()
        full = last - first >= self._most
        top[full] = np.minimum(top[full], greatest[first[full] + self._most - 1])
        return top
