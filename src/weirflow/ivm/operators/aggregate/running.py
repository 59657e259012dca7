"""The extreme of a group as integers in its totals, so that most deltas need not look at the group's rows.

A delta that only inserts, or retracts rows behind the extreme, decides by comparing. Where it retracts the extreme
itself the answer is *doubtful*, and the rows have to be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.ivm import compiled
from weirflow.ivm.kernel.runs.run import BLOCK
from weirflow.ivm.kernel.sort_keys import value_words
from weirflow.ivm.kernel.sums import join_halves, split_integers
from weirflow.ivm.zset.buffers import raw_dtype, raw_values
from weirflow.rows.arrays import from_numpy

if TYPE_CHECKING:
    from weirflow.ivm.kernel.ordered import OrderedArrangement
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.ivm.zset.batch import Batch, Bools, Int64s, UInt64s

_WORST = np.uint64(0xFFFFFFFFFFFFFFFF)
_FEW = 200
"""So many rows are looked at one by one faster than they are sorted."""


class RunningExtreme:
    """MIN or MAX of values that fit 64 bits. The totals of a group: whether it has a value, and its bits in halves."""

    width = 3

    def __init__(self, kind: pa.DataType, *, descending: bool) -> None:
        self._type = kind
        self._descending = descending

    @staticmethod
    def holds(kind: pa.DataType) -> bool:
        """Whether values of this type fit."""
        return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_date32(kind) or pt.is_timestamp(kind))

    def values(self, totals: Int64s) -> pa.Array:
        """The extremes in totals; NULL where there is none."""
        return self._array(join_halves(totals[:, 1:]), totals[:, 0] == 0)

    def advance(self, old: Int64s, values: pa.Array, weights: Int64s, groups: Int64s) -> tuple[Int64s, Bools]:
        """The totals after rows of these groups came or went, and for which groups that is doubtful.

        No value is NULL.
        """
        present, held = old[:, 0] > 0, join_halves(old[:, 1:])
        bits = self._bits(values)
        words, held_words = self._words(bits), np.where(present, self._words(held), _WORST)
        came, went = np.flatnonzero(weights > 0), np.flatnonzero(weights < 0)
        best_words, best = held_words.copy(), held.copy()
        np.minimum.at(best_words, groups[came], words[came])
        better = came[(words[came] == best_words[groups[came]]) & (words[came] < held_words[groups[came]])]
        best[groups[better]] = bits[better]
        doubtful = np.zeros(len(old), np.bool_)
        # Of zeros of either sign, equal in order but not in bits, the rows decide which one it is.
        tied = came[(words[came] == best_words[groups[came]]) & (bits[came] != best[groups[came]])]
        gone = went[words[went] <= best_words[groups[went]]]
        doubtful[groups[tied]] = doubtful[groups[gone]] = True
        has = present.copy()
        has[groups[came]] = True
        return self._totals(has, best), doubtful

    def found(  # noqa: PLR0917 - called from one place
        self,
        rows: OrderedArrangement,
        groups: Groups,
        chosen: Int64s,
        delta: Batch,
        concerned: Int64s,
        into: Int64s,
    ) -> Int64s | None:
        """The totals of chosen groups by a compiled kernel; None if it is not for that one.

        ``rows`` is what the groups have, and to each of the ``concerned`` rows of the delta belongs one of the chosen.
        """
        if compiled.kernels is None or groups.layout is None or (places := rows.places) is None:
            return None
        bits = self._identical(self._bits(delta.columns[-1])[concerned])
        order = np.lexsort((self._words(bits), into))
        starts = into[order].searchsorted(np.arange(len(chosen) + 1))
        present, best = np.empty(len(chosen), np.bool_), np.empty(len(chosen), np.int64)
        known = compiled.kernels.first_values(
            places, BLOCK, groups.layout.address, groups.codes, chosen, len(groups.keys), pt.is_floating(self._type),
            self._descending, starts, bits[order], delta.weights[concerned][order], present, best,
        )  # fmt: skip
        return self._totals(present, best) if known else None

    def best(self, values: pa.Array, weights: Int64s, groups: Int64s, count: int) -> Int64s:
        """The totals of groups that have just these rows; equal ones add up, and those left with none do not count.

        No value is NULL.
        """
        bits = self._identical(self._bits(values))
        if len(bits) > _FEW:
            return self._best_of_many(bits, weights, groups, count)
        held: dict[tuple[int, int, int], int] = {}
        words = self._words(bits).tolist()
        for group, word, value, weight in zip(groups.tolist(), words, bits.tolist(), weights.tolist(), strict=True):
            held[group, word, value] = held.get((group, word, value), 0) + weight
        # Of zeros of either sign the negative one comes first, as in ordered rows.
        first: dict[int, tuple[int, int]] = {}
        for (group, word, value), weight in held.items():
            if weight > 0 and (group not in first or (word, value) < first[group]):
                first[group] = word, value
        best = np.array([first[group][1] if group in first else 0 for group in range(count)], np.int64)
        return self._totals(np.array([group in first for group in range(count)]), best)

    def _best_of_many(self, bits: Int64s, weights: Int64s, groups: Int64s, count: int) -> Int64s:
        """The same, by sorting."""
        words = self._words(bits)
        order = np.lexsort((bits, words, groups))
        groups, bits = groups[order], bits[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (groups[1:] != groups[:-1]) | (bits[1:] != bits[:-1])
        starts = np.flatnonzero(fresh)
        held = starts[np.add.reduceat(weights[order], starts) > 0]
        first = held[np.flatnonzero(np.diff(groups[held], prepend=-1))]
        present, best = np.zeros(count, np.bool_), np.zeros(count, np.int64)
        present[groups[first]] = True
        best[groups[first]] = bits[first]
        return self._totals(present, best)

    def _totals(self, present: Bools, bits: Int64s) -> Int64s:
        totals = np.empty((len(bits), self.width), np.int64)
        totals[:, 0] = present
        totals[:, 1:] = split_integers(np.where(present, bits, 0))
        return totals

    def _bits(self, values: pa.Array) -> Int64s:
        raw = raw_values(values)
        if raw.dtype.kind == "f":
            bits: Int64s = raw.astype(np.float64).view(np.int64)
            return bits
        return raw.astype(np.int64, copy=False)

    def _identical(self, bits: Int64s) -> Int64s:
        """The same values, of which those that are NaN have the same bits."""
        if not pt.is_floating(self._type):
            return bits
        doubles = bits.view(np.float64)
        one: Int64s = np.where(np.isnan(doubles), np.nan, doubles).view(np.int64)
        return one

    def _words(self, bits: Int64s) -> UInt64s:
        """What compares as the values do; the better the smaller."""
        words = value_words(bits.view(np.float64) if pt.is_floating(self._type) else bits)
        return ~words if self._descending else words

    def _array(self, bits: Int64s, absent: Bools) -> pa.Array:
        dtype = raw_dtype(self._type)
        assert dtype is not None
        raw = (bits.view(np.float64) if dtype.kind == "f" else bits).astype(dtype)
        mask = from_numpy(~absent).buffers()[1] if absent.any() else None
        return pa.Array.from_buffers(self._type, len(raw), [mask, pa.py_buffer(raw)])
