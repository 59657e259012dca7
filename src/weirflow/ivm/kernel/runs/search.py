"""Finding rows by key in sorted runs: by code first, then by the key itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm import compiled
from weirflow.ivm.kernel.runs.run import BLOCK, FEW_NEEDLES, Run
from weirflow.ivm.zset.batch import take_array
from weirflow.ivm.zset.buffers import is_fixed_width, raw_values
from weirflow.ivm.zset.rows import equal_arrays, equal_rows_at, equal_values, expand_ranges
from weirflow.ivm.zset.sorting import sort_order

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s
    from weirflow.ivm.zset.hashing import Equality

    Hits = list[tuple[Run, Int64s, Int64s]]

_SMALL_RUN = 1 << 16
"""Such a run stays in the processor's cache: many needles need not be sorted for it."""


class TooManyPairs(Exception):
    """A search finds more pairs than was asked for.

    Attributes:
        counts: how many for each probe row.
        pairs: how many for all.
    """

    def __init__(self, counts: Int64s) -> None:
        self.counts = counts
        self.pairs = int(counts.sum())
        super().__init__(self.pairs)


class Needles:
    """Probe rows prepared for a search in several runs.

    A stored row is a candidate of a probe row when its code lies in [low, low | ``span``], and a match when moreover
    its first columns equal the probe row's. ``low`` has no bits of ``span``, which are the lowest.
    """

    __slots__ = ("_equality", "_keys", "_order", "_sorted", "_span", "_unsorted")

    def __init__(self, keys: Sequence[pa.Array], low: UInt64s, span: np.uint64, equality: Equality) -> None:
        self._keys = keys
        self._unsorted = low
        self._order: Int64s | None = None
        self._sorted = low
        self._span = span
        self._equality = equality

    def ranges(self, run: Run) -> tuple[Int64s, Int64s, Int64s]:
        """(probe rows, first positions in the run, lengths) of all ranges of rows whose codes fit.

        Keys are not compared; probe rows without such a row are left out.
        """
        codes, (low, order) = run.codes, self._for(run)
        if compiled.kernels is not None:
            hit, first, length = compiled.kernels.find_ranges(codes, run.sample, BLOCK, low, self._span)
            return hit if order is None else order[hit], first, length
        first = run.search(low)
        # The code at the first position that is not below the range; past the end it is one below, which never fits.
        hit = (self._upper(codes.take(first, mode="clip")) == low).nonzero()[0]
        if len(hit) == 0:
            return hit, hit, hit
        first, low = first[hit], low[hit]
        length = np.ones(len(hit), np.int64)
        # Most ranges have one row: the next code tells, and only the others are searched for their end.
        more = (self._upper(codes.take(first + 1, mode="clip")) == low).nonzero()[0]
        if len(more):
            length[more] = codes.searchsorted(low[more] | self._span, "right") - first[more]
        return hit if order is None else order[hit], first, length

    def _for(self, run: Run) -> tuple[UInt64s, Int64s | None]:
        """The needles in the best order for a search in the run, and that order; None for the order they came in."""
        if (len(run) <= _SMALL_RUN and len(self._unsorted) > len(run)) or (
            compiled.kernels is not None and len(self._unsorted) <= FEW_NEEDLES
        ):
            return self._unsorted, None
        if self._order is None:
            # Ascending needles: the search in a large run touches each part of it once.
            self._order = sort_order(self._unsorted)
            self._sorted = self._unsorted[self._order]
        return self._sorted, self._order

    def _upper(self, codes: UInt64s) -> UInt64s:
        return codes & ~self._span if self._span else codes

    def candidates(self, runs: Iterable[Run], most: int | None = None) -> Hits:
        """(run, probe rows, positions in the run) of all pairs whose codes fit, for each run that has any.

        ``TooManyPairs`` if these are more than ``most``, before they are made.
        """
        found = [(run, *self.ranges(run)) for run in runs]
        if most is not None and sum(int(length.sum()) for *_, length in found) > most:
            counts = np.zeros(len(self._unsorted), np.int64)
            for _, probe, _, length in found:
                counts[probe] += length  # a run has one range for a probe row
            raise TooManyPairs(counts)
        hits: Hits = []
        for run, probe, position, length in found:
            if len(probe) == 0:
                continue
            if length.max() > 1:
                hits.append((run, probe.repeat(length), expand_ranges(position, length)))
            else:
                hits.append((run, probe, position))
        return hits

    def matches(self, runs: Iterable[Run]) -> Hits:
        """As ``candidates``, of just those pairs whose keys are equal; a run may be left without any."""
        hits = self.candidates(runs)
        if not hits or not self._keys:
            return hits
        equal = self._equal(hits)
        if equal.all():
            return hits
        ends = np.cumsum([len(probe) for _, probe, _ in hits])
        masks = np.split(equal, ends[:-1])
        return [(run, probe[kept], at[kept]) for (run, probe, at), kept in zip(hits, masks, strict=True)]

    def equal(self, columns: Sequence[pa.Array], probe: Int64s) -> Bools:
        """Whether the keys of gathered rows, which are their first columns, equal those of the ``probe`` rows."""
        equal = np.ones(len(probe), np.bool_)
        for stored, key in zip(columns, self._keys, strict=False):
            if is_fixed_width(key.type) and key.null_count == 0 and stored.null_count == 0:
                equal &= equal_values(raw_values(stored), raw_values(key)[probe], self._equality)
            else:
                equal &= equal_arrays(stored, take_array(key, probe), self._equality)
        return equal

    def _equal(self, hits: Hits) -> Bools:
        """Which pairs have equal keys."""
        count = len(self._keys)
        parts = [equal_rows_at(run.columns[:count], at, self._keys, probe, self._equality) for run, probe, at in hits]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
