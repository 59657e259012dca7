"""Finding rows by key in sorted runs: by code first, then by the key itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.zset.rows import equal_rows_at, expand_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weirflow.ivm.kernel.run import Run
    from weirflow.ivm.zset.batch import Int64s, UInt64s
    from weirflow.ivm.zset.hashing import Equality

_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


class Needles:
    """Probe rows prepared for a search in several runs: ranges of codes in ascending order.

    A stored row is a candidate of a probe row when its code lies in [low, low | ``span``], and a match when moreover
    its first columns equal the probe row's.
    """

    __slots__ = ("_equality", "_high", "_keys", "_low", "_order")

    def __init__(self, keys: Sequence[pa.Array], low: UInt64s, span: np.uint64, equality: Equality) -> None:
        self._keys = keys
        self._order = np.argsort(low, kind="stable")
        # Ascending needles: the search in a large run touches each part of it once.
        self._low = low[self._order]
        self._high = self._low | span
        self._equality = equality

    def ranges(self, run: Run) -> tuple[Int64s, Int64s, Int64s]:
        """(probe rows, first positions in the run, lengths) of all ranges of rows whose codes fit.

        Keys are not compared; probe rows without such a row are left out.
        """
        codes, low, high = run.codes, self._low, self._high
        first = codes.searchsorted(low)
        # The code at the first position not below the range; past the end no code fits.
        inside = codes.take(first, mode="clip") <= high
        inside &= first < len(codes)
        hit = inside.nonzero()[0]
        if len(hit) == 0:
            return hit, hit, hit
        first = first[hit]
        return self._order[hit], first, codes.searchsorted(high[hit], "right") - first

    def matches(self, run: Run) -> tuple[Int64s, Int64s]:
        """(probe rows, positions in the run) of all pairs whose keys are equal."""
        probe, position, length = self.ranges(run)
        if len(probe) and length.max() > 1:
            probe, position = probe.repeat(length), expand_ranges(position, length)
        if len(probe) == 0 or not self._keys:
            return probe, position
        equal = equal_rows_at(run.columns[: len(self._keys)], position, self._keys, probe, self._equality)
        if equal.all():
            return probe, position
        return probe[equal], position[equal]
