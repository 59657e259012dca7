"""``AdditiveArrangement``: integer accumulators by key, the state of COUNT, SUM, AVG and VARIANCE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.errors import DataError
from weirflow.ivm import compiled
from weirflow.ivm.kernel.codes import KeyCodes
from weirflow.ivm.kernel.runs.merge import CodeOrder, RunMerge
from weirflow.ivm.kernel.runs.run import BLOCK, Run
from weirflow.ivm.kernel.runs.search import Needles
from weirflow.ivm.kernel.runs.spine import SpineState
from weirflow.ivm.zset.batch import add_rows, magnitude
from weirflow.ivm.zset.hashing import Equality, RowHash, hash_rows
from weirflow.ivm.zset.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from weirflow.ivm.zset.batch import Int64s, UInt64s

_ROWS_PER_BATCH = 1 << 16
_EXACT = np.uint64(0)
_LIMIT = 2**62
_UPDATED = 64
"""For each group that changes, so many rows are written anew rather than that a row is kept beside them."""
_MOST_UPDATED = 1 << 20
"""So many values at most."""


class AdditiveArrangement(SpineState):
    """Keys with ``width`` int64 accumulators each; a key whose accumulators are all zero is absent.

    Keys compare as GROUP BY does; of keys that are equal but not identical (-0.0 and 0.0) any one is kept. Without
    key columns there is just one key.
    """

    def __init__(
        self,
        key_types: Iterable[pa.DataType],
        width: int,
        *,
        runs: Iterable[Run] = (),
        row_hash: RowHash = hash_rows,
        spill: Path | None = None,
    ) -> None:
        self.key_types = tuple(key_types)
        self.width = width
        self._order = CodeOrder(Equality.GROUPING)
        self._codes = KeyCodes(len(self.key_types), row_hash)
        super().__init__(self._order, runs, spill, self._codes)

    def add(self, keys: Sequence[pa.Array], values: Int64s, codes: UInt64s | None = None) -> None:
        """Add each row of ``values`` (rows, width) to the accumulators of its key; keys may repeat.

        ``codes`` are the keys' hashes, where the caller knows them.

        Raises:
            DataError: an accumulator would leave int64; nothing has changed.
        """
        if len(values) == 0:
            return
        self._spine.insert(keys, values, codes)

    def add_groups(
        self,
        keys: Sequence[pa.Array],
        values: Int64s,
        codes: UInt64s,
        layout: Layout | None,
        greatest: int | None = None,
    ) -> None:
        """As ``add``, of keys that are all different and in the order of their codes; ``layout`` is theirs.

        ``greatest`` is the magnitude of the values, where the caller knows it.
        """
        self._spine.append(Run(codes, tuple(keys), values, layout), searchable=True, greatest=greatest)

    def updatable(self, groups: int) -> tuple[Run, ...] | None:
        """All runs, where it costs less to write their values anew than to keep those of some groups beside them."""
        runs = self._spine.replaceable(_UPDATED * groups)
        return runs if runs is not None and self.width * sum(map(len, runs)) <= _MOST_UPDATED else None

    def update(self, old: tuple[Run, ...], values: Sequence[Int64s], greatest: int) -> None:
        """Let runs that are ``updatable`` have other values, none of which changes by more than ``greatest``."""
        new = [run.with_values(run.codes, own) for run, own in zip(old, values, strict=True)]
        self._spine.replace(old, new, greatest)

    def lookup(self, keys: Sequence[pa.Array], codes: UInt64s | None = None, layout: Layout | None = None) -> Int64s:
        """The accumulators (rows, width) of each key, zeros where it is absent; ``codes`` as in ``add``.

        ``layout`` is that of the keys, where the caller knows it.

        Raises:
            DataError: an accumulator has left the lower half of int64's range, so that it could wrap unseen.
        """
        length = len(keys[0]) if keys else 1
        total = np.zeros((length, self.width), np.int64)
        if codes is None:
            codes = self._codes(keys, length)
        if compiled.kernels is not None and (layout := layout or Layout.of(keys)) is not None:
            places = self._spine.searched
            if places is not None:
                compiled.kernels.add_found(places, BLOCK, layout.address, codes, len(keys), True, total)  # noqa: FBT003
                return _within_limit(total)
        needles = Needles(keys, codes, _EXACT, Equality.GROUPING)
        for run, probe, position in needles.matches(self._spine.runs):
            # A run holds a key once, so no probe row occurs twice and plain indexing adds up.
            add_rows(total, probe, run.values, position)
        return _within_limit(total)

    @property
    def searched(self) -> Int64s | None:
        """The runs in which compiled kernels find keys; None if they do not read one of them, or there are none."""
        return self._spine.searched

    def rows(self) -> Iterator[tuple[tuple[pa.Array, ...], Int64s]]:
        """All keys with their accumulators, each once, in pieces of about 65,536 keys and in no useful order."""
        merge = RunMerge(self._spine.runs, self._order, keep=False)
        while not merge.finished:
            run = merge.advance(_ROWS_PER_BATCH)
            if len(run):
                yield run.columns, run.values


def _within_limit(totals: Int64s) -> Int64s:
    if magnitude(totals) > _LIMIT:
        raise DataError(
            "A sum does not fit its 64-bit accumulator any more.", hint="make groups smaller, or sum smaller values"
        )
    return totals
