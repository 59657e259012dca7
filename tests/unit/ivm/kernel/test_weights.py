"""Weights that are all 1 take no memory, through loads, ticks, merges and files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.runs import weights
from weirflow.ivm.kernel.runs.merge import CodeOrder, RunMerge
from weirflow.ivm.kernel.runs.run import Run, kept_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import Equality

pytestmark = pytest.mark.usefixtures("either_kernel")

ROWS = weights.MANY + 1000


def numbers(*values) -> pa.Array:
    return pa.array(np.concatenate([np.atleast_1d(one) for one in values]))


def loaded(key_count=1, *, others=0, spill=None) -> Arrangement:
    """So many different rows, of which ``others`` weigh 2 and the rest 1."""
    arrangement = Arrangement([pa.int64(), pa.int64()], key_count, spill=spill)
    given = numbers(np.arange(ROWS), np.arange(others))
    arrangement.insert(Batch((given, given), np.ones(len(given), np.int64)))
    return arrangement


def tick(arrangement, added, removed):
    rows = numbers(added, removed)
    arrangement.insert(
        Batch((rows, rows), np.repeat([1, -1], [len(np.atleast_1d(added)), len(np.atleast_1d(removed))]))
    )
    while arrangement.maintain(1 << 20):
        pass


def require(arrangement, rows, weight):
    """Fail unless these rows are stored, each with its weight."""
    batches = list(arrangement.rows())
    found = np.concatenate([batch.columns[0].to_numpy() for batch in batches])
    assert np.array_equal(found, np.concatenate([batch.columns[1].to_numpy() for batch in batches]))
    order = np.argsort(found)
    assert np.array_equal(found[order], rows)
    assert np.array_equal(
        np.concatenate([batch.weights for batch in batches])[order], np.broadcast_to(weight, len(rows))
    )


@pytest.mark.parametrize("key_count", [0, 1])
def test_rows_that_occur_once_take_their_columns_and_a_code(key_count):
    assert loaded(key_count).nbytes == ROWS * (8 + 8 + 8)


@pytest.mark.parametrize("others", [1, weights.FEW])
def test_a_few_other_weights_are_kept_apart(others):
    arrangement = loaded(others=others)
    assert [len(run) for run in arrangement.runs] == [ROWS - others, others]
    assert arrangement.nbytes == ROWS * 24 + others * 8
    require(arrangement, np.arange(ROWS), np.where(np.arange(ROWS) < others, 2, 1))


def test_many_other_weights_are_kept_with_the_rows():
    arrangement = loaded(others=weights.FEW + 1)
    assert arrangement.nbytes == ROWS * 32
    require(arrangement, np.arange(ROWS), np.where(np.arange(ROWS) <= weights.FEW, 2, 1))


def test_what_is_probed_has_weights_of_its_own():
    found = loaded(others=2).probe([pa.array([1, 5, -1])])
    rows = zip(found.batch.columns[0].to_pylist(), found.batch.weights.tolist(), strict=True)
    assert dict(rows) == {1: 2, 5: 1}
    found.batch.weights[:] = 7  # nobody else sees it
    assert loaded().weights_of(Batch((numbers(5), numbers(5)), np.ones(1, np.int64))).tolist() == [1]


def test_a_merge_of_ticks_into_the_base_takes_no_weights_back():
    arrangement = loaded()
    gone = np.arange(0, ROWS, 2)
    tick(arrangement, np.arange(ROWS, 2 * ROWS), gone)
    assert arrangement.nbytes <= 24 * (ROWS + ROWS // 2 + 1)
    require(arrangement, np.concatenate([np.arange(1, ROWS, 2), np.arange(ROWS, 2 * ROWS)]), 1)


def test_a_merge_keeps_other_weights_apart_until_they_are_many():
    arrangement = loaded()
    tick(arrangement, np.arange(ROWS, 2 * ROWS), np.empty(0, np.int64))
    tick(arrangement, np.arange(10), np.empty(0, np.int64))
    require(arrangement, np.arange(2 * ROWS), np.where(np.arange(2 * ROWS) < 10, 2, 1))
    tick(arrangement, np.arange(2 * ROWS), np.empty(0, np.int64))
    require(arrangement, np.arange(2 * ROWS), np.where(np.arange(2 * ROWS) < 10, 3, 2))


def test_a_retraction_that_comes_first_is_kept():
    arrangement = Arrangement([pa.int64(), pa.int64()], 1)
    tick(arrangement, np.empty(0, np.int64), np.arange(5))
    tick(arrangement, np.arange(3, ROWS), np.empty(0, np.int64))
    rows = np.array([*range(3), *range(5, ROWS)])
    require(arrangement, rows, np.where(rows < 3, -1, 1))


def test_a_saved_run_is_as_it_always_was(tmp_path):
    (run,) = loaded().runs
    run.save(tmp_path / "run")
    again = Run.load(tmp_path / "run")
    assert again.values.flags.c_contiguous
    assert np.array_equal(again.values, np.ones((ROWS, 1), np.int64))
    restored = Arrangement([pa.int64(), pa.int64()], 1, runs=[again])
    tick(restored, np.arange(ROWS, 2 * ROWS), np.arange(ROWS))
    require(restored, np.arange(ROWS, 2 * ROWS), 1)


def test_rows_let_go_take_no_weights_back(tmp_path):
    (run,) = loaded(spill=tmp_path).runs
    kept = kept_rows(run, np.arange(len(run)) % 2 == 0)
    assert weights.are_all_one(kept.values)
    assert weights.are_all_one(run.values)


@pytest.mark.parametrize("values", [[1], [1, 1], [2, 2], [1, 2]])
def test_only_what_was_made_so_is_taken_for_all_one(values):
    array = np.array(values, np.int64).reshape(-1, 1)
    assert not weights.are_all_one(array)
    assert not weights.are_all_one(np.broadcast_to(np.int64(2), (3, 1)))
    assert weights.are_all_one(weights.all_one(3)[1:])


@pytest.mark.parametrize("others", [1, weights.FEW, weights.FEW + 1])
@pytest.mark.parametrize("fuel", [100_000, 1 << 20])
def test_weights_of_runs_are_merged_a_slice_at_a_time(others, fuel):
    arrangement = Arrangement([pa.int64(), pa.int64()], 1)
    for first in (0, ROWS):
        rows = numbers(np.arange(first, first + ROWS))
        arrangement.insert(Batch((rows, rows), np.ones(ROWS, np.int64)))
    expected = np.ones(2 * ROWS, np.int64)
    twice = arrangement.runs[1].columns[0].to_numpy()[-others:]  # in the last slices
    expected[twice] = 2
    again = Arrangement([pa.int64(), pa.int64()], 1)
    rows = numbers(np.arange(ROWS, 2 * ROWS))
    again.insert(Batch((rows, rows), expected[ROWS:]))
    merge = RunMerge([arrangement.runs[0], *again.runs], CodeOrder(Equality.IDENTITY))
    while not merge.finished:
        merge.step(fuel)
    both = Arrangement([pa.int64(), pa.int64()], 1, runs=merge.result())
    kept_apart = others <= weights.FEW
    assert [len(run) for run in both.runs] == ([2 * ROWS - others, others] if kept_apart else [2 * ROWS])
    assert weights.are_all_one(both.runs[0].values) == kept_apart
    require(both, np.arange(2 * ROWS), expected)


def test_other_weights_come_back_from_a_merge():
    kinds = [pa.int64(), pa.int64()]
    rows = numbers(np.arange(ROWS))
    base = Run(np.arange(ROWS, dtype=np.uint64), (rows, rows), weights.all_one(ROWS))
    newer = Run(np.array([7], np.uint64), (numbers(7), numbers(7)), np.array([[4]]))
    job = RunMerge([base, newer], CodeOrder(Equality.IDENTITY))
    while not job.finished:
        job.step(50_000)
    once, apart = job.result()
    assert len(once) == ROWS - 1
    assert (apart.columns[0].to_pylist(), apart.values.tolist()) == ([7], [[5]])
    assert [column.type for column in once.columns] == kinds
