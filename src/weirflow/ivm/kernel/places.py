"""Places: where stretches of ordered state begin and end in each of its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from weirflow.ivm.kernel.sort_keys import SortColumn, key_words, prefixes, sort_words
from weirflow.ivm.zset.batch import concat_columns, take_columns
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import equal_rows_at

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.runs.search import Needles
    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

    Words = Callable[[Sequence[pa.Array], Sequence[SortColumn]], list[UInt64s]]

_FEW_TIES = 32
"""So many rows of equal prefix are read rather than searched."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Of one run, the rows of each stretch.

    Attributes:
        start, end: where the rows of the stretch's key are; equal if there are none.
        low, high: where those of the stretch are among them.
        is_exact: whether all rows between ``start`` and ``end`` have the key; otherwise some may have another one.
    """

    run: Run
    start: Int64s
    end: Int64s
    low: Int64s
    high: Int64s
    is_exact: bool

    def joined(self, first: Int64s, last: Int64s) -> Span:
        """The spans from those of the stretches ``first`` to those of the stretches ``last`` of the same keys."""
        return Span(self.run, self.start[first], self.end[first], self.low[first], self.high[last], self.is_exact)

    def taken(self, at: Int64s) -> Span:
        """Just some of the stretches."""
        return self.joined(at, at)

    def whole(self) -> Span:
        """All rows of the keys."""
        return Span(self.run, self.start, self.end, self.start, self.end, self.is_exact)

    def at_start(self) -> Span:
        """No rows, before the first of the keys."""
        return Span(self.run, self.start, self.end, self.start, self.start, self.is_exact)


class RunFacts:
    """What is found out once about a run, since it never changes."""

    def __init__(self, run: Run, key_count: int) -> None:
        again = np.flatnonzero(run.codes[1:] == run.codes[:-1]) + 1
        keys = run.columns[:key_count]
        self.has_one_key_a_code = bool(equal_rows_at(keys, again, keys, again - 1, Equality.GROUPING).all())
        weights = run.values[:, 0]
        self._weight_before: Int64s | None = None
        if len(weights) and not (weights.min() == weights.max() == 1):
            self._weight_before = np.concatenate([[0], np.cumsum(weights)])

    def weight(self, begin: Int64s, end: Int64s) -> Int64s:
        """What the rows from ``begin`` to ``end`` weigh together."""
        if self._weight_before is None:
            return end - begin
        return self._weight_before[end] - self._weight_before[begin]


class KnownRuns:
    """The facts about runs, as long as these are in use."""

    def __init__(self, key_count: int) -> None:
        self._key_count = key_count
        self._facts: WeakKeyDictionary[Run, RunFacts] = WeakKeyDictionary()

    def __getitem__(self, run: Run) -> RunFacts:
        facts = self._facts.get(run)
        if facts is None:
            facts = self._facts[run] = RunFacts(run, self._key_count)
        return facts


def key_spans(
    runs: Sequence[Run], known: KnownRuns, needles: Needles, keys: Sequence[pa.Array], count: int
) -> list[Span]:
    """Of each run that has any, all rows of ``count`` keys."""
    spans = []
    for run in runs:
        probe, first, size = needles.ranges(run)
        if not len(probe):
            continue
        is_exact = known[run].has_one_key_a_code
        if is_exact and keys:
            same = equal_rows_at(run.columns[: len(keys)], first, keys, probe, Equality.GROUPING)
            probe, first, size = probe[same], first[same], size[same]
        start, end = np.zeros(count, np.int64), np.zeros(count, np.int64)
        start[probe], end[probe] = first, first + size
        spans.append(Span(run, start, end, start, end, is_exact))
    return spans


def between(
    spans: Sequence[Span],
    first: Sequence[pa.Array],
    last: Sequence[pa.Array],
    to_end: Bools,
    order: Sequence[SortColumn],
    *,
    of_peers: bool,
    spread: int = 0,
) -> list[Span]:
    """The spans from a row for each stretch to another, or to the end of the key.

    Both rows are inside, and with ``of_peers`` all that sort as they do; without, ties are broken by all columns. With
    a ``spread``, those whose first sort column, an integer or a time, differs by no more than that are inside. More of
    the rows around them may be inside, the same in every run.
    """
    count = len(to_end)
    begin, end = prefixes(first, order, count), prefixes(last, order, count)
    if spread:
        # The prefix of such a column counts as it does.
        far = np.uint64(min(spread, 2**64 - 1))
        begin, end = begin - np.minimum(begin, far), end + np.minimum(~end, far)
    found, most = [], 0
    for span in spans:
        prefix = raw_values(span.run.columns[-1])
        low = _search(prefix, span.start, span.end, begin, behind=False)
        low_end = _search(prefix, low, span.end, begin, behind=True)
        high_end = _search(prefix, low, span.end, end, behind=True)
        high = _search(prefix, low, high_end, end, behind=False)
        most = max(most, int((low_end - low).max(initial=0)), int((high_end - high).max(initial=0)))
        found.append((span, low, low_end, high, high_end))
    # All runs alike: a row of which one run has a weight inside has all its weights inside.
    exactly = most > _FEW_TIES and not spread
    words: Words = key_words if of_peers else sort_words
    made = []
    for span, low, low_end, high, high_end in found:
        begin_at, end_at = low, high_end
        if exactly:
            begin_at = _search_exactly(_Rows(span.run, order, words), low, low_end, first, behind=False)
            end_at = _search_exactly(_Rows(span.run, order, words), high, high_end, last, behind=True)
        end_at = np.where(to_end, span.end, end_at)
        made.append(Span(span.run, span.start, span.end, begin_at, end_at, span.is_exact))
    return made


def _search(values: UInt64s, low: Int64s, high: Int64s, wanted: UInt64s, *, behind: bool) -> Int64s:
    """In each sorted range of ``values`` the first place whose value is not below the wanted one, or ``behind`` it."""
    low, high = low.copy(), high.copy()
    active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) >> 1
        there, here = values[middle], wanted[active]
        below = there <= here if behind else there < here
        low[active[below]] = middle[below] + 1
        high[active[~below]] = middle[~below]
        active = active[low[active] < high[active]]
    return low


class _Rows(NamedTuple):
    """The rows of a run in an order."""

    run: Run
    order: Sequence[SortColumn]
    words: Words


def _search_exactly(rows: _Rows, low: Int64s, high: Int64s, wanted: Sequence[pa.Array], *, behind: bool) -> Int64s:
    """As ``_search``, of whole rows."""
    low, high = low.copy(), high.copy()
    active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) >> 1
        pairs = concat_columns([take_columns(rows.run.columns[:-1], middle), take_columns(wanted, active)])
        below = _is_below(rows.words(pairs, rows.order), len(active), or_equal=behind)
        low[active[below]] = middle[below] + 1
        high[active[~below]] = middle[~below]
        active = active[low[active] < high[active]]
    return low


def _is_below(words: Sequence[UInt64s], count: int, *, or_equal: bool) -> Bools:
    """Whether row i comes before row ``count + i``, or equals it."""
    below = np.full(count, or_equal)
    for word in reversed(words):
        left, right = word[:count], word[count:]
        below = (left < right) | ((left == right) & below)
    return below
