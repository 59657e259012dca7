"""ApproximateNearest lists documents that an index finds, where Nearest would look at all of them.

Documents that come and go are compared with the lists as ever. What is approximate is where a list comes from: for a
new query, and for one whose list ran short. How many of the nearest are found is measured against an exact search, of
some queries when many are searched for and of one query now and then, and the index searches longer if it is too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.kernel.vectors.bounds import Kind
from weirflow.ivm.operators.nearest.indexes import SearchIndex, made_index, require_index
from weirflow.ivm.operators.nearest.listed import Lists, numbers
from weirflow.ivm.operators.nearest.operator import Nearest, NearestSpec, Tick
from weirflow.ivm.operators.nearest.search import Questions, Search
from weirflow.ivm.zset.batch import Batch, take_columns

if TYPE_CHECKING:
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.operators.nearest.documents import Documents, Part
    from weirflow.ivm.operators.nearest.standing import Standing
    from weirflow.ivm.zset.batch import Int64s
    from weirflow.sql.plan import VectorIndex

_LEAST = 4096
"""Fewer documents than that are searched exactly."""
_MEASURED = 32
"""Queries whose recall is measured when many are searched for."""
_REMEMBERED = 256
"""Measurements that the recall is the mean of."""
_SURE = 16
"""So many measurements are enough to decide by."""
_ABOVE = 0.02
"""The recall of a sample is to be better by this, so that that of all is good enough."""
_STALE = 0.25
"""An index of which more than this share is gone is made anew."""
_GROWN = 4
"""An index is made anew for so many times the documents."""


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known beside the state: nothing of it is stored.

    Attributes:
        index: None if there is none yet.
        reach: how much of it is searched for a query.
        dimension: of its vectors.
        made_of: of how many documents it was made.
        recalls: the last measurements.
        steps: how many there were.
        anew: whether all queries are to be searched for again.
    """

    index: SearchIndex | None = None
    reach: int = 0
    dimension: int = 0
    made_of: int = 0
    recalls: tuple[float, ...] = ()
    steps: int = 0
    anew: bool = False


class ApproximateNearest(Nearest):
    """The nearest documents of each query, most of them."""

    def __init__(
        self, left_types: Sequence[pa.DataType], documents: Documents, spec: NearestSpec, index: VectorIndex
    ) -> None:
        require_index(index)
        super().__init__(left_types, documents, spec)
        self._chosen = index
        parameters = dict(index.parameters)
        self._sample, self._wanted = parameters["sample"], parameters["recall"] / 1000
        self._kept = _Known()
        self._now = self._kept
        """As it becomes in a step; kept if that is committed."""

    @property
    def recall(self) -> float | None:
        """Which share of the nearest is listed, by the last measurements; None if there was none."""
        return float(np.mean(self._kept.recalls)) if self._kept.recalls else None

    @property
    @override
    def label(self) -> str:
        return f"{super().label}, approximate by {self._chosen.kind.value}"

    @property
    @override
    def note(self) -> str:
        if self._kept.index is None:
            return ", searched exactly as long as there are few documents"
        measured = len(self._kept.recalls)
        recall = "not measured yet" if self.recall is None else f"{self.recall:.3f} of {measured} measured"
        return f", {self._kept.index.effort} searched, recall {recall}"

    @override
    def adopt(self, runs: Sequence[Sequence[Run]]) -> None:
        super().adopt(runs)
        self._kept = self._now = _Known()

    @override
    def mark(self) -> Any:
        return super().mark(), self._kept

    @override
    def rewind(self, mark: Any) -> None:
        states, known = mark
        super().rewind(states)
        self._kept = self._now = replace(known, index=None)  # which may have taken in what is not there

    @override
    def discard(self) -> None:
        super().discard()
        self._now = self._kept
        if self._kept.index is not None:
            self._kept.index.reach = self._kept.reach

    @override
    def step(self, deltas: Sequence[Batch]) -> Batch:
        output = super().step(deltas)
        now, change = self._now, self.documents.changed(deltas[1])
        self._stage(lambda: self._commit_known(now, change))
        return output

    def _commit_known(self, known: _Known, change: Part) -> None:
        if known.index is not None and known.index is self._kept.index and len(change.weights):
            # One made in this tick has them.
            at = _indexed(change, known.dimension)
            at = at[change.weights[at] > 0]
            known.index.add(change.codes[at].view(np.int64), change.vectors.gathered(at, known.dimension))
        self._kept = known

    @override
    def _lists_to_make(self, tick: Tick) -> Int64s:
        """All queries are searched for again once the index searches longer."""
        if not self._now.anew:
            return super()._lists_to_make(tick)
        self._now = replace(self._now, anew=False)
        return tick.before.numbers[tick.stays]

    @override
    def _found(self, questions: Questions, parts: Sequence[Part], count: int) -> Lists:
        index = self._ready(parts, count)
        if index is None:
            return super()._found(questions, parts, count)
        found = self._by_index(index, questions, parts)
        if len(questions) < _SURE:
            return found
        chosen = np.random.default_rng(len(questions)).permutation(len(questions))[:_MEASURED]
        while True:
            recalls = self._measured(questions, np.sort(chosen), parts, found)
            if np.mean(recalls) >= min(self._wanted + _ABOVE, 1.0) or not index.more():
                self._now = replace(self._now, recalls=tuple(recalls), reach=index.reach)
                return found
            found = self._by_index(index, questions, parts)

    @override
    def _settled(self, tick: Tick, lists: Lists, right: Batch) -> None:
        """Measure the recall of one query, once in so many ticks."""
        now = self._now = replace(self._now, steps=self._now.steps + 1)
        if now.index is None or now.steps % self._sample or not len(tick.after):
            return
        place = (now.steps // self._sample * 7919) % len(tick.after)
        number = tick.after.numbers[place : place + 1]
        listed = lists.rows.filter(np.isin(numbers(lists.rows), number))
        if not len(listed):
            listed = self._held(number).rows
        listed = Batch((pa.array(np.zeros(len(listed), np.int64)), *listed.columns[1:]), listed.weights)
        questions = self._questions_at(tick.after, np.array([place]))
        measured = self._measured(questions, np.array([0]), self.documents.parts(right), Lists.of(listed))
        recalls = (*now.recalls, *measured)[-_REMEMBERED:]
        self._now = replace(now, recalls=recalls)
        if len(recalls) >= _SURE and np.mean(recalls) < self._wanted and now.index.more():
            self._now = replace(now, recalls=(), reach=now.index.reach, anew=True)

    def _ready(self, parts: Sequence[Part], count: int) -> SearchIndex | None:
        """The index, made if it is not there or not good any more; None if all is searched exactly."""
        if count < _LEAST:
            return None
        index = self._now.index
        if index is None or index.size * (1 - _STALE) > count or count > _GROWN * self._now.made_of:
            lengths = np.concatenate([part.vectors.lengths[part.live] for part in parts])
            dimension = int(np.bincount(lengths).argmax())
            rows = [(part, _indexed(part, dimension)) for part in parts]
            ids = np.concatenate([part.codes[at] for part, at in rows])
            if not dimension or not len(ids):
                return None
            matrix = np.concatenate([part.vectors.gathered(at, dimension) for part, at in rows], dtype=np.float32)
            index = made_index(self._chosen, self.spec.metric, matrix, ids.view(np.int64))
            self._now = replace(self._now, index=index, reach=index.reach, dimension=dimension, made_of=len(ids))
        return index

    def _by_index(self, index: SearchIndex, questions: Questions, parts: Sequence[Part]) -> Lists:
        search = Search(questions, self.spec.order, self.spec.most, self._nothing_listed)
        dimension, built_now = self._now.dimension, index is not self._kept.index
        asked = [group for group in questions.groups if group.dimension == dimension]
        others = [group for group in questions.groups if group.dimension != dimension]
        # Some of what is found is gone, and some is found twice.
        count = self.spec.most + self.spec.most // 2 + 8
        found = [(group.at, index.search(group.matrix, count)) for group in asked]
        for part in parts:
            search.add_unbounded(part)
            search.add_plain(part, others)
            if not part.is_kept and not built_now:
                search.add_plain(part, asked)  # which came in this tick: the index does not know them
                continue
            for at, ids in found:
                query, row = _located(part, ids)
                search.consider(part, at[query], row)
        return search.lists()

    def _measured(self, questions: Questions, chosen: Int64s, parts: Sequence[Part], found: Lists) -> list[float]:
        """For some queries, which share of the nearest documents is listed."""
        rows = questions.take(chosen, self.documents.dtype)
        exact = super()._found(rows, parts, 0)
        limit = self.spec.limit
        first, own = exact.firsts(limit, ranked=False), found.firsts(limit, ranked=False)
        recalls = []
        for place, query in enumerate(chosen.tolist()):
            best = first.filter(numbers(first) == place)
            wanted = int(best.weights.sum())
            if wanted:
                mine = own.filter(numbers(own) == query)
                recalls.append(self._shared(best, mine) / wanted)
        return recalls or [1.0]

    def _shared(self, best: Batch, mine: Batch) -> int:
        """How many of the listed documents are no farther than the last that should be listed."""
        last = best.columns[1][len(best) - 1]
        if not last.is_valid:
            return int(min(best.weights.sum(), mine.weights.sum()))
        near = np.array([one.is_valid and not one.as_py() > last.as_py() for one in mine.columns[1]], np.bool_)
        return int(min(mine.weights[near].sum(), best.weights.sum()))

    def _questions_at(self, standing: Standing, at: Int64s) -> Questions:
        rows = Batch(take_columns(standing.rows.columns, at), standing.rows.weights[at])
        return Questions.of(self.spec.metric, self._vectors(rows), self.documents.dtype)


_LONGEST = 1e15
"""Beyond that, indexes of single precision overflow."""


def _indexed(part: Part, dimension: int) -> Int64s:
    """The rows of a part that an index takes."""
    known = part.profile
    fits = part.live & (known.kinds == Kind.PLAIN) & (part.vectors.lengths == dimension) & (known.norms < _LONGEST)
    return np.flatnonzero(fits)


def _located(part: Part, ids: Int64s) -> tuple[Int64s, Int64s]:
    """Which of the found documents are live rows of a part: the queries, from 0 on, and the rows."""
    codes, order = part.sorted_codes
    query = np.repeat(np.arange(len(ids)), ids.shape[1])
    wanted = np.ascontiguousarray(ids).reshape(-1)
    query, wanted = query[wanted != -1], wanted[wanted != -1].view(np.uint64)
    place = np.searchsorted(codes, wanted)
    hit = codes.take(place, mode="clip") == wanted if len(codes) else np.zeros(len(wanted), np.bool_)
    query, row = query[hit], place[hit] if order is None else order[place[hit]]
    live = part.live[row]
    pairs = np.unique(np.stack([query[live], row[live]]), axis=1)  # a code is found again where it was added again
    return pairs[0], pairs[1]
