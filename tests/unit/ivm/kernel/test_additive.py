"""Accumulators by key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.rows import MINUS_ZERO, NAN, OTHER_NAN, VALUES, ZERO, coarse_hash, colliding_hash, sliced

from weirflow.errors import DataError
from weirflow.ivm import compiled
from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.runs.spine import Spine
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.rows import group_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

every_hash = pytest.mark.parametrize("row_hash", [hash_rows, coarse_hash, colliding_hash])


@every_hash
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_keys_of_every_type(type_, row_hash):
    keys = sliced(pa.array(VALUES[type_], type_))
    values = np.arange(2 * len(keys)).reshape(-1, 2)
    sums = AdditiveArrangement([type_], 2, row_hash=row_hash)
    sums.add([keys], values)
    sums.add([keys], values)
    assert sums.lookup([keys]).tolist() == (2 * values).tolist()


def test_keys_group_as_sql_does():
    sums = AdditiveArrangement([pa.float64()], 1)
    sums.add([pa.array([ZERO, MINUS_ZERO, NAN, OTHER_NAN, None, None])], np.ones((6, 1), np.int64))
    assert sums.lookup([pa.array([MINUS_ZERO, NAN, None, 5.0])]).tolist() == [[2], [2], [2], [0]]
    assert sums.row_count == 3


def test_a_key_vanishes_when_all_its_accumulators_are_zero():
    sums = AdditiveArrangement([pa.string()], 2)
    sums.add([pa.array(["a", "b"])], np.array([[1, 0], [2, 3]]))
    sums.add([pa.array(["a", "b"])], np.array([[-1, 0], [-2, 0]]))
    assert sums.lookup([pa.array(["a", "b"])]).tolist() == [[0, 0], [0, 3]]
    assert sums.row_count == 1


def test_without_key_columns_there_is_one_key():
    sums = AdditiveArrangement([], 2)
    assert sums.lookup([]).tolist() == [[0, 0]]
    sums.add([], np.array([[1, 2], [3, 4]]))
    assert sums.lookup([]).tolist() == [[4, 6]]


def test_sums_do_not_wrap():
    sums = AdditiveArrangement([pa.int64()], 1)
    sums.add([pa.array([1])], np.array([[2**62]]))
    with pytest.raises(DataError):
        sums.add([pa.array([1])], np.array([[2**62]]))
    assert sums.lookup([pa.array([1])]).tolist() == [[2**62]]


def test_sums_that_might_wrap_are_refused():
    sums = AdditiveArrangement([pa.int64()], 1)
    for _ in range(2):
        sums.add([pa.array(np.arange(2_000))], np.full((2_000, 1), -(2**62)))
    assert len(sums.runs) == 2
    with pytest.raises(DataError, match="accumulator"):
        sums.lookup([pa.array([7])])


def test_sums_over_many_runs_equal_those_of_numpy():
    random = np.random.default_rng(3)
    sums, expected = AdditiveArrangement([pa.int64()], 3), np.zeros((5_000, 3), np.int64)
    for size in (20_000, *[100] * 300, 3_000, *[1_500] * 10):
        keys, values = random.integers(0, 5_000, size), random.integers(-9, 9, (size, 3))
        sums.add([pa.array(keys)], values)
        np.add.at(expected, keys, values)
        sums.maintain(12 * size)
    assert np.array_equal(sums.lookup([pa.array(np.arange(5_000))]), expected)
    stored = {
        key: row.tolist() for (keys,), rows in sums.rows() for key, row in zip(keys.to_pylist(), rows, strict=True)
    }
    assert stored == {key: row.tolist() for key, row in enumerate(expected) if row.any()}


def test_nothing_is_added_or_asked():
    sums = AdditiveArrangement([pa.int64()], 2)
    sums.add([pa.array([], pa.int64())], np.empty((0, 2), np.int64))
    assert sums.lookup([pa.array([], pa.int64())]).shape == (0, 2)
    assert (sums.runs, sums.nbytes, sums.maintain(10)) == ((), 0, 0)


def test_groups_are_found_before_and_after_they_are_merged():
    state = AdditiveArrangement([pa.int64()], 2)
    expected = np.zeros((50, 2), np.int64)
    random = np.random.default_rng(5)
    for tick in range(40):
        keys = [pa.array(np.sort(random.choice(50, 10, replace=False)))]
        rows = group_rows(keys, 10, Equality.GROUPING)
        keys = take_columns(keys, rows.order[rows.starts])
        values = random.integers(-5, 5, (10, 2))
        state.add_groups(keys, values, rows.codes, None)
        np.add.at(expected, keys[0].to_numpy(), values)
        if tick % 3:
            assert np.array_equal(state.lookup([pa.array(np.arange(50))]), expected)
    assert np.array_equal(state.lookup([pa.array(np.arange(50))]), expected)
    assert state.row_count == np.count_nonzero(expected.any(axis=1))


def test_what_waits_is_searched_up_to_a_number_of_runs(monkeypatch):
    if compiled.kernels is None:
        pytest.skip("there is no kernel")
    state = AdditiveArrangement([pa.int64()], 1)
    merged = []
    tidied = Spine._tidied
    monkeypatch.setattr(Spine, "_tidied", lambda self, content: merged.append(1) or tidied(self, content))
    keys = [pa.array([3, 4])]
    rows = group_rows(keys, 2, Equality.GROUPING)
    keys = take_columns(keys, rows.order[rows.starts])
    for tick in range(1, 26):
        state.add_groups(keys, np.ones((2, 1), np.int64), rows.codes, None)
        assert state.lookup(keys)[:, 0].tolist() == [tick, tick]
    assert len(merged) == 1  # each would be, but for the twelve that may wait
