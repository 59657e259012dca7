"""Merging runs in slices gives what merging them at once gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.rows import VALUES, colliding_hash, count_rows, sliced

from weirflow.ivm.kernel.runs import merge
from weirflow.ivm.kernel.runs.merge import CodeOrder, RunMerge, can_merge
from weirflow.ivm.kernel.runs.run import Run, sorted_run
from weirflow.ivm.zset.hashing import Equality, hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

ORDER = CodeOrder(Equality.IDENTITY)


def make_run(array: pa.Array, weights: list[int], row_hash=hash_rows) -> Run:
    codes = row_hash([array], len(array), Equality.IDENTITY)
    return sorted_run(codes, [array], np.array(weights, np.int64).reshape(-1, 1), Equality.IDENTITY)


@pytest.mark.parametrize("fuel", [1, 3, 1000])
@pytest.mark.parametrize("row_hash", [hash_rows, colliding_hash])
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_every_type_in_slices(type_, row_hash, fuel):
    array = sliced(pa.array(VALUES[type_], type_))
    some, fewer = array.slice(1), array.slice(0, len(array) - 1)
    runs = [make_run(part, [weight] * len(part), row_hash) for part, weight in ((array, 3), (some, -3), (fewer, 1))]
    job = RunMerge(runs, ORDER)
    while not job.finished:
        assert job.step(fuel) > 0
    (merged,) = job.result()
    assert count_rows([merged.batch]) == count_rows([run.batch for run in runs])
    assert len(merged) == len(count_rows([merged.batch]))
    assert merged.columns[0].type == type_
    merged.columns[0].validate(full=True)
    assert np.all(merged.codes[1:] >= merged.codes[:-1])


def test_a_slice_uses_about_its_fuel():
    rows = [pa.array(np.arange(start, start + 10_000)) for start in (0, 5_000, 20_000)]
    job = RunMerge([make_run(array, [1] * 10_000) for array in rows], ORDER)
    used = []
    while not job.finished:
        used.append(job.step(1_000))
    assert sum(used) == 30_000
    assert max(used) < 1_300


def test_rows_that_all_cancel_leave_an_empty_run():
    array = pa.array(["a", "b"])
    job = RunMerge([make_run(array, [1, 1]), make_run(array, [-1, -1])], ORDER)
    job.step(100)
    (merged,) = job.result()
    assert len(merged) == 0
    assert merged.columns[0].type == pa.string()


def test_strings_beyond_32_bit_offsets_are_not_merged(monkeypatch):
    runs = [make_run(pa.array(["x" * 100]), [1]), make_run(pa.array(["y" * 100]), [1])]
    assert can_merge(runs)
    monkeypatch.setattr(merge, "MAX_STRING_BYTES", 150)
    assert not can_merge(runs)
