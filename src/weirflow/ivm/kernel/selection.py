"""Selection: the word at a rank among rows that lie sorted in several runs, without reading them all.

Ranks are found by guess and count: a word is looked up in every run, the rows up to it are counted by the runs' sums,
and so either what is up to it or what is above it is left out. Weights of a run may be negative, as long as those of
equal words add up to none below zero over all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm import compiled
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.runs.run import SUMMED, Run
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.rows import expand_ranges

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

_FEW_RANGES = 128
"""So many are searched one by one, which costs less than the many passes of a search in all of them at once."""
_AT_ONCE = 1 << 14
"""More ranks than that are looked for one part after the other, which bounds the memory that it takes."""
_FEW_RANKS = 256
_FEW_ROWS, _VERY_FEW_ROWS = 64, 12
"""So many rows are rather sorted than guessed among, for few ranks or for many."""
_HALVED = 3
"""Each so many guesses one is in the middle: a guess in proportion is a good one only of values spread evenly."""


@dataclass(frozen=True, eq=False)
class RunRanges:
    """Ranges of rows of one run, in each of which the words ascend; the words are the run's last column."""

    run: Run
    low: Int64s
    high: Int64s

    @property
    def words(self) -> UInt64s:
        """The words of the run."""
        return raw_values(self.run.columns[-1])

    def take(self, at: Int64s) -> RunRanges:
        """Some of the ranges, any number of times."""
        return RunRanges(self.run, self.low[at], self.high[at])


def sums_before(run: Run, places: Int64s) -> Int64s:
    """The sum of the first values of all rows of the run before each place."""
    if compiled.kernels is not None:
        fast: Int64s = compiled.kernels.sums_before(run.values, run.sums, SUMMED, places)
        return fast
    values = run.values[:, 0]
    if len(places) * SUMMED > len(run):
        return np.concatenate(([0], np.cumsum(values)))[places]
    block = places // SUMMED
    inside = np.arange(SUMMED)
    rows = values.take(block[:, np.newaxis] * SUMMED + inside, mode="clip")
    sums: Int64s = run.sums[block] + (rows * (inside < (places % SUMMED)[:, np.newaxis])).sum(axis=1)
    return sums


def find_words(words: UInt64s, low: Int64s, high: Int64s, wanted: UInt64s) -> tuple[Int64s, Int64s]:
    """The first place in each sorted range whose word is not below the wanted one, and the first that is above it."""
    if compiled.kernels is not None:
        fast: tuple[Int64s, Int64s] = compiled.kernels.find_words(words, low, high, wanted)
        return fast
    if len(low) <= _FEW_RANGES:
        pairs = zip(low.tolist(), high.tolist(), wanted, strict=True)
        first = [at + words[at:end].searchsorted(word) for at, end, word in pairs]
        return _behind(words, np.array(first, np.int64), high, wanted)
    begin, end = low, high
    while (begin < end).any():
        middle = (begin + end) >> 1
        below = (begin < end) & (words.take(middle, mode="clip") < wanted)
        begin, end = np.where(below, middle + 1, begin), np.where(below, end, np.maximum(middle, begin))
    return _behind(words, begin, high, wanted)


def _behind(words: UInt64s, first: Int64s, high: Int64s, wanted: UInt64s) -> tuple[Int64s, Int64s]:
    """The places, and for each the next one in its range that has another word than the wanted one."""
    last = first
    while (more := (last < high) & (words.take(last, mode="clip") == wanted)).any():
        last = last + more
    return first, last


class RankedValues:
    """Values of a number of keys, as words, of which each run has a range for every key.

    The weights of equal words of a key add up to none below zero.
    """

    def __init__(self, ranges: Sequence[RunRanges], keys: int) -> None:
        self._ranges = ranges
        self._keys = keys

    @cached_property
    def counts(self) -> Int64s:
        """How many values each key has, equal ones counted apart."""
        counts = np.zeros(self._keys, np.int64)
        for one in self._ranges:
            counts += sums_before(one.run, one.high) - sums_before(one.run, one.low)
        return counts

    def at(self, which: Int64s, ranks: Int64s) -> UInt64s:
        """The words at these ranks, from 0 for the smallest, of the keys at ``which``.

        A key has more values than its rank says; of one that has not, the word has no meaning.
        """
        found = np.empty(len(ranks), np.uint64)
        for begin in range(0, len(ranks), _AT_ONCE):
            check()
            part = slice(begin, begin + _AT_ONCE)
            found[part] = _Selection([one.take(which[part]) for one in self._ranges], ranks[part]).words()
        return found

    def followed_by(self, other: RankedValues) -> RankedValues:
        """The keys of both, which are different ones to what is returned, one after the other."""
        nothing = np.zeros(self._keys, np.int64), np.zeros(other._keys, np.int64)
        own = {id(one.run): one for one in self._ranges}
        others = {id(one.run): one for one in other._ranges}
        runs = {id(one.run): one.run for one in (*self._ranges, *other._ranges)}
        ranges = []
        for number, run in runs.items():
            sides = [
                (one.low, one.high) if one is not None else (empty, empty)
                for one, empty in zip((own.get(number), others.get(number)), nothing, strict=True)
            ]
            low, high = (np.concatenate(ends) for ends in zip(*sides, strict=True))
            ranges.append(RunRanges(run, low, high))
        return RankedValues(ranges, self._keys + other._keys)


class _Selection:
    """Ranks that are looked for at the same time; of each is known which rows of each run may be the one meant.

    Those below are counted exactly, those up to the last that may be meant nearly: that number only guides guesses.
    """

    def __init__(self, ranges: Sequence[RunRanges], ranks: Int64s) -> None:
        self._runs = [(one.run, one.words) for one in ranges]
        self._low = np.stack([one.low for one in ranges])
        self._high = np.stack([one.high for one in ranges])
        self._begins = np.stack([sums_before(one.run, one.low) for one in ranges])
        ends = np.stack([sums_before(one.run, one.high) for one in ranges])
        self._ranks = ranks
        self._below = np.zeros(len(ranks), np.int64)
        self._up_to: Int64s = (ends - self._begins).sum(axis=0)
        self._best = np.zeros(len(ranks), np.uint64)

    def words(self) -> UInt64s:
        """The words at the ranks."""
        found = np.empty(len(self._ranks), np.uint64)
        few = _FEW_ROWS if len(found) <= _FEW_RANKS else _VERY_FEW_ROWS
        still, guesses = np.arange(len(found)), 0
        while True:
            sizes = self._high - self._low
            small = sizes.sum(axis=0) <= few
            if small.any():
                found[still[small]] = self._read(np.flatnonzero(small))
                if small.all():
                    return found
                left = np.flatnonzero(~small)
                self._keep(left)
                still, sizes = still[left], sizes.take(left, axis=1)
            guesses += 1
            self._narrow(sizes, in_proportion=guesses % _HALVED != 0)

    def _keep(self, left: Int64s) -> None:
        """Look only for these ranks from now on."""
        self._low, self._high, self._begins = (one.take(left, axis=1) for one in (self._low, self._high, self._begins))
        self._ranks, self._below, self._up_to = (one[left] for one in (self._ranks, self._below, self._up_to))
        self._best = self._best[left]

    def _narrow(self, sizes: Int64s, *, in_proportion: bool) -> None:
        """Guess a word for each rank and leave out the rows on one side of it."""
        low, high = self._low, self._high
        widest, each = sizes.argmax(axis=0), np.arange(len(self._ranks))
        size = sizes[widest, each]
        share = (self._ranks - self._below + 0.5) / np.maximum(self._up_to - self._below, 1) if in_proportion else 0.5
        places = low[widest, each] + np.clip(size * share, 0, size - 1).astype(np.int64)
        guess = np.empty(len(places), np.uint64)
        for number, (_, words) in enumerate(self._runs):
            own = (widest == number).nonzero()[0]
            if len(own):
                guess[own] = words[places[own]]
        first, last = np.empty_like(low), np.empty_like(low)
        counts: Int64s = -self._begins.sum(axis=0)
        for number, (run, words) in enumerate(self._runs):
            first[number], last[number] = find_words(words, low[number], high[number], guess)
            counts += sums_before(run, last[number])
        enough: Bools = counts > self._ranks
        self._best = np.where(enough, guess, self._best)
        self._low, self._high = np.where(enough, low, last), np.where(enough, first, high)
        self._below, self._up_to = np.where(enough, self._below, counts), np.where(enough, counts, self._up_to)

    def _read(self, small: Int64s) -> UInt64s:
        """The words at these ranks, found among all rows that are left for them."""
        parts = []
        for (run, words), low, high in zip(self._runs, self._low, self._high, strict=True):
            size = high[small] - low[small]
            places = expand_ranges(low[small], size)
            parts.append((small.repeat(size), words[places], run.values[places, 0]))
        owner, words, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        found = self._best.copy()
        if len(owner):
            order = np.lexsort((words, owner))
            owner, words = owner[order], words[order]
            counts = np.cumsum(weights[order])
            fresh = owner[1:] != owner[:-1]
            begins = np.concatenate(([0], fresh.nonzero()[0] + 1))
            before = np.concatenate(([0], counts[begins[1:] - 1])) - self._below[owner[begins]]
            counts -= before.repeat(np.diff(begins, append=len(owner)))
            # Only the last of equal words has counted all of them.
            whole = np.concatenate((fresh | (words[1:] != words[:-1]), [True]))
            enough = (whole & (counts > self._ranks[owner])).nonzero()[0]
            which, at = np.unique(owner[enough], return_index=True)
            found[which] = words[enough[at]]
        return found[small]
