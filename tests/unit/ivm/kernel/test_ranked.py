"""The value at a rank of each key is that of the sorted values, and the rows of a key are not read for it."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rows import coarse_hash, colliding_hash

from weirflow.ivm.kernel import selection
from weirflow.ivm.kernel.ranked import RankedArrangement
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.kernel.selection import RankedValues, RunRanges, find_words, sums_before
from weirflow.ivm.kernel.sort_keys import double_words, doubles_of
from weirflow.ivm.zset.hashing import hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")
every_hash = pytest.mark.parametrize("row_hash", [hash_rows, coarse_hash, colliding_hash])
KEYS = ["a", "b", "c", None, "d"]


def change(values, rows):
    """Apply weighted rows of (key, word); returns what was there before and after for their keys, in order."""
    keys = list(dict.fromkeys(key for (key, _), _ in rows))
    given_keys = [pa.array([key for (key, _), _ in rows], pa.string())]
    words = np.array([word for (_, word), _ in rows], np.uint64)
    run = values.sorted(given_keys, words, np.array([weight for _, weight in rows], np.int64))
    before = values.ranking([pa.array(keys, pa.string())])
    after = before.including(run)
    found = every(before.values.followed_by(after.values))
    values.insert(run, after)
    return keys, dict(zip(keys, found, strict=False)), dict(zip(keys, found[len(keys) :], strict=True))


def every(values: RankedValues) -> list[list[int]]:
    """All words of each key by rank."""
    which = np.arange(len(values.counts)).repeat(values.counts)
    ranks = np.concatenate([np.arange(count) for count in values.counts]) if len(which) else which
    found = values.at(which, ranks).tolist()
    ends = np.cumsum(values.counts).tolist()
    return [found[end - count : end] for end, count in zip(ends, values.counts.tolist(), strict=True)]


def written(keys, values):
    return dict(zip(keys, every(values), strict=True))


def expected(held, keys):
    return {
        key: sorted(word for (own, word), times in held.items() if own == key for _ in range(times)) for key in keys
    }


@every_hash
@pytest.mark.parametrize("few", [0, 5])
@pytest.mark.parametrize("seed", range(2))
def test_every_rank_of_every_key_after_every_change(row_hash, few, seed, monkeypatch):
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.HEAD_ROWS", 4)
    monkeypatch.setattr(selection, "_FEW_ROWS", few)
    monkeypatch.setattr(selection, "_VERY_FEW_ROWS", few)
    monkeypatch.setattr(selection, "_AT_ONCE", 30)
    chosen = random.Random(seed)
    values = RankedArrangement([pa.string()], row_hash=row_hash)
    held = Counter()
    for tick in range(30):
        keys = chosen.sample(KEYS, chosen.randint(1, len(KEYS)))
        rows = [
            ((chosen.choice(keys), chosen.randint(1, 12)), chosen.randint(1, 3)) for _ in range(chosen.randint(1, 9))
        ]
        gone = [row for row in held if row[0] in keys and chosen.random() < 0.4]
        rows += [(row, -chosen.randint(1, held[row])) for row in gone]
        before = held.copy()
        for row, weight in rows:
            held[row] += weight
        held = +held
        touched, old, new = change(values, rows)
        assert old == expected(before, touched)
        assert new == expected(held, touched)
        if tick % 3 == 0:
            values.maintain(chosen.randint(1, 100))
        if tick % 10 == 9:  # what a checkpoint stores is all there is
            values.adopt(values.runs)
    asked = values.ranking([pa.array(KEYS, pa.string())]).values
    assert written(KEYS, asked) == expected(held, KEYS)


@every_hash
def test_a_key_that_was_there_first_is_told_from_one_with_its_hash(row_hash):
    """Both lie in one run after the merge, and the older key's first word comes first."""
    values = RankedArrangement([pa.string()], row_hash=row_hash)
    change(values, [(("a", 5), 1), (("a", 9), 1)])
    change(values, [(("b", 7), 1)])
    change(values, [(("a", 6), 1)])
    assert len(values.runs) == 1
    assert written(["a"], values.ranking([pa.array(["a"])]).values) == {"a": [5, 6, 9]}
    assert written(["b"], values.ranking([pa.array(["b"])]).values) == {"b": [7]}


def test_without_key_columns_there_is_one_key():
    values = RankedArrangement([])
    assert values.ranking([]).values.counts.tolist() == [0]
    rows = values.sorted([], np.array([5, 3, 5], np.uint64), np.array([1, 2, 1]))
    values.insert(rows, values.ranking([]).including(rows))
    assert every(values.ranking([]).values) == [[3, 3, 5, 5]]


def test_the_rows_of_a_large_key_are_not_read(monkeypatch):
    values = RankedArrangement([pa.string()])
    count, chosen = 300_000, np.random.default_rng(3)
    words = [chosen.integers(1, 2**63, count).astype(np.uint64), chosen.integers(1, 2**63, 30_000).astype(np.uint64)]
    for part in words:
        rows = values.sorted([pa.array(["hot"] * len(part))], part, np.ones(len(part), np.int64))
        values.insert(rows, values.ranking([pa.array(["hot"])]).including(rows))
    assert len(values.runs) == 2
    guesses, rows_read = [], []
    looked_up, expanded = selection.find_words, selection.expand_ranges
    monkeypatch.setattr(selection, "find_words", lambda *given: guesses.append(1) or looked_up(*given))
    monkeypatch.setattr(selection, "expand_ranges", lambda at, size: rows_read.append(size.sum()) or expanded(at, size))
    ranks = np.array([0, 1, 99_999, 165_000, 329_999])
    found = values.ranking([pa.array(["hot"])]).values.at(np.zeros(5, np.int64), ranks)
    assert found.tolist() == np.sort(np.concatenate(words))[ranks].tolist()
    assert len(guesses) <= 2 * 20
    assert sum(rows_read) <= 5 * 64


def test_guesses_halve_what_is_left_however_values_are_spread(monkeypatch):
    """In proportion to its rank a value is guessed far from where it is, again and again."""
    values = RankedArrangement([])
    few = np.arange(1, 20_001, dtype=np.uint64)
    many = np.full(1, 10, np.uint64)
    for words, weight in ((few, 1), (many, 10**9)):
        rows = values.sorted([], words, np.full(len(words), weight))
        values.insert(rows, values.ranking([]).including(rows))
    guesses, looked_up = [], selection.find_words
    monkeypatch.setattr(selection, "find_words", lambda *given: guesses.append(1) or looked_up(*given))
    ranks = np.array([8, 9, 10**9 + 9, 10**9 + 10, 10**9 + 10_000])
    found = values.ranking([]).values.at(np.zeros(5, np.int64), ranks)
    assert found.tolist() == [9, 10, 10, 11, 10_001]
    assert len(guesses) <= 2 * 3 * 15


@given(st.lists(st.integers(-5, 5), max_size=200), st.data())
def test_sums_before_any_place(weights, data):
    places = np.array(data.draw(st.lists(st.integers(0, len(weights)), max_size=12)), np.int64)
    run = Run(np.zeros(len(weights), np.uint64), (), np.array(weights, np.int64).reshape(-1, 1))
    assert sums_before(run, places).tolist() == [sum(weights[:place]) for place in places]


@pytest.mark.parametrize("one_by_one", [0, 128])
def test_words_are_found_in_their_ranges(one_by_one, monkeypatch):
    monkeypatch.setattr(selection, "_FEW_RANGES", one_by_one)
    words = np.array([3, 5, 5, 5, 9, 1, 5, 7, 5, 6], np.uint64)
    low, high = np.array([0, 0, 1, 5, 8, 4, 10, 2]), np.array([5, 5, 3, 8, 10, 4, 10, 5])
    wanted = np.array([5, 10, 5, 6, 1, 9, 9, 2], np.uint64)
    first, last = find_words(words, low, high, wanted)
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == [
        *((1, 4), (5, 5), (1, 3), (7, 7)),
        *((8, 8), (4, 4), (10, 10), (2, 2)),
    ]


def test_ranges_of_different_runs_stay_apart_when_they_follow_each_other():
    one, other = (
        Run(np.zeros(2, np.uint64), (pa.array(words, pa.uint64()),), np.ones((2, 1), np.int64))
        for words in ([1, 2], [3, 4])
    )
    whole = np.zeros(1, np.int64), np.full(1, 2)
    values = RankedValues([RunRanges(one, *whole)], 1).followed_by(RankedValues([RunRanges(other, *whole)], 1))
    assert every(values) == [[1, 2], [3, 4]]


@given(st.lists(st.floats()))
def test_words_compare_as_doubles_and_become_them_again(values):
    doubles = np.array(values, np.float64)
    words = double_words(doubles)
    assert not (words == 0).any()
    assert list(map(repr, doubles_of(words).tolist())) == list(map(repr, values))
    in_order = sorted(values, key=lambda one: (math.isnan(one), 0 if math.isnan(one) else one, math.copysign(1, one)))
    assert list(map(repr, doubles_of(np.sort(words)).tolist())) == list(map(repr, in_order))


@every_hash
def test_keys_below_a_bound_are_let_go(row_hash):
    values = RankedArrangement([pa.int64()], row_hash=row_hash)
    keys = pa.array(range(60))
    for start in (1, 101):
        words = np.arange(start, start + 100, dtype=np.uint64).repeat(60)
        rows = values.sorted([pa.array(list(range(60)) * 100)], words, np.ones(len(words), np.int64))
        values.insert(rows, values.ranking([keys]).including(rows))
    values.release(0, pa.scalar(58))
    counts = values.ranking([keys]).values.counts
    assert counts.tolist() == [0] * 58 + [200, 200]
    left = values.ranking([pa.array([59, 58])]).values
    assert left.at(np.array([0, 1]), np.array([150, 7])).tolist() == [151, 8]


@pytest.mark.parametrize("count", [3, 5_000])
def test_a_change_is_kept_or_taken_back_as_a_whole(count):
    values = RankedArrangement([])
    empty = values.mark()
    rows = values.sorted([], np.arange(1, count + 1, dtype=np.uint64), np.ones(count, np.int64))
    values.insert(rows, values.ranking([]).including(rows))
    assert values.row_count == values.ranking([]).values.counts[0] == count
    values.rewind(empty)
    assert values.ranking([]).values.counts.tolist() == [0]
