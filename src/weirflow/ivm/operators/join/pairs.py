"""Rows and what they meet, in slices of a bounded number of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.search import TooManyPairs

if TYPE_CHECKING:
    from weirflow.ivm.kernel.arrangement import Arrangement
    from weirflow.ivm.kernel.state import ProbeResult
    from weirflow.ivm.zset.batch import Batch

MOST_PAIRS = 1 << 22
"""Of a slice; a tenth of a second, and some hundred megabytes."""


class Slice(NamedTuple):
    """Some of the rows, from ``start`` on, and what they meet."""

    start: int
    rows: Batch
    matches: ProbeResult


def met(rows: Batch, side: Arrangement, expected: Callable[[int], None] | None = None) -> Iterator[Slice]:
    """The rows in their order, with the stored rows that have their key.

    Between slices ``TickTimeout`` is raised if the deadline has passed. If there is more than one slice, ``expected``
    is called before the first with the number of all pairs; it may raise.
    """
    keys = side.key_count
    ahead = [(0, rows)]
    while ahead:
        check()
        start, part = ahead.pop()
        most = MOST_PAIRS if len(part) > 1 else None
        try:
            matches = side.probe(part.columns[:keys], count=len(part), most=most)
        except TooManyPairs as found:
            if expected is not None and part is rows:
                expected(found.pairs)
            half = len(part) // 2
            ahead += [(start + half, part.slice(half, len(part) - half)), (start, part.slice(0, half))]
            continue
        yield Slice(start, part, matches)
