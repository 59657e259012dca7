"""Nearest lists the k documents nearest to each query: what changed meets the lists, and few lists are made anew.

For each query more documents are listed than are shown. A document that comes is compared with the last one listed; one
that goes is replaced by the next; only a list that runs short is searched for anew among all documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.ivm.kernel.vectors.bounds import bars
from weirflow.ivm.kernel.vectors.distances import distances
from weirflow.ivm.kernel.vectors.vectors import Vectors
from weirflow.ivm.operators.nearest.documents import Documents, require_dimension
from weirflow.ivm.operators.nearest.listed import FIRST, ListOrder, Lists, listed, numbers
from weirflow.ivm.operators.nearest.search import Questions, Search, near_pairs
from weirflow.ivm.operators.nearest.standing import QueryChange, Standing, hashes_of
from weirflow.ivm.operators.operator import Operator
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.types import BIGINT, DOUBLE, INT

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.kernel.vectors.vectors import Doubles
    from weirflow.ivm.operators.nearest.documents import Part
    from weirflow.ivm.zset.batch import Bools, Int64s
    from weirflow.sql.expr import Expr
    from weirflow.types import VectorMetric

_LEAST_MARGIN = 8
_AHEAD = 64
"""Documents are made ready for a search between so many ticks that change them, since a query came last."""
_LONGEST_MARGINS = 3
"""Lists grow by what comes; they are cut when they are longer by so many margins than what is shown."""


@dataclass(frozen=True)
class NearestSpec:
    """What is listed for a query.

    Attributes:
        query: the vector of a query, over its columns.
        limit: how many documents are shown.
        left_columns: what is shown of a query.
        shown: how many of the columns listed of a document are shown; the others are there to order by.
        ranked: whether a last column says which place a document has, from 1 on.
        dimension: which all vectors must have; None if it was not declared.
        margin: how many more documents than are shown are listed at first; None to choose.
    """

    metric: VectorMetric
    query: Expr
    limit: int
    order: ListOrder
    left_columns: tuple[int, ...]
    shown: int
    ranked: bool = False
    dimension: int | None = None
    margin: int | None = None

    @property
    def most(self) -> int:
        """How many documents a search lists."""
        return self.limit + self._margin

    @property
    def longest(self) -> int:
        """How many documents are listed at most."""
        return self.limit + _LONGEST_MARGINS * self._margin

    @property
    def _margin(self) -> int:
        return max(_LEAST_MARGIN, self.limit) if self.margin is None else self.margin


@dataclass(frozen=True)
class NearestCounters:
    """How often what was done in ticks that were committed, since the operator was made.

    Attributes:
        added: queries that were new, and so searched for.
        refilled: lists that lost a document and had enough left.
        searched: lists that ran short, or met so many documents that they were made anew.
        compared: distances that were computed for documents that came or went.
    """

    added: int = 0
    refilled: int = 0
    searched: int = 0
    compared: int = 0

    def and_also(self, added: int, refilled: int, searched: int, compared: int) -> NearestCounters:
        """With so many more of each."""
        return NearestCounters(
            self.added + added, self.refilled + refilled, self.searched + searched, self.compared + compared
        )


class Nearest(Operator):
    """The nearest documents of each query; inputs are the queries and the store of the documents."""

    consolidated = True

    def __init__(self, left_types: Sequence[pa.DataType], documents: Documents, spec: NearestSpec) -> None:
        types = [left_types[at] for at in spec.left_columns]
        made = [DOUBLE, *([INT] if spec.ranked else [])]
        super().__init__([*types, *documents.types[: spec.shown], *made])
        self.spec = spec
        self.documents = documents
        self.left_types = tuple(left_types)
        self.counters = NearestCounters()
        self._vector = compile_expression(spec.query)
        self._queries = Arrangement((BIGINT, *left_types), 1)
        self._lists = Arrangement((BIGINT, DOUBLE, *documents.types), 1)
        self._nothing_listed = Batch.empty(self._lists.types)
        self._standing: Standing | None = None
        self._ahead = 0

    def partial(self) -> PartialNearest:
        """The same for a part of the documents: what the nearest of all parts are among."""
        return PartialNearest(self.left_types, self.documents, self.spec)

    @property
    def label(self) -> str:
        """What it is called where circuits are shown."""
        return f"nearest {self.spec.limit} by {self.spec.metric}"

    @property
    def states(self) -> Sequence[State]:
        """The queries by number, and the documents listed for each."""
        return (self._queries, self._lists)

    @override
    def adopt(self, runs: Sequence[Sequence[Run]]) -> None:
        super().adopt(runs)
        self._standing = None

    @override
    def rewind(self, mark: Any) -> None:
        super().rewind(mark)
        self._standing = None

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        left, right = deltas
        before = self._known()
        documents = self.documents.changed(right)
        change = QueryChange.of(before, self._asking(left))
        after = before.changed(change, self._vectors) if len(change.before) or len(change.new) else before
        count = before.documents + int(documents.weights.sum())
        tick = Tick(before, after, change, documents, count)
        old, new = self._change(tick, right)
        if len(right):
            self.documents.prepare(len(right))
        ahead = _AHEAD if len(change.new) else max(0, self._ahead - 1) if len(right) else self._ahead
        self._stage(lambda: setattr(self, "_ahead", ahead))
        shown = [self._shown(old, before).negate(), self._shown(new, after)]
        return consolidate(Batch.concat(shown))

    @override
    def maintain(self, fuel: int) -> int:
        done = super().maintain(fuel)
        if self._ahead:
            self.documents.make_ready()
        return done

    # What is known

    def _known(self) -> Standing:
        if self._standing is None:
            self._standing = self._restored()
        return self._standing

    def _restored(self) -> Standing:
        """What the state says of the queries."""
        parts = list(self._queries.rows())
        held = Batch.concat(parts) if parts else Batch.empty(self._queries.types)
        number = np.array(numbers(held))
        order = np.argsort(number, kind="stable")
        rows = Batch(take_columns(held.columns[1:], order), held.weights[order])
        number = number[order]
        standing = Standing(
            self.spec.metric,
            self.documents.dtype,
            number,
            rows,
            self._vectors(rows),
            np.full(len(rows), np.inf),
            np.zeros(len(rows), np.int64),
            self.documents.count(),
            hashes_of(rows),
            int(number[-1]) + 1 if len(number) else 0,
        )
        parts = list(self._lists.rows())
        lists = Lists.of(self.spec.order.sorted(Batch.concat(parts)).rows if parts else self._nothing_listed)
        return standing.with_lists(
            lists.numbers, self._bars(lists, standing.documents), lists.counts(), standing.documents
        )

    def _vectors(self, rows: Batch) -> Vectors:
        return Vectors.of(self._vector(rows.columns, len(rows)))

    def _asking(self, delta: Batch) -> Batch:
        """The queries that change, each once."""
        if not len(delta):
            return delta
        rows = consolidate(delta)
        if self.spec.dimension is not None:
            require_dimension(self._vector(rows.columns, len(rows)), self.spec.dimension, "query")
        return rows

    def _bars(self, lists: Lists, documents: int) -> Doubles:
        """Up to which measure all documents are in each list, of so many that there are."""
        value, valid = lists.last_distances()
        first = self.spec.order.nulls_first
        known = np.where(valid, bars(self.spec.metric, value), -np.inf if first else np.inf)
        return np.where(lists.counts() == documents, np.inf, known)

    # Lists

    def _change(self, tick: Tick, right: Batch) -> tuple[Lists, Lists]:
        """Stage the state after the tick; the lists of all queries whose rows may change, as they were and are."""
        before, spec = tick.before, self.spec
        whole = (before.counts == before.documents) & np.isposinf(before.bars)
        anew = np.isin(before.numbers, self._lists_to_make(tick))
        hits = self._hits(tick, tick.stays & ~anew)
        touched = np.unique(numbers(hits))
        concerned = np.union1d(np.union1d(touched, before.numbers[anew]), before.numbers[tick.change.before])
        old = self._held(concerned)
        merged = self._merged(old, hits, touched, before.numbers[whole])
        counts = merged.counts()
        short = (counts < spec.limit) & (counts != tick.count)
        emptied = np.setdiff1d(touched, merged.numbers) if tick.count else touched[:0]
        wanted = np.union1d(np.union1d(merged.numbers[short], emptied), before.numbers[anew])
        self._count(tick, hits, touched, wanted)
        found = self._searched(tick, wanted, right)
        kept = merged.rows.filter(~np.isin(numbers(merged.rows), wanted))
        unchanged = np.setdiff1d(concerned, np.concatenate([touched, before.numbers[anew], tick.gone]))
        same = old.rows.filter(np.isin(numbers(old.rows), unchanged))
        lists = Lists.of(spec.order.sorted(Batch.concat([kept, found, same])).rows)
        self._stage_state(tick, old, lists)
        self._settled(tick, lists, right)
        return old, lists

    def _lists_to_make(self, tick: Tick) -> Int64s:
        """The queries whose lists are made anew whatever changes.

        Where all documents are listed, or none can be told to be farther, many at once are better searched.
        """
        many = len(tick.documents.weights) > self.spec.most
        return tick.before.numbers[tick.stays & np.isposinf(tick.before.bars) & many]

    def _hits(self, tick: Tick, wanted: Bools) -> Batch:
        """The changed documents that may be listed for queries, with their distances."""
        part = tick.documents
        if not len(part.weights) or not wanted.any():
            return self._nothing_listed
        query, row = near_pairs(tick.before.questions, part, tick.before.bars, wanted)
        found = distances(self.spec.metric, tick.before.vectors, query, part.vectors, row)
        return listed(tick.before.numbers[query], found.values, found.valid, part.rows(row))

    def _held(self, wanted: Int64s) -> Lists:
        """The lists of these queries, as they are."""
        if not len(wanted):
            return Lists.of(self._nothing_listed)
        found = self._lists.probe([pa.array(wanted)])
        rows = self.spec.order.sorted(found.batch).rows
        # What one run of the state takes back of another is no row of a list, and above all not the last of one.
        return Lists.of(rows.filter(rows.weights > 0))

    def _merged(self, old: Lists, hits: Batch, touched: Int64s, whole: Int64s) -> Lists:
        """The lists that hits concern, after them: documents behind the last one listed are not known well enough."""
        own = Lists.of(old.rows.filter(np.isin(numbers(old.rows), touched)))
        both = self.spec.order.sorted(Batch.concat([own.rows, hits]))
        last = np.full(len(touched), -1, np.int64)
        last[np.searchsorted(touched, own.numbers)] = both.place[own.starts[1:] - 1]
        last[np.isin(touched, whole)] = len(both.rows.weights)
        number = numbers(both.rows)
        kept = np.arange(len(number)) <= last[np.searchsorted(touched, number)]
        rows = both.rows.filter(kept & (both.rows.weights > 0))
        return Lists.of(rows).cut(self.spec.longest)

    def _searched(self, tick: Tick, wanted: Int64s, right: Batch) -> Batch:
        """The lists of these queries and of those that are new, made of all documents."""
        new = tick.after.numbers[len(tick.after.numbers) - len(tick.change.new) :]
        every = np.concatenate([wanted, new])
        if not len(every) or not tick.count:
            return self._nothing_listed
        at = tick.after.places(every)
        rows = Batch(take_columns(tick.after.rows.columns, at), tick.after.rows.weights[at])
        questions = Questions.of(self.spec.metric, self._vectors(rows), self.documents.dtype)
        found = self._found(questions, self.documents.parts(right), tick.count).rows
        return Batch((pa.array(every[numbers(found)]), *found.columns[1:]), found.weights)

    def _found(self, questions: Questions, parts: Sequence[Part], count: int) -> Lists:  # noqa: ARG002 - for others
        """The first documents of each question, among all ``count`` of them."""
        search = Search(questions, self.spec.order, self.spec.most, self._nothing_listed)
        for part in parts:
            search.add(part)
        return search.lists()

    def _settled(self, tick: Tick, lists: Lists, right: Batch) -> None:
        """Called when a tick's lists are known."""

    def _stage_state(self, tick: Tick, old: Lists, lists: Lists) -> None:
        queries = tick.query_rows()
        change = consolidate(Batch.concat([old.rows.negate(), lists.rows]))
        after = tick.after.with_lists(lists.numbers, self._bars(lists, tick.count), lists.counts(), tick.count)
        missing = np.setdiff1d(np.concatenate([old.numbers, tick.new]), np.concatenate([lists.numbers, tick.gone]))
        if len(missing):  # there is no document any more
            after = after.with_lists(
                missing, np.full(len(missing), np.inf), np.zeros(len(missing), np.int64), tick.count
            )
        self._stage(lambda: self._commit_lists(queries, change, after))

    def _commit_lists(self, queries: Batch, change: Batch, after: Standing) -> None:
        self._standing = None  # should anything interrupt this, the state says what is known
        self._queries.insert(queries)
        self._lists.insert(change)
        self._standing = after

    def _count(self, tick: Tick, hits: Batch, touched: Int64s, wanted: Int64s) -> None:
        lost = np.unique(numbers(hits)[hits.weights < 0])
        refilled = len(np.setdiff1d(np.intersect1d(lost, touched), wanted))
        counted = self.counters.and_also(len(tick.change.new), refilled, len(wanted), len(hits))
        self._stage(lambda: setattr(self, "counters", counted))

    # Output

    def _shown(self, lists: Lists, standing: Standing) -> Batch:
        rows = lists.firsts(self.spec.limit, ranked=self.spec.ranked)
        if not len(rows):
            return self.nothing
        at = standing.places(numbers(rows))
        left = take_columns([standing.rows.columns[one] for one in self.spec.left_columns], at)
        shown = rows.columns[FIRST : FIRST + self.spec.shown]
        rank = rows.columns[-1:] if self.spec.ranked else ()
        return Batch((*left, *shown, rows.columns[1], *rank), rows.weights * standing.rows.weights[at])


class PartialNearest(Nearest):
    """The nearest of some documents, with all that is needed to find the nearest of all.

    Columns are a hash of the query, all columns of the query, how often it is there, all that is listed of a document,
    and the distance. The weight of a row is how often the document is there.
    """

    def __init__(self, left_types: Sequence[pa.DataType], documents: Documents, spec: NearestSpec) -> None:
        super().__init__(left_types, documents, spec)
        self.types = (BIGINT, *left_types, BIGINT, *documents.types, DOUBLE)
        self.nothing = Batch.empty(self.types)

    @override
    def _shown(self, lists: Lists, standing: Standing) -> Batch:
        rows = lists.firsts(self.spec.limit, ranked=False)
        if not len(rows):
            return self.nothing
        at = standing.places(numbers(rows))
        hashes = pa.array(standing.hashes[at].view(np.int64))
        copies = pa.array(standing.rows.weights[at])
        query = take_columns(standing.rows.columns, at)
        return Batch((hashes, *query, copies, *rows.columns[FIRST:], rows.columns[1]), rows.weights)


@dataclass(frozen=True)
class Tick:
    """What one step works with.

    Attributes:
        before, after: the queries.
        change: what becomes of them.
        documents: those that change.
        count: how many documents there are afterwards.
    """

    before: Standing
    after: Standing
    change: QueryChange
    documents: Part
    count: int

    @property
    def stays(self) -> Bools:
        """Which of the old queries are still there."""
        found = np.ones(len(self.before), np.bool_)
        found[self.before.places(self.gone)] = False
        return found

    @property
    def gone(self) -> Int64s:
        """The numbers of queries that are not there any more."""
        left = self.before.rows.weights[self.change.before] + self.change.gained
        return self.before.numbers[self.change.before[left <= 0]]

    @property
    def new(self) -> Int64s:
        """The numbers of queries that were not there."""
        return self.before.numbers_of(self.change)

    def query_rows(self) -> Batch:
        """The change of the numbered queries."""
        known = take_columns(self.before.rows.columns, self.change.before)
        weights = self.change.gained
        old = Batch((pa.array(self.before.numbers[self.change.before]), *known), weights)
        return Batch.concat([old, Batch((pa.array(self.new), *self.change.new.columns), self.change.new.weights)])
