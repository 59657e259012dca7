"""Rows and what they meet, in slices of a bounded number of pairs, or before and after a tick."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.runs.search import TooManyPairs
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import ProbeResult
    from weirflow.ivm.operators.arrange import Arrange

MOST_PAIRS = 1 << 22
"""Of a slice; a tenth of a second, and some hundred megabytes."""


class Slice(NamedTuple):
    """Some of the rows, from ``start`` on, and what they meet."""

    start: int
    rows: Batch
    matches: ProbeResult


def met(
    rows: Batch,
    side: Arrangement,
    expected: Callable[[int], None] | None = None,
    *,
    most: int | None = None,
    columns: Sequence[int] | None = None,
) -> Iterator[Slice]:
    """The rows in their order, with the stored rows that have their key, at most about ``most`` pairs at a time.

    With ``columns``, just these of the stored rows are there. Between slices ``TickTimeout`` is raised if the deadline
    has passed. If there is more than one slice, ``expected`` is called before the first with the number of
    all pairs; it may raise.
    """
    keys, most = side.key_count, MOST_PAIRS if most is None else most
    ahead = [(0, rows)]
    while ahead:
        check()
        start, part = ahead.pop()
        try:
            limit = most if len(part) > 1 else None
            matches = side.probe(part.columns[:keys], count=len(part), most=limit, columns=columns, layout=part.layout)
        except TooManyPairs as found:
            if expected is not None and part is rows:
                expected(found.pairs)
            cuts = _cuts(found.counts, max(most // 2, 1))
            ahead += [(start + at, part.slice(at, length)) for at, length in reversed(cuts)]
            continue
        yield Slice(start, part, matches)


def _cuts(counts: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Where parts of rows begin and how long they are, so that each has up to ``most`` pairs, or is one row."""
    ends = np.cumsum(counts)
    cuts, at = [], 0
    while at < len(counts):
        done = int(ends[at - 1]) if at else 0
        end = max(int(np.searchsorted(ends, done + most, side="right")), at + 1)
        cuts.append((at, end - at))
        at = end
    return cuts


def replaced(
    sides: tuple[Arrange, Arrange], deltas: Sequence[Batch], computed: Callable[[Batch, Arrangement], Batch]
) -> Batch:
    """What is ``computed`` of the keys that a tick touches, as they will be less as they were.

    Unlike deltas that meet each other, this never pairs rows that are not there at the same time: a condition that
    cannot be computed for such a pair does not fail the tick.
    """
    keys = sides[0].key_count
    named = [Batch(delta.columns[:keys], np.ones(len(delta), np.int64)) for delta in deltas]
    touched = consolidate(Batch.concat(named))
    before = [side.arrangement.probe(touched.columns, count=len(touched), consolidated=True).batch for side in sides]
    after = [consolidate(Batch.concat([old, delta])) for old, delta in zip(before, deltas, strict=True)]
    new, old = (computed(left, _arranged(sides[1], right)) for left, right in (after, before))
    return consolidate(Batch.concat([new, old.negate()]))


def _arranged(like: Arrange, rows: Batch) -> Arrangement:
    arranged = Arrangement(like.types, like.key_count)
    arranged.insert(rows)
    return arranged
